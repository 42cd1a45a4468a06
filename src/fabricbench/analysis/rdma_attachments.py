"""How the hosts of a side were attached by RDMA, over all its cells: hosts that were attached alike stand together. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from fabricbench.analysis.measured import Side
from fabricbench.model import Model
from fabricbench.record.lines import RdmaTransport

TRANSPORT_WORDS = {
    RdmaTransport.INFINIBAND: "InfiniBand",
    RdmaTransport.ROCE_V1: "RoCE v1",
    RdmaTransport.ROCE_V2: "RoCE v2",
    RdmaTransport.IWARP: "iWARP",
}
SOFTWARE = {"rxe": "soft RoCE", "siw": "soft iWARP"}
"""Drivers of devices that are made of software."""


T = TypeVar("T", int, str)


class AttachedAlike(Model):
    """Hosts of a fabric that had the same port of the same kind of device.

    `gids` are their addresses, host by host. `path_mtus` were in force on their paths, in any cell; none of iWARP. `inline_bytes`
    were granted to their queue pairs.
    """

    fabric: str
    hosts: tuple[str, ...]
    device: str
    port: int
    driver: str
    transport: RdmaTransport
    netdev: str
    gid_index: int
    gids: tuple[str, ...]
    port_mtu: int
    path_mtus: tuple[int, ...]
    inline_bytes: tuple[int, ...]


def attachments_of(side: Side) -> list[AttachedAlike]:
    """Return how the hosts of a side were attached in its cells over layer rdma; none of runs that do not tell."""
    found: dict[tuple[object, ...], AttachedAlike] = {}
    for one in dict.fromkeys(one for cell in side.cells.values() for one in cell.rdma):
        key = (one.device, one.port, one.driver, one.transport, one.netdev, one.gid_index, one.port_mtu)
        before = found.get(key)
        found[key] = AttachedAlike(
            fabric=side.name,
            device=one.device,
            port=one.port,
            driver=one.driver,
            transport=one.transport,
            netdev=one.netdev,
            gid_index=one.gid_index,
            port_mtu=one.port_mtu,
            hosts=_with(before.hosts if before else (), one.host),
            gids=_with(before.gids if before else (), one.gid),
            path_mtus=_with(before.path_mtus if before else (), one.path_mtu),
            inline_bytes=_with(before.inline_bytes if before else (), one.inline_bytes),
        )
    return sorted(found.values(), key=lambda one: (one.hosts, one.device, one.port))


def _with(known: tuple[T, ...], more: T | None) -> tuple[T, ...]:
    values: set[T] = set(known)
    if more is not None:
        values.add(more)
    return tuple(sorted(values))


def transport_words(one: AttachedAlike) -> str:
    """Return `RoCE v2 (mlx5_core)`, `RoCE v2 (rxe, soft RoCE)`."""
    drivers = ", ".join(filter(None, (one.driver, SOFTWARE.get(one.driver))))
    return TRANSPORT_WORDS[one.transport] + (f" ({drivers})" if drivers else "")


def path_mtu_words(alike: Iterable[AttachedAlike]) -> str:
    """Return the path MTUs that were in force, `1024` or `512 to 1024`; empty where none was told."""
    return range_words(mtu for one in alike for mtu in one.path_mtus)


def range_words(numbers: Iterable[int]) -> str:
    """Return `64`, or `36 to 64`; empty for none."""
    every = sorted(set(numbers))
    return "" if not every else f"{every[0]}" if len(every) == 1 else f"{every[0]} to {every[-1]}"
