"""Becomes a program, told which interface of this node is in a subnet: `python -I -S on_subnet.py NAME SUBNET PROGRAM...`.

The interface's name goes into the environment variable NAME. For MPIs that are told of a fabric by the name of an interface, where
nodes name it differently. Only the standard library, and every descriptor stays open: starters talk to their ranks through one.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
import sys
from ipaddress import IPv4Address, IPv4Network

SIOCGIFCONF = 0x8912
ENTRY = struct.Struct("16s2xH4s16x")
"""struct ifreq with a sockaddr_in in it (linux/if.h): name, family and port, address, the rest of 40 bytes."""

MOST_ADDRESSES = 512

NO_INTERFACE = 78
"""EX_CONFIG of sysexits.h: this node is not what the testbed says."""

CANNOT_START = 127


def addresses() -> list[tuple[str, IPv4Address]]:
    """Return each IPv4 address of this node with the name of its interface, in the kernel's order."""
    held = array.array("B", bytes(ENTRY.size * MOST_ADDRESSES))
    asked = struct.pack("iL", len(held), held.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        length, _ = struct.unpack("iL", fcntl.ioctl(any_socket.fileno(), SIOCGIFCONF, asked))
    entries = ENTRY.iter_unpack(held.tobytes()[:length])
    return [(name.partition(b"\0")[0].decode(), IPv4Address(address)) for name, _, address in entries]


def main(arguments: list[str]) -> int:
    """Become the program; return only where that is not possible."""
    variable, subnet, command = arguments[0], IPv4Network(arguments[1]), arguments[2:]
    found = addresses()
    interface = next((name for name, address in found if address in subnet), None)
    if interface is None:
        there = ", ".join(f"{name} ({address})" for name, address in found) or "none"
        sys.stderr.write(f"{os.uname().nodename} has no interface in {subnet}; it has {there}\n")
        return NO_INTERFACE
    # An alias has a name of its own, eth0:1, and belongs to eth0.
    os.environ[variable] = interface.partition(":")[0]
    try:
        os.execvp(command[0], command)  # noqa: S606 - tokens, never a shell string
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return CANNOT_START


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
