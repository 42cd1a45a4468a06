"""A run among those of other nights, for the figure that only a history has."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.analysis.trend import History
from fabricbench.record.manifest import read_manifest, write_manifest
from fabricbench.record.past_runs import past_runs
from fabricbench.record.store import Run
from support.synthetic_run import ladder_cells, write_synthetic_run

OF_TREND = frozenset({"trend"})
NIGHTS = 10


def findings_with_trend(folder: Path) -> Findings:
    """Ten nights of two fabrics, of which the last is reported; from the sixth on the slow one is 7 % slower."""
    for night in range(NIGHTS):
        rates = {"slow": 1e8 if night < NIGHTS // 2 else 0.93e8, "fast": 1e9}
        run = write_synthetic_run(
            folder / f"n{night}", cells=ladder_cells(rates, sizes=(64,), samples=20), blocks=3, seed=night + 1
        )
        manifest = read_manifest(run.path)
        created = manifest.created + timedelta(days=night)
        write_manifest(run.path, manifest.model_copy(update={"created": created, "seed": night}))
    last = Run.open(folder / f"n{NIGHTS - 1}")
    return analyse([last], history=History(str(folder), past_runs(folder)))
