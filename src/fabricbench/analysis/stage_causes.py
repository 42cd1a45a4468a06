"""Why a stage takes long, each by a rule of its own: delayed acknowledgements, coalesced interrupts, waits for a processor.

Each rule looks for what its cause alone leaves behind in the times of messages, not for a stage that is long. It is named where it
is met in most launches of a test, so that what a busy machine does once is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.findings.stages import (
    HeldByAcknowledgement,
    InterruptGrid,
    Parts,
    ProcessorWait,
    Stage,
    StageCause,
    Traffic,
)
from fabricbench.analysis.stages import Floats, StagesOfCell, StagesOfLaunch, traffic_of
from fabricbench.model import Layer
from fabricbench.record.lines import BusiestProcess
from fabricbench.statistics.periods import find_period, resultant_length

LEAST_SHARE = 0.05
"""Of messages, for a cause of a launch."""

SHORTEST_DELAY_NS, LONGEST_DELAY_NS = 39e6, 60e6
"""Linux delays acknowledgements by 40 ms at least (TCP_DELACK_MIN) and a timer that comes late by a few more; a delay is as long as
that, less what the message before took to arrive."""
RELEASED_WITHIN_NS = 100e3
"""An acknowledgement that has come lets go of what waited for it at once."""

SHORTEST_PERIOD_NS, LONGEST_PERIOD_NS = 50e3, 400e3
"""Of interrupts that an adapter gathers, as drivers set it up (rx-usecs and its like)."""
LEAST_LENGTH = 0.3
"""How sharply arrivals lie on a grid: 0.3 where a fifth of a period is the standard deviation beside it."""
BY_CHANCE = 1e-3
"""Of a launch: so seldom arrivals at random times come out in step."""
SAME_PERIOD = 0.01
"""Two launches of one adapter differ by less, as a share."""

LONG_WAIT_NS = 300e3
"""For a processor: a thread that nobody keeps from it waits for microseconds."""
LEAST_OF_A_PROCESSOR = 0.1
"""That a process used while others waited, to be named for it."""


@dataclass(frozen=True)
class _Found:
    """A cause in one launch: the share of messages, the mean of what it adds to a round trip in ns, and what is known of it."""

    share: float
    cost_ns: float
    subject: HeldByAcknowledgement | InterruptGrid | ProcessorWait


Rule = Callable[[StagesOfLaunch], "_Found | None"]


def stage_causes(fabric: str, cells: Mapping[CellKey, StagesOfCell]) -> list[StageCause]:
    """Return the causes of a fabric, what adds most to a round trip first; of each kind that of the test which it adds most to."""
    found: dict[str, StageCause] = {}
    for cell in cells.values():
        for one in _causes(fabric, cell):
            before = found.get(one.subject.kind)
            if before is None or before.cost_ns < one.cost_ns:
                found[one.subject.kind] = one
    return sorted(found.values(), key=lambda one: -one.cost_ns)


def _causes(fabric: str, cell: StagesOfCell) -> Iterator[StageCause]:
    for parts, rule in _rules(cell):
        found = [one for launch in cell.launches.values() if (one := rule(launch)) is not None]
        found = _agreeing(found)
        if 2 * len(found) <= len(cell.launches) or len(cell.launches) < 2:
            continue
        typical = sorted(found, key=lambda one: one.cost_ns)[len(found) // 2]
        yield StageCause(
            fabric=fabric,
            key=cell.key,
            traffic=traffic_of(cell.key),
            parts=parts,
            found_in=len(found),
            launches=len(cell.launches),
            share=sum(one.share for one in found) / len(cell.launches),
            cost_ns=sum(one.cost_ns for one in found) / len(cell.launches),
            subject=_owned(found) if isinstance(typical.subject, ProcessorWait) else typical.subject,
        )


def _rules(cell: StagesOfCell) -> Iterator[tuple[Parts, Rule]]:
    """Yield the rules that mean something to a test, with the stages that each explains."""
    shown = {parts for launch in cell.launches.values() for parts, _ in launch.values}
    socket = next((parts for parts in shown if Stage.SOCKET in parts), None)
    if cell.key.layer is Layer.TCP and socket is not None:
        yield socket, lambda launch: _held(launch, socket)
    arrival = next((parts for parts in shown if parts[-1] is Stage.SWITCH), None)
    if traffic_of(cell.key) is Traffic.LONE and arrival is not None:
        yield arrival, _grid
    if (Stage.SCHEDULER,) in shown:
        yield (Stage.SCHEDULER,), _waits


def _held(launch: StagesOfLaunch, socket: Parts) -> _Found | None:
    """Tell of messages that the socket held for as long as an acknowledgement is delayed, and let go as one came."""
    lengths = next(values for (parts, _), values in launch.values.items() if parts == socket)
    is_held = (lengths >= SHORTEST_DELAY_NS) & (lengths <= LONGEST_DELAY_NS)
    is_held &= (launch.released >= 0.0) & (launch.released <= RELEASED_WITHIN_NS)
    if not is_held.any():
        return None
    subject = HeldByAcknowledgement(
        held_ns=float(np.median(lengths[is_held])), released_ns=float(np.median(launch.released[is_held]))
    )
    return _often(is_held, lengths, subject)


def _grid(launch: StagesOfLaunch) -> _Found | None:
    """Tell of arrivals on a grid that the messages did not leave on."""
    found = []
    for times in launch.arrived.values():
        period = find_period(times, SHORTEST_PERIOD_NS, LONGEST_PERIOD_NS)
        if period is None or period.by_chance > BY_CHANCE or period.length < LEAST_LENGTH:
            continue
        if resultant_length(launch.called, period.period) < period.length / 2.0:
            found.append(period)
    if not found:
        return None
    sharpest = max(found, key=lambda one: one.length)
    # A message that arrives at any time waits for half a period on average.
    return _Found(
        share=1.0,
        cost_ns=len(found) * sharpest.period / 2.0,
        subject=InterruptGrid(period_ns=sharpest.period, length=sharpest.length),
    )


def _waits(launch: StagesOfLaunch) -> _Found | None:
    """Tell of receivers that could run and waited for a processor."""
    ways = [values for (parts, _), values in launch.values.items() if parts == (Stage.SCHEDULER,)]
    longest, both = np.max(ways, axis=0), np.sum(ways, axis=0)
    is_long = longest > LONG_WAIT_NS
    if not is_long.any():
        return None
    busiest = max(launch.busiest, key=lambda one: one.share, default=None)
    return _often(is_long, both, _wait(float(np.median(longest[is_long])), busiest))


def _wait(waited_ns: float, busiest: BusiestProcess | None) -> ProcessorWait:
    if busiest is None or busiest.share < LEAST_OF_A_PROCESSOR:
        return ProcessorWait(waited_ns=waited_ns, process=None, processor_share=None, is_realtime=False)
    return ProcessorWait(
        waited_ns=waited_ns,
        process=busiest.process,
        processor_share=busiest.share,
        is_realtime=busiest.is_realtime,
    )


def _often(
    meets: np.ndarray[tuple[int], np.dtype[np.bool_]],
    lengths: Floats,
    subject: HeldByAcknowledgement | InterruptGrid | ProcessorWait,
) -> _Found | None:
    share = float(np.mean(meets))
    return None if share < LEAST_SHARE else _Found(share, float(np.mean(np.where(meets, lengths, 0.0))), subject)


def _agreeing(found: list[_Found]) -> list[_Found]:
    """Return what is found of one cause in several launches: of grids, those of one period."""
    periods = [one.subject.period_ns for one in found if isinstance(one.subject, InterruptGrid)]
    if not periods:
        return found
    usual = float(np.median(periods))
    return [
        one
        for one in found
        if isinstance(one.subject, InterruptGrid) and abs(one.subject.period_ns / usual - 1.0) <= SAME_PERIOD
    ]


def _owned(found: list[_Found]) -> ProcessorWait:
    """Return the wait of the typical launch, for the process that used most in most launches, if one did."""
    waits = [one.subject for one in found if isinstance(one.subject, ProcessorWait)]
    waited_ns = float(np.median([one.waited_ns for one in waits]))
    names = [one.process for one in waits if one.process is not None]
    usual = max(set(names), key=lambda name: (names.count(name), name), default=None)
    if usual is None or 2 * names.count(usual) <= len(waits):
        return ProcessorWait(waited_ns=waited_ns, process=None, processor_share=None, is_realtime=False)
    of_usual = [one for one in waits if one.process == usual]
    shares = [one.processor_share for one in of_usual if one.processor_share is not None]
    return ProcessorWait(
        waited_ns=waited_ns,
        process=usual,
        processor_share=float(np.median(shares)),
        is_realtime=any(one.is_realtime for one in of_usual),
    )
