"""The formats of a report, a line each: from findings to bytes. A format touches no file and computes nothing.

What takes more than a call has a module of its own (`html`, `markdown`, `terminal`, `comma_separated`, `figures`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import vl_convert

from fabricbench.analysis.findings import Findings
from fabricbench.report import markdown
from fabricbench.report.comma_separated import COMPARISONS, comparisons_csv, findings_csv
from fabricbench.report.figures import paper_spec
from fabricbench.report.html import render_html
from fabricbench.report.terminal import render_terminal

WIDTH = 100
"""Columns of the text file."""
PNG_SCALE = 3.0
"""288 dots an inch at the size a figure has on paper."""


@dataclass(frozen=True)
class Format:
    """A format that holds the whole report, in one file if it can."""

    suffix: str
    render: Callable[[Findings], bytes]
    render_others: Callable[[Findings], dict[str, bytes]] | None = None
    """What does not fit into the one file, by name: files beside it, where it is a file."""


@dataclass(frozen=True)
class FigureFormat:
    """A format of which each file holds one figure, by its name in `figures.builders()`: no browser and no network."""

    suffix: str
    render: Callable[[Findings, str], bytes]


def _other_tables(findings: Findings) -> dict[str, bytes]:
    """Return every table beside the comparisons that has rows, by its name: topologies, congestion, operations, ..."""
    return {name: text.encode() for name, text in findings_csv(findings).items() if name != COMPARISONS}


FORMATS: dict[str, Format | FigureFormat] = {
    "html": Format(".html", lambda findings: render_html(findings).encode()),
    "markdown": Format(".md", markdown.render),
    # `Findings.model_validate_json` reads it back.
    "json": Format(".json", lambda findings: (findings.model_dump_json(indent=2) + "\n").encode()),
    "csv": Format(".csv", lambda findings: comparisons_csv(findings).encode(), _other_tables),
    "text": Format(".txt", lambda findings: render_terminal(findings, WIDTH, color=False).encode()),
    "svg": FigureFormat(".svg", lambda found, name: str(vl_convert.vegalite_to_svg(paper_spec(name, found))).encode()),
    "png": FigureFormat(
        ".png", lambda found, name: bytes(vl_convert.vegalite_to_png(paper_spec(name, found), scale=PNG_SCALE))
    ),
    "pdf": FigureFormat(".pdf", lambda found, name: bytes(vl_convert.vegalite_to_pdf(paper_spec(name, found)))),
}
