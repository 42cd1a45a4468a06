"""Turns off what a virtual link would do beyond its wire: segmentation, aggregation and checksums left for later.

With them on, a "frame" of 64 KiB would cross a link of MTU 1500, and the switch, which forwards bytes, would forward frames whose
checksum nobody has computed. Uses the ioctl that `ethtool -K` uses (linux/ethtool.h); the ethtool program is not needed.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct

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
