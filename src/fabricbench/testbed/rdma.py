"""RDMA devices (InfiniBand, RoCE, iWARP) as the kernel lists them in /sys/class/infiniband, and whether this user may use them."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable
from pathlib import Path

from fabricbench.model import Model
from fabricbench.testbed.adapter import PcieLink, read_pcie
from fabricbench.testbed.host import read_integer, read_text

DEVICES = "sys/class/infiniband"
ROOT = Path("/")
IWARP = "4"
"""A node of this type (`4: RNIC`) speaks iWARP: its one address begins with the MAC address of its interface."""

NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


class RdmaPort(Model):
    """One port. `state` and `physical_state` are the kernel's words, `ACTIVE` and `LinkUp` where all is well.

    `netdev` is the interface on the same port, `netdevs` are all that its addresses (GIDs) are of or that lie beside it, and
    `gid_netdevs` has the interface of each address by its index, empty where none is told. `is_allowed`: this user may open the
    device, None where there is nothing to open. `largest_message_bytes` is what libibverbs says of the port (`max_msg_sz`), None
    where it does not open.
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
    netdevs: tuple[str, ...] = ()
    gid_netdevs: dict[int, str] = {}
    largest_message_bytes: int | None = None

    @property
    def name(self) -> str:
        """The name that tools give it, `mlx5_0/1`."""
        return f"{self.device}/{self.port}"

    @property
    def beside(self) -> tuple[str, ...]:
        """The interfaces that lie beside it, as far as anything tells."""
        return self.netdevs or ((self.netdev,) if self.netdev else ())


def read_rdma(root: Path) -> tuple[RdmaPort, ...]:
    """Return every port of every RDMA device, by device and number."""
    folders = (port for device in sorted((root / DEVICES).glob("*")) for port in sorted((device / "ports").glob("*")))
    return tuple(_port(folder, root) for folder in folders if folder.name.isdigit())


def _port(folder: Path, root: Path) -> RdmaPort:
    device = folder.parents[1]
    node = read_integer(device / "device/numa_node")
    rate = re.match(r"([\d.]+) Gb/sec", read_text(folder / "rate") or "")
    gids = {
        int(path.name): gid for path in _numbered(folder / "gids") if (gid := read_text(path)) not in (None, "", NO_GID)
    }
    gid_netdevs = {index: read_text(folder / f"gid_attrs/ndevs/{index}") or "" for index in sorted(gids)}
    beside = _beside(device, int(folder.name), root)
    if (read_text(device / "node_type") or "").startswith(IWARP):
        beside += _of_mac(root, gids.values())
    netdevs = tuple(dict.fromkeys(name for name in (*gid_netdevs.values(), *beside) if name))
    is_allowed = _is_allowed(device, root)
    return RdmaPort(
        device=device.name,
        port=int(folder.name),
        state=_word(read_text(folder / "state")),
        physical_state=_word(read_text(folder / "phys_state")),
        link_layer=read_text(folder / "link_layer"),
        rate_bit_s=float(rate.group(1)) * 1e9 if rate else None,
        gids=len(gids),
        netdev=next(iter(netdevs), None),
        netdevs=netdevs,
        gid_netdevs=gid_netdevs,
        firmware=read_text(device / "fw_ver"),
        kind=read_text(device / "hca_type") or read_text(device / "board_id"),
        numa_node=node if node is not None and node >= 0 else None,
        is_allowed=is_allowed,
        largest_message_bytes=largest_message_bytes(device.name, int(folder.name))
        if is_allowed and root == ROOT
        else None,
        pcie=read_pcie(device / "device"),
    )


def _word(text: str | None) -> str | None:
    """Return `ACTIVE` of `4: ACTIVE`."""
    return None if text is None else text.partition(":")[2].strip() or text


def _numbered(folder: Path) -> list[Path]:
    return sorted((path for path in folder.glob("[0-9]*") if path.name.isdigit()), key=lambda path: int(path.name))


def _beside(device: Path, port: int, root: Path) -> list[str]:
    """Return the interfaces of the device's function of the bus, of several ports those of this one (`dev_port` counts from 0)."""
    names = [path.name for path in sorted((device / "device/net").glob("*"))]
    if len(list((device / "ports").glob("[0-9]*"))) < 2:
        return names
    positions = {name: read_integer(root / "sys/class/net" / name / "dev_port") for name in names}
    return [name for name in names if positions[name] is None or positions[name] == port - 1]


def _of_mac(root: Path, gids: Iterable[str | None]) -> list[str]:
    """Return the interfaces whose MAC address one of these GIDs of iWARP begins with: soft iWARP tells of them no other way."""
    macs = {
        ":".join(digits[i : i + 2] for i in range(0, 12, 2)) for gid in gids if (digits := (gid or "").replace(":", ""))
    }
    net = root / "sys/class/net"
    return [path.name for path in sorted(net.glob("*")) if read_text(path / "address") in macs]


class _PortAttributes(ctypes.Structure):
    """The beginning of `struct ibv_port_attr` (ibv_query_port(3)), with room for what later versions append."""

    _fields_ = (
        ("state", ctypes.c_int),
        ("max_mtu", ctypes.c_int),
        ("active_mtu", ctypes.c_int),
        ("gid_tbl_len", ctypes.c_int),
        ("port_cap_flags", ctypes.c_uint32),
        ("max_msg_sz", ctypes.c_uint32),
        ("others", ctypes.c_uint32 * 32),
    )


def largest_message_bytes(device: str, port: int) -> int | None:
    """Return the largest message that a port takes, as libibverbs says; None where it cannot be asked."""
    try:
        verbs = ctypes.CDLL("libibverbs.so.1")
        verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
        verbs.ibv_get_device_name.restype = ctypes.c_char_p
        verbs.ibv_get_device_name.argtypes = (ctypes.c_void_p,)
        verbs.ibv_open_device.restype = ctypes.c_void_p
        verbs.ibv_open_device.argtypes = (ctypes.c_void_p,)
        verbs.ibv_query_port.argtypes = (ctypes.c_void_p, ctypes.c_uint8, ctypes.c_void_p)
        verbs.ibv_close_device.argtypes = (ctypes.c_void_p,)
        verbs.ibv_free_device_list.argtypes = (ctypes.c_void_p,)
    except (OSError, AttributeError):
        return None
    found = ctypes.c_int()
    devices = verbs.ibv_get_device_list(ctypes.byref(found))
    if not devices:
        return None
    names = {verbs.ibv_get_device_name(devices[i]): devices[i] for i in range(found.value)}
    context = verbs.ibv_open_device(names[device.encode()]) if device.encode() in names else None
    verbs.ibv_free_device_list(devices)
    if not context:
        return None
    attributes = _PortAttributes()
    error = verbs.ibv_query_port(context, port, ctypes.byref(attributes))
    verbs.ibv_close_device(context)
    return None if error else attributes.max_msg_sz or None


def _is_allowed(device: Path, root: Path) -> bool | None:
    verbs = [path.name for path in sorted((device / "device/infiniband_verbs").glob("uverbs*"))]
    files = [root / "dev/infiniband" / name for name in verbs]
    return all(os.access(path, os.R_OK | os.W_OK) for path in files) if files else None
