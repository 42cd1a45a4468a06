"""What can stand on the axis of a plot, of every test of a run: levels, the gains of loads over ranks, coefficients.

A level is the median over launches of one value each, as in summaries; gains are those of `loads`, coefficients of `comparing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fabricbench.analysis.comparing import compare_all
from fabricbench.analysis.configurations import traits_of_run, written
from fabricbench.analysis.expectation import Launches, seconds_of
from fabricbench.analysis.findings import CellKey, Interval
from fabricbench.analysis.findings.plot import BOARD, DATE, FABRIC, MPI, NODES, PROCESSOR, RUN, PlotY, Trait, Traits
from fabricbench.analysis.instrument import impossible
from fabricbench.analysis.load_subjects import subject_of
from fabricbench.analysis.loads import nodes_of, speed_ups_of
from fabricbench.analysis.measured import CellMeasured, Floats, Side
from fabricbench.analysis.pairing import pair
from fabricbench.analysis.summary import over_launches
from fabricbench.analysis.traits import DOOR, Where, traits_of
from fabricbench.errors import UsageError
from fabricbench.model import ONE_SIDED_DOORS, Metric, Pattern
from fabricbench.record.store import Run

MESSAGES = {Pattern.PINGPING: 1, Pattern.SENDRECV: 2, Pattern.EXCHANGE: 4}
"""Of their size, that a rank sends and receives in the time of one operation: what Intel's benchmarks count."""


OF_MACHINES = (PROCESSOR, BOARD, MPI)
"""Traits that tell series apart only if they are asked for: runs that differ in them differ in `run`."""


@dataclass(frozen=True)
class PlotRequest:
    """What is to be drawn. Without `series` these are told apart by what differs; `where` chooses by traits."""

    x: str
    y: PlotY
    series: tuple[str, ...] = ()
    where: Where = field(default_factory=dict)
    baseline: str | None = None


@dataclass(frozen=True)
class PlottedTest:
    """A test that could be drawn."""

    traits: Traits
    y: Interval
    launches: int
    values: tuple[float, ...] = ()
    unit: str = ""
    is_impossible: bool = False

    def key(self, names: Sequence[str]) -> tuple[Trait | None, ...]:
        """Return its values of some traits, None of those that it has not."""
        return tuple(self.traits.get(name) for name in names)


@dataclass(frozen=True)
class PlottedRun:
    """A run under the name that tells it from the others, its sides, and the launches of each side's loads."""

    name: str
    run: Run
    sides: list[Side]
    launches: Mapping[str, Launches]
    asked: PlotRequest

    def traits(self, side: Side, key: CellKey) -> Traits:
        """Return all traits of a cell of a side."""
        traits = traits_in(self.run, self.name, side.name, key, self.asked)
        nodes = _nodes(side, side.cells[key], self.launches[side.name])
        return traits if nodes is None else traits | {NODES: nodes}


_MEASURED: Mapping[PlotY, Metric] = {
    PlotY.ROUND_TRIP: Metric.ROUND_TRIP_TIME,
    PlotY.OPERATION_TIME: Metric.OPERATION_TIME,
    PlotY.THROUGHPUT: Metric.THROUGHPUT,
    PlotY.MESSAGE_RATE: Metric.MESSAGE_RATE,
}


def has_y(y: PlotY, key: CellKey) -> bool:
    """Tell whether a test has what stands on an axis."""
    if y is PlotY.COEFFICIENT:
        return key.metric.is_time
    if key.workload is not None:
        is_rate = key.metric is Metric.WORK_RATE
        of_loads = {PlotY.SECONDS: not key.workload.is_network_test, PlotY.RATE: is_rate}
        return of_loads.get(y, y.is_paired)
    if y is PlotY.HALF_ROUND_TRIP:
        return _is_there_and_back(key)
    is_counted = y is PlotY.THROUGHPUT and (_is_there_and_back(key) or key.pattern in MESSAGES)
    return key.metric is _MEASURED.get(y) or (is_counted and key.message_bytes > 0)


def _is_there_and_back(key: CellKey) -> bool:
    """Whether a test is a message there and the same back, so that half of its time is that of one."""
    return key.pattern is Pattern.PINGPONG and dict(key.parameters).get(DOOR) not in ONE_SIDED_DOORS


def level_values(y: PlotY, key: CellKey, values: Floats) -> Floats:
    """Return what the launches' values of a test are as what stands on an axis."""
    if y is PlotY.HALF_ROUND_TRIP:
        return values / 2
    if y is PlotY.THROUGHPUT and key.metric is not Metric.THROUGHPUT:
        # Bits over ns, times 1e9; of a ping-pong one message in half the time.
        messages = MESSAGES.get(key.pattern, 2)
        return np.asarray(8e9 * messages * key.message_bytes / values, dtype=np.float64)
    return values


def tests_of(of: PlottedRun, confidence: float) -> Iterator[PlottedTest]:
    """Yield the tests of a run that have what stands on the axis."""
    if of.asked.y is PlotY.COEFFICIENT:
        yield from _coefficients(of, confidence)
    for side in of.sides:
        if of.asked.y in (PlotY.SPEED_UP, PlotY.EFFICIENCY):
            yield from _gains(of, side, confidence)
        elif of.asked.y is not PlotY.COEFFICIENT:
            levels = (_level(of, side, cell, confidence) for key, cell in side.cells.items() if has_y(of.asked.y, key))
            yield from (level for level in levels if level is not None)


def _level(of: PlottedRun, side: Side, cell: CellMeasured, confidence: float) -> PlottedTest | None:
    y = of.asked.y
    if y is PlotY.SECONDS:
        values = np.array(seconds_of(of.launches[side.name].get(cell.key, ())))
    else:
        values = level_values(y, cell.key, cell.launch_values)
    median = over_launches(values, confidence, cell.rounding) if values.size else None
    if median is None:
        return None
    told = values[~np.isnan(values)]
    return PlottedTest(
        of.traits(side, cell.key),
        median,
        told.size,
        tuple(map(float, told)),
        unit=cell.key.workload.unit if y is PlotY.RATE and cell.key.workload is not None else "",
        is_impossible=impossible(side, cell) is not None,
    )


def _gains(of: PlottedRun, side: Side, confidence: float) -> Iterator[PlottedTest]:
    """Yield the loads of a side on all numbers of ranks; on the fewest they are what they are compared with, which is 1."""
    keys = {key.workload: key for key in side.cells if key.workload is not None}
    bases = set()
    for one in speed_ups_of(side, of.launches[side.name], confidence):
        key = keys[one.workload]
        bases |= {
            base for name, base in keys.items() if name.ranks == one.fewest and subject_of(base) == subject_of(key)
        }
        gain = one.times if of.asked.y is PlotY.SPEED_UP else one.efficiency
        yield PlottedTest(of.traits(side, key), gain, _launches(side, key))
    for key in bases:
        yield PlottedTest(of.traits(side, key), Interval(value=1.0, low=1.0, high=1.0), _launches(side, key))


def _launches(side: Side, key: CellKey) -> int:
    return int(np.count_nonzero(~np.isnan(side.cells[key].launch_values)))


def baseline_of(of: PlottedRun) -> str:
    """Return the fabric of a run that others are compared with: the one asked for, or the first that was measured."""
    names = [side.name for side in of.sides]
    baseline = of.asked.baseline
    if baseline is not None and baseline not in names:
        raise UsageError(
            f"no fabric {baseline} was measured in {of.run.path}", hint=f"choose one of {', '.join(names)}"
        )
    return baseline or names[0]


def _coefficients(of: PlottedRun, confidence: float) -> Iterator[PlottedTest]:
    """Yield (t_B - t_A) / t_A of every time on every fabric B against the baseline A: the comparisons of reports."""
    if not of.sides:
        return
    (a,) = (side for side in of.sides if side.name == baseline_of(of))
    for b in of.sides:
        cells, _ = compare_all([pair(a, b)], 0.5, confidence) if b is not a else ([], [])
        for cell in cells:
            if cell.metric.is_time:
                cannot_be = any(impossible(side, side.cells[cell.key]) is not None for side in (a, b))
                yield PlottedTest(of.traits(b, cell.key), cell.coefficient, cell.launches, is_impossible=cannot_be)


def _nodes(side: Side, cell: CellMeasured, launches: Launches) -> int | None:
    """Return on how many hosts a test ran; None where no launch tells."""
    if cell.key.workload is not None:
        return nodes_of(launches.get(cell.key, ()))
    headers = (launch.summary.header for launch in side.launches)
    hosts = next(({one.rank: one.host for one in header.ranks} for header in headers if header is not None), {})
    return len({hosts[rank] for rank in cell.facts.ranks if rank in hosts}) or None


def traits_in(run: Run, name: str, fabric: str, key: CellKey, asked: PlotRequest) -> Traits:
    """Return the traits of a test that are known before its launches are read; those of its machines if they are asked for."""
    created = run.manifest.created.isoformat(timespec="seconds")
    where: Traits = {RUN: name, FABRIC: fabric, DATE: created}
    of_machines = set(OF_MACHINES) & {asked.x, *asked.series, *asked.where}
    if of_machines:
        where |= {what: written(what, text) for what, text in traits_of_run(run, fabric).items() if what in of_machines}
    return where | traits_of(key)
