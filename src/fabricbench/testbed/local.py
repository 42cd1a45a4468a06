"""The testbed that every machine has: its loopback and its shared memory as two fabrics. For where no lab is possible."""

from __future__ import annotations

import platform
import re
from ipaddress import IPv4Network
from pathlib import Path

from fabricbench.model import Layer
from fabricbench.testbed.model import NODE_NAME, Fabric, Launcher, Node, Testbed
from fabricbench.testbed.permissions import may_open_raw_socket

LOOPBACK = "lo"
LOOPBACK_SUBNET = IPv4Network("127.0.0.0/8")
USUAL_LOOPBACK_MTU = 65536

NOTES = (
    "No network was measured: both fabrics are inside this machine, its loopback interface and its shared memory.",
    "The numbers show what this machine's software costs, and that fabricbench works here; they say nothing of any interconnect.",
)


def local_testbed() -> Testbed:
    """Return this machine as a testbed of one node with the fabrics `loopback` and `shared-memory`.

    The frame and ip layers are left out of the loopback where this user may not open raw sockets.
    """
    name = platform.node()
    name = name if re.match(NODE_NAME, name) else "localhost"
    layers = [layer for layer in Layer if layer not in (Layer.FRAME, Layer.IP) or may_open_raw_socket(layer)]
    loopback = Fabric(
        name="loopback",
        interface=LOOPBACK,
        subnet=LOOPBACK_SUBNET,
        mtu=loopback_mtu(),
        layers=tuple(layers),
        description="this machine's loopback interface: the network stack without a network",
    )
    memory = Fabric(
        name="shared-memory",
        layers=(Layer.MEMORY, Layer.MPI),
        description="this machine's memory: MPI between processes of one node",
    )
    missing = [layer for layer in Layer if layer not in layers]
    notes = list(NOTES)
    if missing:
        notes.append(f"Layer {', '.join(missing)} is left out: this user may not open raw sockets (CAP_NET_RAW).")
    return Testbed(
        name=f"local-{name}",
        launcher=Launcher.LOCAL,
        nodes=(Node(name=name),),
        fabrics=(loopback, memory),
        notes=tuple(notes),
    )


def loopback_mtu() -> int:
    """Return the MTU of the loopback interface."""
    try:
        return int(Path(f"/sys/class/net/{LOOPBACK}/mtu").read_text())
    except (OSError, ValueError):
        return USUAL_LOOPBACK_MTU
