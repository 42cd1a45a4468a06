"""What the logical channels of floods and of one-way cells did, an array over the launches of a side for each cell.

And what arithmetic says of patterns of many ranks: the share of a link that each channel gets, and the work of a collective. Links
are full-duplex and meet in a switch that never blocks, so each direction of each host's own link is all that channels share: a
channel gets the payload rate of a link over the channels in the busiest direction that it uses. `docs/patterns.md` derives each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.measured import Side, key_of
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.pattern_facts import Family, Load
from fabricbench.patterns import PATTERNS, metric_of
from fabricbench.record.lines import Quantity
from fabricbench.record.values import channel_batches
from fabricbench.testbed.wire import Wire

Floats = NDArray[np.float64]

FLOODS = tuple(pattern for pattern, facts in PATTERNS.items() if facts.family is Family.FLOOD)


@dataclass(frozen=True)
class Sharing:
    """How the channels of a flood shared what there was: Jain's index and the share of messages that were lost."""

    fairness: Floats
    loss_share: Floats


@dataclass(frozen=True)
class Directions:
    """The median latency of each direction, from the first rank to the second (`forth`) and `back`, in ns."""

    source: int
    destination: int
    forth: Floats
    back: Floats


def read_sharing(side: Side) -> dict[CellKey, Sharing]:
    """Return how the channels of each flood shared, launch by launch."""
    rows = _channels(side, FLOODS, Quantity.TRANSFER)
    found: dict[CellKey, Sharing] = {}
    for key, index, channels in rows:
        sharing = found.setdefault(key, Sharing(*(np.full(len(side.blocks), np.nan) for _ in range(2))))
        bytes_moved, time_ns = (channels[name].to_numpy().astype(np.float64) for name in ("bytes", "time_ns"))
        sharing.fairness[index] = jain_index(bytes_moved / np.maximum(time_ns, 1.0))
        sent = int(channels["sent"].sum())
        if sent:
            sharing.loss_share[index] = channels["lost"].sum() / sent
    return found


def read_directions(side: Side) -> dict[CellKey, Directions]:
    """Return the latency of both directions of each one-way cell, launch by launch; cells that lack a direction are left out."""
    found: dict[CellKey, Directions] = {}
    for key, index, channels in _channels(side, (Pattern.ONEWAY,), Quantity.ONE_WAY):
        source, destination = side.cells[key].facts.ranks[:2]
        medians = {(row["source"], row["destination"]): row["median_ns"] for row in channels.iter_rows(named=True)}
        if medians.keys() >= {(source, destination), (destination, source)}:
            empty = [np.full(len(side.blocks), np.nan) for _ in range(2)]
            one = found.setdefault(key, Directions(source, destination, *empty))
            one.forth[index], one.back[index] = medians[source, destination], medians[destination, source]
    return found


def jain_index(rates: Floats) -> float:
    """Return how even rates are: 1 if all are the same, 1/n if one has everything; NaN where there is nothing to share.

    Source: Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301 (1984).
    """
    squares = float(np.square(rates).sum())
    return float(rates.sum()) ** 2 / (rates.size * squares) if squares > 0 else float("nan")


Row = tuple[CellKey, int, pl.DataFrame]
"""A cell, which launch of its side, and a row for each channel: what it moved, how long that took, its median, what was lost."""


def _channels(side: Side, patterns: tuple[Pattern, ...], quantity: Quantity) -> Iterator[Row]:
    """Yield the channels of each launch and cell, one launch in memory at a time."""
    if any(key.pattern in patterns for key in side.cells):
        for run in range(len(side.runs)):
            yield from _channels_of_run(side, run, patterns, quantity)


def _channels_of_run(side: Side, run: int, patterns: tuple[Pattern, ...], quantity: Quantity) -> Iterator[Row]:
    is_wanted = pl.col("pattern").cast(pl.String).is_in([pattern.value for pattern in patterns])
    keys: dict[str, dict[int, CellKey]] = {}
    for row in side.runs[run].cells().filter(pl.col("status") == "done", is_wanted).iter_rows(named=True):
        if (key := key_of(row)) in side.cells:
            keys.setdefault(str(row["launch_id"]), {})[row["cell"]] = key
    channel = ["cell", "source", "destination", "flow", "round"]
    for launch in side.launches_of_run(run):
        of_launch = keys.get(launch.launch_id, {})
        batches = [
            batch.filter(pl.col("quantity") == quantity.value)
            .group_by(channel)
            .agg(
                pl.col("bytes").sum(),
                pl.col("time_ns").sum(),
                pl.col("time_ns").median().alias("median_ns"),
                pl.col("sent").first(),
                pl.col("lost").first(),
            )
            .collect(engine="streaming")
            for batch in channel_batches(launch.directory, list(of_launch))
        ]
        for of_cell in pl.concat(batches).sort(channel).partition_by("cell") if batches else ():
            yield of_launch[of_cell["cell"][0]], side.blocks.index(launch.block), of_cell


def channels_on_a_link(pattern: Pattern, ranks: int, flows: int) -> int | None:
    """Return how many channels share the busiest direction of a link; None for patterns that do not fill one.

    A ring's links carry one channel in each direction, and so do those of two ranks that stream both ways, of a bisection and of
    pairs; the root of a star, an incast or an outcast has all others on its link, and in a complete graph everybody has.
    """
    match PATTERNS[pattern].load:
        case Load.CHANNEL:
            return flows
        case Load.CHANNEL_OF_EACH:
            return (ranks - 1) * flows
    return None


def channel_rate(
    wire: Wire, mtu: int, layer: Layer, pattern: Pattern, message_bytes: int, *, ranks: int, flows: int
) -> float | None:
    """Return what a channel gets, in the pattern's unit (bit/s, or message/s); None where arithmetic has nothing to say."""
    sharing = channels_on_a_link(pattern, ranks, flows)
    possible = wire.payload_rate_bit_s(layer, message_bytes, mtu)
    if not sharing or possible is None:
        return None
    of_channel = possible / sharing
    return of_channel / (8 * message_bytes) if metric_of(pattern) is Metric.MESSAGE_RATE else of_channel
