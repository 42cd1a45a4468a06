"""What a cell asks of layer rdma beside its pattern: packets, marks, device and port, load of others, peers of a datagram."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
