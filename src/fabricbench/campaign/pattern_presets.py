"""The built-in campaigns of patterns and MPI operations, as values. What a testbed cannot carry or seat is left out."""

from __future__ import annotations

from fabricbench.campaign.preset_parts import KIB, PACKET_LAYERS, STREAM_LAYERS, experiment
from fabricbench.campaign.specification import Campaign, Congestor
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS, Family

POINT_TO_POINT = tuple(
    pattern
    for pattern, facts in PATTERNS.items()
    if facts.family not in (Family.OPERATION, Family.MATRIX, Family.WORKLOAD)
)

EVERY_PATTERN = Campaign(
    name="patterns",
    description="every point-to-point pattern over every layer of the network, at a small and a large size",
    blocks=6,
    unfit="leave out",
    experiments=tuple(
        experiment(layers, pattern, sizes, 0.3)
        for pattern in POINT_TO_POINT
        for layers, sizes in ((PACKET_LAYERS, (64, 1472)), (STREAM_LAYERS, (64, 64 * KIB)))
    ),
)

SIZED_COLLECTIVES = tuple(
    pattern
    for pattern, facts in PATTERNS.items()
    if facts.family is Family.OPERATION and facts.most_ranks is None and facts.has_size
)
ONE_SIDED = (Pattern.PUT, Pattern.GET, Pattern.ACCUMULATE)
ATOMICS = (Pattern.FETCH_AND_OP, Pattern.COMPARE_AND_SWAP)
OVERLAPPED = (Pattern.BCAST, Pattern.ALLREDUCE, Pattern.ALLGATHER, Pattern.ALLTOALL)
"""Collectives that applications start early and finish late."""

COLLECTIVES = Campaign(
    name="collectives",
    description="the operations of MPI: collectives in each mode, one-sided access, partitioned and threaded messages",
    blocks=6,
    unfit="leave out",
    experiments=(
        experiment((Layer.MPI,), Pattern.BARRIER, (), 0.2, mode=("blocking", "nonblocking", "persistent")),
        *(experiment((Layer.MPI,), each, (8, KIB, 64 * KIB), 0.2) for each in SIZED_COLLECTIVES),
        *(
            experiment((Layer.MPI,), each, (KIB, 64 * KIB), 0.2, mode=("nonblocking", "persistent"))
            for each in OVERLAPPED
        ),
        *(experiment((Layer.MPI,), each, (8, 64 * KIB), 0.2, sync=("fence", "lock", "flush")) for each in ONE_SIDED),
        *(experiment((Layer.MPI,), each, (), 0.2, sync=("fence", "lock", "flush")) for each in ATOMICS),
        experiment((Layer.MPI,), Pattern.PARTITIONED, (64 * KIB,), 0.2, partitions=(1, 8)),
        experiment((Layer.MPI,), Pattern.THREADED, (8, 64 * KIB), 0.2),
    ),
)

FLOWS = (1, 4, 16, 64)
FEW_FLOWS, MANY_FLOWS = (1, 4, 16), 64
INCAST_SIZES = (KIB, 16 * KIB, 64 * KIB)

CONGESTION = Campaign(
    name="congestion",
    description="incast by size and number of flows, and what it does to a ping-pong and a stream beside it",
    blocks=6,
    unfit="leave out",
    experiments=(
        *(experiment((layer,), Pattern.INCAST, INCAST_SIZES, 0.4, flows=FEW_FLOWS) for layer in STREAM_LAYERS),
        experiment((Layer.MPI,), Pattern.INCAST, INCAST_SIZES, 0.4, flows=MANY_FLOWS),
        # TCP flows that begin together lose together and wait for timers of 200 ms and more.
        experiment((Layer.TCP,), Pattern.INCAST, INCAST_SIZES, 4.0, flows=MANY_FLOWS),
        experiment((Layer.UDP,), Pattern.INCAST, (64, 1472), 0.4, flows=FLOWS),
        *(
            experiment(
                (layer,),
                Pattern.PINGPONG,
                (64, 16 * KIB),
                0.5,
                Congestor(pattern=Pattern.INCAST, message_bytes=(KIB, 64 * KIB), parameters={"flows": FLOWS}),
            )
            for layer in STREAM_LAYERS
        ),
        experiment(
            (Layer.TCP,),
            Pattern.PINGPONG,
            (64,),
            0.5,
            Congestor(pattern=Pattern.INCAST, message_bytes=(64 * KIB,), idle=True),
        ),
        experiment(
            (Layer.TCP,),
            Pattern.STREAM,
            (64 * KIB,),
            0.5,
            Congestor(pattern=Pattern.INCAST, message_bytes=(64 * KIB,), parameters={"flows": FLOWS}),
        ),
        experiment(
            (Layer.UDP,),
            Pattern.PINGPONG,
            (64,),
            0.5,
            Congestor(pattern=Pattern.INCAST, message_bytes=(1472,)),
        ),
    ),
)

MAP = Campaign(
    name="map",
    description="every pair of nodes: latencies and bandwidths, to find slow links and slow nodes",
    blocks=8,
    unfit="leave out",
    experiments=(
        experiment((Layer.UDP, Layer.TCP, Layer.MPI), Pattern.PAIRS, (64,), 1.5),
        experiment(STREAM_LAYERS, Pattern.PAIRS_STREAM, (64 * KIB,), 3.0),
        experiment((Layer.TCP,), Pattern.PAIRS_STREAM, (64 * KIB,), 1.5, schedule="rounds"),
    ),
)

ONE_WAY = Campaign(
    name="oneway",
    description="the latency of each direction by clocks that agree, beside the round trip",
    blocks=8,
    unfit="leave out",
    experiments=tuple(
        experiment(layers, pattern, sizes, 0.5)
        for pattern in (Pattern.PINGPONG, Pattern.ONEWAY)
        for layers, sizes in ((PACKET_LAYERS, (64, 1472)), (STREAM_LAYERS, (64, 1472, 16 * KIB)))
    ),
)
