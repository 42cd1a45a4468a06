"""The ladder: what each layer adds to the round trip of the layer below, and what it loses of the line rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from fabricbench.analysis.findings import CellKey, Interval, LadderStep, is_basic
from fabricbench.analysis.instrument import wire_shares
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.node_sets import blocks_of, on_leading_nodes
from fabricbench.analysis.summary import interval
from fabricbench.model import Layer, Metric, Receive
from fabricbench.statistics.order import median_interval


def build_ladder(sides: Sequence[Side], confidence: float) -> list[LadderStep]:
    """Return a step for each network layer of each side, from the lowest up.

    Round trips are those of the smallest message that all network layers of all sides have, and what a layer adds is
    the median over launches of the difference within a launch. Without such a message each layer has its own smallest one and
    nothing is said about what it adds. Throughput is the best over message sizes; what a layer loses is told at the largest
    message that it and the layer below both have.
    """
    leading = on_leading_nodes(dict.fromkeys(key for side in sides for key in side.cells), blocks_of(sides))
    keys = frozenset(key for key in leading if _is_network(key) and is_basic(key))
    receive = _main_receive(keys)
    size = _common_size(sides, keys, receive)
    return [step for side in sides for step in _of_side(side, keys, receive, size, confidence)]


def _main_receive(keys: AbstractSet[CellKey]) -> Receive:
    """Return how most layers wait: a ladder must not mix sleeping and spinning; blocking where both are as many."""
    rungs = {(key.layer, key.receive) for key in keys}
    seen = Counter(receive for _, receive in rungs if receive is not Receive.LIBRARY)
    return Receive.POLLING if seen[Receive.POLLING] > seen[Receive.BLOCKING] else Receive.BLOCKING


def _is_network(key: CellKey) -> bool:
    return key.layer is not Layer.MEMORY


def _rungs(
    side: Side, keys: AbstractSet[CellKey], receive: Receive, metric: Metric
) -> dict[Layer, dict[int, CellMeasured]]:
    rungs: dict[Layer, dict[int, CellMeasured]] = {}
    for key, cell in side.cells.items():
        if key in keys and key.metric is metric and key.receive in (receive, Receive.LIBRARY):
            rungs.setdefault(key.layer, {})[key.message_bytes] = cell
    return {layer: rungs[layer] for layer in Layer if layer in rungs}


def _common_size(sides: Sequence[Side], keys: AbstractSet[CellKey], receive: Receive) -> int | None:
    sizes = [set(cells) for side in sides for cells in _rungs(side, keys, receive, Metric.ROUND_TRIP_TIME).values()]
    common = set.intersection(*sizes) if sizes else set()
    return min(common, default=None)


def _of_side(
    side: Side, keys: AbstractSet[CellKey], receive: Receive, size: int | None, confidence: float
) -> list[LadderStep]:
    trips = _rungs(side, keys, receive, Metric.ROUND_TRIP_TIME)
    rates = _rungs(side, keys, receive, Metric.THROUGHPUT)
    steps: list[LadderStep] = []
    below: CellMeasured | None = None
    rates_below: dict[int, CellMeasured] = {}
    for layer in [layer for layer in Layer if layer in trips or layer in rates]:
        trip = trips[layer][size if size is not None else min(trips[layer])] if layer in trips else None
        best = (
            max(rates[layer].values(), key=lambda cell: float(np.nanmedian(cell.launch_values)))
            if layer in rates
            else None
        )
        rate = interval(median_interval(best.launch_values, confidence)) if best else None
        shares = wire_shares(side, best, rate.value) if best and rate else (None, None)
        waits = next(cell.key.receive for cell in (trip, best) if cell)
        steps.append(
            LadderStep(
                fabric=side.name,
                layer=layer,
                receive=waits,
                round_trip_message_bytes=trip.key.message_bytes if trip else None,
                round_trip=interval(median_interval(trip.launch_values, confidence)) if trip else None,
                added_round_trip=_added(trip, below, confidence) if size is not None else None,
                throughput_message_bytes=best.key.message_bytes if best else None,
                throughput=rate,
                share_of_line_rate=shares[0],
                share_of_payload_rate=shares[1],
                lost_at_message_bytes=max(rates.get(layer, {}).keys() & rates_below.keys(), default=None),
                lost_share_of_line_rate=_lost(side, rates.get(layer, {}), rates_below),
            )
        )
        below, rates_below = trip or below, rates.get(layer, rates_below)
    return steps


def _lost(side: Side, rates: dict[int, CellMeasured], rates_below: dict[int, CellMeasured]) -> float | None:
    """Return the share of the line rate lost against the layer below, at the largest message that both have.

    The best of each would compare unlike things: a frame carries at most the MTU, a datagram above it many frames.
    """
    common = max(rates.keys() & rates_below.keys(), default=None)
    if common is None:
        return None
    here, below = (_share_of_line_rate(side, cells[common]) for cells in (rates, rates_below))
    return None if here is None or below is None else below - here


def _share_of_line_rate(side: Side, cell: CellMeasured) -> float | None:
    return wire_shares(side, cell, float(np.nanmedian(cell.launch_values)))[0]


def _added(trip: CellMeasured | None, below: CellMeasured | None, confidence: float) -> Interval | None:
    if trip is None or below is None:
        return None
    differences = trip.launch_values - below.launch_values
    return None if np.isnan(differences).all() else interval(median_interval(differences, confidence))
