"""Task farms: jobs an hour on each fabric, how many were done, how many needed another try, and what waiting for inputs cost.

Whether a farm is faster on one fabric is judged by its time as every cell is (`comparing`), and told with its figures among the
applications; here is what became of its jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Floats, Side, workload_of
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, rows_of
from fabricbench.model import Model
from fabricbench.published.farms import published_farm
from fabricbench.quantity import format_bytes
from fabricbench.record.farm_lines import DONE, JOBS, LOST, RETRIED, STAGING_SHARE
from fabricbench.report.words import NOTHING, counted, share_interval_words, spoken
from fabricbench.statistics.order import Estimate, median_interval
from fabricbench.statistics.proportion import wilson_interval
from fabricbench.table import Table, table

NAME, STUDY = "farms", "farm_study"

METHOD = """
A task farm is many independent jobs; rank 0 gives them out and sends each its input over the fabric, the other ranks run them. Jobs
an hour are the median over launches with its interval; so is the time lost to staging, the share of the slots' time in which a job
could have run and waited for its input. The share of jobs that were done is over all launches, with a binomial interval at {level}
(Wilson 1927), which takes jobs as independent of one another. A farm's time is compared as every other cell is, paired by block.
"""


class FarmOnFabric(Model):
    """One farm on one fabric. `jobs_per_hour` and `staging_share` are medians over launches; jobs are counted over all of them."""

    fabric: str
    farm: str
    launches: int
    jobs_per_hour: Interval
    staging_share: Interval
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
    found = [
        _on_fabric(side, cell, material.confidence)
        for side in material.sides
        for key, cell in side.cells.items()
        if key.workload is not None and key.workload in _farms(side) and DONE in cell.values
    ]
    order = list(dict.fromkeys(one.farm for one in found))
    rows = sorted(found, key=lambda one: order.index(one.farm))
    return {NAME: rows, STUDY: [_of_study(material.confidence)] if rows else []}


def _farms(side: Side) -> set[object]:
    parts = (launch.summary.workload for launch in side.launches)
    return {workload_of(part) for part in parts if part is not None and part.kind == "farm" and part.figures}


def _on_fabric(side: Side, cell: CellMeasured, confidence: float) -> FarmOnFabric:
    seconds = cell.launch_values * 1e-9
    jobs, done, retried, lost = (int(np.nansum(cell.values[name])) for name in (JOBS, DONE, RETRIED, LOST))
    return FarmOnFabric(
        fabric=side.name,
        farm=str(cell.key.workload),
        launches=int(np.count_nonzero(~np.isnan(seconds))),
        jobs_per_hour=_median(cell.values[DONE] / seconds * 3600, confidence),
        staging_share=_median(cell.values[STAGING_SHARE], confidence),
        jobs=jobs,
        done=done,
        retried=retried,
        lost=lost,
        success=_interval(wilson_interval(done, jobs, confidence)),
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
            share_interval_words(one.staging_share),
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
        told = [
            f"{one.done:,} done, {one.retried:,} retried"
            + (f", {one.lost:,} failed" if one.lost else "")
            + f" on {one.fabric}"
            for one in rows
            if one.farm == name
        ]
        launches = max(one.launches for one in rows if one.farm == name)
        yield f"{name}: {spoken(told)}, in {counted(launches, 'launch', 'launches')} each."


def _rate(level: Interval) -> str:
    if level.low is None or level.high is None:
        return f"{level.value:,.0f} (no interval)"
    return f"{level.value:,.0f} ({level.low:,.0f} to {level.high:,.0f})" if level.value == level.value else NOTHING


CHAPTER = Chapter(
    name=NAME,
    title="Task farms",
    needs="task farms: a campaign with [[farm]]",
    find=find,
    method=METHOD,
    tables=farm_tables,
    lines=farm_lines,
)
