"""What became of the jobs of task farms, counted over every launch that came to its end, also where none was done.

Whether a farm is faster on one fabric is judged by its time as every cell is (`comparing`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import polars as pl

from fabricbench.analysis.findings import CellKey, Interval
from fabricbench.analysis.findings.loads import FarmOnFabric
from fabricbench.analysis.load_results import by_load, over_launches
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Side, key_of, unjudged
from fabricbench.model import Pattern
from fabricbench.record.farm_lines import DONE, JOBS, LOST, RETRIED, STAGING_SHARE
from fabricbench.record.setup import lost_words
from fabricbench.statistics.proportion import clustered_interval


def farms_on_fabrics(material: Material) -> list[FarmOnFabric]:
    """Return what became of the jobs of every farm on every fabric."""
    return by_load(one for side in material.sides for one in _of_side(side, material.confidence))


def _of_side(side: Side, confidence: float) -> Iterator[FarmOnFabric]:
    """Yield what became of each farm's jobs, from every launch of it that told its end, well or not."""
    launches = {(id(run), one.launch_id) for index, run in enumerate(side.runs) for one in side.launches_of_run(index)}
    parts = [one.summary.workload for one in side.launches]
    if not any(part is not None and part.kind == "farm" for part in parts):
        return
    told: dict[CellKey, list[dict[str, float]]] = {}
    for run in side.runs:
        rows = run.cells().filter(pl.col("pattern").cast(pl.String) == Pattern.WORKLOAD.value)
        for row in rows.iter_rows(named=True):
            values = json.loads(row["values"] or "{}")
            if (id(run), str(row["launch_id"])) in launches and DONE in values and JOBS in values:
                told.setdefault(key_of(row), []).append(values)
    cells = {unjudged(key): cell for key, cell in side.cells.items()}
    for key, counts in told.items():
        yield _on_fabric(side, key, counts, cells.get(key), confidence)


def _on_fabric(
    side: Side, key: CellKey, counts: Sequence[dict[str, float]], cell: CellMeasured | None, confidence: float
) -> FarmOnFabric:
    jobs, done, retried, lost = ([int(one.get(name, 0)) for one in counts] for name in (JOBS, DONE, RETRIED, LOST))
    success = clustered_interval(done, jobs, confidence)
    moved = f" {lost_words(key.lost_nodes)}" if key.lost_nodes else ""
    return FarmOnFabric(
        fabric=side.name,
        load=f"{key.workload}{moved}",
        launches=len(counts),
        idle=done.count(0),
        jobs_per_hour=None
        if cell is None
        else over_launches(cell.values[JOBS] / (cell.launch_values * 1e-9) * 3600, confidence),
        staging_share=None if cell is None else over_launches(cell.values[STAGING_SHARE], confidence),
        jobs=sum(jobs),
        done=sum(done),
        retried=sum(retried),
        lost=sum(lost),
        success=Interval(value=success.value, low=success.low, high=success.high),
    )
