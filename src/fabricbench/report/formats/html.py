"""The dossier: one HTML file that holds everything."""

from __future__ import annotations

from fabricbench.analysis.findings import Findings
from fabricbench.report.html import render_html


def render(findings: Findings) -> bytes:
    """Return the dossier."""
    return render_html(findings).encode()
