"""What the analysis found: the values that every report shows. Renderers take these as they are and compute nothing.

Ratios are always `b / a` of the metric in its unit; a verdict names the faster fabric by its letter, as scripts rely on.
Intervals are at `Findings.confidence`. Numbers are in the metric's unit (ns, bit/s, message/s).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from fabricbench.model import Layer, Metric, Model, Pattern, Receive
from fabricbench.statistics.culprits import Touch


class Verdict(StrEnum):
    """What a comparison comes to."""

    A_FASTER = "A faster"
    B_FASTER = "B faster"
    EQUIVALENT = "equivalent"
    NOT_ENOUGH_DATA = "not enough data"


BASIC_PATTERNS = (Pattern.PINGPONG, Pattern.STREAM)


class Interval(Model):
    """A point with its confidence interval; the bounds are None where too few launches give one."""

    value: float
    low: float | None
    high: float | None


class CellKey(Model):
    """What is measured, whatever the fabric. `variant` tells probes apart that differ in their parameters (`triad`), else ''."""

    layer: Layer
    pattern: Pattern
    receive: Receive
    message_bytes: int
    metric: Metric
    variant: str = ""


class CellSummary(Model):
    """One cell on one fabric. `median` is over launches: the median, with its interval, of one value each.

    The value of a launch is the median of its times, or its total bits over total time of a rate (windows arrive in bursts).
    `quantiles` maps probabilities (as text: "0.01", "0.5", "0.999") to values over all measured samples. `mean` is the arithmetic
    mean of times, or total bits over total time of rates (the harmonic mean). Shares of the line rate and of the physically
    possible payload rate are given for throughput on fabrics whose wire is known.
    """

    fabric: str
    key: CellKey
    launches: int
    samples: int
    warmup_samples: int
    median: Interval
    mean: float
    minimum: float
    maximum: float
    quantiles: dict[str, float]
    lost: int
    sent: int
    reordered: int
    duplicated: int
    corrupted: int
    verified: int
    share_of_line_rate: float | None = None
    share_of_payload_rate: float | None = None


class Comparison(Model):
    """Two fabrics in one cell, or along one curve (then `message_bytes` is None and the ratio is the geometric mean over sizes)."""

    kind: Literal["cell", "curve"]
    layer: Layer
    pattern: Pattern
    receive: Receive
    variant: str
    message_bytes: int | None
    metric: Metric
    unit: str
    fabric_a: str
    fabric_b: str
    median_a: float | None
    low_a: float | None
    high_a: float | None
    median_b: float | None
    low_b: float | None
    high_b: float | None
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    p_value: float | None
    p_adjusted: float | None
    verdict: Verdict
    launches: int
    """Pairs of launches (blocks) where the comparison is paired, else launches of the smaller side."""
    is_paired: bool
    more_blocks_needed: int | None
    """How many more blocks would settle it, where the verdict is `not enough data` and an estimate can be made."""


class Crossover(Model):
    """The message size where one fabric overtakes the other; the interval inverts a paired t test over blocks."""

    layer: Layer
    pattern: Pattern
    receive: Receive
    variant: str
    metric: Metric
    fabric_a: str
    fabric_b: str
    message_bytes: float
    low: float
    high: float
    faster_below: str
    faster_above: str


def is_basic(one: CellKey | Comparison | Crossover) -> bool:
    """Whether it is a plain ping-pong or stream: what the answer, the ladder and the curves over message size are about.

    Over a network a variant is another thing: beside a congestor, say. Over memory it is the kernel.
    """
    return one.pattern in BASIC_PATTERNS and (not one.variant or one.layer is Layer.MEMORY)


class LadderStep(Model):
    """One layer of one fabric: round trip of the smallest common message, and the best throughput, each beside the layer below."""

    fabric: str
    layer: Layer
    receive: Receive
    round_trip_message_bytes: int | None
    round_trip: Interval | None
    added_round_trip: Interval | None
    """What the layer adds to the round trip of the layer below (paired by launch)."""
    throughput_message_bytes: int | None
    throughput: Interval | None
    share_of_line_rate: float | None
    share_of_payload_rate: float | None
    lost_share_of_line_rate: float | None
    """Share of the line rate lost against the layer below, at the largest message size that both have."""


class Distribution(Model):
    """All measured samples of one cell on one fabric as a density: bin edges (n + 1) and counts (n), edges in the metric's unit."""

    fabric: str
    key: CellKey
    edges: tuple[float, ...]
    counts: tuple[int, ...]


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
    has to carry in each direction. `overlap` is the share of a nonblocking call that hides behind computing. `missed_share` of the
    samples had a rank that was late for the agreed start, and do not count.
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


class Headline(Model):
    """The first screen: the answer in a short sentence, what bears it out, how sure, under which conditions."""

    sentence: str
    detail: str = ""
    """Who wins where and by how much, with intervals; exceptions and crossovers."""
    effects: tuple[str, ...]
    """One line an effect, with its interval: `tcp round trip of 64 B: myrinet 3.10 x faster (3.05 to 3.14)`."""
    conditions: str


class KernelName(Model):
    """A kernel as it was run. `program` is `own` for fabricbench-npb, else what the folder of the official NPB is called."""

    benchmark: str
    problem_class: str
    ranks: int
    program: str = "own"

    def __str__(self) -> str:
        """Return `IS.W on 4 ranks`, with the program where it is not our own."""
        other = "" if self.program == "own" else f" ({self.program})"
        return f"{self.benchmark}.{self.problem_class} on {self.ranks} rank{'' if self.ranks == 1 else 's'}{other}"


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


class Findings(Model):
    """Everything that a report shows about a run, or about two runs set against each other."""

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
    warnings: tuple[Warning, ...]
    method: tuple[str, ...]
    """The method in words, a paragraph each, with sources."""
    inventory: dict[str, dict[str, str]]
    """`doctor`'s facts for each host: host -> what -> value."""
