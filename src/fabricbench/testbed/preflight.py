"""Whether a testbed is there as its file says, from what its nodes told of themselves: facts in, findings out.

Programs, versions and load of each node, then how it is attached to its fabrics: interfaces, MTU, addresses. Pure. An error is
what would spoil or stop the run, a warning what a reader of its numbers should know. Asking the nodes is `campaign.preflight`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Interface
from itertools import combinations

from fabricbench.model import Layer, RdmaEnd
from fabricbench.native import BUILD_DIGITS
from fabricbench.testbed.advice import BUSY_SHARE
from fabricbench.testbed.model import Fabric, Launcher, Node, Testbed
from fabricbench.testbed.node_facts import NodeFacts, NodeInterface
from fabricbench.testbed.preflight_result import (
    PAIR,
    Attachment,
    Finding,
    NodeResult,
    Preflight,
    Severity,
    Silent,
    folded,
)

SAME_BUILD = "install the same build at the same path on every node"


@dataclass(frozen=True)
class Needed:
    """What must be on each node: the version of fabricbench, programs by path with what each prints as its version, the MPI.

    `builds` are the SHA-256 of programs by path, as they are here, on processors of `architecture`. Those of `higher_levels` are
    for processors that a node need not have: there the same file is enough, whether it runs or not. Over the fabrics `by_rdma`
    layer rdma is measured.
    """

    version: str
    programs: Mapping[str, str]
    mpi: str | None = None
    builds: Mapping[str, str] = field(default_factory=dict)
    architecture: str = ""
    higher_levels: frozenset[str] = frozenset()
    by_rdma: frozenset[str] = frozenset()


def judge(
    testbed: Testbed,
    answers: Mapping[str, NodeFacts | Silent],
    needed: Needed,
    mpi: Mapping[str, str] | None = None,
) -> Preflight:
    """Return the testbed as it was found. `mpi` maps nodes to the version of the MPI there, where it is known."""
    findings: list[Finding] = []
    attached: list[Attached] = []
    for node in testbed.nodes:
        answer = answers[node.name]
        if isinstance(answer, Silent):
            what = f"fabricbench {needed.version}" + (" within reach" if answer.subject == "reach" else "")
            findings.append(
                Finding(node=node.name, subject=answer.subject, found=answer.found, needed=what, action=answer.action)
            )
            continue
        findings += _installation(node.name, answer, needed, (mpi or {}).get(node.name))
        if testbed.launcher.is_cluster:  # of this machine a run tells itself, by what it does just then
            findings += _load(node.name, answer)
        of_node, wrong = attachments_of(testbed, node, answer)
        attached += of_node
        findings += wrong
        for one in of_node:
            if one.fabric.name in needed.by_rdma:
                findings += _rdma(one, answer)
    findings += attached_alike(testbed, answers, attached)
    return Preflight(
        testbed=testbed.name,
        nodes=tuple(_result(node.name, answers[node.name], attached) for node in testbed.nodes),
        findings=tuple(sorted(findings, key=lambda one: one.severity is not Severity.ERROR)),
    )


def _result(name: str, answer: NodeFacts | Silent, attached: Iterable[Attached]) -> NodeResult:
    if isinstance(answer, Silent):
        return NodeResult(name=name)
    attachments = {
        one.fabric.name: Attachment(
            interface=one.interface.name,
            address=str(one.address or ""),
            mtu=one.interface.mtu,
            state=one.interface.state,
        )
        for one in attached
        if one.node == name
    }
    return NodeResult(
        name=name,
        host=answer.host,
        version=answer.version,
        load=answer.load,
        processors=answer.processors,
        attachments=attachments,
    )


def _installation(node: str, facts: NodeFacts, needed: Needed, mpi: str | None) -> Iterator[Finding]:
    def unlike(subject: str, found: str, wanted: str, action: str, severity: Severity = Severity.ERROR) -> Finding:
        return Finding(severity=severity, node=node, subject=subject, found=found, needed=wanted, action=action)

    if facts.version != needed.version:
        found = f"fabricbench {facts.version}"
        wanted = f"fabricbench {needed.version}, as here"
        yield unlike("fabricbench", found, wanted, "install the same version at the same path on every node")
    for path, version in needed.programs.items():
        there = facts.programs.get(path, "nothing was told of it")
        is_same_file = path in needed.builds and facts.builds.get(path) == needed.builds[path]
        if path in needed.higher_levels and is_same_file:
            continue
        if there != version:
            wanted = f"{version} at that path, as here"
            yield unlike("program", f"{path}: {there}", wanted, SAME_BUILD)
        elif path in needed.builds:
            yield from _build(node, facts, needed, path)
    if needed.mpi is not None and mpi != needed.mpi:
        found = f"MPI {mpi}" if mpi else "no MPI that answers"
        wanted = f"{needed.mpi}, as here: other versions may not start, or differ in speed"
        action = "install the same MPI on every node" if mpi else "run `fabricbench doctor` there, which says why"
        yield unlike("mpi", found, wanted, action, Severity.WARNING)


def _build(node: str, facts: NodeFacts, needed: Needed, path: str) -> Iterator[Finding]:
    """Yield what a program of the right version is otherwise: versions are the same from one release to the next."""
    there, here = facts.builds.get(path), needed.builds[path]
    if facts.architecture and facts.architecture != needed.architecture:
        yield Finding(
            severity=Severity.WARNING,
            node=node,
            subject="program",
            found=f"{path} for {facts.architecture}",
            needed=f"the build that is here, for {needed.architecture}: of other processors only the version is compared",
            action="build both from the same source",
        )
    elif there != here:
        yield Finding(
            node=node,
            subject="program",
            found=f"{path} of {f'build {there[:BUILD_DIGITS]}' if there else 'a build that nobody tells'}",
            needed=f"build {here[:BUILD_DIGITS]}, as here",
            action=SAME_BUILD,
        )


def _load(node: str, facts: NodeFacts) -> Iterator[Finding]:
    """Yield a warning where a node is busy."""
    if facts.load is not None and facts.load > BUSY_SHARE * facts.processors:
        yield Finding(
            severity=Severity.WARNING,
            node=node,
            subject="load",
            found=f"load {facts.load:.1f} on {facts.processors} processors",
            needed=f"at most {BUSY_SHARE * facts.processors:g}: ranks that wait for a processor have long tails",
            action="measure when nothing else runs; else trust medians and ratios, not tails",
        )


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
        if fabric.has_interface:
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


def _offered(facts: NodeFacts, launcher: Launcher) -> list[NodeInterface]:
    """Return the interfaces of a node that a fabric may have: none that stays within the node, unless the nodes are one machine."""
    return [one for one in facts.interfaces if launcher is Launcher.LOCAL or not one.is_loopback]


def _of_one(node: Node, fabric: Fabric, offered: list[NodeInterface], found: Attached | None) -> Iterator[Finding]:
    where = {"node": node.name, "fabric": fabric.name}
    there = ", ".join(map(str, offered)) or "no interface at all"
    if found is None and fabric.interface is not None:
        yield Finding(
            **where,
            subject="interface",
            found=f"no interface {fabric.interface}; there are {', '.join(one.name for one in offered)}",
            needed=f"interface {fabric.interface}",
            action="correct `interface` in the testbed; where nodes name it differently, give the `subnet` instead",
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
        yield from _state(where, found.interface)
        yield from _address(where, node, fabric, found)


WITHOUT_RDMA = "or take rdma out of the fabric's `layers`"


def _rdma(one: Attached, facts: NodeFacts) -> Iterator[Finding]:
    """Yield what keeps layer rdma from the port that the measurer would take: the one that is named, else that of the interface."""
    where = {"node": one.node, "fabric": one.fabric.name, "subject": "rdma"}
    end = one.fabric.rdma or RdmaEnd()
    by_name = [port for port in facts.rdma if end.device is None or port.device == end.device]
    ports = [port for port in by_name if end.port is None or port.port == end.port]
    beside = ports if end.device is not None else [port for port in ports if port in facts.rdma_below(one.interface)]
    there = ", ".join(f"{port.name} ({port.netdev or 'beside no interface that is told'})" for port in facts.rdma)
    wanted = f"RDMA device {end.device}" if end.device else f"an RDMA port beside {one.interface.name}"
    wanted += "" if end.port is None else f" with port {end.port}"
    if not facts.rdma:
        yield Finding(
            **where,
            found="no RDMA device: /sys/class/infiniband is empty",
            needed=wanted,
            action=f"load the adapter's driver (`rdma link` shows what there is), {WITHOUT_RDMA}",
        )
    elif not ports or (not beside and all(port.netdev for port in ports)):
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
    told_address = node.addresses.get(fabric.name)
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
        if one.network and one.network == other.network:
            continue
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


def _shared(one: Fabric, other: Fabric) -> str:
    if one.interface is not None and one.interface == other.interface:
        return f"the interface {one.interface}"
    if one.subnet is not None and other.subnet is not None and one.subnet.overlaps(other.subnet):
        return f"{one.subnet} and {other.subnet}, which overlap,"
    return ""


def _shared_on_node(mine: Attached, theirs: Attached) -> str:
    if mine.interface.name == theirs.interface.name:
        return f"the interface {mine.interface}"
    if mine.address and theirs.address and mine.address.network.overlaps(theirs.address.network):
        return f"the subnet {mine.address.network} on {mine.interface.name} and {theirs.interface.name}"
    return ""


def _joined(
    testbed: Testbed, answers: Mapping[str, NodeFacts | Silent], attached: Iterable[Attached]
) -> Iterator[Finding]:
    """Yield what keeps the nodes of a fabric from being neighbours: an address that two have, subnets that differ."""
    if testbed.launcher is Launcher.LOCAL:  # all nodes are this machine
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
                severity=Severity.WARNING,
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
        severity=Severity.WARNING if is_one_machine else Severity.ERROR,
        node=one.node,
        fabric=one.fabric.name,
        subject="address",
        found=f"{one.address} on {one.interface.name}, which {holder} has too: {same}",
        needed="an address of its own",
        action="name each machine once in `nodes`" if is_one_machine else "give each node an address of its own",
    )
