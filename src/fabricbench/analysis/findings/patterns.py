"""What the analysis found where more than two ranks take part, or two that are not simply timed: units as in `findings`."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.analysis.findings.cells import CellKey, Interval, Verdict
from fabricbench.model import Layer, Metric, Model, Pattern
from fabricbench.quantity import count
from fabricbench.statistics.candidates import Touch


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

    `time` is from a start that the clocks agree on to the end on the slowest rank. `algorithm_bandwidth` is the operation's bytes
    over it, `bus_bandwidth` that times `bus_factor`: what the busiest link has to carry in each direction. `back_to_back` is the
    time of a call in a plain loop, where early ranks begin the next call early (as IMB), `barrier_start` that after a barrier
    before each call, averaged over ranks (as OSU); None where no launch tells. `overlap` is the share of a nonblocking call that
    hides behind computing. A rank that was late by more than `start_tolerance_ns` missed the agreed start: `missed_share` of the
    samples, which do not count. Clocks of any two ranks were known to `clock_error_ns`. Both are the greatest over launches, None
    where no launch tells.
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
    barrier_start: Interval | None = None
    start_tolerance_ns: float | None = None
    clock_error_ns: float | None = None


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

    `group` are the hosts of the first one's group, where that is all it is slow with. `is_confirmed` once a second run has found it
    too; until then it is a suspect.
    """

    touch: Touch
    hosts: tuple[str, ...]
    slower: float
    slower_low: float
    slower_high: float
    is_confirmed: bool
    group: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The cause as a sentence without its figures; a node that may be healthy and far away is not called slow alone."""
        first = self.hosts[0]
        last = self.hosts[-1]
        return {
            Touch.MEMBER: f"{first} is slow with all others, or alone behind another switch",
            Touch.NEAR: f"{first} is slow with all others of its group, or alone behind another switch",
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
            Touch.NEAR: first in (source, destination) and {source, destination} <= {*self.group},
            Touch.SENDING: first == source,
            Touch.RECEIVING: first == destination,
            Touch.PAIR: {first, last} == {source, destination},
            Touch.DIRECTION: (first, last) == (source, destination),
        }[self.touch]


class UnexplainedPair(Model):
    """A pair that is slower than the others by more than the margin and their scatter explain, and belongs to no cause.

    `value` is its median over launches in the map's unit, `slower` the share by which it is slower than the level of its groups.
    """

    source: str
    destination: str
    value: float
    slower: float


class FailedPair(Model):
    """A pair that could not be measured in some launches, and why, in the words of the last of them."""

    source: str
    destination: str
    launches: int
    reason: str


class MapVerdict(StrEnum):
    """What a map comes to: every reader is told one of these, and the last two never as "nobody is slow"."""

    NOT_JUDGED = "too few hosts"
    NOBODY = "nobody is slow"
    NAMED = "named"
    UNNAMED = "cannot be named yet"


class FoundFrom(Model):
    """From what slowness on one cause of a kind would have been named in two of three maps; nobody was."""

    touch: Touch
    slower: float

    @property
    def words(self) -> str:
        """It in words: `a node from 8 % on`."""
        kinds = {Touch.MEMBER: "one node", Touch.PAIR: "one pair", Touch.DIRECTION: "one direction of a pair"}
        return f"{kinds[self.touch]} from {slowness_words(self.slower)} on"


class NetworkMap(Model):
    """One matrix of one fabric: `matrix[i][j]` is the median over launches from host i to host j, None where there is none.

    Round trips (ns) are the same both ways; throughputs (bit/s) are of each direction. `schedule` says whether pairs were measured
    alone or in rounds of disjoint ones.

    `groups` are hosts whose pairs across groups are at another level than those within (behind different switches, say): two or
    more, or none. `crossing` is the share by which a pair across is typically slower than one within, below 0 where faster. `apart`
    are hosts that are together behind another switch, or each slow with all others: nobody among them is judged, and `crossing` is
    by how much their pairs are slower than the others'. `unexplained` are pairs that no cause explains, the worst first; where a
    second run had its say, in both. `failed` are pairs that could not be measured in some launches of this run: nothing is known of
    them there.
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
    """False where cause and effect cannot be told apart: fewer than four hosts, or each host in one pair alone."""
    is_measured_again: bool = False
    """Whether a second run had its say: then `slow` is what it confirms."""
    groups: tuple[tuple[str, ...], ...] = ()
    crossing: float | None = None
    apart: tuple[str, ...] = ()
    unexplained: tuple[UnexplainedPair, ...] = ()
    failed: tuple[FailedPair, ...] = ()
    found_from: tuple[FoundFrom, ...] = ()
    """What would have been named, where nothing is told."""

    @property
    def nobody_words(self) -> str:
        """What would have been named, in a sentence; nothing where anything is told."""
        if not self.found_from:
            return ""
        told = _listed(tuple(one.words for one in self.found_from))
        return f"Named in two of three such maps would have been {told}."

    @property
    def unjudged_words(self) -> str:
        """Why nobody is judged, in a sentence; nothing where somebody may be."""
        if self.is_judged:
            return ""
        few = "Each host is in one pair alone" if self.schedule == "halves" else "Fewer than four hosts"
        return f"{few}: causes cannot be told apart, so nobody is judged."

    @property
    def failed_words(self) -> tuple[str, ...]:
        """A sentence for each of the first pairs that could not be measured."""
        told = [
            f"{pair.source} with {pair.destination} could not be measured in {pair.launches} of {count(self.launches, 'launch')}: "
            f"{pair.reason}"
            for pair in self.failed[:WORST_TOLD]
        ]
        more = len(self.failed) - len(told)
        return (*told, *([f"nor could {more} more pairs"] if more else []))

    @property
    def verdict(self) -> MapVerdict:
        """What the map comes to."""
        if not self.is_judged:
            return MapVerdict.NOT_JUDGED
        if self.slow:
            return MapVerdict.NAMED
        return MapVerdict.UNNAMED if self.unexplained or self.apart else MapVerdict.NOBODY

    @property
    def needs_second_run(self) -> bool:
        """Whether a second measurement of the pairs would tell more: somebody is named, or something cannot be."""
        return self.verdict in {MapVerdict.NAMED, MapVerdict.UNNAMED}

    @property
    def unnamed_words(self) -> str:
        """What differs and could not be named, in a sentence; nothing where all is explained."""
        told = []
        if self.apart:
            told.append(self.apart_words)
        if self.unexplained:
            told.append(self._unexplained_words())
        return f"Cannot be named yet: {'; '.join(told)}. Measure again, with more blocks." if told else ""

    @property
    def apart_words(self) -> str:
        """Who is behind another switch or slow, in a sentence."""
        by = "" if self.crossing is None else f", {slowness_words(self.crossing)} slower than the pairs of the others"
        return f"{_listed(self.apart)} are together behind another switch, or each slow with all others{by}"

    def pair_words(self, pair: UnexplainedPair) -> str:
        """Return `n1 to n4`, or `n1 with n4` where directions are not told apart."""
        return f"{pair.source} {'with' if self.metric.is_lower_better else 'to'} {pair.destination}"

    def _unexplained_words(self) -> str:
        count = len(self.unexplained)
        extremes = dict.fromkeys(slowness_words(one.slower) for one in (self.unexplained[-1], self.unexplained[0]))
        pairs = "1 pair is" if count == 1 else f"{count} pairs are"
        worst = ", ".join(
            f"{self.pair_words(one)} ({slowness_words(one.slower)})" for one in self.unexplained[:WORST_TOLD]
        )
        return (
            f"{pairs} {' to '.join(extremes)} slower than the others, which no single node, pair or direction explains "
            f"({'worst: ' if count > WORST_TOLD else ''}{worst})"
        )

    @property
    def groups_words(self) -> str:
        """The groups of hosts, in a sentence without its capital and its stop; nothing where there are none."""
        if not self.groups or self.crossing is None:
            return ""
        groups = " | ".join(", ".join(group) for group in self.groups)
        by = f"{slowness_words(abs(self.crossing))} {'slower' if self.crossing >= 0 else 'faster'}"
        return f"by their pairs the nodes are in {len(self.groups)} groups ({groups}); pairs across are {by} than pairs within"


WORST_TOLD = 4
"""Unexplained pairs that a sentence lists; the rest are in tables."""

FACTOR_FROM = 0.5
"""From half the rate on slowness reads as `4.6 times`."""


def slowness_words(slower: float) -> str:
    """Return `12 %` or `4.6 times`: 80 % slower is a fifth of the rate, 5 times the time."""
    return f"{100 * slower:.0f} %" if slower < FACTOR_FROM else f"{1 / (1 - slower):.1f} times"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
