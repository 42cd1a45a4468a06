"""The arithmetic of a wire: how many bytes a frame takes on it, and the payload rate that is physically possible.

Pure. Sources: IEEE 802.3 (preamble 8, frame check 4, gap 12, smallest frame 64), RFC 894, RFC 791 (fragments carry multiples of
8 bytes), RFC 793 with RFC 7323 time stamps (12 bytes), RFC 2225 and ITU-T I.363.5 (AAL5: 8-byte LLC/SNAP header, 8-byte
trailer, cells of 48 bytes in 53), InfiniBand Architecture Specification volume 1 with annex A17 (RoCE v2: transport header 12,
invariant check 4, over UDP), RFC 8200 (IPv6).
"""

from __future__ import annotations

from math import ceil

from pydantic import Field

from fabricbench.model import Layer, Model
from fabricbench.quantity import BitPerSecond, Bytes

ETHERNET_HEADER_BYTES = 14
IP_HEADER_BYTES = 20
IPV6_HEADER_BYTES, IPV6_FRAGMENT_BYTES = 40, 8
"""Of each packet, and beside it of each fragment (RFC 8200)."""
UDP_HEADER_BYTES = 8
TCP_HEADER_BYTES = 32
"""20 bytes and the time-stamp option, which Linux uses by default."""

RDMA_HEADER_BYTES = 12 + 4
"""Base transport header and invariant check of each packet; what an operation adds (RETH 16, immediate 4) is not counted."""

RDMA_PATH_MTUS = (4096, 2048, 1024, 512, 256)
"""What of a message goes into a packet."""


class CellTax(Model):
    """A fabric that cuts frames into cells: each `payload_bytes` of them travel as `cell_bytes`."""

    payload_bytes: Bytes = 48
    cell_bytes: Bytes = 53


class Wire(Model):
    """One link: its line rate and what a frame costs on it.

    `overhead_bytes` is added to the frame as the interface sees it (Ethernet header included, frame check not); it may be
    negative where the emulated link has no Ethernet header. Without `cell`, a frame takes at least `minimum_bytes`.
    """

    line_rate_bit_s: BitPerSecond = Field(gt=0)
    overhead_bytes: int = 24
    minimum_bytes: Bytes = 84
    cell: CellTax | None = None

    def wire_bytes(self, frame_bytes: int) -> int:
        """Return the bytes that a frame of `frame_bytes` (Ethernet header included) takes on the wire."""
        if self.cell is not None:
            return ceil((frame_bytes + self.overhead_bytes) / self.cell.payload_bytes) * self.cell.cell_bytes
        return max(frame_bytes + self.overhead_bytes, self.minimum_bytes)

    def serialisation_s(self, frame_bytes: int) -> float:
        """Return the seconds that a frame of `frame_bytes` occupies the link."""
        return self.wire_bytes(frame_bytes) * 8 / self.line_rate_bit_s

    def payload_rate_bit_s(self, layer: Layer, message_bytes: int, mtu: int, *, ipv6: bool = False) -> float | None:
        """Return the highest rate at which `layer` can move payload in messages of `message_bytes`; None for memory.

        Datagram layers and RDMA send each message in frames of its own; TCP, and MPI over it, are taken as filling each segment.
        """
        if layer is Layer.MEMORY:
            return None
        if layer in (Layer.TCP, Layer.MPI):
            segment = mtu - (IPV6_HEADER_BYTES if ipv6 else IP_HEADER_BYTES) - TCP_HEADER_BYTES
            return self.line_rate_bit_s * segment / self.wire_bytes(mtu + ETHERNET_HEADER_BYTES)
        wire = sum(self.wire_bytes(frame) for frame in datagram_frames(layer, message_bytes, mtu, ipv6=ipv6))
        return self.line_rate_bit_s * message_bytes / wire


def datagram_frames(layer: Layer, message_bytes: int, mtu: int, *, ipv6: bool = False) -> list[int]:
    """Return the frame sizes (Ethernet header included) that carry one message on the frame, ip, udp or rdma (RoCE v2) layer."""
    if layer is Layer.FRAME:
        return [message_bytes + ETHERNET_HEADER_BYTES]
    if layer is Layer.RDMA:
        return _rdma_frames(message_bytes, mtu)
    datagram = message_bytes + (UDP_HEADER_BYTES if layer is Layer.UDP else 0)
    headers = IPV6_HEADER_BYTES if ipv6 else IP_HEADER_BYTES
    if datagram > mtu - headers:
        headers += IPV6_FRAGMENT_BYTES if ipv6 else 0
        fragment = (mtu - headers) // 8 * 8
    else:
        fragment = mtu - headers
    sizes = [fragment] * (datagram // fragment)
    if datagram % fragment or not sizes:
        sizes.append(datagram % fragment)
    return [size + headers + ETHERNET_HEADER_BYTES for size in sizes]


def _rdma_frames(message_bytes: int, mtu: int) -> list[int]:
    headers = IP_HEADER_BYTES + UDP_HEADER_BYTES + RDMA_HEADER_BYTES
    packet = next((size for size in RDMA_PATH_MTUS if size + headers <= mtu), RDMA_PATH_MTUS[-1])
    full, rest = divmod(message_bytes, packet)
    sizes = [packet] * full + ([rest] if rest or not full else [])
    return [size + headers + ETHERNET_HEADER_BYTES for size in sizes]
