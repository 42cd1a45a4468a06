"""What the analysis found of applications: their own figures of merit, times in seconds, all else in the program's unit."""

from __future__ import annotations

from fabricbench.analysis.findings.cells import Interval, Verdict, WorkloadName
from fabricbench.model import Model


class ApplicationOnFabric(Model):
    """One figure of merit of an application on one fabric: the median over launches.

    `communication_share` is the share of the ranks' time in MPI, None where the program does not tell.
    """

    fabric: str
    application: WorkloadName
    figure: str
    unit: str
    is_primary: bool
    launches: int
    level: Interval
    communication_share: float | None = None


class ApplicationRatio(Model):
    """How many times better a figure of merit is on one fabric than on another; what a time is shorter, or a rate higher.

    The primary figure has a verdict, as every cell has; others explain, and have an interval only.
    """

    application: WorkloadName
    figure: str
    worse: str
    better: str
    times: float
    low: float | None
    high: float | None
    verdict: Verdict | None
    launches: int
    """Pairs of launches."""


class ApplicationFindings(Model):
    """All of it, in the order in which the applications were asked for."""

    results: tuple[ApplicationOnFabric, ...]
    ratios: tuple[ApplicationRatio, ...]
