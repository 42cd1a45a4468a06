"""The networks of hosts, from what each told of itself: which interfaces belong together, and which are no fabric and why.

Interfaces are grouped by the subnet of their addresses. What stays within a host (loopback, a container's or a virtual machine's
bridge), what another interface is made of (the ports of a bond), and what too few hosts have is left out. Pure: `node_facts` reads
the hosts, `first_file` writes what was found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from fabricbench.quantity import format_bit_s
from fabricbench.testbed.attachments import HOST_PREFIX, SILENT_STATES
from fabricbench.testbed.node_facts import NodeFacts, NodeInterface
from fabricbench.testbed.preflight_result import folded
from fabricbench.testbed.rdma import RdmaPort

INFINIBAND = "infiniband"

HOST_ONLY_KINDS = {"dummy", "tun", "wireguard", "ipip", "sit", "gre", "ifb", "nlmon", "vcan"}
"""Kinds of interfaces that lead into the host itself, or through another interface in disguise."""

HOST_ONLY_NAMES = re.compile(
    r"(docker|virbr|br-[0-9a-f]{12}|cni|flannel|cali|lxc|lxdbr|podman|vnet|weave|kube|tailscale)"
)
"""What container and virtual machine managers call theirs."""

CARRIERS = {"", "bond", "team", "vlan"}
"""What a bridge has as a port if it leads anywhere; without any it joins guests of one host."""

LEAST_SHARE = 0.5
"""A network that fewer of the hosts have is not offered as a fabric of all of them."""


@dataclass(frozen=True)
class Member:
    """A host's interface in a network, with its address there."""

    node: str
    interface: NodeInterface
    address: IPv4Interface


@dataclass(frozen=True)
class InterfaceGroup:
    """Interfaces that belong together, one of each host; `lacking` are the hosts that have none.

    `speed_bit_s` is what most of them run at, None where no driver tells. `remarks` are what a reader should look at.
    """

    members: tuple[Member, ...]
    name: str = ""
    lacking: tuple[str, ...] = ()
    speed_bit_s: float | None = None
    rdma: tuple[RdmaPort, ...] = ()
    is_control: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def interface(self) -> str | None:
        """The name of the interface where it is the same on every host."""
        names = {one.interface.name for one in self.members}
        return names.pop() if len(names) == 1 else None

    @property
    def subnets(self) -> tuple[IPv4Network, ...]:
        """The subnets of the members, each once."""
        return tuple(dict.fromkeys(one.address.network for one in self.members))

    @property
    def link(self) -> str:
        """`ethernet`, `infiniband`, or empty where hosts differ or do not tell."""
        found = {one.interface.link for one in self.members}
        return found.pop() if len(found) == 1 else ""

    @property
    def mtu(self) -> int:
        """What most of the interfaces have; of as many the smallest, which passes everywhere."""
        by_hosts = Counter(one.interface.mtu for one in self.members)
        return min(by_hosts, key=lambda mtu: (-by_hosts[mtu], mtu))

    @property
    def needs_subnet(self) -> bool:
        """Whether only a subnet tells the members' interfaces, or their addresses, from others."""
        several = any(len(one.interface.addresses) > 1 for one in self.members)
        return self.interface is None or (several and len(self.subnets) == 1)


@dataclass(frozen=True)
class LeftOutInterfaces:
    """Interfaces that are offered as no fabric: their name, the hosts that have it, and why not."""

    interface: str
    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Discovery:
    """What was found on the hosts."""

    nodes: tuple[str, ...]
    networks: tuple[InterfaceGroup, ...]
    left_out: tuple[LeftOutInterfaces, ...]
    idle_rdma: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """RDMA ports that no network is reached through, in words, with their hosts."""


def discover(facts: Mapping[str, NodeFacts], named: Mapping[str, IPv4Address] | None = None) -> Discovery:
    """Return the networks of hosts; the slow ones first, those of unknown speed before them.

    `named` is what the names of hosts lead to where they are asked from.
    """
    reasons: dict[tuple[str, str], list[str]] = {}
    members: list[Member] = []
    shared = _shared_addresses(facts)
    for node, host in facts.items():
        for interface in host.interfaces:
            reason = _why_no_fabric(interface, host, shared)
            if reason:
                reasons.setdefault((interface.name, reason), []).append(node)
            else:
                members += [Member(node, interface, address) for address in _usable(interface)]
    networks: list[InterfaceGroup] = []
    groups, further = _groups(members)
    for one in further:
        reason = f"a further subnet of it, {one.address.network}: two subnets of one card are one network"
        reasons.setdefault((one.interface.name, reason), []).append(one.node)
    for group in _joined(groups):
        chosen, doubled = _one_of_each_host(group)
        for one in doubled:
            reason = f"a second interface in {one.address.network}, which {chosen[0].interface.name} is in already"
            reasons.setdefault((one.interface.name, reason), []).append(one.node)
        if reason := _why_not_offered(chosen, len(facts)):
            for one in chosen:
                reasons.setdefault((one.interface.name, reason), []).append(one.node)
        else:
            networks.append(_described(chosen, facts, named or {}))
    ordered = sorted(networks, key=lambda one: (one.speed_bit_s or 0.0, one.interface or "", str(one.subnets[0])))
    return Discovery(
        nodes=tuple(facts),
        networks=_named(ordered),
        left_out=tuple(LeftOutInterfaces(name, tuple(nodes), reason) for (name, reason), nodes in reasons.items()),
        idle_rdma=_idle_rdma(facts, networks),
    )


USUAL_BIT_S = tuple(rate * 1e9 for rate in (0.01, 0.1, 1, 2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800))
NEAR = 0.06
"""A stream misses a usual line rate by less, where the processor does not limit it."""


def with_measured(found: Discovery, rates: Mapping[str, float]) -> Discovery:
    """Return what was found with line rates that were measured, by the networks' names, where no driver told any.

    One that is near a usual rate is taken for it. A network keeps its name: what was measured is less sure than what it is called.
    """
    return replace(found, networks=tuple(_with_rate(one, rates.get(one.name)) for one in found.networks))


def _with_rate(network: InterfaceGroup, measured: float | None) -> InterfaceGroup:
    if measured is None or network.speed_bit_s is not None:
        return network
    usual = min(USUAL_BIT_S, key=lambda rate: abs(rate / measured - 1))
    rate = usual if abs(usual / measured - 1) < NEAR else float(f"{measured:.2g}")
    remark = f"its line rate was measured: the median pair carried what {format_bit_s(measured)} leaves of payload"
    return replace(network, speed_bit_s=rate, remarks=(*network.remarks, remark))


def _shared_addresses(facts: Mapping[str, NodeFacts]) -> set[IPv4Address]:
    """Return the addresses that several hosts have: those of networks within each host (docker0 is 172.17.0.1 everywhere)."""
    hosts = Counter(
        address
        for host in facts.values()
        for address in {one.ip for interface in host.interfaces for one in interface.addresses}
    )
    return {address for address, number in hosts.items() if number > 1}


def _usable(interface: NodeInterface) -> list[IPv4Interface]:
    return [one for one in interface.addresses if not one.ip.is_link_local and not one.ip.is_loopback]


def _why_no_fabric(interface: NodeInterface, host: NodeFacts, shared: set[IPv4Address]) -> str:
    """Return why an interface belongs to no fabric by itself; empty where it may."""
    if interface.is_loopback:
        return "the loopback interface"
    if interface.master:
        return f"a port of {interface.master}"
    return _why_within_host(interface, host) or _why_without_address(interface, host, shared)


def _why_within_host(interface: NodeInterface, host: NodeFacts) -> str:
    ports = [one for one in host.interfaces if one.master == interface.name]
    if interface.kind in HOST_ONLY_KINDS:
        return f"of kind {interface.kind}, which is no network of its own"
    if HOST_ONLY_NAMES.match(interface.name) or (
        interface.kind == "bridge" and not any(one.kind in CARRIERS for one in ports)
    ):
        return "leads to containers or virtual machines of the host"
    return ""


def _why_without_address(interface: NodeInterface, host: NodeFacts, shared: set[IPv4Address]) -> str:
    usable = _usable(interface)
    if not usable:
        is_rdma = any(interface.name == port.netdev for port in host.rdma)
        down = f", and is {interface.state}" if interface.state in SILENT_STATES else ""
        lacks = "no IPv4 address" if not interface.addresses else "a link-local address only"
        return f"{lacks}{down}" + (
            "; it belongs to an RDMA device: give it an address to measure it" if is_rdma else ""
        )
    if all(one.ip in shared for one in usable):
        return f"the same address on several hosts ({usable[0].ip}): a network within each of them"
    return ""


def _groups(members: Iterable[Member]) -> tuple[list[list[Member]], list[Member]]:
    """Return members by the subnet of their address, and those in a further subnet of the same interfaces, which is no group."""
    groups: dict[IPv4Network | str, list[Member]] = {}
    for one in members:
        network = one.address.network
        alone = network.prefixlen == HOST_PREFIX
        groups.setdefault(one.interface.name if alone else network, []).append(one)
    found: list[list[Member]] = []
    further: list[Member] = []
    seen: set[frozenset[tuple[str, str]]] = set()
    for group in sorted(groups.values(), key=len, reverse=True):
        ends = frozenset((one.node, one.interface.name) for one in group)
        if not any(ends <= other for other in seen):
            seen.add(ends)
            found.append(group)
        else:
            further += group
    return found, further


def _joined(groups: Sequence[list[Member]]) -> list[list[Member]]:
    """Join groups of different hosts whose interface has the same name and link: each rack has a subnet of its own."""
    found: list[list[Member]] = []
    by_name: dict[tuple[str, str], list[Member]] = {}
    for group in groups:
        kinds = {(one.interface.name, one.interface.link) for one in group}
        there = by_name.get(next(iter(kinds))) if len(kinds) == 1 else None
        if there is not None and not {one.node for one in group} & {one.node for one in there}:
            there += group
            continue
        found.append(list(group))
        if len(kinds) == 1:
            by_name.setdefault(next(iter(kinds)), found[-1])
    return found


def _one_of_each_host(group: Sequence[Member]) -> tuple[list[Member], list[Member]]:
    """Return one member of each host, by the name that most hosts have, and the others."""
    names = Counter(one.interface.name for one in group)
    chosen: dict[str, Member] = {}
    others: list[Member] = []
    for one in sorted(group, key=lambda one: (-names[one.interface.name], one.interface.name)):
        if one.node not in chosen:
            chosen[one.node] = one
        elif one.interface.name != chosen[one.node].interface.name:
            others.append(one)
    order = list(dict.fromkeys(one.node for one in group))
    return [chosen[node] for node in order], others


def _why_not_offered(members: Sequence[Member], hosts: int) -> str:
    if all(one.interface.state in SILENT_STATES for one in members):
        return "down on every host that has it"
    if len(members) < LEAST_SHARE * hosts or (len(members) == 1 and hosts > 1):
        return f"only {len(members)} of {hosts} hosts have an interface in {members[0].address.network}"
    return ""


def _described(
    members: Sequence[Member], facts: Mapping[str, NodeFacts], named: Mapping[str, IPv4Address]
) -> InterfaceGroup:
    ports = {(one.node, port.name): port for one in members for port in facts[one.node].rdma_below(one.interface)}
    rates = {one.node: speed_bit_s(one.interface, facts[one.node]) for one in members}
    told = Counter(rate for rate in rates.values() if rate is not None)
    attached = {one.node for one in members}
    network = InterfaceGroup(
        members=tuple(members),
        lacking=tuple(node for node in facts if node not in attached),
        speed_bit_s=max(told, key=lambda rate: (told[rate], rate)) if told else None,
        rdma=tuple({port.name: port for port in ports.values()}.values()),
        is_control=2
        * sum(one.interface.has(at) for one in members if (at := facts[one.node].reached_at or named.get(one.node)))
        > len(members),
    )
    remarks = [*_named_there(network, named), *_remarks(network, rates, facts)]
    return replace(network, remarks=tuple(remarks))


def _named_there(network: InterfaceGroup, named: Mapping[str, IPv4Address]) -> Iterator[str]:
    """Yield that the names of hosts lead to a network which is not the one that they were asked over."""
    hosts = [one.node for one in network.members if (at := named.get(one.node)) is not None and one.interface.has(at)]
    if hosts and not network.is_control:
        yield (
            f"the names of {folded(hosts)} lead to it: what ssh and MPI starters say to them by name goes over it and is measured "
            "as well; let these names lead to another network, or write others into `nodes`"
        )


def speed_bit_s(interface: NodeInterface, host: NodeFacts) -> float | None:
    """Return what an interface runs at: over InfiniBand the port's rate, which IPoIB does not know."""
    if interface.link == INFINIBAND:
        rates = [port.rate_bit_s for port in host.rdma_below(interface) if port.rate_bit_s is not None]
        if rates:
            return max(rates)
    return interface.speed_bit_s


def _remarks(
    network: InterfaceGroup, rates: Mapping[str, float | None], facts: Mapping[str, NodeFacts]
) -> Iterator[str]:
    """Yield what of a network is not as in a book."""
    members = network.members
    if network.lacking:
        yield f"{folded(network.lacking)} has no interface in it: mend that, or leave the host out of `nodes`"
    if len(network.subnets) > 1:
        named = ", ".join(map(str, network.subnets[:3])) + (", ..." if len(network.subnets) > 3 else "")
        yield f"its hosts are in {len(network.subnets)} subnets ({named}): a router lies between them and is measured as well"
    for kind, what in (("bond", "a bond of"), ("team", "a team of"), ("bridge", "a bridge over")):
        made = {
            ", ".join(port.name for port in facts[one.node].interfaces if port.master == one.interface.name)
            for one in members
            if one.interface.kind == kind
        }
        if made:
            more = ": one stream takes one of its links only" if kind != "bridge" else ""
            yield f"{what} {' or '.join(sorted(made))}{more}"
    vlans = {(one.interface.vlan, one.interface.below) for one in members if one.interface.kind == "vlan"}
    for tag, below in sorted(vlans, key=str):
        yield f"VLAN {tag} on {below or 'another interface'}, whose link it shares with what else goes over that"
    tunnels = {(one.interface.kind, one.interface.carriers) for one in members if one.interface.carriers}
    for kind, carriers in sorted(tunnels):
        over = " and ".join(name or "what the kernel does not tell" for name in carriers)
        yield f"a tunnel ({kind}) over {over}, whose link it shares with what else goes over that"
    yield from _odd("runs at", {node: format_bit_s(rate) for node, rate in rates.items() if rate is not None})
    yield from _odd("has MTU", {one.node: str(one.interface.mtu) for one in members})
    down = [one.node for one in members if one.interface.state in SILENT_STATES]
    if down:
        yield f"it is down on {folded(down)}"
    layers = {port.link_layer or "link layer not told" for port in network.rdma}
    if network.rdma:
        named = ", ".join(port.name for port in network.rdma[:3])
        is_roce = "Ethernet" in layers
        yield f"RDMA through {named} ({'RoCE' if is_roce else ', '.join(sorted(layers))})"


def _odd(what: str, values: Mapping[str, str]) -> Iterator[str]:
    """Yield which hosts differ from most of them."""
    by_hosts = Counter(values.values())
    if len(by_hosts) > 1:
        usual = by_hosts.most_common(1)[0][0]
        for value in [one for one in by_hosts if one != usual]:
            nodes = [node for node, found in values.items() if found == value]
            yield f"{folded(nodes)} {what} {value}, the others {usual}"


def _named(networks: Sequence[InterfaceGroup]) -> tuple[InterfaceGroup, ...]:
    """Give each network a name by what it is, those that are alike one with their interface, or a number."""
    plain = [_plain_name(one) for one in networks]
    alike = [
        f"{name}-{_word(network.interface)}" if plain.count(name) > 1 and network.interface else name
        for name, network in zip(plain, networks, strict=True)
    ]
    found: list[InterfaceGroup] = []
    taken: set[str] = set()
    for name, network in zip(alike, networks, strict=True):
        free = next(
            each
            for number in range(len(networks) + 1)
            if (each := f"{name}-{number + 1}" if number else name) not in taken
        )
        taken.add(free)
        found.append(replace(network, name=free))
    return tuple(found)


def _plain_name(network: InterfaceGroup) -> str:
    if network.speed_bit_s is not None and network.link:
        return f"{network.link}-{_rate_word(network.speed_bit_s)}"
    return _word(network.interface) or f"network-{network.subnets[0].network_address}"


def _rate_word(bit_s: float) -> str:
    """Return `1g`, `2.5g`, `100m`."""
    return f"{bit_s / 1e9:g}g" if bit_s >= 1e9 else f"{bit_s / 1e6:g}m"


def _word(name: str | None) -> str:
    """Return an interface's name as a fabric may be called."""
    return re.sub(r"[^a-z0-9._-]", "-", (name or "").lower()).lstrip("._-")


def _idle_rdma(
    facts: Mapping[str, NodeFacts], networks: Iterable[InterfaceGroup]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the RDMA ports that no network is reached through, with their hosts."""
    used = {
        (one.node, port.name)
        for network in networks
        for one in network.members
        for port in facts[one.node].rdma_below(one.interface)
    }
    found: dict[str, list[str]] = {}
    for node, host in facts.items():
        for port in host.rdma:
            if (node, port.name) not in used:
                rate = f", {format_bit_s(port.rate_bit_s)}" if port.rate_bit_s else ""
                state = f", {port.state.lower()}" if port.state else ""
                found.setdefault(f"{port.name} ({port.link_layer or 'link layer not told'}{rate}{state})", []).append(
                    node
                )
    return tuple((what, tuple(nodes)) for what, nodes in found.items())
