"""Every comparison as comma-separated values, for spreadsheets and scripts; the other tables beside it, a file each."""

from __future__ import annotations

from fabricbench.analysis.findings import Findings
from fabricbench.report.comma_separated import COMPARISONS, comparisons_csv, findings_csv


def render(findings: Findings) -> bytes:
    """Return a row for each cell, then one for each curve."""
    return comparisons_csv(findings).encode()


def render_others(findings: Findings) -> dict[str, bytes]:
    """Return every other table that has rows, by its name: topologies, congestion, operations, ..."""
    return {name: text.encode() for name, text in findings_csv(findings).items() if name != COMPARISONS}
