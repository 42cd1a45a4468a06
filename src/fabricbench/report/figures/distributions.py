"""Distributions of all measured samples of a cell: each fabric's density, scaled to its own peak, with its median marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fabricbench.analysis.findings import CellKey, CellSummary, Distribution, Findings
from fabricbench.model import Layer, Metric
from fabricbench.patterns import PATTERNS
from fabricbench.report.drawing.axes import CHOSEN, colour_channel, labels_of, reader_params, shape_channel
from fabricbench.report.drawing.figure import Figure, Panel, Spec, mark, origin_note, receive_note, tooltip
from fabricbench.report.tables import distribution_table
from fabricbench.report.words import METRIC_WORDS, PATTERN_WORDS, RECEIVE_WORDS, size_words, value_words

ANY_SIZE = -1
"""Of what has no message size: kernels, barriers. It shows whichever size is chosen."""
CHOSEN_SIZE = CHOSEN + f" && (datum.bytes === size || datum.bytes === {ANY_SIZE})"
FEW_SAMPLES = 30
"""Fewer are drawn as dots: a histogram of them shows its bins and not their distribution."""
UNFOLD: list[Spec] = [
    {"filter": CHOSEN_SIZE},
    {"flatten": ["value", "samples in bin"]},
    {"calculate": "datum['samples in bin'] / datum.peak", "as": "density"},
]
Summaries = Mapping[tuple[str, CellKey], CellSummary]


def distributions(
    findings: Findings, *, message_bytes: int | None = None, is_interactive: bool = False
) -> Figure | None:
    """Return the distributions at one message size: the smallest that is there unless one is named."""
    drawn = sorted(findings.distributions, key=lambda item: _panel_order(item.key))
    sizes = tuple(
        sorted(
            {item.key.message_bytes for item in drawn if PATTERNS[item.key.pattern].has_size}
            or {item.key.message_bytes for item in drawn}
        )
    )
    if not sizes:
        return None
    size = sizes[0] if message_bytes is None else message_bytes
    groups: dict[tuple[str, ...], list[Distribution]] = {}
    for item in drawn:
        key = item.key
        if is_interactive or key.message_bytes == size or not PATTERNS[key.pattern].has_size:
            groups.setdefault((key.layer, key.pattern, key.receive, key.variant), []).append(item)
    of = {(summary.fabric, summary.key): summary for summary in findings.summaries}
    panels = tuple(_panel(findings, group, of, size, is_interactive) for group in groups.values())
    shown = "" if is_interactive else f"Messages of {size_words(size)}."
    parts = (
        "All measured samples, none dropped, each fabric scaled to its fullest bin: compare places and shapes, not heights.",
        "The outermost bins hold all samples beyond them; the table has the tails. The upright line is the median over launches.",
        f"Fewer than {FEW_SAMPLES} samples are dots." if any(sum(item.counts) < FEW_SAMPLES for item in drawn) else "",
        shown,
        origin_note(findings),
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
        "bytes": item.key.message_bytes if PATTERNS[item.key.pattern].has_size else ANY_SIZE,
        "peak": max(item.counts, default=0) or 1,
        "value": _drawn_edges(item.edges),
        "samples in bin": [*item.counts, 0],
    }


def _dots(item: Distribution) -> list[dict[str, Any]]:
    """Return a dot for each sample at the middle of its bin, those of one bin above each other."""
    drawn = _drawn_edges(item.edges)
    total = sum(item.counts)
    return [
        {
            "fabric": item.fabric,
            "receive": RECEIVE_WORDS[item.key.receive],
            "bytes": item.key.message_bytes if PATTERNS[item.key.pattern].has_size else ANY_SIZE,
            "value": middle,
            "density": (level + 1) / (max(item.counts) + 1),
            "about": value_words(item.key.metric, middle),
            "samples": f"{total} in all",
        }
        for low, high, count in zip(drawn, drawn[1:], item.counts, strict=False)
        for middle in [float(f"{(low + high) / 2:.6g}")]
        for level in range(count)
    ]


def _drawn_edges(edges: Sequence[float]) -> list[float]:
    """Return the edges with the outermost bins as narrow as their neighbours: they reach out to the extremes of the samples."""
    inner = list(edges[1:-1])
    if len(inner) < 2 or inner[0] <= 0:
        return [float(f"{edge:.6g}") for edge in edges]
    drawn = [max(edges[0], inner[0] ** 2 / inner[1]), *inner, min(edges[-1], inner[-1] ** 2 / inner[-2])]
    return [float(f"{edge:.6g}") for edge in drawn]


def _ticks(edges_of: Sequence[Sequence[float]]) -> list[float]:
    """Return tick values for all that a panel may show, one size after another: 1, 2 and 5 in each decade."""
    edges = [edge for edges in edges_of for edge in edges if edge > 0] or [1.0, 10.0]
    powers = range(math.floor(math.log10(min(edges))), math.ceil(math.log10(max(edges))) + 1)
    return [float(f"{step}e{power}") for power in powers for step in (1, 2, 5)]


def _median_row(item: Distribution, of: Summaries) -> dict[str, Any]:
    summary = of[item.fabric, item.key]
    return {
        "fabric": item.fabric,
        "receive": RECEIVE_WORDS[item.key.receive],
        "bytes": item.key.message_bytes if PATTERNS[item.key.pattern].has_size else ANY_SIZE,
        "value": summary.median.value,
        "median": value_words(item.key.metric, summary.median.value),
        "n": f"{summary.launches} launches, {summary.samples:,} samples",
    }


def _panel(findings: Findings, group: Sequence[Distribution], of: Summaries, size: int, is_interactive: bool) -> Panel:
    key = group[0].key
    medians = [_median_row(item, of) for item in group if (item.fabric, item.key) in of]
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {
            "labelExpr": labels_of(key.metric),
            "title": METRIC_WORDS[key.metric],
            "values": _ticks([item.edges for item in group]),
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
    dots = [row for item in group if sum(item.counts) < FEW_SAMPLES for row in _dots(item)]
    rows = [_bins(item) for item in group if sum(item.counts) >= FEW_SAMPLES]
    shape = {"x": x, "y": y, **colour}
    hint = {"tooltip": tooltip("fabric", "samples in bin")}
    median = {"x": x, **colour, "tooltip": tooltip("fabric", "median", "n")}
    point = {
        **shape,
        "shape": shape_channel(findings, has_legend=not is_interactive),
        "tooltip": tooltip("fabric", "about", "samples"),
    }
    layers = [mark("rule", median, rows=medians, keep=[CHOSEN_SIZE], strokeWidth=1.5)]
    if dots:
        layers.append(mark("point", point, rows=dots, keep=[CHOSEN_SIZE], filled=True, size=45, opacity=0.8))
    if rows:
        layers = [
            mark("area", {**shape, **hint}, rows=rows, interpolate="step-after", opacity=0.28),
            mark("line", shape, rows=rows, interpolate="step-after", strokeWidth=1.25),
            *layers,
        ]
        for layer in layers[:2]:
            layer["transform"] = UNFOLD
    params = [*reader_params(findings), {"name": "size", "value": size}]
    tags = {"layer": key.layer.value, "receive": RECEIVE_WORDS[key.receive]}
    if PATTERNS[key.pattern].has_size:
        tags["sizes"] = " ".join(str(number) for number in sorted({item.key.message_bytes for item in group}))
    words = (f"{key.layer} {PATTERN_WORDS[key.pattern]}", receive_note(findings, key.receive), key.variant)
    title = ", ".join(filter(None, words))
    spec: Spec = {"params": params, "layer": layers}
    return Panel(title, spec, tags, height=110)
