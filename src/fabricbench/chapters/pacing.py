"""What a message costs one fabric by what is sent around it: alone, with an idle line before it, in a burst, in a stream.

A launch has all of these, so that they are compared within launches. An offload that delays single packets shows here, and so does
coalescing of interrupts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey, Findings, Interval, is_basic
from fabricbench.analysis.instrument import impossible
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.summary import over_launches
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Rows
from fabricbench.model import Layer, Metric, Model, Pattern, Receive
from fabricbench.patterns import PATTERNS
from fabricbench.report.words import (
    counted,
    interval_words,
    layer_words,
    range_words,
    size_words,
    value_words,
)
from fabricbench.table import table

NAME = "pacing"
METHOD = """
Single and streamed messages: a lone message counts with half the round trip of a ping-pong, a paced one with half of a paced
ping-pong's, a streamed one with the time from one arrival to the next, each further message of a burst with what it adds to
the round trip of one. What one takes longer than the other is the median over launches of the difference within a launch, with
its {level} interval from order statistics, each of its row alone.
"""
Floats = NDArray[np.float64]
TIME = Metric.ROUND_TRIP_TIME


class MessagePacing(Model):
    """Messages of one size over one layer of a fabric, in ns of each: lone, paced, further ones of a burst, streamed.

    `lone_over_streamed` and the like are differences within launches: how much longer the first takes than the second.
    `interval_us` is the time from one paced message to the next, `burst_messages` how many a burst has.
    """

    fabric: str
    layer: Layer
    receive: Receive
    lost_nodes: tuple[str, ...]
    message_bytes: int
    launches: int
    lone: Interval
    streamed: Interval | None = None
    paced: Interval | None = None
    burst: Interval | None = None
    interval_us: float | None = None
    burst_messages: int | None = None
    lone_over_streamed: Interval | None = None
    paced_over_lone: Interval | None = None
    lone_over_burst: Interval | None = None


ROWS = Rows(NAME, MessagePacing)


def find(material: Material) -> Found:
    """Return a row for each layer and size of a fabric that is compared with none, where more than lone messages were measured."""
    if material.pairings:
        return {}
    rows = [_row(side, key, material.confidence) for side in material.sides for key in _lone(side)]
    return {NAME: tuple(row for row in rows if row is not None)}


def _lone(side: Side) -> list[CellKey]:
    """Return the ping-pongs whose messages hold something, the top layer's first."""
    keys = [
        key
        for key in side.cells
        if key.pattern is Pattern.PINGPONG and key.layer is not Layer.MEMORY and is_basic(key) and key.message_bytes
    ]
    return sorted(keys, key=lambda key: (-list(Layer).index(key.layer), key.receive, key.order, key.message_bytes))


def _row(side: Side, key: CellKey, confidence: float) -> MessagePacing | None:
    trip = side.cells[key]
    stream, paced, burst = (_beside(side, key, pattern) for pattern in (Pattern.STREAM, Pattern.PACED, Pattern.BURST))
    lone = trip.launch_values / 2.0
    shown = over_launches(lone, confidence)
    if shown is None or impossible(side, trip) is not None or (stream is None and paced is None and burst is None):
        return None

    def told(values: Floats | None) -> Interval | None:
        return None if values is None else over_launches(values, confidence)

    def beyond(longer: Floats | None, shorter: Floats | None) -> Interval | None:
        return None if longer is None or shorter is None else told(longer - shorter)

    streamed = None if stream is None else _each_of_stream(stream)
    idle = None if paced is None else paced.launch_values / 2.0
    messages = None if burst is None else int(_told(burst, "messages"))
    further = None if burst is None or not messages or messages < 2 else _each_of_burst(burst, trip, messages)
    return MessagePacing(
        fabric=side.name,
        layer=key.layer,
        receive=key.receive,
        lost_nodes=key.lost_nodes,
        message_bytes=key.message_bytes,
        launches=int(np.count_nonzero(~np.isnan(lone))),
        lone=shown,
        streamed=told(streamed),
        paced=told(idle),
        burst=told(further),
        interval_us=None if paced is None else _told(paced, "interval_us"),
        burst_messages=messages,
        lone_over_streamed=beyond(lone, streamed),
        paced_over_lone=beyond(idle, lone),
        lone_over_burst=beyond(lone, further),
    )


OWN = {Pattern.PACED: "interval_us", Pattern.BURST: "messages"}
"""What these patterns alone are told."""


def _beside(side: Side, key: CellKey, pattern: Pattern) -> CellMeasured | None:
    """Return the cell of another pattern that is as the ping-pong else, of several the one with the most of its OWN.

    None where it was not measured, or cannot be right.
    """
    name = OWN.get(pattern, "")
    found = [
        cell
        for other, cell in side.cells.items()
        if (other.pattern, other.layer, other.receive, other.message_bytes)
        == (pattern, key.layer, key.receive, key.message_bytes)
        and other.model_copy(update={"parameters": _without(other, name)}).setup == key.setup
        and impossible(side, cell) is None
    ]
    return max(found, key=lambda cell: _told(cell, name) if name else 0.0, default=None)


def _without(key: CellKey, name: str) -> tuple[tuple[str, str | int | float], ...]:
    return tuple(one for one in key.parameters if one[0] != name)


def _told(cell: CellMeasured, name: str) -> float:
    return float(cell.facts.parameters.get(name, PATTERNS[cell.key.pattern].parameters[name].default))


def _each_of_stream(stream: CellMeasured) -> Floats:
    """Return in ns the time from one message of a stream to the next, in each launch."""
    rates = np.where(stream.launch_values > 0, stream.launch_values, np.nan)
    return np.asarray(8e9 * stream.key.message_bytes / rates, dtype=np.float64)


def _each_of_burst(burst: CellMeasured, trip: CellMeasured, messages: int) -> Floats:
    """Return in ns what each message of a burst but the first adds: a burst of one is a round trip."""
    return np.asarray((burst.launch_values - trip.launch_values) / (messages - 1), dtype=np.float64)


Of = Callable[[MessagePacing], Interval | None]

COLUMNS: tuple[tuple[str, Of], ...] = (
    ("Lone: half a round trip", lambda one: one.lone),
    ("Paced: half a round trip", lambda one: one.paced),
    ("Each further of a burst", lambda one: one.burst),
    ("Streamed: one to the next", lambda one: one.streamed),
    ("Paced over lone", lambda one: one.paced_over_lone),
    ("Lone over burst", lambda one: one.lone_over_burst),
    ("Lone over streamed", lambda one: one.lone_over_streamed),
)


def tables(findings: Findings) -> NamedTables:
    """Return the one table of the chapter: a row for each layer and size, a column for whatever was measured."""
    found = ROWS.of(findings)
    columns = [(head, of) for head, of in COLUMNS if any(of(one) is not None for one in found)]
    rows = [
        (_layer(one), size_words(one.message_bytes), *(interval_words(TIME, of(one)) for _, of in columns))
        for one in found
    ]
    heads = ("Layer", "Message", *(head for head, _ in columns))
    return [("", table(heads, rows, range(1, len(heads)), result=heads[-1] if columns else ""))]


def _layer(one: MessagePacing) -> str:
    return layer_words(one.layer, one.receive, one.lost_nodes)


def lines(findings: Findings) -> Sequence[str]:
    """Return for each layer from the top what is shown of its smallest message that has each difference."""
    groups: dict[str, list[MessagePacing]] = {}
    for one in ROWS.of(findings):
        groups.setdefault(_layer(one), []).append(one)
    return [line for layer, group in groups.items() for line in _lines(layer, group)]


def _lines(layer: str, group: Sequence[MessagePacing]) -> Iterator[str]:
    kinds: tuple[tuple[str, str, Of, Callable[[MessagePacing], str]], ...] = (
        ("single messages", "streamed ones", lambda one: one.lone_over_streamed, _of_stream),
        ("messages on a line that was idle", "those of a ping-pong", lambda one: one.paced_over_lone, _of_pace),
        ("single messages", "each further one of a burst", lambda one: one.lone_over_burst, _of_burst),
    )
    for these, those, difference, details in kinds:
        told = [(one, found) for one in group if (found := difference(one)) is not None]
        if told:
            first, found = told[0]
            said = _claim(these, those, found, first.launches)
            yield f"{layer}, {size_words(first.message_bytes)}: {said} ({details(first)}){_at_others(told)}."


def _claim(these: str, those: str, difference: Interval, launches: int) -> str:
    """Return `single messages take 24.1 µs (20.2 to 28.3 µs) longer than streamed ones`, as far as the interval says so."""
    low, high = difference.low, difference.high
    if low is None or high is None:
        value = value_words(TIME, abs(difference.value))
        few = f"in the median of {counted(launches, 'launch', 'launches')}, too few for an interval"
        return f"{these} took {value} {_direction(difference)} than {those} {few}"
    if not _is_shown(difference):
        return f"that {these} take longer or less than {those} is not shown, the difference is {range_words(TIME, low, high)}"
    ends = sorted(map(abs, (low, high)))
    shown = Interval(value=abs(difference.value), low=ends[0], high=ends[1])
    return f"{these} take {interval_words(TIME, shown)} {_direction(difference)} than {those}"


def _direction(difference: Interval) -> str:
    return "longer" if difference.value > 0.0 else "less"


def _at_others(told: Sequence[tuple[MessagePacing, Interval]]) -> str:
    """Return at how many of the other sizes the same is shown, and between which values."""
    (_, first), *others = told
    if not others or not _is_shown(first):
        return ""
    alike = [found for _, found in others if _is_shown(found) and (found.value > 0.0) == (first.value > 0.0)]
    values = sorted(abs(found.value) for found in alike)
    larger = f"{counted(len(others), 'larger size')}, up to {size_words(told[-1][0].message_bytes)}"
    if not values:
        return f"; shown at none of {larger}"
    ends = dict.fromkeys(value_words(TIME, end) for end in (values[0], values[-1]))
    return f"; {_direction(first)} by {' to '.join(ends)} at {len(alike)} of {larger}"


def _is_shown(difference: Interval) -> bool:
    """Whether the interval says in which direction the difference is."""
    low, high = difference.low, difference.high
    return low is not None and high is not None and not low <= 0.0 <= high


def _of_stream(one: MessagePacing) -> str:
    return f"half a round trip {_level(one.lone)}, from one to the next {_level(one.streamed)}"


def _of_pace(one: MessagePacing) -> str:
    every = "" if one.interval_us is None else f" one every {value_words(TIME, 1e3 * one.interval_us)},"
    return f"half a round trip:{every} {_level(one.paced)}, one after the other {_level(one.lone)}"


def _of_burst(one: MessagePacing) -> str:
    return f"half a round trip {_level(one.lone)}, each further of {one.burst_messages} {_level(one.burst)}"


def _level(one: Interval | None) -> str:
    return value_words(TIME, None if one is None else one.value)


CHAPTER = Chapter(
    name=NAME,
    title="Single messages beside streamed ones",
    needs="a run of one fabric with ping-pongs, and streams, paced ping-pongs or bursts of the same size",
    find=find,
    method=METHOD,
    tables=tables,
    lines=lines,
    on_page=OnPage(entry="Single and streamed"),
)
