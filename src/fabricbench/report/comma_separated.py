"""Comma-separated values: every finding at full precision (times in ns, rates in bit/s), and tables as they are shown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fabricbench.analysis.findings import Comparison, Findings
from fabricbench.model import Model
from fabricbench.report.tables import Table


def comparisons_csv(findings: Findings) -> str:
    """Return a row for each test and size, then one for each curve; a column for each field of a comparison."""
    text = io.StringIO(newline="")
    names = [name for name in Comparison.model_fields if name != "workload"]
    of_workload = ["ranks", "parameters"] if any(one.workload is not None for one in findings.cells) else []
    writer = csv.DictWriter(text, fieldnames=[*names, *of_workload], lineterminator="\n")
    writer.writeheader()
    for comparison in (*findings.cells, *findings.curves):
        row = comparison.model_dump(mode="json", exclude={"workload"}) | {"notes": "; ".join(comparison.notes)}
        if (workload := comparison.workload) is not None:
            row |= {"ranks": workload.ranks, "parameters": _parameters(workload.parameters)}
        writer.writerow(row)
    return text.getvalue()


def _parameters(parameters: Iterable[Sequence[Any]]) -> str:
    return ";".join(f"{name}={value}" for name, value in parameters)


def table_csv(table: Table) -> str:
    """Return a table as a reader sees it, units and all."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows((table.columns, *table.rows))
    return text.getvalue()


COMPARISONS = "comparisons"


def findings_csv(findings: Findings) -> dict[str, str]:
    """Return every table of findings that has rows, by its name: the comparisons first, which are always there."""
    tables: dict[str, Iterable[Model]] = {
        "topologies": findings.topologies,
        "congestion": findings.congestions,
        "operations": findings.operations,
        "coefficients": findings.coefficients,
        "start-up": findings.start_ups,
        "one-way": findings.one_ways,
        "kernels": findings.kernels.results if findings.kernels else (),
        "kernel-ratios": findings.kernels.sensitivities if findings.kernels else (),
        "applications": findings.applications.results if findings.applications else (),
        "application-ratios": findings.applications.ratios if findings.applications else (),
        "speed-up": findings.kernels.speed_ups if findings.kernels else (),
    }
    rows = {
        name: [flat(one.model_dump(mode="json", exclude={"calls"})) for one in models]
        for name, models in tables.items()
    }
    rows["pairs"] = [
        {
            **{name: getattr(one, name) for name in ("fabric", "layer", "pattern", "schedule", "message_bytes")},
            "metric": one.metric,
            "source": source,
            "destination": destination,
            "value": value,
        }
        for one in findings.maps
        for source, row in zip(one.hosts, one.matrix, strict=True)
        for destination, value in zip(one.hosts, row, strict=True)
        if value is not None
    ]
    rows["slow"] = [
        {
            **{name: getattr(one, name) for name in ("fabric", "layer", "pattern", "schedule", "message_bytes")},
            **flat(slow.model_dump(mode="json")),
        }
        for one in findings.maps
        for slow in one.slow
    ]
    rows["unexplained"] = [
        {
            **{name: getattr(one, name) for name in ("fabric", "layer", "pattern", "schedule", "message_bytes")},
            **pair.model_dump(mode="json"),
        }
        for one in findings.maps
        for pair in one.unexplained
    ]
    return {COMPARISONS: comparisons_csv(findings)} | {name: _csv(each) for name, each in rows.items() if each}


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


def _csv(rows: list[dict[str, Any]]) -> str:
    """Return rows under all their columns; an interval that one row lacks leaves its columns empty there."""
    text = io.StringIO(newline="")
    names = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, fieldnames=list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
