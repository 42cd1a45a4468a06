"""What one fabric does with messages of each size: round trips and half of them, what a ping-pong carries, and a stream beside it.

Of several fabrics the tables of ratios have the levels of each size; where there is one, nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fabricbench.analysis.findings import CellKey, CellSummary, Findings, Interval, is_basic
from fabricbench.analysis.instrument import impossible, tolerated, wire_shares
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.summary import over_launches, scaled
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Rows
from fabricbench.model import Layer, Metric, Model, Pattern, Receive
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import RateUnit, megabytes_s, rate_unit
from fabricbench.report.drawing.axes import (
    CHOSEN,
    HAS_INTERVAL,
    colour_channel,
    plotted_size,
    reader_params,
    size_channel,
    value_channel,
    zoom,
)
from fabricbench.report.drawing.figure import (
    MEDIAN,
    Figure,
    Panel,
    Spec,
    interval_note,
    mark,
    origin_note,
    sentences,
    tooltip,
)
from fabricbench.report.tables import summary_table
from fabricbench.report.words import (
    LAYER_WORDS,
    NOTHING,
    RECEIVE_WORDS,
    interval_words,
    layer_words,
    share_words,
    size_words,
    struck_words,
    value_words,
)
from fabricbench.table import Table, table

NAME = "by-size"
METHOD = """
Size by size: medians over launches with their {level} intervals from order statistics, each of its row alone. What a ping-pong
carries is the message over half its round trip, so that it can be set beside a stream of the same size; half a round trip is
the latency of one way only where both ways are alike.
"""
TRIP, RATE = Metric.ROUND_TRIP_TIME, Metric.THROUGHPUT
TAIL = 0.99
SAMPLES_OF_TAIL = 100
"""Fewer hold no sample beyond that tail."""


class SizeOnFabric(Model):
    """Messages of one size over one layer of a fabric: the ping-pong's times (ns), and what it and a stream carry (bit/s).

    `lost_nodes` had failed by then.
    """

    fabric: str
    layer: Layer
    receive: Receive
    lost_nodes: tuple[str, ...]
    message_bytes: int
    launches: int
    round_trip: Interval | None
    half_round_trip: Interval | None
    round_trip_p99_ns: float | None
    ping_pong_throughput: Interval | None
    stream_throughput: Interval | None
    stream_share_of_line_rate: float | None
    is_ping_pong_impossible: bool = False
    is_stream_impossible: bool = False
    is_stream_beyond_wire: bool = False


ROWS = Rows(NAME, SizeOnFabric)


def find(material: Material) -> Found:
    """Return a row for each layer and size of a fabric that is compared with none."""
    if material.pairings:
        return {}
    return {NAME: tuple(row for side in material.sides for row in _of_side(side, material.confidence))}


def _of_side(side: Side, confidence: float) -> Iterator[SizeOnFabric]:
    pairs: dict[CellKey, dict[Metric, CellMeasured]] = {}
    for key, cell in side.cells.items():
        if _is_of_network(key):
            alike = key.model_copy(update={"pattern": Pattern.PINGPONG, "metric": TRIP})
            pairs.setdefault(alike, {})[key.metric] = cell
    for key in sorted(pairs, key=lambda key: (list(Layer).index(key.layer), key.receive, key.order, key.message_bytes)):
        yield _row(side, key, pairs[key].get(TRIP), pairs[key].get(RATE), confidence)


def _is_of_network(key: CellKey) -> bool:
    return is_basic(key) and key.layer is not Layer.MEMORY


def _row(
    side: Side, key: CellKey, trip: CellMeasured | None, stream: CellMeasured | None, confidence: float
) -> SizeOnFabric:
    time = None if trip is None else over_launches(trip.launch_values, confidence, trip.rounding)
    rate = None if stream is None else over_launches(stream.launch_values, confidence, stream.rounding)
    found = [cell.launch_values for cell in (trip, stream) if cell is not None]
    return SizeOnFabric(
        fabric=side.name,
        layer=key.layer,
        receive=key.receive,
        lost_nodes=key.lost_nodes,
        message_bytes=key.message_bytes,
        launches=max(int(np.count_nonzero(~np.isnan(values))) for values in found),
        round_trip=time,
        half_round_trip=None if time is None else scaled(time, 0.5),
        round_trip_p99_ns=_tail(trip),
        ping_pong_throughput=None if time is None or not key.message_bytes else _carried(time, key.message_bytes),
        stream_throughput=rate,
        stream_share_of_line_rate=None if stream is None or rate is None else wire_shares(side, stream, rate.value)[0],
        is_ping_pong_impossible=trip is not None and impossible(side, trip) is not None,
        is_stream_impossible=stream is not None and impossible(side, stream) is not None,
        is_stream_beyond_wire=stream is not None
        and rate is not None
        and tolerated(side, stream, rate.value) is not None,
    )


def _tail(trip: CellMeasured | None) -> float | None:
    return None if trip is None or trip.pooled.size < SAMPLES_OF_TAIL else float(np.quantile(trip.pooled, TAIL))


def _carried(round_trip: Interval, message_bytes: int) -> Interval:
    """Return what a ping-pong carries in bit/s: the message over half its round trip; the longest takes the least."""
    bits = 2.0 * 8.0 * message_bytes * 1e9
    low, high = (None if end is None else bits / end for end in (round_trip.high, round_trip.low))
    return Interval(value=bits / round_trip.value, low=low, high=high)


def tables(findings: Findings) -> NamedTables:
    """Return a table for each layer from the top, then one of the other tests of two ranks."""
    found = [(_heading(group[0]), _table(group)) for group in reversed(_groups(findings))]
    others = summary_table(_others(findings))
    return [*found, ("Other tests of two ranks", others.without(others.columns.index("Fabric")))]


def _others(findings: Findings) -> list[CellSummary]:
    """Return the summaries of pairs that no table of a layer has; none of several fabrics, whose tables of ratios have them."""
    if not findings.chapters.get(NAME):
        return []
    return [
        one
        for one in findings.summaries
        if PATTERNS[one.key.pattern].family is Family.PAIR
        and one.key.pattern is not Pattern.ONEWAY  # which has a chapter
        and not _is_of_network(one.key)
    ]


def _groups(findings: Findings) -> list[list[SizeOnFabric]]:
    groups: dict[tuple[Layer, Receive, tuple[str, ...]], list[SizeOnFabric]] = {}
    for one in ROWS.of(findings):
        groups.setdefault((one.layer, one.receive, one.lost_nodes), []).append(one)
    return list(groups.values())


def _heading(one: SizeOnFabric) -> str:
    return layer_words(one.layer, one.receive, one.lost_nodes)


IN_MEGABYTES = ("Ping-pong, MB/s", "Stream, MB/s")
"""Columns of the same rates once more, as the studies of networks have them."""


def _table(group: Sequence[SizeOnFabric]) -> Table:
    rows = [
        (
            size_words(one.message_bytes),
            struck_words(interval_words(TRIP, one.round_trip), is_impossible=one.is_ping_pong_impossible),
            interval_words(TRIP, one.half_round_trip),
            value_words(TRIP, one.round_trip_p99_ns),
            struck_words(interval_words(RATE, one.ping_pong_throughput), is_impossible=one.is_ping_pong_impossible),
            _megabytes(one.ping_pong_throughput),
            struck_words(
                interval_words(RATE, one.stream_throughput),
                is_impossible=one.is_stream_impossible,
                is_beyond_wire=one.is_stream_beyond_wire,
            ),
            _megabytes(one.stream_throughput),
            struck_words(share_words(one.stream_share_of_line_rate), is_impossible=one.is_stream_impossible),
            str(one.launches),
        )
        for one in group
    ]
    columns = (
        "Message",
        "Round trip",
        "Half of it",
        "99 % of round trips below",
        "Ping-pong carries",
        IN_MEGABYTES[0],
        "Stream carries",
        IN_MEGABYTES[1],
        "Of line rate",
        "Launches",
    )
    spare = ("Launches", "99 % of round trips below", "Of line rate", *IN_MEGABYTES)
    made = table(columns, rows, range(len(columns)), spare=spare, result="Stream carries")
    if rate_unit() is RateUnit.BITS:
        return made
    return made.only(
        [place for place, name in enumerate(columns) if name not in IN_MEGABYTES]
    )  # where all rates are in bytes


def _megabytes(rate: Interval | None) -> str:
    return NOTHING if rate is None else megabytes_s(rate.value)


def lines(findings: Findings) -> Sequence[str]:
    """Return for each layer from the top how long its smallest message takes and what its largest one carries."""
    return [line for group in reversed(_groups(findings)) if (line := _line(group))]


def _line(group: Sequence[SizeOnFabric]) -> str:
    trips = [one for one in group if one.half_round_trip is not None and not one.is_ping_pong_impossible]
    rates = [one for one in group if one.stream_throughput is not None and not one.is_stream_impossible]
    parts = []
    if trips:
        first, last = trips[0], trips[-1]
        half = interval_words(TRIP, first.half_round_trip)
        parts.append(f"half a round trip of {size_words(first.message_bytes)} is {half}")
        if last.ping_pong_throughput is not None:
            carried = interval_words(RATE, last.ping_pong_throughput)
            parts.append(f"a ping-pong of {size_words(last.message_bytes)} carries {carried}")
    if rates:
        best = rates[-1]
        carried = interval_words(RATE, best.stream_throughput)
        parts.append(f"a stream of {size_words(best.message_bytes)} messages carries {carried}")
    return f"{_heading(group[0])}: {'; '.join(parts)}." if parts else ""


PATTERNS_DRAWN = {"stream": [1, 0], "ping-pong": [5, 3]}
"""The dashes of their lines."""


def carried(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return what ping-pongs and streams carry over message size, a panel for each layer."""
    groups = [group for group in _groups(findings) if len(group) > 1]
    drawn = [_drawn(group) for group in groups]
    everything = [row for rows in drawn for row in rows]
    if not everything:
        return None
    panels = tuple(
        _panel(findings, _heading(group[0]), group[0], rows, everything, is_interactive=is_interactive)
        for group, rows in zip(groups, drawn, strict=True)
        if rows
    )
    caption = sentences(
        "Solid: a stream; dashed: a ping-pong, its message over half a round trip. All panels share their axes.",
        interval_note(findings, (one.launches for group in groups for one in group)),
        "What cannot be right is left out.",
        origin_note(findings),
    )
    whole = [one for group in groups for one in group]
    title = "What ping-pong and stream carry over message size"
    return Figure("carried", title, caption, panels, _behind(whole), is_switchable=True)


def _behind(rows: Sequence[SizeOnFabric]) -> Table:
    content = _table(rows)
    layers = tuple((_heading(one), *row) for one, row in zip(rows, content.rows, strict=True))
    return table(("Layer", *content.columns), layers, range(1, len(content.columns) + 1))


def _drawn(group: Sequence[SizeOnFabric]) -> list[dict[str, Any]]:
    return [
        {
            "fabric": one.fabric,
            "receive": RECEIVE_WORDS[one.receive],
            "pattern": pattern,
            "size": plotted_size(one.message_bytes),
            "message": size_words(one.message_bytes),
            "carries": interval_words(RATE, rate),
            **rate.model_dump(),
        }
        for one in group
        for pattern, rate, is_impossible in (
            ("stream", one.stream_throughput, one.is_stream_impossible),
            ("ping-pong", one.ping_pong_throughput, one.is_ping_pong_impossible),
        )
        if rate is not None and rate.value > 0 and not is_impossible
    ]


def _panel(
    findings: Findings,
    heading: str,
    one: SizeOnFabric,
    rows: list[dict[str, Any]],
    alike: Sequence[dict[str, Any]],
    *,
    is_interactive: bool,
) -> Panel:
    """Return a panel whose axes hold all that is `alike`."""
    x = size_channel([row["size"] for row in alike])
    y = value_channel(RATE, [end for row in alike for end in (row["value"], row["low"], row["high"]) if end], MEDIAN)
    scale = {"domain": list(PATTERNS_DRAWN), "range": list(PATTERNS_DRAWN.values())}
    dash = {"field": "pattern", "type": "nominal", "scale": scale, "legend": {"title": None, "orient": "bottom"}}
    shared: Spec = {"x": x, "color": colour_channel(findings)}
    hint = tooltip("pattern", "message", "carries")
    ends = {**shared, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        mark("rule", ends, keep=[CHOSEN, HAS_INTERVAL], strokeWidth=1),
        mark("line", {**shared, "y": y, "strokeDash": dash}, keep=[CHOSEN], strokeWidth=1.75),
        mark("point", {**shared, "y": y, "tooltip": hint}, keep=[CHOSEN], filled=True, size=30, opacity=1),
    ]
    if is_interactive:
        layers[-1]["params"] = zoom("x", "y")
    spec: Spec = {"data": {"values": rows}, "params": reader_params(findings), "layer": layers}
    return Panel(f"{heading}: {LAYER_WORDS[one.layer]}", spec, {"layer": one.layer.value})


CHAPTER = Chapter(
    name=NAME,
    title="What it carries, size by size",
    needs="a run of one fabric with ping-pongs or streams",
    find=find,
    method=METHOD,
    tables=tables,
    lines=lines,
    figures={"carried": carried},
    on_page=OnPage(entry="Size by size"),
)
