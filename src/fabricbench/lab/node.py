"""One virtual node: a process with its own network, hostname, IPC and mounts, which holds them open and sleeps.

Runs in a fork of the keeper. The keeper makes the links; the node, being inside, configures its ends of them, and turns off what
a virtual link would do beyond its wire: segmentation, aggregation and checksums left for later. With those on, a "frame" of 64 KiB
would cross a link of MTU 1500, and the switch, which forwards bytes, would forward frames whose checksum nobody has computed. The
ioctl is the one that `ethtool -K` uses (linux/ethtool.h); the ethtool program is not needed.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pyroute2 import IPRoute

from fabricbench.lab import namespaces
from fabricbench.lab.neighbours import add_neighbours
from fabricbench.lab.sender_limit import SenderLimit, limit_sender
from fabricbench.lab.topology import CONTROL_INTERFACE, CONTROL_SUBNET, LabTopology, PlannedNode, Rdma

_SETTINGS = {
    # Or the end of one launch (its slow-start threshold) would shape the next.
    "net/ipv4/tcp_no_metrics_save": "1",
    # People try `ping` first, and it may lack its capability here.
    "net/ipv4/ping_group_range": "0 0",
}
_CONGESTION_CONTROL = "net/ipv4/tcp_congestion_control"
_CONGESTION_CONTROLS = ("cubic", "reno")
"""Of TCP, the first that this kernel lets a namespace choose: by loss, whatever the machine's own is. BBR, which paces, leaves 3 to
6 % of a link idle that is full in both directions."""


@dataclass(frozen=True)
class NodeOrder:
    """What a node is told: its place in the topology, the limit of its link to each fabric, the hosts file.

    `has_rps` says whether it may spread what it receives over processors. `guest` is the folder of the guest that takes its
    interfaces.
    """

    topology: LabTopology
    index: int
    limits: tuple[SenderLimit, ...]
    hosts: Path
    has_rps: bool
    guest: Path | None = None

    @property
    def node(self) -> PlannedNode:
        """The node's own part of the topology."""
        return self.topology.nodes[self.index]


def become_node(order: NodeOrder, keeper: socket.socket) -> NoReturn:
    """Turn this process into the node: tell the keeper `here`, wait for the links, configure, tell `done` or what failed."""
    try:
        namespaces.unshare(
            namespaces.CLONE_NEWNET | namespaces.CLONE_NEWUTS | namespaces.CLONE_NEWIPC | namespaces.CLONE_NEWNS
        )
        namespaces.keep_mounts_private()
        socket.sethostname(order.node.name)
        _mount(order)
        quieten_network()
        keeper.sendall(b"here")
        if keeper.recv(16) != b"links are there":
            os._exit(1)
        _configure(order)
        keeper.sendall(b"done")
        keeper.close()
        os.execvp("sleep", ["sleep", "infinity"])  # noqa: S606 - no shell is wanted
    except Exception as error:  # noqa: BLE001 - a fork must not return into its parent's code
        keeper.sendall(f"node {order.node.name}: {error}".encode()[:4000])
    os._exit(1)


def quieten_network() -> None:
    """Turn IPv6 off, whose discovery would load the fabrics, in the network namespace that this process is in."""
    for scope in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if setting.exists():
            setting.write_text("1")


def _mount(order: NodeOrder) -> None:
    # Else programs list the outer machine's interfaces, and MPI takes a device that the node does not have.
    namespaces.mount_fresh("sysfs", "/sys")
    if Path("/dev/shm").is_dir():  # noqa: S108 - MPI libraries would find each other's segments and bypass the fabric
        namespaces.mount_fresh("tmpfs", "/dev/shm", "mode=1777")  # noqa: S108
    namespaces.bind(order.hosts, Path("/etc/hosts"))
    if order.guest is not None:  # the memory of a guest must be mapped executable
        namespaces.mount_memory(order.guest / "memory")


def _configure(order: NodeOrder) -> None:
    for name, value in _SETTINGS.items():
        setting = Path("/proc/sys") / name
        if setting.exists():
            setting.write_text(value)
    _choose_congestion_control(Path("/proc/sys") / _CONGESTION_CONTROL)
    with IPRoute() as network:
        network.link("set", index=socket.if_nametoindex("lo"), state="up")
        _address(network, order, CONTROL_INTERFACE, str(order.node.control_address), CONTROL_SUBNET.prefixlen)
        for index, planned in enumerate(order.topology.fabrics):
            turn_offloads_off(planned.interface)
            interface = _address(
                network, order, planned.interface, str(order.node.fabric_addresses[index]), planned.subnet.prefixlen
            )
            limit_sender(interface, order.limits[index])
            if order.guest is None:
                _know_neighbours(interface, order, index)
            if order.has_rps:
                _spread_receiving(planned.interface, order.topology.cpus_of(order.node.name))
            if order.topology.rdma is Rdma.KERNEL:
                _add_device(order.topology.name, order.node.name, planned.interface)


def _choose_congestion_control(setting: Path) -> None:
    """What the nodes got is in their inventory. A kernel that allows none of ours leaves them with the machine's."""
    for control in _CONGESTION_CONTROLS:
        with suppress(OSError):
            setting.write_text(control)
            return


def device_tokens(lab: str, node: str, interface: str) -> list[str]:
    """Return the tokens that make a soft-RoCE device of this machine's kernel; its name is one of the whole machine."""
    return ["rdma", "link", "add", f"{lab}-{node}-{interface}", "type", "rxe", "netdev", interface]


def _add_device(lab: str, node: str, interface: str) -> None:
    done = subprocess.run(device_tokens(lab, node, interface), capture_output=True, text=True, timeout=10, check=False)
    if done.returncode:
        raise RuntimeError(f"no soft-RoCE device over {interface}: {done.stderr.strip()}")


def _address(network: IPRoute, order: NodeOrder, name: str, address: str, prefix: int) -> int:
    interface = socket.if_nametoindex(name)
    if order.guest is None:  # else the node itself would answer what is sent to its guest
        network.addr("add", index=interface, address=address, prefixlen=prefix)
    network.link("set", index=interface, state="up")
    return interface


def _know_neighbours(interface: int, order: NodeOrder, fabric: int) -> None:
    # Static: a first message that waits for ARP is not the fabric's latency.
    others = (other for other in order.topology.nodes if other.name != order.node.name)
    add_neighbours(interface, [(other.fabric_addresses[fabric], other.fabric_macs[fabric]) for other in others])


def _spread_receiving(interface: str, cpus: tuple[int, ...]) -> None:
    # Else the switch's send() runs the receiver's network stack: 8 us for a frame in place of 3.
    mask = sum(1 << cpu for cpu in cpus)
    words = [f"{mask >> shift & 0xFFFFFFFF:08x}" for shift in range(0, mask.bit_length(), 32)]
    Path(f"/sys/class/net/{interface}/queues/rx-0/rps_cpus").write_text(",".join(reversed(words)))


_SIOCETHTOOL = 0x8946
_SET_TX_CHECKSUM, _SET_TSO, _SET_GSO, _SET_GRO = 0x17, 0x1F, 0x24, 0x2C
_NAME_BYTES, _REQUEST_BYTES = 16, 40


def turn_offloads_off(interface: str) -> None:
    """Turn segmentation, aggregation and checksum offloads of an interface off. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        # Scatter-gather and UDP segmentation go with the checksum: the kernel drops what depends on it.
        for command in (_SET_TSO, _SET_GSO, _SET_GRO, _SET_TX_CHECKSUM):
            value = ctypes.create_string_buffer(struct.pack("=II", command, 0), 8)
            request = struct.pack(f"{_NAME_BYTES}sP", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(control, _SIOCETHTOOL, request.ljust(_REQUEST_BYTES, b"\0"))
