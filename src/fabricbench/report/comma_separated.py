"""Findings as comma-separated values at full precision: times in ns, rates in bit/s."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fabricbench import chapters
from fabricbench.analysis.findings import Comparison, Findings, Origin
from fabricbench.model import Model
from fabricbench.table import rows_csv

COMPARISONS = "comparisons"

ORIGIN_COLUMNS = ("origin_a", "origin_b")
"""Beside `fabric_a` and `fabric_b`, in a report of numbers that were not all measured here."""


def comparisons_csv(findings: Findings) -> str:
    """Return a row for each test and size, then one for each curve; a column for each field of a comparison."""
    names = [name for name in Comparison.model_fields if name != "workload"]
    of_workload = ["ranks", "parameters"] if any(one.workload is not None for one in findings.cells) else []
    origins = origins_of(findings)
    rows = []
    for comparison in (*findings.cells, *findings.curves):
        row = comparison.model_dump(mode="json", exclude={"workload"}) | {"notes": "; ".join(comparison.notes)}
        row |= origin_columns(comparison, origins)
        if (workload := comparison.workload) is not None:
            row |= {"ranks": workload.ranks, "parameters": _parameters(workload.parameters)}
        rows.append(row)
    return rows_csv(rows, [*names, *of_workload, *(ORIGIN_COLUMNS if origins else ())])


def origins_of(findings: Findings) -> dict[str, str]:
    """Return where each fabric's numbers come from, where any come from elsewhere than measurements; else nothing."""
    if all(fabric.origin is None for fabric in findings.fabrics):
        return {}
    return {fabric.name: (fabric.mark or Origin.MEASURED).value for fabric in findings.fabrics}


def origin_columns(comparison: Comparison, origins: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a comparison that say where the numbers of its fabrics come from."""
    names = (comparison.fabric_a, comparison.fabric_b)
    return {column: origins[name] for column, name in zip(ORIGIN_COLUMNS, names, strict=True) if name in origins}


def _parameters(parameters: Iterable[Sequence[Any]]) -> str:
    return ";".join(f"{name}={value}" for name, value in parameters)


def findings_csv(findings: Findings) -> dict[str, str]:
    """Return every table of findings that has rows, by its name: the comparisons first, which are always there."""
    tables = {COMPARISONS: comparisons_csv(findings)}
    origins = origins_of(findings)
    for chapter in chapters.CHAPTERS:
        for name, records in chapter.records_of(findings).items():
            rows = [flat(one.model_dump(mode="json") if isinstance(one, Model) else one) for one in records]
            rows = [row | {"origin": origins[row["fabric"]]} if row.get("fabric") in origins else row for row in rows]
            if rows:
                tables[name] = rows_csv(rows)
    return tables


def flat(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested fields as columns: `time`, `time_low`, `time_high` of an interval; those of a cell's key as they are."""
    row: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "parameters" and isinstance(value, list):
            value = [f"{key}={one}" for key, one in value]  # noqa: PLW2901 - of a workload: pairs of a name and a value
        column = prefix if name == "value" and prefix else f"{prefix}_{name}" if prefix else name
        if isinstance(value, Mapping):
            row |= flat(value, "" if name == "key" else column)
        else:
            row[column] = ";".join(map(str, value)) if isinstance(value, list) else value
    return row
