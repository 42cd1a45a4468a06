"""What the analysis found where more than two ranks take part, or two that are not simply timed: units as in `findings`."""

from __future__ import annotations

from fabricbench.analysis.findings.terms import CellKey, Interval, Verdict
from fabricbench.model import Layer, Metric, Model, Pattern
from fabricbench.statistics.culprits import Touch


class Topology(Model):
    """One pattern of many ranks on one fabric, everything over launches.

    `throughput` is that of all channels together (message/s for message-rate), `channel_throughput` that over the channels in use
    at once. `arithmetic` is what each channel gets of a full-duplex link behind a switch that never blocks. `time` is given where a
    sample is the time of a turn. `fairness` (Jain) and `loss_share` are over the channels, where the pattern tells of them.
    """

    fabric: str
    key: CellKey
    ranks: int
    flows: int
    channels: int
    launches: int
    throughput: Interval
    channel_throughput: Interval
    arithmetic: float | None
    share_of_arithmetic: Interval | None
    time: Interval | None
    fairness: Interval | None
    loss_share: Interval | None


class CongestorFacts(Model):
    """What other ranks did while a cell was measured: nothing where they are the idle control, which must have an impact of 1.

    The first of `ranks` is the receiver of an incast.
    """

    layer: Layer
    pattern: Pattern
    message_bytes: int
    flows: int
    ranks: tuple[int, ...]
    is_idle: bool = False


class Congestion(Model):
    """A cell beside a congestor and alone, on one fabric: how many times worse it is, the median and the tails of each launch.

    `impact`, `impact_p99` and `impact_p999` are congested / isolated of times, isolated / congested of rates (above 1 is worse),
    paired within launches: the geometric mean over launches with its t interval on log ratios. None where a rate came down to 0.
    `samples_a_launch` is the smaller median number of samples that the tails rest on.
    """

    fabric: str
    key: CellKey
    """Of the cell alone."""
    congestor: CongestorFacts
    launches: int
    samples_a_launch: int
    isolated: Interval
    congested: Interval
    impact: Interval | None
    impact_p99: Interval | None
    impact_p999: Interval | None


class Operation(Model):
    """An MPI operation on one fabric, everything over launches.

    `algorithm_bandwidth` is the operation's bytes over its time, `bus_bandwidth` that times `bus_factor`: what the busiest link
    has to carry in each direction. `back_to_back` is the time of a call in a plain loop, where early ranks begin the next call
    early: what most benchmarks of collectives print; None where no launch tells. `overlap` is the share of a nonblocking call that
    hides behind computing. `missed_share` of the samples had a rank that was late for the agreed start, and do not count.
    """

    fabric: str
    key: CellKey
    ranks: int
    launches: int
    samples: int
    time: Interval
    algorithm_bandwidth: Interval | None
    bus_factor: float | None
    bus_bandwidth: Interval | None
    back_to_back: Interval | None
    overlap: Interval | None
    missed_share: float


class Coefficient(Model):
    """The comparison coefficient (t_B - t_A) / t_A of an operation: below 0, B takes less time."""

    key: CellKey
    fabric_a: str
    fabric_b: str
    coefficient: Interval
    verdict: Verdict
    launches: int


class StartUp(Model):
    """What MPI_Init took on the slowest rank of a launch, over launches."""

    fabric: str
    ranks: int
    launches: int
    time: Interval


class OneWay(Model):
    """The latency of each direction on one fabric: medians of launches, over launches.

    `forth` is from the first rank to the second. `total` is their sum, `round_trip` what the first rank saw of the same messages;
    between them lies what the second rank took to answer. `asymmetry` is forth - back. Each direction is known to `clock_bound_ns`,
    the greatest of the bounds at the cell (`clock_bound_begin_ns`) and after all cells (`clock_bound_end_ns`) over launches; None
    where no launch tells.
    """

    fabric: str
    key: CellKey
    source: int
    destination: int
    launches: int
    forth: Interval
    back: Interval
    total: Interval
    round_trip: Interval
    asymmetry: Interval
    clock_bound_ns: float | None
    clock_bound_begin_ns: float | None
    clock_bound_end_ns: float | None
    is_shared_clock: bool
    """Whether both ranks read one and the same clock, as in a lab: then the bound is 0."""


class Slow(Model):
    """A cause of slow pairs: what it touches, the hosts, and how much slower (0.2 is 20 %) with its interval.

    `is_confirmed` once a second run has found it too; until then it is a suspect.
    """

    touch: Touch
    hosts: tuple[str, ...]
    slower: float
    slower_low: float
    slower_high: float
    is_confirmed: bool

    @property
    def words(self) -> str:
        """The cause as a sentence without its figures."""
        first = self.hosts[0]
        last = self.hosts[-1]
        return {
            Touch.MEMBER: f"{first} is slow with all others",
            Touch.SENDING: f"{first} sends slowly to all others",
            Touch.RECEIVING: f"{first} receives slowly from all others",
            Touch.PAIR: f"{first} and {last} are slow with each other",
            Touch.DIRECTION: f"{first} sends slowly to {last}",
        }[self.touch]

    def touches(self, source: str, destination: str) -> bool:
        """Whether one direction of a pair belongs to the cause."""
        first, last = self.hosts[0], self.hosts[-1]
        return {
            Touch.MEMBER: first in (source, destination),
            Touch.SENDING: first == source,
            Touch.RECEIVING: first == destination,
            Touch.PAIR: {first, last} == {source, destination},
            Touch.DIRECTION: (first, last) == (source, destination),
        }[self.touch]


class NetworkMap(Model):
    """One matrix of one fabric: `matrix[i][j]` is the median over launches from host i to host j, None where there is none.

    Round trips (ns) are the same both ways; throughputs (bit/s) are of each direction. `schedule` says whether pairs were measured
    alone or in rounds of disjoint ones.
    """

    fabric: str
    layer: Layer
    pattern: Pattern
    schedule: str
    message_bytes: int
    metric: Metric
    launches: int
    hosts: tuple[str, ...]
    matrix: tuple[tuple[float | None, ...], ...]
    slow: tuple[Slow, ...]
    is_judged: bool
    """False where fewer than four hosts leave cause and effect apart undecidable."""
    is_measured_again: bool = False
    """Whether a second run had its say: then `slow` is what it confirms."""
