"""How a launch came to its end, decided once when it is stored: run, resume and every report ask this and nothing else."""

from __future__ import annotations

import re
import signal
from enum import StrEnum

FIRST_SIGNAL_CODE = 128
"""A shell and a starter add a signal's number to this (POSIX); MPICH's hydra passes the bare number and names it in words."""

SIGNAL_IN_WORDS = re.compile(r"\(signal (\d+)\)|exited on signal (\d+)")
PLACE_IN_WORDS = re.compile(r"RUNNING AT (\S+)|on node (\S+) exited on signal")
"""What MPICH's hydra and Open MPI's mpirun say of a rank that a signal ended."""


class LaunchOutcome(StrEnum):
    """How a launch ended.

    `died after its record`: every rank had measured and the record was whole, then a signal ended the program (crashes in
    MPI_Finalize are frequent) or it hung there until its limit. `unknown`: the record is whole, and nobody saw how the program
    ended. `failed`: the record is whole, but the program says by its exit code that something went wrong while it measured, or
    something that it needs stood still meanwhile.
    `cut short`: the record is not whole.
    """

    FINISHED = "finished"
    DIED_AFTER_RECORD = "died after its record"
    UNKNOWN = "unknown"
    FAILED = "failed"
    CUT_SHORT = "cut short"

    @property
    def counts(self) -> bool:
        """Whether the launch is finished: it is compared, and a resumed run does not measure it again."""
        return self in {LaunchOutcome.FINISHED, LaunchOutcome.DIED_AFTER_RECORD, LaunchOutcome.UNKNOWN}


def outcome_of(
    *,
    is_whole: bool,
    is_success: bool,
    exit_code: int | None,
    is_hung: bool = False,
    is_at_end: bool = True,
    stood_still: bool = False,
    stderr_tail: str = "",
) -> LaunchOutcome:
    """Decide how a launch ended.

    `is_whole` is of its record, `is_success` says whether the exit code means success; an `exit_code` of None is one that
    nobody saw, unless the launch `is_hung`: it was ended at its limit. `is_at_end` is False where the program is
    known to have died before its own end. `stood_still`: a rank, the emulated switch, the machine.
    """
    if not is_whole:
        return LaunchOutcome.CUT_SHORT
    if stood_still:
        return LaunchOutcome.FAILED
    if is_success:
        return LaunchOutcome.FINISHED
    if not is_at_end:
        return LaunchOutcome.FAILED
    if is_hung or signal_number(exit_code, stderr_tail) is not None:
        return LaunchOutcome.DIED_AFTER_RECORD
    return LaunchOutcome.UNKNOWN if exit_code is None else LaunchOutcome.FAILED


def signal_number(exit_code: int | None, stderr_tail: str = "") -> int | None:
    """Return the signal that ended a program, None if none did.

    A code up to 64 is a signal only where the starter says so in words: it may as well be the program's own.
    """
    if exit_code is None:
        return None
    if FIRST_SIGNAL_CODE < exit_code <= FIRST_SIGNAL_CODE + signal.NSIG:
        return exit_code - FIRST_SIGNAL_CODE
    told = {int(first or second) for first, second in SIGNAL_IN_WORDS.findall(stderr_tail)}
    return exit_code if exit_code in told else None


def signal_name(number: int | None) -> str | None:
    """Return a signal's name, `SIGSEGV`; None without one."""
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def place_of_death(stderr_tail: str) -> str | None:
    """Return the node of the rank that a signal ended, where the starter names it."""
    found = PLACE_IN_WORDS.search(stderr_tail)
    return (found.group(1) or found.group(2)) if found else None
