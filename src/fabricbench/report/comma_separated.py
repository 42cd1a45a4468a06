"""Findings as comma-separated values at full precision: times in ns, rates in bit/s."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fabricbench import chapters
from fabricbench.analysis.findings import Comparison, Findings, Origin
from fabricbench.model import Model
from fabricbench.table import rows_csv

COMPARISONS = "comparisons"

PARAMETERS = "parameters"
WORKLOAD_COLUMNS = ("ranks", PARAMETERS, "judged_by")
"""What a cell's `workload` is in CSV: those of its fields that any cell has."""
NAMELESS = ("key", "workload")
"""Fields whose own fields are columns under their own names."""

ORIGIN_COLUMNS = {
    "fabric": "origin",
    **{name: f"origin_{name.removeprefix('fabric_')}" for name in ("fabric_a", "fabric_b")},
    **{name: f"origin_{name}" for name in ("slower", "faster", "worse", "better")},
}
"""The columns that name a fabric, each with the one beside it in a report of numbers that were not all measured on hardware."""


def comparisons_csv(findings: Findings) -> str:
    """Return a row for each test and size, then one for each curve; a column for each field of a comparison."""
    comparisons = (*findings.cells, *findings.curves)
    columns = [name for name in Comparison.model_fields if name != "workload"]
    origins = origins_of(findings)
    rows = []
    for one in comparisons:
        row = flat(one.model_dump(mode="json")) | {"notes": "; ".join(one.notes)}
        rows.append(row | origin_columns(row, origins))
    columns += [name for name in WORKLOAD_COLUMNS if any(name in row for row in rows)]
    columns += [ORIGIN_COLUMNS[name] for name in ("fabric_a", "fabric_b")] if origins else []
    return rows_csv(rows, columns)


def origins_of(findings: Findings) -> dict[str, str]:
    """Return where each fabric's numbers come from, where any come from elsewhere than measurements on hardware; else nothing."""
    if not findings.marks:
        return {}
    return {fabric.name: (fabric.mark or Origin.MEASURED).value for fabric in findings.fabrics}


def origin_columns(row: Mapping[str, Any], origins: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a row that say where the numbers of each fabric in it come from."""
    return {column: origins[row[name]] for name, column in ORIGIN_COLUMNS.items() if row.get(name) in origins}


def findings_csv(findings: Findings) -> dict[str, str]:
    """Return every table of findings that has rows, by its name: the comparisons first, which are always there."""
    tables = {COMPARISONS: comparisons_csv(findings)}
    origins = origins_of(findings)
    for chapter in chapters.CHAPTERS:
        for name, records in chapter.records_of(findings).items():
            rows = [flat(one.model_dump(mode="json") if isinstance(one, Model) else one) for one in records]
            rows = [row | origin_columns(row, origins) for row in rows]
            if rows:
                tables[name] = rows_csv(rows)
    return tables


def flat(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested fields as columns: `time`, `time_low`, `time_high` of an interval; those of a cell's key as they are.

    A workload's parameters are a JSON object in one column: a value may hold any sign that would part them.
    """
    row: dict[str, Any] = {}
    for name, value in fields.items():
        column = prefix if name == "value" and prefix else f"{prefix}_{name}" if prefix else name
        if isinstance(value, Mapping):
            row |= flat(value, "" if name in NAMELESS else column)
        elif name == PARAMETERS and isinstance(value, list):
            row[column] = json.dumps(dict(value), ensure_ascii=False)
        else:
            row[column] = ";".join(map(str, value)) if isinstance(value, list) else value
    return row
