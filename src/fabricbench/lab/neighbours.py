"""Neighbours that a node knows for good, all of an interface in one message: one by one they are what a large lab waits for.

The messages are those of rtnetlink(7): a header (linux/netlink.h), `ndmsg` and its attributes (linux/neighbour.h).
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence
from ipaddress import IPv4Address

_NEW_NEIGHBOUR = 28
_REQUEST, _ACKNOWLEDGE, _REPLACE, _CREATE = 0x1, 0x4, 0x100, 0x400
_ERROR = 2
"""The type of an answer: an error, or that there was none."""
_PERMANENT = 0x80
_ADDRESS, _HARDWARE_ADDRESS = 1, 2
_HEADER = struct.Struct("=IHHII")
_MESSAGE = struct.Struct("=IHHII BxxxiHBB HH4s HH6sxx")
_MOST = 1024
"""Messages at once: what they hold is far below any socket's buffer."""


def add_neighbours(interface: int, neighbours: Sequence[tuple[IPv4Address, str]]) -> None:
    """Let an interface of this namespace, by its index, know the hardware address of each neighbour. Raises OSError."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as control:
        for first in range(0, len(neighbours), _MOST):
            _add(control, interface, neighbours[first : first + _MOST])


def _add(control: socket.socket, interface: int, neighbours: Sequence[tuple[IPv4Address, str]]) -> None:
    last = len(neighbours)
    messages = (
        _message(number, interface, address, mac, _ACKNOWLEDGE if number == last else 0)
        for number, (address, mac) in enumerate(neighbours, start=1)
    )
    control.send(b"".join(messages))
    while True:
        answers = control.recv(65536)
        while answers:
            length, kind, _, number, _ = _HEADER.unpack_from(answers)
            if kind == _ERROR:
                (code,) = struct.unpack_from("=i", answers, _HEADER.size)
                if code:
                    raise OSError(-code, f"neighbour {neighbours[number - 1][0]}: {os.strerror(-code)}")
                if number == last:
                    return
            answers = answers[(length + 3) & ~3 :]


def _message(number: int, interface: int, address: IPv4Address, mac: str, flags: int) -> bytes:
    header = (_MESSAGE.size, _NEW_NEIGHBOUR, _REQUEST | _CREATE | _REPLACE | flags, number, 0)
    of_interface = (socket.AF_INET, interface, _PERMANENT, 0, 0)
    attributes = (8, _ADDRESS, address.packed, 10, _HARDWARE_ADDRESS, bytes.fromhex(mac.replace(":", "")))
    return _MESSAGE.pack(*header, *of_interface, *attributes)
