"""What the analysis has made of the runs before anything is concluded: what chapters are found from, and warnings told from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fabricbench.analysis.curves import CurveWithAnomalies, curves_with_anomalies
from fabricbench.analysis.findings import (
    Caution,
    CellKey,
    Comparison,
    Distribution,
    LadderStep,
    NetworkMap,
    ReferenceMachine,
    Severity,
)
from fabricbench.analysis.findings.trend import Trend
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.pairing import Pairing
from fabricbench.analysis.stages import StagesOfCell, read_stages
from fabricbench.analysis.wording import named_cell, percent
from fabricbench.quantity import count
from fabricbench.record.decision_table import DecisionTable


@dataclass(frozen=True)
class Material:
    """Everything that may be looked at. `sides` are fabrics of a run, with a value of each launch for every cell that it measured.

    `pairings` say which two sides are compared and how, `cells` what came of it. `confidence` is the report's; `level` is what is
    left of it where blocks were added. `reference` and `decision` are what the user gave; `maps` are there once they are found,
    `trend` where runs of before were given.
    """

    sides: Sequence[Side]
    pairings: Sequence[Pairing]
    cells: Sequence[Comparison]
    ladder: Sequence[LadderStep]
    distributions: Sequence[Distribution]
    margin: float
    confidence: float
    level: float
    reference: ReferenceMachine | None = None
    decision: DecisionTable | None = None
    maps: Sequence[NetworkMap] = ()
    trend: Trend | None = None

    @cached_property
    def stages(self) -> Mapping[str, Mapping[CellKey, StagesOfCell]]:
        """The stages of each side whose messages were stamped, by the side's name and the key of the cell without stamps."""
        return {side.name: read_stages(side) for side in self.sides if side.stamped}

    @cached_property
    def curves(self) -> tuple[CurveWithAnomalies, ...]:
        """Every curve over message size with its anomalies, which more than one chapter looks at."""
        return curves_with_anomalies(self.sides, self.margin, 1.0 - self.level)


def warn(severity: Severity, subject: str, text: str) -> Caution:
    """Return a warning."""
    return Caution(severity=severity, subject=subject, text=text)


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
) -> Iterator[Caution]:
    """Yield a note on each side on which any test has such a share: one for all of them."""
    for side in material.sides:
        shares = shares_of(side)
        if shares:
            yield warn(Severity.NOTE, side.name, words(Tally(side, shares)))
