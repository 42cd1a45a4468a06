"""What an account of a run holds: of each test on each fabric what was started, what of it counts, and what was lost.

`account` makes it. What it comes to in words is `report.losses`.
"""

from __future__ import annotations

from enum import StrEnum

from fabricbench.model import Model
from fabricbench.record.farm_jobs import FarmJobs


class LossKind(StrEnum):
    """What became of a launch that gives no comparison anything; each launch is of one kind, the gravest first."""

    INVALID = "invalid"
    """It came to its end, and its traffic or its settings were not those of its fabric."""
    FAILED = "failed"
    """No start of it left a record that counts."""
    CUT_SHORT = "cut short"
    """What it left is not whole."""
    DAMAGED = "damaged"
    """It was stored, and cannot be read any more."""
    KILLED = "killed with the run"
    """It was under way when the run itself ended under it, by a kill or on a full disk: nobody saw its end."""
    EMPTY = "without a result"
    """It came to its end and counts, and every test in it failed."""
    NOT_MEASURED = "not measured"
    """Nobody started it yet, or it is under way: a run that was interrupted, or goes on."""


STAYS = (LossKind.INVALID, LossKind.EMPTY)
"""What `resume` does not start again: it came to its end, and would come to the same."""


class LostLaunches(Model):
    """The launches of one kind of loss: how many, the first of their names, and the first one's reason in words."""

    kind: LossKind
    launches: int
    names: tuple[str, ...]
    reason: str = ""


class SubjectAccount(Model):
    """One test on one fabric. `subject` is a workload's name, empty for the measurer, whose launches hold many tests.

    `starts` are all attempts of the `planned` launches; `failed_starts` those that came to no end that counts, tried again or not;
    `killed_starts` those that the run itself ended under, and that were started again.
    `measured` launches count and hold a result; `set_aside` are attempts that were kept apart, measured too far from their pair, or
    cut short. Of all `tests` in launches that count `failed_tests` could not be measured, without those that this place cannot
    measure at all. `jobs` is there for a farm.
    """

    fabric: str
    subject: str
    planned: int
    starts: int
    failed_starts: int = 0
    failed_start_reason: str = ""
    killed_starts: int = 0
    measured: int
    lost: tuple[LostLaunches, ...] = ()
    set_aside: int = 0
    tests: int = 0
    failed_tests: int = 0
    failed_test_reason: str = ""
    failed_test_launches: int = 0
    jobs: FarmJobs | None = None
    is_stopped: bool = False
    """Whether its last launches were not started, as those before them all failed alike."""

    def launches_lost(self, kind: LossKind) -> int:
        """Return how many launches of a kind were lost."""
        return sum(one.launches for one in self.lost if one.kind is kind)

    @property
    def gave_nothing(self) -> bool:
        """Whether launches of it are over and none has a result."""
        over = sum(one.launches for one in self.lost if one.kind is not LossKind.NOT_MEASURED)
        return self.measured == 0 and over > 0

    @property
    def lost_starts(self) -> int:
        """Starts that gave nothing that counts: those that failed, and those of launches that are invalid, damaged or empty."""
        ended = (LossKind.INVALID, LossKind.DAMAGED, LossKind.EMPTY)
        return min(self.starts, self.failed_starts + sum(map(self.launches_lost, ended)))

    @property
    def lost_share(self) -> float:
        """What share of the starts that is."""
        return self.lost_starts / self.starts if self.starts else 0.0

    @property
    def has_lost_results(self) -> bool:
        """Whether anything that was tried has no result. A launch that a later start measured, or that is yet to come, is none."""
        is_lost = any(one.kind is not LossKind.NOT_MEASURED for one in self.lost)
        return is_lost or self.failed_tests > 0 or bool(self.jobs and self.jobs.lost)

    @property
    def is_worth_a_word(self) -> bool:
        """Whether something was lost, also where a later start, or another worker, made up for it."""
        jobs = self.jobs
        has_lost_starts = self.failed_starts + self.killed_starts > 0
        return self.has_lost_results or has_lost_starts or bool(jobs and (jobs.retried or jobs.left_out))


class RunAccount(Model):
    """The account of a run: each test on each fabric, by test and then in the order of the fabrics.

    `strays` are the folders of launches that nothing can be made of and that the plan does not have, each with why.
    """

    subjects: tuple[SubjectAccount, ...] = ()
    strays: dict[str, str] = {}

    @property
    def has_lost_results(self) -> bool:
        """Whether a result that was asked for is not there: what makes `run` and `resume` end with 4."""
        return any(one.has_lost_results for one in self.subjects)

    @property
    def left(self) -> int:
        """How many launches nobody measured yet."""
        return sum(one.launches_lost(LossKind.NOT_MEASURED) for one in self.subjects)

    @property
    def can_be_resumed(self) -> bool:
        """Whether `resume` starts any of the lost launches again."""
        return any(lost.kind not in STAYS for one in self.subjects for lost in one.lost)

    @property
    def has_lost_what_stays(self) -> bool:
        """Whether anything is lost that `resume` leaves as it is: invalid, without a result, a test or a job within a launch."""
        return any(
            one.failed_tests or (one.jobs and one.jobs.lost) or any(lost.kind in STAYS for lost in one.lost)
            for one in self.subjects
        )

    @property
    def launches_measured(self) -> int:
        """How many launches count and hold a result."""
        return sum(one.measured for one in self.subjects)

    def of(self, fabric: str) -> tuple[SubjectAccount, ...]:
        """Return the account of one fabric."""
        return tuple(one for one in self.subjects if one.fabric == fabric)
