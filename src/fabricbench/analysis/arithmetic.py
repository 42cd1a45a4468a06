"""What arithmetic says of patterns of many ranks: the share of a link that each channel gets, and the work of a collective. Pure.

Links are full-duplex and meet in a switch that never blocks, so each direction of each host's own link is all that channels share:
a channel gets the payload rate of a link over the channels in the busiest direction that it uses. `docs/patterns.md` derives each.
"""

from __future__ import annotations

from fabricbench.model import Layer, Metric, Pattern
from fabricbench.patterns import PATTERNS, Load, metric_of
from fabricbench.testbed.wire import Wire


def channels_on_a_link(pattern: Pattern, ranks: int, flows: int) -> int | None:
    """Return how many channels share the busiest direction of a link; None for patterns that do not fill one.

    A ring's links carry one channel in each direction, and so do those of two ranks that stream both ways, of a bisection and of
    pairs; the root of a star, an incast or an outcast has all others on its link, and in a complete graph everybody has.
    """
    match PATTERNS[pattern].load:
        case Load.CHANNEL:
            return flows
        case Load.CHANNEL_OF_EACH:
            return (ranks - 1) * flows
    return None


def channel_rate(
    wire: Wire, mtu: int, layer: Layer, pattern: Pattern, message_bytes: int, *, ranks: int, flows: int
) -> float | None:
    """Return what a channel gets, in the pattern's unit (bit/s, or message/s); None where arithmetic has nothing to say."""
    sharing = channels_on_a_link(pattern, ranks, flows)
    possible = wire.payload_rate_bit_s(layer, message_bytes, mtu)
    if not sharing or possible is None:
        return None
    of_channel = possible / sharing
    return of_channel / (8 * message_bytes) if metric_of(pattern) is Metric.MESSAGE_RATE else of_channel


def bus_factor(pattern: Pattern, ranks: int) -> float | None:
    """Return what the algorithm bandwidth of a collective is multiplied by to be its bus bandwidth; None where none is usual.

    The factors of the NCCL tests (their `PERFORMANCE.md`): the share of the operation's bytes that the busiest link has to carry in
    one direction, whatever the algorithm.
    """
    match PATTERNS[pattern].load:
        case Load.MESSAGE:
            return 1.0
        case Load.MESSAGE_TWICE:
            return 2.0 * (ranks - 1) / ranks
        case Load.BLOCK_OF_EACH:
            return (ranks - 1) / ranks
    return None
