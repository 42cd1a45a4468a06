"""Every pattern and MPI operation: what it measures, on which layers, with how many ranks and which parameters. One entry each.

The measurer has the same names (`native/core/vocabulary.hpp`); `fabricbench list` prints this.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from fabricbench.model import Layer, Metric, Model, Pattern

Parameters = Mapping[str, str | int | float]


class Family(StrEnum):
    """How a pattern is measured.

    pair: one rank with another, the first (the receiver of a stream) keeps the time. lockstep: every rank sends to and receives
    from its neighbours, again and again; a sample is one turn, from when the last rank was done with the one before until the last
    is done with it. flood: all channels carry as much as they can for a while; a sample is what arrived everywhere in one window.
    matrix: every pair of ranks in its turn. operation: an MPI call, from a start that clocks agree on to the end of the slowest
    rank. workload: a program of its own, started for itself; a sample is what it says of itself, mostly a time.
    """

    PAIR = "pair"
    LOCKSTEP = "lockstep"
    FLOOD = "flood"
    MATRIX = "matrix"
    OPERATION = "operation"
    WORKLOAD = "workload"


class Parameter(Model):
    """What a pattern may be told: a number from `least` to `most`, or one of `words`. The first word or `default` is taken else."""

    default: str | int | float
    summary: str
    words: tuple[str, ...] = ()
    least: float = 1
    most: float = 1_000_000


class PatternFacts(Model):
    """One pattern. `least_ranks` take part at least; `most_ranks` None takes all ranks there are."""

    pattern: Pattern
    family: Family
    metric: Metric
    summary: str
    layers: tuple[Layer, ...]
    least_ranks: int = 2
    most_ranks: int | None = None
    parameters: dict[str, Parameter] = {}
    smallest_message_bytes: int = 1
    has_size: bool = True
    """Whether a message size means anything (a barrier has none: it is measured once, at 0 bytes)."""


NETWORK = (Layer.FRAME, Layer.IP, Layer.UDP, Layer.TCP, Layer.MPI)
WITH_MEMORY = (Layer.MEMORY, *NETWORK)
ONLY_MPI = (Layer.MPI,)

KERNEL = Parameter(
    default="copy", words=("copy", "scale", "add", "triad"), summary="what layer memory does, as STREAM calls it"
)
FLOWS = Parameter(default=1, most=256, summary="parallel connections in each channel (layers with ports, and MPI)")
MODE = Parameter(
    default="blocking",
    words=("blocking", "nonblocking", "persistent"),
    summary="the call; nonblocking also tells how much of it hides behind computing",
)
SYNCHRONISATION = Parameter(
    default="fence", words=("fence", "lock", "flush"), summary="how an epoch of one-sided access is closed"
)


def _pair(pattern: Pattern, metric: Metric, summary: str, **more: object) -> PatternFacts:
    given = {"layers": NETWORK, "most_ranks": 2} | more
    return PatternFacts(pattern=pattern, family=Family.PAIR, metric=metric, summary=summary, **given)


def _lockstep(pattern: Pattern, summary: str, **more: object) -> PatternFacts:
    given = {"layers": NETWORK} | more
    return PatternFacts(
        pattern=pattern,
        family=Family.LOCKSTEP,
        metric=Metric.OPERATION_TIME,
        summary=summary,
        **given,
    )


def _flood(pattern: Pattern, summary: str, metric: Metric = Metric.THROUGHPUT, **more: object) -> PatternFacts:
    given = {"layers": NETWORK, "parameters": {"flows": FLOWS}} | more
    return PatternFacts(pattern=pattern, family=Family.FLOOD, metric=metric, summary=summary, **given)


def _operation(pattern: Pattern, summary: str, **more: object) -> PatternFacts:
    given = {"layers": ONLY_MPI, "parameters": {"mode": MODE}} | more
    return PatternFacts(
        pattern=pattern,
        family=Family.OPERATION,
        metric=Metric.OPERATION_TIME,
        summary=summary,
        **given,
    )


def _one_sided(pattern: Pattern, summary: str, **more: object) -> PatternFacts:
    return _operation(pattern, summary, most_ranks=2, parameters={"sync": SYNCHRONISATION}, **more)


_ALL = (
    _pair(
        Pattern.PINGPONG,
        Metric.ROUND_TRIP_TIME,
        "a message there and one back: the round trip time of each",
        layers=WITH_MEMORY,
        least_ranks=1,
        smallest_message_bytes=0,
        parameters={"kernel": KERNEL},
    ),
    _pair(
        Pattern.ONEWAY,
        Metric.ROUND_TRIP_TIME,
        "a ping-pong stamped on both sides: the one-way latency of each direction, with the bound of the clocks",
    ),
    _pair(
        Pattern.PACED,
        Metric.ROUND_TRIP_TIME,
        "a ping-pong at a set interval: what interrupt coalescing and delayed sending add when the line is idle in between",
        parameters={"interval_us": Parameter(default=1000, most=1_000_000, summary="from one message to the next")},
    ),
    _pair(
        Pattern.BURST,
        Metric.OPERATION_TIME,
        "k messages at once, one answer: what pipelining hides of a switch's latency",
        parameters={"messages": Parameter(default=8, least=1, most=4096, summary="messages in a burst")},
    ),
    _pair(
        Pattern.STREAM,
        Metric.THROUGHPUT,
        "messages one way without a pause: the throughput at the receiver",
        layers=WITH_MEMORY,
        least_ranks=1,
        parameters={"kernel": KERNEL},
    ),
    _lockstep(
        Pattern.PINGPING, "two ranks send to each other at once: the time until both have received", most_ranks=2
    ),
    _lockstep(Pattern.SENDRECV, "a periodic chain: each rank sends to its right and receives from its left"),
    _lockstep(Pattern.EXCHANGE, "each rank exchanges with its left and its right neighbour on a ring"),
    _lockstep(
        Pattern.HALO,
        "a periodic grid of ranks exchanges faces with its neighbours, as stencil codes do",
        parameters={"dimensions": Parameter(default=2, least=2, most=3, summary="of the grid")},
    ),
    _flood(Pattern.BISTREAM, "two ranks stream to each other at once", most_ranks=2),
    _flood(Pattern.STAR, "the first rank with all others at once, in and out"),
    _flood(Pattern.RING, "each rank streams to the next: every link is full in both directions"),
    _flood(Pattern.CHAOS, "everyone with everyone at once: the complete graph"),
    _flood(Pattern.INCAST, "all others to the first rank: what its link takes and what the switch drops"),
    _flood(Pattern.OUTCAST, "the first rank to all others at once"),
    _flood(
        Pattern.BISECTION,
        "random halves of the ranks stream to each other: the effective bisection bandwidth (Hoefler et al. 2008)",
        parameters={
            "matchings": Parameter(default=8, most=1000, summary="random bisections, one after the other"),
            "seed": Parameter(default=1, least=0, most=2**31 - 1, summary="of the bisections"),
        },
    ),
    _flood(
        Pattern.MESSAGE_RATE,
        "pairs of ranks, small messages one way: messages per second",
        metric=Metric.MESSAGE_RATE,
    ),
    PatternFacts(
        pattern=Pattern.PAIRS,
        family=Family.MATRIX,
        metric=Metric.ROUND_TRIP_TIME,
        summary="a ping-pong of every pair of ranks: the matrix of latencies",
        layers=NETWORK,
        parameters={
            "schedule": Parameter(
                default="alone",
                words=("alone", "rounds"),
                summary="one pair at a time, or N-1 rounds of disjoint pairs",
            )
        },
    ),
    PatternFacts(
        pattern=Pattern.PAIRS_STREAM,
        family=Family.MATRIX,
        metric=Metric.THROUGHPUT,
        summary="a stream each way of every pair of ranks: the matrix of bandwidths",
        layers=NETWORK,
        parameters={
            "schedule": Parameter(
                default="alone",
                words=("alone", "rounds"),
                summary="one pair at a time, or N-1 rounds of disjoint pairs",
            )
        },
    ),
    _operation(Pattern.BARRIER, "MPI_Barrier", has_size=False, smallest_message_bytes=0),
    _operation(Pattern.BCAST, "MPI_Bcast of a buffer from rank 0"),
    _operation(Pattern.GATHER, "MPI_Gather of a block from each rank at rank 0"),
    _operation(Pattern.GATHERV, "MPI_Gatherv, blocks of equal size"),
    _operation(Pattern.SCATTER, "MPI_Scatter of a block to each rank from rank 0"),
    _operation(Pattern.SCATTERV, "MPI_Scatterv, blocks of equal size"),
    _operation(Pattern.REDUCE, "MPI_Reduce, sum of doubles at rank 0", smallest_message_bytes=8),
    _operation(Pattern.ALLREDUCE, "MPI_Allreduce, sum of doubles", smallest_message_bytes=8),
    _operation(Pattern.REDUCE_SCATTER, "MPI_Reduce_scatter, sum of doubles, a block to each", smallest_message_bytes=8),
    _operation(
        Pattern.REDUCE_SCATTER_BLOCK,
        "MPI_Reduce_scatter_block, sum of doubles, a block to each",
        smallest_message_bytes=8,
    ),
    _operation(Pattern.ALLGATHER, "MPI_Allgather of a block from each rank"),
    _operation(Pattern.ALLGATHERV, "MPI_Allgatherv, blocks of equal size"),
    _operation(Pattern.ALLTOALL, "MPI_Alltoall of a block from each rank to each"),
    _operation(Pattern.ALLTOALLV, "MPI_Alltoallv, blocks of equal size"),
    _operation(Pattern.SCAN, "MPI_Scan, sum of doubles", smallest_message_bytes=8),
    _operation(Pattern.EXSCAN, "MPI_Exscan, sum of doubles", smallest_message_bytes=8),
    _operation(Pattern.NEIGHBOR_ALLGATHER, "MPI_Neighbor_allgather on a periodic 2-D grid"),
    _operation(Pattern.NEIGHBOR_ALLTOALL, "MPI_Neighbor_alltoall on a periodic 2-D grid"),
    _one_sided(Pattern.PUT, "MPI_Put into a window of the second rank"),
    _one_sided(Pattern.GET, "MPI_Get from a window of the second rank"),
    _one_sided(Pattern.ACCUMULATE, "MPI_Accumulate, sum of doubles", smallest_message_bytes=8),
    _one_sided(
        Pattern.FETCH_AND_OP, "MPI_Fetch_and_op on one 64-bit integer", has_size=False, smallest_message_bytes=8
    ),
    _one_sided(
        Pattern.COMPARE_AND_SWAP, "MPI_Compare_and_swap on one 64-bit integer", has_size=False, smallest_message_bytes=8
    ),
    _operation(
        Pattern.PARTITIONED,
        "MPI_Psend_init and MPI_Precv_init: a message in partitions, there and back",
        most_ranks=2,
        parameters={"partitions": Parameter(default=8, most=1024, summary="parts of a message")},
    ),
    _operation(
        Pattern.THREADED,
        "several threads of two ranks send to each other, a message there and one back in each",
        most_ranks=2,
        parameters={"threads": Parameter(default=2, most=64, summary="of each rank")},
    ),
    PatternFacts(
        pattern=Pattern.NPB,
        family=Family.WORKLOAD,
        metric=Metric.OPERATION_TIME,
        summary="a kernel of the NAS Parallel Benchmarks, in [[npb]] of a campaign: the seconds of its timed part",
        layers=ONLY_MPI,
        least_ranks=1,
        has_size=False,
        smallest_message_bytes=0,
        parameters={
            "benchmark": Parameter(
                default="EP", words=("EP", "MG", "CG", "FT", "IS", "LU", "SP", "BT"), summary="which of the eight"
            ),
            "class": Parameter(default="S", words=("S", "W", "A", "B", "C", "D"), summary="the size of the problem"),
            "program": Parameter(default="own", summary="fabricbench-npb, or where an official NPB lies"),
        },
    ),
    PatternFacts(
        pattern=Pattern.WORKLOAD,
        family=Family.WORKLOAD,
        metric=Metric.OPERATION_TIME,
        summary="any MPI program, in [[workload]] of a campaign: its own figure of merit, a time or a rate",
        layers=ONLY_MPI,
        least_ranks=1,
        has_size=False,
        smallest_message_bytes=0,
    ),
)

PATTERNS: dict[Pattern, PatternFacts] = {facts.pattern: facts for facts in _ALL}
"""What is known of each pattern."""


def metric_of(pattern: Pattern) -> Metric:
    """Return what a pattern measures."""
    return PATTERNS[pattern].metric


def why_impossible(layer: Layer, pattern: Pattern, parameters: Parameters) -> str | None:
    """Return why a layer cannot carry a pattern with such parameters; None if it can."""
    facts = PATTERNS[pattern]
    if layer not in facts.layers:
        if facts.family is Family.OPERATION:
            return f"{pattern} is an operation of MPI: only layer mpi has it"
        if facts.family is Family.WORKLOAD:
            return f"{pattern} is an MPI program: only layer mpi has it"
        return f"{layer} has one rank alone: there is nobody to exchange with"
    flows = parameters.get("flows", 1)
    if flows != 1 and layer in {Layer.FRAME, Layer.IP}:
        return f"{layer} has no ports: parallel flows between two hosts cannot be told apart"
    return None
