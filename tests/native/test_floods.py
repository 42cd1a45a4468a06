"""Patterns of many ranks on this machine's loopback: all channels full at once, turns with neighbours, and a congestor beside."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fabricbench.model import Layer, Pattern
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.lines import Channel, Quantity, StopReason
from support.measurer import Outcome
from support.preloaded import preloaded

pytestmark = [pytest.mark.mpi, pytest.mark.alone]

IS_ROOT = os.geteuid() == 0
UNRELIABLE = [Layer.FRAME, Layer.IP, Layer.UDP] if IS_ROOT else [Layer.UDP]
LAYERS = [*UNRELIABLE, Layer.TCP, Layer.MPI]
RANKS = 4
SHORT: dict[str, Any] = {
    "message_bytes": 1024,
    "verify_messages": 2,
    "warmup_samples": 1,
    "stopping": {"maximum_samples": 200, "maximum_seconds": 0.04},
}
MATCHINGS = 2
CHANNELS = {
    Pattern.PINGPING: 2,
    Pattern.SENDRECV: 4,
    Pattern.EXCHANGE: 8,
    Pattern.HALO: 16,
    Pattern.BISTREAM: 2,
    Pattern.STAR: 6,
    Pattern.RING: 4,
    Pattern.CHAOS: 12,
    Pattern.INCAST: 3,
    Pattern.OUTCAST: 3,
    Pattern.BISECTION: 2,
    Pattern.MESSAGE_RATE: 2,
}
"""Logical channels of four ranks, or of two where a pattern has no more."""


def cell_of(layer: Layer, pattern: Pattern, **more: Any) -> dict[str, Any]:
    parameters = {"matchings": MATCHINGS} if pattern is Pattern.BISECTION else {}
    ranks = PATTERNS[pattern].most_ranks or RANKS
    return {
        **SHORT,
        "layer": layer,
        "pattern": pattern,
        "ranks": list(range(ranks)),
        "parameters": parameters,
        **more,
    }


def channels_of(outcome: Outcome, number: int) -> list[Channel]:
    return [line for line in outcome.lines if isinstance(line, Channel) and line.cell == number]


def expect_a_flood(outcome: Outcome, number: int, *, channels: int, rounds: int = 1) -> None:
    """A cell's windows and its channels tell the same story, and every payload came as it was sent."""
    cell, end, carried = outcome.cell(number), outcome.end(number), channels_of(outcome, number)
    assert end.stop is StopReason.TIME
    assert cell.channels == channels
    assert len(carried) == channels * rounds
    assert len({(each.source, each.destination, each.flow, each.round) for each in carried}) == len(carried)
    assert all(each.source != each.destination for each in carried)
    assert {each.quantity for each in carried} == {Quantity.TRANSFER}
    assert len(outcome.bytes(number)) == end.measured >= rounds
    total = sum(each.bytes[0] for each in carried if each.bytes)
    assert sum(outcome.bytes(number)) == total > 0
    assert cell.bytes_per_sample == total // end.measured
    assert end.sent == sum(each.sent for each in carried)
    assert end.lost == sum(each.lost for each in carried)
    if cell.layer in UNRELIABLE:
        # What was under way when the last window ended came too, and is in none.
        assert (end.sent - end.lost) * cell.message_bytes >= total
    else:
        assert end.lost == 0


def test_every_layer_carries_every_pattern_of_many_ranks_with_payloads_as_they_were_sent(probe: Callable[..., Outcome]):
    families = (Family.FLOOD, Family.LOCKSTEP)
    patterns = [pattern for pattern in Pattern if PATTERNS[pattern].family in families]
    assert set(patterns) == set(CHANNELS)
    cells = list(product(LAYERS, patterns))
    outcome = probe([cell_of(layer, pattern) for layer, pattern in cells], ranks=RANKS)
    assert outcome.code == 0, outcome.stderr
    assert (outcome.lines[-1].cells, outcome.lines[-1].failed) == (len(cells), 0)
    for number, (layer, pattern) in enumerate(cells):
        cell, end = outcome.cell(number), outcome.end(number)
        assert (cell.layer, cell.pattern) == (layer, pattern)
        assert cell.metric is PATTERNS[pattern].metric
        assert end.verified > 0
        assert end.corrupted == 0
        assert all(time > 0 for time in outcome.times(number))
        if PATTERNS[pattern].family is Family.FLOOD:
            rounds = MATCHINGS if pattern is Pattern.BISECTION else 1
            expect_a_flood(outcome, number, channels=CHANNELS[pattern], rounds=rounds)
        else:
            assert cell.channels == CHANNELS[pattern]
            assert cell.bytes_per_sample == CHANNELS[pattern] * cell.message_bytes


def test_parallel_flows_are_channels_of_their_own_on_every_layer(probe: Callable[..., Outcome]):
    flows = {"parameters": {"flows": 3}}
    outcome = probe(
        [
            *(cell_of(layer, Pattern.INCAST, **flows) for layer in LAYERS),
            cell_of(Layer.TCP, Pattern.RING, **flows, receive="polling", message_bytes=100_000),
        ],
        ranks=RANKS,
    )
    assert outcome.code == 0, outcome.stderr
    for number in range(len(LAYERS)):
        expect_a_flood(outcome, number, channels=9)
        # Each of three senders verified two messages on three flows, or four where messages may be lost.
        assert outcome.end(number).verified >= 3 * 3 * 2 - 2
        assert outcome.end(number).corrupted == 0
        assert {each.flow for each in channels_of(outcome, number)} == {0, 1, 2}
        assert {each.destination for each in channels_of(outcome, number)} == {0}
    expect_a_flood(outcome, len(LAYERS), channels=12)


@pytest.mark.parametrize(("pattern", "parameters"), [(Pattern.MESSAGE_RATE, {}), (Pattern.BISECTION, {"matchings": 2})])
def test_a_congestor_begins_though_one_of_its_ranks_has_no_links(
    probe: Callable[..., Outcome], pattern: Pattern, parameters: dict[str, Any]
):
    victim = {"layer": "tcp", "pattern": "pingpong", "message_bytes": 64, "ranks": [0, 1]}
    odd = {"layer": "udp", "pattern": pattern, "message_bytes": 1024, "ranks": [2, 3, 4], "parameters": parameters}
    outcome = probe([{**victim, "congestor": odd}, victim], ranks=5)
    assert outcome.code == 0, outcome.stderr
    assert (outcome.lines[-1].cells, outcome.lines[-1].failed) == (2, 0)


def test_a_congestor_of_which_a_rank_fails_while_it_floods_is_ended_and_named(
    probe: Callable[..., Outcome], tmp_path: Path
):
    victim = {"layer": "tcp", "pattern": "pingpong", "message_bytes": 64, "ranks": [0, 1]}
    chaos = {"layer": "udp", "pattern": "chaos", "message_bytes": 1024, "ranks": [2, 3, 4]}
    failing = preloaded(Path(__file__).with_name("failing_sends.c"), tmp_path)
    outcome = probe(
        [{**victim, "congestor": chaos}, victim], ranks=5, prefix=[*failing, "FAILED_SENDER=3", "SENDS=100"]
    )
    assert outcome.code == 0, outcome.stderr
    assert "the congestor failed: " in outcome.failed(0).reason
    assert "sendto(udp)" in outcome.failed(0).reason
    assert outcome.end(1).measured >= 1


def test_a_cell_lasts_as_long_as_it_did_whoever_rests(probe: Callable[..., Outcome]):
    """Of three members one rests in each matching: among these seeds each of them."""
    bisection = {"layer": "udp", "pattern": "bisection", "message_bytes": 1024, "ranks": [0, 1, 2]}
    cells = [
        {**SHORT, **bisection, "parameters": {"matchings": matchings, "seed": seed}}
        for matchings in (1, 2)
        for seed in range(6)
    ]
    outcome = probe(cells, ranks=3)
    assert outcome.code == 0, outcome.stderr
    ends = [outcome.end(number) for number in range(len(cells))]
    carried = {(each.source, each.destination) for number in range(6) for each in channels_of(outcome, number)}
    assert any(0 not in pair for pair in carried), "rank 0 rests with none of these seeds"
    assert all(end.seconds == pytest.approx(0.04) and end.stop is StopReason.TIME for end in ends)


def test_a_cell_is_measured_beside_a_congestor_and_its_paths_are_good_for_the_next_cell(probe: Callable[..., Outcome]):
    victim = {"layer": "tcp", "pattern": "pingpong", "message_bytes": 64, "ranks": [0, 1]}

    def beside(layer: Layer, pattern: Pattern) -> dict[str, Any]:
        return {"layer": layer, "pattern": pattern, "message_bytes": 4096, "ranks": [2, 3]}

    layers = [Layer.UDP, Layer.TCP, Layer.MPI]
    cells = [
        *({**victim, "congestor": beside(layer, Pattern.BISTREAM)} for layer in layers),
        cell_of(Layer.TCP, Pattern.BISTREAM, congestor=beside(Layer.TCP, Pattern.INCAST)),
        *(cell_of(layer, Pattern.CHAOS) for layer in layers),
    ]
    outcome = probe(cells, ranks=RANKS)
    assert outcome.code == 0, outcome.stderr
    assert (outcome.lines[-1].cells, outcome.lines[-1].failed) == (len(cells), 0)
    for number, layer in enumerate(layers):
        congestor = outcome.cell(number).congestor
        assert congestor is not None
        assert (congestor.layer, congestor.ranks) == (layer, (2, 3))
        assert outcome.end(number).measured >= 1
        assert channels_of(outcome, number) == []
    expect_a_flood(outcome, len(layers), channels=2)
    for number in range(len(layers) + 1, len(cells)):
        expect_a_flood(outcome, number, channels=12)
