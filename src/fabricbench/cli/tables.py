"""How commands write values: the formats of all that have a table (`fabricbench.table` writes those), shares, units."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from fabricbench.errors import UsageError
from fabricbench.model import Metric
from fabricbench.quantity import format_bit_s, format_message_s, format_seconds, format_work, parse_share
from fabricbench.table import rows_csv


class Format(StrEnum):
    """The formats that every command with a table writes."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows as CSV with a header, without the last line's end; None becomes an empty field."""
    return rows_csv(rows, columns).rstrip("\n")


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
