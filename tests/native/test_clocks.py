"""Ranks whose clocks run at different rates: what is found of the drift, and what becomes of operations."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricbench.native import native_file
from fabricbench.record.lines import Clock
from support.measurer import Outcome

pytestmark = pytest.mark.mpi

SKEW_PPM = 20
PPB = 1000
MOST_SHIFT = 0.05
"""Of a call's time back to back (native/probe/launch.cpp)."""


@pytest.fixture
def skewed(tmp_path: Path) -> list[str]:
    """Return what goes before a command whose second rank is to have a clock of its own."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path / "skew.so"
    source = Path(__file__).with_name("skew.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True, timeout=60)
    preload = f"LD_PRELOAD={library}:{native_file('libfabricbench-yield.so')}"
    return ["env", preload, f"SKEW_PPM={SKEW_PPM}"]


def cells() -> list[dict[str, Any]]:
    """An allreduce, then a second of something else, then an allreduce by clocks that have drifted by then."""
    call = {"layer": "mpi", "pattern": "allreduce", "message_bytes": 8, "receive": "library", "ranks": [0, 1]}
    call |= {"stopping": {"maximum_samples": 200, "maximum_seconds": 0.2}}
    wait = {"layer": "tcp", "pattern": "paced", "message_bytes": 64, "parameters": {"interval_us": 10_000}}
    wait |= {"stopping": {"minimum_samples": 100, "maximum_samples": 100, "maximum_seconds": 2.0}}
    return [call, wait, call]


def test_a_clock_that_drifts_is_followed_or_the_cell_is_refused(probe: Callable[..., Outcome], skewed: list[str]):
    outcome = probe(cells(), prefix=skewed)
    assert outcome.code == 0, outcome.stderr
    (end,) = [line for line in outcome.lines if isinstance(line, Clock) and (line.rank, line.phase) == (1, "end")]
    assert not end.is_shared
    assert end.drift_ppb == pytest.approx(-SKEW_PPM * PPB, abs=end.drift_error_ppb)
    assert end.drift_error_ppb < SKEW_PPM * PPB / 2
    failed = {line.cell: line for line in outcome.lines if line.type == "cell_failed"}
    for number in (0, 2):
        values = failed[number].values if number in failed else outcome.end(number).values
        assert values["clock_error_ns"] > values["clock_shift_ns"]
        is_shifted = values["clock_shift_ns"] > MOST_SHIFT * values["back_to_back_ns"]
        assert (number in failed) == is_shifted
        if is_shifted:
            assert "the clocks of the ranks shifted by" in failed[number].reason


def test_one_clock_needs_no_second_look(probe: Callable[..., Outcome]):
    outcome = probe(cells()[:1])
    assert outcome.code == 0, outcome.stderr
    values = outcome.end(0).values
    assert (values["clock_error_ns"], values["clock_shift_ns"]) == (0, 0)
    assert all(line.error_ns == 0 for line in outcome.lines if isinstance(line, Clock))
