"""The terminal's report as a plain text file: no colour, a hundred columns."""

from __future__ import annotations

from fabricbench.analysis.findings import Findings
from fabricbench.report.terminal import render_terminal

WIDTH = 100


def render(findings: Findings) -> bytes:
    """Return the terminal's report without colours."""
    return render_terminal(findings, WIDTH, color=False).encode()
