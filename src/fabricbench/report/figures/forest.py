"""Forest plots of paired ratios: how many times faster B is than A, with intervals, each verdict with a look of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fabricbench.analysis.findings import Comparison, Findings, Replication, Verdict, is_sweep
from fabricbench.model import Layer, Metric
from fabricbench.report.drawing.axes import (
    HAS_INTERVAL,
    TIMES_LABELS,
    colour_channel,
    ratio_domain,
    ratio_ticks,
    shape_channel,
    zoom,
)
from fabricbench.report.drawing.figure import (
    AHEAD_OPACITY,
    UNDECIDED,
    Figure,
    Panel,
    Spec,
    mark,
    origin_note,
    ratio_note,
    receive_note,
    sentences,
    tooltip,
)
from fabricbench.report.first_screen import MOST_ABREAST
from fabricbench.report.palette import fabric_names
from fabricbench.report.tables import comparison_table, curve_table
from fabricbench.report.words import (
    METRIC_WORDS,
    RECEIVE_WORDS,
    advantage,
    effect_words,
    p_words,
    size_words,
    verdict_words,
)

CROSS = "M-1,-1L1,1M1,-1L-1,1"
"""Too few launches: crossed out, not a value to read."""
ROW_HEIGHT = 19
LABEL_EXTENT = 52
"""Pixels for the names of rows: the same in every panel, so that their axes have the same length."""
SIDES = {
    Replication.BLOCKS: "pairs of launches",
    Replication.RUNS: "runs a side",
    Replication.LAUNCHES: "launches a side",
}
LABEL_SHARE = 0.26
"""Of the width, left free for the ratios in figures."""
READING = (
    "Filled point in a fabric's colour: that fabric is faster, by more than the margin; a paler one: it is ahead, perhaps by less. "
    "Grey diamond: equivalent. Grey cross: not enough data. The grey strip at 1 is the margin of {margin:g} % within which a "
    "difference does not matter."
)


def verdict_forest(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the whole comparison at a glance: a row for each layer, the ratio over all its sizes."""
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    basic = [curve for curve in findings.curves if is_sweep(curve)]
    for curve in sorted(_drawn(findings, basic), key=lambda curve: _place(findings, curve)):
        groups.setdefault((*_pair(curve), curve.metric), []).append(curve)
    if not groups:
        return None
    panels, domain = [], ratio_domain(_ends(basic), findings.margin)
    for group in groups.values():
        title = METRIC_WORDS[group[0].metric].capitalize() + _pair_words(findings, group[0], is_interactive)
        tags = {"metric": group[0].metric.value}
        labels = [_layer_words(findings, curve) for curve in group]
        panels.append(_panel(findings, group, labels, title, tags, domain, is_interactive, has_labels=True))
    caption = "Geometric mean of the ratios over the message sizes of each layer. " + _reading(findings, basic)
    title = "How many times faster, over all message sizes"
    return Figure(
        "verdict", title, caption, tuple(panels), curve_table(findings, basic), rests_on=_rests_on(findings, basic)
    )


def round_trip_forest(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the ratio of round-trip times, size by size."""
    return _cells(findings, Metric.ROUND_TRIP_TIME, "round-trip-ratios", is_interactive)


def throughput_forest(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the ratio of throughputs, size by size."""
    return _cells(findings, Metric.THROUGHPUT, "throughput-ratios", is_interactive)


def _cells(findings: Findings, metric: Metric, name: str, is_interactive: bool) -> Figure | None:
    cells = [cell for cell in findings.cells if cell.metric is metric and is_sweep(cell)]
    cells.sort(key=lambda cell: _place(findings, cell))
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for cell in _drawn(findings, cells):
        groups.setdefault((*_pair(cell), cell.layer, cell.receive, cell.setup), []).append(cell)
    if not groups:
        return None
    panels, domain = [], ratio_domain(_ends(cells), findings.margin)
    for group in groups.values():
        first = group[0]
        labels = [size_words(cell.message_bytes) for cell in group]
        tags = {"layer": first.layer.value, "receive": RECEIVE_WORDS[first.receive]}
        title = _layer_words(findings, first) + _pair_words(findings, first, is_interactive)
        panels.append(_panel(findings, group, labels, title, tags, domain, is_interactive))
    title = f"{METRIC_WORDS[metric].capitalize()}: how many times faster, size by size"
    caption = (
        f"Ratio of geometric means over launches{', paired by block' if all(cell.is_paired for cell in cells) else ''}. "
        + _reading(findings, cells)
    )
    return Figure(
        name, title, caption, tuple(panels), comparison_table(findings, cells), rests_on=_rests_on(findings, cells)
    )


def _place(findings: Findings, item: Comparison) -> tuple[Any, ...]:
    """Return where a comparison stands: metrics apart, then pairs, layers from the bottom, sizes from the smallest."""
    names = fabric_names(findings)
    return (
        list(Metric).index(item.metric),
        names.index(item.fabric_a),
        names.index(item.fabric_b),
        list(Layer).index(item.layer),
        item.receive,
        item.order,
        item.message_bytes or 0,
    )


def _pair(item: Comparison) -> tuple[str, str]:
    return item.fabric_a, item.fabric_b


def _pair_words(findings: Findings, item: Comparison, is_interactive: bool) -> str:
    """Return which fabrics a panel is of where that is not plain; a page shows it above each panel."""
    return "" if is_interactive or len(findings.fabrics) == 2 else f", {item.fabric_b} : {item.fabric_a}"


def _layer_words(findings: Findings, item: Comparison) -> str:
    return ", ".join(filter(None, (item.layer.value, receive_note(findings, item.receive), *item.variant_words)))


def _drawn(findings: Findings, items: Sequence[Comparison]) -> Sequence[Comparison]:
    """Return the comparisons that have panels: of many fabrics those with the first one."""
    if len(findings.fabrics) <= MOST_ABREAST:
        return items
    return [item for item in items if item.fabric_a == findings.fabrics[0].name]


def _rests_on(findings: Findings, items: Sequence[Comparison]) -> str:
    found = dict.fromkeys(item.replication for item in items)
    return ratio_note(findings, (item.launches for item in items), " or ".join(SIDES[one] for one in found))


def _reading(findings: Findings, items: Sequence[Comparison]) -> str:
    against = f"Drawn is each against {findings.fabrics[0].name}; the numbers behind have every pair."
    return sentences(
        READING.format(margin=findings.margin * 100),
        against if len(findings.fabrics) > MOST_ABREAST else "",
        _rests_on(findings, items),
        origin_note(findings),
    )


def _label_layer(findings: Findings, items: Sequence[Comparison], labels: list[str], y: Spec) -> Spec:
    """Return the ratios as text, in a column at the right edge."""
    rows = [_row(findings, item, label) for item, label in zip(items, labels, strict=True)]
    words = {"x": {"value": "width"}, "y": y, "text": {"field": "times faster"}}
    return mark("text", words, rows=rows, align="right", baseline="middle")


def _ends(items: Sequence[Comparison]) -> list[float]:
    sides = [advantage(item) for item in items]
    return [end for side in sides for end in (side.value, side.low, side.high) if end]


def _row(findings: Findings, item: Comparison, label: str) -> dict[str, Any]:
    side = advantage(item)
    times = effect_words(item)
    return {
        "label": label,
        "value": side.value,
        "low": side.low,
        "high": side.high,
        "fabric": item.leader or "",
        "test": f"{_layer_words(findings, item)}, {size_words(item.message_bytes)}",
        "verdict": verdict_words(item, findings.margin),
        "times faster": times.value,
        "interval": times.interval,
        "n": f"{item.launches} {SIDES[item.replication]}",
        "p, corrected": p_words(item.p_adjusted),
    }


def _panel(
    findings: Findings,
    items: Sequence[Comparison],
    labels: list[str],
    title: str,
    tags: dict[str, str],
    domain: tuple[float, float],
    is_interactive: bool,
    has_labels: bool = False,
) -> Panel:
    low, high = domain
    end = low * (high / low) ** (1 / (1 - LABEL_SHARE)) if has_labels else high
    first = items[0]
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [low, end], "nice": False},
        "axis": {
            "values": ratio_ticks(low, high),
            "labelExpr": TIMES_LABELS,
            "title": "times faster"
            if is_interactive
            else f"← {first.fabric_a} faster\u2003|\u2003{first.fabric_b} faster →",
            "labelOverlap": "greedy",
        },
    }
    axis: Spec = {"grid": False, "labelLimit": 160, "minExtent": LABEL_EXTENT}
    y: Spec = {"field": "label", "type": "nominal", "sort": labels, "title": None, "axis": axis}
    margin = [{"value": 1 / (1 + findings.margin), "end": 1 + findings.margin}]
    edges = [{"value": end} for row in margin for end in row.values()]
    layers = [
        mark("rect", {"x": x, "x2": {"field": "end"}}, rows=margin, color=UNDECIDED, opacity=0.22),
        mark("rule", {"x": x}, rows=edges, color=UNDECIDED, strokeWidth=0.75),
        mark("rule", {"x": x}, rows=[{"value": 1}], color=UNDECIDED),
        *_mark_layers(findings, items, labels, x, y),
    ]
    if has_labels:
        layers.append(_label_layer(findings, items, labels, y))
    if is_interactive:
        layers[0]["params"] = zoom("x")
    sides = (first.fabric_a, first.fabric_b)
    tags = {**tags, "left": first.fabric_a, "right": first.fabric_b}
    return Panel(title, {"layer": layers}, tags, height=ROW_HEIGHT * len(labels) + 6, sides=sides)


def _mark_layers(findings: Findings, items: Sequence[Comparison], labels: list[str], x: Spec, y: Spec) -> list[Spec]:
    rows: dict[str, list[dict[str, Any]]] = {}
    for item, label in zip(items, labels, strict=True):
        rows.setdefault(_look(item.verdict), []).append(_row(findings, item, label))
    span = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    point = {"y": y, "x": x, "tooltip": tooltip("test", "verdict", "times faster", "interval", "n", "p, corrected")}
    layers = []
    colour: Spec = {"color": colour_channel(findings)}
    shape: Spec = {"shape": shape_channel(findings)}
    for look, mine in rows.items():
        if look == "faster":
            layers.append(mark("rule", {**span, **colour}, rows=mine, keep=[HAS_INTERVAL], strokeWidth=2.5))
            layers.append(mark("point", {**point, **colour, **shape}, rows=mine, filled=True, size=40, opacity=1))
        elif look == "ahead":
            both: Spec = {"fill": colour_channel(findings), "stroke": colour_channel(findings), **shape}
            layers.append(mark("rule", {**span, **colour}, rows=mine, keep=[HAS_INTERVAL], strokeWidth=1))
            layers.append(
                mark(
                    "point",
                    {**point, **both},
                    rows=mine,
                    size=40,
                    strokeWidth=1.5,
                    fillOpacity=AHEAD_OPACITY,
                    opacity=1,
                )
            )
        elif look == "equivalent":
            layers.append(mark("rule", span, rows=mine, keep=[HAS_INTERVAL], strokeWidth=2, color=UNDECIDED))
            layers.append(
                mark("point", point, rows=mine, shape="diamond", size=50, strokeWidth=1.75, color=UNDECIDED, opacity=1)
            )
        else:
            dashed = {"strokeWidth": 1.25, "strokeDash": [3, 3], "color": UNDECIDED}
            layers.append(mark("rule", span, rows=mine, keep=[HAS_INTERVAL], **dashed))
            layers.append(
                mark("point", point, rows=mine, shape=CROSS, size=36, strokeWidth=1.5, color=UNDECIDED, opacity=1)
            )
    return layers


def _look(verdict: Verdict) -> str:
    if verdict.is_decided:
        return "faster"
    return "ahead" if verdict.is_ahead else verdict.value
