"""The formats of a report: each one file, and one line here.

A format turns findings into bytes; `figure` is given where a format writes single figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fabricbench.analysis.findings import Findings
from fabricbench.report.formats import csv, html, image, json, markdown, text


@dataclass(frozen=True)
class Format:
    """How a format is written. `render` makes one document; figure formats have `render_figure` instead."""

    suffix: str
    render: Callable[[Findings], bytes] | None = None
    render_figure: Callable[[Findings, str], bytes] | None = None


FORMATS: dict[str, Format] = {
    "html": Format(".html", render=html.render),
    "markdown": Format(".md", render=markdown.render),
    "json": Format(".json", render=json.render),
    "csv": Format(".csv", render=csv.render),
    "text": Format(".txt", render=text.render),
    "svg": Format(".svg", render_figure=image.render_svg),
    "png": Format(".png", render_figure=image.render_png),
    "pdf": Format(".pdf", render_figure=image.render_pdf),
}
