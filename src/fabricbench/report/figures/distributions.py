"""Distributions of all measured samples of a cell: each fabric's density, scaled to its own peak, and its tail to the slowest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabricbench.analysis.findings import CellKey, CellSummary, Distribution, Findings
from fabricbench.model import Layer, Metric
from fabricbench.patterns import PATTERNS
from fabricbench.report.drawing.axes import (
    CHOSEN,
    colour_channel,
    decade_ticks,
    labels_of,
    reader_params,
    shape_channel,
)
from fabricbench.report.drawing.figure import Figure, Panel, Spec, mark, origin_note, receive_note, sentences, tooltip
from fabricbench.report.tables import distribution_table, tail_table
from fabricbench.report.words import METRIC_WORDS, PATTERN_WORDS, RECEIVE_WORDS, counted, size_words, value_words

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
    found = _chosen(findings.distributions, message_bytes, is_interactive)
    if found is None:
        return None
    drawn, size, sizes, groups = found
    of = _by_cell(findings)
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
        "distributions",
        "Distributions of single samples",
        sentences(*parts),
        panels,
        table,
        sizes=sizes,
        rests_on="",
    )


def tails(findings: Findings, *, message_bytes: int | None = None, is_interactive: bool = False) -> Figure | None:
    """Return the tails of times at one message size: which share of the samples was faster than each time, up to the slowest."""
    of = _by_cell(findings)
    timed = [one for one in findings.distributions if one.key.metric.is_time and (one.fabric, one.key) in of]
    found = _chosen(timed, message_bytes, is_interactive)
    if found is None:
        return None
    drawn, size, sizes, groups = found
    caption = sentences(
        "Of all measured samples: the share that took less than a time. The rightmost point of each line is the slowest sample; "
        "how far to the right it stands tells how many there were.",
        "" if is_interactive else f"Messages of {size_words(size)}.",
        origin_note(findings),
    )
    panels = tuple(_tail_panel(findings, group, of, size, is_interactive) for group in groups.values())
    table = tail_table([of[one.fabric, one.key] for one in drawn])
    return Figure("tails", "Tails: the slowest samples", caption, panels, table, sizes=sizes, rests_on="")


Chosen = tuple[list[Distribution], int, tuple[int, ...], dict[CellKey, list[Distribution]]]
"""Distributions in the order of their panels, the message size that is shown first, all sizes, and those of each panel."""


def _chosen(distributions: Sequence[Distribution], message_bytes: int | None, is_interactive: bool) -> Chosen | None:
    drawn = sorted(distributions, key=lambda item: _panel_order(item.key))
    sizes = tuple(
        sorted(
            {item.key.message_bytes for item in drawn if PATTERNS[item.key.pattern].has_size}
            or {item.key.message_bytes for item in drawn}
        )
    )
    if not sizes:
        return None
    size = sizes[0] if message_bytes is None else message_bytes
    groups: dict[CellKey, list[Distribution]] = {}
    for item in drawn:
        key = item.key
        if is_interactive or key.message_bytes == size or not PATTERNS[key.pattern].has_size:
            groups.setdefault(key.curve, []).append(item)
    return drawn, size, sizes, groups


def _by_cell(findings: Findings) -> Summaries:
    return {(summary.fabric, summary.key): summary for summary in findings.summaries}


def _panel_order(key: CellKey) -> tuple[int, int, str, int]:
    return list(Metric).index(key.metric), list(Layer).index(key.layer), key.receive, key.message_bytes


def _bytes_shown(key: CellKey) -> int:
    return key.message_bytes if PATTERNS[key.pattern].has_size else ANY_SIZE


def _bins(item: Distribution) -> dict[str, Any]:
    """Return one row with the bins as lists, a tenth of the size of a row for each bin; the figure unfolds them."""
    return {
        "fabric": item.fabric,
        "receive": RECEIVE_WORDS[item.key.receive],
        "bytes": _bytes_shown(item.key),
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
            "bytes": _bytes_shown(item.key),
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
    """Return tick values for all that a panel may show, one size after another: 1, 2 and 5 in each decade, more within one."""
    edges = [edge for edges in edges_of for edge in edges if edge > 0] or [1.0, 10.0]
    if min(edges) < max(edges) < 10 * min(edges):
        return decade_ticks(min(edges), max(edges))
    powers = range(math.floor(math.log10(min(edges))), math.ceil(math.log10(max(edges))) + 1)
    return [float(f"{step}e{power}") for power in powers for step in (1, 2, 5)]


def _median_row(item: Distribution, of: Summaries) -> dict[str, Any]:
    summary = of[item.fabric, item.key]
    return {
        "fabric": item.fabric,
        "receive": RECEIVE_WORDS[item.key.receive],
        "bytes": _bytes_shown(item.key),
        "value": summary.median.value,
        "median": value_words(item.key.metric, summary.median.value),
        "n": f"{counted(summary.launches, 'launch', 'launches')}, {counted(summary.samples, 'sample')}",
    }


def _values(metric: Metric, values_of: Sequence[Sequence[float]], *, has_grid: bool) -> Spec:
    """Return the channel of times or rates: its scale fits what is chosen."""
    return {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {
            "labelExpr": labels_of(metric),
            "title": METRIC_WORDS[metric],
            "values": _ticks(values_of),
            "grid": has_grid,
            "labelOverlap": "greedy",
        },
    }


def _panel(findings: Findings, group: Sequence[Distribution], of: Summaries, size: int, is_interactive: bool) -> Panel:
    key = group[0].key
    medians = [_median_row(item, of) for item in group if (item.fabric, item.key) in of]
    x = _values(key.metric, [item.edges for item in group], has_grid=False)
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
    return _panel_of(findings, [item.key for item in group], layers, size, height=110)


TAIL = ("0.5", "0.75", "0.95", "0.99", "0.999")
"""Where a tail has points, besides its end."""
SHARE_LABELS = "format(100 - 100 / datum.value, '~g') + ' %'"


def _tail_rows(summary: CellSummary) -> Iterator[dict[str, Any]]:
    """Yield the points of a tail. `slower` is in how many samples one is slower, the whole number of them at its end."""
    points = [
        (1 / (1 - float(name)), f"{float(name) * 100:g} %", summary.quantiles[name])
        for name in TAIL
        if name in summary.quantiles
    ]
    for slower, share, value in [*points, (float(summary.samples), "the slowest", summary.maximum)]:
        yield {
            "fabric": summary.fabric,
            "receive": RECEIVE_WORDS[summary.key.receive],
            "bytes": _bytes_shown(summary.key),
            "slower": float(f"{slower:.6g}"),
            "value": float(f"{value:.6g}"),
            "faster": share,
            "time": value_words(summary.key.metric, value),
            "samples": f"{summary.samples:,} in all",
        }


def _tail_panel(
    findings: Findings, group: Sequence[Distribution], of: Summaries, size: int, is_interactive: bool
) -> Panel:
    rows = [row for item in group for row in _tail_rows(of[item.fabric, item.key])]
    most = max(row["slower"] for row in rows)
    x: Spec = {
        "field": "slower",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "domainMin": 1.8},
        "axis": {
            "labelExpr": SHARE_LABELS,
            "title": "samples that took less",
            "values": [2, *(10**power for power in range(1, math.ceil(math.log10(most)) + 1))],
            "grid": False,
            "labelOverlap": "greedy",
        },
    }
    y = _values(group[0].key.metric, [[row["value"] for row in rows]], has_grid=True)
    line: Spec = {"x": x, "y": y, "color": colour_channel(findings, has_legend=not is_interactive)}
    point = {
        **line,
        "shape": shape_channel(findings, has_legend=not is_interactive),
        "tooltip": tooltip("fabric", "faster", "time", "samples"),
    }
    layers = [
        mark("line", line, rows=rows, keep=[CHOSEN_SIZE], strokeWidth=1.25),
        mark("point", point, rows=rows, keep=[CHOSEN_SIZE], filled=True, size=35, opacity=1),
    ]
    return _panel_of(findings, [item.key for item in group], layers, size, height=140)


def _panel_of(findings: Findings, keys: Sequence[CellKey], layers: list[Spec], size: int, *, height: int) -> Panel:
    """Return the panel of some sizes of one test."""
    key = keys[0]
    params = [*reader_params(findings), {"name": "size", "value": size}]
    tags = {"layer": key.layer.value, "receive": RECEIVE_WORDS[key.receive]}
    if PATTERNS[key.pattern].has_size:
        tags["sizes"] = " ".join(str(number) for number in sorted({one.message_bytes for one in keys}))
    words = (f"{key.layer} {PATTERN_WORDS[key.pattern]}", receive_note(findings, key.receive), *key.variant_words)
    title = ", ".join(filter(None, words))
    spec: Spec = {"params": params, "layer": layers}
    return Panel(title, spec, tags, height=height)
