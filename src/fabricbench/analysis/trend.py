"""The trend of tests over runs: each run's value, and where the runs' values changed.

Only like is set beside like: a series has the runs of one campaign on one testbed, of one fabric, test and origin, and no run in
which the test was another one than in the newest. A run is what is repeated: its launches give its own interval, and changes are
looked for among runs, since sessions differ by more than launches do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from fabricbench.analysis.change import differences, redefined
from fabricbench.analysis.comparing import check_levels, number
from fabricbench.analysis.findings import CellKey, Interval
from fabricbench.analysis.findings.trend import Trend, TrendChange, TrendPoint, TrendSeries
from fabricbench.analysis.measured import CellMeasured, Side, in_order
from fabricbench.analysis.sides import NothingMeasured, Wanted, read_sides
from fabricbench.errors import UsageError
from fabricbench.quantity import count, enumeration
from fabricbench.record.account import DOUBTED_SHARE
from fabricbench.record.past_run import PassedOver, PastRun, past_run
from fabricbench.record.provenance import Origin, Proof, marks_of
from fabricbench.record.run_state import State
from fabricbench.record.store import Run
from fabricbench.statistics.change_points import (
    MINIMUM_SEGMENT,
    MOST_PERMUTATIONS,
    ChangePoint,
    change_points,
    dependence,
)
from fabricbench.statistics.ratios import Ratios, Rounding, paired_ratios, unpaired_ratios


@dataclass(frozen=True)
class _Kind:
    """What runs must have in common to be of one series."""

    campaign: str
    testbed: str
    fabric: str
    origins: tuple[Origin, ...]


@dataclass
class _Series:
    """What was read of a series so far, newest run first."""

    newest: Side
    """Of the newest run that has the test."""
    unit: str = ""
    points: list[TrendPoint] = field(default_factory=list)
    step: float = 0.0
    """The coarsest step in which values are told, relative to them."""
    is_unproven: bool = False
    passed_over: list[PassedOver] = field(default_factory=list)


@dataclass(frozen=True)
class History:
    """The runs below a folder, newest first (`record.past_runs`)."""

    folder: str
    runs: Sequence[PastRun]


def trend_up_to(runs: Sequence[Run], history: History, wanted: Wanted, confidence: float) -> Trend:
    """Return the trend of the wanted tests over the runs of one run's campaign on its testbed, up to it, wherever it lies itself.

    UsageError where several runs are given.
    """
    if len(runs) != 1:
        raise UsageError(
            "a history goes with one run, and several are reported",
            hint="report the newest alone, or `fabricbench trend FOLDER`",
        )
    this = past_run(runs[0].path)
    alike = [one for one in history.runs if (one.campaign, one.testbed) == (this.campaign, this.testbed)]
    before = [
        one for one in alike if one.created is not None and this.created is not None and one.created < this.created
    ]
    return find_trend(history.folder, [this, *before], wanted, confidence)


def find_trend(folder: str, runs: Sequence[PastRun], wanted: Wanted, confidence: float = 0.95) -> Trend:
    """Return the trend of the wanted tests over runs. UsageError where there is none, or more than can be tested together."""
    check_levels(0.5, confidence)
    passed_over: list[PassedOver] = []
    found: dict[tuple[_Kind, CellKey], _Series] = {}
    for run in _without_copies(runs, passed_over):
        for side in _sides(run, wanted, passed_over):
            kind = _Kind(run.campaign or "", run.testbed or "", side.fabric.name, _origins(side))
            for key, cell in side.cells.items():
                _add(found.setdefault((kind, key), _Series(side)), run, side, cell, confidence)
    return _trend(folder, found, passed_over, confidence)


def _without_copies(runs: Sequence[PastRun], passed_over: list[PassedOver]) -> Iterable[PastRun]:
    """Yield the runs that can be read, newest first, each once: a copy of a run is the same data, wherever it lies."""
    first: dict[tuple[object, ...], str] = {}
    for run in runs:
        if run.created is None or run.state is State.DAMAGED:
            passed_over.append(PassedOver(path=run.path, reason=f"damaged: {run.reason}"))
            continue
        same = first.setdefault(run.identity, run.path)
        if same == run.path:
            yield run
        else:
            passed_over.append(PassedOver(path=run.path, reason=f"a copy of {same}"))


def _sides(run: PastRun, wanted: Wanted, passed_over: list[PassedOver]) -> Sequence[Side]:
    try:
        return read_sides([Run.open(run.path)], wanted=wanted)
    except NothingMeasured:
        reason = "no launch of these tests counts"
    except UsageError as error:
        reason = error.message
    passed_over.append(PassedOver(path=run.path, reason=reason))
    return ()


def _origins(side: Side) -> tuple[Origin, ...]:
    there = {launch.origin for launch in side.launches}
    return tuple(origin for origin in Origin if origin in there)


def _add(series: _Series, run: PastRun, side: Side, cell: CellMeasured, confidence: float) -> None:
    """Add a run to a series, or why it is passed over."""
    level = paired_ratios(cell.log_values, confidence, rounding=cell.rounding)
    value, low, high = (float(one[0]) for one in (level.ratio, level.low, level.high))
    reason = _why_not(series, side, cell)
    if reason or run.created is None or not np.isfinite(value):
        series.passed_over.append(PassedOver(path=run.path, reason=reason or "its value is no number"))
        return
    point = TrendPoint(
        run=run.path,
        created=run.created,
        value=Interval(value=value, low=number(low), high=number(high)),
        launches=int(level.launches[0]),
        is_dated_by_import=run.is_dated_by_import,
    )
    workload = cell.key.workload
    series.unit = (workload.unit if workload is not None else "") or cell.key.metric.unit
    series.points.append(point)
    series.step = max(series.step, cell.step_share)
    series.is_unproven |= any(launch.proof is Proof.UNKNOWN for launch in side.launches)


def _why_not(series: _Series, side: Side, cell: CellMeasured) -> str:
    """Return why a run is not set beside the newest one of a series; empty where it is."""
    account = side.account_of(cell.subject)
    is_workload = cell.key.workload is not None  # whose definition is no part of its name
    others = redefined(side, series.newest).get(cell.key, ()) if is_workload and series.newest is not side else ()
    if others:
        return f"not the same {enumeration(others)} as in {series.newest.run.path}"
    if account is not None and account.lost_share > DOUBTED_SHARE:
        lost = f"{account.lost_starts} of {count(account.starts, 'start')}"
        return f"{lost} gave nothing that counts: the rest may be a selection"
    return ""


def _trend(
    folder: str, found: dict[tuple[_Kind, CellKey], _Series], passed_over: Sequence[PassedOver], confidence: float
) -> Trend:
    """Return what was read, oldest run first, with the changes of every series that has runs enough."""
    if not any(one.points for one in found.values()):
        raise UsageError(
            f"no run below {folder} has a test that was asked for",
            hint="`fabricbench runs` lists the runs, `fabricbench show RUNDIR --summary --format text` the tests of one",
        )
    tested = sum(len(one.points) >= 2 * MINIMUM_SEGMENT for one in found.values())
    level = (1.0 - confidence) / max(tested, 1)
    if level * (MOST_PERMUTATIONS + 1) < 1.0:
        raise UsageError(
            f"{tested:,} series together are more than changes can be told of at {confidence:g}",
            hint="choose tests: --test 'tcp *' --fabric NAME",
        )
    places = sorted(found, key=lambda place: (place[0].campaign, place[0].testbed, in_order(place[1]), place[0].fabric))
    series = tuple(_whole(kind, key, found[kind, key], confidence, level, tested) for kind, key in places)
    return Trend(
        folder=folder,
        confidence=confidence,
        minimum_segment=MINIMUM_SEGMENT,
        tested=tested,
        series=series,
        marks=marks_of((one.fabric, origin) for one in series for origin in one.origins),
        unproven=tuple(dict.fromkeys(one.fabric for one in series if one.is_unproven)),
        passed_over=tuple(passed_over),
    )


def _whole(kind: _Kind, key: CellKey, read: _Series, confidence: float, level: float, tested: int) -> TrendSeries:
    points = read.points[::-1]
    logs = np.log([point.value.value for point in points])
    found = change_points(logs, level)
    borders = [0, *(one.index for one in found), len(points)]
    parts = [logs[start:end] for start, end in pairwise(borders)]
    rounding = Rounding.of(read.step).against(Rounding.of(read.step))
    ratios = [unpaired_ratios(a, b, confidence, rounding) for a, b in pairwise(parts)]
    changes = [_change(kind, points, one, ratio, tested) for one, ratio in zip(found, ratios, strict=True)]
    return TrendSeries(
        campaign=kind.campaign,
        testbed=kind.testbed,
        fabric=kind.fabric,
        key=key,
        origins=kind.origins,
        unit=read.unit,
        points=tuple(points),
        levels=tuple(float(np.exp(part.mean())) for part in parts if part.size),
        changes=tuple(changes),
        autocorrelation=dependence(logs, borders[1:-1]),
        is_unproven=read.is_unproven,
        passed_over=tuple(read.passed_over),
    )


def _change(kind: _Kind, points: Sequence[TrendPoint], found: ChangePoint, ratio: Ratios, tested: int) -> TrendChange:
    """Return a change with what the two runs that it lies between tell of themselves."""
    before, after = points[found.index - 1], points[found.index]
    value, low, high = (float(one[0]) for one in (ratio.ratio, ratio.low, ratio.high))
    return TrendChange(
        index=found.index,
        before=before,
        after=after,
        ratio=Interval(value=value, low=number(low), high=number(high)),
        p_adjusted=min(1.0, found.p_value * tested),
        differences=tuple(differences(_described(before.run, kind.fabric), _described(after.run, kind.fabric))),
    )


def _described(path: str, fabric: str) -> Side:
    """Return what a run tells of a fabric and its machines, without a value."""
    run = Run.open(path, headers_only=True)
    launches = tuple(one for one in run.launches if one.fabric == fabric and one.is_valid)
    return Side(fabric, run.manifest.testbed.fabric(fabric), run, launches, (), {}, ())
