"""The path proof: did the traffic of each cell go over the fabric under test and nowhere else? Pure.

The counters of every interface and of every port of an RDMA device are read on each host around each cell. On a network layer the
fabric's interface must have carried at least the payload, or for RDMA and MPI the RDMA port beside it; what any other carried must
be no more than control traffic explains. A counter below the fabric's interface (a card below its VLAN or bond), or that of what
carries it where it is a tunnel, counts the same traffic, and is no other. RDMA in software (rxe, siw) goes through the kernel: its
ports count no bytes, its interface counts them all. A launch whose traffic is seen elsewhere on any host is not believed: MPI likes
to take another way than it was told. Where nobody counted the traffic of a cell, where a host's interface in the fabric is not
known, or where it may have gone by a port that has no counters, its path is unknown, which is neither.

What the payload on a host is, depends on the pattern. Two ranks: what the samples imply. Turns: a message to and from each
neighbour in each. Floods and matrices: the channels that begin or end on that host. MPI operations choose their own algorithm, so
that only something must have moved, and on the host of ranks[0] alone: half a message a call, which is less than any of them gets
along with. Of a kernel that is what its rank 0 handed to MPI for others, if each rank has a host to itself; else, and of a program
that does not tell, more than strays onto any network, and more than went over any other, of which what ranks print is no part. Less
tells nothing, and on other hosts, whose ranks may have had nothing to say, casts no doubt.
A congestor may add to the fabric's interface whatever it likes, and to no other.

The loopback of a machine is every program's; that of a lab's node is the node's own. So it speaks against no rank that is alone on
its machine, which reaches no other by it; what it speaks against the others is told as what may be other programs'; and it proves
nothing of a program that nobody knows the payload of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fabricbench.campaign.path_payload import Payload, payload_of
from fabricbench.model import Layer, Model, RdmaEnd
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import format_bytes
from fabricbench.record.lines import Cell, CellEnd, Header, InterfaceBytes, StopReason, is_rdma_port
from fabricbench.record.provenance import Proof
from fabricbench.record.reading import CellRecord, ChannelNumbers, Record
from fabricbench.testbed.model import Fabric
from fabricbench.testbed.tunnels import UNKNOWN_CARRIER

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


LOOPBACK = "lo"
HEADER_BYTES = 1024
"""Of a message and its answer at most, with all acknowledgements of both: what a loopback counts besides the payload."""
OTHERS_TOO = "other programs of the machine use it as well, and this may be theirs: measure while they rest to tell"


class CellProof(Model):
    """What one cell moved: the payload that its samples imply, over the fabric's interface, and over all others, on one host."""

    cell: int
    layer: Layer
    payload_bytes: int
    fabric_sent: int
    fabric_received: int
    other_bytes: int
    violations: tuple[str, ...]
    unknown: str = ""
    """Why its path is not known, where it is not."""
    may_be_others: bool = False
    """Whether what speaks for it or against it was counted on a loopback that all programs of the machine use."""


class PathProof(Model):
    """The proof of a launch. `interface` is the fabric's on the host of rank 0, None for shared memory.

    `interfaces` are those of all hosts, and `carriers` what carries them where they are tunnels; both by host.
    """

    interface: str | None
    cells: tuple[CellProof, ...]
    interfaces: dict[str, str] = {}
    carriers: dict[str, tuple[str, ...]] = {}

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


Carriers = Mapping[str, Mapping[str, tuple[str, ...]]]
"""By host and tunnel, the interfaces that carry it (`testbed.tunnels`)."""


def prove_path(
    record: Record, fabric: Fabric, *, printed_bytes: int = 0, carriers: Carriers | None = None
) -> PathProof:
    """Return the proof of every counted cell of a launch, whose ranks printed so much while interfaces were counted."""
    hosts = {info.rank: info.host for info in record.header.ranks} if record.header is not None else {}
    own = _interfaces(record.header, fabric)
    site = _Site(fabric, own, carriers or {}, printed_bytes * OF_PRINTED)
    return PathProof(
        interface=own.get(hosts.get(0, ""), fabric.interface),
        interfaces=own,
        carriers={host: found for host, name in own.items() if (found := site.carriers.get(host, {}).get(name))},
        cells=tuple(
            _prove_cell(one.cell, end, list(_hosts(one.cell, end, one.channels, hosts)), hosts, site)
            for one in record.cells
            for end in (_counted(one),)
            if one.cell is not None and end is not None
        ),
    )


def _counted(one: CellRecord) -> CellEnd | None:
    """Return the end of a cell; of one that failed, but whose traffic was counted, what that needs of an end: it has no sample."""
    failed = one.failed
    if one.end is not None or failed is None or not failed.interfaces:
        return one.end
    return CellEnd(
        cell=failed.cell,
        stop=StopReason.COUNT,
        warmup=0,
        measured=0,
        seconds=0.0,
        values=failed.values,
        interfaces=failed.interfaces,
        begin_unix_ns=failed.begin_unix_ns,
        end_unix_ns=failed.end_unix_ns,
    )


def _interfaces(header: Header | None, fabric: Fabric) -> dict[str, str]:
    """Return the fabric's interface by host, as each found it, or as the testbed names it: by a subnet, names may differ."""
    if not fabric.has_interface or header is None:
        return {}
    found = {info.host: info.interface or fabric.interface for info in header.ranks}
    return {host: name for host, name in found.items() if name is not None}


@dataclass(frozen=True)
class _Site:
    """Where a launch took place: the fabric, by host its interface and what carries that, and the bytes that printing may take."""

    fabric: Fabric
    own: Mapping[str, str]
    carriers: Carriers
    printed: int


@dataclass(frozen=True)
class _Host:
    """What was counted on a host while a cell was measured, and what its ranks moved.

    `is_first`: the host of ranks[0]; `is_of_one_rank`: no other that talks meanwhile is there.
    """

    name: str
    counters: Mapping[str, InterfaceBytes]
    payload: Payload
    is_first: bool
    is_of_one_rank: bool


def _hosts(cell: Cell, end: CellEnd, channels: Sequence[ChannelNumbers], hosts: Mapping[int, str]) -> Iterator[_Host]:
    first = hosts.get(cell.ranks[0], "")
    members = [hosts.get(rank, "") for rank in (*cell.ranks, *(cell.congestor.ranks if cell.congestor else ()))]
    for name, counters in {first: end.interfaces, **end.other_hosts}.items():
        payload = payload_of(cell, end, channels, hosts, name)
        yield _Host(name, counters, payload, name == first, len(members) > 1 and members.count(name) == 1)


def _prove_cell(cell: Cell, end: CellEnd, counted: Sequence[_Host], hosts: Mapping[int, str], site: _Site) -> CellProof:
    """Return what all hosts together prove; the numbers are those of the host of ranks[0]."""
    what = f"test {cell.id} ({cell.layer} {cell.pattern} of {format_bytes(cell.message_bytes)})"
    first, *others = [
        _Look(f"{what} on {one.name}" if len(counted) > 1 else what, cell, end, one, site).proof() for one in counted
    ]
    unknown = [one.unknown for one in (first, *others) if one.unknown]
    if others:  # earlier versions counted on the host of ranks[0] alone
        told = {one.name for one in counted}
        silent = dict.fromkeys(name for rank in cell.ranks if (name := hosts.get(rank, "")) not in told)
        unknown += [f"{what}: nobody counted what went over the interfaces of {', '.join(silent)}"] if silent else []
    return first.model_copy(
        update={
            "violations": tuple(violation for one in (first, *others) for violation in one.violations),
            "unknown": unknown[0] if unknown else "",
            "may_be_others": any(one.may_be_others for one in (first, *others)),
        }
    )


@dataclass(frozen=True)
class _Look:
    """A look at what one host counted while a cell was measured; `what` is the cell in words."""

    what: str
    cell: Cell
    end: CellEnd
    host: _Host
    site: _Site

    @property
    def is_on_fabric(self) -> bool:
        return self.site.fabric.has_interface and self.cell.layer is not Layer.MEMORY

    @property
    def own(self) -> str | None:
        """The host's interface in the fabric."""
        return self.site.own.get(self.host.name, self.site.fabric.interface) if self.is_on_fabric else None

    @property
    def shared(self) -> str:
        """The interface that others on a host talk over as well; a lab's nodes have none."""
        return "" if self.site.fabric.is_emulated else LOOPBACK

    @property
    def carriers(self) -> Collection[str]:
        """What carries the host's interface, where that is a tunnel."""
        return self.site.carriers.get(self.host.name, {}).get(self.own or "", ())

    @cached_property
    def ways(self) -> dict[str, InterfaceBytes]:
        return _ways(self.cell.layer, self.host.counters, self.own, self.site.fabric.rdma)

    @cached_property
    def counted(self) -> dict[str, InterfaceBytes]:
        return {name: each for name, each in self.ways.items() if each.is_counted}

    @cached_property
    def carried(self) -> InterfaceBytes:
        """What the way carried that carried most."""
        none = InterfaceBytes(sent=0, received=0)
        return max(self.counted.values(), key=lambda one: one.sent + one.received, default=none)

    @cached_property
    def others(self) -> dict[str, int]:
        """The bytes of each interface that is no way onto the fabric, nor above or below one."""
        own, carriers, layer = self.own, self.carriers, self.cell.layer
        return {
            name: each.sent + each.received
            for name, each in self.host.counters.items()
            if name not in self.ways
            and {own, *carriers}.isdisjoint((*each.above, *((name,) if name in carriers else ())))
            and (layer in BYPASSING or not is_rdma_port(name))
            and not (name == self.shared and self.host.is_of_one_rank)
        }

    @cached_property
    def elsewhere(self) -> Mapping[str, str]:
        """What the other interfaces carried that the cell may have moved, in words."""
        moved = max(self.end.measured * self.cell.bytes_per_sample, self.host.payload.total)
        return _elsewhere(self.others, moved, _span_seconds(self.end), self.site.printed)

    def proof(self) -> CellProof:
        """Return what the host's counters prove."""
        violations = [
            f"{self.what}: {name} carried {self.others[name]} B, {words}{f'; {OTHERS_TOO}' if name == self.shared else ''}"
            for name, words in self.elsewhere.items()
        ]
        unknown = "" if self.host.counters else f"{self.what}: no interface was counted"
        if self.is_on_fabric:
            violations, unknown = self._of_fabric(violations)
        return CellProof(
            cell=self.cell.id,
            layer=self.cell.layer,
            payload_bytes=self.host.payload.total,
            fabric_sent=self.carried.sent,
            fabric_received=self.carried.received,
            other_bytes=sum(self.others.values()),
            violations=tuple(violations),
            unknown=unknown,
            may_be_others=self.shared == self.own or bool(violations and self.shared in self.elsewhere),
        )

    def _of_fabric(self, violations: list[str]) -> tuple[list[str], str]:
        """Return violations, these among them, and what is not known, of a cell that must go over the fabric."""
        fabric, unknown = self.site.fabric, ""
        if self.own is None:
            where = self.host.name or "the node of its first rank"
            return [], f"{self.what}: the interface of fabric {fabric.name} was not identified on {where}"
        missing = list(_missing(self.what, self.counted, self.host.payload, self.carried))
        if not self.counted or self.own not in self.ways:
            unknown = f"{self.what}: no interface of {fabric.name} was counted"
        elif missing and len(self.counted) < len(self.ways):
            uncounted = ", ".join(name for name in self.ways if name not in self.counted)
            unknown = f"{self.what}: {', '.join(self.counted)} did not carry it, and what {uncounted} carries cannot be counted"
        else:
            violations, unknown = self._of_ways([*violations, *missing])
        if violations and UNKNOWN_CARRIER in self.carriers:
            return [], f"{violations[0]}; {self.own} is a tunnel, and nobody can tell what carries it"
        return violations, unknown

    def _of_ways(self, violations: list[str]) -> tuple[list[str], str]:
        """Return violations, these among them, and what is not known, where the ways that were counted carried enough to tell."""
        carried, payload, is_emulated = self.carried, self.host.payload, self.site.fabric.is_emulated
        unknown, own_ways = "", f"{self.what}: {', '.join(self.counted)}"
        if self.own == self.shared and not violations and _is_mostly_others(self.cell, self.end, payload, carried):
            unknown = f"{self.what}: {self.own} carried {carried.sent} B, of which its payload is {payload.sent} B; {OTHERS_TOO}"
        doubt = _rather_elsewhere(own_ways, carried, self.others, self.site.printed, is_needed=self.host.is_first)
        if payload.is_unknown and doubt:
            # A lab has no housekeeping: what is elsewhere there is the program's.
            violations = [doubt] if is_emulated and not violations else violations
            unknown = "" if violations else doubt
        elif payload.is_unknown and self.host.is_first:
            stray = STRAY_BYTES + (0 if is_emulated else STRAY_BYTES_S * _span_seconds(self.end))
            unknown = _too_little(own_ways, carried, self.others, stray, self.site.printed)
            if self.own == self.shared and not unknown:
                unknown = f"{own_ways} carried {carried.sent + carried.received} B; {OTHERS_TOO}"
        return violations, unknown


def _ways(
    layer: Layer, counters: Mapping[str, InterfaceBytes], interface: str | None, rdma: RdmaEnd | None
) -> dict[str, InterfaceBytes]:
    """Return the counters of each way onto the fabric: its interface, and for what may bypass the kernel its RDMA ports.

    These are the ports beside the interface; of several, or where nothing tells what lies beside them, the one that the testbed
    names. One that lies beside other interfaces alone is none, whoever names it: what it carries is elsewhere. A card below the
    interface is no way: what goes over it and not over its VLAN is on another network.
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
    is_named = device == rdma.device and rdma.port in (None, int(number))
    return is_named and (interface in counter.above or not counter.above)


def _span_seconds(end: CellEnd) -> float:
    """Return how long the counters ran at least: an operation's loops and looks are not in its `seconds`."""
    return max(end.seconds, ((end.end_unix_ns or 0) - (end.begin_unix_ns or 0)) * 1e-9)


def _missing(what: str, ways: Iterable[str], payload: Payload, carried: InterfaceBytes) -> Iterable[str]:
    """Return what no single way onto the fabric has carried: an InfiniBand port counts what its `ib0` counts as well."""
    for direction, least, found in (
        ("sent", payload.sent, carried.sent),
        ("received", payload.received, carried.received),
        ("sent and received", payload.either, carried.sent + carried.received),
    ):
        if found < least * (1 - MISSING_SHARE):
            yield f"{what}: {', '.join(ways)} {direction} {found} B, but the payload is {least} B: it went another way"


def _is_mostly_others(cell: Cell, end: CellEnd, payload: Payload, carried: InterfaceBytes) -> bool:
    """Tell whether a loopback carried so much besides the messages of two MPI ranks that others alone may account for them.

    Of MPI alone, which may take shared memory instead: what other layers send to an address of the loopback goes nowhere else.
    """
    if cell.layer is not Layer.MPI or cell.congestor is not None or PATTERNS[cell.pattern].family is not Family.PAIR:
        return False
    messages = end.measured * cell.operations_per_sample * cell.messages_per_sample
    own = (payload.sent + HEADER_BYTES * messages) * (1 + end.warmup / max(end.measured, 1))
    return carried.sent - own > payload.sent + CONTROL_BYTES + BACKGROUND_BYTES_S * _span_seconds(end)


def _rather_elsewhere(
    own_ways: str, carried: InterfaceBytes, others: Mapping[str, int], printed: int, *, is_needed: bool
) -> str:
    """Return why a program that nobody knows the payload of may have talked over another interface; empty if it has not.

    `is_needed`: its ranks on this host must have talked at all.
    """
    mine = carried.sent + carried.received
    if not mine and is_needed:
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


def _elsewhere(others: Mapping[str, int], moved: int, seconds: float, printed: int) -> dict[str, str]:
    """Return the interfaces that carried more than control traffic explains, and in words what that is at most."""
    allowed = CONTROL_BYTES + CONTROL_SHARE * moved + BACKGROUND_BYTES_S * seconds + printed
    what_else = " and what it printed" if printed else ""
    words = f"at most {allowed:.0f} B can be control traffic{what_else}"
    return {name: words for name, carried in others.items() if carried > allowed}
