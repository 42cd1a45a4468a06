"""One-way latencies by clocks that agree: each direction, their sum beside the round trip, and the bound of the clocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.channels import Directions, read_directions
from fabricbench.analysis.findings import Interval, OneWay
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.summary import interval
from fabricbench.statistics.order import median_interval

Floats = NDArray[np.float64]


def find_one_ways(sides: Sequence[Side], confidence: float) -> list[OneWay]:
    """Return both directions of each one-way cell, side by side."""
    return [
        _one_way(side, side.cells[key], directions, confidence)
        for side in sides
        for key, directions in read_directions(side).items()
    ]


def _one_way(side: Side, cell: CellMeasured, directions: Directions, confidence: float) -> OneWay:
    def told(values: Floats) -> Interval:
        return interval(median_interval(values, confidence))

    of_cell = cell.greatest("clock_error_ns")
    begin, end = (_worst(side, directions, phase) for phase in ("begin", "end"))
    begin = begin if of_cell is None else of_cell
    return OneWay(
        fabric=side.name,
        key=cell.key,
        source=directions.source,
        destination=directions.destination,
        launches=int(np.count_nonzero(~np.isnan(directions.forth))),
        forth=told(directions.forth),
        back=told(directions.back),
        total=told(directions.forth + directions.back),
        round_trip=told(cell.launch_values),
        asymmetry=told(directions.forth - directions.back),
        clock_bound_ns=max((bound for bound in (begin, end) if bound is not None), default=None),
        clock_bound_begin_ns=begin,
        clock_bound_end_ns=end,
        is_shared_clock=_is_shared(side, directions),
    )


def _worst(side: Side, directions: Directions, phase: str) -> float | None:
    """Return the greatest bound over launches of the difference of the two ranks' clocks; None where no launch tells."""
    sums = []
    for launch in side.launches:
        bounds = {clock.rank: clock.error_ns for clock in launch.summary.clocks if clock.phase == phase}
        if bounds.keys() >= {directions.source, directions.destination}:
            sums.append(bounds[directions.source] + bounds[directions.destination])
    return max(sums, default=None)


def _is_shared(side: Side, directions: Directions) -> bool:
    ranks = {directions.source, directions.destination}
    clocks = [clock for launch in side.launches for clock in launch.summary.clocks if clock.rank in ranks]
    return bool(clocks) and all(clock.is_shared for clock in clocks)
