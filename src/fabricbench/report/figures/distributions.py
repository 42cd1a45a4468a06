"""Distributions of all measured samples of a cell: each fabric's density, scaled to its own peak, with its median marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fabricbench.analysis.findings import CellKey, CellSummary, Distribution, Findings
from fabricbench.model import Layer, Metric
from fabricbench.report.figures.axes import labels_of
from fabricbench.report.figures.encodings import CHOSEN, colour_channel, reader_params
from fabricbench.report.figures.figure import Figure, Panel, Spec, emulated_note, mark, receive_note, tooltip
from fabricbench.report.tables import distribution_table
from fabricbench.report.words import METRIC_WORDS, PATTERN_WORDS, RECEIVE_WORDS, size_words, value_words

CHOSEN_SIZE = CHOSEN + " && datum.bytes === size"
Summaries = Mapping[tuple[str, CellKey], CellSummary]


def distributions(
    findings: Findings, *, message_bytes: int | None = None, is_interactive: bool = False
) -> Figure | None:
    """Return the distributions at one message size: the smallest that is there unless one is named."""
    drawn = sorted(findings.distributions, key=lambda item: _panel_order(item.key))
    sizes = tuple(sorted({item.key.message_bytes for item in drawn}))
    if not sizes:
        return None
    size = sizes[0] if message_bytes is None else message_bytes
    groups: dict[tuple[str, ...], list[Distribution]] = {}
    for item in drawn:
        key = item.key
        if is_interactive or key.message_bytes == size:
            groups.setdefault((key.layer, key.pattern, key.receive, key.variant), []).append(item)
    of = {(summary.fabric, summary.key): summary for summary in findings.summaries}
    panels = tuple(_panel(findings, group, of, size, is_interactive) for group in groups.values())
    shown = "" if is_interactive else f"Messages of {size_words(size)}."
    parts = (
        "All measured samples, none dropped, each fabric scaled to its fullest bin: compare places and shapes, not heights.",
        "The outermost bins hold all samples beyond them; the table has the tails. The upright line is the median over launches.",
        shown,
        emulated_note(findings),
    )
    table = distribution_table(drawn, findings.summaries)
    return Figure(
        "distributions", "Distributions of single samples", " ".join(filter(None, parts)), panels, table, sizes=sizes
    )


def _panel_order(key: CellKey) -> tuple[int, int, str, int]:
    return list(Metric).index(key.metric), list(Layer).index(key.layer), key.receive, key.message_bytes


def _bins(item: Distribution) -> dict[str, Any]:
    """Return one row with the bins as lists, a tenth of the size of a row for each bin; the figure unfolds them."""
    return {
        "fabric": item.fabric,
        "receive": RECEIVE_WORDS[item.key.receive],
        "bytes": item.key.message_bytes,
        "peak": max(item.counts, default=0) or 1,
        "value": _drawn_edges(item.edges),
        "samples in bin": [*item.counts, 0],
    }


def _drawn_edges(edges: Sequence[float]) -> list[float]:
    """Return the edges with the outermost bins as narrow as their neighbours: they reach out to the extremes of the samples."""
    inner = list(edges[1:-1])
    if len(inner) < 2 or inner[0] <= 0:
        return [float(f"{edge:.6g}") for edge in edges]
    drawn = [max(edges[0], inner[0] ** 2 / inner[1]), *inner, min(edges[-1], inner[-1] ** 2 / inner[-2])]
    return [float(f"{edge:.6g}") for edge in drawn]


def _ticks(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return tick values for all that a panel may show, one size after another: 1, 2 and 5 in each decade."""
    edges = [edge for row in rows for edge in row["value"] if edge > 0] or [1.0, 10.0]
    powers = range(math.floor(math.log10(min(edges))), math.ceil(math.log10(max(edges))) + 1)
    return [float(f"{step}e{power}") for power in powers for step in (1, 2, 5)]


def _median_row(item: Distribution, of: Summaries) -> dict[str, Any]:
    summary = of[item.fabric, item.key]
    return {
        "fabric": item.fabric,
        "receive": RECEIVE_WORDS[item.key.receive],
        "bytes": item.key.message_bytes,
        "value": summary.median.value,
        "median": value_words(item.key.metric, summary.median.value),
        "n": f"{summary.launches} launches, {summary.samples:,} samples",
    }


def _panel(findings: Findings, group: Sequence[Distribution], of: Summaries, size: int, is_interactive: bool) -> Panel:
    key = group[0].key
    rows = [_bins(item) for item in group]
    medians = [_median_row(item, of) for item in group if (item.fabric, item.key) in of]
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {
            "labelExpr": labels_of(key.metric),
            "title": METRIC_WORDS[key.metric],
            "values": _ticks(rows),
            "grid": False,
            "labelOverlap": "greedy",
        },
    }
    y: Spec = {
        "field": "density",
        "type": "quantitative",
        "stack": None,
        "axis": {"labels": False, "grid": False, "title": "samples"},
        "scale": {"domain": [0, 1.05]},
    }
    colour = {"color": colour_channel(findings, has_legend=not is_interactive)}
    shape = {"x": x, "y": y, **colour}
    hint = {"tooltip": tooltip("fabric", "samples in bin")}
    median = {"x": x, **colour, "tooltip": tooltip("fabric", "median", "n")}
    layers = [
        mark("area", {**shape, **hint}, interpolate="step-after", opacity=0.28),
        mark("line", shape, interpolate="step-after", strokeWidth=1.25),
        mark("rule", median, rows=medians, keep=[CHOSEN_SIZE], strokeWidth=1.5),
    ]
    params = [*reader_params(findings), {"name": "size", "value": size}]
    sizes = " ".join(str(number) for number in sorted({item.key.message_bytes for item in group}))
    tags = {"layer": key.layer.value, "receive": RECEIVE_WORDS[key.receive], "sizes": sizes}
    words = (f"{key.layer} {PATTERN_WORDS[key.pattern]}", receive_note(findings, key.receive), key.variant)
    title = ", ".join(filter(None, words))
    unfold = [
        {"filter": CHOSEN_SIZE},
        {"flatten": ["value", "samples in bin"]},
        {"calculate": "datum['samples in bin'] / datum.peak", "as": "density"},
    ]
    spec = {"data": {"values": rows}, "transform": unfold, "params": params, "layer": layers}
    return Panel(title, spec, tags, height=110)
