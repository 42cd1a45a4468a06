"""What the checks look at, and how their warnings name cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricbench.analysis.comparing import Pairing
from fabricbench.analysis.findings import Comparison, Distribution, LadderStep, Severity, Warning  # noqa: A004 - the field's word
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.wording import METRIC_WORDS, enumeration
from fabricbench.quantity import format_bytes

MOST_NAMED = 4
"""Cells or launches that a warning names before it says how many more there are."""


@dataclass(frozen=True)
class Material:
    """Everything that the checks look at."""

    sides: Sequence[Side]
    pairings: Sequence[Pairing]
    cells: Sequence[Comparison]
    ladder: Sequence[LadderStep]
    distributions: Sequence[Distribution]
    margin: float
    confidence: float


def warn(severity: Severity, subject: str, text: str) -> Warning:
    """Return a warning."""
    return Warning(severity=severity, subject=subject, text=text)


def name_of(cell: CellMeasured) -> str:
    """Return how a cell is named in a warning: `udp round trip of 64 B`."""
    key = cell.key
    variant = f" ({key.variant})" if key.variant else ""
    preposition = "of" if key.metric.is_lower_better else "at"
    return f"{key.layer.value}{variant} {METRIC_WORDS[key.metric]} {preposition} {format_bytes(key.message_bytes)}"


def named(names: Sequence[str]) -> str:
    """Return the first few names and how many more there are."""
    few = list(dict.fromkeys(names))
    if len(few) <= MOST_NAMED:
        return enumeration(few)
    return f"{', '.join(few[:MOST_NAMED])} and {len(few) - MOST_NAMED} more"
