"""The built-in campaigns of patterns and MPI operations, that of `fabricbench map`, and what all built-in ones share.

Shared are sizes, groups of layers, and how well a cell of each pattern is measured. What a testbed cannot carry or seat is left
out. The map measures every pair's latency and bandwidth, as short as a sound judgement allows.
"""

from __future__ import annotations

from fabricbench.campaign.specification import NEVER_NARROW_ENOUGH, Campaign, Congestor, Experiment
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.setup import Value

KIB = 1024
MIB = 1024 * KIB

DATAGRAM_LAYERS = (Layer.IP, Layer.UDP)
STREAM_LAYERS = (Layer.TCP, Layer.MPI)
PACKET_LAYERS = (Layer.FRAME, *DATAGRAM_LAYERS)

LEAST_TIMES, LEAST_WINDOWS = 100, 20
"""A narrow interval of few samples taken within a millisecond is luck; a slow fabric ends at the time bound before."""

WARMUP_TIMES, WARMUP_WINDOWS, WARMUP_FLOOD_WINDOWS = 10, 2, 4
"""A window is long. Over the lab's gigabit-ethernet and myrinet (20 launches, 4 streams each) the first of a stream was 2 to 119 %
off at the median, because it found what the start had left in buffers, the second less than 1 %; where the first was held up,
though, its bytes come in the second (81 and 112 Mbit/s of 94). Floods of many flows lose at first: four windows are 80 ms, by
which congestion control has opened up within a room."""

FEW = 3
"""Samples that warm up where each is dear: of the pairs of a matrix, which share the time, and of messages from BULK_BYTES on."""

BULK_BYTES = 64 * KIB
"""A round trip of this takes 11 ms over 100 Mbit/s, so ten of them for warming up were longer than the cell."""

SHORT_SECONDS, WINDOWS_SECONDS = 0.05, 0.1
"""What a time, and what a rate in windows of 20 ms (five of them), needs in a launch: from there on more launches tell more than
longer cells (docs/statistics.md, "How many launches, of what length")."""

USUAL_WIDTH = 0.02
"""A longer cell ends once the interval of its median is this narrow on either side."""

LEAST_ROUND_TRIPS, SLOWEST_BIT_S = 5, 100e6
"""A cell has time for so many round trips over the slowest fabric that presets are made for."""


def experiment(
    layers: tuple[Layer, ...],
    pattern: Pattern,
    sizes: tuple[int, ...],
    seconds: float,
    congestor: Congestor | None = None,
    **parameters: Value | tuple[Value, ...],
) -> Experiment:
    """Return an experiment with the numbers of samples that suit its pattern. A cell that is short already takes its whole time."""
    facts = PATTERNS[pattern]
    is_time = facts.metric.is_time
    is_dear = facts.family is Family.MATRIX or (is_time and bool(sizes) and min(sizes) >= BULK_BYTES)
    windows = WARMUP_FLOOD_WINDOWS if facts.family is Family.FLOOD else WARMUP_WINDOWS
    warmup = FEW if is_dear else WARMUP_TIMES if is_time else windows
    return Experiment(
        layers=layers,
        pattern=pattern,
        message_bytes=sizes if facts.has_size else (),
        maximum_seconds=seconds,
        relative_width=NEVER_NARROW_ENOUGH if seconds <= WINDOWS_SECONDS else USUAL_WIDTH,
        minimum_samples=LEAST_TIMES if is_time else LEAST_WINDOWS,
        warmup_samples=warmup,
        parameters=dict(parameters),
        congestor=congestor,
    )


def pingpongs(
    layers: tuple[Layer, ...], sizes: tuple[int, ...], seconds: float, most_seconds: float = 1.0
) -> tuple[Experiment, ...]:
    """Return ping-pongs over the layers: each size has `seconds`, or as many more as LEAST_ROUND_TRIPS over a slow fabric take."""
    needed = {size: LEAST_ROUND_TRIPS * 2 * 8 * size / SLOWEST_BIT_S for size in sizes}
    usual = tuple(size for size in sizes if size < BULK_BYTES)
    bulk = tuple(size for size in sizes if size >= BULK_BYTES)
    return (
        *((experiment(layers, Pattern.PINGPONG, usual, seconds),) if usual else ()),
        *(
            experiment(layers, Pattern.PINGPONG, (size,), min(max(seconds, round(needed[size], 2)), most_seconds))
            for size in bulk
        ),
    )


def powers(first: int, last: int, step: int = 2) -> tuple[int, ...]:
    """Return sizes from the first to the last, each `step` times the one before."""
    sizes = [first]
    while sizes[-1] * step <= last:
        sizes.append(sizes[-1] * step)
    return tuple(sizes)


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
        for layers, sizes in ((PACKET_LAYERS, (64, 1472)), ((*STREAM_LAYERS, Layer.RDMA), (64, 64 * KIB)))
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


LATENCY_BYTES = 1024
"""Large enough that a slow link shows beside the cost of the hosts, small enough for one packet."""

STREAM_BYTES = 64 * 1024

SECONDS_A_PAIR = 0.05
SECONDS_A_STREAM = 0.25
"""Each way; a slow fabric's windows are 20 ms."""

LAYERS = (Layer.TCP, Layer.RDMA, Layer.MPI)


def map_campaign(layer: str, blocks: int, hosts: int) -> Campaign:
    """Return the campaign for a testbed of so many hosts; UsageError where they are no pair, or the layer has no byte stream."""
    if layer not in LAYERS:
        raise UsageError(
            f"--layer {layer} cannot be mapped", hint=f"choose one of {', '.join(LAYERS)}: both latency and bandwidth"
        )
    if hosts < 2:
        raise UsageError(
            f"a map is of pairs of nodes, and the fabrics of this testbed are measured over {hosts}",
            hint="give a testbed of two nodes or more; `--testbed lab:fast-ethernet` builds one in a lab",
        )
    pairs = hosts * (hosts - 1) / 2
    return Campaign(
        name="map",
        description="every pair of nodes: latency and bandwidth",
        blocks=blocks,
        experiments=(
            _experiment(Layer(layer), Pattern.PAIRS, LATENCY_BYTES, pairs * SECONDS_A_PAIR),
            _experiment(Layer(layer), Pattern.PAIRS_STREAM, STREAM_BYTES, 2 * pairs * SECONDS_A_STREAM),
        ),
    )


def _experiment(layer: Layer, pattern: Pattern, message_bytes: int, seconds: float) -> Experiment:
    return Experiment(
        layers=(layer,),
        pattern=pattern,
        message_bytes=(message_bytes,),
        maximum_seconds=seconds,
        minimum_samples=5,
        warmup_samples=2,
        verify_messages=1,
    )
