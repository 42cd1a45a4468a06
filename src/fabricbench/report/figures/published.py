"""The measured fabrics beside those of published studies: best throughput over TCP and MPI, and where one overtakes another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fabricbench.analysis.findings import Findings, LadderStep
from fabricbench.model import Layer, Metric
from fabricbench.published import PublishedFigure, PublishedQuantity, published_figures
from fabricbench.quantity import format_bit_s
from fabricbench.report.drawing.axes import value_channel
from fabricbench.report.drawing.figure import (
    UNDECIDED,
    Figure,
    Panel,
    Spec,
    interval_note,
    mark,
    origin_note,
    tooltip,
)
from fabricbench.report.palette import colour_range, fabric_names, shape_range
from fabricbench.report.tables import built_from, published_table
from fabricbench.report.words import in_this_run, place_words, range_words, size_words

ROW_HEIGHT = 24
LABEL_SHARE = 0.12
"""Of the width, left free for the figures beside the rightmost points."""
VALUE_DIGITS = 4
"""As the studies give them."""
READING = (
    "Filled: measured in this run, with its interval. Hollow: published, on hardware of its time; the table has each study's "
    "conditions, and other fabrics. Best throughput over all message sizes."
)
NOTHING_PUBLISHED = "No study here measured these fabrics; the table has what was published of others."
LAYERS = (Layer.TCP, Layer.MPI)
"""The layers that the studies measured too."""


def published(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return best throughputs, each fabric's measured ones above its published ones; the page's controls do not apply to it."""
    del is_interactive
    studies = [
        figure for layer in LAYERS for figure in published_figures(layer=layer, quantity=PublishedQuantity.THROUGHPUT)
    ]
    measured = [row for step in findings.ladder if step.layer in LAYERS for row in _measured_rows(findings, step)]
    if not studies or not measured:
        return None
    shown = [figure for figure in studies if figure.fabric in fabric_names(findings)]
    rows = sorted([*measured, *map(_study_row, shown)], key=lambda row: _place(findings, row))
    caption = " ".join(
        (
            *_readings(findings, studies),
            READING if shown else NOTHING_PUBLISHED,
            interval_note(findings),
            origin_note(findings),
        )
    ).rstrip()
    panel = Panel("Best throughput, measured and published", _spec(findings, rows), {}, height=ROW_HEIGHT * len(rows))
    others = published_figures(quantity=PublishedQuantity.LATENCY) + published_figures(
        quantity=PublishedQuantity.CROSSOVER
    )
    table = published_table(findings, [*studies, *others])
    return Figure("published", "Best throughput, measured and published", caption, (panel,), table)


def _place(findings: Findings, row: dict[str, Any]) -> tuple[int, str, bool, float]:
    """Return where a row stands: the measured fabrics first, of each what was measured before what was published."""
    names = fabric_names(findings)
    is_ours = row["fabric"] in names
    return names.index(row["fabric"]) if is_ours else len(names), str(row["fabric"]), bool(row["study"]), -row["value"]


def _readings(findings: Findings, studies: Sequence[PublishedFigure]) -> Iterable[str]:
    """Return what the figure shows, in words: each measured fabric that a study measured too, and the studies' crossover."""
    for step in findings.ladder:
        for figure in studies:
            if (figure.fabric, figure.layer) == (step.fabric, step.layer) and step.throughput is not None:
                here = format_bit_s(step.throughput.value, VALUE_DIGITS)
                origin = ", which it is built from" if built_from(findings, figure) else ""
                yield f"{step.fabric} over {step.layer}: {here} here, {figure.as_published} in {figure.study_name}{origin}."
    for figure in published_figures(quantity=PublishedQuantity.CROSSOVER):
        names = [name for name in fabric_names(findings) if name in figure.between]
        if len(names) == 2:
            there = f"Crossover at {size_words(figure.value)} in {figure.study_name} ({figure.condition_words})"
            built = [f"; {fabric} is built from it: no agreement" for fabric in built_from(findings, figure)]
            yield f"{there}; {_crossover_here(findings, names)}{''.join(built)}."


def _crossover_here(findings: Findings, names: Sequence[str]) -> str:
    found = [
        f"{one.layer} {one.metric.value.replace('_', ' ')} {place_words(one)}"
        for one in findings.crossovers
        if {one.fabric_a, one.fabric_b} == set(names) and one.layer is Layer.TCP
    ]
    return f"here: {', '.join(found)}" if found else "here none over tcp is sure"


def _measured_rows(findings: Findings, step: LadderStep) -> list[dict[str, Any]]:
    if step.throughput is None:
        return []
    row = {
        "label": f"{step.fabric}, {step.layer}, this run",
        "fabric": step.fabric,
        "study": "",
        "value": step.throughput.value,
        "low": step.throughput.low,
        "high": step.throughput.high,
        "throughput": format_bit_s(step.throughput.value, VALUE_DIGITS),
        "interval": range_words(Metric.THROUGHPUT, step.throughput.low, step.throughput.high),
        "source": f"{in_this_run(findings, step.fabric)}, messages of {size_words(step.throughput_message_bytes)}",
    }
    return [row]


def _study_row(figure: PublishedFigure) -> dict[str, Any]:
    return {
        "label": f"{figure.fabric}, {figure.condition}, {figure.year}",
        "fabric": figure.fabric or "",
        "study": figure.study,
        "value": figure.value,
        "low": None,
        "high": None,
        "throughput": format_bit_s(figure.value, VALUE_DIGITS),
        "interval": f"published as {figure.as_published}",
        "source": figure.citation,
    }


def _spec(findings: Findings, rows: Sequence[dict[str, Any]]) -> Spec:
    labels = list(dict.fromkeys(str(row["label"]) for row in rows))
    names = fabric_names(findings)
    others = sorted({str(row["fabric"]) for row in rows} - set(names))
    scale = {"domain": [*names, *others], "range": [*colour_range(findings), *[UNDECIDED] * len(others)]}
    colour = {"field": "fabric", "type": "nominal", "legend": None, "scale": scale}
    axis = {"grid": False, "labelLimit": 260}
    y: Spec = {"field": "label", "type": "nominal", "sort": labels, "title": None, "axis": axis}
    x = value_channel(Metric.THROUGHPUT, [float(row["value"]) for row in rows])
    low, high = x["scale"]["domain"]
    x["scale"]["domain"] = [low, low * (high / low) ** (1 / (1 - LABEL_SHARE))]
    shapes = {"domain": scale["domain"], "range": [*shape_range(findings), *["diamond"] * len(others)]}
    shape = {"field": "fabric", "type": "nominal", "legend": None, "scale": shapes}
    point = {
        "x": x,
        "y": y,
        "color": colour,
        "shape": shape,
        "tooltip": tooltip("label", "throughput", "interval", "source"),
    }
    span = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour}
    words = {"x": x, "y": y, "text": {"field": "throughput"}}
    lead = {"x": {**x, "field": "floor"}, "x2": {"field": "value"}, "y": y}
    measured = [row for row in rows if not row["study"]]
    quoted = [row for row in rows if row["study"]]
    layers = [
        mark("rule", lead, rows=[{**row, "floor": low} for row in rows], color=UNDECIDED, opacity=0.35, strokeWidth=1),
        mark("rule", span, rows=[row for row in measured if row["low"] is not None], strokeWidth=2.5),
        mark("point", point, rows=measured, filled=True, size=60, opacity=1),
        mark("point", point, rows=quoted, filled=False, size=60, strokeWidth=1.75, opacity=1),
        mark("text", words, rows=rows, align="left", baseline="middle", dx=10),
    ]
    return {"layer": layers}
