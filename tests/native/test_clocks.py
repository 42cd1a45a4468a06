"""Ranks whose clocks run at different rates: what is found of the drift, and what becomes of operations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricbench.record.lines import Clock, FailureCode
from support.measurer import Outcome
from support.preloaded import preloaded

pytestmark = [pytest.mark.mpi, pytest.mark.alone]

SKEW_PPM = 20
PPB = 1000
MOST_SHIFT = 0.05
"""Of a call's time back to back (native/probe/launch.cpp)."""


LATE_US = 50_000
LEAST_TOLERANCE_NS = 8 * 1000
LATE = "did all ranks begin within"


@pytest.fixture
def disturbed(tmp_path: Path) -> list[str]:
    """Return what goes before a command whose second rank is to be disturbed by variables that follow."""
    return preloaded(Path(__file__).with_name("skew.c"), tmp_path)


def cells() -> list[dict[str, Any]]:
    """An allreduce, then a second of something else, then an allreduce by clocks that have drifted by then."""
    call = {"layer": "mpi", "pattern": "allreduce", "message_bytes": 8, "receive": "library", "ranks": [0, 1]}
    call |= {"stopping": {"maximum_samples": 200, "maximum_seconds": 0.2}}
    wait = {"layer": "tcp", "pattern": "paced", "message_bytes": 64, "parameters": {"interval_us": 10_000}}
    wait |= {"stopping": {"minimum_samples": 100, "maximum_samples": 100, "maximum_seconds": 2.0}}
    return [call, wait, call]


def reason_of(outcome: Outcome, number: int) -> str:
    """Why a cell failed; nothing where it did not."""
    return next((line.reason for line in outcome.lines if line.type == "cell_failed" and line.cell == number), "")


def values_of(outcome: Outcome, number: int) -> dict[str, float]:
    """What a cell found, whether it failed or not."""
    return outcome.failed(number).values if reason_of(outcome, number) else outcome.end(number).values


def test_a_clock_that_drifts_is_followed_or_the_cell_is_refused(probe: Callable[..., Outcome], disturbed: list[str]):
    for _ in range(3):  # the machine may be busy, and then clocks are known less well, which is said
        outcome = probe(cells(), prefix=[*disturbed, f"SKEW_PPM={SKEW_PPM}"])
        assert outcome.code == 0, outcome.stderr
        (end,) = [line for line in outcome.lines if isinstance(line, Clock) and (line.rank, line.phase) == (1, "end")]
        assert not end.is_shared
        assert end.drift_ppb == pytest.approx(-SKEW_PPM * PPB, abs=end.drift_error_ppb)
        if end.drift_error_ppb < SKEW_PPM * PPB / 2:
            break
    assert end.drift_error_ppb < SKEW_PPM * PPB / 2
    for number in (0, 2):
        values, reason = values_of(outcome, number), reason_of(outcome, number)
        assert values["clock_error_ns"] > values["clock_shift_ns"]
        sure_ns = values["clock_shift_ns"] - values["clock_shift_noise_ns"]
        is_shifted = sure_ns > MOST_SHIFT * values["back_to_back_ns"]
        if LATE not in reason:  # the machine may be busy
            assert ("the clocks of the ranks shifted by" in reason) == is_shifted


CHANGE_PPM = 80
"""Of a rate that is set anew, less than what a clock whose drift is unknown is taken for."""
CHANGE_AFTER_S = 5.0


def test_a_clock_whose_rate_changes_is_followed_from_then_on(probe: Callable[..., Outcome], disturbed: list[str]):
    call, wait, _ = cells()
    wait["stopping"] = {"minimum_samples": 500, "maximum_samples": 500, "maximum_seconds": 8.0}
    # Some cells of an unchanged clock that its line is learnt from; the change is within the wait that follows.
    outcome = probe(
        [call, call, call, wait, call, call],
        prefix=[*disturbed, f"SKEW_PPM={CHANGE_PPM}", f"SKEW_AFTER_S={CHANGE_AFTER_S}"],
    )
    assert outcome.code == 0, outcome.stderr
    found = {number: values_of(outcome, number) for number in (0, 1, 2, 4, 5)}
    # A line through points of before and after would lie between the two rates.
    (end,) = [line for line in outcome.lines if isinstance(line, Clock) and (line.rank, line.phase) == (1, "end")]
    assert end.drift_ppb == pytest.approx(-CHANGE_PPM * PPB, abs=end.drift_error_ppb)
    for number, values in found.items():
        assert values["clock_error_ns"] > values["clock_shift_ns"]
        sure_ns = values["clock_shift_ns"] - values["clock_shift_noise_ns"]
        if LATE not in (reason := reason_of(outcome, number)):
            is_shifted = sure_ns > MOST_SHIFT * values["back_to_back_ns"]
            assert ("the clocks of the ranks shifted by" in reason) == is_shifted


def test_clocks_that_only_seem_to_be_one_are_found_apart(probe: Callable[..., Outcome], disturbed: list[str]):
    outcome = probe(cells()[:1], prefix=[*disturbed, "AHEAD_US=5000", "SAME_BOOT=1"])
    assert outcome.code == 0, outcome.stderr
    (begin,) = [line for line in outcome.lines if isinstance(line, Clock) and (line.rank, line.phase) == (1, "begin")]
    assert not begin.is_shared
    assert begin.offset_ns == pytest.approx(-5e6, abs=begin.error_ns)
    values = values_of(outcome, 0)
    assert values["clock_error_ns"] > 0


def test_one_clock_needs_no_second_look(probe: Callable[..., Outcome]):
    outcome = probe(cells()[:1])
    assert outcome.code == 0, outcome.stderr
    values = values_of(outcome, 0)
    assert (values["clock_error_ns"], values["clock_shift_ns"]) == (0, 0)
    assert all(line.error_ns == 0 for line in outcome.lines if isinstance(line, Clock))


def test_a_rank_that_always_begins_late_is_not_usual_but_missed(probe: Callable[..., Outcome], disturbed: list[str]):
    outcome = probe(cells()[:1], prefix=[*disturbed, f"LATE_US={LATE_US}"])
    assert outcome.code == 0, outcome.stderr
    failed = outcome.failed(0)
    assert failed.code is FailureCode.TIMEOUT
    assert LATE in failed.reason
    values = failed.values
    assert {"back_to_back_ns", "barrier_start_ns", "start_tolerance_ns"} <= values.keys()
    assert values["start_tolerance_ns"] <= max(LEAST_TOLERANCE_NS, values["start_limit_ns"])
    assert len(outcome.times(0)) > 0
