from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricbench.lab import PRESETS, EmulatedFabric, parse_fabric
from fabricbench.lab.sender_limit import (
    LARGEST_PACKET_BYTES,
    SLOT_BITS,
    UNIT_BITS,
    host_queue_bytes,
    packet_wire_bytes,
    sender_limit,
)

FABRICS = [
    *PRESETS.values(),
    parse_fabric("myrinet:overhead=-14,name=no-header"),
    parse_fabric("myrinet:cell=64/80,name=odd-cells"),
]
LIMITS = {fabric.name: sender_limit(fabric) for fabric in FABRICS}
TCP_HEADERS = 66


def counted_bytes(fabric: EmulatedFabric, packet_bytes: int) -> int:
    """What the kernel counts for a packet: net/sched/sch_api.c, __qdisc_calculate_pkt_len."""
    limit = LIMITS[fabric.name]
    return limit.sizes[(packet_bytes + limit.alignment_bytes) >> SLOT_BITS] << UNIT_BITS


@pytest.mark.parametrize("fabric", FABRICS, ids=lambda fabric: fabric.name)
def test_a_full_frame_counts_as_on_the_wire(fabric: EmulatedFabric):
    frame = fabric.mtu + 14
    assert 0 <= counted_bytes(fabric, frame) - fabric.wire.wire_bytes(frame) < 2


@pytest.mark.slow
@given(fabric=st.sampled_from(FABRICS), packet=st.integers(60, 9014))
def test_no_frame_counts_for_less_than_it_takes_on_the_wire(fabric: EmulatedFabric, packet: int):
    frame = min(packet, fabric.mtu + 14)
    assert counted_bytes(fabric, frame) >= fabric.wire.wire_bytes(frame)


@given(fabric=st.sampled_from(FABRICS), segments=st.integers(1, 44))
def test_many_segments_in_one_packet_count_as_many_frames(fabric: EmulatedFabric, segments: int):
    segment = fabric.mtu + 14 - TCP_HEADERS
    packet = TCP_HEADERS + segments * segment
    if packet <= LARGEST_PACKET_BYTES:
        on_wire = segments * fabric.wire.wire_bytes(fabric.mtu + 14)
        assert packet_wire_bytes(fabric.wire, fabric.mtu, packet) == on_wire
        in_the_rest_of_the_slot = 0 if segment % (1 << SLOT_BITS) == 0 else fabric.wire.wire_bytes(TCP_HEADERS + 3)
        assert 0 <= counted_bytes(fabric, packet) - on_wire < 2 + in_the_rest_of_the_slot


@pytest.mark.parametrize("fabric", FABRICS, ids=lambda fabric: fabric.name)
def test_the_switch_can_hold_what_a_node_may_send_ahead(fabric: EmulatedFabric):
    assert host_queue_bytes(fabric) > LIMITS[fabric.name].burst_bytes
