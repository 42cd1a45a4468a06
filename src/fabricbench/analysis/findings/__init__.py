"""What the analysis found: the values that every report shows. Renderers take these as they are and compute nothing.

Ratios are always `b / a` of the metric in its unit; a verdict names the faster fabric by its letter, as scripts rely on.
Intervals are at `Findings.confidence`. Numbers are in the metric's unit (ns, bit/s, message/s).
"""

from __future__ import annotations

from fabricbench.analysis.findings.cells import (
    BASIC_PATTERNS,
    CellSummary,
    Comparison,
    Crossover,
    Distribution,
    LadderStep,
    is_basic,
)
from fabricbench.analysis.findings.kernels import (
    KernelFindings,
    KernelName,
    KernelOnFabric,
    Reference,
    Sensitivity,
    SpeedUp,
)
from fabricbench.analysis.findings.patterns import (
    Coefficient,
    Congestion,
    CongestorFacts,
    MapVerdict,
    NetworkMap,
    OneWay,
    Operation,
    Slow,
    StartUp,
    Topology,
    UnexplainedPair,
    slowness_words,
)
from fabricbench.analysis.findings.terms import CellKey, Interval, Verdict
from fabricbench.analysis.findings.whole import FabricFacts, Findings, Headline, Severity, Warning  # noqa: A004 - the field's word

__all__ = [
    "BASIC_PATTERNS",
    "CellKey",
    "CellSummary",
    "Coefficient",
    "Comparison",
    "Congestion",
    "CongestorFacts",
    "Crossover",
    "Distribution",
    "FabricFacts",
    "Findings",
    "Headline",
    "Interval",
    "KernelFindings",
    "KernelName",
    "KernelOnFabric",
    "LadderStep",
    "MapVerdict",
    "NetworkMap",
    "OneWay",
    "Operation",
    "Reference",
    "Sensitivity",
    "Severity",
    "Slow",
    "SpeedUp",
    "StartUp",
    "Topology",
    "UnexplainedPair",
    "Verdict",
    "Warning",
    "is_basic",
    "slowness_words",
]
