"""What a round trip would take if something were another: a receiver that spins, kernel bypass, another switch, rate or fabric.

All are *predicted*, launch by launch, from what was measured of the fabric: the round trip without stamps, the stages that would be
gone, and the time that its frames take on links and switch (`switches`): b serialised bytes at a line rate R and the delay D, there
and back 2 (8 b / R + D). Another link takes that away and adds its own. Hosts take what they took.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey, Interval, is_basic
from fabricbench.analysis.findings.stages import Parts, Stage
from fabricbench.analysis.findings.switches import Change, Forwarding, PredictionAssumption, Seen, WhatIf
from fabricbench.analysis.instrument import impossible
from fabricbench.analysis.measured import CellMeasured, Side, in_order
from fabricbench.analysis.stages import StagesOfCell, both_ways
from fabricbench.analysis.summary import over_launches
from fabricbench.analysis.switches import (
    Stages,
    delays,
    forwarding_of,
    frame_times,
    frames_of,
    link_rate,
    serialisations,
    serialised_bytes,
)
from fabricbench.model import Layer, Pattern, Receive

Floats = NDArray[np.float64]

FASTER_LINE = 10.0
"""Times the rate: what the next generation of a network usually has."""
READ_FIRST_BYTES = 64
"""What a switch that forwards at once reads of a frame before: the smallest one of Ethernet."""
BYPASS_DOORS = ("xdp", "xdp-native")
"""Doors into layer frame that pass the kernel's stack by."""

OF_HOSTS = (PredictionAssumption.STAGES_STAY, PredictionAssumption.OWN_PROCESSOR)
WAKING = (Stage.SOFTIRQ, Stage.PROTOCOL, Stage.WAKE_UP, Stage.SCHEDULER)
KERNEL = (Stage.LIBRARY, Stage.SOCKET, Stage.QUEUEING, Stage.DRIVER, *WAKING, Stage.RETURN)


@dataclass(frozen=True)
class Path:
    """What frames meet between the hosts of a side: line rate in bit/s, delay one way in ns by launch, and how it forwards."""

    side: Side
    rate: float
    delay_ns: Floats
    forwarding: Forwarding

    def ns(self, layer: Layer, message_bytes: int) -> Floats:
        """Return what a message takes on it there and back, ns, by launch."""
        frames = frames_of(self.side, layer, message_bytes)
        return 2.0 * (8e9 * serialised_bytes(frames, self.forwarding) / self.rate + self.delay_ns)

    def at(self, launches: Sequence[int]) -> Path:
        """Return it in some launches, by their index."""
        return replace(self, delay_ns=self.delay_ns[launches])


def path_of(side: Side, stages: Stages, confidence: float) -> Path | None:
    """Return the path of a side as stamps show it; None where they do not tell how frames are forwarded."""
    times, rate = frame_times(side, stages), link_rate(side, stages)
    if times is None or rate is None or times.seen is not Seen.BETWEEN_HOSTS:
        return None
    forwarding, _ = forwarding_of(over_launches(serialisations(times, rate), confidence))
    if forwarding is None:
        return None
    return Path(side, rate.median, np.maximum(delays(times, rate, forwarding), 0.0), forwarding)


def predictions(side: Side, stages: Stages, confidence: float) -> Iterator[WhatIf]:
    """Yield what round trips of a side would take on hosts that do less, and over another switch or a faster line."""
    for key in sorted(stages, key=in_order):
        cell = side.cells.get(key)
        if cell is not None:
            yield from _of_hosts(side, cell, stages[key], confidence)
    path = path_of(side, stages, confidence)
    if path is None:
        return
    for key, cell in _round_trips(side):
        yield from _of_links(path, key, cell, confidence)


def _round_trips(side: Side) -> list[tuple[CellKey, CellMeasured]]:
    """Return the ping-pongs of a side that cross its links as frames whose number is known."""
    return [
        (key, cell)
        for key, cell in sorted(side.cells.items(), key=lambda one: in_order(one[0]))
        if key.pattern is Pattern.PINGPONG
        and key.layer in (Layer.IP, Layer.UDP, Layer.TCP, Layer.MPI)
        and key.message_bytes
        and is_basic(key)
        and impossible(side, cell) is None
    ]


def _of_hosts(side: Side, cell: CellMeasured, stages: StagesOfCell, confidence: float) -> Iterator[WhatIf]:
    beside = {
        Change.NO_WAKING: _spinning(side, cell.key),
        Change.BYPASS: _bypassing(side, cell.key),
    }
    for change, stages_gone, assumptions in (
        (Change.NO_WAKING, WAKING, (PredictionAssumption.MERGED, *OF_HOSTS)),
        (Change.BYPASS, KERNEL, (PredictionAssumption.NOTHING_INSTEAD, *OF_HOSTS)),
    ):
        taken, gone = _taken(side, stages, stages_gone)
        is_waited_for = change is Change.BYPASS or cell.key.receive is Receive.BLOCKING
        if not gone or not is_waited_for:
            continue
        yield from _row(
            side,
            cell,
            change,
            np.maximum(cell.launch_values - taken, _links_ns(side, stages)),
            assumptions,
            confidence,
            gone=gone,
            is_bound=True,
            beside=beside[change],
        )


def _taken(side: Side, cell: StagesOfCell, stages: Sequence[Stage]) -> tuple[Floats, Parts]:
    """Return what some stages take of a round trip, ns by launch, and which: a merged one if all its parts are."""
    taken = np.full(len(side.blocks), np.nan)
    found: dict[Stage, None] = {}
    for index, launch in cell.launches.items():
        medians = {
            parts: float(np.median(values))
            for parts, values in both_ways(launch).items()
            if set(parts) <= set(stages) and parts != (Stage.LIBRARY,)  # one that is told apart is not the kernel's
        }
        taken[index] = sum(medians.values())
        found |= dict.fromkeys(stage for parts in medians for stage in parts)
    return taken, tuple(stage for stage in Stage if stage in found)


def _links_ns(side: Side, cell: StagesOfCell) -> Floats:
    """Return what links and switch take of a round trip, ns by launch, where the switch tells; no host can take less."""
    taken = np.zeros(len(side.blocks))
    for index, launch in cell.launches.items():
        of_links = [values for parts, values in both_ways(launch).items() if parts in ((Stage.WIRE,), (Stage.SWITCH,))]
        taken[index] = sum(float(np.median(values)) for values in of_links)
    return taken


def _spinning(side: Side, key: CellKey) -> CellMeasured | None:
    return side.cells.get(key.model_copy(update={"receive": Receive.POLLING}))


def _bypassing(side: Side, key: CellKey) -> CellMeasured | None:
    """Return the ping-pong of the same size over a door past the kernel; the one whose receiver spins where both were measured."""
    found = [
        cell
        for one, cell in side.cells.items()
        if (one.layer, one.pattern, one.message_bytes) == (Layer.FRAME, Pattern.PINGPONG, key.message_bytes)
        and dict(one.parameters).get("door") in BYPASS_DOORS
    ]
    return min(found, key=lambda one: one.key.receive is not Receive.POLLING, default=None)


def _of_links(path: Path, key: CellKey, cell: CellMeasured, confidence: float) -> Iterator[WhatIf]:
    now = path.ns(key.layer, key.message_bytes)
    stays = (PredictionAssumption.HOSTS_STAY, PredictionAssumption.DELAY_STAYS, PredictionAssumption.IDLE_LINKS)
    is_stored = path.forwarding is Forwarding.STORED
    other = Forwarding.AT_ONCE if is_stored else Forwarding.STORED
    reads = (1.0 if is_stored else -1.0) * 8e9 * READ_FIRST_BYTES / path.rate
    otherwise = replace(path, forwarding=other, delay_ns=np.maximum(path.delay_ns + reads, 0.0))
    faster = replace(path, rate=FASTER_LINE * path.rate)
    for change, link in ((Change.FORWARDING, otherwise), (Change.LINE_RATE, faster)):
        yield from _row(
            path.side,
            cell,
            change,
            cell.launch_values - now + link.ns(key.layer, key.message_bytes),
            stays,
            confidence,
            line_rate_bit_s=link.rate,
            forwarding=link.forwarding,
        )


def over_another(a: Path, b: Path, confidence: float) -> Iterator[WhatIf]:
    """Yield what the round trips of a side would take over the path of another one, of the same blocks."""
    shared = [block for block in a.side.blocks if block in b.side.blocks]
    if not shared:
        return
    mine, others = (side.at([side.side.blocks.index(block) for block in shared]) for side in (a, b))
    for key, cell in _round_trips(a.side):
        values = cell.launch_values[[a.side.blocks.index(block) for block in shared]]
        predicted = values - mine.ns(key.layer, key.message_bytes) + others.ns(key.layer, key.message_bytes)
        yield from _row(
            a.side,
            cell,
            Change.FABRIC,
            predicted,
            (PredictionAssumption.HOSTS_STAY, PredictionAssumption.IDLE_LINKS),
            confidence,
            line_rate_bit_s=b.rate,
            forwarding=b.forwarding,
            other=b.side.name,
            beside=b.side.cells.get(key),
        )


def _row(
    side: Side,
    cell: CellMeasured,
    change: Change,
    predicted: Floats,
    assumptions: tuple[PredictionAssumption, ...],
    confidence: float,
    *,
    gone: Parts = (),
    is_bound: bool = False,
    line_rate_bit_s: float | None = None,
    forwarding: Forwarding | None = None,
    other: str = "",
    beside: CellMeasured | None = None,
) -> Iterator[WhatIf]:
    now, told = (over_launches(values, confidence) for values in (cell.launch_values, predicted))
    if now is None or told is None:
        return
    measured = None if beside is None else over_launches(beside.launch_values, confidence)
    yield WhatIf(
        fabric=side.name,
        key=cell.key,
        change=change,
        now=now,
        predicted=_at_least_0(told),
        is_bound=is_bound,
        assumptions=assumptions,
        gone=gone,
        line_rate_bit_s=line_rate_bit_s,
        forwarding=forwarding,
        other=other,
        measured=measured,
        off=None if measured is None or not measured.value else told.value / measured.value - 1.0,
    )


def _at_least_0(one: Interval) -> Interval:
    low, high = (None if end is None else max(end, 0.0) for end in (one.low, one.high))
    return Interval(value=max(one.value, 0.0), low=low, high=high)


def of_all(sides: Mapping[str, tuple[Side, Stages]], confidence: float) -> list[WhatIf]:
    """Return the predictions of all sides that were stamped, and those of each over the path of every other."""
    rows = [row for side, stages in sides.values() for row in predictions(side, stages, confidence)]
    paths = [path_of(side, stages, confidence) for side, stages in sides.values()]
    known = [path for path in paths if path is not None]
    return rows + [
        row
        for a in known
        for b in known
        if a is not b and a.side.is_beside(b.side)
        for row in over_another(a, b, confidence)
    ]
