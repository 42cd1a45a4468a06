"""Patterns of many ranks: a bar for what a channel carries, a mark for what arithmetic gives it, layer by layer."""

from __future__ import annotations

from typing import Any

from fabricbench.analysis.findings import Findings, Topology
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.report.figures.axes import RATE_LABELS
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
from fabricbench.report.pattern_tables import in_report_order, topology_table
from fabricbench.report.words import (
    NOTHING,
    PATTERN_WORDS,
    interval_words,
    share_interval_words,
    size_words,
    value_words,
)

ROW_HEIGHT = 19
TICK_SIZE = 15
LABEL_EXTENT = 110
"""Pixels for the names of patterns, the same in every panel, so that bars can be compared across."""


def topologies(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the mean throughput of a logical channel, beside what a full-duplex switch would give it."""
    del is_interactive  # the page needs no other figure than paper
    groups: dict[tuple[Layer, str], list[Topology]] = {}
    order = [fabric.name for fabric in findings.fabrics]
    shown = [one for one in findings.topologies if is_shown(one)]
    for one in sorted(shown, key=lambda one: (in_report_order(one.key)[0], order.index(one.fabric), *_place(one))):
        groups.setdefault((one.key.layer, one.fabric), []).append(one)
    if not groups:
        return None
    ends = [
        end
        for one in shown
        for end in (one.channel_throughput.value, one.channel_throughput.high, one.arithmetic)
        if end
    ]
    longest = max(ends, default=1.0)
    panels = tuple(_panel(findings, layer, fabric, group, longest) for (layer, fabric), group in groups.items())
    caption = sentences(
        "Bar: throughput of all channels over the channels in use; upright mark: the share of a link's payload rate that "
        "arithmetic gives each channel behind a full-duplex switch.",
        interval_note(findings, (one.launches for one in shown)),
        "More flows, message rates and the ratio of the fabrics: in the table.",
        emulated_note(findings),
    )
    title = "What a channel carries in patterns of many ranks"
    return Figure("topologies", title, caption, panels, topology_table(findings))


def is_shown(one: Topology) -> bool:
    """Whether a pattern stands in the figure: rates in messages and sweeps over flows have another scale or figure."""
    return one.key.metric is not Metric.MESSAGE_RATE and one.flows == 1


def _place(one: Topology) -> tuple[int, int, str]:
    return list(Pattern).index(one.key.pattern), one.key.message_bytes, one.key.variant


def _row(one: Topology) -> dict[str, Any]:
    each = one.channel_throughput
    usual = f"{one.ranks} ranks"
    more = one.key.variant.removeprefix(usual).removeprefix(", ")
    label = f"{PATTERN_WORDS[one.key.pattern]} {size_words(one.key.message_bytes)}"
    return {
        "label": f"{label}, {more}" if more else label,
        "fabric": one.fabric,
        "value": each.value,
        "low": each.low,
        "high": each.high,
        "predicted": one.arithmetic,
        "pattern": f"{label}, {usual}, {one.channels} channels",
        "a channel": interval_words(Metric.THROUGHPUT, each),
        "all channels": interval_words(Metric.THROUGHPUT, one.throughput),
        "arithmetic": value_words(Metric.THROUGHPUT, one.arithmetic),
        "of arithmetic": share_interval_words(one.share_of_arithmetic),
        "fairness": NOTHING if one.fairness is None else f"{one.fairness.value:.3f}",
    }


def _panel(findings: Findings, layer: Layer, fabric: str, group: list[Topology], longest: float) -> Panel:
    rows = [_row(one) for one in group]
    labels = list(dict.fromkeys(row["label"] for row in rows))
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [0, 1.04 * longest], "nice": False},
        "axis": {"labelExpr": RATE_LABELS, "title": "throughput of a channel", "tickCount": 4, "labelOverlap": True},
    }
    y: Spec = {
        "field": "label",
        "type": "nominal",
        "sort": labels,
        "title": None,
        "axis": {"grid": False, "labelLimit": 190, "minExtent": LABEL_EXTENT},
    }
    hint = tooltip("pattern", "fabric", "a channel", "all channels", "arithmetic", "of arithmetic", "fairness")
    colour = colour_channel(findings)
    bar = {"y": y, "x": {**x, "stack": None}, "color": colour, "tooltip": hint}
    span = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    predicted = {"y": y, "x": {**x, "field": "predicted"}, "tooltip": hint}
    layers = [
        mark("bar", bar, opacity=0.75, height={"band": 0.6}),
        mark("rule", span, keep=[HAS_INTERVAL], strokeWidth=1.5),
        mark("tick", predicted, keep=["isValid(datum.predicted)"], thickness=2, size=TICK_SIZE),
    ]
    spec: Spec = {"data": {"values": rows}, "layer": layers}
    tags = {"layer": layer.value, "left": fabric, "right": fabric}
    return Panel(f"{layer.value}, {fabric}", spec, tags, height=ROW_HEIGHT * len(labels) + 6)
