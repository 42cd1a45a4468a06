"""The formats of a report: each one file, and one line here.

A format turns findings into bytes and touches no file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fabricbench.analysis.findings import Findings
from fabricbench.report.formats import csv, html, image, json, markdown, text


@dataclass(frozen=True)
class Format:
    """A format that holds the whole report, in one file if it can."""

    suffix: str
    render: Callable[[Findings], bytes]
    render_others: Callable[[Findings], dict[str, bytes]] | None = None
    """What does not fit into the one file, by name: files beside it, where it is a file."""


@dataclass(frozen=True)
class FigureFormat:
    """A format of which each file holds one figure, by its name in `figures.FIGURES`."""

    suffix: str
    render: Callable[[Findings, str], bytes]


FORMATS: dict[str, Format | FigureFormat] = {
    "html": Format(".html", html.render),
    "markdown": Format(".md", markdown.render),
    "json": Format(".json", json.render),
    "csv": Format(".csv", csv.render, csv.render_others),
    "text": Format(".txt", text.render),
    "svg": FigureFormat(".svg", image.render_svg),
    "png": FigureFormat(".png", image.render_png),
    "pdf": FigureFormat(".pdf", image.render_pdf),
}
