from __future__ import annotations

import pytest

from fabricbench.model import Layer
from fabricbench.testbed.wire import Wire, datagram_frames

LINK = Wire(line_rate_bit_s=20e6)


@pytest.mark.parametrize(
    ("mtu", "packet_bytes"), [(1500, 1024), (4200, 4096), (2048, 1024), (2108, 2048), (9000, 4096)]
)
def test_rdma_cuts_messages_into_the_largest_packets_that_fit(mtu: int, packet_bytes: int):
    headers = 14 + 20 + 8 + 12 + 4
    frames = datagram_frames(Layer.RDMA, 3 * packet_bytes + 1, mtu)
    assert frames == [packet_bytes + headers] * 3 + [1 + headers]


def test_rdma_over_converged_ethernet_carries_what_its_headers_leave():
    assert LINK.payload_rate_bit_s(Layer.RDMA, 1024, 1500) == pytest.approx(20e6 * 1024 / 1106)
    assert LINK.payload_rate_bit_s(Layer.RDMA, 2**20, 4200) == pytest.approx(20e6 * 4096 / 4178)
    assert LINK.payload_rate_bit_s(Layer.RDMA, 8, 1500) == pytest.approx(20e6 * 8 / 90)


def test_ipv6_leaves_less_of_a_packet():
    assert LINK.payload_rate_bit_s(Layer.TCP, 65536, 1500, ipv6=True) == pytest.approx(20e6 * (1500 - 40 - 32) / 1538)
    assert datagram_frames(Layer.UDP, 1452, 1500, ipv6=True) == [14 + 1500]
    fragments = datagram_frames(Layer.UDP, 1453, 1500, ipv6=True)
    assert fragments == [14 + 40 + 8 + 1448, 14 + 40 + 8 + 1453 + 8 - 1448]
