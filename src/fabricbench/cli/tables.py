"""How commands write tables of values: text for people, Markdown for papers, CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fabricbench.errors import UsageError
from fabricbench.model import Metric
from fabricbench.printable import one_line
from fabricbench.quantity import format_bit_s, format_message_s, format_seconds, format_work, parse_share


class Format(StrEnum):
    """The formats that every command with a table writes."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


@dataclass(frozen=True)
class Table:
    """A table with a title of its own; all rows have as many entries as there are columns."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def as_text(table: Table) -> str:
    """Return the table in columns of equal width, its title above."""
    lines = [[one_line(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.columns))]
    body = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    return "\n".join([table.title, *body])


def as_markdown(table: Table) -> str:
    """Return the table in Markdown, its title as a heading."""
    rows = [table.columns, ["---"] * len(table.columns), *table.rows]
    body = ["| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([f"### {table.title}", "", *body])


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows as CSV with a header; None becomes an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def as_json(value: Any) -> str:
    """Return JSON for programs that people also look at."""
    return json.dumps(value, indent=2)


def share_option(text: str, option: str) -> float:
    """Return the share that an option was given as `2%` or `0.02`; UsageError names the option."""
    try:
        return parse_share(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint=f"write {option} 2% say") from None


def value_text(value: float, metric: Metric) -> str:
    """Return a number of a metric with the unit that suits it."""
    if metric.is_time:
        return format_seconds(value * 1e-9)
    formats = {Metric.MESSAGE_RATE: format_message_s, Metric.WORK_RATE: format_work}
    return formats.get(metric, format_bit_s)(value)


def bounded_text(value: str, low: str | None, high: str | None) -> str:
    """Return `value (low to high)`, or the value alone."""
    return value if low is None or high is None else f"{value} ({low} to {high})"
