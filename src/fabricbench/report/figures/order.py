"""Launches in order of time: each row of the first screen over the blocks, so that drift and slow launches are seen as such."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fabricbench.analysis.findings import Effect, Findings
from fabricbench.report.drawing.axes import colour_channel, shape_channel, value_channel
from fabricbench.report.drawing.figure import Figure, Panel, Spec, mark, origin_note, sentences, tooltip
from fabricbench.report.palette import fabric_names
from fabricbench.report.words import NOTHING, value_words
from fabricbench.table import Table, table

FEWEST = 3
"""Launches of a fabric from which on their order says anything."""
SLOWER = " (slower group)"


def order(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the launches of each row of the first screen over their blocks, which follow each other in time."""
    shown = [effect for effect in findings.headline.effects if _launches(effect) >= FEWEST]
    if not shown:
        return None
    panels = tuple(_panel(findings, effect, is_interactive) for effect in shown)
    caption = sentences(
        "Each launch's value over its block; blocks follow each other in time. A slope is drift; a few points apart from the rest "
        "are a slow mode or a busy host. A block without a point gave nothing.",
        "Hollow points are the slower of two groups into which a fabric's launches fall." if _has_groups(shown) else "",
        origin_note(findings),
    )
    return Figure("order", "Launches in order of time", caption, panels, _table(shown), rests_on="")


def _launches(effect: Effect) -> int:
    return max((len(reading.launches) for reading in effect.readings), default=0)


def _has_groups(effects: Sequence[Effect]) -> bool:
    return any(reading.slow for effect in effects for reading in effect.readings)


def _panel(findings: Findings, effect: Effect, is_interactive: bool) -> Panel:
    rows = [
        {
            "fabric": reading.fabric,
            "block": block,
            "value": value,
            "launch": value_words(effect.metric, value),
            "of": f"block {block}",
            "slow": block - 1 in reading.slow,
        }
        for reading in effect.readings
        for block, value in enumerate(reading.launches, 1)
        if value is not None and value > 0
    ]
    x: Spec = {
        "field": "block",
        "type": "quantitative",
        "scale": {"domain": [0.5, _launches(effect) + 0.5], "nice": False},
        "axis": {"title": "block", "grid": False, "tickMinStep": 1, "labelOverlap": "greedy", "format": "d"},
    }
    y = value_channel(effect.metric, [float(str(row["value"])) for row in rows])
    colour = colour_channel(findings, has_legend=not is_interactive)
    shape = shape_channel(findings, has_legend=not is_interactive)
    point: Spec = {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tooltip("fabric", "of", "launch")}
    keep = ["indexof(fabrics, datum.fabric) >= 0"]
    means: list[dict[str, Any]] = [
        {"fabric": reading.fabric, "value": reading.value} for reading in effect.readings if reading.value
    ]
    layers = [
        mark("rule", {"y": y, "color": colour}, rows=means, keep=keep, strokeWidth=0.75),
        mark("point", point, keep=[*keep, "!datum.slow"], filled=True, size=40, opacity=1),
    ]
    if _has_groups([effect]):
        layers.append(mark("point", point, keep=[*keep, "datum.slow"], filled=False, size=40, opacity=1))
    params = [{"name": "fabrics", "value": fabric_names(findings)}]
    tags = {} if effect.layer is None else {"layer": effect.layer.value}
    return Panel(effect.what, {"data": {"values": rows}, "params": params, "layer": layers}, tags, height=140)


def _table(effects: list[Effect]) -> Table:
    rows = [
        (
            effect.what,
            reading.fabric,
            str(block),
            NOTHING if value is None else value_words(effect.metric, value) + SLOWER * (block - 1 in reading.slow),
        )
        for effect in effects
        for reading in effect.readings
        for block, value in enumerate(reading.launches, 1)
    ]
    return table(("Test", "Fabric", "Block", "Launch"), rows, (2, 3))
