"""Values with their intervals, as several chapters draw them: points along an axis, and bars beside what was expected of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fabricbench.analysis.findings import Findings
from fabricbench.model import Layer
from fabricbench.report.drawing.axes import CHOSEN, HAS_INTERVAL, colour_channel, shape_channel
from fabricbench.report.drawing.figure import Panel, Spec, mark


def interval_points(
    findings: Findings, place: Spec, along: str, value: Spec, hint: Sequence[Spec], *, has_legend: bool
) -> list[Spec]:
    """Return the layers of points, each with its interval `along` x or y; `place` encodes the other axis and the colour."""
    point = {**place, along: value, "shape": shape_channel(findings, has_legend=has_legend), "tooltip": hint}
    ends = {**place, along: {**value, "field": "low"}, f"{along}2": {"field": "high"}}
    return [
        mark("rule", ends, keep=[CHOSEN, HAS_INTERVAL], strokeWidth=2),
        mark("point", point, keep=[CHOSEN], filled=True, size=40, opacity=1),
    ]


def bar_panel(
    findings: Findings,
    layer: Layer,
    fabric: str,
    rows: Sequence[Mapping[str, Any]],
    hint: Sequence[Spec],
    *,
    x: Spec,
    y_axis: Spec,
    expected: str,
    row_height: int,
    tick_size: int,
    keep: Sequence[str] = (),
) -> Panel:
    """Return the panel of a layer on a fabric: a bar with its interval for each row, and a tick where it was `expected` to end.

    `x` has the scale, and of the axis its title and labels; ticks are drawn of the rows that `keep` lets pass.
    """
    labels = list(dict.fromkeys(row["label"] for row in rows))
    axis = {**x["axis"], "tickCount": 4, "labelOverlap": "greedy"}
    x = {"field": "value", "type": "quantitative", "scale": {**x["scale"], "nice": False}, "axis": axis}
    y: Spec = {"field": "label", "type": "nominal", "sort": labels, "title": None, "axis": {"grid": False, **y_axis}}
    bar = {"y": y, "x": {**x, "stack": None}, "color": colour_channel(findings), "tooltip": hint}
    layers = [
        mark("bar", bar, opacity=0.9, height={"band": 0.6}),
        mark(
            "rule", {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}, keep=[HAS_INTERVAL], strokeWidth=1.5
        ),
        mark("tick", {"y": y, "x": {**x, "field": expected}, "tooltip": hint}, keep=keep, thickness=2, size=tick_size),
    ]
    spec: Spec = {"data": {"values": rows}, "layer": layers}
    tags = {"layer": layer.value, "left": fabric, "right": fabric}
    return Panel(f"{layer.value}, {fabric}", spec, tags, height=row_height * len(labels) + 6)
