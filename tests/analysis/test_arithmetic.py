"""What arithmetic says of patterns of many ranks, against numbers worked out by hand for Fast Ethernet."""

from __future__ import annotations

import pytest

from fabricbench.analysis.channels import channel_rate, channels_on_a_link
from fabricbench.model import Layer, Pattern
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS, bus_factor
from fabricbench.testbed.wire import Wire

FAST_ETHERNET = Wire(line_rate_bit_s=100e6)
FULL_TCP = 100e6 * 1448 / 1538
"""1500 bytes less 20 of IP and 32 of TCP, in 1538 on the wire: 94.15 Mbit/s."""


@pytest.mark.parametrize(
    ("pattern", "flows", "expected"),
    [
        (Pattern.RING, 1, FULL_TCP),
        (Pattern.STAR, 1, FULL_TCP / 3),
        (Pattern.CHAOS, 1, FULL_TCP / 3),
        (Pattern.INCAST, 1, FULL_TCP / 3),
        (Pattern.INCAST, 16, FULL_TCP / 48),
        (Pattern.OUTCAST, 4, FULL_TCP / 12),
        (Pattern.BISTREAM, 2, FULL_TCP / 2),
        (Pattern.BISECTION, 1, FULL_TCP),
    ],
)
def test_a_channel_gets_its_share_of_the_busiest_link(pattern: Pattern, flows: int, expected: float):
    rate = channel_rate(FAST_ETHERNET, 1500, Layer.TCP, pattern, 65536, ranks=4, flows=flows)
    assert rate == pytest.approx(expected, rel=1e-12)


def test_small_datagrams_pay_for_the_smallest_frame():
    # 8 bytes of payload and 28 of headers in a frame of 60 and 4, 84 bytes on the wire: 148,810 of them a second.
    rate = channel_rate(FAST_ETHERNET, 1500, Layer.UDP, Pattern.MESSAGE_RATE, 8, ranks=4, flows=1)
    assert rate == pytest.approx(100e6 / 8 / 84)


def test_every_flood_has_arithmetic_and_no_other_pattern():
    for pattern, facts in PATTERNS.items():
        assert (channels_on_a_link(pattern, 4, 1) is not None) == (facts.family is Family.FLOOD), pattern


def test_memory_has_no_link():
    assert channel_rate(FAST_ETHERNET, 1500, Layer.MEMORY, Pattern.RING, 8, ranks=4, flows=1) is None


@pytest.mark.parametrize(
    ("pattern", "factor"),
    [
        (Pattern.ALLREDUCE, 1.5),
        (Pattern.ALLGATHER, 0.75),
        (Pattern.REDUCE_SCATTER_BLOCK, 0.75),
        (Pattern.ALLTOALLV, 0.75),
        (Pattern.BCAST, 1.0),
        (Pattern.REDUCE, 1.0),
        (Pattern.BARRIER, None),
        (Pattern.SCAN, None),
        (Pattern.PUT, None),
    ],
)
def test_bus_factors_are_those_of_the_nccl_tests(pattern: Pattern, factor: float | None):
    assert bus_factor(pattern, 4) == factor
