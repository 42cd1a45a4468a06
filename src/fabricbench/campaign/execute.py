"""Runs the launches of a plan that are not finished yet, one after the other, and keeps everything that they wrote.

Starting and ending programs is `launch`; what a launch must leave is `record.store`; this is the order of things around them:
journal, start, watch, store with the proof of its path, journal. Launches that are compared are kept close in time: where one of a
group (`order`) fails, all of the group are run again once their block has ended; where a resumed run finds a group that is half
done, it goes on with it only if it is not too old.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from shlex import quote

from fabricbench.campaign.attempt import Attempt, Attempts
from fabricbench.campaign.budget import TOLERANCE, BudgetSpentError
from fabricbench.campaign.estimate import ABORT_SECONDS, SLOW_FACTOR, limit_seconds, seconds_left
from fabricbench.campaign.events import (
    GroupAgain,
    LaunchFailed,
    LaunchFinished,
    LaunchStarted,
    Notice,
    Notify,
    RunStarted,
    Tick,
)
from fabricbench.campaign.failure import (
    NO_SPACE,
    AttemptEnd,
    Failure,
    TestbedLost,
    does_not_start,
    failure_of,
    is_full,
    is_hopeless,
    no_space,
    nodes_failed,
    not_settable,
    run_incomplete,
    testbed_lost,
)
from fabricbench.campaign.giving_up import Stop, Trials
from fabricbench.campaign.order import Group, LaunchPlan, groups_of, is_close
from fabricbench.campaign.path_proof import Carriers
from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.specification import FEWEST_BLOCKS
from fabricbench.errors import Interrupted
from fabricbench.launch.launcher import Command, Launcher
from fabricbench.launch.slurm import is_own_job_ending
from fabricbench.launch.staging import NotStaged
from fabricbench.launch.watch import TICK_SECONDS, Growth, ProgramEnd, run_watched
from fabricbench.quantity import count, format_duration
from fabricbench.record.atomic import explained, replace_text
from fabricbench.record.integrity import LAUNCH
from fabricbench.record.journal import Journal, JournalEvent, under_way
from fabricbench.record.launch import is_stored
from fabricbench.record.launch_files import STDERR_FILE
from fabricbench.record.outcome import LaunchOutcome
from fabricbench.settings.session import SettingsNotHeldError, SettingsSession

STOPPED_SECONDS = 30.0
"""How long a part of the testbed that is stopped is waited for: longer than somebody looks at it with a debugger."""
JOB_END_SECONDS = 10.0
"""How much later than its launch this process may learn that its job is being ended."""


class Execution:
    """One session over a run directory.

    `limit` gives the seconds after which a launch that is expected to take so many is taken as hung, unless its record grows.
    """

    def __init__(
        self,
        directory: RunDirectory,
        plan: RunPlan,
        launcher: Launcher,
        notify: Notify,
        *,
        limit: Callable[[float], float] = limit_seconds,
        now: Callable[[], float] = time.time,
        settings: SettingsSession | None = None,
        carriers: Carriers | None = None,
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._notify = notify
        self._limit = limit
        self._journal = Journal(directory.path)
        self._attempts = Attempts(directory, plan, launcher, settings, carriers)
        self._now = now
        self._observed: list[tuple[tuple[str, str], float, float]] = []
        """Arm, estimate and seconds of each launch that came to its end, in earlier sessions as well."""
        self._failures: list[Failure] = []
        self._given_up: list[Failure] = []
        self._trials = Trials(plan.launches)
        self._not_started = 0
        """Launches of workloads that never start."""
        self._noticed: set[tuple[object, ...]] = set()
        self._waiting: dict[str, LaunchPlan] = {}
        self._finished: dict[str, float] = {}
        """The launches that are finished, each with the Unix time at which it began."""

    def run(self) -> None:
        """Run what is left. Raises RunIncomplete, EnvironmentLacks or Interrupted; what was measured is kept in each case.

        BudgetSpentError where the plan has a budget, and the blocks that are left do not fit into it.
        """
        self._tell_of_losses()
        blocks = self._last_ordered()
        if (
            self._plan.losses or self._plan.extensions
        ):  # workloads on as many nodes as there were, blocks that were given up
            self._attempts.set_aside_unplanned({launch.launch_id for launch in self._plan.launches})
        self._adopt_finished(launch for block in blocks for group in block for launch in group.launches)
        for launch_id in under_way(self._journal.entries()):
            self._notify(
                Notice(f"{launch_id} was under way when the run was killed, or had no more disk; it is measured again")
            )
        total = len(self._plan.launches)
        for group in (group for block in blocks for group in block):
            waits = self._missing(group) if self._goes_on(group) else group.launches
            self._waiting.update({launch.launch_id: launch for launch in waits})
        left = self._seconds_left_waiting(self._waiting.values())
        self._notify(RunStarted(total, len(self._finished), self._plan.blocks, left))
        begun = time.monotonic() - sum(seconds for _, _, seconds in self._observed)
        for number, block in enumerate(blocks):
            try:
                self._check_budget(number, block, time.monotonic() - begun)
            except BudgetSpentError:
                self._set_aside_blocks(blocks[number:])
                raise
            self._run_block([one for group in block if (one := self._startable(group)) is not None])
            for stop in self._trials.review():
                self._notify(Notice(self._stopped(stop)))
        if self._given_up:
            raise run_incomplete(self._given_up, self._not_started, total, self._directory.path)
        self._journal.append(JournalEvent.COMPLETED)

    def _check_budget(self, number: int, block: Sequence[Group], spent: float) -> None:
        """Raise BudgetSpentError where a block no longer fits; those without which nothing is compared are run all the same."""
        waits = [
            self._waiting[one.launch_id] for group in block for one in group.launches if one.launch_id in self._waiting
        ]
        budget = self._plan.budget_seconds
        if budget is None or not waits or number < FEWEST_BLOCKS or self._plan.losses:
            return
        if spent + self._seconds_left_waiting(waits) > TOLERANCE * budget:
            raise BudgetSpentError(number, spent)

    def _set_aside_blocks(self, blocks: Iterable[Sequence[Group]]) -> None:
        """Keep aside what blocks have measured that are given up: the plan without them does not know their launches."""
        for launch in (launch for block in blocks for group in block for launch in group.launches):
            self._attempts.set_aside(launch)

    def _run_block(self, groups: Sequence[Group]) -> None:
        """Run what is left of each group; those in which a launch failed are run again, all of them, once the others are over."""
        again: list[tuple[Group, str]] = []
        for group in groups:
            if self._goes_on(group):
                left = self._missing(group)
            else:
                age = max(abs(self._now() - begun) for begun in self._begun(group))
                left = self._begin_again(group, f"a part of it was measured {format_duration(age)} ago").launches
            failed = self._run_group(left, is_last_try=False)
            if failed is not None:
                again.append((group, f"{failed.launch_id} failed"))
        for group, reason in again:
            self._run_group(self._begin_again(group, reason).launches, is_last_try=True)

    def _startable(self, group: Group) -> Group | None:
        """Return a group without the launches of workloads that never start, which the journal tells of; None without any other."""
        left = []
        for launch in group.launches:
            if self._trials.is_stopped(launch) and launch.launch_id not in self._finished:
                self._waiting.pop(launch.launch_id, None)
                self._journal.append(JournalEvent.STOPPED, launch.launch_id)
                self._not_started += 1
            else:
                left.append(launch)
        return Group(group.block, group.subject, tuple(left)) if left else None

    def _stopped(self, stop: Stop) -> str:
        """Return what is told of a workload that is not started again."""
        last = next(each for each in reversed(self._given_up) if each.launch.arm in stop.arms)
        return (
            f"{stop.workload} is not started again on {' and '.join(stop.fabrics)}: {count(stop.starts, 'start')} failed alike "
            f"({last.reason}) and none measured anything; mend what {last.log} says, then "
            f"`fabricbench resume {quote(str(self._directory.path))}`"
        )

    def _begun(self, group: Group) -> list[float]:
        return [self._finished[one.launch_id] for one in group.launches if one.launch_id in self._finished]

    def _missing(self, group: Group) -> tuple[LaunchPlan, ...]:
        return tuple(launch for launch in group.launches if launch.launch_id not in self._finished)

    def _goes_on(self, group: Group) -> bool:
        """Tell whether a group needs only what is missing: it has all, or what it has is close in time to what begins now."""
        return not self._missing(group) or is_close(group, self._begun(group), self._now())

    def _run_group(self, launches: Iterable[LaunchPlan], *, is_last_try: bool) -> LaunchPlan | None:
        """Run launches in their order and return the first that failed, unless it is the last try, in which the others go on."""
        for launch in launches:
            self._pause(launch.pause_seconds)
            failure = self._try(launch)
            if failure is None:
                self._trials.note_finished(launch)
                continue
            self._trials.note_failure(failure)
            # Where a signal has ended the launch, a job's end say, no node has failed: the run ends here.
            self._notify(Tick(self._seconds_left_waiting(self._waiting.values())))
            failed_nodes = self._attempts.failed_nodes()
            self._notify(LaunchFailed(launch, failure.reason, is_retried=not is_last_try and not failed_nodes))
            if failed_nodes:
                raise nodes_failed(failure, failed_nodes, self._directory.path)
            if is_last_try:
                self._given_up.append(failure)
            self._stop_if_hopeless(failure)
            if not is_last_try:
                return launch
        return None

    def _pause(self, seconds: float) -> None:
        """Wait, and hear meanwhile what asks this process to end."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0.0:
            self._notify(Tick(left + self._seconds_left(self._waiting.values())))
            time.sleep(min(TICK_SECONDS, left))

    def _begin_again(self, group: Group, reason: str) -> Group:
        """Keep aside what a group has measured, and return it, in its order: no other is balanced with those of other blocks."""
        order = [launch.launch_id for launch in group.launches]
        aside = [launch_id for launch_id in order if self._finished.pop(launch_id, None) is not None]
        self._journal.append(JournalEvent.AGAIN, group=group.name, order=order, set_aside=aside, reason=reason)
        # All at once: from here on no arm of the group stands beside one that is measured later, whatever ends this session.
        for launch in group.launches:
            self._attempts.set_aside(launch)
        self._waiting.update({launch.launch_id: launch for launch in group.launches})
        self._notify(GroupAgain(group, len(aside), reason))
        return group

    def _last_ordered(self) -> list[list[Group]]:
        """Return the groups of each block, one that was run again in the order in which it was begun again last.

        A crash may have come before all of such a group was set aside; the rest is now, for it has places of the order before. So
        is all that was measured on other nodes than its block is now, since some have failed.
        """
        orders: dict[str, list[str]] = {}
        moved: set[str] = set()
        started: set[str] = set()
        for entry in self._journal.entries():
            if entry.event is JournalEvent.AGAIN:
                order = entry.facts.get("order")
                order = [str(each) for each in order] if isinstance(order, list) else []
                orders[str(entry.facts.get("group"))] = order
                started.difference_update(order)
            elif entry.event is JournalEvent.LOST:
                kept = entry.facts.get("kept", [])
                again = [launch for launch in self._plan.launches if launch.block not in kept]
                moved = {launch.launch_id for launch in again}
                started -= moved
                orders = {name: order for name, order in orders.items() if moved.isdisjoint(order)}
            elif entry.event is JournalEvent.STARTED and entry.launch_id is not None:
                started.add(entry.launch_id)
        blocks = groups_of(self._plan.launches)
        for launch in self._plan.launches:
            if launch.launch_id in moved and launch.launch_id not in started:
                self._attempts.set_aside(launch)
        for group in (group for block in blocks for group in block):
            for launch in group.launches:
                if launch.launch_id in orders.get(group.name, []) and launch.launch_id not in started:
                    self._attempts.set_aside(launch)
        return [[group.in_order(orders.get(group.name, [])) for group in block] for block in blocks]

    def _tell_of_losses(self) -> None:
        """Write into the journal what the plan tells of nodes that failed: before anything is started on the rest."""
        told = sum(entry.event is JournalEvent.LOST for entry in self._journal.entries())
        for loss in self._plan.losses[told:]:
            self._journal.append(JournalEvent.LOST, **loss.model_dump(mode="json", exclude={"unix_ns"}))

    def _adopt_finished(self, launches: Iterable[LaunchPlan]) -> None:
        """Find what is finished and when it began; what a crash kept out of the journal is written there now."""
        begun: dict[str, float] = {}
        told: set[str] = set()
        seconds: dict[str, float] = {}
        for entry in self._journal.entries():
            if entry.launch_id is not None and entry.event is JournalEvent.STARTED:
                begun[entry.launch_id] = entry.unix_ns / 1e9
                told.discard(entry.launch_id)
            elif entry.launch_id is not None and entry.event in (JournalEvent.FINISHED, JournalEvent.ADOPTED):
                told.add(entry.launch_id)
                if isinstance(taken := entry.facts.get("seconds"), float):
                    seconds[entry.launch_id] = taken
        for launch in launches:
            try:
                summary = self._attempts.finished(launch)
            except Exception as error:  # it stores what was measured and not stored before a crash
                raise self._explained(error, self._directory.launch(launch.launch_id)) from error
            if summary is None:
                continue
            # By this machine's clock where the journal knows it: that of the first node may be another.
            recorded = summary.header.started_unix_ns / 1e9 if summary.header is not None else 0.0
            self._finished[launch.launch_id] = begun.get(launch.launch_id, recorded)
            self._trials.note_finished(launch)
            if launch.launch_id in seconds:
                self._observed.append((launch.arm, launch.estimated_seconds, seconds[launch.launch_id]))
            if launch.launch_id not in told:
                hashes = self._stored_hashes(launch)
                self._journal.append(JournalEvent.ADOPTED, launch.launch_id, sha256=hashes, outcome=summary.outcome)

    def _try(self, launch: LaunchPlan) -> Failure | None:
        self._await_testbed(launch)
        self._waiting.pop(launch.launch_id, None)
        try:
            attempt = self._attempts.prepare(launch)
        except NotStaged as error:
            return self._not_staged(launch, error)
        number = self._journal.attempts(launch.launch_id) + 1
        self._journal.append(
            JournalEvent.STARTED, launch.launch_id, attempt=number, command=list(attempt.command.tokens)
        )
        begin, begun = time.monotonic(), self._now()

        def left() -> float:
            current = self._seconds_left([launch]) - (time.monotonic() - begin)
            return max(0.0, current) + self._seconds_left_waiting(self._waiting.values())

        try:
            self._notify(LaunchStarted(launch, number, left()))  # raises what was interrupted before
            self._attempts.bring_settings(launch)
            # As long as the launches before it took: on a busy machine that is far more than estimated.
            limit_s = self._limit(launch.slowness * max(launch.estimated_seconds, self._seconds_left([launch])))
            outcome = run_watched(
                attempt.command,
                limit_seconds=limit_s,
                growth=self._growth(attempt, limit_s),
                on_tick=lambda: self._tick(launch, left()),
            )
            if not attempt.start.is_success(outcome.exit_code):
                self._stop_if_job_ends(left())
            failure = self._conclude(attempt, outcome)
        except SettingsNotHeldError as error:
            self._attempts.collect_unstarted(launch)
            self._stop_if_lost(launch)
            failure = not_settable(launch, attempt.command, str(error))
            self._journal.append(JournalEvent.FAILED, launch.launch_id, **failure.facts)
        except TestbedLost as error:
            self._attempts.collect(attempt)
            self._attempts.store(attempt, None, is_spoilt=True)
            self._journal.append(
                JournalEvent.FAILED, launch.launch_id, sha256=self._stored_hashes(launch), reason=error.message
            )
            raise
        except KeyboardInterrupt:
            self._attempts.collect(attempt)
            self._attempts.store(attempt, None)
            self._journal.append(JournalEvent.INTERRUPTED, launch.launch_id, sha256=self._stored_hashes(launch))
            raise Interrupted(
                f"interrupted during {launch.launch_id}; everything measured so far is in {self._directory.path}",
                hint=f"go on with `fabricbench resume {quote(str(self._directory.path))}`",
            ) from None
        except Exception as error:
            raise self._explained(error, attempt.directory) from error
        if failure is None:
            self._finished[launch.launch_id] = begun
        return failure

    def _growth(self, attempt: Attempt, limit_s: float) -> Growth:
        """Return what shows that a launch beyond its limit is slow and not hung; the measurer itself gives up a rank sooner."""
        silent_s = limit_s
        if attempt.launch.workload is None and attempt.patience_seconds is not None:
            silent_s = min(attempt.patience_seconds + ABORT_SECONDS, limit_s)
        return Growth(
            attempt.start.outputs(attempt.directory),
            silent_s,
            SLOW_FACTOR * limit_s,
            lambda: self._attempts.silent_seconds(attempt),
        )

    def _not_staged(self, launch: LaunchPlan, error: NotStaged) -> Failure:
        """Return the failure of a launch that could not be started because rank 0's node was not given its files."""
        self._attempts.collect_unstarted(launch)
        directory = self._directory.launch(launch.launch_id)
        replace_text(directory / STDERR_FILE, f"{error.message}\n")
        failure = Failure(launch, Command((), directory), AttemptEnd.NOT_STARTED, error.message, False, error.message)
        self._journal.append(JournalEvent.FAILED, launch.launch_id, **failure.facts)
        return failure

    def _tick(self, launch: LaunchPlan, seconds_left: float) -> None:
        """Tell how long it still takes; a launch whose testbed is gone would only hang up to its limit."""
        self._notify(Tick(seconds_left))
        self._stop_if_lost(launch)

    def _await_testbed(self, launch: LaunchPlan) -> None:
        """Start nothing on a testbed of which a part has ended, or is stopped: for that to go on it is waited for a while.

        Asked again and again: the kernel tells nobody but a parent that a process goes on.
        """
        until = time.monotonic() + STOPPED_SECONDS
        lost = self._attempts.lost()
        if lost is None and (stopped := self._attempts.stopped()) is not None:
            self._notify(
                Notice(f"{stopped.what}; {launch.launch_id} waits for it, {format_duration(STOPPED_SECONDS)} at most")
            )
            while lost is None and stopped is not None and time.monotonic() < until:
                time.sleep(TICK_SECONDS)
                lost, stopped = self._attempts.lost(), self._attempts.stopped()
            lost = lost or stopped
        if lost is not None:
            raise testbed_lost(launch, lost, self._directory.path, is_started=False)

    def _stop_if_lost(self, launch: LaunchPlan) -> None:
        lost = self._attempts.lost(launch)
        if lost is not None:
            raise testbed_lost(launch, lost, self._directory.path, is_started=True)

    def _stop_if_job_ends(self, seconds_left: float) -> None:
        """Raise KeyboardInterrupt where the end of this process's job, or of itself, took a launch with it: that did not fail."""
        self._notify(Tick(seconds_left))  # raises it where a signal has come
        if not is_own_job_ending():
            return
        until = time.monotonic() + JOB_END_SECONDS
        while time.monotonic() < until:
            time.sleep(TICK_SECONDS)
            self._notify(Tick(seconds_left))
        raise KeyboardInterrupt

    def _explained(self, error: Exception, path: Path) -> Exception:
        """Return what to raise for an error: on a full disk writers fail in words of their own, without the system's number."""
        if is_full(self._directory.path):
            return no_space(self._directory.path)
        return explained(error, path) if isinstance(error, OSError) else error

    def _conclude(self, attempt: Attempt, outcome: ProgramEnd) -> Failure | None:
        """Store what an attempt wrote, whole or not, and say how it went."""
        launch = attempt.launch
        for left in outcome.left_behind:
            self._notify(Notice(f"{left} of {launch.launch_id} could not be ended and goes on beside all that follows"))
        problem = self._attempts.collect(attempt)
        stored = self._attempts.store(attempt, outcome)
        failure = failure_of(
            launch,
            attempt.command,
            outcome,
            stored.summary if stored is not None else None,
            is_success=attempt.start.is_success(outcome.exit_code),
            not_collected=problem,
        )
        if failure is not None:
            self._stop_if_lost(launch)
            hashes = self._stored_hashes(launch)
            self._journal.append(JournalEvent.FAILED, launch.launch_id, sha256=hashes, **failure.facts)
            if any(words in outcome.stderr_tail for words in NO_SPACE) or is_full(self._directory.path):
                raise no_space(self._directory.path)
            return failure
        assert stored is not None  # noqa: S101 - without a record there is a failure
        ended = stored.summary.outcome
        seconds, hashes = round(outcome.seconds, 3), self._stored_hashes(launch)
        self._journal.append(JournalEvent.FINISHED, launch.launch_id, sha256=hashes, seconds=seconds, outcome=ended)
        if ended is LaunchOutcome.DIED_AFTER_RECORD:
            self._notify(Notice(f"{launch.launch_id} counts: {stored.summary.end_in_words}"))
        self._observed.append((launch.arm, launch.estimated_seconds, outcome.seconds))
        self._failures = [each for each in self._failures if each.launch.fabric != launch.fabric]
        if stored.summary.facts.has_dead_switch(self._plan.fabric(launch.fabric).network):
            self._notify(Notice(f"the emulated switch of {launch.fabric} was dead at the end of {launch.launch_id}"))
        for cell in stored.failed_cells:
            if cell.cause not in self._noticed:  # what fails alike in other sizes and launches is told once
                self._noticed.add(cell.cause)
                self._notify(Notice(cell.words))
        summary = stored.summary
        self._notify(LaunchFinished(launch, outcome.seconds, summary.cells, summary.failed, stored.violations))
        return None

    def _stored_hashes(self, launch: LaunchPlan) -> dict[str, str] | None:
        """Return what seals a launch, however it ended; None where nothing of it was stored."""
        directory = self._directory.launch(launch.launch_id)
        return self._journal.hashes(directory / LAUNCH) if is_stored(directory) else None

    def _stop_if_hopeless(self, failure: Failure) -> None:
        if failure.launch.workload is not None:
            return
        self._failures.append(failure)
        if is_hopeless(self._failures):
            raise does_not_start(failure, self._directory.path)

    def _seconds_left_waiting(self, launches: Collection[LaunchPlan]) -> float:
        """Return how long launches take that are still to be started, with the pause before each."""
        return self._seconds_left(launches) + sum(launch.pause_seconds for launch in launches)

    def _seconds_left(self, launches: Iterable[LaunchPlan]) -> float:
        return seconds_left([(each.arm, each.estimated_seconds) for each in launches], self._observed)
