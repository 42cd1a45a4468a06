"""Which interface of this host belongs to a fabric, found by the host itself: by name, by an address in a subnet, else by a route.

Read by programs that stand around each rank (`launch/on_subnet.py`, `workload/counted.py`), which start with the standard library
alone: so this has nothing else. `native/base/interface.cpp` finds it the same way for programs of ours.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

SIOCGIFCONF = 0x8912
ENTRY = struct.Struct("16s2xH4s16x")
"""struct ifreq with a sockaddr_in in it (linux/if.h): name, family and port, address, the rest of 40 bytes."""

MOST_ADDRESSES = 512

ROUTES = Path("/proc/net/route")
DESTINATION, MASK = 1, 7
"""Columns of that file, numbers of the processor's own byte order in hexadecimal (route(8))."""


def device_of(label: str) -> str:
    """Return the interface that an address belongs to: its label may be `eth0:1`, and no interface has a colon in its name."""
    return label.partition(":")[0]


def addresses() -> list[tuple[str, IPv4Address]]:
    """Return each IPv4 address of this host with the name of its interface, in the kernel's order."""
    held = array.array("B", bytes(ENTRY.size * MOST_ADDRESSES))
    asked = struct.pack("iL", len(held), held.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        length, _ = struct.unpack("iL", fcntl.ioctl(any_socket.fileno(), SIOCGIFCONF, asked))
    entries = ENTRY.iter_unpack(held.tobytes()[:length])
    return [(device_of(name.partition(b"\0")[0].decode()), IPv4Address(address)) for name, _, address in entries]


def addresses_in(where: str) -> list[tuple[str, IPv4Address]]:
    """Return the addresses in a fabric, which is given by its interface (`eth1`) or its subnet (`10.1.0.0/24`)."""
    if "/" not in where:
        return [(name, one) for name, one in addresses() if name == device_of(where)]
    subnet = IPv4Network(where)
    return [(name, one) for name, one in addresses() if one in subnet]


def interface_of(where: str, routes: Path = ROUTES) -> str | None:
    """Return the interface in a fabric; None where this host has none.

    Without an address in the subnet it is what the most specific route to that leads through: a default route leads anywhere.
    """
    if "/" not in where:
        name = device_of(where)
        return name if name in (known for _, known in socket.if_nameindex()) else None
    own = addresses_in(where)
    return own[0][0] if own else _routed(IPv4Network(where), routes)


def _routed(subnet: IPv4Network, routes: Path) -> str | None:
    found: list[tuple[int, str]] = []
    try:
        lines = routes.read_text().splitlines()[1:]
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        destination, mask = (
            int.from_bytes(int(fields[place], 16).to_bytes(4, "little")) for place in (DESTINATION, MASK)
        )
        prefix = mask.bit_count()
        if 0 < prefix <= subnet.prefixlen and int(subnet.network_address) & mask == destination:
            found.append((prefix, fields[0]))
    return device_of(max(found)[1]) if found else None
