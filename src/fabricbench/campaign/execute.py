"""Runs the launches of a plan that are not finished yet, one after the other, and keeps everything that they wrote.

Starting and ending programs is `launch`; what a launch must leave is `record.store`; this is the order of things around them:
journal, start, watch, store with the proof of its path, journal. What failed is tried once more after all others.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from shlex import quote

from fabricbench.campaign.attempt import Attempt, Keeper
from fabricbench.campaign.estimate import limit_seconds, seconds_left
from fabricbench.campaign.events import Event, LaunchFailed, LaunchFinished, LaunchStarted, Notice, RunStarted, Tick
from fabricbench.campaign.failure import (
    NO_SPACE,
    Failure,
    does_not_start,
    failure_of,
    is_full,
    is_hopeless,
    no_space,
    run_incomplete,
)
from fabricbench.campaign.journal import Happened, Journal
from fabricbench.campaign.plan import LaunchPlan, RunPlan
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.errors import Interrupted
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.watch import Outcome, run_watched
from fabricbench.record.atomic import explained

TRIES = 2
"""How often one session tries a launch: what fails twice is no accident."""

Waiting = deque[tuple[LaunchPlan, int]]
"""Launches that are still to be run, each with the number of the try that it is."""


class Execution:
    """One session over a run directory. `limit` gives the seconds after which a launch of that estimate is taken as hung."""

    def __init__(
        self,
        directory: RunDirectory,
        plan: RunPlan,
        launcher: Launcher,
        notify: Callable[[Event], None],
        *,
        limit: Callable[[float], float] = limit_seconds,
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._notify = notify
        self._limit = limit
        self._journal = Journal(directory.path)
        self._keeper = Keeper(directory, plan, launcher)
        self._observed: list[tuple[str, float, float]] = []
        self._failures: list[Failure] = []
        self._noticed: set[str] = set()

    def run(self) -> None:
        """Run what is left. Raises RunIncomplete, EnvironmentLacks or Interrupted; what was measured is kept in each case."""
        waiting: Waiting = deque((launch, 1) for launch in self._plan.launches if not self._adopt(launch))
        total = len(self._plan.launches)
        self._notify(RunStarted(total, total - len(waiting), self._plan.blocks, self._seconds_left(waiting)))
        given_up: list[Failure] = []
        while waiting:
            launch, number_of_try = waiting.popleft()
            failure = self._try(launch, waiting)
            if failure is None:
                continue
            is_retried = number_of_try < TRIES
            self._notify(LaunchFailed(launch, failure.reason, is_retried))
            if is_retried:
                waiting.append((launch, number_of_try + 1))
            else:
                given_up.append(failure)
            self._stop_if_hopeless(failure)
        if given_up:
            raise run_incomplete(given_up, total, self._directory.path)
        self._journal.append(Happened.COMPLETED)

    def _adopt(self, launch: LaunchPlan) -> bool:
        """Tell whether a launch is finished; what a crash kept out of the journal is written there now."""
        if not self._keeper.is_finished(launch):
            return False
        ends = (Happened.FINISHED, Happened.ADOPTED)
        if not any(entry.event in ends and entry.launch_id == launch.launch_id for entry in self._journal.entries()):
            self._journal.append(Happened.ADOPTED, launch.launch_id)
        return True

    def _try(self, launch: LaunchPlan, waiting: Waiting) -> Failure | None:
        attempt = self._keeper.prepare(launch)
        number = self._journal.attempts(launch.launch_id) + 1
        self._journal.append(Happened.STARTED, launch.launch_id, attempt=number, command=list(attempt.command.tokens))
        begin = time.monotonic()

        def left() -> float:
            current = self._seconds_left([(launch, 1)]) - (time.monotonic() - begin)
            return max(0.0, current) + self._seconds_left(waiting)

        self._notify(LaunchStarted(launch, number, left()))
        try:
            limit_s = self._limit(launch.estimated_seconds)
            outcome = run_watched(attempt.command, limit_seconds=limit_s, on_tick=lambda: self._notify(Tick(left())))
            return self._conclude(attempt, outcome)
        except KeyboardInterrupt:
            self._keeper.store(attempt, exit_code=None)
            self._journal.append(Happened.INTERRUPTED, launch.launch_id)
            raise Interrupted(
                f"interrupted during {launch.launch_id}; everything measured so far is in {self._directory.path}",
                hint=f"go on with `fabricbench resume {quote(str(self._directory.path))}`",
            ) from None
        except Exception as error:
            if is_full(self._directory.path):
                raise no_space(self._directory.path) from error
            if isinstance(error, OSError):
                raise explained(error, attempt.directory) from error
            raise

    def _conclude(self, attempt: Attempt, outcome: Outcome) -> Failure | None:
        """Store what an attempt wrote, whole or not, and say how it went."""
        launch = attempt.launch
        stored = self._keeper.store(attempt, exit_code=outcome.exit_code)
        failure = failure_of(
            launch,
            attempt.command,
            outcome,
            stored.summary if stored is not None else None,
            is_well=attempt.start.is_well(outcome.exit_code),
        )
        if failure is not None:
            self._journal.append(Happened.FAILED, launch.launch_id, reason=failure.reason)
            if NO_SPACE in outcome.stderr_tail or is_full(self._directory.path):
                raise no_space(self._directory.path)
            return failure
        assert stored is not None  # noqa: S101 - without a record there is a failure
        self._journal.append(Happened.FINISHED, launch.launch_id, seconds=round(outcome.seconds, 3))
        self._observed.append((launch.fabric, launch.estimated_seconds, outcome.seconds))
        self._failures = [each for each in self._failures if each.launch.fabric != launch.fabric]
        for reason in stored.failed_cells:
            self._notice(reason)
        summary = stored.summary
        self._notify(LaunchFinished(launch, outcome.seconds, summary.cells, summary.failed, stored.violations))
        return None

    def _notice(self, text: str) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            self._notify(Notice(text))

    def _stop_if_hopeless(self, failure: Failure) -> None:
        self._failures.append(failure)
        if is_hopeless(self._failures):
            raise does_not_start(failure, self._directory.path)

    def _seconds_left(self, launches: Iterable[tuple[LaunchPlan, int]]) -> float:
        return seconds_left([(each.fabric, each.estimated_seconds) for each, _ in launches], self._observed)
