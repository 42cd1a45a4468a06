"""How a node is kept from sending faster than its link: a token bucket with the wire's arithmetic as a table. Pure.

The switch shapes exactly. This only makes senders wait, as a full queue of a network card does, where the switch alone would
have to drop. It must not be faster than the link by the smallest share, or the switch's host queue overflows in time; nor slower,
or it and not the link would be measured.
"""

from __future__ import annotations

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

SLOT_BITS = 3
"""Packets are told apart by 8 bytes of length."""
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
