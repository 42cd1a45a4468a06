"""Failed launches: what is said of them, and when a run has seen enough of one failure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from shlex import quote
from tempfile import TemporaryFile
from typing import Any

from fabricbench.campaign.order import LaunchPlan
from fabricbench.errors import EnvironmentLacks, RunIncomplete
from fabricbench.launch.launcher import Command
from fabricbench.launch.watch import MOST_LOG_BYTES, ProgramEnd
from fabricbench.quantity import count, format_bytes, format_duration
from fabricbench.record.atomic import FULL, NoSpace
from fabricbench.record.launch import LaunchSummary
from fabricbench.record.launch_files import STDERR_FILE, STDOUT_FILE
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


class LaunchesFailed(RunIncomplete):
    """A run came to its end, and launches of it failed; `quoted` is the end of the last one's log."""

    def __init__(self, message: str, quoted: str, *, hint: str) -> None:
        super().__init__(f"{message}\n{quoted}", hint=hint)
        self.quoted = quoted


class AttemptEnd(StrEnum):
    """How an attempt that failed came to its end; the journal keeps it."""

    HUNG = "hung"
    FLOODED = "printed too much"
    WITH_AN_ERROR = "with an error"
    WITHOUT_RECORD = "without a record"
    WITH_HALF_A_RECORD = "with half a record"
    NOT_STARTED = "not started"
    STOOD_STILL = "stood still"


@dataclass(frozen=True)
class Failure:
    """One attempt of a launch that did not come to its end. `has_started` tells whether the measurer wrote anything.

    `exit_code` is the starter's, None where nothing was started or nobody saw it. `reason` is for people alone.
    """

    launch: LaunchPlan
    command: Command
    ended: AttemptEnd
    reason: str
    has_started: bool
    stderr_tail: str
    exit_code: int | None = None
    stdout_tail: str = ""

    @property
    def log(self) -> Path:
        """The log that tells of it: what a program says of its end is in stdout where stderr is empty."""
        has_stdout_alone = self.stdout_tail and not self.stderr_tail
        return self.command.directory / (STDOUT_FILE if has_stdout_alone else STDERR_FILE)

    @property
    def log_digest(self) -> str:
        """What tells the end of `log` from another."""
        return sha256((self.stderr_tail or self.stdout_tail).encode()).hexdigest()[:16]

    @property
    def facts(self) -> dict[str, Any]:
        """What the journal keeps of it."""
        return {"reason": self.reason, "ended": self.ended, "exit_code": self.exit_code, "log": self.log_digest}

    @property
    def what(self) -> str:
        """What was started."""
        workload = self.launch.workload
        return "the measurer" if workload is None else workload.title

    def is_like(self, other: Failure) -> bool:
        """Tell whether two attempts, of different launches, failed to start in the same way.

        The exit code does not count, nor do the words of the ranks: both depend on which of them MPI's starter reached first.
        """
        is_another = self.launch.launch_id != other.launch.launch_id and self.ended is not AttemptEnd.STOOD_STILL
        return is_another and not self.has_started and not other.has_started and self.ended is other.ended


def not_settable(launch: LaunchPlan, command: Command, reason: str) -> Failure:
    """Return the failure of a launch that was not started, as hosts did not take its settings."""
    return Failure(
        launch=launch,
        command=command,
        ended=AttemptEnd.NOT_STARTED,
        reason=f"was not started: {reason}",
        has_started=False,
        stderr_tail="",
    )


def failure_of(
    launch: LaunchPlan,
    command: Command,
    outcome: ProgramEnd,
    summary: LaunchSummary | None,
    *,
    is_success: bool,
    not_collected: str | None = None,
) -> Failure | None:
    """Return why an attempt failed; None if what it left is finished.

    `summary` is None without any record, `is_success` tells whether the exit code means success, `not_collected` why what
    it wrote could not be brought back from rank 0's node.
    """
    if summary is not None and summary.is_finished:
        return None
    has_started = summary is not None and summary.header is not None
    if outcome.is_hung:
        ended, reason = AttemptEnd.HUNG, f"hung: ended at its time limit after {format_duration(outcome.seconds)}"
    elif outcome.flooded is not None:
        most = format_bytes(MOST_LOG_BYTES)
        ended, reason = AttemptEnd.FLOODED, f"ended because it had printed more than {most} to {outcome.flooded}"
    elif outcome.standstills:
        ended, reason = AttemptEnd.STOOD_STILL, "; ".join(map(str, outcome.standstills))
    elif not is_success:
        ended, reason = AttemptEnd.WITH_AN_ERROR, f"ended with exit code {outcome.exit_code}"
    elif summary is None:
        ended, reason = AttemptEnd.WITHOUT_RECORD, f"ended well but {not_collected or 'wrote no record'}"
    else:
        first = summary.damage[0] if summary.damage else None
        of_cell = f"cell {first.cell}: " if first is not None and first.cell is not None else ""
        damage = first.reason if first is not None else "it has no header or no footer"
        ended, reason = AttemptEnd.WITH_HALF_A_RECORD, f"its record is not whole: {of_cell}{damage}"
    tails = (outcome.stderr_tail, outcome.exit_code, outcome.stdout_tail)
    return Failure(launch, command, ended, reason, has_started, *tails)


def is_hopeless(failures: Sequence[Failure]) -> bool:
    """Tell whether to stop: the measurer's last failure is like the one before it, or like the one before it on its fabric.

    Only failures to start count, of those since a launch last came to its end on any fabric (the whole machine's trouble) or on
    that fabric (its own); a launch that has measured something is worth trying again. A workload is somebody's program, and
    others may start: `giving_up` stops it alone.
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
        hint=f"mend what the log says, then `fabricbench resume {quote(str(directory))}`; the log is {failure.log}",
    )


def run_incomplete(failures: Sequence[Failure], not_started: int, launches: int, directory: Path) -> LaunchesFailed:
    """Return the error of a run that came to its end with launches that failed, and others that were not started for it."""
    named = "; ".join(f"{failure.launch.launch_id} {failure.reason}" for failure in failures[:MOST_NAMED])
    more = f" and {len(failures) - MOST_NAMED} more" if len(failures) > MOST_NAMED else ""
    stopped = f", {not_started} were not started as those before them failed alike" if not_started else ""
    return LaunchesFailed(
        f"{len(failures)} of {count(launches, 'launch')} failed{stopped}: {named}{more}",
        _quoted(failures[-1]),
        hint=f"`fabricbench resume {quote(str(directory))}` runs them again; everything else is kept",
    )


def testbed_lost(launch: LaunchPlan, lost: Lost, directory: Path, *, is_started: bool) -> TestbedLost:
    """Return the error of a run whose testbed has ended under it: no launch after this one could do better."""
    resume = f"`fabricbench resume {quote(str(directory))}`"
    then = f"{lost.action}, then {resume}" if lost.action else f"{resume}: a run's own lab is built anew"
    return TestbedLost(
        f"{lost.what}; {launch.launch_id} was {'under way' if is_started else 'not started'}, and what was measured before it "
        "is kept",
        hint=f"find out who did it, then {then}",
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
    return NoSpace(
        f"no space left on the disk that holds {directory}",
        hint=f"free some space, then `fabricbench resume {quote(str(directory))}`; what was measured so far is kept",
    )


def _quoted(failure: Failure) -> str:
    lines = (failure.stderr_tail or failure.stdout_tail).splitlines() or [
        "(it wrote nothing to stderr, and nothing to stdout)"
    ]
    where = (
        f"{failure.log}{'' if failure.stderr_tail or not failure.stdout_tail else ' (stderr.log beside it is empty)'}"
    )
    return f"  the end of {where}:\n" + "\n".join(f"    {line}" for line in lines)
