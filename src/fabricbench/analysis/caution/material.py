"""What the checks look at, and how their warnings name cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricbench.analysis.comparing import Pairing
from fabricbench.analysis.findings import Comparison, Distribution, LadderStep, NetworkMap, Severity, Warning  # noqa: A004 - the field's word
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.wording import enumeration, named_cell, percent
from fabricbench.quantity import count

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
    maps: Sequence[NetworkMap]
    margin: float
    confidence: float


def warn(severity: Severity, subject: str, text: str) -> Warning:
    """Return a warning."""
    return Warning(severity=severity, subject=subject, text=text)


def name_of(cell: CellMeasured) -> str:
    """Return how a cell is named in a warning: `udp round trip of 64 B`."""
    return named_cell(cell.key, cell.key.message_bytes)


@dataclass(frozen=True)
class Tally:
    """The tests of a side in which something takes a share that is worth a word."""

    side: Side
    shares: Mapping[str, float]

    @property
    def tests(self) -> str:
        """`35 tests`."""
        return count(len(self.shares), "test")

    @property
    def least(self) -> str:
        """The smallest share."""
        return percent(min(self.shares.values()))

    @property
    def most(self) -> str:
        """The greatest share."""
        return percent(max(self.shares.values()))

    @property
    def worst(self) -> str:
        """The test with the greatest share."""
        return max(self.shares, key=lambda name: self.shares[name])


def note_shares(
    material: Material, shares_of: Callable[[Side], Mapping[str, float]], words: Callable[[Tally], str]
) -> Iterator[Warning]:
    """Yield a note on each side on which any test has such a share: one for all of them."""
    for side in material.sides:
        shares = shares_of(side)
        if shares:
            yield warn(Severity.NOTE, side.name, words(Tally(side, shares)))


def named(names: Sequence[str]) -> str:
    """Return the first few names and how many more there are."""
    few = list(dict.fromkeys(names))
    if len(few) <= MOST_NAMED:
        return enumeration(few)
    return f"{', '.join(few[:MOST_NAMED])} and {len(few) - MOST_NAMED} more"
