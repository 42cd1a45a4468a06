"""One-way latencies: a bar for each direction, a mark at half the round trip, which would be all that one clock alone can tell."""

from __future__ import annotations

from typing import Any

from fabricbench.analysis.findings import Findings, OneWay
from fabricbench.model import Layer, Metric
from fabricbench.report.figures.axes import TIME_LABELS
from fabricbench.report.figures.encodings import HAS_INTERVAL, colour_channel
from fabricbench.report.figures.figure import (
    Figure,
    Panel,
    Spec,
    emulated_note,
    interval_note,
    mark,
    sentences,
    tooltip,
)
from fabricbench.report.pattern_tables import bound_words, in_report_order, one_way_table
from fabricbench.report.words import interval_words, size_words, value_words

ROW_HEIGHT = 20
TRIP = Metric.ROUND_TRIP_TIME


def one_way(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return both directions of every size, a panel for each layer and fabric."""
    del is_interactive  # the page needs no other figure than paper
    order = [fabric.name for fabric in findings.fabrics]
    groups: dict[tuple[Layer, str], list[OneWay]] = {}
    for one in sorted(findings.one_ways, key=lambda one: (in_report_order(one.key)[0], order.index(one.fabric))):
        groups.setdefault((one.key.layer, one.fabric), []).append(one)
    if not groups:
        return None
    rows = [row for group in groups.values() for one in group for row in _rows(one)]
    ends = [end for row in rows for end in (row["value"], row["high"], row["low"], row["half"]) if end is not None]
    panels = tuple(
        _panel(findings, layer, fabric, sorted(group, key=lambda one: one.key.message_bytes), ends)
        for (layer, fabric), group in groups.items()
    )
    caption = sentences(
        "Bars: the latency of each direction by clocks that agree; upright mark: half the round trip of them. How "
        "far the clocks may be apart is under the pointer and in the table.",
        interval_note(findings, (one.launches for one in findings.one_ways)),
        emulated_note(findings),
    )
    return Figure("one-way", "The latency of each direction", caption, panels, one_way_table(findings))


def _rows(one: OneWay) -> list[dict[str, Any]]:
    rows = []
    for arrow, interval, ends in (
        ("→", one.forth, (one.source, one.destination)),
        ("←", one.back, (one.destination, one.source)),
    ):
        rows.append(
            {
                "label": f"{size_words(one.key.message_bytes)} {arrow}",
                "fabric": one.fabric,
                "value": interval.value,
                "low": interval.low,
                "high": interval.high,
                "half": one.round_trip.value / 2,
                "direction": f"rank {ends[0]} to rank {ends[1]}",
                "latency": interval_words(TRIP, interval),
                "clocks within": bound_words(one.clock_bound_ns, is_shared=one.is_shared_clock),
                "half the round trip": value_words(TRIP, one.round_trip.value / 2),
                "forth + back": value_words(TRIP, one.total.value),
                "round trip": interval_words(TRIP, one.round_trip),
            }
        )
    return rows


def _panel(findings: Findings, layer: Layer, fabric: str, group: list[OneWay], ends: list[float]) -> Panel:
    """Return a panel; `ends` are those of all panels, which share their axis."""
    rows = [row for one in group for row in _rows(one)]
    labels = list(dict.fromkeys(row["label"] for row in rows))
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [min(0.0, *ends), 1.05 * max(ends)], "nice": False},
        "axis": {"labelExpr": TIME_LABELS, "title": "one-way latency", "tickCount": 4, "labelOverlap": True},
    }
    y: Spec = {"field": "label", "type": "nominal", "sort": labels, "title": None, "axis": {"grid": False}}
    hint = tooltip(
        "direction", "fabric", "latency", "clocks within", "half the round trip", "forth + back", "round trip"
    )
    layers = [
        mark(
            "bar",
            {"y": y, "x": {**x, "stack": None}, "color": colour_channel(findings), "tooltip": hint},
            opacity=0.75,
            height={"band": 0.6},
        ),
        mark(
            "rule", {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}, keep=[HAS_INTERVAL], strokeWidth=1.5
        ),
        mark("tick", {"y": y, "x": {**x, "field": "half"}, "tooltip": hint}, thickness=2, size=16),
    ]
    spec: Spec = {"data": {"values": rows}, "layer": layers}
    tags = {"layer": layer.value, "left": fabric, "right": fabric}
    return Panel(f"{layer.value}, {fabric}", spec, tags, height=ROW_HEIGHT * len(labels) + 6)
