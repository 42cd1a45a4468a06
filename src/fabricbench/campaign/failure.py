"""Failed launches: what is said of them, and when a run has seen enough of one failure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from shlex import quote
from tempfile import TemporaryFile

from fabricbench.campaign.order import LaunchPlan
from fabricbench.errors import EnvironmentLacks, RunIncomplete
from fabricbench.launch.launcher import Command
from fabricbench.launch.watch import MOST_LOG_BYTES, STDERR_FILE, Outcome
from fabricbench.quantity import format_bytes, format_duration
from fabricbench.record.atomic import FULL
from fabricbench.record.launch import LaunchSummary
from fabricbench.testbed.model import Lost

NO_SPACE = tuple(map(os.strerror, sorted(FULL)))
"""What writers say on a full disk, or beyond a quota."""

LEAST_FREE_BYTES = 128 * 1024
"""With less than this no launch can be stored. On a full disk a log stays empty and writers fail in words of their own."""


MOST_NAMED = 8
"""Of nodes that fail at once: a whole switch's would fill the screen."""


class TestbedLost(EnvironmentLacks):
    """A part of the testbed that every launch needs has ended under the run."""


class NodesFailed(EnvironmentLacks):
    """Nodes that every launch needs do not answer; `reasons` tells of each what was heard instead."""

    def __init__(self, reasons: Mapping[str, str], message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.reasons = reasons


class Ended(Enum):
    """How an attempt that failed came to its end."""

    HUNG = auto()
    WITH_AN_ERROR = auto()
    WITHOUT_RECORD = auto()
    WITH_HALF_A_RECORD = auto()


@dataclass(frozen=True)
class Failure:
    """One attempt of a launch that did not come to its end. `has_started` tells whether the measurer wrote anything."""

    launch: LaunchPlan
    command: Command
    ended: Ended
    reason: str
    has_started: bool
    stderr_tail: str

    @property
    def what(self) -> str:
        """What was started."""
        workload = self.launch.workload
        return "the measurer" if workload is None else workload.title

    @property
    def _trial(self) -> tuple[object, ...]:
        """What was tried: a launch, or a workload in a block; whether that can be started is one question on all fabrics."""
        workload = self.launch.workload
        return (self.launch.launch_id,) if workload is None else (self.launch.block, workload.name)

    def is_like(self, other: Failure) -> bool:
        """Tell whether two attempts, not of the same launch or workload of a block, failed to start in the same way.

        The exit code does not count, nor do the words of the ranks: both depend on which of them MPI's starter reached first.
        """
        is_another = self._trial != other._trial
        return is_another and not self.has_started and not other.has_started and self.ended is other.ended


def failure_of(
    launch: LaunchPlan,
    command: Command,
    outcome: Outcome,
    summary: LaunchSummary | None,
    *,
    is_well: bool,
    not_collected: str | None = None,
) -> Failure | None:
    """Return why an attempt failed; None if what it left is finished.

    `summary` is None without any record, `is_well` tells whether the exit code means that all went well, `not_collected` why what
    it wrote could not be brought back from rank 0's node.
    """
    if summary is not None and summary.is_finished:
        return None
    has_started = summary is not None and summary.header is not None
    if outcome.is_hung:
        ended, reason = Ended.HUNG, f"hung: ended at its time limit after {format_duration(outcome.seconds)}"
    elif outcome.flooded is not None:
        most = format_bytes(MOST_LOG_BYTES)
        ended, reason = Ended.WITH_AN_ERROR, f"ended because it had printed more than {most} to {outcome.flooded}"
    elif not is_well:
        ended, reason = Ended.WITH_AN_ERROR, f"ended with exit code {outcome.exit_code}"
    elif summary is None:
        ended, reason = Ended.WITHOUT_RECORD, f"ended well but {not_collected or 'wrote no record'}"
    else:
        first = summary.damage[0] if summary.damage else None
        of_cell = f"cell {first.cell}: " if first is not None and first.cell is not None else ""
        damage = first.reason if first is not None else "it has no header or no footer"
        ended, reason = Ended.WITH_HALF_A_RECORD, f"its record is not whole: {of_cell}{damage}"
    return Failure(launch, command, ended, reason, has_started, outcome.stderr_tail)


def is_hopeless(failures: Sequence[Failure]) -> bool:
    """Tell whether to stop: the last failure is like the one before it, or like the one before it on its fabric.

    Only failures to start count, of those since a launch last came to its end on any fabric (the whole machine's trouble) or on
    that fabric (its own); a launch that has measured something is worth trying again.
    """
    if len(failures) < 2:
        return False
    last = failures[-1]
    same_fabric = [each for each in failures[:-1] if each.launch.fabric == last.launch.fabric]
    return any(last.is_like(each) for each in [failures[-2], *same_fabric[-1:]])


def does_not_start(failure: Failure, directory: Path) -> EnvironmentLacks:
    """Return the error of a run that stops early because the measurer does not start."""
    return EnvironmentLacks(
        f"{failure.what} does not start: {failure.launch.launch_id} {failure.reason}, as the one before\n"
        f"  command: {failure.command}\n{_quoted(failure)}",
        hint=f"mend what the log says, then `fabricbench resume {quote(str(directory))}`; the log is {_log(failure)}",
    )


def run_incomplete(failures: Sequence[Failure], launches: int, directory: Path) -> RunIncomplete:
    """Return the error of a run that came to its end with launches that failed."""
    named = "; ".join(f"{failure.launch.launch_id} {failure.reason}" for failure in failures)
    return RunIncomplete(
        f"{len(failures)} of {launches} launches failed: {named}\n{_quoted(failures[-1])}",
        hint=f"`fabricbench resume {quote(str(directory))}` runs them again; everything else is kept",
    )


def testbed_lost(launch: LaunchPlan, lost: Lost, directory: Path) -> TestbedLost:
    """Return the error of a run whose testbed has ended under it: no launch after this one could do better."""
    resume = f"`fabricbench resume {quote(str(directory))}`"
    then = f"{lost.action}, then {resume}" if lost.action else f"{resume}: a run's own lab is built anew"
    return TestbedLost(
        f"{lost.what}; {launch.launch_id} was under way, and what was measured before it is kept",
        hint=f"find out who ended it, then {then}",
    )


def nodes_failed(failure: Failure, reasons: Mapping[str, str], directory: Path) -> NodesFailed:
    """Return the error of a run some of whose nodes do not answer any more."""
    resume = f"fabricbench resume {quote(str(directory))}"
    return NodesFailed(
        reasons,
        f"{silent_in_words(reasons)}; {failure.launch.launch_id} {failure.reason}",
        hint=f"bring {enumerated(list(reasons))} back, then `{resume}`; or go on with the rest of the nodes: "
        f"`{resume} --without-failed-nodes`; what was measured is kept",
    )


def silent_in_words(reasons: Mapping[str, str]) -> str:
    """Return which nodes do not answer, and what was heard instead: of many the first few."""
    told = [f"{node} ({reason})" for node, reason in list(reasons.items())[:MOST_NAMED]]
    more = len(reasons) - len(told)
    verb = "does not answer" if len(reasons) == 1 else "do not answer"
    return f"{', '.join(told)}{f' and {more} more' if more else ''} {verb}"


def enumerated(nodes: Sequence[str]) -> str:
    """Return names in a sentence: of many the first few."""
    return ", ".join(nodes[:MOST_NAMED]) + (f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else "")


def is_full(directory: Path) -> bool:
    """Tell whether a launch could not be stored in the directory, for lack of space or of what a quota allows this user."""
    try:
        with TemporaryFile(dir=directory) as file:  # asking the file system alone would not see quotas
            os.posix_fallocate(file.fileno(), 0, LEAST_FREE_BYTES)
    except OSError as error:
        return error.errno in FULL
    return False


def no_space(directory: Path) -> EnvironmentLacks:
    """Return the error of a full disk that the measurer met."""
    return EnvironmentLacks(
        f"no space left on the disk that holds {directory}",
        hint=f"free some space, then `fabricbench resume {quote(str(directory))}`; what was measured so far is kept",
    )


def _quoted(failure: Failure) -> str:
    lines = failure.stderr_tail.splitlines() or ["(it wrote nothing to stderr)"]
    return f"  the end of {_log(failure)}:\n" + "\n".join(f"    {line}" for line in lines)


def _log(failure: Failure) -> Path:
    return failure.command.directory / STDERR_FILE
