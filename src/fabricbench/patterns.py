"""The table of patterns and MPI operations, for both languages: an entry each, with all that is known of it before it runs.

The table is `Pattern`; what its entries are made of is `pattern_facts.py`. Python decides what is measured and checks it,
so the table is Python's. C++ gets it as generated code, committed so that a build runs no generator: `make docs` writes
`native/core/pattern_table.inc` (names, facts, parameters with their defaults and ranges) and the lists of types in `native/pattern`
and `native/mpi_operation` (`record/native_table.py`), and a test holds them to this file. Nothing is written twice.

A new pattern is a line here, in its family, and a native header of its own with a type of its name (`MessageRate` for
`message-rate`): `native/pattern/NAME.hpp` or, of an operation, `native/mpi_operation/NAME.hpp`. CONTRIBUTING.md shows one of each.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from fabricbench.pattern_facts import (
    ACCESSES,
    ANSWER,
    FLOWS,
    INTERVALS,
    KERNEL,
    LAYER_PARAMETERS,
    MEMORY_THREADS,
    MODE,
    NETWORK,
    ONLY_MPI,
    RELIABLE,  # noqa: F401 - for lines that are added
    ROUND_TRIPS,
    SCHEDULE,
    STORES,
    SYNCHRONISATION,
    UNEXPECTED,
    WINDOW,
    WITH_MEMORY,
    Family,
    Layer,
    Load,
    Metric,
    Parameter,
    Parameters,
    PatternFacts,
)

_FACTS: dict[str, PatternFacts] = {}


def _listed(facts: PatternFacts) -> str:
    if facts.name in _FACTS:
        raise ValueError(f"the table has two entries for {facts.name}")
    _FACTS[facts.name] = facts
    return facts.name


def _pair(name: str, metric: Metric, summary: str, **more: Any) -> str:
    given: dict[str, Any] = {"layers": NETWORK, "most_ranks": 2} | more
    return _listed(PatternFacts(name, Family.PAIR, metric, summary, **given))


def _lockstep(name: str, summary: str, **more: Any) -> str:
    given: dict[str, Any] = {"layers": NETWORK, "smallest_message_bytes": 0} | more
    return _listed(PatternFacts(name, Family.LOCKSTEP, Metric.OPERATION_TIME, summary, **given))


def _flood(name: str, summary: str, metric: Metric = Metric.THROUGHPUT, **more: Any) -> str:
    given: dict[str, Any] = {"layers": NETWORK, "parameters": {"flows": FLOWS}} | more
    return _listed(PatternFacts(name, Family.FLOOD, metric, summary, **given))


def _matrix(name: str, metric: Metric, summary: str, **more: Any) -> str:
    given: dict[str, Any] = {"layers": NETWORK, "parameters": {"schedule": SCHEDULE}} | more
    return _listed(PatternFacts(name, Family.MATRIX, metric, summary, **given))


def _operation(name: str, summary: str, **more: Any) -> str:
    given: dict[str, Any] = {"layers": ONLY_MPI, "parameters": {"mode": MODE}} | more
    return _listed(PatternFacts(name, Family.OPERATION, Metric.OPERATION_TIME, summary, **given))


def _sum(name: str, summary: str, **more: Any) -> str:
    return _operation(name, summary, smallest_message_bytes=8, header="mpi_operation/reductions.hpp", **more)


def _one_sided(name: str, summary: str, **more: Any) -> str:
    given: dict[str, Any] = {
        "most_ranks": 2,
        "parameters": {"sync": SYNCHRONISATION},
        "header": "mpi_operation/one_sided.hpp",
    } | more
    return _operation(name, summary, **given)


def _workload(name: str, summary: str, **more: Any) -> str:
    given: dict[str, Any] = {
        "layers": ONLY_MPI,
        "least_ranks": 1,
        "has_size": False,
        "smallest_message_bytes": 0,
    } | more
    return _listed(PatternFacts(name, Family.WORKLOAD, Metric.OPERATION_TIME, summary, **given))


_GROUPS = "pattern/groups.hpp"
_ROOTED = "mpi_operation/rooted.hpp"
_EXCHANGED = "mpi_operation/exchanged.hpp"
_NEIGHBOURS = "mpi_operation/neighbourhood.hpp"
_MESSAGES = "mpi_operation/operation.hpp"


class Pattern(StrEnum):
    """Who talks to whom and when; an MPI operation is one too. `patterns` tells what each measures."""

    # Of two ranks.
    PINGPONG = _pair(
        "pingpong",
        Metric.ROUND_TRIP_TIME,
        "a message there and one back: the round trip time of each",
        layers=WITH_MEMORY,
        least_ranks=1,
        smallest_message_bytes=0,
        parameters={"answer": ANSWER, "round_trips": ROUND_TRIPS, "unexpected": UNEXPECTED},
        title="ping-pong",
    )
    ONEWAY = _pair(
        "oneway",
        Metric.ROUND_TRIP_TIME,
        "a ping-pong stamped on both sides: the one-way latency of each direction, with the bound of the clocks",
        stamps_both_ends=True,
        title="one-way test's round trip",
        sample="one round trip; each direction's one-way times are channels, with the bound of the clocks in launch.json",
    )
    PACED = _pair(
        "paced",
        Metric.ROUND_TRIP_TIME,
        "a ping-pong at a set interval: what interrupt coalescing and delayed sending add when the line is idle in between",
        parameters={
            "interval_us": Parameter(default=1000, most=1_000_000, summary="from one message to the next"),
            "intervals": INTERVALS,
        },
        title="paced ping-pong",
    )
    BURST = _pair(
        "burst",
        Metric.OPERATION_TIME,
        "k messages at once, one answer: what pipelining hides of a switch's latency",
        parameters={"messages": Parameter(default=8, least=1, most=4096, summary="messages in a burst")},
        messages_there="messages",
        messages_back=0,
        sample="one burst, from the first message to the answer",
    )
    STREAM = _pair(
        "stream",
        Metric.THROUGHPUT,
        "messages one way without a pause: the throughput at the receiver",
        layers=WITH_MEMORY,
        least_ranks=1,
        is_stream=True,
        messages_back=0,
        parameters={"kernel": KERNEL, "stores": STORES, "threads": MEMORY_THREADS, "window": WINDOW},
        sample="one window of messages, from its first to its last arrival",
    )

    REGISTRATION = _pair(
        "registration",
        Metric.OPERATION_TIME,
        "memory is registered with the adapter and given back: what that costs who does not keep it",
        layers=(Layer.RDMA,),
        messages_there=0,
        messages_back=0,
        title="memory registration",
        sample="as many registrations of the first rank's, each given back, as the clock needs",
    )

    # Of many ranks that take turns with their neighbours.
    PINGPING = _lockstep(
        "pingping",
        "two ranks send to each other at once: the time until both have received",
        most_ranks=2,
        title="ping-ping",
        header=_GROUPS,
    )
    SENDRECV = _lockstep(
        "sendrecv",
        "a periodic chain: each rank sends to its right and receives from its left",
        title="send-receive",
        header=_GROUPS,
    )
    EXCHANGE = _lockstep(
        "exchange", "each rank exchanges with its left and its right neighbour on a ring", header=_GROUPS
    )
    HALO = _lockstep(
        "halo",
        "a periodic grid of ranks exchanges faces with its neighbours, as stencil codes do",
        parameters={"dimensions": Parameter(default=2, least=2, most=3, summary="of the grid")},
        header=_GROUPS,
    )

    # Of many ranks that fill all channels at once.
    BISTREAM = _flood(
        "bistream",
        "two ranks stream to each other at once",
        most_ranks=2,
        title="stream both ways",
        channels="2 x flows",
        load=Load.CHANNEL,
        header=_GROUPS,
    )
    STAR = _flood(
        "star",
        "the first rank with all others at once, in and out",
        channels="2 (n - 1) x flows",
        load=Load.CHANNEL_OF_EACH,
        header=_GROUPS,
    )
    RING = _flood(
        "ring",
        "each rank streams to the next: every link is full in both directions",
        channels="n x flows",
        load=Load.CHANNEL,
        header=_GROUPS,
    )
    CHAOS = _flood(
        "chaos",
        "everyone with everyone at once: the complete graph",
        channels="n (n - 1) x flows",
        load=Load.CHANNEL_OF_EACH,
        header=_GROUPS,
    )
    INCAST = _flood(
        "incast",
        "all others to the first rank: what its link takes and what the switch drops",
        channels="(n - 1) x flows",
        load=Load.CHANNEL_OF_EACH,
        header=_GROUPS,
    )
    OUTCAST = _flood(
        "outcast",
        "the first rank to all others at once",
        channels="(n - 1) x flows",
        load=Load.CHANNEL_OF_EACH,
        header=_GROUPS,
    )
    BISECTION = _flood(
        "bisection",
        "random halves of the ranks stream to each other: the effective bisection bandwidth (Hoefler et al. 2008)",
        needs_even_ranks=True,
        parameters={
            "matchings": Parameter(default=8, most=1000, summary="random bisections, one after the other"),
            "seed": Parameter(default=1, least=0, most=2**31 - 1, summary="of the bisections"),
        },
        channels="floor(n / 2)",
        load=Load.CHANNEL,
        header=_GROUPS,
    )
    MESSAGE_RATE = _flood(
        "message-rate",
        "pairs of ranks, small messages one way: messages per second",
        metric=Metric.MESSAGE_RATE,
        needs_even_ranks=True,
        title="message rate",
        channels="floor(n / 2) x flows",
        load=Load.CHANNEL,
        header=_GROUPS,
    )

    # Every pair of ranks in its turn.
    PAIRS = _matrix(
        "pairs",
        Metric.ROUND_TRIP_TIME,
        "a ping-pong of every pair of ranks: the matrix of latencies",
        parameters={"schedule": SCHEDULE, "answer": ANSWER},
    )
    PAIRS_STREAM = _matrix(
        "pairs-stream",
        Metric.THROUGHPUT,
        "a stream each way of every pair of ranks: the matrix of bandwidths",
        title="pairs stream",
        sample="one window of one pair and direction; those of all together, and each direction by itself as a channel",
    )

    # Operations of MPI.
    BARRIER = _operation("barrier", "MPI_Barrier", has_size=False, smallest_message_bytes=0, header=_ROOTED)
    BCAST = _operation("bcast", "MPI_Bcast of a buffer from rank 0", load=Load.MESSAGE, header=_ROOTED)
    GATHER = _operation(
        "gather", "MPI_Gather of a block from each rank at rank 0", load=Load.BLOCK_OF_EACH, header=_ROOTED
    )
    GATHERV = _operation("gatherv", "MPI_Gatherv, blocks of equal size", load=Load.BLOCK_OF_EACH, header=_ROOTED)
    SCATTER = _operation(
        "scatter", "MPI_Scatter of a block to each rank from rank 0", load=Load.BLOCK_OF_EACH, header=_ROOTED
    )
    SCATTERV = _operation("scatterv", "MPI_Scatterv, blocks of equal size", load=Load.BLOCK_OF_EACH, header=_ROOTED)
    REDUCE = _sum("reduce", "MPI_Reduce, sum of doubles at rank 0", load=Load.MESSAGE)
    ALLREDUCE = _sum("allreduce", "MPI_Allreduce, sum of doubles", load=Load.MESSAGE_TWICE)
    REDUCE_SCATTER = _sum(
        "reduce-scatter", "MPI_Reduce_scatter, sum of doubles, a block to each", load=Load.BLOCK_OF_EACH
    )
    REDUCE_SCATTER_BLOCK = _sum(
        "reduce-scatter-block", "MPI_Reduce_scatter_block, sum of doubles, a block to each", load=Load.BLOCK_OF_EACH
    )
    ALLGATHER = _operation(
        "allgather", "MPI_Allgather of a block from each rank", load=Load.BLOCK_OF_EACH, header=_EXCHANGED
    )
    ALLGATHERV = _operation(
        "allgatherv", "MPI_Allgatherv, blocks of equal size", load=Load.BLOCK_OF_EACH, header=_EXCHANGED
    )
    ALLTOALL = _operation(
        "alltoall", "MPI_Alltoall of a block from each rank to each", load=Load.BLOCK_OF_EACH, header=_EXCHANGED
    )
    ALLTOALLV = _operation(
        "alltoallv", "MPI_Alltoallv, blocks of equal size", load=Load.BLOCK_OF_EACH, header=_EXCHANGED
    )
    SCAN = _sum("scan", "MPI_Scan, sum of doubles")
    EXSCAN = _sum("exscan", "MPI_Exscan, sum of doubles")
    NEIGHBOR_ALLGATHER = _operation(
        "neighbor-allgather", "MPI_Neighbor_allgather on a periodic 2-D grid", header=_NEIGHBOURS
    )
    NEIGHBOR_ALLTOALL = _operation(
        "neighbor-alltoall", "MPI_Neighbor_alltoall on a periodic 2-D grid", header=_NEIGHBOURS
    )
    PUT = _one_sided(
        "put", "MPI_Put into a window of the second rank", parameters={"sync": SYNCHRONISATION, "accesses": ACCESSES}
    )
    GET = _one_sided(
        "get", "MPI_Get from a window of the second rank", parameters={"sync": SYNCHRONISATION, "accesses": ACCESSES}
    )
    ACCUMULATE = _one_sided("accumulate", "MPI_Accumulate, sum of doubles", smallest_message_bytes=8)
    FETCH_AND_OP = _one_sided(
        "fetch-and-op", "MPI_Fetch_and_op on one 64-bit integer", has_size=False, smallest_message_bytes=8
    )
    COMPARE_AND_SWAP = _one_sided(
        "compare-and-swap", "MPI_Compare_and_swap on one 64-bit integer", has_size=False, smallest_message_bytes=8
    )
    PARTITIONED = _operation(
        "partitioned",
        "MPI_Psend_init and MPI_Precv_init: a message in partitions, there and back",
        most_ranks=2,
        parameters={"partitions": Parameter(default=8, most=1024, summary="parts of a message")},
        header=_MESSAGES,
    )
    THREADED = _operation(
        "threaded",
        "several threads of two ranks send to each other, a message there and one back in each",
        most_ranks=2,
        parameters={"threads": Parameter(default=2, most=64, summary="of each rank")},
        header=_MESSAGES,
    )

    # Programs of their own.
    NPB = _workload(
        "npb",
        "a kernel of the NAS Parallel Benchmarks, in [[npb]] of a campaign: the seconds of its timed part",
        parameters={
            "benchmark": Parameter(
                default="EP", words=("EP", "MG", "CG", "FT", "IS", "LU", "SP", "BT"), summary="which of the eight"
            ),
            "class": Parameter(default="S", words=("S", "W", "A", "B", "C", "D"), summary="the size of the problem"),
            "program": Parameter(default="own", summary="fabricbench-npb, or where an official NPB lies"),
        },
    )
    WORKLOAD = _workload(
        "workload",
        "any MPI program, in [[workload]] of a campaign: its own figure of merit, a time or a rate",
    )


PATTERNS: dict[Pattern, PatternFacts] = {pattern: _FACTS[pattern] for pattern in Pattern}
"""What is known of each pattern, in the order of the table."""


def metric_of(pattern: Pattern) -> Metric:
    """Return what a pattern measures."""
    return PATTERNS[pattern].metric


def title_of(pattern: Pattern) -> str:
    """Return what reports call a pattern."""
    return PATTERNS[pattern].title or pattern.value


def bus_factor(pattern: Pattern, ranks: int) -> float | None:
    """Return what the algorithm bandwidth of a collective is multiplied by to be its bus bandwidth; None where none is usual.

    The factors of the NCCL tests (their `PERFORMANCE.md`): the share of the operation's bytes that the busiest link has to carry in
    one direction, whatever the algorithm.
    """
    match PATTERNS[pattern].load:
        case Load.MESSAGE:
            return 1.0
        case Load.MESSAGE_TWICE:
            return 2.0 * (ranks - 1) / ranks
        case Load.BLOCK_OF_EACH:
            return (ranks - 1) / ranks
    return None


def why_impossible(layer: Layer, pattern: Pattern, parameters: Parameters) -> str | None:
    """Return why a layer cannot carry a pattern with such parameters, without the pattern's name; None if it can."""
    facts = PATTERNS[pattern]
    if layer not in facts.layers:
        if facts.family is Family.OPERATION:
            return "only layer mpi has operations of MPI"
        if facts.family is Family.WORKLOAD:
            return "only layer mpi runs MPI programs"
        if layer is Layer.MEMORY:
            return f"{layer} has one rank alone: there is nobody to exchange with"
        return f"only for layer {', '.join(facts.layers)}"
    for name in parameters.keys() & facts.parameters.keys():
        if not facts.parameters[name].is_of(layer):
            return f"{name} is what {facts.parameters[name].layers_text} can do"
    owners = {name: [other for other, known in LAYER_PARAMETERS.items() if name in known] for name in parameters}
    foreign = (
        f"{name} is a parameter of layer {', '.join(of)}" for name, of in owners.items() if of and layer not in of
    )
    return next(foreign, None)
