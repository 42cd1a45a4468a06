"""Limits what a node may send to its link's rate: the kernel's token bucket (tbf), set over netlink.

pyroute2 knows tbf without its link layer (cells) and without a burst in bytes, so the one message is put together here.
Layouts: linux/pkt_sched.h (tc_ratespec, tc_tbf_qopt), linux/rtnetlink.h (tcmsg).
"""

from __future__ import annotations

import os
import socket
import struct

from fabricbench.lab.topology import SenderLimit

_RTM_NEWQDISC = 36
_NLM_F_REQUEST, _NLM_F_ACK, _NLM_F_REPLACE, _NLM_F_CREATE = 1, 4, 0x100, 0x400
_NLMSG_ERROR = 2
_TC_H_ROOT = 0xFFFFFFFF
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_TBF_PARMS, _TCA_TBF_RATE64, _TCA_TBF_PRATE64, _TCA_TBF_BURST, _TCA_TBF_PBURST = 1, 4, 5, 6, 7
_LINKLAYER_ETHERNET, _LINKLAYER_ATM = 1, 2
_MOST_RATE32 = 2**32 - 1

_PEAK_BYTES_S = 1_250_000_000_000
"""A peak rate that never delays: a frame takes a nanosecond. It is there for its burst of one frame, because tbf takes the smaller
burst as the largest packet it passes whole. TCP hands down many segments as one packet whatever the offloads say; counted as
one, with one frame's overhead, they would outrun the link by 1.6 %. So tbf cuts them, which costs less than TCP's doing so."""


def limit_sender(interface: int, limit: SenderLimit) -> None:
    """Put the token bucket at the root of the interface with that index. Raises OSError."""
    header = struct.pack("=BxxxiIII", socket.AF_UNSPEC, interface, 0, _TC_H_ROOT, 0)
    options = _attribute(_TCA_TBF_PARMS, _parameters(limit))
    options += _attribute(_TCA_TBF_BURST, struct.pack("=I", limit.burst_bytes))
    options += _attribute(_TCA_TBF_PBURST, struct.pack("=I", limit.largest_frame_bytes))
    options += _attribute(_TCA_TBF_PRATE64, struct.pack("=Q", _PEAK_BYTES_S))
    if limit.rate_bytes_s > _MOST_RATE32:
        options += _attribute(_TCA_TBF_RATE64, struct.pack("=Q", limit.rate_bytes_s))
    _request(_RTM_NEWQDISC, header + _attribute(_TCA_KIND, b"tbf\0") + _attribute(_TCA_OPTIONS, options))


def _parameters(limit: SenderLimit) -> bytes:
    linklayer = _LINKLAYER_ATM if limit.is_cell_taxed else _LINKLAYER_ETHERNET
    rate32 = min(limit.rate_bytes_s, _MOST_RATE32)
    rate = struct.pack("=BBHhHI", 0, linklayer, limit.overhead_bytes, 0, limit.minimum_bytes, rate32)
    peak = struct.pack("=BBHhHI", 0, _LINKLAYER_ETHERNET, 0, 0, 0, _MOST_RATE32)
    # The last two (bursts in ticks) are not used: the bursts are told in bytes.
    return rate + peak + struct.pack("=III", limit.queue_bytes, 0, 0)


def _attribute(kind: int, payload: bytes) -> bytes:
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + bytes(-length % 4)


def _request(kind: int, payload: bytes) -> None:
    flags = _NLM_F_REQUEST | _NLM_F_ACK | _NLM_F_CREATE | _NLM_F_REPLACE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(payload), kind, flags, 1, 0) + payload)
        answer = netlink.recv(65536)
    answered, code = struct.unpack_from("=H", answer, 4)[0], struct.unpack_from("=i", answer, 16)[0]
    if answered == _NLMSG_ERROR and code != 0:
        raise OSError(-code, f"token bucket on interface {_interface_name(payload)}: {os.strerror(-code)}")


def _interface_name(message: bytes) -> str:
    return socket.if_indextoname(struct.unpack_from("=i", message, 4)[0])
