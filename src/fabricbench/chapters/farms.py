"""Task farms: jobs an hour on each fabric, how many were done, how many needed another try, and what waiting for inputs cost.

Whether a farm is faster on one fabric is judged by its time as every cell is (`comparing`), and told with its figures among the
applications; here is what became of its jobs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import isnan

import polars as pl

from fabricbench.analysis.findings import CellKey, Findings, Interval
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Floats, Side, key_of, unjudged
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, rows_of
from fabricbench.model import Model, Pattern
from fabricbench.published.farms import published_farm
from fabricbench.quantity import enumeration, format_bytes
from fabricbench.record.farm_lines import DONE, JOBS, LOST, RETRIED, STAGING_SHARE
from fabricbench.record.setup import lost_words
from fabricbench.report.words import NOTHING, counted, share_interval_words, with_bounds
from fabricbench.statistics.order import Estimate, median_interval
from fabricbench.statistics.proportion import clustered_interval, wilson_interval
from fabricbench.table import Table, table

NAME, STUDY = "farms", "farm_study"

METHOD = """
A task farm is many independent jobs; rank 0 gives them out and sends each its input over the fabric, the other ranks run them. Jobs
an hour are the median over launches with its interval; so is the time lost to staging, the share of the slots' time in which a job
could have run and waited for its input; both are of the launches that did a job. Jobs are counted over every launch that came to
its end, also where none was done. The share done has an interval at {level} that does not take the same job in another launch as a
new one: Wilson's (1927) for as many jobs as a launch has, for fewer where launches differ by more than chance (Korn and Graubard
1998: launches are clusters). A farm's time is compared as every other cell is, paired by block, for as many jobs done: it is that
of all jobs at the rate at which a launch did those that it did. A side of which more than a tenth of the jobs failed for good wins
nothing.
"""


class FarmOnFabric(Model):
    """One farm on one fabric. `jobs_per_hour` and `staging_share` are medians over launches that did a job.

    Jobs are counted over all `launches`, which came to their end; `idle` are those of them that did none.
    """

    fabric: str
    farm: str
    launches: int
    idle: int = 0
    jobs_per_hour: Interval | None
    staging_share: Interval | None
    jobs: int
    done: int
    retried: int
    lost: int
    success: Interval


class FarmOfStudy(Model):
    """The published farm, with the interval that its jobs give."""

    source: str
    nodes: int
    input_bytes: int
    jobs: int
    done: int
    success: Interval


def find(material: Material) -> Found:
    """Return what became of the jobs of every farm on every fabric; nothing where none was run."""
    found = [one for side in material.sides for one in _of_side(side, material.confidence)]
    order = list(dict.fromkeys(one.farm for one in found))
    rows = sorted(found, key=lambda one: order.index(one.farm))
    return {NAME: rows, STUDY: [_of_study(material.confidence)] if rows else []}


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
    moved = f" {lost_words(key.lost_nodes)}" if key.lost_nodes else ""
    return FarmOnFabric(
        fabric=side.name,
        farm=f"{key.workload}{moved}",
        launches=len(counts),
        idle=done.count(0),
        jobs_per_hour=None
        if cell is None
        else _median(cell.values[JOBS] / (cell.launch_values * 1e-9) * 3600, confidence),
        staging_share=None if cell is None else _median(cell.values[STAGING_SHARE], confidence),
        jobs=sum(jobs),
        done=sum(done),
        retried=sum(retried),
        lost=sum(lost),
        success=_interval(clustered_interval(done, jobs, confidence)),
    )


def _median(values: Floats, confidence: float) -> Interval:
    return _interval(median_interval(values, confidence))


def _interval(found: Estimate) -> Interval:
    return Interval(value=found.value, low=found.low, high=found.high)


def _of_study(confidence: float) -> FarmOfStudy:
    farm = published_farm()
    return FarmOfStudy(
        source=farm.source,
        nodes=farm.nodes,
        input_bytes=farm.input_bytes,
        jobs=farm.jobs,
        done=farm.done,
        success=_interval(wilson_interval(farm.done, farm.jobs, confidence)).model_copy(update={"value": farm.success}),
    )


def farm_table(findings: Findings) -> Table:
    """A row for each farm on each fabric."""
    rows = [
        (
            one.farm,
            one.fabric,
            _rate(one.jobs_per_hour),
            f"{one.done:,} of {one.jobs:,}",
            share_interval_words(one.success),
            f"{one.retried:,}",
            f"{one.lost:,}",
            NOTHING if one.staging_share is None else share_interval_words(one.staging_share),
            str(one.launches),
        )
        for one in rows_of(findings, NAME, FarmOnFabric)
    ]
    columns = ("Farm", "Fabric", "Jobs/h", "Jobs done", "Success", "Retried", "Failed", "Lost to staging", "Launches")
    return table(columns, rows, range(2, 9), spare=("Launches", "Success"))


def study_table(findings: Findings) -> Table:
    """The published farm's figures."""
    rows = [
        (
            one.source,
            str(one.nodes),
            format_bytes(one.input_bytes) if one.input_bytes % 10**6 else f"{one.input_bytes // 10**6} MB",
            f"{one.done:,} of {one.jobs:,}",
            share_interval_words(one.success),
        )
        for one in rows_of(findings, STUDY, FarmOfStudy)
    ]
    columns = ("Study", "Nodes", "Input of a job", "Jobs done", "Success")
    return Table(columns, tuple(rows), frozenset({1, 2, 3, 4}), is_published=True)


def farm_tables(findings: Findings) -> NamedTables:
    """Return both."""
    return [
        ("What became of the jobs", farm_table(findings)),
        ("Published: speech recognition as independent jobs", study_table(findings)),
    ]


def farm_lines(findings: Findings) -> Sequence[str]:
    """Return what became of each farm's jobs in a sentence."""
    return tuple(_sentences(rows_of(findings, NAME, FarmOnFabric)))


def _sentences(rows: Sequence[FarmOnFabric]) -> Iterator[str]:
    for name in dict.fromkeys(one.farm for one in rows):
        mine = [one for one in rows if one.farm == name]
        is_same = len({one.launches for one in mine}) == 1
        told = [
            f"{one.done:,} done, {one.retried:,} retried"
            + (f", {one.lost:,} failed" if one.lost else "")
            + f" on {one.fabric}"
            + ("" if is_same else f" in {counted(one.launches, 'launch', 'launches')}")
            for one in mine
        ]
        each = f", in {counted(mine[0].launches, 'launch', 'launches')} each" if is_same else ""
        yield f"{name}: {enumeration(told)}{each}."
        for one in mine:
            if one.idle:
                yield f"No job was done in {one.idle} of {counted(one.launches, 'launch', 'launches')} on {one.fabric}."


def _rate(level: Interval | None) -> str:
    if level is None or isnan(level.value):
        return NOTHING
    return with_bounds(f"{level.value:,.0f}", level.low, level.high, "{:,.0f}".format)


CHAPTER = Chapter(
    name=NAME,
    title="Task farms",
    needs="task farms: a campaign with [[farm]]",
    find=find,
    method=METHOD,
    tables=farm_tables,
    lines=farm_lines,
)
