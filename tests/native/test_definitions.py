"""Cells that measure as another benchmark defines it, over this machine's loopback: osu_latency, osu_bw, STREAM, osu_put_bw."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from fabricbench.model import Layer, Pattern
from support.measurer import Outcome

pytestmark = [pytest.mark.mpi, pytest.mark.alone]

IS_ROOT = os.geteuid() == 0
LAYERS = [*([Layer.FRAME, Layer.IP] if IS_ROOT else []), Layer.UDP, Layer.TCP, Layer.MPI]
RELIABLE = [Layer.TCP, Layer.MPI]


def cells_of(layers: list[Layer], pattern: Pattern, **keys: Any) -> list[dict[str, Any]]:
    """A verified cell for each layer."""
    return [
        {"layer": layer, "pattern": pattern, "message_bytes": 256, "verify_messages": 3, **keys} for layer in layers
    ]


def check(outcome: Outcome, cells: list[dict[str, Any]], *, samples: int = 1) -> None:
    assert outcome.code == 0, outcome.stderr
    for number, cell in enumerate(cells):
        end = outcome.end(number)
        assert len(outcome.times(number)) == end.measured >= samples, cell
        assert (end.verified, end.corrupted) == (3, 0), cell


def test_an_answer_of_its_own_is_verified_and_measured_over_every_layer(probe: Callable[..., Outcome]) -> None:
    cells = cells_of(LAYERS, Pattern.PINGPONG, parameters={"answer": "own"})
    check(probe(cells), cells)


def test_round_trips_in_a_row_are_one_sample(probe: Callable[..., Outcome]) -> None:
    parameters = {"answer": "own", "round_trips": 10}
    cells = cells_of(RELIABLE, Pattern.PINGPONG, parameters=parameters, stopping={"maximum_samples": 20})
    outcome = probe(cells)
    check(outcome, cells)
    for number in range(len(cells)):
        assert outcome.cell(number).operations_per_sample == 10
        assert outcome.cell(number).bytes_per_sample == 10 * 2 * 256
        assert outcome.end(number).sent == 10 * outcome.end(number).measured


def test_round_trips_in_a_row_are_refused_where_one_may_be_lost(probe: Callable[..., Outcome]) -> None:
    outcome = probe(cells_of([Layer.UDP], Pattern.PINGPONG, parameters={"round_trips": 10}))
    assert "round_trips" in outcome.failed(0).reason


@pytest.mark.parametrize("message_bytes", [1, 8, 65536])
def test_windows_into_one_buffer_are_answered(probe: Callable[..., Outcome], message_bytes: int) -> None:
    """More messages than MPI's 64 slots, too."""
    cells = [
        cell | {"message_bytes": message_bytes, "messages_per_sample": window, "parameters": {"window": window}}
        for window in (1, 64, 100)
        for cell in cells_of(RELIABLE, Pattern.STREAM, stopping={"minimum_samples": 3, "maximum_seconds": 0.1})
    ]
    outcome = probe(cells)
    check(outcome, cells, samples=3)
    for number, cell in enumerate(cells):
        assert outcome.cell(number).bytes_per_sample == cell["messages_per_sample"] * message_bytes


def test_a_window_that_is_no_sample_is_refused(probe: Callable[..., Outcome]) -> None:
    outcome = probe(cells_of([Layer.TCP], Pattern.STREAM, parameters={"window": 64}, messages_per_sample=8))
    assert "messages_per_sample must be 64, found 8" in outcome.failed(0).reason


def test_unexpected_messages_lie_there_and_are_gone_in_the_next_cell(probe: Callable[..., Outcome]) -> None:
    cells = [
        *cells_of([Layer.MPI], Pattern.PINGPONG, parameters={"unexpected": 1000}),
        *cells_of([Layer.MPI], Pattern.PINGPONG),
        *cells_of([Layer.MPI], Pattern.PINGPONG, parameters={"unexpected": 3}),
    ]
    check(probe(cells), cells)


@pytest.mark.parametrize("stores", ["plain", "streaming"])
@pytest.mark.parametrize("threads", [1, 0])
def test_memory_is_swept_by_any_stores_on_one_processor_and_on_all(
    probe: Callable[..., Outcome], stores: str, threads: int
) -> None:
    kernels = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
    cells = [
        {
            "layer": "memory",
            "pattern": "stream",
            "message_bytes": 1 << 16,
            "ranks": [0],
            "parameters": {"kernel": kernel, "stores": stores, "threads": threads},
        }
        for kernel in kernels
    ]
    outcome = probe(cells, ranks=1)
    assert outcome.code == 0, outcome.stderr
    for number, arrays in enumerate(kernels.values()):
        cell, end = outcome.cell(number), outcome.end(number)
        assert end.measured >= 1
        assert cell.bytes_per_sample == arrays * (1 << 16) * cell.operations_per_sample
        found = end.values.get("threads", 1)
        assert found == 1 if threads == 1 else 1 <= found <= (os.cpu_count() or 1)


def test_more_threads_than_processors_are_refused(probe: Callable[..., Outcome]) -> None:
    more = {
        "layer": "memory",
        "pattern": "stream",
        "message_bytes": 4096,
        "ranks": [0],
        "parameters": {"threads": 4096},
    }
    assert "threads is 4096, and there are" in probe([more], ranks=1).failed(0).reason


@pytest.mark.parametrize("sync", ["fence", "lock", "flush"])
@pytest.mark.parametrize("pattern", [Pattern.PUT, Pattern.GET])
def test_accesses_in_a_row_are_verified_and_measured_as_one_call(
    probe: Callable[..., Outcome], pattern: Pattern, sync: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIR_CVAR_NOLOCAL", "1")  # through shared memory ranks that wait spin
    monkeypatch.setenv("FI_PROVIDER", "tcp")
    cells = cells_of([Layer.MPI], pattern, parameters={"sync": sync, "accesses": 64}, receive="library")
    outcome = probe(cells)
    assert outcome.code == 0, outcome.stderr
    failed = [line for line in outcome.lines if line.type == "cell_failed"]
    if failed:
        assert "calls did all ranks begin within" in failed[0].reason
        pytest.skip("the ranks could not begin together on this machine")
    end = outcome.end(0)
    assert (end.verified, end.corrupted) == (3 * (1 if pattern is Pattern.PUT else 2), 0)
    assert outcome.cell(0).bytes_per_sample == 64 * 256
