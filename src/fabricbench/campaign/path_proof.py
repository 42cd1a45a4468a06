"""The path proof: did the traffic of each cell go over the fabric under test and nowhere else? Pure.

The measurer reads the counters of every interface and of every port of an RDMA device on the host of ranks[0] around each cell. On
a network layer the fabric's interface must have carried at least the payload, or for RDMA and MPI the RDMA port beside it; what any
other carried must be no more than control traffic explains. A counter below the fabric's interface (a card below its VLAN or bond)
counts the same traffic, and is no other. RDMA in software (rxe, siw) goes through the kernel: its ports count no bytes, its
interface counts them all. A launch whose traffic is seen elsewhere is not believed: MPI likes to take another way than it was told.
Where nobody counted the traffic of a cell, or where it may have gone by a port that has no counters, its path is unknown, which is
neither.

What the payload on that host is, depends on the pattern. Two ranks: what the samples imply. Turns: a message to and from each
neighbour in each. Floods and matrices: the channels that begin or end on that host. MPI operations choose their own algorithm, so
that only something must have moved: half a message a call, which is less than any of them gets along with. Of a kernel that is
what its rank 0 handed to MPI for others, if each rank has a host to itself; else, and of a program that does not tell, more than
strays onto any network, and more than went over any other, of which what ranks print is no part. Less tells nothing.
A congestor may add to the fabric's interface whatever it likes, and to no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabricbench.model import Layer, Model, RdmaDoor, RdmaEnd
from fabricbench.patterns import PATTERNS, Family
from fabricbench.quantity import format_bytes
from fabricbench.record.lines import Cell, CellEnd, Header, InterfaceBytes, Quantity, is_rdma_port
from fabricbench.record.provenance import Proof
from fabricbench.record.reading import ChannelNumbers, Record
from fabricbench.record.workload_cells import LEADER_BYTES
from fabricbench.testbed.model import Fabric

CONTROL_SHARE = 0.05
CONTROL_BYTES = 64 * 1024
"""What may go elsewhere: starting, barriers, acknowledgements; far less than the payload of any misled cell."""

BACKGROUND_BYTES_S = 512 * 1024
"""What a machine's own housekeeping (monitoring, a shared file system) may move meanwhile without casting doubt."""

STRAY_BYTES, STRAY_BYTES_S = 1024, 256
"""What a network carries of itself, at once and each second: asking for addresses, joining groups, broadcasts of its switches."""

OF_PRINTED = 4
"""What a byte that ranks print may be on a network: starters carry it to the first node in messages of their own."""

MISSING_SHARE = 0.02
"""For messages that are counted as sent and were lost before the interface."""


BYPASSING = (Layer.RDMA, Layer.MPI)
"""Layers that may go by a port of an RDMA device: the kernel's counters of its network interface do not see that. What such a port
carries while any other layer is measured is others' traffic."""


@dataclass(frozen=True)
class Payload:
    """What the host of ranks[0] must have sent, received, and either sent or received, in bytes at least."""

    sent: int = 0
    received: int = 0
    either: int = 0
    is_unknown: bool = False
    """Whether something must have crossed, and nobody knows how much."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.sent + self.received + self.either


class CellProof(Model):
    """What one cell moved: the payload that its samples imply, over the fabric's interface, and over all others."""

    cell: int
    layer: Layer
    payload_bytes: int
    fabric_sent: int
    fabric_received: int
    other_bytes: int
    violations: tuple[str, ...]
    unknown: str = ""
    """Why its path is not known, where it is not."""


class PathProof(Model):
    """The proof of a launch. `interface` is the fabric's on the host of rank 0, None for shared memory."""

    interface: str | None
    cells: tuple[CellProof, ...]

    @property
    def violations(self) -> tuple[str, ...]:
        """Why the launch is not believed; empty if it is."""
        return tuple(violation for cell in self.cells for violation in cell.violations)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Of which cells the path is not known, and why."""
        return tuple(cell.unknown for cell in self.cells if cell.unknown)

    @property
    def verdict(self) -> Proof:
        """What is known of the launch: it is proven where every cell is; where nothing was measured, nothing is known."""
        if self.violations:
            return Proof.REFUTED
        return Proof.UNKNOWN if self.unknown or not self.cells else Proof.PROVEN


def prove_path(record: Record, fabric: Fabric, *, printed_bytes: int = 0) -> PathProof:
    """Return the proof of every finished cell of a launch, whose ranks printed so much while interfaces were counted."""
    hosts = {info.rank: info.host for info in record.header.ranks} if record.header is not None else {}
    return PathProof(
        interface=_interface(record.header, 0, fabric),
        cells=tuple(
            _prove_cell(
                one.cell,
                one.end,
                _payload(one.cell, one.end, one.channels, hosts),
                _interface(record.header, one.cell.ranks[0], fabric),
                fabric,
                printed_bytes * OF_PRINTED,
            )
            for one in record.cells
            if one.cell is not None and one.end is not None
        ),
    )


def _interface(header: Header | None, rank: int, fabric: Fabric) -> str | None:
    """Return the fabric's interface on the host of a rank: found by its subnet, it may have another name on each."""
    if not fabric.has_interface:
        return None
    found = [info.interface for info in header.ranks if info.rank == rank] if header is not None else []
    return (found[0] if found else None) or fabric.interface


def _prove_cell(
    cell: Cell, end: CellEnd, payload: Payload, interface: str | None, fabric: Fabric, printed: int
) -> CellProof:
    what = f"test {cell.id} ({cell.layer} {cell.pattern} of {format_bytes(cell.message_bytes)})"
    own = interface if cell.layer is not Layer.MEMORY else None
    ways = _ways(cell.layer, end.interfaces, own, fabric.rdma)
    others = {
        name: each.sent + each.received
        for name, each in end.interfaces.items()
        if name not in ways and own not in each.above and (cell.layer in BYPASSING or not is_rdma_port(name))
    }
    counted = {name: each for name, each in ways.items() if each.is_counted}
    carried = max(counted.values(), key=lambda one: one.sent + one.received, default=InterfaceBytes(sent=0, received=0))
    moved = max(end.measured * cell.bytes_per_sample, payload.total)
    violations = list(_elsewhere(what, others, moved, _span_seconds(end), printed))
    unknown = "" if end.interfaces else f"{what}: no interface was counted"
    if fabric.has_interface and cell.layer is not Layer.MEMORY:
        missing = list(_missing(what, counted, payload, carried))
        if not counted or (interface is not None and interface not in ways):
            unknown = f"{what}: no interface of {fabric.name} was counted"
        elif missing and len(counted) < len(ways):
            uncounted = ", ".join(name for name in ways if name not in counted)
            unknown = f"{what}: {', '.join(counted)} did not carry it, and what {uncounted} carries cannot be counted"
        else:
            violations += missing
            own_ways = f"{what}: {', '.join(counted)}"
            if payload.is_unknown and (doubt := _rather_elsewhere(own_ways, carried, others, printed)):
                # A lab has no housekeeping: what is elsewhere there is the program's.
                violations += [doubt] if fabric.is_emulated and not violations else []
                unknown = "" if violations else doubt
            elif payload.is_unknown:
                stray = STRAY_BYTES + (0 if fabric.is_emulated else STRAY_BYTES_S * _span_seconds(end))
                unknown = _too_little(own_ways, carried, others, stray, printed)
    return CellProof(
        cell=cell.id,
        layer=cell.layer,
        payload_bytes=payload.total,
        fabric_sent=carried.sent,
        fabric_received=carried.received,
        other_bytes=sum(others.values()),
        violations=tuple(violations),
        unknown=unknown,
    )


def _ways(
    layer: Layer, counters: Mapping[str, InterfaceBytes], interface: str | None, rdma: RdmaEnd | None
) -> dict[str, InterfaceBytes]:
    """Return the counters of each way onto the fabric: its interface, and for what may bypass the kernel its RDMA ports.

    These are the ports beside the interface, or the one that the testbed names. A card below the interface is no way: what goes
    over it and not over its VLAN is on another network.
    """
    if interface is None:
        return {}
    return {
        name: each
        for name, each in counters.items()
        if name == interface or (layer in BYPASSING and is_rdma_port(name) and _leads_to(name, each, interface, rdma))
    }


def _leads_to(port: str, counter: InterfaceBytes, interface: str, rdma: RdmaEnd | None) -> bool:
    if rdma is None or rdma.device is None:
        return interface in counter.above
    device, _, number = port.partition("/")
    return device == rdma.device and rdma.port in (None, int(number))


def _span_seconds(end: CellEnd) -> float:
    """Return how long the counters ran at least: an operation's loops and looks are not in its `seconds`."""
    return max(end.seconds, ((end.end_unix_ns or 0) - (end.begin_unix_ns or 0)) * 1e-9)


def _payload(cell: Cell, end: CellEnd, channels: Sequence[ChannelNumbers], hosts: Mapping[int, str]) -> Payload:
    """Return the payload that the host of ranks[0] must have sent and received at least."""
    if cell.layer is Layer.MEMORY:
        return Payload()
    match PATTERNS[cell.pattern].family:
        case Family.PAIR:
            return _of_pair(cell, end)
        case Family.LOCKSTEP:
            # Two channels for each neighbour, one each way, over all members.
            moved = end.measured * cell.message_bytes * (cell.channels // len(cell.ranks))
            return Payload(sent=moved, received=max(0, moved - end.lost * cell.message_bytes))
        case Family.FLOOD | Family.MATRIX:
            return _of_channels(cell, channels, hosts)
        case Family.WORKLOAD:
            return _of_workload(cell, end, len({hosts.get(rank, "") for rank in cell.ranks}))
    is_shared = len({hosts.get(rank, "") for rank in cell.ranks}) < 2
    return Payload(either=0 if is_shared else end.measured * cell.message_bytes // 2)


def _of_pair(cell: Cell, end: CellEnd) -> Payload:
    facts = PATTERNS[cell.pattern]
    there = facts.messages_there
    if isinstance(there, str):
        there = int(cell.parameters.get(there, facts.parameters[there].default))
    moved = end.measured * cell.operations_per_sample * cell.messages_per_sample * cell.message_bytes
    lost = end.lost * cell.message_bytes
    if cell.layer is Layer.RDMA and cell.parameters.get("door") == RdmaDoor.READ:
        return Payload(either=moved)  # what is read crosses once, whoever asks for it
    back = moved * facts.messages_back
    # What comes back shows that what went there arrived; else some of it may have been lost before it was sent.
    sent = moved * there if back else max(0, moved * there - lost)
    return Payload(sent=sent, received=max(0, back - lost))


def _of_workload(cell: Cell, end: CellEnd, hosts: int) -> Payload:
    """Return what rank 0 handed to MPI for others; where ranks share a host, nobody knows how much of that stays in its memory."""
    told = end.values.get(LEADER_BYTES)
    if told is None:
        return Payload(is_unknown=len(cell.ranks) > 1)
    if hosts == len(cell.ranks):
        return Payload(either=int(told))
    return Payload(is_unknown=hosts > 1 and told > 0)


def _of_channels(cell: Cell, channels: Sequence[ChannelNumbers], hosts: Mapping[int, str]) -> Payload:
    def is_here(rank: int) -> bool:
        return hosts.get(rank, rank) == hosts.get(cell.ranks[0], cell.ranks[0])

    sent = received = 0
    for channel in channels:
        is_round_trip = channel.quantity is Quantity.ROUND_TRIP
        arrived = channel.bytes
        moved = int(arrived.sum()) if arrived is not None else len(channel.time_ns) * cell.message_bytes
        begins, ends = is_here(channel.source), is_here(channel.destination)
        sent += moved * (begins or (ends and is_round_trip))
        received += moved * (ends or (begins and is_round_trip))
    return Payload(sent=sent, received=received)


def _missing(what: str, ways: Iterable[str], payload: Payload, carried: InterfaceBytes) -> Iterable[str]:
    """Return what no single way onto the fabric has carried: an InfiniBand port counts what its `ib0` counts as well."""
    for direction, least, found in (
        ("sent", payload.sent, carried.sent),
        ("received", payload.received, carried.received),
        ("sent and received", payload.either, carried.sent + carried.received),
    ):
        if found < least * (1 - MISSING_SHARE):
            yield f"{what}: {', '.join(ways)} {direction} {found} B, but the payload is {least} B: it went another way"


def _rather_elsewhere(own_ways: str, carried: InterfaceBytes, others: Mapping[str, int], printed: int) -> str:
    """Return why a program that nobody knows the payload of may have talked over another interface; empty if it has not."""
    mine = carried.sent + carried.received
    if not mine:
        return f"{own_ways} carried nothing"
    name, most = _most(others)
    return f"{own_ways} carried only {mine} B and {name} {most} B" if most > max(mine, CONTROL_BYTES) + printed else ""


def _too_little(own_ways: str, carried: InterfaceBytes, others: Mapping[str, int], stray: float, printed: int) -> str:
    """Return why nobody can tell over which interface such a program has talked; empty if over the fabric's.

    What that carried must be more than a network's own, and more than any other's but for what ranks printed: beyond control
    traffic only that may be more there (`_rather_elsewhere`).
    """
    mine = carried.sent + carried.received
    name, most = _most(others)
    if mine > max(stray, min(most - printed, CONTROL_BYTES)):
        return ""
    beside = f" and {name} {most} B" if most else ""
    return f"{own_ways} carried {mine} B{beside}: too little crossed any interface to tell by which its ranks talked"


def _most(others: Mapping[str, int]) -> tuple[str, int]:
    return max(others.items(), key=lambda each: each[1], default=("", 0))


def _elsewhere(what: str, others: dict[str, int], moved: int, seconds: float, printed: int) -> Iterable[str]:
    allowed = CONTROL_BYTES + CONTROL_SHARE * moved + BACKGROUND_BYTES_S * seconds + printed
    what_else = " and what it printed" if printed else ""
    for name, carried in others.items():
        if carried > allowed:
            yield f"{what}: {name} carried {carried} B, at most {allowed:.0f} B can be control traffic{what_else}"
