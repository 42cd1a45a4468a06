"""The record: what a launch of the measurer writes, one JSON object a line. `schema/record.json` is made from this.

    header                                  once, first
    clock...                                a line for each rank, where a probe needs the ranks' clocks to agree
    cell, samples..., channel..., pair_failed..., stages..., counters..., cell_end
                                            for each probe of the plan, in its order
    cell_failed                             instead of cell_end (or of all three) where a probe cannot be measured
    footer                                  once, last; a file without it was cut short

Lines are flushed at each cell's end, so whatever dies, finished cells are on disk. Times are nanoseconds of a monotonic clock.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, model_validator

from fabricbench.model import Layer, Metric, Model, Pattern, Receive
from fabricbench.record.counters import Counter, CounterScope, NotCounted
from fabricbench.record.probe_plan import PlanCongestor


class Phase(StrEnum):
    """Whether a sample belongs to the warm-up, which is kept apart, or to the measurement."""

    WARMUP = "warmup"
    MEASURED = "measured"


class StopReason(StrEnum):
    """Why a cell ended: the interval was narrow enough, the time or the number of samples was used up."""

    WIDTH = "width"
    TIME = "time"
    COUNT = "count"


class FailureCode(StrEnum):
    """What kept a cell from being measured."""

    PERMISSION = "permission"
    UNSUPPORTED = "unsupported"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    CORRUPTED = "corrupted"
    ERROR = "error"


class RankInfo(Model):
    """Where a rank ran and the interface of the fabric under test that it found there (None without one)."""

    rank: int
    host: str
    pid: int
    cpus: tuple[int, ...]
    interface: str | None = None
    address: str | None = None
    mac: str | None = None
    mtu: int | None = None
    machine: str | None = None
    """The boot of the kernel that it runs on, which hosts of containers or a lab share; None of earlier versions."""
    start_up_ns: int | None = None
    """What MPI_Init took on this rank."""
    of_ranks: int | None = None
    """Of how many ranks its starter told it that it is one; of a program of others, where the starter tells."""


class ClockInfo(Model):
    """The clock of the samples and what the harness itself costs, measured in this launch on rank 0.

    `overhead_ns` is the median cost of one reading; `resolution_ns` the smallest difference seen that is not 0; `loop_floor_ns` the
    median sample of an empty timed loop.
    """

    name: str
    resolution_ns: float
    overhead_ns: float
    loop_floor_ns: float


class Header(Model):
    """First line: who measured, with what, where."""

    type: Literal["header"] = "header"
    schema_name: Literal["fabricbench/record/1"] = Field(default="fabricbench/record/1", alias="schema")
    launch_id: str
    fabric: str
    probe_version: str
    mpi_library: str
    started_unix_ns: int
    ranks: tuple[RankInfo, ...]
    clock: ClockInfo
    not_counted: tuple[NotCounted, ...] = ()

    model_config = {**Model.model_config, "populate_by_name": True}


class Clock(Model):
    """How the clock of one rank is read against that of rank 0: global = local + offset_ns + drift_ppb * 1e-9 * (local - at_ns).

    A hierarchical synchronisation with a linear drift model, as HCA3 (Hunold and Carpen-Amarie 2018). `error_ns` bounds the error
    of a global time at `at_ns`: half the shortest round trip of the synchronisation and what chance leaves open, summed over the
    hierarchy; at the end of the launch also what the clock had shifted by since the synchronisation before. The bound grows by
    drift_error_ppb * 1e-9 for each ns from `at_ns` (0 of earlier versions, which told none). Clocks that are not shared are
    synchronised again before and after each cell that needs them. Ranks that provably read one clock (`is_shared`: same boot,
    same time namespace) have offset and error 0; what the synchronisation found for them is kept in `estimated_offset_ns` beside
    its bound.
    """

    type: Literal["clock"] = "clock"
    rank: int
    phase: Literal["begin", "end"]
    offset_ns: float
    drift_ppb: float
    at_ns: int
    error_ns: float
    drift_error_ppb: float = 0.0
    is_shared: bool
    estimated_offset_ns: float
    estimated_drift_ppb: float
    estimated_error_ns: float
    exchanges: int


class Cell(Model):
    """Opens a cell. `bytes_per_sample` is the payload that one complete sample moves (both ways for a round trip).

    `operations_per_sample` is how many operations one sample holds where a single one is too short to be timed (copies of a few
    bytes); a reader divides by it.
    """

    type: Literal["cell"] = "cell"
    id: int
    layer: Layer
    pattern: Pattern
    message_bytes: int
    receive: Receive
    metric: Metric
    ranks: tuple[int, ...]
    messages_per_sample: int = 1
    operations_per_sample: int = 1
    bytes_per_sample: int
    parameters: dict[str, str | int | float] = {}
    channels: int = 1
    """Logical channels in use at once: the mean logical-channel throughput is the throughput over this."""
    congestor: PlanCongestor | None = None


class Samples(Model):
    """A batch of samples in the order they were taken. `bytes` is given only where losses made it differ from the cell's.

    `missed` are positions in the batch of samples whose start window some rank missed: kept, marked, and not counted.
    """

    type: Literal["samples"] = "samples"
    cell: int
    phase: Phase
    first_index: int
    time_ns: tuple[int, ...]
    bytes: tuple[int, ...] | None = None
    missed: tuple[int, ...] = ()


class Quantity(StrEnum):
    """What the numbers of a channel are.

    transfer: `bytes` that arrived in `time_ns`, for each window or for the whole cell. round_trip: each round trip. one_way: each
    message from its sending to its arrival, by clocks that agree (may be negative within their error).
    """

    TRANSFER = "transfer"
    ROUND_TRIP = "round_trip"
    ONE_WAY = "one_way"


class Channel(Model):
    """What one logical channel of a cell did, measured phase only.

    `source` and `destination` are ranks, `flow` numbers parallel connections, `round` a matching or a turn of a schedule. Messages
    that were `sent` and not received are `lost`.
    """

    type: Literal["channel"] = "channel"
    cell: int
    source: int
    destination: int
    flow: int = 0
    round: int = 0
    quantity: Quantity
    time_ns: tuple[int, ...]
    bytes: tuple[int, ...] | None = None
    sent: int = 0
    lost: int = 0


class InterfaceBytes(Model):
    """What one interface, or a port of an RDMA device (`mlx5_0/1`), carried on a host while a cell was measured.

    `above` are the network interfaces over it, whose traffic it counts as well: a bond or VLAN over a card, `ib0` over a port.
    `is_counted` is False where it carries traffic that nobody could count; `sent` and `received` are 0 then.
    """

    sent: int
    received: int
    above: tuple[str, ...] = ()
    is_counted: bool = True


PortState = dict[str, dict[str, dict[str, Annotated[int, Field(ge=0)]]]]
"""By host, by port of an RDMA device (`mlx5_0/1`) or network interface, by counter: how far it went up."""


class RdmaTransport(StrEnum):
    """What a port of an RDMA device speaks, by its node type, its link layer and the type of its address (GID)."""

    INFINIBAND = "infiniband"
    ROCE_V1 = "roce_v1"
    ROCE_V2 = "roce_v2"
    IWARP = "iwarp"


class RdmaAttachment(Model):
    """How ranks of a cell were attached to the fabric by RDMA, as their device said: alike ones share an entry.

    `driver` is that of the device, `rxe` (soft RoCE) and `siw` (soft iWARP) among them; empty where the kernel tells none. `netdev`
    is the network interface of the address (GID). `port_mtu` is what the port takes at most in a packet, `path_mtu` the smallest
    that was in force on any path of these ranks, which the smaller end decides; None of iWARP, where TCP cuts. `inline_bytes` is
    what the queue pairs took inline, as the driver has granted it.
    """

    ranks: tuple[int, ...]
    host: str
    device: str
    port: int
    transport: RdmaTransport
    gid_index: int
    gid: str
    port_mtu: int
    path_mtu: int | None = None
    inline_bytes: int
    driver: str = ""
    netdev: str = ""
    lid: int = 0


def is_rdma_port(name: str) -> bool:
    """Tell by the name of a counter whether it is a port's: Linux allows no slash in the name of a network interface."""
    return "/" in name


class CellEnd(Model):
    """Closes a cell: why it stopped, how much there is, what the unreliable layers lost, and the path that was taken.

    `warmup` and `measured` count every sample that was written, `missed` those of the measured phase that missed their start.
    Losses, reorderings, duplicates and corruption count messages of the measured phase over all its ranks.
    """

    type: Literal["cell_end"] = "cell_end"
    cell: int
    stop: StopReason
    warmup: int
    measured: int
    seconds: float
    sent: int = 0
    lost: int = 0
    reordered: int = 0
    duplicated: int = 0
    corrupted: int = 0
    verified: int = 0
    missed: int = 0
    values: dict[str, float] = {}
    """What else the pattern found: `pure_ns`, `compute_ns`, `overlap` of a non-blocking call, say. Of a layer with sockets also the
    least that a rank was granted of SO_RCVBUF and SO_SNDBUF, `receive_buffer_bytes` and `send_buffer_bytes`; of a cell whose
    messages lie in huge pages, the least of a message that does, `huge_page_buffer_bytes`; of one whose messages are smaller than
    what a datagram carries of its own (token and number), the datagram's size, `datagram_bytes`. Of a flood over a layer that takes
    messages without waiting (rdma, mpi) the messages that each path had under way, `messages_under_way`: fewer than its `depth`
    where many share a rank or messages are large. Of a cell that needs clocks that agree, `clock_error_ns` bounds how far those
    of any two ranks were apart when it ended, and `clock_shift_ns` is how far the points after it lie off the line before it, of
    which `clock_shift_noise_ns` may be chance."""
    interfaces: dict[str, InterfaceBytes] = {}
    other_hosts: dict[str, dict[str, InterfaceBytes]] = {}
    """The same by host on the other hosts of its ranks, from before its messages were verified until it was over, without the
    counters that counted nothing. Empty of earlier versions, and where all ranks share a host."""
    printed_step: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Of what a program printed and no clock of ours measured: what its last digit counts, in the metric's unit. None: not told."""
    begin_unix_ns: int | None = None
    """When it was measured, warm-up included, by the clock of the host of ranks[0]; None of earlier versions."""
    end_unix_ns: int | None = None
    port_state: PortState = {}
    """What else changed at the fabric's RDMA ports and the network interfaces beside them, without RDMA at its interface, on the
    hosts of all its ranks, from before its messages were verified until it was over; by the names of the kernel and the driver
    (`port_counters`). A port without counters is one of which nothing changed; one that is missing could not be read, as a virtual
    interface; of earlier versions those of fabrics without RDMA are."""
    rdma: tuple[RdmaAttachment, ...] = ()
    """How its ranks were attached, of a cell over layer rdma; empty of all others, and of earlier versions."""


class CellFailed(Model):
    """A cell that could not be measured, with what to do about it; the launch goes on with the next."""

    type: Literal["cell_failed"] = "cell_failed"
    cell: int
    layer: Layer
    pattern: Pattern
    message_bytes: int
    code: FailureCode
    reason: str
    values: dict[str, float] = {}
    """What was found before it failed, as of a cell's end."""
    interfaces: dict[str, InterfaceBytes] = {}
    """As of a cell's end, where it was counted all the same: a program that came to its end and gave no figure."""
    begin_unix_ns: int | None = None
    end_unix_ns: int | None = None
    port_state: PortState = {}
    """As of a cell's end."""
    rdma: tuple[RdmaAttachment, ...] = ()
    """As of a cell's end; empty where it failed before its paths were open."""


class PairFailed(Model):
    """A pair of a matrix that could not be measured; its cell goes on with the others. `source` and `destination` are ranks."""

    type: Literal["pair_failed"] = "pair_failed"
    cell: int
    source: int
    destination: int
    code: FailureCode
    reason: str


class BusiestProcess(Model):
    """The other process that used a rank's processors most while a cell was measured, of those that the rank could see.

    `share` is that of one processor. `is_realtime`: it ran before any usual thread.
    """

    process: str
    share: float = Field(ge=0)
    is_realtime: bool


class Stages(Model):
    """When messages of a cell passed the boundaries between their stages on one rank, a position for each round trip.

    Columns that end in `_ns` are from `base_unix_ns` on, by the CLOCK_REALTIME of the rank's host alone, but for `waited_ns` (how
    long the thread was runnable without a processor since the round trip before) and `round_trip_ns` (by the clock of the samples,
    on the rank that `leads`, whose positions are the measured samples). Of what a rank sends: the call that sends it (`before`), a
    library's call of the kernel that sends it (`called`), and its first one where it asked the peer before (`asked`), the frame in
    the queueing discipline (`scheduled`) and at the driver (`departed`), the peer's first acknowledgement since that call; of
    several messages at once the first call, and the other boundaries of the last. Of what it receives: its last frame up from the
    driver (`arrived`), the thread switched in (`resumed`; None: it was not), its last byte in the library (`drained`), the message
    in the application (`received`). None is a boundary that was not seen, and so is no column at all; `refused` names those that a
    host shows nobody, and why. `busiest` is who else used the rank's processors most.
    """

    type: Literal["stages"] = "stages"
    cell: int
    rank: int
    leads: bool
    refused: dict[str, str] = {}
    busiest: BusiestProcess | None = None
    base_unix_ns: int
    number: tuple[int, ...]
    before_ns: tuple[int | None, ...]
    asked_ns: tuple[int | None, ...] = ()
    called_ns: tuple[int | None, ...] = ()
    scheduled_ns: tuple[int | None, ...]
    departed_ns: tuple[int | None, ...]
    acknowledged_ns: tuple[int | None, ...]
    arrived_ns: tuple[int | None, ...]
    resumed_ns: tuple[int | None, ...]
    waited_ns: tuple[int, ...]
    drained_ns: tuple[int | None, ...] = ()
    received_ns: tuple[int | None, ...]
    round_trip_ns: tuple[int, ...]

    @model_validator(mode="after")
    def _columns_are_of_one_length(self) -> Stages:
        for name in STAGE_TIMES:
            found = len(getattr(self, name))
            if found != len(self.number) and not (name in OF_LIBRARIES and found == 0):
                raise ValueError(f"{name} has {found} positions, number has {len(self.number)}")
        return self


STAGE_TIMES = tuple(name for name in Stages.model_fields if name.endswith("_ns") and name != "base_unix_ns")
"""The columns of times."""

OF_LIBRARIES = ("asked_ns", "called_ns", "drained_ns")
"""Those of messages that a library sends and receives for the application, as MPI does; others have none."""


class Counters(Model):
    """What was counted while a cell was measured, by the rank that read it: of its process, of its host or of its machine."""

    type: Literal["counters"] = "counters"
    cell: int
    rank: int
    scope: CounterScope
    counts: dict[Counter, Annotated[int, Field(ge=0, lt=2**64)]]


class Footer(Model):
    """Last line: the launch came to its end."""

    type: Literal["footer"] = "footer"
    finished_unix_ns: int
    cells: int
    failed: int


Line = Annotated[
    Header | Clock | Cell | Samples | Channel | PairFailed | Stages | Counters | CellEnd | CellFailed | Footer,
    Field(discriminator="type"),
]
LINE_ADAPTER: TypeAdapter[
    Header | Clock | Cell | Samples | Channel | PairFailed | Stages | Counters | CellEnd | CellFailed | Footer
] = TypeAdapter(Line)
