"""Cells beside a congestor against the same cells alone: the congestion impact factor, paired within launches.

The factor of a launch is taken of its own numbers, in full precision, before anything is averaged or rounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.comparing import number
from fabricbench.analysis.findings import Congestion, CongestorFacts, Interval
from fabricbench.analysis.measured import CellMeasured, Side, log_of
from fabricbench.analysis.summary import interval
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.statistics.order import median_interval
from fabricbench.statistics.ratios import paired_ratios

Floats = NDArray[np.float64]


def find_congestions(sides: Sequence[Side], confidence: float) -> list[Congestion]:
    """Return every cell that was measured beside a congestor and alone, side by side."""
    found = []
    for side in sides:
        alone = {_name(cell): cell for cell in side.cells.values() if cell.facts.congestor is None}
        found += [
            _congestion(side, alone[_name(cell)], cell, cell.facts.congestor, confidence)
            for cell in side.cells.values()
            if cell.facts.congestor is not None and _name(cell) in alone
        ]
    return found


def _name(cell: CellMeasured) -> tuple[object, ...]:
    """Return what a cell beside a congestor has in common with the same cell alone."""
    key, facts = cell.key, cell.facts
    parameters = tuple(sorted(facts.parameters.items()))
    return key.layer, key.pattern, key.receive, key.message_bytes, facts.ranks, parameters


def _congestion(
    side: Side, alone: CellMeasured, beside: CellMeasured, congestor: PlanCongestor, confidence: float
) -> Congestion:
    is_time = alone.key.metric.is_time

    def impact(isolated: Floats, congested: Floats) -> Interval | None:
        if not is_time and np.any(congested == 0):
            return None  # without end in that launch: the mean over the others would hide it
        times = log_of(congested) - log_of(isolated) if is_time else log_of(isolated) - log_of(congested)
        ratios = paired_ratios(times, confidence)
        if not ratios.launches[0]:
            return None
        return Interval(value=float(ratios.ratio[0]), low=number(ratios.low[0]), high=number(ratios.high[0]))

    both = ~np.isnan(alone.launch_values) & ~np.isnan(beside.launch_values)
    launches = max(len(side.launches), 1)
    return Congestion(
        fabric=side.name,
        key=alone.key,
        congestor=CongestorFacts(
            layer=congestor.layer,
            pattern=congestor.pattern,
            message_bytes=congestor.message_bytes,
            flows=int(congestor.parameters.get("flows", 1)),
            ranks=congestor.ranks,
            is_idle=congestor.is_idle,
        ),
        launches=int(np.count_nonzero(both)),
        samples_a_launch=min(alone.pooled.size, beside.pooled.size) // launches,
        isolated=interval(median_interval(alone.launch_values, confidence)),
        congested=interval(median_interval(beside.launch_values, confidence)),
        impact=impact(alone.launch_values, beside.launch_values),
        impact_p99=impact(alone.tails[0.99], beside.tails[0.99]),
        impact_p999=impact(alone.tails[0.999], beside.tails[0.999]),
    )
