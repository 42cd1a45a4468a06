"""The dossier as one HTML file that needs nothing else: styles, scripts, figures and tables are all inside.

`page` decides what stands where, the templates how it is marked up, `dossier.css` how it looks, `dossier.js` what a reader can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from fabricbench.analysis.findings import Findings
from fabricbench.printable import printable, shortened
from fabricbench.report.drawing.drawer import DRAWER, Drawing
from fabricbench.report.first_screen import LOST, OF_LINE_RATE
from fabricbench.report.html.page import STILLS, build_page, packed
from fabricbench.report.words import set_for_page
from fabricbench.table import Table

__all__ = ["render_html", "vega"]


def render_html(findings: Findings) -> str:
    """Return the dossier."""
    vega()
    page = build_page(findings)
    return (
        environment()
        .get_template("dossier.html.j2")
        .render(
            page=page,
            findings=findings,
            style=own_style(),
            script=Markup(_text("dossier.js")),  # noqa: S704 - our own file
            vega=packed(vega().text),
        )
    )


def own_style() -> Markup:
    """Return how our pages look, columns of numbers in tables of `numeric_columns` among it."""
    columns = ",".join(f":where(.n{column}>tbody>tr)>:nth-child({column})" for column in range(1, MOST_STYLED + 1))
    rule = f"{columns} {{ text-align: right; white-space: nowrap; }}\n"
    return Markup(_text("dossier.css") + rule)  # noqa: S704 - our own file


MOST_STYLED = 20
"""Columns that a table names once as numeric: in every cell it would be a tenth of a large page. Cells of further ones say it."""


def _numeric_columns(content: Table) -> str:
    """Return what the style calls a table by its columns of numbers: `n2 n4`."""
    return " ".join(f"n{column + 1}" for column in sorted(content.numeric) if column < MOST_STYLED)


def _text(name: str) -> str:
    return files("fabricbench.report.html").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def vega() -> Drawing:
    """Have Vega, Vega-Lite and Vega-Embed made one script: it takes a second, in which a run can be read."""
    return DRAWER.order("script")


MOST_OF_A_TEXT = 20_000
"""Characters of what a file said: a page that holds megabytes of it opens nowhere."""


def _without_acting(value: Any) -> Any:
    """Return a value as it may stand in a page: names from elsewhere must not reorder a line. Markup is our own."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(shortened(value, MOST_OF_A_TEXT)) if is_text else value


def _rows(content: Table) -> Markup:
    """Return the rows of a table: a page has tens of thousands, and many cells are alike."""
    numeric, undecided = set(content.numeric), set(content.undecided)

    @cache
    def cell(text: str, column: int) -> str:
        shown = escape(_without_acting(text))
        if column in numeric:
            set_apart = shown.replace(" (", Markup(" <small>("), 1)
            mark = "" if column < MOST_STYLED else " class=n"
            return f"<td{mark}>{set_apart}{'' if set_apart == shown else '</small>'}</td>"
        return f"<td>{shown}</td>" if column else f'<th scope="row">{shown}</th>'

    def row(number: int, cells: Sequence[str]) -> str:
        mark = ' class="undecided"' if number in undecided else ""
        return f"<tr{mark}>{''.join(cell(text, column) for column, text in enumerate(cells))}</tr>"

    return Markup("\n").join(Markup(row(number, cells)) for number, cells in enumerate(content.rows))  # noqa: S704 - escaped


@cache
def environment() -> Environment:
    """Return what templates are filled by, our own beside it."""
    environment = Environment(
        loader=FunctionLoader(_text),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_without_acting,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typographic"] = set_for_page
    environment.filters["rows"] = _rows
    environment.filters["numeric_columns"] = _numeric_columns
    environment.globals |= {"LOST": LOST, "OF_LINE_RATE": OF_LINE_RATE, "STILLS": STILLS}
    return environment
