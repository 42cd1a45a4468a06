"""Findings as comma-separated values of seven digits: times in ns, rates in bit/s, as the column `unit` says."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from fabricbench import chapters
from fabricbench.analysis.findings import SETUP_FIELDS, Findings, Origin
from fabricbench.model import Metric, Model
from fabricbench.table import rows_csv

COMPARISONS = "comparisons"
DIGITS = 7

PARAMETERS = "parameters"
LAST_COLUMNS = (*SETUP_FIELDS, "judged_by")
"""What tells tests apart stands behind what came of them."""
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
    origins = origins_of(findings)
    rows = []
    for one in comparisons:
        row = flat(one.model_dump(mode="json", exclude={"groups"})) | {"notes": "; ".join(map(str, one.notes))}
        rows.append(row | origin_columns(row, origins))
    columns = list(dict.fromkeys(name for row in rows for name in row))
    columns.sort(key=lambda name: (name in ORIGIN_COLUMNS.values(), name in LAST_COLUMNS))
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
            rows = [with_unit(row) | origin_columns(row, origins) for row in rows]
            if rows:
                tables[name] = rows_csv(rows)
    return tables


def with_unit(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the unit of its values beside the metric, where it has one and does not say so itself."""
    told: dict[str, Any] = {}
    for name, value in row.items():
        told[name] = value
        if name == "metric" and "unit" not in row:
            told["unit"] = Metric(value).unit
    return told


def flat(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested fields as columns: `time`, `time_low`, `time_high` of an interval; those of a cell's key as they are.

    Parameters are a JSON object in one column: a value may hold any sign that would part them. Those of a workload are all of
    them, those of its cell but the unusual ones.
    """
    row: dict[str, Any] = {}
    for name, value in fields.items():
        column = prefix if name == "value" and prefix else f"{prefix}_{name}" if prefix else name
        if name == PARAMETERS:
            row.setdefault(column, json.dumps(dict(value), ensure_ascii=False))
        elif value is None or isinstance(value, str | float | int):  # most are, and the next question takes long
            row[column] = _rounded(value)
        elif isinstance(value, Mapping):
            row |= flat(value, "" if name in NAMELESS else column)
        else:
            row[column] = ";".join(map(str, value)) if isinstance(value, list) else _rounded(value)
    return row


def _rounded(value: Any) -> Any:
    """Return a number with as many digits as anybody measures; JSON has all of them."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) and math.isfinite(value) else value
