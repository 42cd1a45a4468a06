"""Layer rdma over iWARP in the guest: connections by librdmacm, every pattern that they carry, and what is said where not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import pytest

from fabricbench.pattern_facts import Layer, PatternFacts
from fabricbench.patterns import PATTERNS
from support.uml import Guest

pytestmark = pytest.mark.alone

CARRIED = [facts for facts in PATTERNS.values() if Layer.RDMA in facts.layers]


@pytest.fixture(scope="module")
def iwarp(guest: Guest) -> Iterator[Guest]:
    """The guest of the session with devices of soft iWARP; whoever comes after has soft RoCE again."""
    guest.use("siw")
    yield guest
    guest.use("rxe")


def _cell(facts: PatternFacts, door: str, receive: str) -> dict[str, Any]:
    return {
        "layer": "rdma",
        "pattern": facts.name,
        "message_bytes": 1024,
        "receive": receive,
        "verify_messages": 2,
        "parameters": {"door": door},
        "ranks": list(range(facts.most_ranks or 4)),
        "messages_per_sample": 8 if facts.is_stream or facts.name == "pairs-stream" else 1,
        "stopping": {"maximum_samples": 200, "maximum_seconds": 0.04},
    }


@pytest.mark.parametrize(("door", "receive"), [("send", "blocking"), ("write", "polling")])
def test_every_pattern_runs_with_its_payload_verified(iwarp: Guest, door: str, receive: str) -> None:
    outcome = iwarp.probe([_cell(facts, door, receive) for facts in CARRIED], ranks=4, limit_s=100)
    assert outcome.code == 0, outcome.stderr
    for number, facts in enumerate(CARRIED):
        end = outcome.end(number)
        assert outcome.times(number), facts.name
        assert (end.verified >= 2, end.corrupted, end.lost) == (True, 0, 0), facts.name


def test_other_ways_of_receiving_large_messages_and_many_queue_pairs(iwarp: Guest) -> None:
    ways = [("send", "polling"), ("write", "blocking"), ("write-poll", "polling")]
    pairs = [
        {
            "layer": "rdma",
            "pattern": "pingpong",
            "message_bytes": 1 << 20,
            "receive": receive,
            "verify_messages": 2,
            "parameters": {"door": door},
        }
        for door, receive in ways
    ]
    flood = {
        "layer": "rdma",
        "pattern": "incast",
        "message_bytes": 4096,
        "verify_messages": 1,
        "parameters": {"door": "write", "flows": 16},
        "stopping": {"maximum_seconds": 1.0},
    }
    datagrams = {"layer": "rdma", "pattern": "pingpong", "message_bytes": 64, "parameters": {"door": "datagram"}}
    reads, atomics = (
        {"layer": "rdma", "pattern": "pingpong", "message_bytes": 8, "receive": receive, "parameters": {"door": door}}
        for door, receive in (("read", "blocking"), ("atomic", "polling"))
    )
    outcome = iwarp.probe([*pairs, flood, datagrams, reads | {"verify_messages": 2}, atomics])
    assert outcome.code == 0, outcome.stderr
    for number in range(len(ways) + 1):
        assert outcome.times(number)
        assert (outcome.end(number).verified > 0, outcome.end(number).corrupted) == (True, 0)
    carried = outcome.end(0).interfaces
    assert carried["h1"].sent >= len(outcome.times(0)) << 20
    refused = outcome.failed(4)
    assert refused.code == "unsupported"
    assert "device siw1 speaks iWARP, which has no datagrams" in refused.reason
    assert outcome.times(5)
    assert (outcome.end(5).verified >= 2, outcome.end(5).corrupted) == (True, 0)
    assert "has no atomic operations" in outcome.failed(6).reason


def test_what_is_lost_is_sent_again_by_tcp(iwarp: Guest) -> None:
    """One in a hundred packets: the kernel's TCP, which carries soft iWARP, counts what it sends again."""
    cells = [
        {
            "layer": "rdma",
            "pattern": pattern,
            "message_bytes": 4096,
            "receive": "blocking",
            "verify_messages": 2,
            "parameters": {"door": door},
            "stopping": {"maximum_seconds": 0.8},
        }
        for door in ("send", "write", "read")
        for pattern in ("pingpong", "stream")
    ]

    def sent_again() -> int:
        names, values = (line.split() for line in iwarp.run("grep ^Tcp: /proc/net/snmp").stdout.splitlines())
        return int(values[names.index("RetransSegs")])

    before = sent_again()
    iwarp.lose(1, 1)
    try:
        outcome = iwarp.probe(cells, limit_s=60)
    finally:
        iwarp.lose(1, None)
    assert outcome.code == 0, outcome.stderr
    for number, cell in enumerate(cells):
        end = outcome.end(number)
        assert outcome.times(number), cell
        assert (end.verified >= 2, end.corrupted, end.lost) == (True, 0, 0), cell
    assert sent_again() > before


@pytest.mark.parametrize(("door", "pattern"), [("write", "exchange"), ("read", "stream"), ("send", "incast")])
def test_a_dead_link_ends_in_a_clear_failure_within_three_seconds(iwarp: Guest, door: str, pattern: str) -> None:
    """TCP would go on for a quarter of an hour."""
    cell = {"layer": "rdma", "pattern": pattern, "message_bytes": 4096, "parameters": {"door": door}}
    outcome, seconds = iwarp.probe_into_loss(cell)
    assert outcome.code == 0, outcome.stderr
    assert seconds <= 3
    failed = outcome.failed(0)
    assert failed.code == "unreachable"
    assert re.search(
        r"has not answered a read for \d+ ms over the iWARP connection of siw\d \(10\.1\.0\.\d\) to rank \d",
        failed.reason,
    )


def test_a_peer_that_cannot_be_reached_is_named(iwarp: Guest) -> None:
    """Soft iWARP itself would try for two minutes."""
    iwarp.lose(1, 100)
    try:
        outcome = iwarp.probe([{"layer": "rdma", "pattern": "pingpong", "message_bytes": 8}])
    finally:
        iwarp.lose(1, None)
    failed = outcome.failed(0)
    assert failed.code == "unreachable"
    assert re.search(
        r"rank 1 at 10\.1\.0\.2:\d+ has not answered our request to connect over iWARP in 2500 ms \(our device is siw1",
        failed.reason,
    ), failed.reason


def test_a_missing_connection_manager_has_a_message_of_its_own(iwarp: Guest) -> None:
    """The libraries as they are, all but librdmacm."""
    named = iwarp.environment.get("LD_LIBRARY_PATH")
    if named is None or find_library("rdmacm"):
        pytest.skip("librdmacm is installed: it cannot be hidden")
    folder = iwarp.folder / "no-manager"
    folder.mkdir()
    for library in (file for path in named.split(":") for file in Path(path).glob("*.so*")):
        if not library.name.startswith("librdmacm") and not (folder / library.name).exists():
            (folder / library.name).symlink_to(library)
    cell = {"layer": "rdma", "pattern": "pingpong", "message_bytes": 8}
    outcome = iwarp.probe([cell], environment={"LD_LIBRARY_PATH": str(folder)})
    failed = outcome.failed(0)
    assert failed.code == "unsupported"
    assert "iWARP needs the library librdmacm.so.1" in failed.reason
    assert "install it (librdmacm1 of Debian" in failed.reason
