"""What the switch of a fabric is, from measurements: line rate, whether it stores frames, delay, and how much its ports hold.

*Line rate*: that of the fastest stream, times what its frames take on the wire over what they carry (`testbed.wire`; framing is
what the testbed says of the link, its rate is not looked at). Hosts may bound streams: where stamps tell of messages of several
frames, each byte more of these takes 8/rate whatever the switch does, and a rate that is clearly larger is the line's.
*Forwarding*: a frame that is stored is serialised on each link, one that is passed on at once is so once. So the time of messages
that one frame holds grows by 2 or by 1 times 8/rate for each byte on the wire. Beyond one frame both links work side by side.
Stamps at both ends (`stages`) tell the time between hosts, in which their copying is not; half of round trips has it.
*Delay*: what is left of that time. *Buffer*: a burst from a link of rate I into one of rate O < I makes a queue of
(k - 1) (1 - O/I) frames before its k-th one: drop-tail loses the first one that finds no room.

Of each launch the lower quartile of its messages is taken where stamps tell it: what a busy host or a late switch adds is above.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.analysis.cell_parts import Keys
from fabricbench.analysis.findings import CellKey, Interval, is_basic
from fabricbench.analysis.findings.switches import (
    Buffer,
    FabricSwitch,
    Forwarding,
    FrameDifference,
    Seen,
    SwitchUnknown,
)
from fabricbench.analysis.instrument import impossible
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.stages import StagesOfCell
from fabricbench.analysis.summary import over_launches
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS
from fabricbench.testbed.wire import (
    ETHERNET_HEADER_BYTES,
    IP_HEADER_BYTES,
    TCP_HEADER_BYTES,
    Wire,
    datagram_frames,
)

Floats = NDArray[np.float64]
Stages = Mapping[CellKey, StagesOfCell]

DATAGRAMS = (Layer.FRAME, Layer.IP, Layer.UDP)
"""Layers whose messages are frames as they are."""
LOWER = 0.25
FEWEST_STAMPED = 3
FEWEST_OF_SEVERAL = 2
FEWEST_SIZES = 5
"""Of a curve of whole round trips: hosts, which are in it, are no straight line."""
SAME_RATE = 0.05
"""Lines whose rates differ by no more are alike: what else differs is not the rate's."""
UNIT = Wire(line_rate_bit_s=1.0)


def wire_of(side: Side) -> Wire:
    """Return the framing of a side's links, Ethernet's where the testbed says none; its rate means nothing."""
    return (side.fabric.wire or UNIT).model_copy(update={"line_rate_bit_s": 1.0})


def frames_of(side: Side, layer: Layer, message_bytes: int) -> list[int]:
    """Return what each frame of a message takes on the wire, bytes."""
    wire, mtu = wire_of(side), side.fabric.mtu
    if layer in (Layer.TCP, Layer.MPI):
        segment = mtu - IP_HEADER_BYTES - TCP_HEADER_BYTES
        full, rest = divmod(message_bytes, segment)
        sizes = [segment] * full + ([rest] if rest or not full else [])
        return [wire.wire_bytes(size + IP_HEADER_BYTES + TCP_HEADER_BYTES + ETHERNET_HEADER_BYTES) for size in sizes]
    return [wire.wire_bytes(frame) for frame in datagram_frames(layer, message_bytes, mtu)]


def serialised_bytes(frames: Sequence[int], forwarding: Forwarding) -> int:
    """Return how many bytes' time passes until the last frame of a message is there: links work side by side on its frames."""
    return sum(frames) + (max(frames) if forwarding is Forwarding.STORED else 0)


@dataclass(frozen=True)
class LineRate:
    """A line rate, bit/s, by launch (NaN: none), and the stream that shows it."""

    key: CellKey
    of_launches: Floats

    @property
    def median(self) -> float:
        """The median over launches: what times are set against, as a link has one rate and streams scatter."""
        return float(np.nanmedian(self.of_launches))


def line_rate(side: Side, members: tuple[int, ...] | None = ()) -> LineRate | None:
    """Return the rate of the fastest stream between some members, with what its frames take on the wire; None without any.

    No `members` are the first two ranks, None any.
    """
    found = []
    for key, cell in side.cells.items():
        if key.pattern is not Pattern.STREAM or key.layer in (Layer.MEMORY, Layer.RDMA) or key.congestor is not None:
            continue
        if (members is not None and key.members != members) or impossible(side, cell) is not None:
            continue
        share = wire_of(side).payload_rate_bit_s(key.layer, key.message_bytes, side.fabric.mtu)
        if share and not np.isnan(cell.launch_values).all():
            rates = np.where(cell.launch_values > 0, cell.launch_values, np.nan) / share
            found.append(LineRate(key, rates))
    return max(found, key=lambda one: one.median, default=None)


def link_rate(side: Side, stages: Stages) -> LineRate | None:
    """Return the rate of the links between the first two ranks; None where nothing tells it.

    That of streams, unless messages of several frames show that hosts bound those.
    """
    streamed, shown = line_rate(side), _rate_of_frames(side, stages)
    if streamed is None or shown is None:
        return streamed
    return shown if shown.median > (1.0 + SAME_RATE) * streamed.median else streamed


def _rate_of_frames(side: Side, stages: Stages) -> LineRate | None:
    """Return 8 over the time of each byte on the wire of messages of several frames, by launch; None of fewer than two sizes."""
    found = []
    for curve, group in _by_curve(_stamped(side, stages)).items():
        if curve.layer not in DATAGRAMS:  # what a stream sends at once the kernel stamps last
            continue
        several = {
            sum(frames): values
            for key, values in group.items()
            if len(frames := frames_of(side, key.layer, key.message_bytes)) > 1
        }
        if len(several) >= FEWEST_OF_SEVERAL:
            slopes = _slopes(np.array(list(several), np.float64), np.stack(list(several.values())))
            found.append(LineRate(curve, np.where(slopes > 0, 8e9 / np.where(slopes > 0, slopes, 1.0), np.nan)))
    return max(found, key=lambda one: one.median, default=None)


def _stamped(side: Side, stages: Stages) -> dict[CellKey, Floats]:
    """Return what passes between the hosts one way, ns by launch, of each cell whose messages were stamped.

    Not of MPI's, which nobody sees leave their host.
    """
    return {
        key: np.array([_between(cell, index) for index in range(len(side.blocks))])
        for key, cell in stages.items()
        if key.layer is not Layer.MPI
    }


def _slopes(bytes_of: Floats, times: Floats) -> Floats:
    """Return the slope of times over bytes in each launch, by least squares."""
    centred = bytes_of - bytes_of.mean()
    return np.asarray(centred @ times / np.sum(centred**2), dtype=np.float64)


@dataclass(frozen=True)
class FrameTimes:
    """The times of messages that one frame holds, one way in ns, of shape (sizes, launches), over their bytes on the wire."""

    key: CellKey
    seen: Seen
    sizes: tuple[int, ...]
    wire_bytes: Floats
    times: Floats


def frame_times(side: Side, stages: Stages) -> FrameTimes | None:
    """Return the curve that tells most of the path of frames: by stamps where there are some, else of whole round trips."""
    whole = {
        key: cell.launch_values / 2.0
        for key, cell in side.cells.items()
        if key.pattern is Pattern.PINGPONG and key.layer in DATAGRAMS and is_basic(key) and _is_sane(side, cell)
    }
    for seen, cells, fewest in (
        (Seen.BETWEEN_HOSTS, _stamped(side, stages), FEWEST_STAMPED),
        (Seen.ROUND_TRIPS, whole, FEWEST_SIZES),
    ):
        curves = [_curve(side, seen, key, group) for key, group in _by_curve(cells).items()]
        best = max(curves, key=lambda one: (len(one.sizes), one.key.layer in DATAGRAMS), default=None)
        if best is not None and len(best.sizes) >= fewest:
            return best
    return None


def _is_sane(side: Side, cell: CellMeasured) -> bool:
    return impossible(side, cell) is None


def _between(cell: StagesOfCell, index: int) -> float:
    """Return what of a launch's messages passes between the hosts one way, ns."""
    launch = cell.launches.get(index)
    return float("nan") if launch is None else float(np.quantile(launch.between, LOWER)) / 2.0


def _by_curve(cells: Mapping[CellKey, Floats]) -> dict[CellKey, dict[CellKey, Floats]]:
    found: dict[CellKey, dict[CellKey, Floats]] = defaultdict(dict)
    for key, values in cells.items():
        found[key.curve][key] = values
    return found


def _curve(side: Side, seen: Seen, key: CellKey, cells: Mapping[CellKey, Floats]) -> FrameTimes:
    """Return those of a curve's sizes that one frame holds, each length of a frame once."""
    chosen: dict[int, CellKey] = {}
    for one in sorted(cells, key=lambda one: one.message_bytes):
        frames = frames_of(side, one.layer, one.message_bytes)
        if len(frames) == 1 and one.message_bytes:
            chosen.setdefault(frames[0], one)
    times = np.stack([cells[one] for one in chosen.values()]) if chosen else np.empty((0, len(side.blocks)))
    return FrameTimes(
        key, seen, tuple(one.message_bytes for one in chosen.values()), np.array(list(chosen), np.float64), times
    )


@dataclass(frozen=True)
class FramePath:
    """What the frames of a side's first two ranks tell of their path: how long they take, and the rate of its links."""

    side: Side
    times: FrameTimes | None
    rate: LineRate | None


def frame_path(side: Side, stages: Stages) -> FramePath:
    """Return what is known of the path of a side's frames."""
    return FramePath(side, frame_times(side, stages), link_rate(side, stages))


def fabric_switch(path: FramePath, confidence: float) -> FabricSwitch | None:
    """Return what is known of a side's switch; None where nothing that tells of it was measured."""
    side, times, rate = path.side, path.times, path.rate
    bursts = bursts_of(side)
    if times is None and not bursts:
        return None
    lacking: dict[str, SwitchUnknown] = {}
    count = forwarding = delay = None
    if rate is None:
        lacking["line rate"] = lacking["forwarding"] = SwitchUnknown.RATE
    elif times is None:
        lacking["forwarding"] = SwitchUnknown.SIZES
    else:
        count = over_launches(serialisations(times, rate), confidence)
        forwarding, lack = forwarding_of(count)
        if lack is not None:
            lacking["forwarding"] = lack
        if forwarding is not None:
            delay = _not_below_0(over_launches(delays(times, rate, forwarding), confidence))
    buffer, to_measure, lack = buffer_of(side, rate, bursts)
    if lack is not None:
        lacking["buffer"] = lack
    return FabricSwitch(
        fabric=side.name,
        key=None if times is None else times.key,
        seen=None if times is None else times.seen,
        launches=len(side.blocks),
        sizes=() if times is None else times.sizes,
        line_rate_bit_s=None if rate is None else over_launches(rate.of_launches, confidence),
        rate_key=None if rate is None else rate.key,
        serialisations=_not_below_0(count),
        forwarding=forwarding,
        delay_ns=delay,
        buffer=buffer,
        to_measure=to_measure,
        lacking=lacking,
    )


def serialisations(times: FrameTimes, rate: LineRate) -> Floats:
    """Return how many times a frame is serialised on its way, by launch: the slope of its time against the rate's."""
    return np.asarray(_slopes(times.wire_bytes, times.times) * rate.median / 8e9, dtype=np.float64)


HALFWAY = 1.5
"""Serialisations: nearer to 2 is stored, nearer to 1 passed on at once."""


def forwarding_of(count: Interval | None) -> tuple[Forwarding | None, SwitchUnknown | None]:
    """Return how frames are forwarded by the serialisations that they have, or why that is not told."""
    if count is None or count.low is None or count.high is None:
        return None, SwitchUnknown.LAUNCHES
    if count.low > HALFWAY:
        return Forwarding.STORED, None
    if count.high < HALFWAY:
        return Forwarding.AT_ONCE, None
    return None, SwitchUnknown.UNDECIDED


def delays(times: FrameTimes, rate: LineRate, forwarding: Forwarding) -> Floats:
    """Return what a frame takes one way beside serialisation, ns, by launch."""
    bytes_of = np.array([serialised_bytes([int(one)], forwarding) for one in times.wire_bytes], dtype=np.float64)
    beside = times.times - 8e9 * bytes_of[:, None] / rate.median
    return np.asarray(beside.mean(axis=0), dtype=np.float64)


def _not_below_0(one: Interval | None) -> Interval | None:
    if one is None:
        return None
    low, high = (None if end is None else max(end, 0.0) for end in (one.low, one.high))
    return Interval(value=max(one.value, 0.0), low=low, high=high)


SILENT = "timeout"
"""The code of a cell that failed because nothing was answered in time: where shorter bursts were, bursts that were lost."""

Bursts = Mapping[int, tuple[int, int]]
"""Messages of a burst -> bursts that were lost, and bursts."""


def bursts_of(side: Side) -> Mapping[CellKey, Bursts]:
    """Return the bursts of a side over datagrams, by what they have in common: how many were not answered in whole.

    A cell of which every burst was lost has failed with a timeout and is no cell of the side: its record tells.
    """
    found: dict[CellKey, dict[int, tuple[int, int]]] = defaultdict(dict)
    if Pattern.BURST not in {*(key.pattern for key in side.cells), *(one.pattern for one in side.failed)}:
        return found  # most runs: their cells need not be read once more
    for run in side.runs:
        keys = Keys(run)
        rows = run.cells().filter(
            pl.col("fabric").cast(pl.String) == side.fabric.name,
            pl.col("is_valid"),
            pl.col("pattern").cast(pl.String) == Pattern.BURST.value,
            pl.col("layer").cast(pl.String).is_in([one.value for one in DATAGRAMS]),
            pl.col("metric").is_not_null(),
        )
        for row in rows.iter_rows(named=True):
            key = keys.of(row)
            usual = PATTERNS[Pattern.BURST].parameters["messages"].default
            messages = int(dict(key.parameters).get("messages", usual))
            frames = len(frames_of(side, key.layer, key.message_bytes))
            is_silent = row["failure_code"] == SILENT
            if frames != 1 or not (row["sent"] or is_silent):
                continue
            others = tuple(one for one in key.parameters if one[0] != "messages")
            group = found[key.model_copy(update={"parameters": others})]
            lost, bursts = group.get(messages, (0, 0))
            more_lost, more = (1, 1) if is_silent else (row["lost"] or 0, row["sent"] // messages)
            group[messages] = (lost + more_lost, bursts + more)
    return found


MOST_BETWEEN = 8
"""Bursts that are told to be measured next between the longest that came and the shortest that did not."""


def buffer_of(
    side: Side, rate: LineRate | None, bursts: Mapping[CellKey, Bursts]
) -> tuple[Buffer | None, tuple[int, ...], SwitchUnknown | None]:
    """Return what the port of the first two ranks' receiver holds, which bursts would tell more, and why it is not told."""
    if not bursts:
        return None, (), SwitchUnknown.NO_BURSTS
    sender = line_rate(side, None)
    if rate is None or sender is None:
        return None, (), SwitchUnknown.RATE
    ratio = rate.median / sender.median
    if ratio > 1.0 - SAME_RATE:
        return None, (), SwitchUnknown.FASTER_SENDER
    key, group = max(bursts.items(), key=lambda one: len(one[1]))
    lossy = min((messages for messages, (lost, _) in group.items() if lost), default=None)
    lossless = max(
        (one for one, (lost, _) in group.items() if not lost and (lossy is None or one < lossy)), default=None
    )
    if lossy is None:
        return None, (2 * max(group),), SwitchUnknown.NO_LOSS
    if lossless is None:
        return None, (max(1, min(group) // 2),), SwitchUnknown.ALL_LOST
    (frame,) = frames_of(side, key.layer, key.message_bytes)
    low, high = (frame * (1.0 + (messages - 1) * (1.0 - ratio)) for messages in (lossless, lossy))
    told = Buffer(
        frame_bytes=frame,
        lossless=lossless,
        lossy=lossy,
        low_bytes=low,
        high_bytes=high,
        frames_low=int(low // frame),
        frames_high=int(np.ceil(high / frame)) - 1,
        ratio=ratio,
    )
    between = np.unique(np.linspace(lossless, lossy, MOST_BETWEEN + 2).round().astype(int))[1:-1]
    return told, tuple(int(one) for one in between), None


def frame_differences(a: FramePath, b: FramePath, confidence: float) -> Iterator[FrameDifference]:
    """Yield how much longer frames take on one side than on another of the same line rate: the smallest and the largest.

    Of sides of the same blocks. Where one has no switch, it is what the switch of the other adds.
    """
    of_a, of_b = a.times, b.times
    if of_a is None or of_b is None or of_a.seen is not of_b.seen or of_a.key != of_b.key:
        return
    if a.rate is None or b.rate is None:
        return
    apart = b.rate.median / a.rate.median
    shared = [block for block in a.side.blocks if block in b.side.blocks]
    sizes = [size for size in of_a.sizes if size in of_b.sizes]
    if abs(np.log(apart)) > SAME_RATE or not shared or not sizes:
        return
    for size in dict.fromkeys((sizes[0], sizes[-1])):
        rows = [one.times[one.sizes.index(size)] for one in (of_a, of_b)]
        at_a, at_b = ([side.blocks.index(block) for block in shared] for side in (a.side, b.side))
        difference = over_launches(rows[1][at_b] - rows[0][at_a], confidence)
        if difference is not None:
            yield FrameDifference(
                fabric_a=a.side.name,
                fabric_b=b.side.name,
                key=of_a.key.model_copy(update={"message_bytes": size}),
                seen=of_a.seen,
                difference=difference,
            )
