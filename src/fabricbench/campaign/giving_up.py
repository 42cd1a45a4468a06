"""When a workload is not started again: it has measured nothing, and its starts fail alike. Pure.

A library that is missing, a wrong argument: no further block makes such a program start, and each of its launches would be tried
twice. It is stopped once its starts have failed alike ALIKE_EVERYWHERE times over all its fabrics, each of them tried, or
ALIKE_ON_A_FABRIC times on one. Alike is what ends in the same way with the same exit code and the same end of its log; where that
differs from start to start, as it holds a time or an address, twice as many starts say the same. A resumed run begins anew:
somebody may have mended it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from fabricbench.campaign.failure import AttemptEnd, Failure
from fabricbench.campaign.order import LaunchPlan

ALIKE_EVERYWHERE = 3
"""A block of two fabrics: the first start, and both once more."""
ALIKE_ON_A_FABRIC = 4
"""Two blocks of it. A program that crashes in every second launch fails so often in a row in one campaign of sixteen."""
DIFFERENT_LOGS = 2
"""So many times as many where their logs differ."""

Arm = tuple[str, str]
"""A fabric, and a workload's name."""
Way = tuple[AttemptEnd, int | None]


@dataclass
class _Tried:
    """The failed starts of a workload on a fabric."""

    ways: Counter[Way] = field(default_factory=Counter)
    logs: Counter[tuple[Way, str]] = field(default_factory=Counter)
    has_measured: bool = False


@dataclass(frozen=True)
class Stop:
    """A workload that is not started again on these fabrics, after so many starts."""

    workload: str
    fabrics: tuple[str, ...]
    starts: int

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The workload on each of its fabrics."""
        return tuple((fabric, self.workload) for fabric in self.fabrics)


class Trials:
    """What came of the starts of each workload on each fabric in this session."""

    def __init__(self, launches: Iterable[LaunchPlan]) -> None:
        arms = dict.fromkeys(launch.arm for launch in launches if launch.workload is not None)
        self._tried: dict[Arm, _Tried] = {arm: _Tried() for arm in arms}
        self._stopped: set[Arm] = set()

    def note_finished(self, launch: LaunchPlan) -> None:
        """Remember that a launch came to its end, in whichever session: the workload starts there."""
        if launch.arm in self._tried:
            self._tried[launch.arm].has_measured = True

    def note_failure(self, failure: Failure) -> None:
        """Remember how a start failed."""
        tried = self._tried.get(failure.launch.arm)
        if tried is not None:
            way = (failure.ended, failure.exit_code)
            tried.ways[way] += 1
            tried.logs[way, failure.log_digest] += 1

    def is_stopped(self, launch: LaunchPlan) -> bool:
        """Whether a launch is not to be started."""
        return launch.arm in self._stopped

    def review(self) -> list[Stop]:
        """Stop what never starts, and return it: to be asked when a block is over."""
        found = []
        for workload in dict.fromkeys(name for _, name in self._tried):
            arms = [arm for arm in self._tried if arm[1] == workload and arm not in self._stopped]
            silent = [arm for arm in arms if not self._tried[arm].has_measured]
            is_everywhere = len(silent) == len(arms) and all(self._tried[arm].ways for arm in arms)
            if silent and is_everywhere and self._fail_alike(silent, ALIKE_EVERYWHERE):
                stopped = silent
            else:
                stopped = [arm for arm in silent if self._fail_alike([arm], ALIKE_ON_A_FABRIC)]
            if stopped:
                starts = sum(self._tried[arm].ways.total() for arm in stopped)
                found.append(Stop(workload, tuple(fabric for fabric, _ in stopped), starts))
                self._stopped.update(stopped)
        return found

    def _fail_alike(self, arms: Iterable[Arm], needed: int) -> bool:
        """Whether all starts failed in one way, with one log often enough, or with several twice as often."""
        ways: Counter[Way] = Counter()
        logs: Counter[tuple[Way, str]] = Counter()
        for arm in arms:
            ways.update(self._tried[arm].ways)
            logs.update(self._tried[arm].logs)
        if len(ways) != 1:
            return False
        return ways.total() >= (needed if len(logs) == 1 else DIFFERENT_LOGS * needed)
