"""What carries a tunnel: its packets leave by another interface, with headers of their own, and are counted there as well.

The kernel knows the peers of VXLAN, Geneve, GRE and their like, and root those of WireGuard; the route to a peer is the carrier, or
the device that the tunnel was made on. Of a VPN's program (tun) only the program knows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

TUNNELS = (
    "vxlan", "geneve", "gre", "gretap", "ip6gre", "ip6gretap", "erspan", "ip6erspan", "ipip", "sit", "ip6tnl", "vti", "vti6",
    "xfrm", "l2tp", "wireguard", "tun", "ovpn", "gtp", "bareudp",
)  # fmt: skip
"""Kinds of interfaces whose packets leave by another one."""

UNKNOWN_CARRIER = ""
"""Stands among the carriers of a tunnel of which nobody can tell all: a VPN's program knows its peers, the kernel does not."""

OF_PEERS = ("_REMOTE", "_GROUP", "_REMOTE6", "_GROUP6")
"""How the kernel's names of the address of a tunnel's peer end, of each kind its own: IFLA_VXLAN_GROUP, IFLA_GRE_REMOTE."""

OF_LOWER = "_LINK"
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - told of a tunnel without a peer
BRIDGE_FAMILY = 7
"""PF_BRIDGE (linux/socket.h): the table of a VXLAN's peers by the addresses of what lies behind them."""


def read_carriers(route: Any, links: Sequence[Any]) -> dict[int, tuple[str, ...]]:
    """Return the names of the interfaces that carry each tunnel of this network namespace, by the tunnel's number."""
    names = {link["index"]: str(link.get_attr("IFLA_IFNAME")) for link in links}
    direct: dict[int, set[int | None]] = {}
    for link in links:
        info = link.get_attr("IFLA_LINKINFO")
        kind = info.get_attr("IFLA_INFO_KIND") if info is not None else None
        if kind in TUNNELS:
            direct[link["index"]] = _direct(route, link["index"], str(kind), names[link["index"]], _settings(info))
    return {
        index: tuple(
            UNKNOWN_CARRIER if one is None else names.get(one, UNKNOWN_CARRIER) for one in _whole(index, direct)
        )
        for index in direct
    }


def _settings(info: Any) -> dict[str, Any]:
    data = info.get_attr("IFLA_INFO_DATA")
    return dict(data["attrs"]) if isinstance(data, Mapping) and "attrs" in data else {}


def _direct(route: Any, index: int, kind: str, name: str, settings: Mapping[str, Any]) -> set[int | None]:
    """Return the interfaces that a tunnel's packets leave by; None among them where a peer of it is not known."""
    lower = next((value for key, value in settings.items() if key.endswith(OF_LOWER) and value), None)
    if lower is not None:
        return {int(lower)}
    peers = {str(value) for key, value in settings.items() if key.endswith(OF_PEERS) and value}
    peers |= set(_of_table(route, index)) if kind == "vxlan" else set()
    peers |= set(_of_wireguard(name)) if kind == "wireguard" else set()
    return {_routed(route, peer) for peer in peers - {*ANY_ADDRESS}} or {None}


def _of_table(route: Any, index: int) -> Iterator[str]:
    for entry in route.get_neighbours(family=BRIDGE_FAMILY):
        if entry["ifindex"] == index and (peer := entry.get_attr("NDA_DST")):
            yield str(peer)


def _of_wireguard(name: str) -> Iterable[str]:
    """Return the peers' addresses; none where this user may not ask for them."""
    from pyroute2 import WireGuard  # noqa: PLC0415 - hardly any host has one

    try:
        with WireGuard() as calls:
            peers = [peer for told in calls.info(name) for peer in told.get_attr("WGDEVICE_A_PEERS") or ()]
            ends = [peer.get_attr("WGPEER_A_ENDPOINT") for peer in peers]
            return [str(end["addr"]) for end in ends if end]
    except Exception:  # noqa: BLE001 - pyroute2 raises errors of many kinds where there is nothing to tell
        return []


def _routed(route: Any, peer: str) -> int | None:
    try:
        found = route.route("get", dst=peer)
        return int(found[0].get_attr("RTA_OIF"))
    except Exception:  # noqa: BLE001 - no route, or a peer that is not there any more
        return None


def _whole(index: int, direct: Mapping[int, set[int | None]]) -> list[int | None]:
    """Return what carries a tunnel, and what carries that where it is a tunnel again."""
    found: list[int | None] = []
    pending = [*direct[index]]
    while pending:
        one = pending.pop()
        if one not in found and one != index:
            found.append(one)
            pending += [] if one is None else direct.get(one, ())
    return sorted(found, key=lambda one: -1 if one is None else one)
