"""Layer rdma in the guest: every door with every pattern, the bottleneck of an incast, losses, and what is said where it cannot."""

from __future__ import annotations

import re
from ctypes.util import find_library
from typing import Any

import numpy as np
import pytest

from fabricbench.native import doors
from fabricbench.patterns import PATTERNS, Family, Layer, Pattern, PatternFacts
from support.measurer import Outcome
from support.uml import Guest

pytestmark = pytest.mark.alone

CARRIED = [facts for facts in PATTERNS.values() if Layer.RDMA in facts.layers]
TWO_SIDED = {
    "send": ("blocking", "polling"),
    "write": ("blocking", "polling"),
    "write-poll": ("polling",),
    "datagram": ("blocking", "polling"),
}
OF_EACH_FAMILY = ("pingpong", "burst", "stream", "exchange", "incast", "pairs")
"""How a receiver waits is the path's: where every pattern has run with receivers that sleep, these do for those that poll."""
ONE_SIDED = {"read": "blocking", "atomic": "polling"}
NOBODY_NOTICES = "oneway"
"""Of pairs, what has no meaning through a one-sided door; of groups all that take turns."""
LINE_RATE_BIT_S = 100e6
PAYLOAD_SHARE = 4096 / 4170
"""Of a packet of RoCE v2 with the largest path MTU."""

QUIET = {"timeout": 18, "depth": 16}
"""Queues of a shaped link hold messages for longer than the usual timeout."""


def _is_one_sided(facts: PatternFacts) -> bool:
    return facts.name != NOBODY_NOTICES and facts.family is not Family.LOCKSTEP


def _cell(facts: PatternFacts, door: str, receive: str, message_bytes: int = 1024) -> dict[str, Any]:
    return {
        "layer": "rdma",
        "pattern": facts.name,
        "message_bytes": message_bytes,
        "receive": receive,
        "verify_messages": 2,
        "parameters": {"door": door},
        "ranks": list(range(facts.most_ranks or 4)),
        "messages_per_sample": 8 if facts.is_stream or facts.name == "pairs-stream" else 1,
    }


def _rate_bit_s(outcome: Outcome, number: int) -> float:
    """All bytes over the time of all windows."""
    return 8e9 * sum(outcome.bytes(number)) / sum(outcome.times(number))


def test_the_measurer_has_the_doors() -> None:
    assert set(doors()[Layer.RDMA]) == {*TWO_SIDED, *ONE_SIDED}


@pytest.mark.parametrize(("door", "receive"), [(door, way) for door, ways in TWO_SIDED.items() for way in ways])
def test_every_pattern_runs_over_every_door_with_its_payload_verified(guest: Guest, door: str, receive: str) -> None:
    is_second = receive != TWO_SIDED[door][0]
    carried = [facts for facts in CARRIED if not is_second or facts.name in OF_EACH_FAMILY]
    outcome = guest.probe([_cell(facts, door, receive) for facts in carried], ranks=4, limit_s=100)
    assert outcome.code == 0, outcome.stderr
    for number, facts in enumerate(carried):
        end = outcome.end(number)
        assert outcome.times(number), facts.name
        assert (end.verified >= 2, end.corrupted) == (True, 0), facts.name
        assert door == "datagram" or end.lost == 0, facts.name


@pytest.mark.parametrize(("door", "receive"), ONE_SIDED.items())
def test_one_sided_doors_carry_what_needs_no_peer_and_refuse_the_rest(guest: Guest, door: str, receive: str) -> None:
    """Every result of the verification is checked, and of the timing the last of each batch."""
    cells = [_cell(facts, door, receive, 8 if door == "atomic" else 1024) for facts in CARRIED]
    outcome = guest.probe(cells, ranks=4, limit_s=100)
    assert outcome.code == 0, outcome.stderr
    for number, facts in enumerate(CARRIED):
        if _is_one_sided(facts):
            end = outcome.end(number)
            assert outcome.times(number), facts.name
            assert (end.verified >= 2, end.corrupted, end.lost) == (True, 0, 0), facts.name
        else:
            failed = outcome.failed(number)
            assert failed.code == "unsupported"
            assert f"{facts.name} does not go through this door" in failed.reason
            assert "nobody notices what another reads or changes in its memory" in failed.reason


def test_what_a_door_cannot_is_refused_with_the_reason(guest: Guest) -> None:
    pingpong = PATTERNS[Pattern.PINGPONG]
    cells = [_cell(pingpong, "write-poll", "blocking"), _cell(pingpong, "atomic", "polling", 64)]
    outcome = guest.probe(cells)
    assert "receive must be one of polling through door write-poll" in outcome.failed(0).reason
    assert "found blocking: a write wakes nobody" in outcome.failed(0).reason
    assert "on a word of 8 bytes: set message_bytes to that, found 64" in outcome.failed(1).reason


def test_long_and_short_messages_reach_memory_that_is_polled(guest: Guest) -> None:
    """Those that lie beside the word of their number, the longest of them, the shortest of the others, and a long one."""
    sizes = (0, 1, 8, 64, 65, 4097, 1 << 20)
    pingpong = PATTERNS[Pattern.PINGPONG]
    outcome = guest.probe([_cell(pingpong, "write-poll", "polling", size) for size in sizes])
    for number, size in enumerate(sizes):
        end = outcome.end(number)
        assert outcome.times(number), size
        assert (end.verified, end.corrupted) == (2, 0), size


def test_a_burst_finds_its_receives_posted(guest: Guest) -> None:
    """A message that comes too early is refused, and comes again after 10 ms: then a cell has one burst, or a few."""
    messages = (8, 200)  # more than a queue pair has under way
    cells = [_cell(PATTERNS[Pattern.BURST], door, "blocking") for door in ("send", "write") for _ in messages]
    for cell, count in zip(cells, messages * 2, strict=True):
        cell["parameters"] |= {"messages": count}
        cell["verify_messages"] = 0  # a ping-pong that the follower may come late to
    before = guest.counters("rxe2")
    outcome = guest.probe(cells)
    assert outcome.code == 0, outcome.stderr
    assert [len(outcome.times(number)) >= 5 for number in range(len(cells))] == [True] * len(cells)
    assert guest.counters("rxe2")["send_rnr_err"] == before["send_rnr_err"]


def test_registration_costs_more_for_more_memory(guest: Guest) -> None:
    sizes = (4096, 4 << 20)
    asked = [(size, memory) for size in sizes for memory in ("plain", "huge")]
    cells = [_cell(PATTERNS[Pattern.REGISTRATION], "send", "blocking", size) for size, _ in asked]
    for cell, (_, memory) in zip(cells, asked, strict=True):
        cell["parameters"] |= {"memory": memory}
    outcome = guest.probe(cells)
    assert outcome.code == 0, outcome.stderr
    fastest = {
        given: np.min(outcome.times(number)) / outcome.cell(number).operations_per_sample
        for number, given in enumerate(asked)
    }
    assert fastest[sizes[1], "plain"] > 1.5 * fastest[sizes[0], "plain"]
    assert "huge_page_buffer_bytes" in outcome.end(1).values


@pytest.mark.parametrize("flows", [4, 16, 64])
def test_three_to_one_fills_the_bottleneck(guest: Guest, flows: int) -> None:
    guest.shape(1, f"{LINE_RATE_BIT_S / 1e6:g}mbit")
    cell = {
        "layer": "rdma",
        "pattern": "incast",
        "message_bytes": 4096,
        "ranks": [0, 1, 2, 3],
        "parameters": {"door": "write", "flows": flows, **QUIET},
        "stopping": {"maximum_seconds": 3.0},  # many queue pairs take a quarter of a second to fill the link
    }
    try:
        rates = []
        for _ in range(2):  # the machine may have been busy
            outcome = guest.probe([cell], ranks=4)
            assert outcome.code == 0, outcome.stderr
            rates.append(_rate_bit_s(outcome, 0) / (LINE_RATE_BIT_S * PAYLOAD_SHARE))
            if rates[-1] >= 0.95:
                break
    finally:
        guest.shape(1, None)
    assert 0.95 <= max(rates) <= 1.05, rates


@pytest.mark.parametrize("door", ["send", "write"])
def test_what_is_lost_is_sent_again_and_shows(guest: Guest, door: str) -> None:
    before = guest.counters("rxe2")
    guest.lose(1, 1)
    try:
        outcome = guest.probe(
            [
                {
                    "layer": "rdma",
                    "pattern": pattern,
                    "message_bytes": 4096,
                    "verify_messages": 2,
                    "parameters": {"door": door},
                    "stopping": {"maximum_seconds": 1.0},
                }
                for pattern in ("pingpong", "stream")
            ]
        )
    finally:
        guest.lose(1, None)
    assert outcome.code == 0, outcome.stderr
    assert all(outcome.times(number) and outcome.end(number).corrupted == 0 for number in (0, 1))
    after = guest.counters("rxe2")
    assert after["completer_retry_err"] > before["completer_retry_err"]


@pytest.mark.parametrize(
    ("pattern", "door"),
    [
        *((pattern, "send") for pattern in ("pingpong", "stream", "exchange", "incast")),
        ("exchange", "write"),
    ],
)
def test_a_dead_link_ends_in_a_clear_failure_within_three_seconds(guest: Guest, pattern: str, door: str) -> None:
    """Rank 0 hears nothing of rank 1 any more; what is said is what failed first, not what that flushed."""
    cell: dict[str, Any] = {"layer": "rdma", "pattern": pattern, "message_bytes": 4096, "parameters": {"door": door}}
    cell["receive"] = TWO_SIDED.get(door, ("blocking",))[0]
    outcome, seconds = guest.probe_into_loss(cell)
    assert outcome.code == 0, outcome.stderr
    assert seconds <= 3
    failed = outcome.failed(0)
    assert failed.code == "unreachable"
    assert "IBV_WC_RETRY_EXC_ERR" in failed.reason


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"LD_LIBRARY_PATH": "/nowhere"}, r"needs the library libibverbs\.so\.1, which this host does not have"),
        ({"IBV_DRIVERS": "/nowhere"}, r"the kernel offers uverbs0.* but libibverbs has no provider"),
    ],
    ids=["no library", "no provider"],
)
def test_what_is_missing_is_named(guest: Guest, environment: dict[str, str], said: str) -> None:
    if "IBV_DRIVERS" not in guest.environment or find_library("ibverbs"):
        pytest.skip("libibverbs and its providers are installed: they cannot be hidden")
    outcome = guest.probe([{"layer": "rdma", "pattern": "pingpong", "message_bytes": 8}], environment=environment)
    assert re.search(said, outcome.failed(0).reason), outcome.failed(0).reason


def test_too_little_locked_memory_is_named(guest: Guest) -> None:
    before = "ulimit -l 64; chmod 777 /dev/shm /mnt"
    script = "setpriv --reuid 65534 --regid 65534 --clear-groups"
    outcome = guest.probe(
        [{"layer": "rdma", "pattern": "pingpong", "message_bytes": 1 << 20}],
        before=f'{before}\nchrt() {{ shift 2; {script} "$@"; }}',
    )
    reason = outcome.failed(0).reason
    assert "ibv_reg_mr cannot lock" in reason
    assert "this process may lock 64 KiB (`ulimit -l`)" in reason


@pytest.mark.parametrize(("pattern", "door"), [("pingpong", "write-poll"), ("stream", "read")])
def test_a_link_that_is_dead_from_the_start_ends_in_a_clear_failure(guest: Guest, pattern: str, door: str) -> None:
    """Through doors whose ranks would not let the guest begin the loss while they poll."""
    cell: dict[str, Any] = {"layer": "rdma", "pattern": pattern, "message_bytes": 4096, "parameters": {"door": door}}
    cell["receive"] = TWO_SIDED.get(door, ("blocking",))[0]
    guest.lose(1, 100)
    try:
        outcome = guest.probe([cell], limit_s=15)
    finally:
        guest.lose(1, None)
    assert outcome.code == 0, outcome.stderr
    failed = outcome.failed(0)
    assert failed.code == "unreachable"
    assert "IBV_WC_RETRY_EXC_ERR" in failed.reason
