"""What a layer can carry on a fabric: which layers it has at all, and the smallest and largest message. Pure."""

from __future__ import annotations

from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS, Family
from fabricbench.testbed.model import Fabric
from fabricbench.testbed.wire import IP_HEADER_BYTES, UDP_HEADER_BYTES

TOKEN_BYTES = 8
"""Datagrams carry a token and a sequence number, so that strangers are refused and losses counted."""

DOUBLE_BYTES = 8
"""Operations that sum take doubles; the table of patterns says so by their smallest message."""

LARGEST_IP_PACKET_BYTES = 65_535
"""RFC 791: the length field has 16 bits."""

LARGEST_MESSAGE_BYTES = 2**30
"""For memory and the byte streams: a bound against typing errors, not a limit of theirs."""

UNRELIABLE = frozenset({Layer.FRAME, Layer.IP, Layer.UDP})
WITHOUT_INTERFACE = frozenset({Layer.MEMORY, Layer.MPI})
"""What a fabric that is no network interface (shared memory) can still be measured with."""


def has_layer(fabric: Fabric, layer: Layer) -> bool:
    """Tell whether the fabric has the layer: it is listed, and reached through an interface where it needs one."""
    return layer in fabric.layers and (fabric.has_interface or layer in WITHOUT_INTERFACE)


def why_unfit_size(size: int, layer: Layer, pattern: Pattern) -> str | None:
    """Return why messages of that size are too small for the layer or the pattern; None if they are not."""
    facts = PATTERNS[pattern]
    if layer in UNRELIABLE and size < TOKEN_BYTES:
        return f"the smallest is {TOKEN_BYTES} B (token and sequence)"
    if size < max(1, facts.smallest_message_bytes):
        return f"the smallest is {max(1, facts.smallest_message_bytes)} B"
    if facts.family is Family.OPERATION and facts.smallest_message_bytes == DOUBLE_BYTES and size % DOUBLE_BYTES:
        return f"it sums doubles, so sizes are multiples of {DOUBLE_BYTES} B"
    return None


def largest_message_bytes(layer: Layer, fabric: Fabric) -> int:
    """Return the largest message that the layer carries on the fabric (datagrams may be fragmented, frames may not)."""
    if layer is Layer.FRAME:
        return fabric.mtu
    if layer is Layer.IP:
        return LARGEST_IP_PACKET_BYTES - IP_HEADER_BYTES
    if layer is Layer.UDP:
        return LARGEST_IP_PACKET_BYTES - IP_HEADER_BYTES - UDP_HEADER_BYTES
    return LARGEST_MESSAGE_BYTES
