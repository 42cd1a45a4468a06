"""Reads runs into sides: for each fabric and cell one value of each launch, and all samples pooled.

What a launch's value is, `record.values` says. One launch is read at a time, each sample once. Invalid launches are left out here,
once, and named.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.gaps import subject_of
from fabricbench.analysis.measured import (
    AFTER,
    BEFORE,
    COUNTS,
    TAILS,
    CellFacts,
    CellMeasured,
    Floats,
    Side,
    Times,
    blocks_of,
    cell_name,
    in_order,
    key_of,
    workload_of,
)
from fabricbench.errors import UsageError
from fabricbench.model import Pattern
from fabricbench.patterns import PATTERNS
from fabricbench.record.integrity import data_hash
from fabricbench.record.launch import CellLateness
from fabricbench.record.port_counters import PortEvent, events_of
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.store import Run, StoredLaunch
from fabricbench.record.values import NO_VALUE, counted_samples, launch_value
from fabricbench.statistics.dependence import effective_samples, side_autocorrelation
from fabricbench.testbed.model import Fabric


@dataclass
class _Parts:
    """What has been read of one cell so far."""

    launch_values: Floats
    facts: CellFacts | None = None
    tails: dict[float, Floats] = field(default_factory=dict)
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
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    expected: int = 0
    subject: str = ""
    lateness: list[CellLateness] = field(default_factory=list)
    port_events: dict[PortEvent, Floats] = field(default_factory=dict)

    @property
    def has_value(self) -> bool:
        """Whether any launch is worth something."""
        return bool(self.values) and not np.isnan(self.launch_values).all()


def read_sides(runs: Sequence[Run] = (), *, before: Sequence[Run] = (), after: Sequence[Run] = ()) -> list[Side]:
    """Return the sides of one run (its fabrics), or each shared fabric before and after, in the testbed's order.

    Two `runs` are one before and one after; `before` and `after` may be any number of runs each. UsageError if anything else is
    given, a run twice, runs that share no fabric, or nothing was measured at all.
    """
    if len(runs) == 1 and not before and not after:
        sides = _sides_of(runs, "", [fabric.name for fabric in runs[0].manifest.testbed.fabrics])
        return _with_something(sides, runs)
    if len(runs) == 2 and not before and not after:
        before, after = runs[:1], runs[1:]
    elif runs or not before or not after:
        raise UsageError(
            f"{len(runs)} run directories were given, {len(before)} before and {len(after)} after",
            hint="give one (its fabrics are compared), two (before, after), or --before and --after with several each",
        )
    every = [*before, *after]
    names = _shared_names(every)
    pairs = zip(_sides_of(before, BEFORE, names), _sides_of(after, AFTER, names), strict=True)
    return _with_something([side for pair in pairs for side in pair], every)


def _shared_names(runs: Sequence[Run]) -> list[str]:
    """Return the fabrics that all runs have; UsageError where there is none, or one run stands for two."""
    # A copy is the same data, wherever it lies.
    marks = [data_hash(run.path) for run in runs] if len(runs) > 1 else [""]
    twice = [run.path for run, mark in zip(runs, marks, strict=True) if marks.count(mark) > 1]
    if twice:
        raise UsageError(
            f"{twice[0]} is given twice, or is a copy of another that is given",
            hint="each run counts once; the same data twice would pass for two measurements",
        )
    names = [[fabric.name for fabric in run.manifest.testbed.fabrics] for run in runs]
    shared = [name for name in names[0] if all(name in others for others in names)]
    if not shared:
        raise UsageError(
            "the runs share no fabric: "
            + ", ".join(f"{', '.join(of_run)} in {run.path}" for of_run, run in zip(names, runs, strict=True)),
            hint="a comparison of runs sets each fabric against itself, before and after",
        )
    return shared


def _with_something(sides: list[Side], runs: Sequence[Run]) -> list[Side]:
    if not any(side.cells for side in sides):
        raise UsageError(
            (
                f"there is nothing to analyse in {' and '.join(str(run.path) for run in runs)}: no valid launch "
                "has a measured test"
            ),
            hint="see the launches' stderr.log, or run `fabricbench resume` to measure what is missing",
        )
    return sides


def _sides_of(runs: Sequence[Run], suffix: str, names: Sequence[str]) -> list[Side]:
    tables = [run.cells() for run in runs]
    return [
        _joined(
            [
                _read_side(run, run.manifest.testbed.fabric(name), name + suffix, table)
                for run, table in zip(runs, tables, strict=True)
            ]
        )
        for name in names
    ]


def _joined(sides: Sequence[Side]) -> Side:
    """Return the sides of several runs as one."""
    if len(sides) == 1:
        return sides[0]
    widths = [len(side.blocks) for side in sides]
    launches, first = [], 0
    for side in sides:
        launches += [_in_block(launch, first + launch.block) for launch in side.launches]
        first += max(side.blocks, default=-1) + 1
    everywhere = [key for key in sides[0].cells if all(key in side.cells for side in sides)]
    anywhere = sorted({key for side in sides for key in side.cells}, key=in_order)
    lacking = {key: [str(side.run.path) for side in sides if key not in side.cells] for key in anywhere}
    return Side(
        name=sides[0].name,
        fabric=sides[0].fabric,
        run=sides[0].run,
        launches=tuple(launches),
        invalid=tuple(launch for side in sides for launch in side.invalid),
        cells={key: _joined_cell([side.cells[key] for side in sides], widths) for key in everywhere},
        failed=tuple(sorted({failure for side in sides for failure in side.failed})),
        runs=tuple(side.run for side in sides),
        run_of=tuple(index for index, width in enumerate(widths) for _ in range(width)),
        left_out=tuple(f"{cell_name(key)}: not in {', '.join(paths)}" for key, paths in lacking.items() if paths),
    )


def _in_block(launch: StoredLaunch, block: int) -> StoredLaunch:
    facts = launch.summary.facts.model_copy(update={"block": block})
    return replace(launch, summary=launch.summary.model_copy(update={"facts": facts}))


def _joined_cell(cells: Sequence[CellMeasured], widths: Sequence[int]) -> CellMeasured:
    def in_a_row(parts: Sequence[Floats | None]) -> Floats:
        filled = [np.full(width, np.nan) if part is None else part for part, width in zip(parts, widths, strict=True)]
        return np.concatenate(filled)

    return CellMeasured(
        key=cells[0].key,
        launch_values=in_a_row([cell.launch_values for cell in cells]),
        pooled=np.sort(np.concatenate([cell.pooled for cell in cells])),
        total_bytes=sum(cell.total_bytes for cell in cells),
        total_ns=sum(cell.total_ns for cell in cells),
        counts={name: sum(cell.counts[name] for cell in cells) for name in COUNTS},
        clock_share=max(cell.clock_share for cell in cells),
        overhead_share=max(cell.overhead_share for cell in cells),
        effective_share=float(np.median([cell.effective_share for cell in cells])),
        subject=cells[0].subject,
        facts=cells[0].facts,
        tails={tail: in_a_row([cell.tails.get(tail) for cell in cells]) for tail in TAILS},
        values={
            name: in_a_row([cell.values.get(name) for cell in cells])
            for name in dict.fromkeys(name for cell in cells for name in cell.values)
        },
        lateness=tuple(late for cell in cells for late in cell.lateness),
        port_events={
            event: in_a_row([cell.port_events.get(event) for cell in cells])
            for event in PortEvent
            if any(event in cell.port_events for cell in cells)
        },
        gave_nothing=sum(cell.gave_nothing for cell in cells),
        expected=sum(cell.expected for cell in cells),
    )


def _read_side(run: Run, fabric: Fabric, name: str, table: pl.DataFrame) -> Side:
    of_fabric = [launch for launch in run.launches if launch.fabric == fabric.name]
    launches = tuple(launch for launch in of_fabric if launch.is_valid)
    invalid = tuple(launch for launch in of_fabric if not launch.is_valid)
    columns = {block: column for column, block in enumerate(blocks_of(launches))}
    parts: dict[CellKey, _Parts] = defaultdict(lambda: _Parts(np.full(len(columns), np.nan)))
    mine = table.filter(pl.col("fabric").cast(pl.String) == fabric.name, pl.col("is_valid"))
    by_launch = {str(key[0]): rows for key, rows in mine.partition_by("launch_id", as_dict=True).items()}
    times = _times_of(run)
    for launch in launches:
        if launch.launch_id in by_launch:
            rows = by_launch[launch.launch_id]
            for row in rows.filter(pl.col("metric").is_not_null()).iter_rows(named=True):
                part = parts[key_of(row, times)]
                part.expected += 1
                part.subject = subject_of(launch)
            _read_launch(launch, columns[launch.block], rows.filter(pl.col("status") == "done"), parts, times)
    cells = {key: _whole(key, parts[key]) for key in sorted(parts, key=in_order) if parts[key].has_value}
    without = {
        (cell_name(key), NO_VALUE, "no-value") for key, part in parts.items() if part.count and not part.has_value
    }
    return Side(name, fabric, run, launches, invalid, cells, tuple(sorted({*_failures(mine), *without})))


def _read_launch(
    launch: StoredLaunch, index: int, rows: pl.DataFrame, parts: dict[CellKey, _Parts], times: Times
) -> None:
    samples = counted_samples(launch.directory, rows).collect()
    worth = dict(samples.group_by("cell").agg(launch_value().alias("worth")).iter_rows())
    cell, time_ns, moved, values = (samples[name].to_numpy() for name in ("cell", "time_ns", "bytes", "value"))
    starts = np.flatnonzero(np.diff(cell, prepend=cell[:1] + 1)) if cell.size else np.zeros(0, dtype=np.int64)
    ends = np.append(starts[1:], cell.size)[: starts.size]  # none where every cell of the launch failed
    where: dict[int, list[slice]] = defaultdict(list)
    for start, end in zip(starts, ends, strict=True):
        where[int(cell[start])].append(slice(int(start), int(end)))
    clock = launch.summary.header.clock if launch.summary.header else None
    for row in rows.iter_rows(named=True):
        key = key_of(row, times)
        part = parts[key]
        part.facts = part.facts or _facts(row)
        for name, value in json.loads(row["values"] or "{}").items():
            part.extras.setdefault(name, np.full_like(part.launch_values, np.nan))[index] = value
        for event, number in (events_of(json.loads(row["port_state"] or "{}")) or {}).items():
            part.port_events.setdefault(event, np.full_like(part.launch_values, np.nan))[index] = number
        for name in COUNTS:
            part.counts[name] += row[name] or 0
        if (late := launch.summary.facts.lateness.get(row["cell"])) is not None:
            part.lateness.append(late)
        part.is_printed |= row["figure_of_merit"] is not None
        if clock is not None:
            part.resolution_ns = max(part.resolution_ns, clock.resolution_ns)
            part.overhead_ns = max(part.overhead_ns, clock.overhead_ns)
        for span in where.get(row["cell"], []):
            _add(part, index, key, time_ns[span], moved[span], values[span])
        if (value := worth.get(row["cell"])) is not None:
            part.launch_values[index] = value


def _add(
    part: _Parts,
    index: int,
    key: CellKey,
    time_ns: NDArray[np.uint64],
    moved: NDArray[np.uint64],
    values: Floats,
) -> None:
    part.total_bytes += int(moved.sum())
    part.total_ns += int(time_ns.sum())
    part.count += time_ns.size
    values = values[~np.isnan(values)]
    if not values.size:
        return
    part.values.append(values)
    part.autocorrelations.append((values.size, side_autocorrelation(values)))
    for tail in TAILS:
        bad = np.quantile(values, tail if key.metric.is_time else 1.0 - tail)
        part.tails.setdefault(tail, np.full_like(part.launch_values, np.nan))[index] = bad


def _times_of(run: Run) -> Times:
    """Return what the applications of a run are judged by where that is a time: a failed launch does not tell, others of it do."""
    parts = [launch.summary.workload for launch in run.launches if launch.summary.kernel is None]
    told = [workload_of(part) for part in parts if part is not None and part.figures]
    return {name.model_copy(update={"judged_by": None}): name for name in told}


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


def _whole(key: CellKey, part: _Parts) -> CellMeasured:
    pooled = np.sort(np.concatenate(part.values))
    mean_ns = max(part.total_ns / pooled.size, 1e-9)
    shares = [effective_samples(count, r) / count for count, r in part.autocorrelations]
    return CellMeasured(
        key=key,
        launch_values=part.launch_values,
        pooled=pooled,
        total_bytes=part.total_bytes,
        total_ns=part.total_ns,
        counts=part.counts,
        clock_share=0.0 if part.is_printed else part.resolution_ns / mean_ns,
        overhead_share=0.0 if part.is_printed else part.overhead_ns / mean_ns,
        effective_share=float(np.median(shares)),
        subject=part.subject,
        facts=part.facts or CellFacts(),
        tails=part.tails,
        values=part.extras,
        gave_nothing=part.expected - int(np.count_nonzero(part.launch_values > 0)),
        expected=part.expected,
        lateness=tuple(part.lateness),
        port_events=part.port_events,
    )


def _failures(rows: pl.DataFrame) -> tuple[tuple[str, str, str], ...]:
    failed = rows.filter(pl.col("status") == "failed")
    found = {
        (_failed_cell(row), row["reason"] or "", row["failure_code"] or "") for row in failed.iter_rows(named=True)
    }
    return tuple(sorted(found))


def _failed_cell(row: dict[str, object]) -> str:
    """Return what a failed cell is; one without a size has its variant: `mpi npb IS.W 4 ranks`."""
    what = f"{row['layer']} {row['pattern']}"
    has_size = PATTERNS[Pattern(str(row["pattern"]))].has_size
    return f"{what} of {row['message_bytes']} B" if has_size else " ".join(filter(None, (what, str(row["variant"]))))
