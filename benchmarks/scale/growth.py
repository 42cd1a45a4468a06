"""How each pattern grows with the number of ranks: paths, agreements, messages, files, memory. Formulas from the code, pure.

Each formula names where it comes from. `links_of` and `channels_of` are in native/pattern/channels.cpp, agreements in
native/probe/agreement.cpp and cell_runner.cpp, orders and reports in native/probe/launch.cpp and matrix.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from benchmarks.scale.schedule import check_tree


@dataclass(frozen=True)
class Constants:
    """What was measured on one machine."""

    hop_s: float
    """A message of the control plane between two ranks that each have a processor, the waking of its receiver included."""
    order_s: float
    """An order to one more rank and its report, from rank 0's view."""
    path_kernel_bytes: float
    """One end of an idle TCP connection."""
    path_full_bytes: float
    """One end of a TCP connection with full buffers, at the most."""
    path_rank_bytes: float
    """What a rank itself holds for one path of a flood over TCP."""
    channel_report_bytes: int


class Kind(Enum):
    """Who takes part: two ranks, all of them, each two in turn, or the library's operation."""

    PAIR = "pair"
    GROUP = "group"
    MATRIX = "matrix"
    OPERATION = "operation"


@dataclass(frozen=True)
class Growth:
    """One pattern, as functions of the number of ranks.

    `paths` of the busiest rank, at once or kept for later cells, and `all_paths` that all open together; `channels` in use at once;
    `turns` one after another, 1 but for matrices and matchings; `lines` in the record beside the samples.
    """

    name: str
    kind: Kind
    paths: Callable[[int], int]
    all_paths: Callable[[int], int]
    channels: Callable[[int], int]
    traffic: str
    turns: Callable[[int], int] = lambda _: 1
    lines: Callable[[int], int] = lambda _: 0

    def team(self, ranks: int) -> int:
        """Return how many ranks agree with each other."""
        return 2 if self.kind is Kind.PAIR else ranks

    @property
    def agreements(self) -> int:
        """How many agreements a cell has."""
        if self.kind is Kind.GROUP:
            return GROUP + ROUND * self.turns(2)
        return {Kind.PAIR: 1 + ROUND, Kind.MATRIX: 3, Kind.OPERATION: 3}[self.kind]


# run_or_fail and the group's parameters: 2; endpoints_for 3, verification 1, the run 1, in each round.
GROUP = 2
ROUND = 5
TEXTS_OF_A_PATH = 6
"""Three each way: is it open still, its address, its next number."""
MATCHINGS = 8
"""Of a bisection, unless told otherwise."""
LEAST_PAIR_S = 5e-3
"""What a pair gets at least (probe_of_pair)."""


def _pairs(ranks: int) -> int:
    return ranks * (ranks - 1) // 2


def _rounds(ranks: int) -> int:
    return ranks - 1 + ranks % 2


GROWTHS = (
    Growth(
        "pingpong, oneway, paced, burst, stream",
        Kind.PAIR,
        paths=lambda _: 1,
        all_paths=lambda _: 1,
        channels=lambda _: 1,
        traffic="two ranks, whatever the number of others",
    ),
    Growth(
        "sendrecv, ring",
        Kind.GROUP,
        paths=lambda _: 2,
        all_paths=lambda n: n,
        channels=lambda n: n,
        traffic="a message a rank and turn; as a flood n times the rate, each link full both ways",
        lines=lambda n: n,
    ),
    Growth(
        "exchange",
        Kind.GROUP,
        paths=lambda _: 4,
        all_paths=lambda n: 2 * n,
        channels=lambda n: 2 * n,
        traffic="2 messages a rank and turn",
    ),
    Growth(
        "halo, 3-D",
        Kind.GROUP,
        paths=lambda _: 12,
        all_paths=lambda n: 6 * n,
        channels=lambda n: 6 * n,
        traffic="6 messages a rank and turn",
    ),
    Growth(
        "star",
        Kind.GROUP,
        paths=lambda n: n - 1,
        all_paths=lambda n: n - 1,
        channels=lambda n: 2 * (n - 1),
        traffic="the first rank's link full both ways: twice the rate, whatever n",
        lines=lambda n: 2 * (n - 1),
    ),
    Growth(
        "incast, outcast",
        Kind.GROUP,
        paths=lambda n: n - 1,
        all_paths=lambda n: n - 1,
        channels=lambda n: n - 1,
        traffic="the first rank's link full one way: the rate, whatever n",
        lines=lambda n: n - 1,
    ),
    Growth(
        "chaos",
        Kind.GROUP,
        paths=lambda n: n - 1,
        all_paths=_pairs,
        channels=lambda n: n * (n - 1),
        traffic="n times the rate, or what the network's core lets through",
        lines=lambda n: n * (n - 1),
    ),
    Growth(
        "message-rate",
        Kind.GROUP,
        paths=lambda _: 1,
        all_paths=lambda n: n // 2,
        channels=lambda n: n // 2,
        traffic="n / 2 senders of small messages",
        lines=lambda n: n // 2,
    ),
    Growth(
        f"bisection, {MATCHINGS} matchings",
        Kind.GROUP,
        paths=lambda _: MATCHINGS,
        all_paths=lambda n: MATCHINGS * (n // 2),
        channels=lambda n: n // 2,
        traffic="n / 2 times the rate, or what the network's core lets through",
        turns=lambda _: MATCHINGS,
        lines=lambda n: MATCHINGS * (n // 2),
    ),
    Growth(
        "pairs, alone",
        Kind.MATRIX,
        paths=lambda _: 1,
        all_paths=_pairs,
        channels=lambda _: 1,
        traffic="one pair at a time",
        turns=_pairs,
        lines=_pairs,
    ),
    Growth(
        "pairs, in rounds",
        Kind.MATRIX,
        paths=lambda _: 1,
        all_paths=_pairs,
        channels=lambda n: n // 2,
        traffic="n / 2 pairs at a time",
        turns=_rounds,
        lines=_pairs,
    ),
    Growth(
        "MPI operations",
        Kind.OPERATION,
        paths=lambda _: 0,
        all_paths=lambda _: 0,
        channels=lambda _: 1,
        traffic="the library's own algorithm, over the library's own connections",
    ),
)


def control_messages(growth: Growth, ranks: int) -> int:
    """Return the control messages of one cell over all ranks: orders, reports, agreements, and what pairs tell each other."""
    others = growth.team(ranks) - 1
    messages = 2 * others + growth.agreements * 2 * others + TEXTS_OF_A_PATH * growth.all_paths(ranks)
    if growth.kind is Kind.MATRIX:
        # The first rank tells both ends of a pair and hears from both, unless it is one; the two agree.
        messages += _pairs(ranks) * (2 * 2 + ROUND * 2) - 2 * others
    return messages


def overhead_s(growth: Growth, ranks: int, constants: Constants) -> float:
    """Return what one cell takes beside its measuring: orders and reports, and every agreement up and down the tree."""
    team = growth.team(ranks)
    seconds = (team - 1) * constants.order_s + growth.agreements * 2 * check_tree(team).depth * constants.hop_s
    if growth.kind is not Kind.MATRIX:
        return seconds
    of_pair = (2 * ROUND + TEXTS_OF_A_PATH / 2) * constants.hop_s
    told = 2 if growth.channels(ranks) == 1 else ranks
    return seconds + growth.turns(ranks) * (of_pair + told * constants.order_s)


def least_s(growth: Growth, ranks: int, constants: Constants) -> float:
    """Return the same and, for a matrix, the least time that its pairs get; other cells take what the campaign gives them."""
    measuring = growth.turns(ranks) * LEAST_PAIR_S if growth.kind is Kind.MATRIX else 0.0
    return measuring + overhead_s(growth, ranks, constants)


def rank_bytes(growth: Growth, ranks: int, constants: Constants) -> float:
    """Return the memory of the busiest rank's paths over TCP, its idle ends in the kernel included."""
    return growth.paths(ranks) * (constants.path_kernel_bytes + constants.path_rank_bytes)


def full_bytes(growth: Growth, ranks: int, constants: Constants) -> float:
    """Return what the kernel may hold on the busiest rank's host when all its TCP buffers are full."""
    return growth.paths(ranks) * constants.path_full_bytes


def record_bytes(growth: Growth, ranks: int, samples: int, constants: Constants) -> float:
    """Return what rank 0 holds at most before it writes: what is joined, one rank's samples, one rank's channels at a time.

    A matrix has nothing to be joined: its samples are written rank by rank with the channels that they belong to.
    """
    numbers = 2 * 8 * samples
    channel = constants.channel_report_bytes
    if growth.kind is Kind.MATRIX:  # in the channel, and once more among the rank's samples
        return (ranks - 1) * (channel + 2 * numbers)
    return 2 * numbers + growth.paths(ranks) * (channel + 2 * 8)


AT_FIRST_S = 0.45
"""Between the ten points of a first synchronisation where ranks do not share a clock (native/core/clock_sync.cpp)."""

EXCHANGES_AT_FIRST, EXCHANGES_AT_END = 120, 60
"""Twelve for each point, ten points at first and five after the cells."""


@dataclass(frozen=True)
class Launch:
    """What a launch does besides its cells and what its MPI does: messages that rank 0 sends or takes one after the other."""

    name: str
    has_clocks: bool

    def messages(self, ranks: int) -> int:
        """Return rank 0's messages: the plan out, who each is in, the end out; of clocks see `GlobalClock` and `order_check`.

        These are the identity out, whether it is shared in and out, whether it holds in and out, the models in; after the cells the
        order out and what each found in.
        """
        return (3 + 8 * self.has_clocks) * (ranks - 1)

    def clock_s(self, ranks: int, constants: Constants) -> float:
        """Return what clocks take that are not shared: the pauses, and in each round its exchanges, each two messages."""
        rounds = (ranks - 1).bit_length()
        exchanges = rounds * (EXCHANGES_AT_FIRST + EXCHANGES_AT_END)
        return self.has_clocks * (AT_FIRST_S + 2 * exchanges * constants.hop_s)

    def seconds(self, ranks: int, constants: Constants) -> float:
        """Return the time of all of it; an order and its report are two messages at rank 0."""
        return self.messages(ranks) * constants.order_s / 2 + self.clock_s(ranks, constants)


LAUNCHES = (
    Launch("without clocks (ping-pong)", has_clocks=False),
    Launch("with clocks (operations, groups)", has_clocks=True),
)
