"""Layer rdma in the guest: every door with every pattern, the bottleneck of an incast, losses, and what is said where it cannot."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes.util import find_library
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
import pytest

from fabricbench.native import build_info, doors
from fabricbench.pattern_facts import Family, Layer, PatternFacts
from fabricbench.patterns import PATTERNS, Pattern
from support.another_user import BECOME, need_another_user
from support.measurer import Outcome
from support.uml import Guest

pytestmark = pytest.mark.alone

Made = TypeVar("Made")

CARRIED = [facts for facts in PATTERNS.values() if Layer.RDMA in facts.layers]
TWO_SIDED = {
    "send": ("blocking", "polling"),
    "write": ("blocking", "polling"),
    "write-poll": ("polling",),
    "datagram": ("blocking", "polling"),
}
OF_EACH_FAMILY = ("pingpong", "burst", "stream", "exchange", "incast", "pairs")
"""How a receiver waits is the path's: where every pattern has run with receivers that sleep, these do for those that poll."""
TWO_SIDED_WAYS = [(door, way) for door, ways in TWO_SIDED.items() for way in ways]
ONE_SIDED = {"read": "blocking", "atomic": "polling"}
PLAIN = {"write-plain": "polling"}
OF_PLAIN_WRITES = ("pingpong", "paced", "stream", "registration", "pairs", "pairs-stream")
"""What needs nobody to be told of a write."""
RECEIVES = {door: ways[0] for door, ways in TWO_SIDED.items()} | ONE_SIDED | PLAIN
NOBODY_NOTICES = "oneway"
"""Of pairs, what has no meaning through a one-sided door; of groups all that take turns."""
LINE_RATE_BIT_S = 100e6
PAYLOAD_SHARE = 4096 / 4170
"""Of a packet of RoCE v2 with the largest path MTU."""

WAYS_OF_FLOODS = (("write", 4), ("write", 16), ("write", 64), ("send", 16))
"""Doors, and how many queue pairs each sender has."""
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
        # Four ranks that poll take turns of 10 ms: in a short flood the receiver may not have had one.
        "stopping": {"maximum_samples": 200, "maximum_seconds": 0.2 if facts.family is Family.FLOOD else 0.04},
    }


def _rate_bit_s(outcome: Outcome, number: int) -> float:
    """All bytes over the time of all windows."""
    return 8e9 * sum(outcome.bytes(number)) / sum(outcome.times(number))


def test_the_measurer_has_the_doors() -> None:
    assert set(doors()[Layer.RDMA]) == {*TWO_SIDED, *ONE_SIDED, *PLAIN}


@pytest.fixture(scope="module")
def launches(guest: Guest, second_guest: Guest) -> dict[tuple[str, str], Outcome]:
    """A launch for each way through each door, with the patterns of `_patterns_of`, two at a time."""

    def launch(mine: Guest, way: tuple[str, str]) -> Outcome:
        door, receive = way
        message_bytes = 8 if door == "atomic" else 1024
        cells = [_cell(facts, door, receive, message_bytes) for facts in _patterns_of(door, receive)]
        return mine.probe(cells, ranks=4, limit_s=100)

    ways = (*RECEIVES.items(), *(way for way in TWO_SIDED_WAYS if way not in RECEIVES.items()))  # the longest first
    return _side_by_side((guest, second_guest), ways, launch)


def _side_by_side(
    guests: Sequence[Guest], ways: Sequence[tuple[str, str]], run: Callable[[Guest, tuple[str, str]], Made]
) -> dict[tuple[str, str], Made]:
    """Run something for each of `ways`, on whichever guest is free."""
    free: SimpleQueue[Guest] = SimpleQueue()
    for each in guests:
        free.put(each)

    def one(way: tuple[str, str]) -> Made:
        mine = free.get()
        try:
            return run(mine, way)
        finally:
            free.put(mine)

    with ThreadPoolExecutor(len(guests)) as pool:
        return dict(zip(ways, pool.map(one, ways), strict=True))


def _patterns_of(door: str, receive: str) -> list[PatternFacts]:
    is_second = door in TWO_SIDED and receive != TWO_SIDED[door][0]
    return [facts for facts in CARRIED if not is_second or facts.name in OF_EACH_FAMILY]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("door", "receive"), TWO_SIDED_WAYS)
def test_every_pattern_runs_over_every_door_with_its_payload_verified(
    launches: dict[tuple[str, str], Outcome], door: str, receive: str
) -> None:
    outcome = launches[door, receive]
    assert outcome.code == 0, outcome.stderr
    for number, facts in enumerate(_patterns_of(door, receive)):
        end = outcome.end(number)
        assert outcome.times(number), facts.name
        assert (end.verified >= 2, end.corrupted) == (True, 0), facts.name
        assert door == "datagram" or end.lost == 0, facts.name


@pytest.mark.parametrize(("door", "receive"), ONE_SIDED.items())
def test_one_sided_doors_carry_what_needs_no_peer_and_refuse_the_rest(
    launches: dict[tuple[str, str], Outcome], door: str, receive: str
) -> None:
    """Every result of the verification is checked, and of the timing the last of each batch."""
    outcome = launches[door, receive]
    assert outcome.code == 0, outcome.stderr
    for number, facts in enumerate(_patterns_of(door, receive)):
        if _is_one_sided(facts):
            end = outcome.end(number)
            assert outcome.times(number), facts.name
            assert (end.verified >= 2, end.corrupted, end.lost) == (True, 0, 0), facts.name
        else:
            failed = outcome.failed(number)
            assert failed.code == "unsupported"
            assert f"{facts.name} does not go through this door" in failed.reason
            assert "nobody notices what another reads or changes in its memory" in failed.reason


@pytest.mark.parametrize(("door", "receive"), PLAIN.items())
def test_plain_writes_carry_round_trips_and_streams_and_refuse_the_rest(
    launches: dict[tuple[str, str], Outcome], door: str, receive: str
) -> None:
    outcome = launches[door, receive]
    assert outcome.code == 0, outcome.stderr
    for number, facts in enumerate(_patterns_of(door, receive)):
        if facts.name in OF_PLAIN_WRITES:
            end = outcome.end(number)
            assert outcome.times(number), facts.name
            assert (end.verified >= 2, end.corrupted, end.lost) == (True, 0, 0), facts.name
        else:
            failed = outcome.failed(number)
            assert failed.code == "unsupported"
            assert f"{facts.name} does not go through this door: nobody is told of what is written" in failed.reason


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
    """A message that comes too early is refused, which the sender's device counts, and comes again after 10 ms."""
    messages = (8, 200)  # more than a queue pair has under way
    cells = [_cell(PATTERNS[Pattern.BURST], door, "blocking") for door in ("send", "write") for _ in messages]
    for cell, count in zip(cells, messages * 2, strict=True):
        cell["parameters"] |= {"messages": count}
        cell["verify_messages"] = 0  # a ping-pong that the follower may come late to
    before = guest.counters("rxe2")
    outcome = guest.probe(cells)
    assert outcome.code == 0, outcome.stderr
    assert all(outcome.times(number) for number in range(len(cells)))
    assert guest.counters("rxe2")["send_rnr_err"] == before["send_rnr_err"]


def test_registration_costs_more_for_more_memory(guest: Guest) -> None:
    sizes = (4096, 8 << 20)
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


def test_three_to_one_fills_the_bottleneck(guest: Guest) -> None:
    """All bytes over all time, with 4, 16 and 64 queue pairs of each sender, and by send and receive."""
    shares: dict[tuple[str, int], float] = {}
    guest.shape(1, f"{LINE_RATE_BIT_S / 1e6:g}mbit")
    try:
        for _ in range(3):  # a receiver that the machine holds up before a window takes in it what came before
            wrong = [way for way in WAYS_OF_FLOODS if not 0.95 <= shares.get(way, 0.0) <= 1.05]
            if not wrong:
                break
            outcome = guest.probe([_flood(door, flows) for door, flows in wrong], ranks=4, limit_s=60)
            assert outcome.code == 0, outcome.stderr
            for number, way in enumerate(wrong):
                shares[way] = _rate_bit_s(outcome, number) / (LINE_RATE_BIT_S * PAYLOAD_SHARE)
    finally:
        guest.shape(1, None)
    assert all(0.95 <= share <= 1.05 for share in shares.values()), shares


def _flood(door: str, flows: int) -> dict[str, Any]:
    """Many queue pairs take a quarter of a second to fill the link."""
    return {
        "layer": "rdma",
        "pattern": "incast",
        "message_bytes": 4096,
        "ranks": [0, 1, 2, 3],
        "parameters": {"door": door, "flows": flows, **QUIET},
        "stopping": {"maximum_seconds": 1.5},
    }


def _sent_again(guest: Guest, doors: list[str]) -> dict[str, int]:
    """What the sender's port counted by door, in a round trip and a stream through each, whose payloads must be whole."""
    cells = [
        _cell(PATTERNS[pattern], door, RECEIVES[door], 8 if door == "atomic" else 4096)
        | {"stopping": {"maximum_seconds": 1.0}, "ranks": [0, 1]}
        for door in doors
        for pattern in (Pattern.PINGPONG, Pattern.STREAM)
    ]
    outcome = guest.probe(cells, limit_s=60)
    assert outcome.code == 0, outcome.stderr
    again = dict.fromkeys(doors, 0)
    for number, cell in enumerate(cells):
        end = outcome.end(number)
        assert outcome.times(number), cell
        assert (end.verified >= 2, end.corrupted, end.lost) == (True, 0, 0), cell
        counted = (ports[port] for ports in end.port_state.values() for port in ports if "rxe" in port)
        again[cell["parameters"]["door"]] += sum(
            port.get("completer_retry_err", 0) + port.get("out_of_seq_request", 0) for port in counted
        )
    return again


def test_what_is_lost_is_sent_again_and_shows(guest: Guest) -> None:
    """Three in a hundred packets, through every reliable door: payloads stay whole, and the port of the sender counts."""
    whole = [door for door in RECEIVES if door != "datagram"]
    guest.lose(1, 3)
    try:
        for _ in range(4):  # a door of few packets a second may have lost none
            again = _sent_again(guest, whole)
            whole = [door for door in whole if not again[door]]
            if not whole:
                break
    finally:
        guest.lose(1, None)
    assert not whole


INTO_LOSS = [
    ("pingpong", "write-poll"),
    ("pingpong", "atomic"),
    ("stream", "send"),
    ("stream", "read"),
    ("exchange", "write"),
    ("incast", "send"),
]


@pytest.fixture(scope="module")
def into_loss(guest: Guest, second_guest: Guest) -> dict[tuple[str, str], tuple[Outcome, float]]:
    """A launch of each whose link dies, with the seconds from then until it ended, two at a time."""

    def launch(mine: Guest, way: tuple[str, str]) -> tuple[Outcome, float]:
        pattern, door = way
        cell: dict[str, Any] = {"layer": "rdma", "pattern": pattern, "parameters": {"door": door}}
        return mine.probe_into_loss(
            {**cell, "receive": RECEIVES[door], "message_bytes": 8 if door == "atomic" else 4096}
        )

    return _side_by_side((guest, second_guest), INTO_LOSS, launch)


@pytest.mark.parametrize(("pattern", "door"), INTO_LOSS)
def test_a_dead_link_ends_in_a_clear_failure_within_three_seconds(
    into_loss: dict[tuple[str, str], tuple[Outcome, float]], pattern: str, door: str
) -> None:
    """Every door once. Rank 0 hears nothing of rank 1 any more; what is said is what failed first, not what that flushed."""
    outcome, seconds = into_loss[pattern, door]
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
    need_another_user(build_info().mpiexec)
    before = "ulimit -l 64; chmod 777 /dev/shm /mnt"
    outcome = guest.probe(
        [{"layer": "rdma", "pattern": "pingpong", "message_bytes": 1 << 20}],
        before=f'{before}\nchrt() {{ shift 2; {" ".join(BECOME)} "$@"; }}',
    )
    reason = outcome.failed(0).reason
    assert "ibv_reg_mr cannot lock" in reason
    assert "this process may lock 64 KiB (`ulimit -l`)" in reason


def test_a_link_that_is_dead_from_the_start_ends_in_a_clear_failure(guest: Guest) -> None:
    cell = {"layer": "rdma", "pattern": "pingpong", "message_bytes": 4096, "parameters": {"door": "send"}}
    guest.lose(1, 100)
    try:
        outcome = guest.probe([cell], limit_s=15)
    finally:
        guest.lose(1, None)
    assert outcome.code == 0, outcome.stderr
    failed = outcome.failed(0)
    assert failed.code == "unreachable"
    assert "IBV_WC_RETRY_EXC_ERR" in failed.reason
