"""What a cell asks of layer rdma beside its pattern: packets, marks, device and port, load of others, peers of a datagram."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fabricbench.record.lines import RdmaTransport
from support.measurer import Outcome
from support.uml import FABRIC, Guest

pytestmark = pytest.mark.alone

FEW = {"minimum_samples": 30, "maximum_samples": 30, "maximum_seconds": 2.0}
SNIFFER = """
import pathlib, socket, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
raw.bind(("h1", 0))
raw.settimeout(30)
seen = set()
pathlib.Path(sys.argv[1]).touch()
while not pathlib.Path(sys.argv[2]).exists():
    packet = raw.recv(9000)
    if packet[23] == 17 and packet[36:38] == (4791).to_bytes(2, "big"):
        seen.add(packet[15])
        pathlib.Path(sys.argv[3]).write_text(" ".join(map(str, sorted(seen))))
"""
"""Notes the traffic class (the byte TOS) of each packet of RoCE that reaches h1."""


def _cell(pattern: str, message_bytes: int, **parameters: str | int) -> dict[str, Any]:
    return {"layer": "rdma", "pattern": pattern, "message_bytes": message_bytes, "parameters": parameters}


def _packets(outcome: Outcome, number: int) -> float:
    """Of a round trip, by what the port counted around the cell."""
    state = outcome.end(number).port_state
    ((_, ports),) = [(host, ports) for host, ports in state.items() if any("rxe1" in port for port in ports)]
    counted = next(counters for port, counters in ports.items() if "rxe1" in port)
    return counted["sent_pkts"] / len(outcome.times(number))


def test_a_message_is_as_many_packets_as_the_mtu_makes_of_it(guest: Guest) -> None:
    cells = [_cell("pingpong", 4096, mtu=mtu) | {"stopping": FEW, "warmup_samples": 0} for mtu in (256, 1024, 4096)]
    outcome = guest.probe(cells)
    assert outcome.code == 0, outcome.stderr
    small, middle, large = (_packets(outcome, number) for number in range(3))
    # Acknowledgements come on top, and the verification before it.
    assert small > 16
    assert 1.5 < small / middle < 4
    assert 1 < middle / large < 4


def test_a_cell_tells_through_what_its_ranks_went_and_what_was_in_force(guest: Guest) -> None:
    cells = [_cell("pingpong", 64, mtu=1100, inline_bytes=32) | {"stopping": FEW}, _cell("incast", 64, flows=64)]
    outcome = guest.probe([*cells, _cell("pingpong", 64, door="datagram") | {"stopping": FEW}])
    assert outcome.code == 0, outcome.stderr
    ends = outcome.end(0).rdma
    assert [(one.ranks, one.device, one.port, one.netdev) for one in ends] == [
        ((0,), "rxe1", 1, "h1"),
        ((1,), "rxe2", 1, "h2"),
    ]
    for one in ends:
        assert (one.transport, one.driver, one.gid_index) == (RdmaTransport.ROCE_V2, "rxe", 1)
        assert (one.port_mtu, one.path_mtu) == (4096, 1024)
        assert one.inline_bytes >= 32
    assert ends[0].gid == "0000:0000:0000:0000:0000:ffff:0a01:0001"
    assert outcome.end(1).values["messages_under_way"] == 4  # 256 over 64 queue pairs
    assert [one.path_mtu for one in outcome.end(2).rdma] == [4096, 4096]


def test_a_link_that_goes_down_for_a_moment_ends_its_cell_by_the_event_and_no_later_one(guest: Guest) -> None:
    (guest.folder / "flap.sh").write_text(
        "packets() { read -r count </sys/class/net/h1/statistics/rx_packets; }\n"
        "packets; first=$count\n"
        "until packets; ((count > first + 200)); do sleep 0.05; done\n"
        "ip link set s2 down; sleep 0.2; ip link set s2 up\n"
    )
    long = {"minimum_seconds": 4, "maximum_seconds": 4, "maximum_samples": 1_000_000}
    cells = [_cell("pingpong", 64) | {"stopping": long}, _cell("pingpong", 64) | {"stopping": FEW}]
    outcome = guest.probe(
        cells, before=f"chrt -r 2 timeout 60 bash {guest.folder}/flap.sh &\ntrap 'kill $! 2>/dev/null' EXIT"
    )
    assert outcome.code == 0, outcome.stderr
    failed = outcome.failed(0)
    assert "rxe2/1 told IBV_EVENT_PORT_ERR" in failed.reason
    assert [one.device for one in failed.rdma] == ["rxe1", "rxe2"]
    assert outcome.end(1).measured == FEW["maximum_samples"]


def test_a_flood_that_sends_again_what_a_short_queue_drops_fails_within_its_bound_and_the_next_cell_goes_on(
    guest: Guest,
) -> None:
    """32 messages of 1 MiB under way and a switch with room for a quarter of one: this went on until the launch was lost."""
    stopping = {"minimum_seconds": 1, "maximum_seconds": 1, "maximum_samples": 1000}
    flood = _cell("incast", 2**20, door="write", timeout=18) | {"stopping": stopping}
    guest.shape(1, "100mbit", queue="256k")
    try:
        outcome = guest.probe([flood, _cell("pingpong", 64) | {"stopping": FEW}])
    finally:
        guest.shape(1, None)
    assert outcome.code == 0, outcome.stderr
    assert "what was under way at the end of the measured time had not all come 11 s later" in outcome.failed(0).reason
    assert outcome.end(1).measured == FEW["maximum_samples"]


def test_the_traffic_class_is_on_the_wire(guest: Guest) -> None:
    names = {name: guest.folder / f"sniffer-{name}" for name in ("ready", "end", "seen")}
    script = guest.folder / "sniffer.py"
    script.write_text(SNIFFER)
    before = (
        f"chrt -r 1 python3 -I -S {script} {names['ready']} {names['end']} {names['seen']} &\n"
        f"until [ -e {names['ready']} ]; do sleep 0.05; done\ntrap 'touch {names['end']}; kill $!' EXIT"
    )
    outcome = guest.probe([_cell("pingpong", 8, traffic_class=0x68)], before=before)
    assert outcome.times(0)
    assert names["seen"].read_text().split() == [str(0x68)]


def test_what_no_queue_pair_takes_is_refused(guest: Guest) -> None:
    outcome = guest.probe([_cell("pingpong", 8, timeout=32)])
    assert "timeout must be an integer from 1 to 31, found 32" in outcome.failed(0).reason


def test_the_device_port_and_address_that_the_testbed_names_are_taken_or_said_to_be_missing(guest: Guest) -> None:
    """Each rank has the one beside its interface unless another is named."""
    named = {**FABRIC, "rdma": {"device": "rxe3", "port": 1, "gid_index": 1}}
    before = guest.counters("rxe3")["sent_pkts"]
    outcome = guest.probe([_cell("pingpong", 8)], fabric=named)
    assert outcome.times(0), outcome.failed(0).reason
    assert guest.counters("rxe3")["sent_pkts"] - before >= 2 * len(outcome.times(0))
    for wanted, said in (
        (
            {"device": "rxe9"},
            "there is no RDMA device rxe9, which the testbed names: this host has rxe1/1 (RoCE over h1)",
        ),
        ({"port": 2}, "no RDMA device with port 2 belongs to interface h1"),
        ({"gid_index": 7}, "port rxe1/1 has no address (GID) 7; it has 0, 1"),
    ):
        refused = guest.probe([_cell("pingpong", 8)], fabric={**FABRIC, "rdma": wanted})
        assert said in refused.failed(0).reason


def test_latency_beside_the_queue_pairs_of_others_is_longer(guest: Guest) -> None:
    """Of rank 3 with rank 0, beside an incast of ranks 1 and 2 towards another rank of the same host."""
    guest.shape(1, "100mbit")
    cell = _cell("pingpong", 8, timeout=18) | {"ranks": [3, 0]}
    load = {
        "layer": "rdma",
        "pattern": "incast",
        "message_bytes": 4096,
        "ranks": [4, 1, 2],
        "parameters": {"flows": 4, "timeout": 18, "depth": 8},
    }
    try:
        outcome = guest.probe([cell, cell | {"congestor": load}], ranks=5)
    finally:
        guest.shape(1, None)
    assert outcome.code == 0, outcome.stderr
    usual, beside = (float(np.median(outcome.times(number))) for number in (0, 1))
    assert beside > 2 * usual


def test_datagrams_of_several_peers_and_flows_are_told_apart(guest: Guest) -> None:
    cells = [
        _cell(pattern, 1024, door="datagram", **more) | {"ranks": [0, 1, 2, 3], "verify_messages": 2}
        for pattern, more in (("incast", {"flows": 4}), ("exchange", {}))
    ]
    outcome = guest.probe(cells, ranks=4)
    assert outcome.code == 0, outcome.stderr
    for number in range(len(cells)):
        assert (outcome.end(number).verified > 0, outcome.end(number).corrupted) == (True, 0)
        assert outcome.times(number)
