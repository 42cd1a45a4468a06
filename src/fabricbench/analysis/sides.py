"""Reads runs into sides: for each fabric and cell one value of each launch, and all samples pooled.

What a launch's value is, `record.values` says. One launch is read at a time, each sample once. Invalid launches are left out here,
once, and named.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.measured import (
    AFTER,
    BEFORE,
    COUNTS,
    TAILS,
    CellFacts,
    CellMeasured,
    FailedCell,
    Floats,
    Side,
    Times,
    blocks_of,
    cell_name,
    in_order,
    key_of,
    workload_of,
)
from fabricbench.analysis.repeated_texts import Repeated, counted_once, repeated_texts
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS
from fabricbench.record.account import account_of, joined
from fabricbench.record.farm_lines import DONE, JOBS
from fabricbench.record.frames import RDMA_ATTACHMENTS
from fabricbench.record.integrity import data_hash
from fabricbench.record.launch import CellLateness
from fabricbench.record.lines import RdmaAttachment
from fabricbench.record.port_counters import PortEvent, events_of
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.run_account import SubjectAccount
from fabricbench.record.store import Run, StoredLaunch
from fabricbench.record.values import NO_VALUE, SUMS, VALUE_COLUMNS, counted_launches, launch_value
from fabricbench.statistics.dependence import effective_samples, side_autocorrelation
from fabricbench.statistics.order import quantile_of_sorted


@dataclass
class _Parts:
    """What has been read of one cell so far."""

    launch_values: Floats
    facts: CellFacts | None = None
    tails: dict[float, Floats] = field(default_factory=dict)
    means: Floats | None = None
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


class NothingMeasured(UsageError):  # noqa: N818 - the tree of errors reads as sentences
    """Runs in which no launch gave anything that counts; `accounts` tell of each what was lost."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.names = tuple(str(run.path) for run in runs)
        self.accounts = tuple(account_of(run) for run in runs)
        super().__init__(
            f"there is nothing to analyse in {' and '.join(self.names)}: no valid launch has a measured test",
            hint="see the launches' stderr.log, or run `fabricbench resume` to measure what is missing"
            if any(one.can_be_resumed for one in self.accounts)
            else "correct what the reasons name, in the campaign or on the nodes, and measure by a new run: `fabricbench resume` "
            "measures none of it again",
        )


OF_A_KEY = ("layer", "pattern", "receive", "message_bytes", "metric", "parameters", "congestor")
"""Columns of `Run.cells` that name a cell, beside its ranks and lost nodes."""

Wanted = Callable[[str, CellKey], bool]
"""Tells by the name of a fabric and a cell whether it is read."""


def read_sides(
    runs: Sequence[Run] = (),
    *,
    before: Sequence[Run] = (),
    after: Sequence[Run] = (),
    wanted: Wanted | None = None,
) -> list[Side]:
    """Return the sides of one run (its fabrics), or each shared fabric before and after, in the testbed's order.

    Two `runs` are one before and one after; `before` and `after` may be any number of runs each. UsageError if anything else is
    given, a run twice, or runs that share no fabric; NothingMeasured where no launch of any counts.

    Of one run only the cells that are `wanted` may be read: no sample of any other.
    """
    if len(runs) == 1 and not before and not after:
        sides = _sides_of(runs, "", [fabric.name for fabric in runs[0].manifest.testbed.fabrics], {}, wanted)
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
    repeated = repeated_texts(every)
    sides_of = (_sides_of(one, suffix, names, repeated) for one, suffix in ((before, BEFORE), (after, AFTER)))
    pairs = zip(*sides_of, strict=True)
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
        raise NothingMeasured(runs)
    return sides


def _sides_of(
    runs: Sequence[Run], suffix: str, names: Sequence[str], repeated: Repeated, wanted: Wanted | None = None
) -> list[Side]:
    tables = [(run.cells(), account_of(run), _Keys(run)) for run in runs]
    return [
        _joined(
            [
                _read_side(run, name, name + suffix, table, account.of(name), repeated, wanted, keys)
                for run, (table, account, keys) in zip(runs, tables, strict=True)
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
        accounts=_joined_accounts([one for side in sides for one in side.accounts]),
    )


def _joined_accounts(accounts: Sequence[SubjectAccount]) -> tuple[SubjectAccount, ...]:
    """Return the accounts of several runs of one fabric, one for each subject."""
    subjects = dict.fromkeys(one.subject for one in accounts)
    return tuple(joined([one for one in accounts if one.subject == subject]) for subject in subjects)


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
        step_share=max(cell.step_share for cell in cells),
        overhead_share=max(cell.overhead_share for cell in cells),
        effective_share=float(np.median([cell.effective_share for cell in cells])),
        printed_step=max((cell.printed_step for cell in cells if cell.printed_step is not None), default=None),
        subject=cells[0].subject,
        facts=cells[0].facts,
        tails={tail: in_a_row([cell.tails.get(tail) for cell in cells]) for tail in TAILS},
        means=in_a_row([cell.means for cell in cells]) if any(cell.means is not None for cell in cells) else None,
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
        rdma=tuple(dict.fromkeys(one for cell in cells for one in cell.rdma)),
        gave_nothing=sum(cell.gave_nothing for cell in cells),
        expected=sum(cell.expected for cell in cells),
    )


def _read_side(
    run: Run,
    fabric_name: str,
    name: str,
    table: pl.DataFrame,
    accounts: tuple[SubjectAccount, ...],
    repeated: Repeated,
    wanted: Wanted | None,
    keys: _Keys,
) -> Side:
    fabric = run.manifest.testbed.fabric(fabric_name)
    of_fabric = [
        counted_once(launch, repeated.get((run.path, launch.launch_id)))
        for launch in run.launches
        if launch.fabric == fabric.name
    ]
    launches = tuple(launch for launch in of_fabric if launch.is_valid)
    invalid = tuple(launch for launch in of_fabric if not launch.is_valid)
    columns = {block: column for column, block in enumerate(blocks_of(launches))}
    parts: dict[CellKey, _Parts] = defaultdict(lambda: _Parts(np.full(len(columns), np.nan)))
    mine = table.filter(pl.col("fabric").cast(pl.String) == fabric.name, pl.col("is_valid"))
    if wanted is not None:
        rows_of = mine.filter(pl.col("metric").is_not_null())
        mine = rows_of.filter([wanted(fabric.name, keys.of(row)) for row in rows_of.iter_rows(named=True)])
    by_launch = {str(key[0]): rows for key, rows in mine.partition_by("launch_id", as_dict=True).items()}
    read = [(one, columns[one.block], by_launch[one.launch_id]) for one in launches if one.launch_id in by_launch]
    named: Named = {}
    for launch, index, rows in read:
        _read_rows(launch, index, rows, parts, keys, named)
    _read_samples(read, parts, named)
    cells = {key: _whole(key, parts[key]) for key in sorted(parts, key=in_order) if parts[key].has_value}
    without = {
        FailedCell(cell_name(key), NO_VALUE, "no-value", key.layer, key.pattern)
        for key, part in parts.items()
        if part.count and not part.has_value
    }
    failed = tuple(sorted({*_failures(mine), *without}))
    return Side(name, fabric, run, launches, invalid, cells, failed, accounts=accounts)


Named = dict[tuple[str, int], CellKey]
"""The measured cells of some launches: a launch's name and the cell's number -> the cell."""


class _Keys:
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


def _read_rows(
    launch: StoredLaunch, index: int, rows: pl.DataFrame, parts: dict[CellKey, _Parts], keys: _Keys, named: Named
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


def _add_printed(part: _Parts, index: int, row: dict[str, Any]) -> None:
    part.is_printed |= row["figure_of_merit"] is not None
    if row["printed_step"] is not None:
        if not part.printed_steps.size:
            part.printed_steps = np.full_like(part.launch_values, np.nan)
        part.printed_steps[index] = row["printed_step"]


def _read_samples(
    launches: Sequence[tuple[StoredLaunch, int, pl.DataFrame]], parts: dict[CellKey, _Parts], named: Named
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


def _add(part: _Parts, index: int, key: CellKey, values: Floats) -> None:
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
        part.tails.setdefault(tail, np.full_like(part.launch_values, np.nan))[index] = bad
    if key.metric.is_time:
        if part.means is None:
            part.means = np.full_like(part.launch_values, np.nan)
        part.means[index] = values.mean()


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


def _whole(key: CellKey, part: _Parts) -> CellMeasured:
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
        values=part.extras,
        gave_nothing=part.expected - int(np.count_nonzero(part.launch_values > 0)),
        expected=part.expected,
        lateness=tuple(part.lateness),
        port_events=part.port_events,
        rdma=tuple(part.rdma),
    )


def _of_all_jobs(part: _Parts) -> Floats:
    """Return how many times a launch's time all jobs of its farm take at the rate of those that it did; 1 where it is no farm.

    A job that failed for good is no work: times are compared for as many jobs done.
    """
    if DONE not in part.extras or JOBS not in part.extras:
        return np.ones_like(part.launch_values)
    done, jobs = part.extras[DONE], part.extras[JOBS]
    return np.where(done > 0, jobs / np.where(done > 0, done, 1.0), 1.0)


def _failures(rows: pl.DataFrame) -> tuple[FailedCell, ...]:
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
