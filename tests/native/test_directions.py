"""One-way latencies, paced round trips, bursts and matrices, and the clocks that the directions are told apart by."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from fabricbench.model import Layer, Pattern
from fabricbench.native import build_info, native_file
from fabricbench.record.lines import LINE_ADAPTER, Channel, Clock, Quantity
from support.measurer import TIME_LIMIT_S, Outcome, plan_of

pytestmark = [pytest.mark.mpi, pytest.mark.alone]

IS_ROOT = os.geteuid() == 0
LAYERS = [*([Layer.FRAME, Layer.IP] if IS_ROOT else []), Layer.UDP, Layer.TCP, Layer.MPI]
AHEAD_S = 1000


def channels_of(outcome: Outcome, cell: int) -> list[Channel]:
    return [line for line in outcome.lines if isinstance(line, Channel) and line.cell == cell]


def test_the_two_directions_add_up_to_the_round_trip(probe: Callable[..., Outcome]) -> None:
    outcome = probe([{"layer": layer, "pattern": "oneway", "message_bytes": 64} for layer in LAYERS])
    for number in range(len(LAYERS)):
        forth, back = channels_of(outcome, number)
        assert (forth.quantity, forth.source, forth.destination) == (Quantity.ONE_WAY, 0, 1)
        assert (back.quantity, back.source, back.destination) == (Quantity.ONE_WAY, 1, 0)
        trips = outcome.times(number)
        assert len(forth.time_ns) == len(back.time_ns) == len(trips)
        for there, again, trip in zip(forth.time_ns, back.time_ns, trips, strict=True):
            assert 0 < there + again <= trip + 2000  # what is between coming and going back, on the other rank
    clocks = [line for line in outcome.lines if isinstance(line, Clock)]
    assert [(one.rank, one.phase, one.is_shared) for one in clocks] == [
        (rank, phase, True) for phase in ("begin", "end") for rank in (0, 1)
    ]
    assert all(one.error_ns == 0 for one in clocks)
    # What the synchronisation would have said of two ranks that read one clock: no offset, within its own bound.
    assert all(abs(one.estimated_offset_ns) <= one.estimated_error_ns for one in clocks)


@pytest.mark.skipif(
    not IS_ROOT or shutil.which("unshare") is None, reason="needs root and unshare for a time namespace"
)
def test_a_clock_that_is_far_ahead_is_understood_within_its_bound(tmp_path: Path) -> None:
    """Rank 1 runs in a time namespace whose monotonic clock is 1000 s ahead: the truth is known to the nanosecond."""
    plan, output = tmp_path / "plan.json", tmp_path / "records.jsonl"
    plan.write_text(json.dumps(plan_of([{"layer": "tcp", "pattern": "oneway", "message_bytes": 64}], output)))
    probe = [str(native_file("fabricbench-probe")), str(plan)]
    ahead = ["unshare", "--time", "--monotonic", str(AHEAD_S), *probe]
    tokens = [build_info().mpiexec, "-n", "1", *probe, ":", "-n", "1", *ahead]
    environment = {**os.environ, "LD_PRELOAD": str(native_file("libfabricbench-yield.so"))}
    subprocess.run(tokens, check=True, timeout=TIME_LIMIT_S, env=environment, cwd=tmp_path)
    outcome = Outcome(0, "", [LINE_ADAPTER.validate_json(line) for line in output.read_text().splitlines()])
    for one in (line for line in outcome.lines if isinstance(line, Clock) and line.rank == 1):
        assert not one.is_shared
        assert abs(one.offset_ns + AHEAD_S * 1e9) <= one.error_ns
        assert one.error_ns < 50e6  # bounded at all: a busy machine makes exchanges long, not wrong
    forth, back = channels_of(outcome, 0)
    bound = max(line.error_ns for line in outcome.lines if isinstance(line, Clock))
    trip = median(outcome.times(0))
    assert abs(median(forth.time_ns) + median(back.time_ns) - trip) < 0.2 * trip
    assert median(forth.time_ns) > -bound
    assert median(back.time_ns) > -bound


def test_a_paced_ping_pong_keeps_its_interval(probe: Callable[..., Outcome]) -> None:
    stopping = {"maximum_samples": 10, "minimum_samples": 10, "maximum_seconds": 2.0}
    outcome = probe(
        [
            {
                "layer": layer,
                "pattern": "paced",
                "message_bytes": 64,
                "parameters": {"interval_us": 5000},
                "stopping": stopping,
            }
            for layer in LAYERS
        ]
    )
    for number in range(len(LAYERS)):
        assert outcome.end(number).measured == 10
        assert outcome.end(number).seconds >= 9 * 0.005


def test_a_burst_is_answered_once_and_takes_longer_than_a_message(probe: Callable[..., Outcome]) -> None:
    cells = [(layer, count) for layer in LAYERS for count in (1, 64)]
    outcome = probe(
        [
            {"layer": layer, "pattern": "burst", "message_bytes": 512, "parameters": {"messages": count}}
            for layer, count in cells
        ]
    )
    for number, (_, count) in enumerate(cells):
        assert outcome.cell(number).bytes_per_sample == (count + 1) * 512
        assert outcome.end(number).verified == 0 or outcome.end(number).corrupted == 0
    for number in range(0, len(cells), 2):
        assert median(outcome.times(number + 1)) > median(outcome.times(number))


@pytest.mark.parametrize("schedule", ["alone", "rounds"])
def test_every_pair_is_measured_once_each_way(probe: Callable[..., Outcome], schedule: str) -> None:
    patterns = (Pattern.PAIRS, Pattern.PAIRS_STREAM)
    cells = [(layer, pattern) for layer in LAYERS for pattern in patterns]
    outcome = probe(
        [
            {
                "layer": layer,
                "pattern": pattern,
                "message_bytes": 256,
                "ranks": [0, 1, 2, 3],
                "messages_per_sample": 4,
                "verify_messages": 2,
                "parameters": {"schedule": schedule},
            }
            for layer, pattern in cells
        ],
        ranks=4,
    )
    pairs = [(one, other) for one in range(4) for other in range(one + 1, 4)]
    for number, (_, pattern) in enumerate(cells):
        channels = channels_of(outcome, number)
        found = sorted((channel.source, channel.destination) for channel in channels)
        both = sorted([*pairs, *((other, one) for one, other in pairs)])
        assert found == (pairs if pattern is Pattern.PAIRS else both)
        assert sum(len(channel.time_ns) for channel in channels) == outcome.end(number).measured
        assert (outcome.end(number).verified, outcome.end(number).corrupted) == (2 * len(found), 0)
        if pattern is Pattern.PAIRS_STREAM:
            assert all(len(channel.bytes or ()) == len(channel.time_ns) for channel in channels)


@pytest.mark.parametrize("pattern", [Pattern.PAIRS, Pattern.PAIRS_STREAM])
def test_a_matrix_is_observed_as_a_whole_in_whatever_order_its_ranks_are(
    probe: Callable[..., Outcome], pattern: Pattern
) -> None:
    cell = {"layer": "tcp", "pattern": pattern, "message_bytes": 256, "ranks": [2, 0, 1]}
    whole = {"maximum_seconds": 0.3, "relative_width": 1e-6}
    outcome = probe([{**cell, "stopping": whole, "parameters": {"schedule": "alone"}}], ranks=3)
    end = outcome.end(0)
    measured_s = sum(sum(channel.time_ns) for channel in channels_of(outcome, 0)) / 1e9
    assert end.seconds >= measured_s
    assert end.begin_unix_ns is not None
    assert end.end_unix_ns is not None
    assert (end.end_unix_ns - end.begin_unix_ns) / 1e9 >= measured_s
    assert end.interfaces["lo"].sent >= 256 * end.measured


def test_of_halves_each_rank_has_its_counterpart_and_all_are_measured_at_once(probe: Callable[..., Outcome]) -> None:
    halves = {"schedule": "halves"}
    patterns = (Pattern.PAIRS, Pattern.PAIRS_STREAM)
    outcome = probe(
        [
            {
                "layer": layer,
                "pattern": pattern,
                "message_bytes": 256,
                "ranks": [0, 1, 2, 3],
                "messages_per_sample": 4,
                "verify_messages": 2,
                "parameters": halves | ({"answer": "own"} if pattern is Pattern.PAIRS else {}),
                "stopping": {"maximum_seconds": 0.1, "relative_width": 1000.0},
            }
            for layer in LAYERS
            for pattern in patterns
        ],
        ranks=4,
    )
    for number in range(len(LAYERS) * len(patterns)):
        channels = channels_of(outcome, number)
        found = sorted((channel.source, channel.destination) for channel in channels)
        is_stream = outcome.cell(number).pattern is Pattern.PAIRS_STREAM
        assert found == ([(0, 2), (1, 3), (2, 0), (3, 1)] if is_stream else [(0, 2), (1, 3)])
        assert outcome.end(number).corrupted == 0
        if not is_stream:  # no pair stops before its time, however narrow its interval is: the others go on
            assert all(sum(channel.time_ns) > 0.5 * 0.1e9 for channel in channels)


def test_stages_are_refused_of_several_round_trips_and_of_a_matrix(probe: Callable[..., Outcome]) -> None:
    staged = {"layer": "tcp", "message_bytes": 64}
    outcome = probe(
        [
            {**staged, "pattern": "pingpong", "parameters": {"stages": "user", "round_trips": 2}},
            {**staged, "pattern": "pairs", "parameters": {"stages": "user"}},
        ]
    )
    assert "stages are measured of one round trip at a time" in outcome.failed(0).reason
    assert "stages are measured of one pair" in outcome.failed(1).reason


def test_a_wrong_parameter_is_refused_by_name(probe: Callable[..., Outcome]) -> None:
    outcome = probe(
        [
            {"layer": "udp", "pattern": "paced", "message_bytes": 64, "parameters": {"interval_us": -1}},
            {"layer": "udp", "pattern": "burst", "message_bytes": 64, "parameters": {"frames": 3}},
            {"layer": "udp", "pattern": "pairs", "message_bytes": 64, "parameters": {"schedule": "sometimes"}},
        ]
    )
    assert "interval_us must be" in outcome.failed(0).reason
    assert "frames" in outcome.failed(1).reason
    assert "known: messages" in outcome.failed(1).reason
    assert "schedule must be one of alone, rounds, halves" in outcome.failed(2).reason
