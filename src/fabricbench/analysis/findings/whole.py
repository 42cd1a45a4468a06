"""All that a report shows: the answer, the warnings, the method, and every finding."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from pydantic import Field, JsonValue

from fabricbench.analysis.findings.applications import ApplicationFindings
from fabricbench.analysis.findings.cells import (
    CellSummary,
    Comparison,
    Crossover,
    Distribution,
    LadderStep,
    WithoutNone,
)
from fabricbench.analysis.findings.decision import DecisionFindings
from fabricbench.analysis.findings.first_screen import Headline
from fabricbench.analysis.findings.kernels import KernelFindings
from fabricbench.analysis.findings.patterns import (
    Coefficient,
    Congestion,
    NetworkMap,
    OneWay,
    Operation,
    StartUp,
    Topology,
)
from fabricbench.model import Layer, Model


def _is_empty(chapters: object) -> bool:
    return not chapters


class Severity(StrEnum):
    """How much a warning weighs: does it invalidate, weaken, or only inform?"""

    INVALID = "invalid"
    WARNING = "warning"
    NOTE = "note"


class Caution(Model):
    """Something the reader must know before believing a number."""

    severity: Severity
    subject: str
    text: str


class FabricFacts(Model):
    """A fabric as the report describes it."""

    name: str
    letter: str
    description: str
    line_rate_bit_s: float | None
    mtu: int
    is_emulated: bool
    layers: tuple[Layer, ...]
    price_per_node: float | None
    currency: str


class Findings(WithoutNone):
    """Everything that a report shows about a run, or about two runs set against each other."""

    not_written: ClassVar[tuple[str, ...]] = ("applications",)
    title: str
    run_directories: tuple[str, ...]
    campaign: str
    testbed: str
    started: str
    seconds_measured: float
    blocks: int
    launches: int
    launches_invalid: int
    samples: int
    confidence: float
    margin: float
    is_emulated: bool
    fabrics: tuple[FabricFacts, ...]
    headline: Headline
    summaries: tuple[CellSummary, ...]
    cells: tuple[Comparison, ...]
    curves: tuple[Comparison, ...]
    crossovers: tuple[Crossover, ...]
    ladder: tuple[LadderStep, ...]
    distributions: tuple[Distribution, ...]
    topologies: tuple[Topology, ...] = ()
    congestions: tuple[Congestion, ...] = ()
    operations: tuple[Operation, ...] = ()
    coefficients: tuple[Coefficient, ...] = ()
    start_ups: tuple[StartUp, ...] = ()
    one_ways: tuple[OneWay, ...] = ()
    maps: tuple[NetworkMap, ...] = ()
    kernels: KernelFindings | None = None
    applications: ApplicationFindings | None = None
    decision: DecisionFindings | None = None
    chapters: dict[str, tuple[dict[str, JsonValue], ...]] = Field(default={}, exclude_if=_is_empty)
    """What further chapters found, by name: rows of plain values (`fabricbench.chapters`)."""
    warnings: tuple[Caution, ...]
    method: tuple[str, ...]
    """The method in words, a paragraph each, with sources."""
    inventory: dict[str, dict[str, str]]
    """`doctor`'s facts for each host: host -> what -> value."""

    def __repr__(self) -> str:
        """Name the comparison in a line."""
        fabrics = ", ".join(fabric.name for fabric in self.fabrics)
        return f"<Findings {self.title!r}: {fabrics}; {len(self.cells)} comparisons, {len(self.warnings)} warnings>"
