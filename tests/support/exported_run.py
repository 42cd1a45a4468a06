"""A small run whose values are known to the digit, and what exporters make of it.

Two fabrics, two blocks, no noise; the second block takes twice as long. In it the stream failed, and the fast fabric's traffic went
another way.
"""

from __future__ import annotations

from pathlib import Path

from fabricbench.exchange.exporter import Exported, export_run, exporter_named
from fabricbench.model import Layer, Pattern
from fabricbench.record.store import Run
from support.synthetic_run import Noise, SyntheticCell, write_synthetic_run

NO_NOISE = Noise(launch=0.0, sample=0.0)
REFUTED = "b01-fast"


def exported_run(folder: Path, **more: object) -> Run:
    """Write the run and open it."""
    cells = (
        SyntheticCell(
            Layer.TCP, Pattern.PINGPONG, 64, {"slow": 52_000.0, "fast": 21_000.0}, samples=5, warmup=1, drift=1.0
        ),
        SyntheticCell(
            *(Layer.MPI, Pattern.STREAM, 4096, {"slow": 1e8, "fast": 1e9}),
            samples=5,
            warmup=1,
            messages_per_sample=16,
            fails_in=frozenset({1}),
        ),
        SyntheticCell(
            *(Layer.MPI, Pattern.ALLTOALL, 1024, {"slow": 30_000.0, "fast": 12_000.0}),
            samples=5,
            warmup=1,
            ranks=(0, 1, 2, 3),
            parameters={"mode": "persistent"},
            drift=1.0,
        ),
    )
    given = {"blocks": 2, "noise": NO_NOISE, "invalid": [REFUTED]} | more
    return write_synthetic_run(folder, cells=cells, **given)  # type: ignore[arg-type]


def exported(run: Run, name: str) -> Exported:
    """Return a run in a format."""
    return export_run(run, exporter_named(name))


def text_of(found: Exported) -> str:
    """Return the text of an export of one file."""
    (file,) = found.files
    assert isinstance(file.content, bytes)
    return file.content.decode()
