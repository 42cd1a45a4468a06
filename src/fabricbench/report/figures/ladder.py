"""The ladder of layers: what each layer of the stack costs, from raw frames up to MPI, in round trip and in throughput."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fabricbench.analysis.findings import Findings, LadderStep
from fabricbench.model import Layer, Metric
from fabricbench.report.drawing.axes import (
    CHOSEN,
    HAS_INTERVAL,
    colour_channel,
    dash_channel,
    dash_key,
    reader_params,
    shape_channel,
    value_channel,
)
from fabricbench.report.drawing.figure import (
    MEDIAN,
    OF_LAUNCHES,
    Figure,
    Panel,
    Spec,
    interval_note,
    mark,
    origin_note,
    tooltip,
)
from fabricbench.report.tables import ladder_table
from fabricbench.report.words import (
    MOST_OF_A_WIRE,
    RECEIVE_WORDS,
    interval_words,
    lost_words,
    range_words,
    rate_share_words,
    size_words,
    value_words,
)

ROW_HEIGHT = 40
FULL = 0.94
"""Share of the line rate from which on throughputs tell layers apart no more: headers take the rest."""
IMPOSSIBLE_COLOUR = "#c2410c"
"""Of a share that no wire can carry, which stands in words and not as a point."""


def ladder(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return round trip, throughput and share of the line rate for each layer that uses the fabric."""
    steps = [step for step in findings.ladder if step.layer is not Layer.MEMORY]
    rates = _full_wire(steps)
    built = [
        _value_panel(findings, steps, Metric.ROUND_TRIP_TIME, is_interactive),
        *(
            ()
            if rates
            else (
                _value_panel(findings, steps, Metric.THROUGHPUT, is_interactive),
                _share_panel(findings, steps, is_interactive),
            )
        ),
    ]
    panels = tuple(panel for panel in built if panel is not None)
    if not panels:
        return None
    sizes = sorted({step.round_trip_message_bytes for step in steps if step.round_trip_message_bytes is not None})
    round_trips = f"Round trips of {' and '.join(size_words(size) for size in sizes)}; " if sizes else ""
    levels = round_trips + (rates or f"best throughput over all message sizes{_frame_note(steps)}.")
    parts = (
        levels[:1].upper() + levels[1:],
        interval_note(findings),
        OF_LAUNCHES,
        "What a layer loses (in the table): against the layer below, at the largest size that both have, not that of the best.",
        origin_note(findings),
    )
    caption = " ".join(filter(None, parts))
    return Figure(
        "ladder", "Round trip and throughput at each layer", caption, panels, ladder_table(findings), is_switchable=True
    )


def _frame_note(steps: Sequence[LadderStep]) -> str:
    """Return why a layer that cannot send large messages may stand below the layers above it."""
    best = {step.layer: step.throughput_message_bytes or 0 for step in steps}
    frame = best.pop(Layer.FRAME, 0)
    if not frame or max(best.values(), default=0) <= frame:
        return ""
    return f", which for frames ends at {size_words(frame)}: each of them is sent by itself"


def _full_wire(steps: Sequence[LadderStep]) -> str:
    """Return what stands in place of throughputs where every layer fills its wire: drawn, they would be one line at the edge."""
    shares = [step.share_of_line_rate for step in steps if step.throughput is not None]
    known = [share for share in shares if share is not None and FULL <= share <= MOST_OF_A_WIRE]
    if not known or len(known) < len(shares):
        return ""
    least, most = (f"{100 * share:.0f}" for share in (min(known), max(known)))
    return f"throughput is in the table only: at its best every layer reaches {least} to {most} % of the line rate."


def _names(step: LadderStep) -> dict[str, Any]:
    return {
        "fabric": step.fabric,
        "receive": RECEIVE_WORDS[step.receive],
        "dash": dash_key(step.receive),
        "layer": step.layer.value,
        "order": list(Layer).index(step.layer),
    }


def _value_panel(findings: Findings, steps: Sequence[LadderStep], metric: Metric, is_interactive: bool) -> Panel | None:
    is_time = metric is Metric.ROUND_TRIP_TIME
    rows: list[dict[str, Any]] = []
    for step in steps:
        interval = step.round_trip if is_time else step.throughput
        size = step.round_trip_message_bytes if is_time else step.throughput_message_bytes
        if interval is not None:
            shown = {
                "value": interval.value,
                "low": interval.low,
                "high": interval.high,
                "median": value_words(metric, interval.value),
                "interval": range_words(metric, interval.low, interval.high),
                "measured at": f"{size_words(size)}, {RECEIVE_WORDS[step.receive]}",
                "added": interval_words(metric, step.added_round_trip),
            }
            rows.append(_names(step) | shown)
    if not rows:
        return None
    x = value_channel(metric, [row[part] for row in rows for part in ("value", "low", "high") if row[part]], MEDIAN)
    title = "Round trip of a small message" if is_time else "Best throughput"
    fields = ("fabric", "layer", "median", "interval", "measured at", *(("added",) if is_time else ()))
    return _profile(findings, rows, x, title, tooltip(*fields), is_interactive)


def _share_panel(findings: Findings, steps: Sequence[LadderStep], is_interactive: bool) -> Panel | None:
    rows = [
        _names(step)
        | {
            "value": step.share_of_line_rate,
            "share of line rate": rate_share_words(step.share_of_line_rate),
            "measured at": size_words(step.throughput_message_bytes),
            "lost, at the largest size of both layers": lost_words(step.lost_share_of_line_rate),
            "throughput": interval_words(Metric.THROUGHPUT, step.throughput),
        }
        for step in steps
        if step.share_of_line_rate is not None
    ]
    if not rows:
        return None
    axis = {
        "format": ".0%",
        "title": "share of the line rate, at the best throughput",
        "values": [0, 0.25, 0.5, 0.75, 1],
    }
    x = {"field": "value", "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": axis}
    fields = tooltip(
        "fabric", "layer", "share of line rate", "measured at", "throughput", "lost, at the largest size of both layers"
    )
    possible = [row for row in rows if row["value"] <= MOST_OF_A_WIRE]
    panel = _profile(findings, possible, x, "Share of the line rate", fields, is_interactive)
    impossible = [row for row in rows if row not in possible]
    if impossible:
        y = panel.spec["layer"][0]["encoding"]["y"]
        words = {"x": {"value": "width"}, "y": y, "text": {"field": "share of line rate"}, "tooltip": fields}
        struck = mark("text", words, rows=impossible, keep=[CHOSEN], align="right", dy=-10, color=IMPOSSIBLE_COLOUR)
        panel.spec["layer"].append(struck)
    return panel


def _profile(
    findings: Findings, rows: list[dict[str, Any]], x: Spec, title: str, fields: list[Spec], is_interactive: bool
) -> Panel:
    present = {row["layer"] for row in rows}
    layers_from_top = [layer.value for layer in reversed(Layer) if layer.value in present]
    axis = {"grid": True, "labelFontSize": 12}
    y: Spec = {"field": "layer", "type": "nominal", "sort": layers_from_top, "title": None, "axis": axis}
    shared = {"y": y, "color": colour_channel(findings, has_legend=not is_interactive)}
    line = {**shared, "x": x, "order": {"field": "order", "type": "quantitative"}, "strokeDash": dash_channel()}
    span = {**shared, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    point = {**shared, "x": x, "shape": shape_channel(findings, has_legend=not is_interactive), "tooltip": fields}
    layers = [
        mark("line", line, keep=[CHOSEN], strokeWidth=1.25, opacity=0.8),
        mark("rule", span, keep=[CHOSEN, HAS_INTERVAL], strokeWidth=3),
        mark("point", point, keep=[CHOSEN], filled=True, size=70, opacity=1),
    ]
    spec: Spec = {"data": {"values": rows}, "params": reader_params(findings), "layer": layers}
    return Panel(title, spec, {}, height=ROW_HEIGHT * len(layers_from_top))
