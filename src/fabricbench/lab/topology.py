"""The plan of a lab: every node, link, address and switch, before anything is created, and the order that the keeper gets. Pure.

`keeper` realises a plan; nothing here touches the system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network
from itertools import chain
from pathlib import Path

from pydantic import Field

from fabricbench.errors import UsageError
from fabricbench.lab.fabric import EmulatedFabric, refuse_twins
from fabricbench.lab.sender_limit import host_queue_bytes
from fabricbench.lab.torus import torus_of
from fabricbench.model import Model, RdmaEnd
from fabricbench.pattern_facts import USUAL_LAYERS, Layer
from fabricbench.quantity import count
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed

CONTROL_INTERFACE = "ctl0"
CONTROL_SUBNET = IPv4Network("10.98.0.0/24")
CONTROL_MTU = 1500
LEAST_NODES = 2
MOST_NODES = 200
"""Fits the /24 subnets; a machine runs out of processors long before."""
MOST_FABRICS = 16

CPUS_PER_SWITCH_CPU = 4
"""Every fourth processor may go to a switch: a switch keeps one busy while there is traffic."""

CPUS_PER_SWITCH_CPU_OF_ALL_LABS = 2
"""Of several labs together every second one: the nodes of all share the rest."""


GUESTS_NOTE = (
    "the nodes are guests (User-Mode Linux): their processor bounds what goes faster than about 10,000 packets/s, "
    "and round trips take some 0.3 ms, 10 ms where a tick of theirs is waited for, whatever the fabric"
)


class Rdma(StrEnum):
    """By what the nodes of a lab have RDMA devices: soft RoCE of the machine's kernel, or of a guest's."""

    KERNEL = "kernel"
    GUESTS = "guests"


class PlannedNode(Model):
    """A node: its name and where it is on the control network and on each fabric, in the fabrics' order.

    `cpus` are the processors that are its own; empty: it shares all of the nodes' with the others.
    """

    name: str
    control_address: IPv4Address
    control_mac: str
    fabric_addresses: tuple[IPv4Address, ...]
    fabric_macs: tuple[str, ...]
    cpus: tuple[int, ...] = ()


class PlannedFabric(Model):
    """A fabric: its place in the lab, the interface's name on each node and on the switch's side of each link."""

    fabric: EmulatedFabric
    interface: str
    subnet: IPv4Network
    switch_interfaces: tuple[str, ...]
    cpu: int | None


class LabTopology(Model):
    """A whole lab. `node_cpus` are the processors that programs on all nodes may use; `rdma` tells of one with RDMA."""

    name: str
    nodes: tuple[PlannedNode, ...] = Field(min_length=1)
    fabrics: tuple[PlannedFabric, ...] = Field(min_length=1)
    node_cpus: tuple[int, ...] = Field(min_length=1)
    rdma: Rdma | None = None

    def testbed(self) -> Testbed:
        """Return the testbed that the lab is."""
        return Testbed(
            name=self.name,
            launcher=LauncherKind.LAB,
            lab=self.name,
            nodes=tuple(
                Node(
                    name=node.name,
                    addresses={
                        planned.fabric.name: address
                        for planned, address in zip(self.fabrics, node.fabric_addresses, strict=True)
                    },
                )
                for node in self.nodes
            ),
            fabrics=tuple(
                Fabric(
                    name=planned.fabric.name,
                    interface=planned.interface,
                    subnet=planned.subnet,
                    mtu=planned.fabric.mtu,
                    wire=planned.fabric.wire,
                    is_emulated=True,
                    scale=planned.fabric.scale,
                    built_from=tuple(dict.fromkeys(chain.from_iterable(planned.fabric.built_from.values()))),
                    condition_of=planned.fabric.condition_of,
                    description=f"emulated: {planned.fabric.words}{planned.fabric.link_words}",
                    settings=planned.fabric.settings,
                    layers=USUAL_LAYERS if self.rdma is None else (*USUAL_LAYERS, Layer.RDMA),
                    rdma=RdmaEnd(device=rdma_device(planned.interface)) if self.rdma is Rdma.GUESTS else None,
                )
                for planned in self.fabrics
            ),
            notes=(
                "the fabrics are emulated in a lab on one machine",
                *(f"{one.fabric.name} is {one.fabric.scale_words}" for one in self.fabrics if one.fabric.scale_words),
                *([GUESTS_NOTE] if self.rdma is Rdma.GUESTS else []),
            ),
        )

    def cpus_of(self, node: str) -> tuple[int, ...]:
        """Return the processors that programs on a node may use: its own, or all of the nodes'. KeyError: no such node."""
        own = {one.name: one.cpus for one in self.nodes}[node]
        return own or self.node_cpus

    def hosts(self) -> str:
        """Return the nodes' /etc/hosts: names resolve to control addresses, so that launching never loads a fabric."""
        lines = ["127.0.0.1 localhost", *(f"{node.control_address} {node.name}" for node in self.nodes)]
        return "\n".join(lines) + "\n"

    def switch_configuration(self, index: int, files: Mapping[str, Path]) -> dict[str, object]:
        """Return what `fabricbench-switch` is told about fabric `index`; it keeps what KEPT_FILES names in `files`."""
        planned = self.fabrics[index]
        fabric = planned.fabric
        return {
            "name": fabric.name,
            "ports": [self._port(index, node) for node in range(len(self.nodes))],
            "line_rate_bit_s": fabric.line_rate_bit_s,
            "delay_ns": round(fabric.delay_s * 1e9),
            "switching": fabric.switching.value,
            "switch_latency_ns": 0 if fabric.is_torus else round(fabric.switch_latency_s * 1e9),
            "port_buffer_bytes": fabric.port_buffer_bytes,
            "mtu": fabric.mtu,
            "overhead_bytes": fabric.overhead_bytes,
            "minimum_bytes": max(1, fabric.minimum_bytes),
            "cell": None if fabric.cell is None else fabric.cell.model_dump(),
            "host_queue_bytes": host_queue_bytes(fabric),
            "coalesce_ns": round(fabric.coalesce_s * 1e9),
            **_faults(fabric),
            "cpu": planned.cpu,
            **{what: str(path) for what, path in files.items()},
            **_routing(fabric, len(self.nodes)),
        }

    def _port(self, index: int, node: int) -> dict[str, object]:
        planned = self.fabrics[index]
        port: dict[str, object] = {
            "interface": planned.switch_interfaces[node],
            "mac": self.nodes[node].fabric_macs[index],
        }
        if planned.fabric.is_cable:  # one link, where a path through a switch has two
            port |= {"delay_down_ns": 0}
        change = planned.fabric.links.get(node)
        if change is not None:
            delays = {"delay_up_ns": change.delay_up_s, "delay_down_ns": change.delay_down_s}
            port |= {key: round(delay * 1e9) for key, delay in delays.items() if delay is not None}
            port |= {"line_rate_bit_s": planned.fabric.line_rate_of(node)}
        return port


def plan_lab(
    name: str,
    nodes: int,
    fabrics: Sequence[EmulatedFabric],
    cpus: Sequence[int],
    taken: Mapping[int, int] | None = None,
    rdma: Rdma | None = None,
    own_cpus: bool | None = None,
) -> LabTopology:
    """Return the plan of a lab of `nodes` nodes on the processors `cpus`; UsageError where that cannot be.

    `taken` are processors with how many switches of other labs each has. `own_cpus`: whether each node gets processors of its own;
    None: where there are enough.
    """
    if not LEAST_NODES <= nodes <= MOST_NODES:
        raise UsageError(
            f"a lab of {nodes} node{'s' * (nodes != 1)} cannot be", hint=f"ask for {LEAST_NODES} to {MOST_NODES}"
        )
    if not 1 <= len(fabrics) <= MOST_FABRICS:
        raise UsageError(f"a lab with {len(fabrics)} fabrics cannot be", hint=f"ask for 1 to {MOST_FABRICS}")
    refuse_twins(fabrics)
    for fabric in fabrics:
        beyond = [node for node in fabric.links if node >= nodes]
        if beyond:
            raise UsageError(
                f"fabric {fabric.name} is given a link of n{beyond[0]}, which is not in a lab of {nodes} nodes",
                hint=f"nodes are n0 to n{nodes - 1}",
            )
        if fabric.is_cable and nodes != LEAST_NODES:
            raise UsageError(
                f"fabric {fabric.name} is a cable between two nodes, and the lab has {nodes}",
                hint="ask for --nodes 2, or for a fabric with a switch",
            )
        if fabric.is_torus:
            torus_of(nodes, fabric.columns)
    node_cpus, switch_cpus = share_cpus(cpus, len(fabrics), taken or {})
    own = () if own_cpus is False else cpus_of_nodes(node_cpus, nodes)
    if own_cpus and not own:
        raise UsageError(
            f"{nodes} nodes cannot each have a processor of its own: {count(len(node_cpus), 'processor')} of {len(cpus)} "
            "are left beside those of switches",
            hint=f"ask for {len(node_cpus)} nodes or fewer, or let them share processors (--shared-processors)"
            if len(node_cpus) >= LEAST_NODES
            else "let them share processors (--shared-processors)",
        )
    return LabTopology(
        name=name,
        nodes=tuple(_node(index, len(fabrics), own[index] if own else ()) for index in range(nodes)),
        fabrics=tuple(_fabric(index, fabric, nodes, switch_cpus) for index, fabric in enumerate(fabrics)),
        node_cpus=tuple(node_cpus),
        rdma=rdma,
    )


def rdma_device(interface: str) -> str:
    """Return the name of the RDMA device over a fabric's interface, the same in each guest."""
    return f"rdma_{interface}"


def share_cpus(cpus: Sequence[int], fabrics: int, taken: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Return the processors of the nodes and those of the switches, the last ones; one alone serves both.

    Switches get processors that no other lab's switch has; where too few are left, they join those that have the fewest.
    """
    ordered = sorted(cpus)
    if len(ordered) < 2:
        return ordered, []
    wanted = min(fabrics, max(1, len(ordered) // CPUS_PER_SWITCH_CPU))
    held = {cpu: taken[cpu] for cpu in ordered if taken.get(cpu)}
    free = [cpu for cpu in ordered if cpu not in held]
    may_have = max(1, len(ordered) // CPUS_PER_SWITCH_CPU_OF_ALL_LABS) - len(held)
    if may_have > 0:
        for_switches = free[-min(wanted, may_have) :]
    else:
        for_switches = sorted(sorted(held, key=lambda cpu: (held[cpu], -cpu))[:wanted])
    for_nodes = [cpu for cpu in ordered if cpu not in for_switches and cpu not in held]
    return for_nodes or [cpu for cpu in ordered if cpu not in for_switches], for_switches


def cpus_of_nodes(cpus: Sequence[int], nodes: int) -> tuple[tuple[int, ...], ...]:
    """Return the processors of each node, as many for all and each one's alone; nothing where there are fewer than nodes.

    What is left over is nobody's: nodes that differ would be told apart as a fabric's.
    """
    each = len(cpus) // nodes
    ordered = sorted(cpus)
    return tuple(tuple(ordered[index * each : (index + 1) * each]) for index in range(nodes)) if each else ()


def _node(index: int, fabrics: int, cpus: tuple[int, ...]) -> PlannedNode:
    return PlannedNode(
        name=f"n{index}",
        control_address=CONTROL_SUBNET[index + 1],
        control_mac=f"02:fb:00:00:00:{index + 1:02x}",
        fabric_addresses=tuple(_subnet(fabric)[index + 1] for fabric in range(fabrics)),
        fabric_macs=tuple(f"02:fb:00:00:{fabric + 1:02x}:{index + 1:02x}" for fabric in range(fabrics)),
        cpus=cpus,
    )


def _fabric(index: int, fabric: EmulatedFabric, nodes: int, switch_cpus: Sequence[int]) -> PlannedFabric:
    interface = f"{fabric.interface_stem}{index}"
    return PlannedFabric(
        fabric=fabric,
        interface=interface,
        subnet=_subnet(index),
        switch_interfaces=tuple(f"{interface}-n{node}" for node in range(nodes)),
        cpu=switch_cpus[index % len(switch_cpus)] if switch_cpus else None,
    )


def _routing(fabric: EmulatedFabric, nodes: int) -> dict[str, object]:
    """Return what the switch is told of the links between nodes: nothing where every node has one to the switch alone."""
    if not fabric.is_torus:
        return {}
    torus = torus_of(nodes, fabric.columns)
    segment = {"line_rate_bit_s": fabric.segment_rate_bit_s, "latency_ns": round(fabric.switch_latency_s * 1e9)}
    return {
        "segments": [segment] * torus.segments,
        "routes": [[torus.route(source, destination) for destination in range(nodes)] for source in range(nodes)],
    }


def _faults(fabric: EmulatedFabric) -> dict[str, object]:
    """Return what the switch is told to do wrong; nothing to most, so that switches of earlier builds understand it.

    A size of messages is met where a packet more or less makes no difference.
    """
    found: dict[str, object] = {}
    if fabric.interrupt_period_s:
        found["interrupt_period_ns"] = round(fabric.interrupt_period_s * 1e9)
    if fabric.hold_s:
        hold_ns = round(fabric.hold_s * 1e9)
        found["hold"] = {"message_bytes": fabric.hold_bytes, "within_bytes": fabric.mtu, "hold_ns": hold_ns}
    return found


def _subnet(fabric: int) -> IPv4Network:
    return IPv4Network(f"10.98.{fabric + 1}.0/24")


STAY = b"stay\n"


LATENESS_FILE, CROSSINGS_FILE = "lateness.jsonl", "crossings.jsonl"
KEPT_FILES = {"status": "status.json", "lateness": LATENESS_FILE, "crossings": CROSSINGS_FILE}
"""What a switch is told to keep -> the suffix of the file."""


class KeeperOrder(Model):
    """What the keeper is told: the plan, whether it is root, where files are, the switch's program, and what guests need."""

    topology: LabTopology
    has_root: bool
    directory: Path
    switch_program: Path
    guest_kernel: Path | None = None
    guest_preload: Path | None = None

    @property
    def hosts(self) -> Path:
        """The nodes' /etc/hosts."""
        return self.directory / "hosts"

    def switch_file(self, fabric: str, suffix: str) -> Path:
        """Return a file of the fabric's switch: `json` (configuration), `log`, or one of KEPT_FILES."""
        return switch_file(self.directory, fabric, suffix)


def switch_file(directory: Path, fabric: str, suffix: str) -> Path:
    """Return a file of a fabric's switch in the lab's directory."""
    return directory / f"switch-{fabric}.{suffix}"
