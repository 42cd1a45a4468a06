"""Whether to believe the instrument, cell by cell: was the emulated switch on time, and is a value possible at all?

Pure. Tables, warnings and headlines take their doubts from here. What a *host* was too busy for shows elsewhere (missed starts,
outlying launches).

A frame that the switch releases late by d adds d to whatever waits for it. A time (round trip, operation) waits for at least
one frame each way, so d is set against the cell's own typical sample. A rate is all bits over all time: frames that come late
come all the same, and the stretch of time that is measured shifts by d once, so d is set against the whole stretch. A workload's
messages wait for each other, so that delays add up: at most to the time in which the switch held any frame that should have left
(the union over frames, which the switch counts), as at any one time what waits longest is held up by one of them. Frames that
the switch lost by itself have no such bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.findings.doubts import Doubt, Number, escaped, percentage, scaled_number, whole
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import scale_seconds
from fabricbench.record.launch import CellLateness
from fabricbench.record.store import StoredLaunch
from fabricbench.testbed.wire import (
    ETHERNET_HEADER_BYTES,
    IP_HEADER_BYTES,
    TCP_HEADER_BYTES,
    Wire,
    datagram_frames,
)

LATE_SHARE = 0.1
"""Lateness (p99) from which a time is in doubt, as a share of the typical sample: below it the tail of the distribution moves by
less than launches of the quiet lab scatter (15 % for the smallest round trips), above it the tail is the switch's own."""

LATE_STRETCH = 0.02
"""Lateness from which a rate or a workload is in doubt, as a share of all the time that was measured: the usual margin below
which differences do not matter."""

LATE_LAUNCHES = 0.5
"""Share of a cell's launches that must have been late: what happened in fewer is an outlying launch, and its median is not the
cell's."""

GRAVE_FACTOR = 1.0
"""Lateness (p99) of a whole sample and more: 1 % of such frames, two in each round trip, move the mean by the usual margin."""

TAIL_ONLY = "nine in ten were on time: the median stands, the tail does not"

POSSIBLE_EXCESS = 0.03
"""A value may be better than the wire allows by this much: a short stream counts what was in buffers. It is told all the same."""

NOMINAL = 5e-4
"""A wire is known to this much: a link may be 100 ppm off its rate (IEEE 802.3), clocks err, and more digits are not printed."""

LOST_BY_ITSELF = ("unsent_frames", "ring_lost_frames")
"""What an emulated switch counts of frames that no fabric lost. Whoever waits until they are sent again waits longer than they
were held."""

NO_MORE = "delayed it by no more"

RECEIVED, DROPPED = "received_frames", "dropped_frames"
"""What the ports of an emulated switch count: frames that came, and frames for which a port had no room."""

MESSAGES_OF_A_TRIP = 2
"""One there, one back."""
MOST_LATE = 0.4
"""Of the samples: where more may have waited for a late frame, the quantiles further out are no bound worth having."""

TRIPS = (Pattern.PINGPONG, Pattern.ONEWAY, Pattern.PACED)
"""Patterns whose sample is one message there and one back between two ranks, and nothing else."""


@dataclass(frozen=True)
class SwitchLateness:
    """How late the emulated switch released frames while one cell was measured, in ns, over its launches that tell.

    `median_ns` and `worst_ns` are the median and the largest of the launches' 99th percentiles, `maximum_ns` of all frames.
    """

    launches: int
    frames: int
    median_ns: float
    worst_ns: float
    maximum_ns: float


@dataclass(frozen=True)
class LateSwitch:
    """Why a value may be the switch's and not the fabric's: `doubt` says it.

    `factor` is the worst launch's lateness over what it is set against, `share` that of the launches that were late. With
    `is_tail_only` nine frames in ten were on time all the same: a median stands, a tail or a maximum does not.
    """

    factor: float
    share: float
    doubt: Doubt
    is_tail_only: bool = False
    held_share: float | None = None
    """Of a workload: the share of its time in which the switch held any frame."""
    lost_frames: int = 0
    """That the switch lost by itself while the workload ran."""
    delayed_share: float = 1.0
    """Of a time or a rate: by which share of it it may have been delayed at most; 1 where nothing bounds it."""

    @property
    def words(self) -> str:
        """The doubt in words."""
        return str(self.doubt)

    @property
    def delay_share(self) -> float:
        """By which share of its time it may have been delayed at most; 1 where nothing bounds it."""
        if self.lost_frames:
            return 1.0
        return self.delayed_share if self.held_share is None else self.held_share

    @property
    def is_grave(self) -> bool:
        """Whether a comparison of medians is touched; or the tail is so long that even the mean is the switch's."""
        return not self.is_tail_only or self.factor >= GRAVE_FACTOR


def lateness_of(side: Side, key: CellKey) -> SwitchLateness | None:
    """Return how late the switch was during a cell; None where the fabric is real, or the run's version did not tell."""
    told = side.cells[key].lateness
    if not told:
        return None
    p99 = [one.p99 for one in told]
    return SwitchLateness(
        launches=len(told),
        frames=sum(one.count for one in told),
        median_ns=float(np.median(p99)),
        worst_ns=max(p99),
        maximum_ns=max(one.maximum for one in told),
    )


def doubt_of(side: Side, cell: CellMeasured) -> LateSwitch | None:
    """Return why a cell is in doubt: the switch was late in at least LATE_LAUNCHES of its launches; None where it is not."""
    late = lateness_of(side, cell.key)
    if late is None or cell.key.layer is Layer.MEMORY:
        return None
    if PATTERNS[cell.key.pattern].family is Family.WORKLOAD:
        return _held(side, cell, late)
    p99_ns = [one.p99 for one in cell.lateness]
    if not cell.key.metric.is_time:
        measured_ns = cell.total_ns / max(int(np.count_nonzero(~np.isnan(cell.launch_values))), 1)
        rate = _doubt(late, p99_ns, measured_ns / _stretches(cell), LATE_STRETCH, "the time in which it was measured")
        return None if rate is None else replace(rate, delayed_share=min(rate.factor, 1.0))
    noun = "a round trip" if cell.key.metric is Metric.ROUND_TRIP_TIME else "an operation"
    typical_ns = float(np.nanmedian(cell.launch_values))
    limit = LATE_SHARE
    if (
        cell.key.pattern in TRIPS
    ):  # it waits for two frames at least: nine in ten may delay each by half of what matters, and so may all on average
        limit = LATE_STRETCH / MESSAGES_OF_A_TRIP
    is_of_most = np.mean([max(one.p90, one.mean) > limit * typical_ns for one in cell.lateness]) >= LATE_LAUNCHES
    found = _doubt(late, p99_ns, typical_ns, limit if is_of_most else LATE_SHARE, noun)
    if found is not None:
        found = replace(found, delayed_share=delayed_share(side, cell))
    if found is None or is_of_most:
        return found
    tail_only = found.doubt.model_copy(update={"kind": f"{found.doubt.kind}; {escaped(TAIL_ONLY)}"})
    return replace(found, doubt=tail_only, is_tail_only=True)


def delayed_share(side: Side, cell: CellMeasured) -> float:
    """Return by which share of the time that is shown of a cell its launches' medians were delayed at most; 1: nothing bounds it.

    Each bound holds of a median whatever frames were late: at most a share of the samples waited for a frame that was later than
    some quantile of lateness (the union over the frames that a sample waits for), and taking these away moves the median by no more
    than to the quantile of the samples that lies so much further out. A launch is as wrong as the least of its bounds.
    """
    typical = float(np.nanmedian(cell.launch_values))
    frames = _frames_of_a_sample(side, cell.key)
    shares = np.array([min(_bounds_ns(cell, one, frames, typical)) / typical for one in cell.lateness])
    if not shares.size or np.any(shares >= 1.0):
        return 1.0
    return float(-np.expm1(np.mean(np.log1p(-shares))))


def _bounds_ns(cell: CellMeasured, late: CellLateness, frames: int | None, typical_ns: float) -> Iterator[float]:
    """Yield bounds on what lateness added to the median sample of a launch; `frames` it waits for, None where that is not known."""

    def out(share: float) -> float:
        median, further = np.quantile(cell.pooled, [0.5, 0.5 + share])
        return float(further - median)

    yield np.inf
    if late.held_share is not None:  # four times the mean: fewer than a quarter of the samples were delayed by more
        yield 4.0 * late.held_share * typical_ns + out(0.25)
    if frames is None:
        return
    yield 2.0 * late.maximum
    if frames == MESSAGES_OF_A_TRIP:
        yield 4.0 * 2.0 * late.mean + out(0.25)
    for quantile, beyond in ((late.p90, 0.1), (late.p99, 0.01)):
        if frames * beyond <= MOST_LATE:
            yield 2.0 * quantile + out(frames * beyond)


def _frames_of_a_sample(side: Side, key: CellKey) -> int | None:
    """Return how many frames a round trip waits for, there and back; None of what is no round trip of two messages."""
    if key.pattern not in TRIPS:
        return None
    if key.layer not in (Layer.TCP, Layer.RDMA, Layer.MPI):
        return MESSAGES_OF_A_TRIP * max(len(datagram_frames(key.layer, key.message_bytes, side.fabric.mtu)), 1)
    headers = IP_HEADER_BYTES + TCP_HEADER_BYTES if key.layer is Layer.TCP else 0
    return MESSAGES_OF_A_TRIP * max(-(-key.message_bytes // (side.fabric.mtu - headers)), 1)


def _held(side: Side, cell: CellMeasured, late: SwitchLateness) -> LateSwitch | None:
    """Return the doubt of a workload: in enough launches its switch held frames for more than the margin, or lost some itself."""
    shares = np.array([one.held_share for one in cell.lateness if one.held_share is not None])
    launches = [one for one in side.launches if one.subject == cell.subject]
    lost = [counted_by_switch(one, side.fabric.network, LOST_BY_ITSELF).total() for one in launches]
    share = max(float(np.mean(shares > LATE_STRETCH)) if shares.size else 0.0, float(np.mean(np.array(lost) > 0)))
    if share < LATE_LAUNCHES:
        return None
    worst = float(shares.max(initial=0.0))
    frames = "frame" if sum(lost) == 1 else "frames"
    how: tuple[str | Number, ...] = (NO_MORE,)
    if sum(lost):
        how = ("lost ", whole(sum(lost)), f" {frames} itself, which may have delayed it by more")
    doubt = Doubt.of(
        "the emulated switch held some frame longer than it should in up to ",
        percentage(worst),
        " of its time, and ",
        *how,
        " (frames up to ",
        _seconds(late.worst_ns),
        " late, p99 of the worst launch)",
    )
    return LateSwitch(factor=worst, share=share, doubt=doubt, held_share=worst, lost_frames=sum(lost))


def _seconds(ns: float) -> Number:
    return scaled_number(ns, scale_seconds(ns * 1e-9))


def _doubt(
    late: SwitchLateness, late_ns: list[float], typical_ns: float, limit: float, against: str
) -> LateSwitch | None:
    factors = np.array(late_ns) / max(typical_ns, 1e-9)
    share = float(np.mean(factors > limit))
    if share < LATE_LAUNCHES:
        return None
    worst = float(factors.max())
    doubt = Doubt.of(
        "the emulated switch released frames up to ",
        _seconds(late.worst_ns),
        " late (p99 of the worst launch), ",
        *times(worst, against),
    )
    return LateSwitch(factor=worst, share=share, doubt=doubt)


def times(factor: float, noun: str) -> tuple[Number, str]:
    """Return `67 times a round trip`, `2.1 times a round trip`, `34 % of a round trip`, the number apart."""
    if factor < 1.0:
        return percentage(factor, ".2g"), f" of {noun}"
    return Number(value=factor, written=f"{factor:.1f}" if factor < 9.95 else f"{factor:.0f}"), f" times {noun}"


def _stretches(cell: CellMeasured) -> int:
    """Return in how many stretches of time, one after the other, a launch measures a rate."""
    ranks = len(cell.facts.ranks)
    if cell.key.pattern is Pattern.PAIRS_STREAM:
        return max(ranks * (ranks - 1), 1)
    return int(cell.facts.parameters.get("matchings", 1))


@dataclass(frozen=True)
class Excess:
    """By what `share` a value is better than the wire allows; `is_tolerated` where buffers of a short measurement explain it."""

    doubt: Doubt
    is_tolerated: bool
    share: float


def excess_of(side: Side, cell: CellMeasured, value: float) -> Excess | None:
    """Return why a value of a cell cannot be quite true: a rate beyond the wire, a round trip shorter than its bits take."""
    share = wire_shares(side, cell, value)[1]
    if share is not None and share >= 1.0 + NOMINAL:
        carried = " of the payload that the wire can carry"
        if share > 1.0 + POSSIBLE_EXCESS:
            return Excess(Doubt.of(percentage(share), carried, is_void=True), is_tolerated=False, share=share - 1.0)
        buffers = (percentage(share, ".1f"), f"{carried}: a short stream counts what was in buffers")
        doubt = Doubt.of(*buffers, is_beyond_wire=True, excess_share=share - 1.0)
        return Excess(doubt, is_tolerated=True, share=share - 1.0)
    least_ns = least_round_trip_ns(side, cell)
    if least_ns is not None and value < least_ns * (1.0 - NOMINAL):
        is_tolerated = value >= least_ns * (1.0 - POSSIBLE_EXCESS)
        parts = (_seconds(value), ", where the bits alone take ", _seconds(least_ns), " on the wire")
        doubt = Doubt.of(*parts, is_void=not is_tolerated, is_beyond_wire=is_tolerated)
        excess = least_ns / value - 1.0
        doubt = doubt.model_copy(update={"excess_share": excess if is_tolerated else None})
        return Excess(doubt, is_tolerated, excess)
    return None


def impossible(side: Side, cell: CellMeasured, level: float | None = None) -> Doubt | None:
    """Return why what is shown of a cell cannot be true; None where it can.

    Shown are the median of its launches and their geometric mean, or that of some of them: `level`.
    """
    found = (excess_of(side, cell, one) for one in (*cell.typical, level) if one is not None and not np.isnan(one))
    return next((one.doubt for one in found if one is not None and not one.is_tolerated), None)


def tolerated(side: Side, cell: CellMeasured, level: float) -> Doubt | None:
    """Return what to say of a level that is better than the wire allows by no more than buffers explain; None where it is not."""
    found = None if np.isnan(level) else excess_of(side, cell, level)
    return found.doubt if found is not None and found.is_tolerated else None


def impossible_launches(side: Side, cell: CellMeasured) -> dict[str, Excess]:
    """Return by how much the value of single launches is better than can be true, by the names of each block's launches."""
    found = {}
    for block, value in zip(side.blocks, cell.launch_values, strict=True):
        one = None if np.isnan(value) else excess_of(side, cell, float(value))
        if one is not None and not one.is_tolerated:
            found[_launch_of(side, block, cell)] = one
    return found


def _launch_of(side: Side, block: int, cell: CellMeasured) -> str:
    """Return which launch of a block measured a cell: there may be one for each workload beside the measurer's."""
    mine = [one.launch_id for one in side.launches if one.block == block and one.subject == cell.subject]
    return (mine or side.launches_of(block))[0]


def counted_by_switch(launch: StoredLaunch, fabric: str, fields: Sequence[str]) -> Counter[str]:
    """Return what the ports of a fabric's emulated switch counted during a launch; nothing where that was not told."""
    facts = launch.summary.facts
    statuses = (status.get(fabric, status) for status in (facts.switches_before, facts.switches_after))
    before, after = (_counted(status, fields) for status in statuses)
    return after - before if before is not None and after is not None else Counter()


def _counted(status: Any, fields: Sequence[str]) -> Counter[str] | None:
    """Add up the ports in a switch's status, or in statuses by fabric, as launch.json keeps them; None where there are none."""
    if not isinstance(status, dict):
        return None
    ports = status.get("ports")
    if isinstance(ports, list):
        told = [(field, port.get(field, 0)) for port in ports if isinstance(port, dict) for field in fields]
        found: Counter[str] = Counter()
        for field, number in told:
            found[field] += number if isinstance(number, int) else 0
        return found if ports else None
    inner = [each for each in (_counted(one, fields) for one in status.values()) if each is not None]
    return sum(inner, Counter[str]()) if inner else None


def wire_shares(side: Side, cell: CellMeasured, rate_bit_s: float) -> tuple[float | None, float | None]:
    """Return the shares of the line rate and of the physically possible payload rate; None where they make no sense.

    Only a stream fills one link one way: the sum over the channels of a star or a ring is no share of it.
    """
    wire = side.fabric.wire
    if wire is None or cell.key.pattern is not Pattern.STREAM or cell.key.layer is Layer.MEMORY:
        return None, None
    ipv6 = cell.facts.parameters.get("address_family") == "ipv6"
    possible = wire.payload_rate_bit_s(cell.key.layer, cell.key.message_bytes, side.fabric.mtu, ipv6=ipv6)
    return rate_bit_s / wire.line_rate_bit_s, rate_bit_s / possible if possible else None


def least_round_trip_ns(side: Side, cell: CellMeasured) -> float | None:
    """Return the time that a message there and back occupies the wire; None where that is not known.

    A lower bound: one link each way, no propagation and no switch, which a testbed does not tell; of ranks on one host none.
    """
    wire, key = side.fabric.wire, cell.key
    if wire is None or key.pattern not in TRIPS or key.layer is Layer.MEMORY or _share_a_host(side, cell.facts.ranks):
        return None
    return 2e9 * _serialisation_s(wire, key.layer, key.message_bytes, side.fabric.mtu)


def _serialisation_s(wire: Wire, layer: Layer, message_bytes: int, mtu: int) -> float:
    if layer not in (Layer.TCP, Layer.RDMA, Layer.MPI):
        return sum(wire.serialisation_s(frame) for frame in datagram_frames(layer, message_bytes, mtu))
    # RDMA, and MPI over it, may go by shorter headers than those of Ethernet and TCP: only those of the frame are sure.
    headers = IP_HEADER_BYTES + TCP_HEADER_BYTES if layer is Layer.TCP else 0
    full, rest = divmod(message_bytes, mtu - headers)
    frames = [mtu + ETHERNET_HEADER_BYTES] * full
    if rest or not frames:
        frames.append(rest + headers + ETHERNET_HEADER_BYTES)
    return sum(wire.serialisation_s(frame) for frame in frames)


def _share_a_host(side: Side, ranks: tuple[int, ...]) -> bool:
    """Whether two of the ranks ran on one host, whose messages need no wire; not known counts as no."""
    header = side.launches[0].summary.header if side.launches else None
    hosts = [info.host for info in header.ranks if info.rank in ranks] if header is not None else []
    return len(set(hosts)) < len(hosts)
