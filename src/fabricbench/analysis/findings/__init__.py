"""What the analysis found: the values that every report shows. Renderers take these as they are and compute nothing.

Ratios are always `b / a` of the metric in its unit; a verdict names the faster fabric by its letter, as scripts rely on.
Intervals are at `Findings.confidence`. Numbers are in the metric's unit (ns, bit/s, message/s).
"""

from __future__ import annotations

from fabricbench.analysis.findings.applications import ApplicationFindings, ApplicationOnFabric, ApplicationRatio
from fabricbench.analysis.findings.cells import (
    BASIC_PATTERNS,
    CellKey,
    CellSummary,
    Comparison,
    Crossover,
    Distribution,
    Interval,
    LadderStep,
    OfWorkload,
    Replication,
    Verdict,
    WorkloadName,
    is_basic,
)
from fabricbench.analysis.findings.decision import (
    BreakEven,
    BreakEvenKind,
    DecisionFindings,
    FabricScore,
    LeftOut,
    SystemCost,
    WeighedTest,
)
from fabricbench.analysis.findings.first_screen import Changes, Effect, Grade, Headline, PairEffect, Reading
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
    FailedPair,
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
from fabricbench.analysis.findings.whole import Caution, FabricFacts, Findings, Severity

__all__ = [
    "BASIC_PATTERNS",
    "ApplicationFindings",
    "ApplicationOnFabric",
    "ApplicationRatio",
    "BreakEven",
    "BreakEvenKind",
    "Caution",
    "CellKey",
    "CellSummary",
    "Changes",
    "Coefficient",
    "Comparison",
    "Congestion",
    "CongestorFacts",
    "Crossover",
    "DecisionFindings",
    "Distribution",
    "Effect",
    "FabricFacts",
    "FabricScore",
    "FailedPair",
    "Findings",
    "Grade",
    "Headline",
    "Interval",
    "KernelFindings",
    "KernelName",
    "KernelOnFabric",
    "LadderStep",
    "LeftOut",
    "MapVerdict",
    "NetworkMap",
    "OfWorkload",
    "OneWay",
    "Operation",
    "PairEffect",
    "Reading",
    "Reference",
    "Replication",
    "Sensitivity",
    "Severity",
    "Slow",
    "SpeedUp",
    "StartUp",
    "SystemCost",
    "Topology",
    "UnexplainedPair",
    "Verdict",
    "WeighedTest",
    "WorkloadName",
    "is_basic",
    "slowness_words",
]
