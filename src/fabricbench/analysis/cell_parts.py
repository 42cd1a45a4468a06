"""The cells of a fabric as their launches are read: what each launch tells of a cell, and the measured cell that comes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.measured import (
    COUNTS,
    LOWER,
    TAILS,
    CellFacts,
    CellMeasured,
    FailedCell,
    Floats,
    Times,
    key_of,
    workload_of,
)
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS
from fabricbench.record.farm_lines import DONE, JOBS
from fabricbench.record.frames import RDMA_ATTACHMENTS
from fabricbench.record.launch import CellLateness
from fabricbench.record.lines import RdmaAttachment
from fabricbench.record.port_counters import PortEvent, events_of
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.store import Run, StoredLaunch
from fabricbench.record.values import SUMS, VALUE_COLUMNS, counted_launches, launch_value
from fabricbench.statistics.dependence import effective_samples, side_autocorrelation
from fabricbench.statistics.order import quantile_of_sorted


@dataclass
class Parts:
    """What has been read of one cell so far."""

    launch_values: Floats
    facts: CellFacts | None = None
    tails: dict[float, Floats] = field(default_factory=dict)
    means: Floats | None = None
    lower: Floats | None = None
    extras: dict[str, Floats] = field(default_factory=dict)
    values: list[Floats] = field(default_factory=list)
    count: int = 0
    autocorrelations: list[tuple[int, float]] = field(default_factory=list)
    total_bytes: int = 0
    total_ns: int = 0
    resolution_ns: float = 1.0
    overhead_ns: float = 0.0
    is_printed: bool = False
    """Whether the program printed its own figure: no clock of ours is in it."""
    printed_steps: Floats = field(default_factory=lambda: np.zeros(0))
    """The step of the last digit that was printed of each launch's value; NaN where nobody told."""
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    expected: int = 0
    subject: str = ""
    lateness: list[CellLateness] = field(default_factory=list)
    port_events: dict[PortEvent, Floats] = field(default_factory=dict)
    rdma: dict[RdmaAttachment, None] = field(default_factory=dict)

    @property
    def step_share(self) -> float:
        """The step in which values are told, relative to them; of what was printed with changing digits the mean over launches."""
        printed = self.printed_steps / self.launch_values if self.printed_steps.size else np.zeros(0)
        if not np.isnan(printed).all():
            return float(np.nanmean(printed))
        return 0.0 if self.is_printed else self.resolution_ns / self.mean_ns

    @property
    def mean_ns(self) -> float:
        """The mean time of a sample."""
        return max(self.total_ns / max(sum(one.size for one in self.values), 1), 1e-9)

    @property
    def has_value(self) -> bool:
        """Whether any launch is worth something."""
        return bool(self.values) and not np.isnan(self.launch_values).all()


OF_A_KEY = ("layer", "pattern", "receive", "message_bytes", "metric", "parameters", "congestor")
"""Columns of `Run.cells` that name a cell, beside its ranks and lost nodes."""


Named = dict[tuple[str, int], CellKey]
"""The measured cells of some launches: a launch's name and the cell's number -> the cell."""


class Keys:
    """The cells of a run: one key for each, however many launches have it."""

    def __init__(self, run: Run) -> None:
        self._times = _times_of(run)
        self._found: dict[tuple[Any, ...], CellKey] = {}

    def of(self, row: dict[str, Any]) -> CellKey:
        """Return the cell of a row of `Run.cells`."""
        mark = (*(row[name] for name in OF_A_KEY), tuple(row["ranks"] or ()), tuple(row["lost_nodes"] or ()))
        if mark not in self._found:
            key = key_of(row, self._times)
            self._found[mark] = self._found.setdefault((key,), key)
        return self._found[mark]


def read_rows(
    launch: StoredLaunch, index: int, rows: pl.DataFrame, parts: dict[CellKey, Parts], keys: Keys, named: Named
) -> None:
    """Add what the rows of a launch tell of its cells to the parts, and name those that were measured."""
    clock = launch.summary.header.clock if launch.summary.header else None
    for row in rows.iter_rows(named=True):
        if row["metric"] is None:
            continue
        key = keys.of(row)
        part = parts[key]
        part.expected += 1
        part.subject = launch.subject
        if row["status"] != "done":
            continue
        named[launch.launch_id, row["cell"]] = key
        part.facts = part.facts or _facts(row)
        for name, value in _told(row["values"]).items():
            part.extras.setdefault(name, np.full_like(part.launch_values, np.nan))[index] = value
        for event, number in (events_of(_told(row["port_state"])) or {}).items():
            part.port_events.setdefault(event, np.full_like(part.launch_values, np.nan))[index] = number
        if row["rdma"] not in (None, "[]"):
            part.rdma |= dict.fromkeys(RDMA_ATTACHMENTS.validate_json(row["rdma"]))
        for name in COUNTS:
            part.counts[name] += row[name] or 0
        if (late := launch.summary.facts.lateness.get(row["cell"])) is not None:
            part.lateness.append(late)
        _add_printed(part, index, row)
        if clock is not None:
            part.resolution_ns = max(part.resolution_ns, clock.resolution_ns)
            part.overhead_ns = max(part.overhead_ns, clock.overhead_ns)


def _told(text: str | None) -> dict[str, Any]:
    """Return what a column of JSON tells, an object; most tell nothing."""
    return {} if text in (None, "{}") else json.loads(text)


def _add_printed(part: Parts, index: int, row: dict[str, Any]) -> None:
    part.is_printed |= row["figure_of_merit"] is not None
    if row["printed_step"] is not None:
        if not part.printed_steps.size:
            part.printed_steps = np.full_like(part.launch_values, np.nan)
        part.printed_steps[index] = row["printed_step"]


def read_samples(
    launches: Sequence[tuple[StoredLaunch, int, pl.DataFrame]], parts: dict[CellKey, Parts], named: Named
) -> None:
    """Add the samples of launches to the parts; of each launch its place among the side's blocks and the rows of its cells."""
    done = [rows.filter(pl.col("status") == "done") for _, _, rows in launches]
    wanted = [(one.directory, one.summary.samples, rows) for (one, _, _), rows in zip(launches, done, strict=True)]
    for samples in counted_launches(wanted):
        if samples.is_empty():  # every cell of the launches failed
            continue
        sums = samples.group_by("launch", "cell").agg(SUMS)
        numbers = sums["launch"].unique().to_list()
        told = ("cell", *VALUE_COLUMNS)
        rows = pl.concat([done[number].select(pl.lit(number, pl.UInt32).alias("launch"), *told) for number in numbers])
        worth = rows.join(sums, on=["launch", "cell"], maintain_order="left")
        for number, cell, value, moved, taken in worth.select(
            "launch", "cell", launch_value(), "total_bytes", "total_time_ns"
        ).iter_rows():
            launch, index, _ = launches[number]
            part = parts[named[launch.launch_id, cell]]
            part.total_bytes += moved or 0
            part.total_ns += taken or 0
            if value is not None:
                part.launch_values[index] = value
        of_launch, cell, values = (samples[name].to_numpy() for name in ("launch", "cell", "value"))
        is_next = (cell[1:] != cell[:-1]) | (of_launch[1:] != of_launch[:-1])
        for start, end in pairwise([0, *(np.flatnonzero(is_next) + 1), cell.size]):
            launch, index, _ = launches[int(of_launch[start])]
            key = named[launch.launch_id, int(cell[start])]
            _add(parts[key], index, key, values[start:end])


def _add(part: Parts, index: int, key: CellKey, values: Floats) -> None:
    part.count += values.size
    ordered = np.sort(values)
    if ordered.size and np.isnan(ordered[-1]):
        values = values[~np.isnan(values)]
        ordered = ordered[: values.size]
    if not values.size:
        return
    part.values.append(ordered)
    median = (ordered[(ordered.size - 1) // 2] + ordered[ordered.size // 2]) / 2
    part.autocorrelations.append((values.size, side_autocorrelation(values, median)))
    for tail in TAILS:
        bad = quantile_of_sorted(ordered, tail if key.metric.is_time else 1.0 - tail)
        if tail not in part.tails:
            part.tails[tail] = np.full_like(part.launch_values, np.nan)
        part.tails[tail][index] = bad
    if key.metric.is_time:
        if part.means is None:
            part.means = np.full_like(part.launch_values, np.nan)
        part.means[index] = values.mean()
        if part.lower is None:
            part.lower = np.full_like(part.launch_values, np.nan)
        part.lower[index] = quantile_of_sorted(ordered, LOWER)


def _times_of(run: Run) -> Times:
    """Return what the applications of a run are judged by: a failed launch does not tell, others of it do."""
    parts = [launch.summary.workload for launch in run.launches if launch.summary.kernel is None]
    told = [workload_of(part) for part in parts if part is not None and part.figures]
    return {name.untold: name for name in told}


def _facts(row: dict[str, Any]) -> CellFacts:
    """Return the facts of a row of `Run.cells`."""
    congestor = row["congestor"]
    return CellFacts(
        ranks=tuple(row["ranks"] or ()),
        channels=row["channels"] or 1,
        parameters=json.loads(row["parameters"] or "{}"),
        congestor=None if congestor is None else PlanCongestor.model_validate_json(congestor),
        operation_bytes=(row["bytes_per_sample"] or 0) / (row["operations_per_sample"] or 1),
    )


def whole(key: CellKey, part: Parts) -> CellMeasured:
    """Return the measured cell that everything read of it makes."""
    pooled = np.sort(np.concatenate(part.values))
    shares = [effective_samples(count, r) / count for count, r in part.autocorrelations]
    return CellMeasured(
        key=key,
        launch_values=part.launch_values * _of_all_jobs(part),
        pooled=pooled,
        total_bytes=part.total_bytes,
        total_ns=part.total_ns,
        counts=part.counts,
        step_share=part.step_share,
        overhead_share=0.0 if part.is_printed else part.overhead_ns / part.mean_ns,
        printed_step=None if np.isnan(part.printed_steps).all() else float(np.nanmax(part.printed_steps)),
        effective_share=float(np.median(shares)),
        subject=part.subject,
        facts=part.facts or CellFacts(),
        tails=part.tails,
        means=part.means,
        lower=part.lower,
        values=part.extras,
        gave_nothing=part.expected - int(np.count_nonzero(part.launch_values > 0)),
        expected=part.expected,
        lateness=tuple(part.lateness),
        port_events=part.port_events,
        rdma=tuple(part.rdma),
    )


def _of_all_jobs(part: Parts) -> Floats:
    """Return how many times a launch's time all jobs of its farm take at the rate of those that it did; 1 where it is no farm.

    A job that failed for good is no work: times are compared for as many jobs done.
    """
    if DONE not in part.extras or JOBS not in part.extras:
        return np.ones_like(part.launch_values)
    done, jobs = part.extras[DONE], part.extras[JOBS]
    return np.where(done > 0, jobs / np.where(done > 0, done, 1.0), 1.0)


def failures(rows: pl.DataFrame) -> tuple[FailedCell, ...]:
    """Return the cells of some rows of `Run.cells` that failed, each once."""
    failed = rows.filter(pl.col("status") == "failed")
    found = {
        FailedCell(
            name=_failed_cell(row),
            reason=row["reason"] or "",
            code=row["failure_code"] or "",
            layer=Layer(row["layer"]),
            pattern=Pattern(row["pattern"]),
        )
        for row in failed.iter_rows(named=True)
    }
    return tuple(sorted(found))


def _failed_cell(row: dict[str, Any]) -> str:
    """Return what a failed cell is; one without a size has its variant: `mpi npb IS.W 4 ranks`."""
    what = f"{row['layer']} {row['pattern']}"
    has_size = PATTERNS[Pattern(str(row["pattern"]))].has_size
    return f"{what} of {row['message_bytes']} B" if has_size else " ".join(filter(None, (what, str(row["variant"]))))
