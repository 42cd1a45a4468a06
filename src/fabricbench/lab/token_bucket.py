"""Puts a sender limit on an interface: the kernel's token bucket (tbf) with a size table, set over netlink.

pyroute2 knows neither size tables nor a burst in bytes, so the one message is put together here. Layouts: linux/pkt_sched.h
(tc_sizespec, tc_ratespec, tc_tbf_qopt), linux/rtnetlink.h (tcmsg).
"""

from __future__ import annotations

import os
import socket
import struct
from array import array

from fabricbench.lab.sender_limit import SLOT_BITS, UNIT_BITS, SenderLimit

_RTM_NEWQDISC = 36
_NLM_F_REQUEST, _NLM_F_ACK, _NLM_F_REPLACE, _NLM_F_CREATE = 1, 4, 0x100, 0x400
_NLMSG_ERROR = 2
_TC_H_ROOT = 0xFFFFFFFF
_TCA_KIND, _TCA_OPTIONS, _TCA_STAB = 1, 2, 8
_TCA_STAB_BASE, _TCA_STAB_DATA = 1, 2
_TCA_TBF_PARMS, _TCA_TBF_RATE64, _TCA_TBF_BURST = 1, 4, 6
_LINKLAYER_ETHERNET = 1
_MOST_RATE32 = 2**32 - 1


def limit_sender(interface: int, limit: SenderLimit) -> None:
    """Put the token bucket at the root of the interface with that index. Raises OSError."""
    header = struct.pack("=BxxxiIII", socket.AF_UNSPEC, interface, 0, _TC_H_ROOT, 0)
    kind = _attribute(_TCA_KIND, b"tbf\0")
    _request(header + kind + _attribute(_TCA_OPTIONS, _bucket(limit)) + _attribute(_TCA_STAB, _size_table(limit)))


def _bucket(limit: SenderLimit) -> bytes:
    rate = struct.pack("=BBHhHI", 0, _LINKLAYER_ETHERNET, 0, 0, 0, min(limit.rate_bytes_s, _MOST_RATE32))
    no_peak = bytes(len(rate))
    # The last two (burst in ticks, packet size of the peak rate) are not used: the burst is told in bytes.
    options = _attribute(_TCA_TBF_PARMS, rate + no_peak + struct.pack("=III", limit.queue_bytes, 0, 0))
    options += _attribute(_TCA_TBF_BURST, struct.pack("=I", limit.burst_bytes))
    if limit.rate_bytes_s > _MOST_RATE32:
        options += _attribute(_TCA_TBF_RATE64, struct.pack("=Q", limit.rate_bytes_s))
    return options


def _size_table(limit: SenderLimit) -> bytes:
    sizes = array("H", limit.sizes)
    alignment = limit.alignment_bytes
    base = struct.pack("=BBhiIIII", SLOT_BITS, UNIT_BITS, alignment, 0, _LINKLAYER_ETHERNET, 0, 0, len(sizes))
    return _attribute(_TCA_STAB_BASE, base) + _attribute(_TCA_STAB_DATA, sizes.tobytes())


def _attribute(kind: int, payload: bytes) -> bytes:
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + bytes(-length % 4)


def _request(payload: bytes) -> None:
    flags = _NLM_F_REQUEST | _NLM_F_ACK | _NLM_F_CREATE | _NLM_F_REPLACE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(payload), _RTM_NEWQDISC, flags, 1, 0) + payload)
        answer = netlink.recv(65536)
    answered, code = struct.unpack_from("=H", answer, 4)[0], struct.unpack_from("=i", answer, 16)[0]
    if answered == _NLMSG_ERROR and code != 0:
        raise OSError(-code, f"cannot limit what the node sends (tbf): {os.strerror(-code)}")
