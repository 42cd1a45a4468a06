"""What the analysis found of applications and of the NAS Parallel Benchmarks.

Times are in seconds, rates of NPB in Mop/s, all other figures of merit in the unit of the program that told them.
"""

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


class KernelName(Model):
    """A kernel as it was run. `program` is `own` for fabricbench-npb, else what the folder of the official NPB is called."""

    benchmark: str
    problem_class: str
    ranks: int
    program: str = "own"

    @property
    def name(self) -> str:
        """The kernel and its class: `IS.W`."""
        return f"{self.benchmark}.{self.problem_class}"

    def __str__(self) -> str:
        """Return `IS.W on 4 ranks`, with the program where it is not our own."""
        other = "" if self.program == "own" else f" ({self.program})"
        return f"{self.name} on {self.ranks} rank{'' if self.ranks == 1 else 's'}{other}"


class KernelOnFabric(Model):
    """One kernel on one fabric. `seconds` is the median over launches; rates are medians over all verified runs.

    `communication_share` is the share of the ranks' time in MPI, `calls` that of each kind of call; None and empty where the
    program does not tell. `of_reference` is how many times the rate of the reference machine.
    """

    fabric: str
    kernel: KernelName
    launches: int
    seconds: Interval
    mops_total: float | None
    mops_per_process: float | None
    communication_share: float | None
    calls: dict[str, float] = {}
    bytes_sent: float | None = None
    of_reference: float | None = None


class Sensitivity(Model):
    """How much a kernel gains by the faster of two networks: its time on the slower one over that on the faster one."""

    slower: str
    faster: str
    kernel: KernelName
    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict
    launches: int
    """Pairs of launches."""
    lead: Interval | None = None
    """How many times the next kernel's ratio this one's is, paired by block; None for the last, and where nothing pairs."""
    is_settled: bool = False
    """Whether this kernel and all before it gain more than all after it: every such two were told apart."""

    @property
    def is_equivalent(self) -> bool:
        """Whether the network makes no difference that matters."""
        return self.verdict is Verdict.EQUIVALENT

    @property
    def is_decided(self) -> bool:
        """Whether one of the two is faster."""
        return self.verdict in (Verdict.A_FASTER, Verdict.B_FASTER)


class SpeedUp(Model):
    """How many times faster a kernel is than on the fewest ranks that it was run on; paired by block."""

    fabric: str
    kernel: KernelName
    fewest: int
    speed_up: Interval


class Reference(Model):
    """The machine that rates are normalised to: the seconds that each `IS.A` takes there, and where they come from."""

    name: str
    source: str
    seconds: dict[str, float]


class KernelFindings(Model):
    """All of it. `sensitivities` are in the order of their ratio, the kernel that gains most first, pair by pair."""

    results: tuple[KernelOnFabric, ...]
    sensitivities: tuple[Sensitivity, ...]
    speed_ups: tuple[SpeedUp, ...]
    reference: Reference | None = None
