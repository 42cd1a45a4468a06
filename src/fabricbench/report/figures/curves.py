"""Curves over message size: a panel for each layer, a line for each fabric with its interval as a band, crossovers marked."""

from __future__ import annotations

from typing import Any

from fabricbench.analysis.findings import CellSummary, Crossover, Findings, Setup, is_sweep
from fabricbench.model import Layer, Metric
from fabricbench.report.drawing.axes import (
    CHOSEN,
    FEW_POINTS,
    colour_channel,
    dash_channel,
    dash_key,
    plotted_size,
    reader_params,
    shape_channel,
    size_channel,
    value_channel,
    zoom,
)
from fabricbench.report.drawing.course import CourseChannels, course_layers
from fabricbench.report.drawing.figure import (
    MEDIAN,
    OF_LAUNCHES,
    UNDECIDED,
    Figure,
    Panel,
    Spec,
    interval_note,
    mark,
    origin_note,
    tooltip,
)
from fabricbench.report.tables import summary_table
from fabricbench.report.words import (
    LAYER_WORDS,
    METRIC_WORDS,
    RECEIVE_WORDS,
    bracket_words,
    counted,
    place_words,
    range_words,
    rounded_size_words,
    size_words,
    value_words,
)

MET_BY_USERS = (Layer.TCP, Layer.RDMA, Layer.MPI)
"""Layers whose curves stand open in a page; those below explain them and fold away."""
LABEL_PLACE, LABEL_STEP = 8, 13
"""Pixels from the top of a panel: where crossovers are named, one below the other, as their strips may lie over each other."""


def round_trip_curves(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return round-trip times over message size."""
    return _curves(findings, Metric.ROUND_TRIP_TIME, "round-trip", is_interactive)


def throughput_curves(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return stream throughput over message size."""
    return _curves(findings, Metric.THROUGHPUT, "throughput", is_interactive)


def _curves(findings: Findings, metric: Metric, name: str, is_interactive: bool) -> Figure | None:
    summaries = [one for one in findings.summaries if one.key.metric is metric and is_sweep(one.key)]
    groups: dict[tuple[Layer, Setup], list[CellSummary]] = {}
    for summary in sorted(summaries, key=lambda item: (list(Layer).index(item.key.layer), item.key.order)):
        groups.setdefault((summary.key.layer, summary.key.setup), []).append(summary)
    crossovers = [one for one in findings.crossovers if one.metric is metric and is_sweep(one)]
    curves = [group for group in groups.values() if len({summary.key.message_bytes for summary in group}) > 1]
    points = [group[0].key for group in groups.values() if group not in curves]
    alike: dict[str, list[CellSummary]] = {}
    for group in curves:
        alike.setdefault(_family(group[0].key.layer), []).extend(group)
    panels = tuple(
        _panel(findings, group, alike[_family(group[0].key.layer)], crossovers, is_interactive) for group in curves
    )
    if not panels:
        return None
    parts = [
        "A panel for each layer; tcp, rdma and mpi share their axes, and so do the layers below.",
        interval_note(findings),
        OF_LAUNCHES,
        "Bands and strokes are the intervals; a hollow point has too few launches for one; two sizes alone have no line.",
    ]
    if any(summary.key.receive == "polling" for summary in summaries):
        parts.append("Solid: the receiver sleeps (blocking) or does as its library does; dashed: it spins (polling).")
    if metric is Metric.THROUGHPUT:
        parts.append("Dotted level: the line rate.")
    if crossovers:
        parts.append(_crossing_note(crossovers))
    if points:
        names = ", ".join(" ".join((key.layer, *key.variant_words)) for key in points)
        parts.append(f"In the table only, being measured at one size: {names}.")
    parts.append(origin_note(findings))
    title = f"{METRIC_WORDS[metric].capitalize()} over message size"
    caption = " ".join(filter(None, parts))
    behind = summary_table(summaries)
    return Figure(name, title, caption, panels, behind, is_switchable=True, fold_title="Lower layers")


def _crossing_note(crossovers: list[Crossover]) -> str:
    """Return what the strips mean, and the line in one only where there is one."""
    note = "Grey strip: somewhere between these two measured sizes the lead changes"
    if all(item.message_bytes is None for item in crossovers):
        return f"{note}."
    return f"{note}; line in a darker strip: where a model fitted to both curves puts that, with its interval."


def _family(layer: Layer) -> str:
    """Return which panels share their axes: what users meet, what lies below it, copies within a node."""
    if layer in MET_BY_USERS:
        return "met by users"
    return "memory" if layer is Layer.MEMORY else "below"


def _row(summary: CellSummary) -> dict[str, Any]:
    metric = summary.key.metric
    return {
        "fabric": summary.fabric,
        "receive": RECEIVE_WORDS[summary.key.receive],
        "dash": dash_key(summary.key.receive),
        "size": plotted_size(summary.key.message_bytes),
        "value": summary.median.value,
        "low": summary.median.low,
        "high": summary.median.high,
        "test": f"{size_words(summary.key.message_bytes)}, {RECEIVE_WORDS[summary.key.receive]}",
        "median": value_words(metric, summary.median.value),
        "interval": range_words(metric, summary.median.low, summary.median.high),
        "n": f"{counted(summary.launches, 'launch', 'launches')}, {counted(summary.samples, 'sample')}",
    }


def _launches(summaries: list[CellSummary]) -> list[dict[str, Any]]:
    """Return a point for each launch: what the medians and their intervals are made of."""
    return [
        {
            "fabric": summary.fabric,
            "receive": RECEIVE_WORDS[summary.key.receive],
            "size": plotted_size(summary.key.message_bytes),
            "value": float(f"{value:.4g}"),
        }
        for summary in summaries
        for value in summary.values
    ]


def _panel(
    findings: Findings,
    summaries: list[CellSummary],
    alike: list[CellSummary],
    crossovers: list[Crossover],
    is_interactive: bool,
) -> Panel:
    """Return a panel whose axes hold all that is `alike`: those over a network can be read across."""
    key = summaries[0].key
    sizes: dict[tuple[str, str], set[int]] = {}
    for summary in summaries:
        sizes.setdefault((summary.fabric, summary.key.receive), set()).add(summary.key.message_bytes)
    rows = [
        _row(summary) | {"is course": len(sizes[summary.fabric, summary.key.receive]) > FEW_POINTS}
        for summary in summaries
    ]
    levels = _line_rates(findings, key.layer) if key.metric is Metric.THROUGHPUT else []
    medians = [summary.median for summary in alike]
    values = [end for median in medians for end in (median.value, median.low, median.high) if end]
    x = size_channel([plotted_size(summary.key.message_bytes) for summary in alike])
    y = value_channel(key.metric, values + [level["value"] for level in levels], MEDIAN)
    crossings = [item for item in crossovers if (item.layer, item.setup) == (key.layer, key.setup)]
    channels = CourseChannels(
        x,
        y,
        colour=colour_channel(findings, has_legend=not is_interactive),
        shape=shape_channel(findings, has_legend=not is_interactive),
        dash=dash_channel(),
        detail={"field": "receive"},
        hint=tooltip("fabric", "test", "median", "interval", "n"),
    )
    layers = [
        *_crossing_layers(crossings, x),
        *_level_layers(findings, levels, y),
        *course_layers(channels, _launches(summaries), len(rows), [CHOSEN]),
    ]
    if is_interactive:
        layers[-1]["params"] = zoom("x", "y")
    spec: Spec = {"data": {"values": rows}, "params": reader_params(findings), "layer": layers}
    setup = f" ({', '.join(key.variant_words)})" if key.variant_words else ""
    title, is_folded = f"{key.layer}{setup}: {LAYER_WORDS[key.layer]}", key.layer not in MET_BY_USERS
    return Panel(title, spec, {"layer": key.layer.value}, is_folded=is_folded)


def _line_rates(findings: Findings, layer: Layer) -> list[dict[str, Any]]:
    if layer is Layer.MEMORY:
        return []
    return [
        {
            "fabric": fabric.name,
            "value": fabric.line_rate_bit_s,
            "line rate": value_words(Metric.THROUGHPUT, fabric.line_rate_bit_s),
        }
        for fabric in findings.fabrics
        if fabric.line_rate_bit_s is not None
    ]


def _level_layers(findings: Findings, levels: list[dict[str, Any]], y: Spec) -> list[Spec]:
    if not levels:
        return []
    encoding = {"y": y, "color": colour_channel(findings), "tooltip": tooltip("fabric", "line rate")}
    is_chosen = "indexof(fabrics, datum.fabric) >= 0"
    return [mark("rule", encoding, rows=levels, keep=[is_chosen], strokeDash=[1, 3], strokeWidth=1.25)]


def _crossing_layers(crossovers: list[Crossover], x: Spec) -> list[Spec]:
    """Return a light strip from one decided size to the other, and in it what a model says of the place, where one does."""
    if not crossovers:
        return []
    keep = [CHOSEN, "indexof(fabrics, datum.other) >= 0"]
    hint: Spec = {"tooltip": tooltip("crossover", "measured at", "faster below", "faster above")}
    strip = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, **hint}
    words = {"x": {**x, "field": "low"}, "text": {"field": "label"}}
    brackets = [_crossing_row(item, item.lower_bytes, item.upper_bytes) for item in crossovers]
    layers = [
        mark("rect", strip, rows=brackets, keep=keep, opacity=0.12, color=UNDECIDED),
        *(
            mark("text", words, rows=[row], keep=keep, align="left", dx=3, y=LABEL_PLACE + LABEL_STEP * number)
            for number, row in enumerate(brackets)
        ),
    ]
    located = [
        {**_crossing_row(item, item.low, item.high), "size": plotted_size(item.message_bytes)}
        for item in crossovers
        if item.message_bytes is not None and item.low is not None and item.high is not None
    ]
    if located:
        layers.append(mark("rect", strip, rows=located, keep=keep, opacity=0.22, color=UNDECIDED))
        layers.append(mark("rule", {"x": x, **hint}, rows=located, keep=keep, color=UNDECIDED))
    return layers


def _crossing_row(item: Crossover, low: float, high: float) -> dict[str, Any]:
    return {
        "fabric": item.fabric_b,
        "other": item.fabric_a,
        "receive": RECEIVE_WORDS[item.receive],
        "low": plotted_size(low),
        "high": plotted_size(high),
        "label": bracket_words(item) if item.message_bytes is None else f"~{rounded_size_words(item.message_bytes)}",
        "crossover": place_words(item),
        "measured at": bracket_words(item),
        "faster below": item.faster_below,
        "faster above": item.faster_above,
    }
