"""The measured fabrics beside those of published studies: best throughput over TCP and MPI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fabricbench.analysis.findings import Findings
from fabricbench.model import Layer, Metric
from fabricbench.published import PublishedFigure, Quantity, published_figures
from fabricbench.report.figures.axes import value_channel
from fabricbench.report.figures.figure import Figure, Panel, Spec, emulated_note, mark, tooltip
from fabricbench.report.figures.theme import UNDECIDED
from fabricbench.report.palette import colour_range, fabric_names
from fabricbench.report.tables import published_table
from fabricbench.report.words import range_words, value_words

ROW_HEIGHT = 24
LAYERS = (Layer.TCP, Layer.MPI)
"""The layers that the studies measured too."""


def published(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return best throughputs, measured and published, in order; the page's controls do not apply to it."""
    del is_interactive
    studies = [figure for layer in LAYERS for figure in published_figures(layer=layer, quantity=Quantity.THROUGHPUT)]
    rows = sorted([*_measured(findings), *map(_study_row, studies)], key=lambda row: -float(row["value"]))
    if not studies or all(row["study"] for row in rows):
        return None
    caption = (
        "Filled: measured in this run. Hollow: published, on hardware of its time; the table has each study's conditions. Best "
        f"throughput over all message sizes. {emulated_note(findings)}"
    ).rstrip()
    panel = Panel("Best throughput, measured and published", _spec(findings, rows), {}, height=ROW_HEIGHT * len(rows))
    others = published_figures(quantity=Quantity.LATENCY) + published_figures(quantity=Quantity.CROSSOVER)
    table = published_table(findings, [*studies, *others])
    return Figure("published", "Best throughput, measured and published", caption, (panel,), table)


def _measured(findings: Findings) -> list[dict[str, Any]]:
    return [
        {
            "label": f"{step.fabric}, {step.layer}",
            "fabric": step.fabric,
            "study": "",
            "value": step.throughput.value,
            "low": step.throughput.low,
            "high": step.throughput.high,
            "throughput": value_words(Metric.THROUGHPUT, step.throughput.value),
            "interval": range_words(Metric.THROUGHPUT, step.throughput.low, step.throughput.high),
            "source": "measured in this run",
        }
        for step in findings.ladder
        if step.layer in LAYERS and step.throughput is not None
    ]


def _study_row(figure: PublishedFigure) -> dict[str, Any]:
    year = figure.citation.rsplit(", ", 1)[-1]
    return {
        "label": f"{figure.fabric}, {figure.condition.split(',')[0]}, {year}",
        "fabric": figure.fabric or "",
        "study": figure.study,
        "value": figure.value,
        "low": None,
        "high": None,
        "throughput": figure.as_published,
        "interval": "as published",
        "source": figure.citation,
    }


def _spec(findings: Findings, rows: Sequence[dict[str, Any]]) -> Spec:
    labels = list(dict.fromkeys(str(row["label"]) for row in rows))
    names = fabric_names(findings)
    others = sorted({str(row["fabric"]) for row in rows} - set(names))
    scale = {"domain": [*names, *others], "range": [*colour_range(findings), *[UNDECIDED] * len(others)]}
    colour = {"field": "fabric", "type": "nominal", "legend": None, "scale": scale}
    axis = {"grid": True, "labelLimit": 240}
    y: Spec = {"field": "label", "type": "nominal", "sort": labels, "title": None, "axis": axis}
    x = value_channel(Metric.THROUGHPUT, [float(row["value"]) for row in rows])
    point = {"x": x, "y": y, "color": colour, "tooltip": tooltip("label", "throughput", "interval", "source")}
    measured = [row for row in rows if not row["study"]]
    quoted = [row for row in rows if row["study"]]
    layers = [
        mark("point", point, rows=measured, filled=True, size=60, opacity=1),
        mark("point", point, rows=quoted, filled=False, shape="diamond", size=60, strokeWidth=1.75),
    ]
    return {"layer": layers}
