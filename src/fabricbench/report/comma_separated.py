"""Comma-separated values: every comparison at full precision (times in ns, rates in bit/s), and tables as they are shown."""

from __future__ import annotations

import csv
import io

from fabricbench.analysis.findings import Comparison, Findings
from fabricbench.report.tables import Table


def comparisons_csv(findings: Findings) -> str:
    """Return a row for each cell, then one for each curve; a column for each field of a comparison."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(Comparison.model_fields), lineterminator="\n")
    writer.writeheader()
    for comparison in (*findings.cells, *findings.curves):
        writer.writerow(comparison.model_dump(mode="json"))
    return text.getvalue()


def table_csv(table: Table) -> str:
    """Return a table as a reader sees it, units and all."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows((table.columns, *table.rows))
    return text.getvalue()
