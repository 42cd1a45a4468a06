"""All that a report shows: the answer, the warnings, the method, and every finding."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from fabricbench.analysis.findings.applications import ApplicationFindings
from fabricbench.analysis.findings.cells import CellSummary, Comparison, Crossover, Distribution, LadderStep
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
from fabricbench.analysis.findings.terms import WithoutNone
from fabricbench.model import Layer, Model


class Severity(StrEnum):
    """How much a warning weighs: does it invalidate, weaken, or only inform?"""

    INVALID = "invalid"
    WARNING = "warning"
    NOTE = "note"


class Warning(Model):  # noqa: A001 - the field's word, and never used beside the built-in
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
    warnings: tuple[Warning, ...]
    method: tuple[str, ...]
    """The method in words, a paragraph each, with sources."""
    inventory: dict[str, dict[str, str]]
    """`doctor`'s facts for each host: host -> what -> value."""

    def __repr__(self) -> str:
        """Name the comparison in a line."""
        fabrics = ", ".join(fabric.name for fabric in self.fabrics)
        return f"<Findings {self.title!r}: {fabrics}; {len(self.cells)} comparisons, {len(self.warnings)} warnings>"
