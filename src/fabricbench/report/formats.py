"""The formats of a report, a line each: from findings to bytes. A format touches no file and computes nothing.

What takes more than a call has a module of its own (`html`, `markdown`, `latex`, `terminal`, `comma_separated`, `figures`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

import vl_convert
from pydantic_core import PydanticSerializationError

from fabricbench.analysis.findings import Findings
from fabricbench.chapters import loggops
from fabricbench.errors import UsageError
from fabricbench.printable import printable
from fabricbench.report import latex, markdown
from fabricbench.report.comma_separated import COMPARISONS, comparisons_csv, findings_csv
from fabricbench.report.drawing.drawn import drawn_csv
from fabricbench.report.drawing.embedded_fonts import with_fonts
from fabricbench.report.drawing.engine import can_draw, check_can_draw, drawn_svg
from fabricbench.report.drawing.figure import ALONE_WIDTH, PAPER_PANEL_WIDTH, Figure, Spec, compose
from fabricbench.report.figures import build, paper_spec, present
from fabricbench.report.html import render_html
from fabricbench.report.html.picture import picture
from fabricbench.report.terminal import render_terminal

WIDTH = 100
"""Columns of the text file."""
PNG_SCALE = 3.0
"""288 dots an inch at the size a figure has on paper."""

FIRST_SCREEN = "first-screen"
"""The picture to share, beside the figures: the first screen as it stands on the page."""

POINTS_PER_PIXEL = 72 / 96
SIZE = re.compile(r'\b(width|height)="([\d.]+)"')


@dataclass(frozen=True)
class Format:
    """A format that holds the whole report, in one file if it can."""

    suffix: str
    render: Callable[[Findings], bytes]
    render_files: Callable[[Findings, str], dict[str, bytes]] | None = None
    """The same as a file of that name and those beside it that hold what has no room in one, by their paths from there."""


@dataclass(frozen=True)
class FigureFormat:
    """A format of which each file holds one figure, by its name in `picture_names`: no browser and no network."""

    suffix: str
    draw: Callable[[str], bytes]
    """From SVG, in pixels of 1/96 inch."""

    def render(self, findings: Findings, name: str, width_mm: float | None = None) -> bytes:
        """Return the named figure, `width_mm` wide where a width is given; EnvironmentLacks where none can be drawn here."""
        if name != FIRST_SCREEN:
            return self.render_spec(paper_spec(name, findings, width_mm))
        check_can_draw()
        if width_mm is not None:
            raise UsageError(f"{FIRST_SCREEN} has a width of its own", hint="leave out --width, which is for figures")
        return self.draw(printable(picture(findings)))

    def render_spec(self, spec: Spec) -> bytes:
        """Return what a Vega-Lite specification draws; EnvironmentLacks where nothing can be drawn here."""
        check_can_draw()
        return self.draw(drawn_svg(spec))


def picture_names(findings: Findings) -> tuple[str, ...]:
    """Return all that can be drawn of findings: the first screen, and each figure that they hold something for."""
    return FIRST_SCREEN, *present(findings)


def data_of(findings: Findings, name: str) -> bytes | None:
    """Return the numbers that the named figure draws, as CSV; None for the first screen: `latex` and `csv` hold its numbers."""
    figure = None if name == FIRST_SCREEN else build(name, findings)
    return None if figure is None else drawn_csv(figure, findings).encode()


def _csv_files(findings: Findings, name: str) -> dict[str, bytes]:
    """Return the comparisons in the file, and every other table that has rows beside it: topologies, congestion, operations, ..."""
    path = PurePath(name)
    return {
        name if table == COMPARISONS else str(path.with_stem(f"{path.stem}-{table}")): text.encode()
        for table, text in findings_csv(findings).items()
    }


def _markdown_files(findings: Findings, name: str) -> dict[str, bytes]:
    """Return the report, and its figures in a folder beside it; none where they cannot be drawn, as the tables have all numbers."""
    folder = f"{PurePath(name).stem}.figures"
    figures = present(findings) if can_draw() else {}
    pictures = {figure: (f"{folder}/{figure}.svg", built) for figure, built in figures.items()}
    drawn = {path: _svg(_picture(figure, findings)) for path, figure in pictures.values()}
    return {name: markdown.render(findings, pictures), **drawn}


def _picture(figure: Figure, findings: Findings) -> Spec:
    """Return a figure as wide as a text's column shows it."""
    return compose(figure, findings, panel_width=ALONE_WIDTH if len(figure.panels) == 1 else PAPER_PANEL_WIDTH)


def _svg(spec: Spec) -> bytes:
    return with_fonts(drawn_svg(spec)).encode()


def _pdf(svg: str) -> bytes:
    """Return the figure as a page of its own size: of an SVG's pixels each would be a point, and the page a third too wide."""
    shrunk = SIZE.sub(lambda found: f'{found[1]}="{float(found[2]) * POINTS_PER_PIXEL:g}"', svg, count=2)
    return bytes(vl_convert.svg_to_pdf(shrunk))


def _json(findings: Findings) -> bytes:
    """Return the findings as `Findings.model_validate_json` reads them back; of a name that is no UTF-8, `?` for its bytes."""
    try:
        return (findings.model_dump_json(indent=2) + "\n").encode()
    except PydanticSerializationError:
        text = json.dumps(findings.model_dump(mode="json"), ensure_ascii=False, indent=2)
        return f"{text}\n".encode(errors="replace")


FORMATS: dict[str, Format | FigureFormat] = {
    "html": Format(".html", lambda findings: render_html(findings).encode()),
    "markdown": Format(".md", markdown.render, _markdown_files),
    "latex": Format(".tex", latex.render),
    "json": Format(".json", _json),
    "loggops": Format(".loggops.json", loggops.as_json),
    "csv": Format(".csv", lambda findings: comparisons_csv(findings).encode(), _csv_files),
    "text": Format(".txt", lambda findings: render_terminal(findings, WIDTH, color=False).encode()),
    "svg": FigureFormat(".svg", lambda svg: with_fonts(svg).encode()),
    "png": FigureFormat(".png", lambda svg: bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))),
    "pdf": FigureFormat(".pdf", _pdf),
}
