"""What the measurer measures: every layer in every pattern, over this machine's loopback."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import product

import pytest

from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.record.lines import Footer, Header, Phase, StopReason

pytestmark = [pytest.mark.mpi, pytest.mark.alone]

SOCKET_LAYERS = [Layer.FRAME, Layer.IP, Layer.UDP, Layer.TCP]
IS_ROOT = os.geteuid() == 0
OPEN_LAYERS = SOCKET_LAYERS if IS_ROOT else [Layer.UDP, Layer.TCP]


@pytest.mark.tour
def test_every_layer_has_ping_pong_and_stream_and_the_payload_comes_back_as_it_was_sent(probe: Callable):
    layers = [*OPEN_LAYERS, Layer.MPI]
    cells = list(product(layers, (Pattern.PINGPONG, Pattern.STREAM)))
    outcome = probe(
        [
            {"layer": layer, "pattern": pattern, "message_bytes": 256, "messages_per_sample": 4, "verify_messages": 5}
            for layer, pattern in cells
        ]
    )
    assert outcome.code == 0, outcome.stderr
    assert isinstance(outcome.lines[0], Header)
    assert isinstance(outcome.lines[-1], Footer)
    assert (outcome.lines[-1].cells, outcome.lines[-1].failed) == (len(cells), 0)
    for number, (layer, pattern) in enumerate(cells):
        cell, end = outcome.cell(number), outcome.end(number)
        assert (cell.layer, cell.pattern) == (layer, pattern)
        assert cell.metric is (Metric.ROUND_TRIP_TIME if pattern is Pattern.PINGPONG else Metric.THROUGHPUT)
        assert cell.bytes_per_sample == (512 if pattern is Pattern.PINGPONG else 1024)
        assert cell.messages_per_sample == (1 if pattern is Pattern.PINGPONG else 4)
        assert cell.receive is (Receive.LIBRARY if layer is Layer.MPI else Receive.BLOCKING)
        assert (end.verified, end.corrupted) == (5, 0)
        assert len(outcome.times(number)) == end.measured >= 1
        assert len(outcome.times(number, Phase.WARMUP)) == end.warmup == 3
        assert all(time > 0 for time in outcome.times(number))
        assert "lo" in end.interfaces


def test_the_header_tells_who_measured_where_and_with_what_clock(probe: Callable):
    header = probe([{"layer": "tcp", "pattern": "pingpong", "message_bytes": 64}]).header
    assert header.launch_id == "b00-loopback"
    assert [rank.rank for rank in header.ranks] == [0, 1]
    assert len({rank.pid for rank in header.ranks}) == 2
    for rank in header.ranks:
        assert (rank.interface, rank.address, rank.mac) == ("lo", "127.0.0.1", "00:00:00:00:00:00")
        assert set(rank.cpus) <= os.sched_getaffinity(0)
    assert header.clock.resolution_ns > 0
    assert 1 < header.clock.overhead_ns < 100_000


def test_the_interfaces_counters_show_that_the_payload_went_over_the_loopback(probe: Callable):
    outcome = probe(
        [{"layer": "tcp", "pattern": "stream", "message_bytes": 65536, "messages_per_sample": 4, "warmup_samples": 0}]
    )
    assert outcome.end(0).interfaces["lo"].sent >= outcome.end(0).measured * 4 * 65536


def test_a_spinning_receiver_is_named_in_the_record(probe: Callable):
    outcome = probe(
        [{"layer": layer, "pattern": "pingpong", "message_bytes": 64, "receive": "polling"} for layer in OPEN_LAYERS]
    )
    for number in range(len(OPEN_LAYERS)):
        assert outcome.cell(number).receive is Receive.POLLING
        assert outcome.end(number).measured >= 1


def test_memory_is_measured_by_one_rank_with_samples_far_longer_than_a_look_at_the_clock(probe: Callable):
    kernels = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
    streams = [
        {"layer": "memory", "pattern": "stream", "message_bytes": 4096, "ranks": [0], "parameters": {"kernel": kernel}}
        for kernel in kernels
    ]
    outcome = probe([*streams, {"layer": "memory", "pattern": "pingpong", "message_bytes": 64}], ranks=1)
    assert outcome.code == 0, outcome.stderr
    for number, arrays in enumerate(kernels.values()):
        cell = outcome.cell(number)
        assert cell.ranks == (0,)
        assert cell.bytes_per_sample == arrays * 4096 * cell.operations_per_sample
    copy = outcome.cell(len(kernels))
    assert copy.operations_per_sample > 1
    assert copy.bytes_per_sample == 2 * 64 * copy.operations_per_sample
    times = sorted(outcome.times(len(kernels)))
    assert times[len(times) // 2] > 20 * outcome.header.clock.overhead_ns


def test_any_two_of_four_ranks_take_part_while_the_others_sleep(probe: Callable):
    pairs = [(0, 1), (3, 2), (1, 3), (2, 0)]
    outcome = probe(
        [
            {"layer": "tcp", "pattern": pattern, "message_bytes": 128, "messages_per_sample": 8, "ranks": list(pair)}
            for pair in pairs
            for pattern in ("pingpong", "stream")
        ],
        ranks=4,
    )
    assert outcome.code == 0, outcome.stderr
    assert outcome.lines[-1].failed == 0
    assert [outcome.cell(2 * number).ranks for number in range(4)] == pairs
    assert len(outcome.header.ranks) == 4


def test_a_cell_ends_by_width_by_number_or_by_time(probe: Callable):
    common = {"layer": "memory", "pattern": "pingpong", "message_bytes": 4096, "ranks": [0]}
    endless = {"minimum_samples": 50_000_000, "maximum_samples": 50_000_000, "maximum_seconds": 0.05}
    outcome = probe(
        [
            {**common, "stopping": {"relative_width": 1000.0, "maximum_seconds": 5}},
            {**common, "stopping": {"minimum_samples": 30, "maximum_samples": 25, "maximum_seconds": 5}},
            {**common, "stopping": {**endless, "maximum_samples": 1_000_000}},
        ],
        ranks=1,
    )
    assert outcome.end(0).stop is StopReason.WIDTH
    assert outcome.end(0).measured >= 20
    assert (outcome.end(1).stop, outcome.end(1).measured) == (StopReason.COUNT, 25)
    assert outcome.end(2).stop is StopReason.TIME
    assert 0.05 <= outcome.end(2).seconds < 5


def test_windows_that_lost_messages_tell_their_bytes_and_the_losses_are_counted(probe: Callable):
    # Two megabytes arrive faster than a receiver on a busy machine takes them; whether any is lost is up to the machine, so
    # what has to hold in either case is that bytes and losses tell the same story. The end is decided once: a window in which
    # it was decided that more are needed is sent and is no sample (native/tests/mpi/window_log_test.cpp).
    outcome = probe(
        [
            {
                "layer": "udp",
                "pattern": "stream",
                "message_bytes": 60_000,
                "messages_per_sample": 32,
                "warmup_samples": 0,
                "stopping": {"minimum_samples": 20, "maximum_samples": 20, "maximum_seconds": 20},
            }
        ]
    )
    cell, end = outcome.cell(0), outcome.end(0)
    assert end.measured == 20
    assert end.sent >= end.measured * 32
    carried = sum(outcome.bytes(0)) or end.measured * cell.bytes_per_sample
    assert end.sent - carried // 60_000 == end.lost
