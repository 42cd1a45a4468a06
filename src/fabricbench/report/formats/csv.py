"""Every comparison as comma-separated values, for spreadsheets and scripts."""

from __future__ import annotations

from fabricbench.analysis.findings import Findings
from fabricbench.report.comma_separated import comparisons_csv


def render(findings: Findings) -> bytes:
    """Return a row for each cell, then one for each curve."""
    return comparisons_csv(findings).encode()
