"""How a node is kept from sending faster than its link: the kernel's token bucket (tbf) with the wire's arithmetic as a size table.

The switch shapes exactly. This only makes senders wait, as a full queue of a network card does, where the switch alone would
have to drop. It must not be faster than the link by the smallest share, or the switch's host queue overflows in time; nor slower,
or it and not the link would be measured.

It is set over netlink. pyroute2 knows neither size tables nor a burst in bytes, so the one message is put together here. Layouts:
linux/pkt_sched.h (tc_sizespec, tc_ratespec, tc_tbf_qopt), linux/rtnetlink.h (tcmsg).
"""

from __future__ import annotations

import os
import socket
import struct
from array import array
from math import ceil

from fabricbench.lab.fabric import EmulatedFabric
from fabricbench.model import Model
from fabricbench.testbed.wire import ETHERNET_HEADER_BYTES, IP_HEADER_BYTES, TCP_HEADER_BYTES, Wire

BURST_S = 2e-3
"""How long a node may send ahead of its link. The bucket's timer may be this late without losing rate."""
LEAST_BURST_BYTES = 80 * 1024
"""A bucket cuts packets that are larger than its burst, and counts the pieces without the table. TCP's are up to 64 KiB."""
QUEUE_BYTES = 4 * 1024 * 1024
"""What may wait: more than a socket may have in flight, so that senders block and nothing is dropped."""

KERNEL_SECONDS = 10.0
"""The kernel answers at once; no start of a lab should hang where it does not."""

SLOT_BITS = 2
"""Packets are told apart by 4 bytes of length, so that whole segments end with a slot wherever 4 divides the MTU."""
UNIT_BITS = 1
"""The table counts in units of 2 bytes, because its entries have 16 bits and cells make 64 KiB larger than that."""
LARGEST_PACKET_BYTES = 65_535 + ETHERNET_HEADER_BYTES
"""TCP hands down many segments as one packet whatever the offloads say; they are cut behind the bucket."""


class SenderLimit(Model):
    """A token bucket. A packet of L bytes, header included, counts as `sizes[(L + alignment_bytes) >> SLOT_BITS]` units."""

    rate_bytes_s: int
    burst_bytes: int
    queue_bytes: int
    alignment_bytes: int
    sizes: tuple[int, ...]


def burst_bytes(fabric: EmulatedFabric) -> int:
    """Return how many wire bytes a node may send ahead of its link."""
    full_frame = fabric.wire.wire_bytes(fabric.mtu + ETHERNET_HEADER_BYTES)
    return round(max(BURST_S * fabric.line_rate_bit_s / 8, 4 * full_frame, LEAST_BURST_BYTES))


def host_queue_bytes(fabric: EmulatedFabric) -> int:
    """Return what the switch must hold for a node: twice the burst, since a timer or a processor may be late."""
    return 2 * burst_bytes(fabric) + 8 * fabric.wire.wire_bytes(fabric.mtu + ETHERNET_HEADER_BYTES)


def sender_limit(fabric: EmulatedFabric, node: int = 0) -> SenderLimit:
    """Return the limiter of a node's link; nodes are counted from 0."""
    wire, slot = fabric.wire, 1 << SLOT_BITS
    # So that a full frame is the longest packet of its slot, for which the slot's count is exact.
    alignment = slot - 1 - (fabric.mtu + ETHERNET_HEADER_BYTES) % slot
    slots = (LARGEST_PACKET_BYTES + alignment >> SLOT_BITS) + 1
    longest = (index * slot + slot - 1 - alignment for index in range(slots))
    return SenderLimit(
        rate_bytes_s=round(fabric.line_rate_of(node) / 8),
        burst_bytes=burst_bytes(fabric),
        queue_bytes=QUEUE_BYTES,
        alignment_bytes=alignment,
        sizes=tuple(
            min(ceil(packet_wire_bytes(wire, fabric.mtu, length) / (1 << UNIT_BITS)), 0xFFFF) for length in longest
        ),
    )


def packet_wire_bytes(wire: Wire, mtu: int, packet_bytes: int) -> int:
    """Return what a packet takes on the wire; one longer than a frame is TCP's, whose headers are there only once."""
    largest_frame = mtu + ETHERNET_HEADER_BYTES
    if packet_bytes <= largest_frame:
        return wire.wire_bytes(max(packet_bytes, ETHERNET_HEADER_BYTES))
    headers = ETHERNET_HEADER_BYTES + IP_HEADER_BYTES + TCP_HEADER_BYTES
    segment = largest_frame - headers
    full, rest = divmod(packet_bytes - headers, segment)
    return full * wire.wire_bytes(largest_frame) + (wire.wire_bytes(rest + headers) if rest else 0)


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
        netlink.settimeout(KERNEL_SECONDS)
        netlink.send(struct.pack("=IHHII", 16 + len(payload), _RTM_NEWQDISC, flags, 1, 0) + payload)
        answer = netlink.recv(65536)
    answered, code = struct.unpack_from("=H", answer, 4)[0], struct.unpack_from("=i", answer, 16)[0]
    if answered == _NLMSG_ERROR and code != 0:
        raise OSError(-code, f"cannot limit what the node sends (tbf): {os.strerror(-code)}")
