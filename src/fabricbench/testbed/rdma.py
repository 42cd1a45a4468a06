"""RDMA devices (InfiniBand, RoCE, iWARP) as the kernel lists them in /sys/class/infiniband, and whether this user may use them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from fabricbench.model import Model
from fabricbench.testbed.adapter import PcieLink, read_pcie
from fabricbench.testbed.host import read_integer, read_text

DEVICES = "sys/class/infiniband"
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


class RdmaPort(Model):
    """One port. `state` and `physical_state` are the kernel's words, `ACTIVE` and `LinkUp` where all is well.

    `netdev` is the interface on the same port. `is_allowed`: this user may open the device, None where there is nothing to open.
    """

    device: str
    port: int
    state: str | None
    physical_state: str | None
    link_layer: str | None
    rate_bit_s: float | None
    gids: int
    netdev: str | None
    firmware: str | None
    kind: str | None
    numa_node: int | None
    is_allowed: bool | None
    pcie: PcieLink | None = None

    @property
    def name(self) -> str:
        """The name that tools give it, `mlx5_0/1`."""
        return f"{self.device}/{self.port}"


def read_rdma(root: Path) -> tuple[RdmaPort, ...]:
    """Return every port of every RDMA device, by device and number."""
    folders = (port for device in sorted((root / DEVICES).glob("*")) for port in sorted((device / "ports").glob("*")))
    return tuple(_port(folder, root) for folder in folders if folder.name.isdigit())


def _port(folder: Path, root: Path) -> RdmaPort:
    device = folder.parents[1]
    node = read_integer(device / "device/numa_node")
    rate = re.match(r"([\d.]+) Gb/sec", read_text(folder / "rate") or "")
    gids = [read_text(path) for path in (folder / "gids").glob("[0-9]*")]
    return RdmaPort(
        device=device.name,
        port=int(folder.name),
        state=_word(read_text(folder / "state")),
        physical_state=_word(read_text(folder / "phys_state")),
        link_layer=read_text(folder / "link_layer"),
        rate_bit_s=float(rate.group(1)) * 1e9 if rate else None,
        gids=sum(gid not in (None, "", NO_GID) for gid in gids),
        netdev=_netdev(folder),
        firmware=read_text(device / "fw_ver"),
        kind=read_text(device / "hca_type") or read_text(device / "board_id"),
        numa_node=node if node is not None and node >= 0 else None,
        is_allowed=_is_allowed(device, root),
        pcie=read_pcie(device / "device"),
    )


def _word(text: str | None) -> str | None:
    """Return `ACTIVE` of `4: ACTIVE`."""
    return None if text is None else text.partition(":")[2].strip() or text


def _netdev(port: Path) -> str | None:
    for path in sorted((port / "gid_attrs/ndevs").glob("[0-9]*")):
        if name := read_text(path):
            return name
    return next((path.name for path in sorted((port.parents[1] / "device/net").glob("*"))), None)


def _is_allowed(device: Path, root: Path) -> bool | None:
    verbs = [path.name for path in sorted((device / "device/infiniband_verbs").glob("uverbs*"))]
    files = [root / "dev/infiniband" / name for name in verbs]
    return all(os.access(path, os.R_OK | os.W_OK) for path in files) if files else None
