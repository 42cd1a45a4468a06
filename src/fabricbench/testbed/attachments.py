"""How nodes are attached to their fabrics, and what is wrong with that: interfaces, MTU, addresses, RDMA ports, what is shared.

Shared are an interface or a subnet by two fabrics, the carrier of a tunnel, the network over which nodes are reached. Pure; a part
of the preflight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from itertools import combinations

from fabricbench.model import Layer, RdmaEnd
from fabricbench.quantity import format_bytes
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from fabricbench.testbed.node_facts import NodeFacts, NodeInterface
from fabricbench.testbed.own_interface import device_of
from fabricbench.testbed.preflight_result import PAIR, Finding, FindingSeverity, Silent, folded
from fabricbench.testbed.rdma import RdmaPort
from fabricbench.testbed.tunnels import UNKNOWN_CARRIER

SILENT_STATES = {"down", "lowerlayerdown", "notpresent"}
HOST_PREFIX = 32


@dataclass(frozen=True)
class Attached:
    """A node's interface in a fabric, with its address there."""

    node: str
    fabric: Fabric
    interface: NodeInterface
    address: IPv4Interface | None


def attachments_of(testbed: Testbed, node: Node, facts: NodeFacts) -> tuple[list[Attached], list[Finding]]:
    """Return how a node is attached to each fabric that has an interface, and what is wrong with that."""
    attached: list[Attached] = []
    findings: list[Finding] = []
    offered = _offered(facts, testbed.launcher)
    for fabric in testbed.fabrics:
        if fabric.has_interface and (not fabric.nodes or node.name in fabric.nodes):
            found = _attachment(node, fabric, facts)
            findings += _of_one(node, fabric, offered, found)
            attached += [found] if found else []
    return attached, findings


def attached_alike(
    testbed: Testbed, answers: Mapping[str, NodeFacts | Silent], attached: Sequence[Attached]
) -> Iterator[Finding]:
    """Yield what is wrong with the attachments of all nodes taken together."""
    yield from _mtus(testbed.fabrics, attached)
    yield from _distinct(testbed.fabrics, attached)
    yield from _joined(testbed, answers, attached)


def _attachment(node: Node, fabric: Fabric, facts: NodeFacts) -> Attached | None:
    """Find a node's interface as the measurer does: by name, else by the address in the subnet."""
    for interface in facts.interfaces:
        if fabric.interface is not None:
            if interface.name == fabric.interface:
                return Attached(node.name, fabric, interface, interface.address_in(fabric.subnet))
        elif (address := interface.address_in(fabric.subnet)) is not None:
            return Attached(node.name, fabric, interface, address)
    return None


def _offered(facts: NodeFacts, launcher: LauncherKind) -> list[NodeInterface]:
    """Return the interfaces of a node that a fabric may have: none that stays within the node, unless the nodes are one machine."""
    return [one for one in facts.interfaces if launcher is LauncherKind.LOCAL or not one.is_loopback]


def _of_one(node: Node, fabric: Fabric, offered: list[NodeInterface], found: Attached | None) -> Iterator[Finding]:
    where = {"node": node.name, "fabric": fabric.name}
    there = ", ".join(map(str, offered)) or "no interface at all"
    if found is None and fabric.interface is not None:
        yield Finding(
            **where,
            subject="interface",
            found=f"no interface {fabric.interface}; there are {', '.join(one.name for one in offered)}",
            needed=f"interface {fabric.interface}",
            action=_other_name(fabric.interface, offered),
        )
    elif found is None:
        yield Finding(
            **where,
            subject="interface",
            found=f"no interface with an address in {fabric.subnet}; there are {there}",
            needed=f"an address in {fabric.subnet}",
            action="correct `subnet` in the testbed, or give the node its address",
        )
    elif found.interface not in offered:
        yield Finding(
            **where,
            subject="interface",
            found=f"{found.interface}, the loopback interface",
            needed="an interface that leads to the other nodes",
            action=f"correct the fabric's `interface` or `subnet`; there are {there}",
        )
    else:
        if fabric.interface is None:
            yield from _ambiguous(where, fabric, offered, found)
        yield from _state(where, found.interface)
        yield from _address(where, node, fabric, found)


def _ambiguous(
    where: dict[str, str], fabric: Fabric, offered: list[NodeInterface], found: Attached
) -> Iterator[Finding]:
    """Yield that more than one interface of a node is in the fabric's subnet: which of them is meant nobody can know."""
    named = [one.name for one in offered if one.address_in(fabric.subnet) is not None]
    if len(named) > 1:
        yield Finding(
            **where,
            subject="subnet",
            found=f"{' and '.join(named)} with addresses in {fabric.subnet}; {found.interface.name} would be measured",
            needed="one interface of a node in the subnet of a fabric",
            action="name the `interface` in the testbed, or narrow the `subnet`",
        )


def _other_name(name: str, offered: Iterable[NodeInterface]) -> str:
    device = device_of(name)
    if device != name and any(one.name == device for one in offered):
        return f"{name} is a label of an address of {device}: write its `subnet` in the testbed, and no `interface`"
    return "correct `interface` in the testbed; where nodes name it differently, give the `subnet` instead"


WITHOUT_RDMA = "or take rdma out of the fabric's `layers`"


def judge_rdma(one: Attached, facts: NodeFacts, largest_bytes: int) -> Iterator[Finding]:
    """Yield what keeps layer rdma from the port that the measurer would take: the one that is named, else that of the interface.

    One that is named must lie below the fabric's interface too, where it lies below any: else another fabric is measured.
    """
    where = {"node": one.node, "fabric": one.fabric.name, "subject": "rdma"}
    end = one.fabric.rdma or RdmaEnd()
    by_name = [port for port in facts.rdma if end.device is None or port.device == end.device]
    ports = [port for port in by_name if end.port is None or port.port == end.port]
    below = facts.rdma_below(one.interface)
    beside = [port for port in ports if port in below or (end.device is not None and not port.beside)]
    there = ", ".join(
        f"{port.name} ({', '.join(port.beside) or 'beside no interface that is told'})" for port in facts.rdma
    )
    wanted = f"RDMA device {end.device} beside" if end.device else "an RDMA port beside"
    wanted += f" {one.interface.name}"
    wanted += "" if end.port is None else f" with port {end.port}"
    if not facts.rdma:
        yield Finding(
            **where,
            found="no RDMA device: /sys/class/infiniband is empty",
            needed=wanted,
            action=f"load the adapter's driver (`rdma link` shows what there is), {WITHOUT_RDMA}",
        )
    elif not ports or (not beside and all(port.beside for port in ports)):
        yield Finding(
            **where, found=f"RDMA ports {there}", needed=wanted, action=f"correct `rdma` of the fabric, {WITHOUT_RDMA}"
        )
    for port in beside[:1]:
        if port.state != "ACTIVE":
            yield Finding(
                **where,
                found=f"{port.name} is {port.state or 'in no state that is told'}",
                needed="a port that is ACTIVE",
                action="check the cable, the switch's port and, on InfiniBand, the subnet manager",
            )
        elif port.is_allowed is False:
            yield Finding(
                **where,
                found=f"{port.device}, which this user may not open",
                needed="leave to read and write /dev/infiniband/uverbs*",
                action="chmod 666 by a udev rule, as rdma-core does, or add the user to the group `rdma`",
            )
        yield from _gid(where, port, end, facts.names_below(one.interface))
        if port.largest_message_bytes is not None and port.largest_message_bytes < largest_bytes:
            yield Finding(
                **where,
                found=f"{port.name} takes messages of at most {format_bytes(port.largest_message_bytes)} (max_msg_sz)",
                needed=f"room for {format_bytes(largest_bytes)}, the largest message over layer rdma",
                action="leave larger messages out of the campaign's `message_bytes`",
            )


def _gid(where: Mapping[str, str], port: RdmaPort, end: RdmaEnd, interfaces: set[str]) -> Iterator[Finding]:
    """Yield why the address (GID) that the testbed names is not one of the fabric's."""
    if end.gid_index is None or not port.gid_netdevs:
        return
    netdev = port.gid_netdevs.get(end.gid_index)
    there = ", ".join(f"{index}" + (f" ({name})" if name else "") for index, name in port.gid_netdevs.items())
    if netdev is None:
        yield Finding(
            **where,
            found=f"{port.name} has no address (GID) of index {end.gid_index}; it has {there}",
            needed=f"the address of index {end.gid_index} that `rdma` names",
            action="correct `gid_index` of the fabric's `rdma`, or leave it out: then the interface's own is taken",
        )
    elif netdev and netdev not in interfaces:
        yield Finding(
            **where,
            found=f"the address (GID) of index {end.gid_index} of {port.name} is of {netdev}; it has {there}",
            needed=f"an address of {' or '.join(sorted(interfaces))}",
            action="correct `gid_index` of the fabric's `rdma`, or leave it out: then the interface's own is taken",
        )


def _state(where: Mapping[str, str], interface: NodeInterface) -> Iterator[Finding]:
    if interface.state in SILENT_STATES:
        yield Finding(
            **where,
            subject="interface",
            found=f"{interface.name} is {interface.state}",
            needed="an interface that is up",
            action=f"`ip link set dev {interface.name} up` there; check the cable and the switch's port",
        )


def _mtus(fabrics: Iterable[Fabric], attached: Iterable[Attached]) -> Iterator[Finding]:
    """Yield the interfaces whose MTU is not the testbed's; where nodes disagree, those that differ from most of them."""
    found = [one for one in attached if not one.interface.is_loopback]
    for fabric in fabrics:
        members = [one for one in found if one.fabric is fabric]
        by_nodes = Counter(one.interface.mtu for one in members)
        # Among as many the testbed's own, then the smallest: that passes everywhere.
        usual = min(by_nodes, key=lambda mtu: (-by_nodes[mtu], mtu != fabric.mtu, mtu), default=fabric.mtu)
        if len(by_nodes) > 1:
            same = [one.node for one in members if one.interface.mtu == usual]
            for one in members:
                if one.interface.mtu != usual:
                    yield _odd_mtu(one, usual, same)
        elif usual != fabric.mtu:
            for one in members:
                yield _mtu_of_all(one)


def _odd_mtu(one: Attached, usual: int, same: list[str]) -> Finding:
    is_told = usual == one.fabric.mtu
    correct = "" if is_told else f", and `mtu = {usual}` in the testbed, which says {one.fabric.mtu}"
    return Finding(
        node=one.node,
        fabric=one.fabric.name,
        subject="mtu",
        found=f"MTU {one.interface.mtu} of {one.interface.name}",
        needed=f"MTU {usual}, as on {folded(same)}" + " and in the testbed" * is_told,
        action=f"`ip link set dev {one.interface.name} mtu {usual}` there{correct}",
    )


def _mtu_of_all(one: Attached) -> Finding:
    interface, told_mtu = one.interface, one.fabric.mtu
    raised = f"`ip link set dev {interface.name} mtu {told_mtu}` on every node, if the switch carries that; else "
    return Finding(
        node=one.node,
        fabric=one.fabric.name,
        subject="mtu",
        found=f"MTU {interface.mtu} of {interface.name}",
        needed=f"MTU {told_mtu}, as the testbed says (1500 where it says nothing)",
        action=(raised if interface.mtu < told_mtu else "") + f"write `mtu = {interface.mtu}` in the testbed",
    )


def _address(where: Mapping[str, str], node: Node, fabric: Fabric, found: Attached) -> Iterator[Finding]:
    needs_address = any(layer not in (Layer.MEMORY, Layer.FRAME) for layer in fabric.layers)
    if found.address is None and needs_address:
        yield Finding(
            **where,
            subject="address",
            found=str(found.interface) + ("" if found.interface.addresses else ", which has no IPv4 address"),
            needed=f"an address in {fabric.subnet}" if fabric.subnet else "an IPv4 address",
            action=f"give {found.interface.name} its address, or correct the fabric's `interface` or `subnet`",
        )
    told_address = node.address_on(fabric)
    if told_address is not None and not found.interface.has(told_address):
        yield Finding(
            **where,
            subject="address",
            found=str(found.interface),
            needed=f"the address {told_address} that [[node]] gives",
            action="correct `addresses` of the [[node]] in the testbed",
        )


def _distinct(fabrics: Iterable[Fabric], attached: Iterable[Attached]) -> Iterator[Finding]:
    """Yield pairs of fabrics that are one: by what the testbed says, else by where nodes found them."""
    found = list(attached)
    for one, other in combinations([fabric for fabric in fabrics if fabric.has_interface], 2):
        if one.condition_of and one.condition_of == other.condition_of:
            continue
        if one.network == other.network:
            continue
        yield from _carried(one, other, found)
        pair = PAIR.join((one.name, other.name))
        what = _shared(one, other)
        nodes = [""] if what else []
        if not what:
            both = [
                (mine, theirs)
                for mine in found
                for theirs in found
                if mine.fabric is one and theirs.fabric is other and mine.node == theirs.node
            ]
            for mine, theirs in both:
                shared = _shared_on_node(mine, theirs)
                what, nodes = (shared, [*nodes, mine.node]) if shared else (what, nodes)
        for node in nodes:
            yield Finding(
                node=node,
                fabric=pair,
                subject="distinct",
                found=f"{what} for both",
                needed="fabrics that are apart: this compares a network with itself",
                action="correct `interface` or `subnet`; two conditions of one fabric get the same `condition_of`",
            )


def _carried(one: Fabric, other: Fabric, attached: Sequence[Attached]) -> Iterator[Finding]:
    """Yield the nodes on which one of two fabrics is a tunnel through the other."""
    here = {(each.fabric.name, each.node): each.interface for each in attached if each.fabric in (one, other)}
    for tunnel, carrier in ((one, other), (other, one)):
        for (name, node), interface in here.items():
            below = here.get((carrier.name, node))
            if name == tunnel.name and below is not None and below.name in interface.carriers:
                yield Finding(
                    severity=FindingSeverity.WARNING,
                    node=node,
                    fabric=PAIR.join((one.name, other.name)),
                    subject="distinct",
                    found=f"that {tunnel.name} ({interface.name}) is a tunnel over {below.name}, which is {carrier.name}",
                    needed="a reader who knows: this compares a network with itself inside a tunnel",
                    action="nothing, if what the tunnel costs is the question; else take one of the two out",
                )


def _shared(one: Fabric, other: Fabric) -> str:
    if one.interface is not None and one.interface == other.interface:
        return f"the interface {one.interface}"
    if one.subnet is not None and other.subnet is not None and one.subnet.overlaps(other.subnet):
        return f"{one.subnet} and {other.subnet}, which overlap,"
    return ""


def _shared_on_node(mine: Attached, theirs: Attached) -> str:
    if mine.interface.name == theirs.interface.name:
        subnets = {each.address.network for each in (mine, theirs) if each.address is not None}
        are_twins = ", two subnets of one card," if len(subnets) > 1 else ""
        return f"the interface {mine.interface}{are_twins}"
    if mine.address and theirs.address and mine.address.network.overlaps(theirs.address.network):
        return f"the subnet {mine.address.network} on {mine.interface.name} and {theirs.interface.name}"
    return ""


def _joined(
    testbed: Testbed, answers: Mapping[str, NodeFacts | Silent], attached: Iterable[Attached]
) -> Iterator[Finding]:
    """Yield what keeps the nodes of a fabric from being neighbours: an address that two have, subnets that differ."""
    if testbed.launcher is LauncherKind.LOCAL:  # all nodes are this machine
        return
    found = [one for one in attached if one.address is not None and not one.address.ip.is_loopback]
    for fabric in testbed.fabrics:
        first: dict[str, str] = {}
        networks: dict[str, list[str]] = {}
        for one in found:
            if one.fabric is not fabric or one.address is None:
                continue
            holder = first.setdefault(str(one.address.ip), one.node)
            if holder != one.node:
                yield _address_of_two(one, holder, answers)
            if one.address.network.prefixlen < HOST_PREFIX:
                networks.setdefault(str(one.address.network), []).append(one.node)
        if len(networks) > 1:
            yield Finding(
                severity=FindingSeverity.WARNING,
                fabric=fabric.name,
                subject="address",
                found="; ".join(f"{folded(nodes)} in {network}" for network, nodes in networks.items()),
                needed="one subnet for all nodes, or a router between them, which is then measured as well",
                action="check that these interfaces belong to the same fabric",
            )


def _address_of_two(one: Attached, holder: str, answers: Mapping[str, NodeFacts | Silent]) -> Finding:
    mine, theirs = answers[one.node], answers[holder]
    is_one_machine = isinstance(mine, NodeFacts) and isinstance(theirs, NodeFacts) and mine.host == theirs.host
    same = "the same machine goes by both names" if is_one_machine else "two machines have it"
    return Finding(
        severity=FindingSeverity.WARNING if is_one_machine else FindingSeverity.ERROR,
        node=one.node,
        fabric=one.fabric.name,
        subject="address",
        found=f"{one.address} on {one.interface.name}, which {holder} has too: {same}",
        needed="an address of its own",
        action="name each machine once in `nodes`" if is_one_machine else "give each node an address of its own",
    )


def judge_control(attached: Iterable[Attached], facts: NodeFacts, named: IPv4Address | None) -> Iterator[Finding]:
    """Yield the fabrics over which a node is reached: what ssh and starters say to it goes over what is measured.

    Nothing of a node that has no other network.
    """
    outward = [one for one in facts.interfaces if one.addresses and not one.is_loopback and one.kind != "bridge"]
    reached_at = facts.reached_at
    for one in attached if len(outward) > 1 else ():
        for address, how in ((named, "its name leads to"), (reached_at, "who asks it arrives at")):
            if address is not None and one.interface.has(address):
                yield Finding(
                    severity=FindingSeverity.WARNING,
                    node=one.node,
                    fabric=one.fabric.name,
                    subject="control",
                    found=f"that {how} {one.interface.name} of this fabric",
                    needed="another network for ssh and the starter's own connections, or they are measured as well",
                    action="let the names in `nodes` lead to the control network (/etc/hosts, ~/.ssh/config)",
                )
                break


def judge_tunnel(one: Attached) -> Iterator[Finding]:
    """Yield that a fabric's interface is a tunnel, and what carries it."""
    carriers = one.interface.carriers
    if not carriers:
        return
    unknown = "an interface that the kernel does not tell" if UNKNOWN_CARRIER in carriers else ""
    over = " and ".join(filter(None, (*carriers, unknown)))
    yield Finding(
        severity=FindingSeverity.WARNING,
        node=one.node,
        fabric=one.fabric.name,
        subject="tunnel",
        found=f"that {one.interface.name} is a tunnel ({one.interface.kind}) over {over}",
        needed="a network of its own, or a reader who knows: its packets cross the carrier as well, with headers of their own",
        action="nothing, if the tunnel is what is to be measured"
        + ("; whether its traffic takes it cannot be proven: give the carrier as a fabric instead" if unknown else ""),
    )


def judge_neighbours(one: Attached, facts: NodeFacts) -> Iterator[Finding]:
    """Yield a further interface of the node in a fabric's subnet: the kernel answers and sends by either (ARP flux)."""
    if one.address is None or one.address.network.prefixlen >= HOST_PREFIX:
        return
    network = one.address.network
    for other in facts.interfaces:
        if other.name != one.interface.name and not other.is_loopback and other.address_in(network) is not None:
            yield Finding(
                severity=FindingSeverity.WARNING,
                node=one.node,
                fabric=one.fabric.name,
                subject="subnet",
                found=f"{one.interface.name} and {other.name} in one subnet, {network}",
                needed="one interface in each subnet: the kernel sends by the first route and answers for each address on both",
                action=f"give {other.name} a subnet of its own, or set arp_ignore = 1 and arp_announce = 2 "
                "(net.ipv4.conf.all) and a route for each address",
            )
