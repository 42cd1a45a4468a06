"""Runs with known truth for the tests of the analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabricbench.model import Layer
from fabricbench.pattern_facts import USUAL_LAYERS
from fabricbench.record.store import Run
from fabricbench.testbed.model import Testbed
from support.synthetic_run import (
    Noise,
    SyntheticCell,
    ladder_cells,
    synthetic_testbed,
    write_synthetic_run,
)

RATES = {"slow": 100e6, "fast": 1280e6}
NETWORK = [layer for layer in USUAL_LAYERS if layer is not Layer.MEMORY]

MakeRun = Callable[..., Run]


def scaled(
    cells: Sequence[SyntheticCell], factors: Mapping[str, Callable[[SyntheticCell], float]]
) -> list[SyntheticCell]:
    """Cells of one fabric (`slow`), given to several under new names, each time that factor slower; memory is the same on all."""

    def median(cell: SyntheticCell, factor: Callable[[SyntheticCell], float]) -> float:
        if cell.layer is Layer.MEMORY:
            return cell.medians["slow"]
        slower = factor(cell)
        return cell.medians["slow"] * (slower if cell.metric.is_time else 1.0 / slower)

    return [replace(cell, medians={name: median(cell, factor) for name, factor in factors.items()}) for cell in cells]


def two(slower: Callable[[SyntheticCell], float] | float, **options: Any) -> list[SyntheticCell]:
    """Cells of fabrics `one` and `other`, the other slower by a factor."""
    factor = slower if callable(slower) else lambda _: slower
    return scaled(ladder_cells({"slow": 100e6}, **({"samples": 80} | options)), {"one": lambda _: 1.0, "other": factor})


def twin_testbed() -> Testbed:
    """A testbed that lists one fabric twice, as `one` and `again`."""
    bed = synthetic_testbed({"one": 100e6, "again": 100e6})
    first = bed.fabrics[0]
    return bed.model_copy(update={"fabrics": (first, first.model_copy(update={"name": "again"}))})


def twin_cells(slower: float = 1.0) -> list[SyntheticCell]:
    """Cells of one fabric under two names, the second slower by a factor that should not be."""
    return scaled(ladder_cells({"slow": 100e6}, samples=80), {"one": lambda _: 1.0, "again": lambda _: slower})


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Write a run: quiet enough (0.5 %) that effects of a few percent are found in eight blocks."""

    def make(cells: Sequence[SyntheticCell], name: str = "run", **options: Any) -> Run:
        names = list(dict.fromkeys(fabric for cell in cells for fabric in cell.medians))
        settings = {
            "blocks": 8,
            "noise": Noise(launch=0.005, sample=0.02),
            # what the others show of "one" times a factor, a wire must be able to carry
            "testbed": synthetic_testbed({name: 100e6 if name == "one" else 10e9 for name in names}),
        }
        return write_synthetic_run(tmp_path / name, cells=cells, **(settings | options))

    return make
