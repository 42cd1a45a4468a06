"""Reads runs into sides: for each fabric and cell one value of each launch, and all samples pooled.

What a launch's value is, `record.values` says. One launch is read at a time, each sample once. Invalid launches are left out here,
once, and named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from fabricbench.analysis.cell_parts import Keys, Named, Parts, failures, read_rows, read_samples, whole
from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.machines import machine_traits
from fabricbench.analysis.measured import (
    AFTER,
    BEFORE,
    COUNTS,
    TAILS,
    CellMeasured,
    Configuration,
    FailedCell,
    Floats,
    Side,
    blocks_of,
    cell_name,
    in_order,
    plain_key,
)
from fabricbench.analysis.repeated_texts import Repeated, counted_once, repeated_texts
from fabricbench.errors import UsageError
from fabricbench.record.account import account_of, joined
from fabricbench.record.integrity import data_hash
from fabricbench.record.port_counters import PortEvent
from fabricbench.record.run_account import SubjectAccount
from fabricbench.record.store import Run, StoredLaunch
from fabricbench.record.values import NO_VALUE


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


Wanted = Callable[[str, CellKey], bool]
"""Tells by the name of a fabric and a cell whether it is read."""


def read_sides(
    runs: Sequence[Run] = (),
    *,
    before: Sequence[Run] = (),
    after: Sequence[Run] = (),
    configurations: Sequence[Configuration] = (),
    wanted: Wanted | None = None,
) -> list[Side]:
    """Return the sides of one run (its fabrics), each shared fabric before and after, or each of several configurations.

    Two `runs` are one before and one after; `before` and `after` may be any number of runs each. UsageError if anything else is
    given, a run twice, or runs before and after that share no fabric; NothingMeasured where no launch of any counts.

    Of one run only the cells that are `wanted` may be read: no sample of any other.
    """
    if configurations:
        return _read(configurations)
    if len(runs) == 1 and not before and not after:
        testbed = runs[0].manifest.testbed
        are_apart = len(testbed.node_sets) > 1
        return _read(
            [
                Configuration(one.name, one.name, (runs[0],), traits=machine_traits(runs[0], one) if are_apart else {})
                for one in testbed.fabrics
            ],
            wanted,
        )
    if len(runs) == 2 and not before and not after:
        before, after = runs[:1], runs[1:]
    elif runs or not before or not after:
        raise UsageError(
            f"{len(runs)} run directories were given, {len(before)} before and {len(after)} after",
            hint="give one (its fabrics are compared), two (before, after), or --before and --after with several each",
        )
    return _read(
        [
            Configuration(name + when, name, tuple(some))
            for name in _shared_names([*before, *after])
            for some, when in ((before, BEFORE), (after, AFTER))
        ]
    )


def _shared_names(runs: Sequence[Run]) -> list[str]:
    """Return the fabrics that all runs have; UsageError where there is none."""
    check_copies(runs)
    names = [[fabric.name for fabric in run.manifest.testbed.fabrics] for run in runs]
    shared = [name for name in names[0] if all(name in others for others in names)]
    if not shared:
        raise UsageError(
            "the runs share no fabric: "
            + ", ".join(f"{', '.join(of_run)} in {run.path}" for of_run, run in zip(names, runs, strict=True)),
            hint="a comparison of runs sets each fabric against itself, before and after",
        )
    return shared


def check_copies(runs: Sequence[Run]) -> None:
    """Raise UsageError where one run stands for two: a copy is the same data, wherever it lies."""
    marks = [data_hash(run.path) for run in runs]
    twice = [run.path for run, mark in zip(runs, marks, strict=True) if marks.count(mark) > 1]
    if twice:
        raise UsageError(
            f"{twice[0]} is given twice, or is a copy of another that is given",
            hint="each run counts once; the same data twice would pass for two measurements",
        )


def _read(configurations: Sequence[Configuration], wanted: Wanted | None = None) -> list[Side]:
    """Return a side for each configuration; NothingMeasured where none has anything."""
    runs = list({run.path: run for one in configurations for run in one.runs}.values())
    repeated = repeated_texts(runs) if len(runs) > 1 else {}
    tables = {run.path: (run.cells(), account_of(run), Keys(run)) for run in runs}
    sides = []
    for one in configurations:
        of_runs = []
        for run in one.runs:
            table, account, keys = tables[run.path]
            accounts = account.of(one.fabric)
            of_runs.append(_read_side(run, one.fabric, one.name, table, accounts, repeated, wanted, keys))
        sides.append(replace(_joined(of_runs), factors=one.factors, traits=one.traits))
    if not any(side.cells for side in sides):
        raise NothingMeasured(runs)
    return sides


def _joined(sides: Sequence[Side]) -> Side:
    """Return the sides of several runs as one."""
    if len(sides) == 1:
        return sides[0]
    widths = [len(side.blocks) for side in sides]
    launches, first = [], 0
    for side in sides:
        launches += [_in_block(launch, first + launch.block) for launch in side.launches]
        first += max((launch.block for launch in side.run.launches), default=-1) + 1  # the same on every fabric
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
        stamped={
            key: _joined_cell([side.stamped[key] for side in sides], widths)
            for key in sides[0].stamped
            if all(key in side.stamped for side in sides)
        },
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
        lower=in_a_row([cell.lower for cell in cells]) if any(cell.lower is not None for cell in cells) else None,
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
    keys: Keys,
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
    parts: dict[CellKey, Parts] = defaultdict(lambda: Parts(np.full(len(columns), np.nan)))
    mine = table.filter(pl.col("fabric").cast(pl.String) == fabric.name, pl.col("is_valid"))
    if wanted is not None:
        rows_of = mine.filter(pl.col("metric").is_not_null())
        mine = rows_of.filter([wanted(fabric.name, keys.of(row)) for row in rows_of.iter_rows(named=True)])
    by_launch = {str(key[0]): rows for key, rows in mine.partition_by("launch_id", as_dict=True).items()}
    read = [(one, columns[one.block], by_launch[one.launch_id]) for one in launches if one.launch_id in by_launch]
    named: Named = {}
    for launch, index, rows in read:
        read_rows(launch, index, rows, parts, keys, named)
    read_samples(read, parts, named)
    measured = {key: whole(key, parts[key]) for key in sorted(parts, key=in_order) if parts[key].has_value}
    cells = {key: cell for key, cell in measured.items() if plain_key(key) is None}
    stamped = {plain: cell for key, cell in measured.items() if (plain := plain_key(key)) is not None}
    without = {
        FailedCell(cell_name(key), NO_VALUE, "no-value", key.layer, key.pattern)
        for key, part in parts.items()
        if part.count and not part.has_value
    }
    failed = tuple(sorted({*failures(mine), *without}))
    return Side(name, fabric, run, launches, invalid, cells, failed, accounts=accounts, stamped=stamped)
