"""Findings as comma-separated values at full precision: times in ns, rates in bit/s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fabricbench import chapters
from fabricbench.analysis.findings import Comparison, Findings
from fabricbench.model import Model
from fabricbench.table import rows_csv

COMPARISONS = "comparisons"


def comparisons_csv(findings: Findings) -> str:
    """Return a row for each test and size, then one for each curve; a column for each field of a comparison."""
    every = (*findings.cells, *findings.curves)
    rows = [one.model_dump(mode="json") | {"notes": "; ".join(one.notes)} for one in every]
    return rows_csv(rows, Comparison.model_fields)


def findings_csv(findings: Findings) -> dict[str, str]:
    """Return every table of findings that has rows, by its name: the comparisons first, which are always there."""
    tables = {COMPARISONS: comparisons_csv(findings)}
    for chapter in chapters.CHAPTERS:
        for name, records in chapter.records_of(findings).items():
            rows = [flat(one.model_dump(mode="json") if isinstance(one, Model) else one) for one in records]
            if rows:
                tables[name] = rows_csv(rows)
    return tables


def flat(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested fields as columns: `time`, `time_low`, `time_high` of an interval; those of a cell's key as they are."""
    row: dict[str, Any] = {}
    for name, value in fields.items():
        column = prefix if name == "value" and prefix else f"{prefix}_{name}" if prefix else name
        if isinstance(value, Mapping):
            row |= flat(value, "" if name == "key" else column)
        else:
            row[column] = ";".join(map(str, value)) if isinstance(value, list) else value
    return row
