"""What a lab looks like from outside: its nodes, its fabrics, and what each switch has counted."""

from __future__ import annotations

import json
import signal
import time
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from fabricbench.lab.fabric import EmulatedFabric
from fabricbench.lab.ledger import LedgerEntry
from fabricbench.lab.process import ProcessIdentity
from fabricbench.lab.topology import PlannedFabric
from fabricbench.model import Model

_ANSWER_TIMEOUT_S = 0.5
_ANSWER_POLL_S = 0.005


class PortCounters(Model):
    """What one port of a switch has counted since the lab was started.

    `dropped` is what the emulated fabric drops, at the full buffer of a port say. The rest are the emulator's own failures: frames
    that the port's interface did not take (`unsent`), tries to send that found the socket's buffer full, frames that found the
    receive ring full, and frames that the timing model was told of after one with a later time.
    """

    interface: str
    received_frames: int
    received_bytes: int
    sent_frames: int
    sent_bytes: int
    dropped_frames: int
    dropped_bytes: int
    ring_lost_frames: int
    unsent_frames: int = 0
    unsent_bytes: int = 0
    send_retries: int = 0
    out_of_order_frames: int = 0


class Lateness(Model):
    """How much later than computed frames really left the switch, in nanoseconds: since its start, or during a span of time."""

    count: int
    p50: float
    p99: float
    maximum: float


class SwitchStatus(Model):
    """A switch: `dead` where its process is gone, `unknown` where it has not told."""

    state: Literal["idle", "busy", "dead", "unknown"]
    pid: int
    cpu: int | None
    ports: tuple[PortCounters, ...] = ()
    lateness_ns: Lateness | None = None
    lost_windows: int = 0
    """Windows of lateness that could not be kept: the switch's second thread got no processor for ten seconds."""


class NodeStatus(Model):
    """A node and its address on the control network and on each fabric."""

    name: str
    pid: int
    control_address: IPv4Address
    addresses: dict[str, IPv4Address]


class FabricStatus(Model):
    """A fabric: what was asked for, where it is on the nodes, and its switch."""

    name: str
    interface: str
    subnet: IPv4Network
    is_emulated: bool = True
    asked: EmulatedFabric
    switch: SwitchStatus


class LabStatus(Model):
    """A whole lab."""

    name: str
    mode: Literal["root", "user-namespace"]
    keeper_pid: int
    is_owned: bool
    owner_pid: int
    started_at: str
    node_cpus: tuple[int, ...]
    nodes: tuple[NodeStatus, ...]
    fabrics: tuple[FabricStatus, ...]


def read_status(entry: LedgerEntry, directory: Path) -> LabStatus:
    """Return the status of a running lab; each switch is asked for its counters as they are now."""
    topology = entry.topology
    return LabStatus(
        name=topology.name,
        mode="root" if entry.has_root else "user-namespace",
        keeper_pid=entry.keeper.pid,
        is_owned=entry.is_owned,
        owner_pid=entry.owner_pid,
        started_at=entry.started_at,
        node_cpus=topology.node_cpus,
        nodes=tuple(
            NodeStatus(
                name=node.name,
                pid=entry.nodes[node.name].pid,
                control_address=node.control_address,
                addresses=dict(
                    zip((planned.fabric.name for planned in topology.fabrics), node.fabric_addresses, strict=True)
                ),
            )
            for node in topology.nodes
        ),
        fabrics=tuple(_fabric_status(planned, entry, directory) for planned in topology.fabrics),
    )


def _fabric_status(planned: PlannedFabric, entry: LedgerEntry, directory: Path) -> FabricStatus:
    name = planned.fabric.name
    return FabricStatus(
        name=name,
        interface=planned.interface,
        subnet=planned.subnet,
        asked=planned.fabric,
        switch=_switch_status(entry.switches[name], planned.cpu, directory / f"switch-{name}.status.json"),
    )


def _switch_status(process: ProcessIdentity, cpu: int | None, path: Path) -> SwitchStatus:
    before = _written_at(path)
    if not process.kill(signal.SIGUSR1):
        return SwitchStatus(state="dead", pid=process.pid, cpu=cpu)
    deadline = time.monotonic() + _ANSWER_TIMEOUT_S
    while _written_at(path) == before and time.monotonic() < deadline:
        time.sleep(_ANSWER_POLL_S)
    try:
        told = json.loads(path.read_text())
        # The switch tells its PID inside the lab, and may tell more than is shown.
        return SwitchStatus(
            state=told["state"],
            pid=process.pid,
            cpu=cpu,
            ports=tuple(
                PortCounters(**{field: port[field] for field in PortCounters.model_fields if field in port})
                for port in told["ports"]
            ),
            lateness_ns=Lateness(**{field: told["lateness_ns"][field] for field in Lateness.model_fields}),
            lost_windows=told.get("lost_windows", 0),
        )
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return SwitchStatus(state="unknown", pid=process.pid, cpu=cpu)


def _written_at(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
