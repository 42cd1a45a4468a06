"""What the analysis found of all workloads together: kernels, Linpack, applications, farms, whatever they are judged by.

All ratios are of how many times better, so that times and rates stand in one order. Times are in seconds, bytes are payload.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from fabricbench.analysis.findings.cells import Interval, Verdict, WithoutNone, WorkloadName
from fabricbench.model import Model
from fabricbench.record.provenance import Origin

WORKLOADS = "workloads"
"""The name under which findings have workloads, a row for each on each fabric."""


class Agreement(StrEnum):
    """How a measured ratio lies to the expected one, by the interval of their quotient, paired by block.

    `less` and `more`: by more than the margin; `within`: by no more than it; `not-told-apart`: the interval allows both; `turned`:
    bytes and messages let the other fabric be the faster one, so that no reading holds. `unknown` where there is no interval.
    """

    WITHIN = "within"
    LESS = "less"
    MORE = "more"
    NOT_TOLD_APART = "not-told-apart"
    TURNED = "turned"
    UNKNOWN = "unknown"


class ReferenceMachine(Model):
    """The machine that rates are normalised to: the seconds that each `IS.A` takes there, and where they come from."""

    name: str
    source: str
    seconds: dict[str, float]


class OfLoad(Model):
    """A row about a workload: `load` is what it is called with its parameters and ranks, `hpl, n=2000, on 4 ranks (Gflop/s)`."""

    load: str


class LoadOnFabric(WithoutNone, OfLoad):
    """A workload on one fabric: what it is judged by, and the time of one run (None where that is not known).

    Of our own programs there is where the time went: `calls` has the share of each kind of MPI call in the ranks' time,
    `bytes_sent` what all ranks sent. Rates of NPB are in Mop/s by the official counts, medians over all verified runs;
    `of_reference` is how many times the rate of the reference machine.
    """

    not_written: ClassVar[tuple[str, ...]] = ("calls", "bytes_sent", "mops_total", "mops_per_process", "of_reference")
    workload: WorkloadName
    fabric: str
    launches: int
    figure: str
    unit: str
    level: Interval
    seconds: Interval | None
    communication_share: float | None
    calls: dict[str, float] = {}
    bytes_sent: float | None = None
    mops_total: float | None = None
    mops_per_process: float | None = None
    of_reference: float | None = None


class FigureOnFabric(OfLoad):
    """A further figure of merit of a workload on one fabric, which explains: the median over launches."""

    workload: WorkloadName
    fabric: str
    launches: int
    figure: str
    unit: str
    level: Interval


class FigureRatio(OfLoad):
    """How many times better a further figure is on one fabric than on another; what a time is shorter, or a rate higher."""

    workload: WorkloadName
    figure: str
    worse: str
    better: str
    times: Interval
    launches: int
    """Pairs of launches."""


class FarmOnFabric(OfLoad):
    """The jobs of one farm on one fabric. `jobs_per_hour` and `staging_share` are medians over launches that did a job.

    Jobs are counted over all `launches`, which came to their end; `idle` are those of them that did none.
    """

    fabric: str
    launches: int
    idle: int = 0
    jobs_per_hour: Interval | None
    staging_share: Interval | None
    jobs: int
    done: int
    retried: int
    lost: int
    success: Interval


class FarmOfStudy(Model):
    """The published farm, with the interval that its jobs give."""

    source: str
    nodes: int
    input_bytes: int
    jobs: int
    done: int
    success: Interval


class LoadExpectation(Model):
    """What a workload's bytes and messages let expect: a prediction, from its runs on the faster fabric alone.

    `payload_bytes` and `messages` are of the busiest host in one run, as far as they were counted; `network_seconds` is what they
    take on the wire of each fabric, `expected_seconds` the run's time on the slower one if none of that is overlapped.
    `measured_over_expected` is the measured ratio over the expected one, paired by block.
    """

    bytes_from: str
    payload_bytes: float
    messages: float | None
    seconds_faster: float
    network_seconds_faster: float
    network_seconds_slower: float
    expected_seconds_slower: float
    ratio: Interval
    measured_over_expected: Interval | None = None
    agreement: Agreement
    origin: Origin = Origin.PREDICTED


class Limit(Model):
    """What besides the fabric bounds a workload's number, in words, and how far, where that is known."""

    what: str
    extent: str = ""

    @property
    def words(self) -> str:
        """All of it: `the switch of net was late, up to 3 % of the time`."""
        return f"{self.what}, {self.extent}" if self.extent else self.what


class LoadRatio(OfLoad):
    """How many times better a workload is on the faster of two fabrics, on the most ranks that it was run on."""

    workload: WorkloadName
    slower: str
    faster: str
    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict
    launches: int
    """Pairs of launches."""
    lead: Interval | None = None
    """How many times the ratio of the next workload this one's is, paired by block; None for the last, and where nothing pairs."""
    expectation: LoadExpectation | None = None
    is_settled: bool = False
    """Whether this workload and all before it gain more than all after it: every such two were told apart."""
    void: str | None = None
    """What makes the work on one fabric another one than on the other, so that this is no ratio to believe; None: nothing does."""
    limits: tuple[Limit, ...] = ()
    """What besides the fabric bounds this number."""


class LoadSpeedUp(OfLoad):
    """How many times the work of the fewest ranks is done in the same time, and the share of what so many ranks could do.

    `is_weak`: the work grows with the ranks, so that the ideal is the same time. `subject` is the workload whatever its ranks.
    """

    workload: WorkloadName
    fabric: str
    ranks: int
    nodes: int | None
    fewest: int
    is_weak: bool
    times: Interval
    efficiency: Interval
    subject: str = ""


class LoadPrice(OfLoad):
    """What the nodes that a workload ran on cost with a fabric, for each unit of the work that they do."""

    workload: WorkloadName
    fabric: str
    nodes: int
    currency: str
    cost: float
    per: str
    price: Interval


class PublishedBeside(Model):
    """A published figure beside the measured one of the same kind of work."""

    what: str
    published: str
    measured: str
    condition: str
    source: str
