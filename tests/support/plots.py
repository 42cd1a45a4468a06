"""Runs whose plots are known by hand: no noise, so that medians are what was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fabricbench.model import Layer, Pattern
from fabricbench.record.store import Run
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed, write_synthetic_run

QUIET = Noise(launch=0.0, sample=0.0)


def timed(
    layer: Layer, pattern: Pattern, sizes: Sequence[int], ns: Mapping[str, float], **more: object
) -> list[SyntheticCell]:
    """Cells that take so many ns on each fabric, and one more for each byte."""
    return [
        SyntheticCell(layer, pattern, size, {name: base + size for name, base in ns.items()}, samples=20, **more)  # type: ignore[arg-type]
        for size in sizes
    ]


def quiet_run(
    path: Path, cells: Sequence[SyntheticCell], *, blocks: int = 6, nodes: int = 2, noise: Noise = QUIET
) -> Run:
    """A run on emulated fabrics with fast wires, which nothing here is too fast for."""
    names = list(dict.fromkeys(name for cell in cells for name in cell.medians))
    bed = synthetic_testbed(dict.fromkeys(names, 100e9), nodes=nodes)
    return write_synthetic_run(path, cells=cells, blocks=blocks, noise=noise, testbed=bed)
