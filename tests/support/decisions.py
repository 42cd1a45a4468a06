"""Runs of two tests, or of kernels, to decide over, and what is decided of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fabricbench.analysis.decide import find_decision
from fabricbench.analysis.findings import BreakEven, BreakEvenKind, DecisionFindings
from fabricbench.analysis.sides import read_sides
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.decision_table import (
    DecisionTable,
    Weight,
)
from fabricbench.record.store import Run
from support.synthetic_run import Noise, SyntheticCell, write_synthetic_run

TRIP = Weight(layer=Layer.TCP, pattern=Pattern.PINGPONG, message_bytes=64)
BULK = Weight(layer=Layer.TCP, pattern=Pattern.STREAM, message_bytes=65536)
QUIET = Noise(launch=0.004, sample=0.01)


def cells(trips: Mapping[str, float], rates: Mapping[str, float]) -> list[SyntheticCell]:
    """A round trip of 64 B (us) and a stream of 64 KiB (Mbit/s) over tcp."""
    return [
        SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {name: us * 1e3 for name, us in trips.items()}, samples=60),
        SyntheticCell(Layer.TCP, Pattern.STREAM, 65536, {name: mbit * 1e6 for name, mbit in rates.items()}, samples=30),
    ]


def written(path: Path, trips: Mapping[str, float], rates: Mapping[str, float], **options: object) -> Run:
    settings: dict[str, object] = {"blocks": 8, "noise": QUIET} | options
    return write_synthetic_run(path, cells=cells(trips, rates), **settings)  # type: ignore[arg-type]


def decided(run: Run, table: DecisionTable) -> DecisionFindings:
    found = find_decision(read_sides([run]), table, 0.95)
    assert found is not None
    return found


def break_even(found: DecisionFindings, kind: BreakEvenKind) -> BreakEven:
    return next(one for one in found.break_evens if one.kind is kind)


def kernels(path: Path, *, blocks: int = 8, **seconds: Mapping[str, float]) -> Run:
    """Kernels of class W with their seconds on each fabric."""
    cells = [
        SyntheticCell(
            Layer.MPI,
            Pattern.NPB,
            0,
            {fabric: one * 1e9 for fabric, one in times.items()},
            Receive.LIBRARY,
            samples=1,
            warmup=0,
            parameters={"benchmark": name, "class": "W"},
        )
        for name, times in seconds.items()
    ]
    return write_synthetic_run(path, cells=cells, blocks=blocks, noise=Noise(0.004, 0.004))


def mixed(path: Path) -> Run:
    """Two jobs that take as long on the old fabric; on the new one the first is 11.7 times faster, the second not at all."""
    return kernels(path, IS={"old": 2, "new": 2 / 11.7}, EP={"old": 2, "new": 2})
