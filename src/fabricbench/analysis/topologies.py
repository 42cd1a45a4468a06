"""Patterns of many ranks: what their channels carry, beside what arithmetic says of the link, and how they share it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabricbench.analysis.arithmetic import channel_rate
from fabricbench.analysis.channels import Sharing, read_sharing
from fabricbench.analysis.findings import Interval, Topology
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.summary import interval
from fabricbench.patterns import PATTERNS, Family
from fabricbench.statistics.order import median_interval

GROUPS = (Family.LOCKSTEP, Family.FLOOD)


def find_topologies(sides: Sequence[Side], confidence: float) -> list[Topology]:
    """Return every flood and every pattern of turns that was measured alone, side by side."""
    found = []
    for side in sides:
        sharing = read_sharing(side)
        found += [
            _topology(side, cell, sharing.get(key), confidence)
            for key, cell in side.cells.items()
            if PATTERNS[key.pattern].family in GROUPS and cell.facts.congestor is None
        ]
    return found


def _topology(side: Side, cell: CellMeasured, sharing: Sharing | None, confidence: float) -> Topology:
    key, facts = cell.key, cell.facts
    is_turn = key.metric.is_time
    values = cell.launch_values
    whole = interval(median_interval(facts.operation_bytes * 8e9 / values if is_turn else values, confidence))
    each = scaled(whole, 1.0 / facts.channels)
    wire = side.fabric.wire
    arithmetic = None
    if wire is not None:
        arithmetic = channel_rate(
            wire,
            side.fabric.mtu,
            key.layer,
            key.pattern,
            key.message_bytes,
            ranks=len(facts.ranks),
            flows=facts.flows,
        )
    return Topology(
        fabric=side.name,
        key=key,
        ranks=len(facts.ranks),
        flows=facts.flows,
        channels=facts.channels,
        launches=int(np.count_nonzero(~np.isnan(values))),
        throughput=whole,
        channel_throughput=each,
        arithmetic=arithmetic,
        share_of_arithmetic=None if arithmetic is None else scaled(each, 1.0 / arithmetic),
        time=interval(median_interval(values, confidence)) if is_turn else None,
        fairness=None if sharing is None else over_launches(sharing.fairness, confidence),
        loss_share=None if sharing is None else over_launches(sharing.loss_share, confidence),
    )


def over_launches(values: np.ndarray[tuple[int], np.dtype[np.float64]], confidence: float) -> Interval | None:
    """Return the median over launches with its interval; None where no launch has a value."""
    return None if np.isnan(values).all() else interval(median_interval(values, confidence))


def scaled(one: Interval, factor: float) -> Interval:
    """Return an interval times a positive factor."""
    low, high = (None if bound is None else bound * factor for bound in (one.low, one.high))
    return Interval(value=one.value * factor, low=low, high=high)
