"""Figures for papers, through vl-convert: SVG, PNG, PDF; no browser and no network."""

from __future__ import annotations

import vl_convert

from fabricbench.analysis.findings import Findings
from fabricbench.report.figures import paper_spec

PNG_SCALE = 3.0
"""288 dots an inch at the size a figure has on paper."""


def render_svg(findings: Findings, figure: str) -> bytes:
    """Return the named figure as SVG."""
    return str(vl_convert.vegalite_to_svg(paper_spec(figure, findings))).encode()


def render_png(findings: Findings, figure: str) -> bytes:
    """Return the named figure as PNG."""
    return bytes(vl_convert.vegalite_to_png(paper_spec(figure, findings), scale=PNG_SCALE))


def render_pdf(findings: Findings, figure: str) -> bytes:
    """Return the named figure as PDF, with text as text."""
    return bytes(vl_convert.vegalite_to_pdf(paper_spec(figure, findings)))
