from __future__ import annotations

import pytest

from fabricbench.record.outcome import LaunchOutcome, outcome_of, place_of_death, signal_name, signal_number

HYDRA = """=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 2810 RUNNING AT n3
=   EXIT CODE: 11
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)
"""
MPIRUN = "mpirun noticed that process rank 1 with PID 0 on node n2 exited on signal 6 (Aborted)."


@pytest.mark.parametrize(
    ("exit_code", "stderr", "found"),
    [
        (139, "", 11),
        (11, HYDRA, 11),
        (11, "", None),  # the program's own code, for all that is known
        (3, HYDRA, None),
        (134, MPIRUN, 6),
        (0, "", None),
        (None, HYDRA, None),
        (255, HYDRA, None),
    ],
)
def test_a_signal_is_told_by_the_code_or_by_the_starters_words(exit_code: int | None, stderr: str, found: int | None):
    assert signal_number(exit_code, stderr) == found


def test_signals_have_names_and_places():
    assert [signal_name(number) for number in (11, None, 99)] == ["SIGSEGV", None, "signal 99"]
    assert [place_of_death(text) for text in (HYDRA, MPIRUN, "")] == ["n3", "n2", None]


@pytest.mark.parametrize(
    ("is_whole", "exit_code", "is_hung", "outcome", "counts"),
    [
        (True, 0, False, LaunchOutcome.FINISHED, True),
        (True, 139, False, LaunchOutcome.DIED_AFTER_RECORD, True),
        (True, None, True, LaunchOutcome.DIED_AFTER_RECORD, True),
        (True, None, False, LaunchOutcome.UNKNOWN, True),
        (True, 3, False, LaunchOutcome.FAILED, False),
        (False, 0, False, LaunchOutcome.CUT_SHORT, False),
        (False, 139, False, LaunchOutcome.CUT_SHORT, False),
    ],
)
def test_every_end_has_one_outcome(
    is_whole: bool, exit_code: int | None, is_hung: bool, outcome: LaunchOutcome, counts: bool
):
    found = outcome_of(is_whole=is_whole, is_success=exit_code == 0, exit_code=exit_code, is_hung=is_hung)
    assert (found, found.counts) == (outcome, counts)
