"""The dossier as one HTML file that needs nothing else: styles, scripts, figures and tables are all inside.

`page` decides what stands where, the templates how it is marked up, `dossier.css` how it looks, `dossier.js` what a reader can do.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import vl_convert
from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from fabricbench.analysis.findings import Findings
from fabricbench.printable import printable
from fabricbench.report.html.page import build_page, data_address
from fabricbench.report.words import typographic
from fabricbench.table import table_csv

__all__ = ["render_html"]

NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:[kMG]?bit/s|[KMG]iB|B|[nµm]?s|%|×|times)(?![\w/]))")


def render_html(findings: Findings) -> str:
    """Return the dossier."""
    page = build_page(findings)
    return (
        _environment()
        .get_template("dossier.html.j2")
        .render(
            page=page,
            findings=findings,
            style=Markup(_text("dossier.css")),  # noqa: S704 - our own file
            script=Markup(_text("dossier.js")),  # noqa: S704 - our own file
            vega=Markup(_vega()),  # noqa: S704 - the bundled libraries
        )
    )


def _text(name: str) -> str:
    return files("fabricbench.report.html").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script. A `</script` inside a string would end the element early."""
    return (
        str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
        .replace("</script", "<\\/script")
        .replace("<!--", "<\\!--")
    )


def _set_for_page(text: str) -> str:
    """Return prose set for a page: a number and its unit stay on one line."""
    return NUMBER_AND_UNIT.sub("\u00a0", typographic(text))


def _without_acting(value: Any) -> Any:
    """Return a value as it may stand in a page: names from elsewhere must not reorder a line. Markup is our own."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_text),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_without_acting,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typographic"] = _set_for_page
    environment.globals |= {"data_address": data_address, "table_csv": table_csv}
    return environment
