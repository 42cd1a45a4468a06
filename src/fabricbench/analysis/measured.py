"""Reads runs into what the analysis works on: for each fabric and cell one value of each launch, and all samples pooled.

What a launch's value is, `record.values` says. One launch is read at a time, each sample once. Invalid launches are
left out here, once, and named. A side may be several runs of a fabric: their launches stand one run after the other, and
`Side.run_of` tells which is whose.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey, WorkloadName
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.patterns import PATTERNS, Family
from fabricbench.record.integrity import data_hash
from fabricbench.record.launch import CellLateness
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.store import Run, StoredLaunch
from fabricbench.record.values import NO_VALUE, counted_samples, launch_value
from fabricbench.record.workload_cells import WorkloadPart
from fabricbench.statistics.dependence import effective_samples, side_autocorrelation
from fabricbench.testbed.model import Fabric

Floats = NDArray[np.float64]

COUNTS = ("sent", "lost", "reordered", "duplicated", "corrupted", "verified", "warmup", "missed")

Times = Mapping[WorkloadName, WorkloadName]
"""Names of workloads as cells have them -> with the time that they are judged by."""

NO_TIMES: Times = MappingProxyType({})

TAILS = (0.99, 0.999)
"""How bad it gets, kept for each launch: as good or better are so many of its samples."""

BEFORE, AFTER = " (before)", " (after)"
"""Tell the two sides of one fabric apart where runs are compared with earlier ones."""


@dataclass(frozen=True)
class CellFacts:
    """What a cell was, the same in all its launches. `operation_bytes` is the payload that one operation moves, both ways."""

    ranks: tuple[int, ...] = (0, 1)
    channels: int = 1
    parameters: dict[str, str | int | float] = field(default_factory=dict)
    congestor: PlanCongestor | None = None
    operation_bytes: float = 0.0

    @property
    def flows(self) -> int:
        """Parallel flows in each channel."""
        return int(self.parameters.get("flows", 1))


@dataclass
class CellMeasured:
    """One cell on one side. Arrays over launches follow the side's `blocks`: one launch of a block measures a cell; NaN where none.

    `tails` maps each of TAILS to the launches' own: the time that so many samples stay below, the rate that they stay above.
    `values` are what else the pattern found in each launch. `pooled` holds all measured samples, sorted, in the metric's unit.
    `clock_share` is the resolution of the clock relative to a sample, `overhead_share` the cost of reading it. `effective_share` is
    the median over launches of the share of its samples that count as independent. Of the `expected` launches (valid ones that
    were to measure the cell) `gave_nothing` failed at it, found a rate or a time of 0, or took no sample: the values
    are of the others alone.
    """

    key: CellKey
    launch_values: Floats
    pooled: Floats
    total_bytes: int
    total_ns: int
    counts: dict[str, int]
    clock_share: float
    overhead_share: float
    effective_share: float
    facts: CellFacts = field(default_factory=CellFacts)
    tails: dict[float, Floats] = field(default_factory=dict)
    values: dict[str, Floats] = field(default_factory=dict)
    gave_nothing: int = 0
    expected: int = 0
    lateness: tuple[CellLateness, ...] = ()
    """How late the emulated switch was in each launch that tells."""

    @property
    def log_values(self) -> Floats:
        """Logarithms of the launches' values; a rate of 0 (a stream that lost everything) has none and becomes NaN."""
        return log_of(self.launch_values)

    def greatest(self, name: str) -> float | None:
        """Return the greatest over launches of what else the pattern found; None where no launch tells."""
        told = self.values.get(name)
        return None if told is None or np.isnan(told).all() else float(np.nanmax(told))


def clock_deviation(a: CellMeasured, b: CellMeasured) -> float:
    """Return the deviation of a log ratio that the clock's resolution alone makes (uniform rounding on both sides)."""
    return float(np.hypot(a.clock_share, b.clock_share) / np.sqrt(12.0))


def log_of(values: Floats) -> Floats:
    """Return logarithms, NaN for what has none."""
    is_positive = values > 0
    return np.where(is_positive, np.log(np.where(is_positive, values, 1.0)), np.nan)


@dataclass
class Side:
    """One fabric of a run, or of several runs that count as one side, as comparisons see it. `name` tells the sides apart.

    `runs` are all its runs, `run` the first; `run_of` has for each of `blocks` the index of the run that it came from. Blocks of
    several runs are numbered on, run after run. `left_out` says which cells some of the runs lack: they are not in `cells`.
    """

    name: str
    fabric: Fabric
    run: Run
    launches: tuple[StoredLaunch, ...]
    invalid: tuple[StoredLaunch, ...]
    cells: dict[CellKey, CellMeasured]
    failed: tuple[tuple[str, str, str], ...]
    """Cells that could not be measured: what, reason, failure code; each once."""
    runs: tuple[Run, ...] = ()
    run_of: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.runs = self.runs or (self.run,)
        self.run_of = self.run_of or (0,) * len(self.blocks)

    @property
    def blocks(self) -> list[int]:
        """The blocks with launches on this side, in order: what is replicated, and what comparisons pair."""
        return _blocks(self.launches)

    def launches_of(self, block: int) -> list[str]:
        """Return the names of a block's launches: one that measures, and one of each workload."""
        return [launch.launch_id for launch in self.launches if launch.block == block]

    def launches_of_run(self, run: int) -> list[StoredLaunch]:
        """Return the launches of one of `runs`, by its index; only within a run is a launch's name its own."""
        run_of_block = dict(zip(self.blocks, self.run_of, strict=True))
        return [launch for launch in self.launches if run_of_block[launch.block] == run]


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
    lateness: list[CellLateness] = field(default_factory=list)

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
        facts=cells[0].facts,
        tails={tail: in_a_row([cell.tails.get(tail) for cell in cells]) for tail in TAILS},
        values={
            name: in_a_row([cell.values.get(name) for cell in cells])
            for name in dict.fromkeys(name for cell in cells for name in cell.values)
        },
        lateness=tuple(late for cell in cells for late in cell.lateness),
        gave_nothing=sum(cell.gave_nothing for cell in cells),
        expected=sum(cell.expected for cell in cells),
    )


def cell_name(key: CellKey) -> str:
    """Return what a cell is in a few words: `tcp pingpong of 64 B`, `mpi npb IS.W 4 ranks`."""
    return name_of_cell(key.layer, key.pattern, key.message_bytes, key.variant)


def name_of_cell(layer: Layer, pattern: Pattern, message_bytes: int, variant: str) -> str:
    """Return the same of one that need not have been measured."""
    size = f"of {message_bytes} B" if PATTERNS[pattern].has_size else ""
    return " ".join(filter(None, (layer.value, pattern.value, size, variant)))


def _read_side(run: Run, fabric: Fabric, name: str, table: pl.DataFrame) -> Side:
    of_fabric = [launch for launch in run.launches if launch.fabric == fabric.name]
    launches = tuple(launch for launch in of_fabric if launch.is_valid)
    invalid = tuple(launch for launch in of_fabric if not launch.is_valid)
    columns = {block: column for column, block in enumerate(_blocks(launches))}
    parts: dict[CellKey, _Parts] = defaultdict(lambda: _Parts(np.full(len(columns), np.nan)))
    mine = table.filter(pl.col("fabric").cast(pl.String) == fabric.name, pl.col("is_valid"))
    by_launch = {str(key[0]): rows for key, rows in mine.partition_by("launch_id", as_dict=True).items()}
    times = _times_of(run)
    for launch in launches:
        if launch.launch_id in by_launch:
            rows = by_launch[launch.launch_id]
            for row in rows.filter(pl.col("metric").is_not_null()).iter_rows(named=True):
                parts[key_of(row, times)].expected += 1
            _read_launch(launch, columns[launch.block], rows.filter(pl.col("status") == "done"), parts, times)
    cells = {key: _whole(key, parts[key]) for key in sorted(parts, key=in_order) if parts[key].has_value}
    without = {
        (cell_name(key), NO_VALUE, "no-value") for key, part in parts.items() if part.count and not part.has_value
    }
    return Side(name, fabric, run, launches, invalid, cells, tuple(sorted({*_failures(mine), *without})))


def _blocks(launches: Sequence[StoredLaunch]) -> list[int]:
    return sorted({launch.block for launch in launches})


def in_order(key: CellKey) -> tuple[int, str, str, str, str, int]:
    """Sort cells as a reader expects them: up the ladder, then by what is measured, then by size."""
    layer = list(Layer).index(key.layer)
    return layer, key.metric, key.pattern, key.receive, key.variant, key.message_bytes


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


def key_of(row: dict[str, Any], times: Times = NO_TIMES) -> CellKey:
    """Return the cell of a row of `Run.cells`; `times` are those that the run's applications are judged by."""
    pattern = Pattern(str(row["pattern"]))
    return CellKey(
        layer=Layer(str(row["layer"])),
        pattern=pattern,
        receive=Receive(str(row["receive"])),
        message_bytes=int(str(row["message_bytes"])),
        metric=Metric(str(row["metric"])),
        variant=str(row["variant"]),
        workload=_workload(row, times) if PATTERNS[pattern].family is Family.WORKLOAD else None,
    )


def _workload(row: dict[str, Any], times: Times) -> WorkloadName:
    parameters: dict[str, str | int | float] = json.loads(row["parameters"] or "{}")
    name = WorkloadName(ranks=len(row["ranks"] or ()), parameters=tuple(parameters.items()))
    return times.get(name, name)


def workload_of(part: WorkloadPart) -> WorkloadName:
    """Return which workload a launch was, as cells name it."""
    time = next((figure.name for figure in part.figures[:1] if figure.better == "lower"), None)
    return WorkloadName(ranks=part.ranks, parameters=tuple(part.parameters.items()), judged_by=time)


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
        facts=part.facts or CellFacts(),
        tails=part.tails,
        values=part.extras,
        gave_nothing=part.expected - int(np.count_nonzero(part.launch_values > 0)),
        expected=part.expected,
        lateness=tuple(part.lateness),
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
