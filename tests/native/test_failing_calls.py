"""Calls of MPI that fail on one rank: the cell fails, what it holds is freed, and the next one is measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.measurer import Outcome
from support.preloaded import preloaded

pytestmark = pytest.mark.mpi

PUT = {
    "layer": "mpi",
    "pattern": "put",
    "message_bytes": 64,
    "receive": "library",
    "ranks": [0, 1],
    "verify_messages": 4,
}


@pytest.fixture
def failing(tmp_path: Path) -> list[str]:
    """Return what goes before a command of which calls are to fail that variables behind it name."""
    return preloaded(Path(__file__).with_name("failing_calls.c"), tmp_path)


def of_put(**keys: Any) -> dict[str, Any]:
    return {**PUT, **keys}


def is_measured(outcome: Outcome, number: int) -> bool:
    """Whether a cell was measured, or was verified and then failed because the machine is busy."""
    reason = next((line.reason for line in outcome.lines if line.type == "cell_failed" and line.cell == number), None)
    return outcome.end(number).verified > 0 if reason is None else "did all ranks begin within" in reason


def test_a_window_is_freed_where_its_verification_fails(probe: Callable[..., Outcome], failing: list[str]):
    cells = [of_put(parameters={"sync": sync}) for sync in ("fence", "lock", "flush")]
    outcome = probe([*cells, PUT], prefix=[*failing, f"FAILED_PUTS={len(cells) * PUT['verify_messages']}"])
    assert outcome.code == 0, outcome.stderr
    for number in range(len(cells)):
        assert "the access" in outcome.failed(number).reason
    assert is_measured(outcome, len(cells))
    assert outcome.stderr.count("windows left: 0") == 2, outcome.stderr


@pytest.mark.parametrize("sync", ["fence", "lock", "flush"])
def test_a_window_is_freed_where_a_timed_access_fails(probe: Callable[..., Outcome], failing: list[str], sync: str):
    outcome = probe([of_put(parameters={"sync": sync}, verify_messages=0), PUT], prefix=[*failing, "FAILED_PUTS=1"])
    assert outcome.code == 0, outcome.stderr
    assert "put" in outcome.failed(0).reason
    assert is_measured(outcome, 1)
    assert outcome.stderr.count("windows left: 0") == 2, outcome.stderr


@pytest.mark.parametrize("rank", [0, 1])
def test_a_communicator_that_one_rank_cannot_have_fails_its_cell_and_is_made_anew(
    probe: Callable[..., Outcome], failing: list[str], rank: int
):
    outcome = probe([PUT, PUT], prefix=[*failing, f"FAILED_GROUP={rank}"])
    assert outcome.code == 0, outcome.stderr
    assert "MPI_Comm_create_group" in outcome.failed(0).reason
    assert is_measured(outcome, 1)
