"""What the table of patterns is made of: layers, metrics and families, what is known of a pattern, and what a cell may be told.

Python's and, generated from here (`record/native_table.py`), C++'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Parameters = Mapping[str, str | int | float]


class Layer(StrEnum):
    """Where in the stack a probe talks, from the processor's memory up: the order of the ladder."""

    MEMORY = "memory"
    FRAME = "frame"
    IP = "ip"
    UDP = "udp"
    TCP = "tcp"
    RDMA = "rdma"
    MPI = "mpi"


class Metric(StrEnum):
    """What a cell measures. A round trip is never halved and called a latency."""

    ROUND_TRIP_TIME = "round_trip_time"
    OPERATION_TIME = "operation_time"
    THROUGHPUT = "throughput"
    MESSAGE_RATE = "message_rate"
    WORK_RATE = "work_rate"
    """A program's own figure of merit, work in a time: its unit is the workload's (`CellKey.workload`)."""

    @property
    def is_time(self) -> bool:
        """Whether it is a time: the median of a launch counts, and the smaller number is the better one."""
        return self in {Metric.ROUND_TRIP_TIME, Metric.OPERATION_TIME}

    @property
    def unit(self) -> str:
        """The unit of every number of this metric inside the program and in JSON."""
        rates = {Metric.MESSAGE_RATE: "message/s", Metric.WORK_RATE: "work/s"}
        return "ns" if self.is_time else rates.get(self, "bit/s")

    @property
    def is_lower_better(self) -> bool:
        """Whether the smaller number is the better one."""
        return self.is_time


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


class Load(StrEnum):
    """What the busiest direction of a host's link carries, behind a switch that never blocks and with a rank on each host."""

    CHANNEL = "one channel"
    CHANNEL_OF_EACH = "a channel of each other rank"
    MESSAGE = "the message"
    MESSAGE_TWICE = "the message but one's own share, there and back"
    BLOCK_OF_EACH = "a block of each other rank"


@dataclass(frozen=True)
class Parameter:
    """What a pattern may be told: a number from `least` to `most`, or one of `words`. The first word or `default` is taken else."""

    default: str | int | float
    summary: str
    words: tuple[str, ...] = ()
    least: float = 1
    most: float = 1_000_000
    only_over: tuple[Layer, ...] = ()
    """The layers that it means something to; empty for all of the pattern's."""

    @property
    def layers_text(self) -> str:
        """Those layers in words."""
        return ("layer " if len(self.only_over) == 1 else "layers ") + ", ".join(self.only_over)

    def is_of(self, layer: Layer) -> bool:
        """Whether it means something to a layer."""
        return not self.only_over or layer in self.only_over


@dataclass(frozen=True)
class PatternFacts:
    """One pattern."""

    name: str
    family: Family
    metric: Metric
    summary: str
    layers: tuple[Layer, ...]
    least_ranks: int = 2
    most_ranks: int | None = None
    """None takes all ranks there are."""
    needs_even_ranks: bool = False
    """Whether it sets one half of its ranks against the other: with an odd number somebody would be left standing."""
    parameters: dict[str, Parameter] = field(default_factory=dict)
    smallest_message_bytes: int = 1
    has_size: bool = True
    """Whether a message size means anything (a barrier has none: it is measured once, at 0 bytes)."""
    stamps_both_ends: bool = False
    """Whether both ranks of a pair keep the time, on clocks that agree."""
    is_stream: bool = False
    """Whether messages of a pair go one way, over a network in windows of `messages_per_sample` that are a sample each."""
    messages_there: int | str = 1
    messages_back: int = 1
    """What a sample of a pair moves at least from the first rank and back, which the counters of the path must show: a number of
    messages, or the parameter that says it; of a stream for each message of a window."""
    title: str | None = None
    """What reports call it, where that is not its name."""
    sample: str | None = None
    """What one sample is, where it is not that of its family."""
    channels: str | None = None
    """Logical channels in use at once among n ranks: the mean logical-channel throughput is the throughput over this."""
    load: Load | None = None
    """None where arithmetic has nothing to say."""
    header: str | None = None
    """The native header with its type, where it is not the one of its name."""

    @property
    def is_local(self) -> bool:
        """Whether it moves no message: one rank works by itself, as many times a sample as the clock needs."""
        return self.messages_there == 0 and self.messages_back == 0


NETWORK = (Layer.FRAME, Layer.IP, Layer.UDP, Layer.TCP, Layer.RDMA, Layer.MPI)
WITH_MEMORY = (Layer.MEMORY, *NETWORK)
USUAL_LAYERS = tuple(layer for layer in Layer if layer is not Layer.RDMA)
"""What any network has. RDMA needs an adapter for it: a fabric has it where its testbed says so."""
RELIABLE = (Layer.TCP, Layer.RDMA, Layer.MPI)
ONLY_MPI = (Layer.MPI,)

KERNEL = Parameter(
    default="copy",
    words=("copy", "scale", "add", "triad"),
    summary="what layer memory does, as STREAM calls it",
    only_over=(Layer.MEMORY,),
)
STORES = Parameter(
    default="plain",
    words=("plain", "streaming"),
    summary="how layer memory writes: as the compiler makes of assignments (of a copy the C library's), or past the caches, "
    "which reads no line before it is written over",
    only_over=(Layer.MEMORY,),
)
MEMORY_THREADS = Parameter(
    default=1,
    least=0,
    most=4096,
    summary="that share the arrays of layer memory, each on a processor of its own; 0 is one for each there is, as STREAM",
    only_over=(Layer.MEMORY,),
)
ANSWER = Parameter(
    default="echo",
    words=("echo", "own"),
    summary="what the second rank sends back: the message from where it came to, or a buffer that nothing is received into, "
    "as osu_latency and IMB PingPong do",
    only_over=NETWORK,
)
ROUND_TRIPS = Parameter(
    default=1,
    most=1_000_000,
    summary="in a row between two readings of the clock: a sample is their mean. 1 times each alone; 1000 hides the clock, "
    "as osu_latency does",
    only_over=RELIABLE,
)
UNEXPECTED = Parameter(
    default=0,
    least=0,
    most=65_536,
    summary="messages of another tag that lie in each rank's queue of unexpected messages meanwhile",
    only_over=ONLY_MPI,
)
WINDOW = Parameter(
    default=0,
    least=0,
    most=4096,
    summary="messages that all go into one receive buffer, until an answer of 4 bytes begins the next as many: 64 as osu_bw; "
    "0 is without a pause, each message into a buffer of its own",
    only_over=RELIABLE,
)
ACCESSES = Parameter(
    default=1,
    most=4096,
    summary="in a row, side by side in the window, that one closing completes: 64 with sync=flush is osu_put_bw and osu_get_bw",
)
FLOWS = Parameter(default=1, most=256, summary="parallel connections in each channel")
SCHEDULE = Parameter(
    default="alone",
    words=("alone", "rounds", "halves"),
    summary="one pair at a time; N-1 rounds of disjoint pairs; or only each rank of the first half with its counterpart of the "
    "second, all at once, as osu_multi_lat",
)
MODE = Parameter(
    default="blocking",
    words=("blocking", "nonblocking", "persistent"),
    summary="the call; nonblocking also tells how much of it hides behind computing",
)
SYNCHRONISATION = Parameter(
    default="fence", words=("fence", "lock", "flush"), summary="how an epoch of one-sided access is closed"
)

INTERVALS = Parameter(
    default="even",
    words=("even", "random"),
    summary="the same each time, from begin to begin; or a pause before each message, drawn from half to one and a half of "
    "interval_us, so that no timer on the way is met in step",
)

ADDRESS_FAMILY = Parameter(
    default="ipv4",
    words=("ipv4", "ipv6"),
    summary="the version of IP; of IPv6 the interface's address, one of its link where it has no other",
)

STAGES, STAGES_BY_USER = "stages", "user"
"""The parameter of layers by which a cell's messages are stamped on their way, and its word for what any user may ask for."""

NODELAY = Parameter(
    default="on",
    words=("on", "off"),
    summary="TCP_NODELAY: send small messages at once; off holds one back while an earlier one is not acknowledged (RFC 896)",
)

_STAGES = Parameter(
    default="none",
    words=("none", STAGES_BY_USER),
    summary="what each message's stages are measured by: nothing, or what any user may ask of the kernel",
)

LAYER_PARAMETERS: dict[Layer, dict[str, Parameter]] = {
    Layer.FRAME: {STAGES: _STAGES},
    Layer.IP: {"address_family": ADDRESS_FAMILY, STAGES: _STAGES},
    Layer.UDP: {"address_family": ADDRESS_FAMILY, STAGES: _STAGES},
    Layer.TCP: {"address_family": ADDRESS_FAMILY, "nodelay": NODELAY, STAGES: _STAGES},
    Layer.MPI: {STAGES: _STAGES},
    Layer.RDMA: {
        "depth": Parameter(default=64, least=2, most=64, summary="messages of a queue pair under way at once"),
        "moderation": Parameter(
            default=16, most=64, summary="of what is sent without waiting, every so many ask for a completion"
        ),
        "inline_bytes": Parameter(
            default=64, least=0, most=4096, summary="messages up to this are copied into their request"
        ),
        "mtu": Parameter(default=4096, least=256, most=4096, summary="of a path at most, down to a power of two"),
        "traffic_class": Parameter(default=0, least=0, most=255, summary="of each packet: on RoCE its DSCP and ECN"),
        "service_level": Parameter(default=0, least=0, most=15, summary="of each packet: its priority"),
        "timeout": Parameter(
            default=14, most=31, summary="of an acknowledgement: 4.096 us times 2 to this power, 14 is 67 ms"
        ),
        "retry_count": Parameter(default=6, least=0, most=6, summary="how often a packet is sent again"),
    },
}
"""What cells over a layer may be told, whatever their pattern is."""


def chosen_parameters(layer: Layer) -> dict[str, Parameter]:
    """Return the parameters of a layer that people choose: not whether stages are measured, which is said of an experiment."""
    return {name: one for name, one in LAYER_PARAMETERS.get(layer, {}).items() if name != STAGES}
