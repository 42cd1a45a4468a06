"""Traffic over cables, over a torus of rings and over scaled fabrics, loosely: a busy machine must not fail these."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabricbench.lab import Lab
from support.lab_outside import RunIn, StartLab

pytestmark = pytest.mark.lab

ECHO = """
import socket
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind(("", 5002))
print("listening", flush=True)
while True:
    heard.sendto(*heard.recvfrom(2048))
"""

PING = """
import socket, sys
said = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
said.settimeout(5)
for address in sys.argv[1:]:
    said.sendto(b"ping", (address, 5002))
    print(said.recvfrom(16)[1][0])
"""

STAMPS = """
import socket, sys, time
said = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(10):
    said.sendto(str(time.monotonic_ns()).encode(), (sys.argv[1], 5003))
    time.sleep(0.05)
"""

LEAST_DELAY = """
import socket, time
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind(("", 5003))
heard.settimeout(10)
print("listening", flush=True)
print(min(-int(heard.recv(64)) + time.monotonic_ns() for _ in range(10)))
"""

RECEIVE = """
import socket, time
server = socket.create_server(("", 5001))
server.settimeout(20)
print("listening", flush=True)
stream, _ = server.accept()
first = last = total = 0
while piece := stream.recv(1 << 18):
    last = time.monotonic_ns()
    first = first or last
    total += len(piece)
print(total * 8e9 / (last - first))
"""

SEND = """
import socket, sys, time
stream = socket.create_connection((sys.argv[1], 5001), timeout=20)
until = time.monotonic() + 2
while time.monotonic() < until:
    stream.sendall(bytes(1 << 16))
"""


def start(lab: Lab, node: str, program: str, *arguments: str) -> subprocess.Popen[str]:
    tokens = lab.command_in(
        node, [sys.executable, "-c", program, *arguments], working_directory=Path("/"), environment={}
    )
    return subprocess.Popen(tokens, stdout=subprocess.PIPE, text=True)


def listening(lab: Lab, node: str, program: str) -> subprocess.Popen[str]:
    listener = start(lab, node, program)
    assert listener.stdout is not None
    assert listener.stdout.readline() == "listening\n"
    return listener


@pytest.mark.parametrize(
    ("fabrics", "nodes"),
    [
        ("fast-ethernet-crossover,gigabit-crossover", 2),
        ("sci-torus", 4),
        ("roce-100g,infiniband-100g,infiniband-hdr", 2),
    ],
)
def test_every_node_answers_over_every_fabric(start_lab: StartLab, run_in: RunIn, fabrics: str, nodes: int):
    lab = start_lab(fabrics, nodes=nodes)
    for node in range(nodes):
        with listening(lab, f"n{node}", ECHO) as echo:
            others = [other for other in range(nodes) if other != node]
            addresses = [f"10.98.{fabric + 1}.{node + 1}" for fabric in range(fabrics.count(",") + 1)]
            for other in others:
                done = run_in(lab, f"n{other}", sys.executable, "-c", PING, *addresses)
                assert done.stdout.splitlines() == addresses, done.stderr
            echo.kill()
    for fabric in lab.status().fabrics:
        assert sum(port.dropped_frames + port.unsent_frames for port in fabric.switch.ports) == 0
        assert all(port.sent_frames >= 2 * (nodes - 1) for port in fabric.switch.ports)


def least_delay_s(lab: Lab, source: int, destination: int) -> float:
    with listening(lab, f"n{destination}", LEAST_DELAY) as receiver:
        with start(lab, f"n{source}", STAMPS, f"10.98.1.{destination + 1}") as sender:
            told = receiver.communicate(timeout=30)[0]
        assert sender.returncode == 0
    return int(told) * 1e-9


def test_a_datagram_takes_the_longer_the_more_hops_it_makes(start_lab: StartLab):
    lab = start_lab("sci-torus:latency=20ms", nodes=4)  # 2 x 2: n1 is a hop away, n3 two
    one_hop_s, two_hops_s = (least_delay_s(lab, 0, node) for node in (1, 3))
    assert 0.020 <= one_hop_s < 0.040 <= two_hops_s < 0.060


def rates_bit_s(lab: Lab, flows: Sequence[tuple[int, int]]) -> list[float]:
    receivers = [listening(lab, f"n{destination}", RECEIVE) for _, destination in flows]
    senders = [start(lab, f"n{source}", SEND, f"10.98.1.{destination + 1}") for source, destination in flows]
    assert [sender.wait(timeout=30) for sender in senders] == [0] * len(flows)
    return [float(receiver.communicate(timeout=30)[0]) for receiver in receivers]


@pytest.mark.slow
def test_streams_over_one_segment_share_its_rate_and_others_do_not(start_lab: StartLab):
    segment_bit_s = 50e6
    lab = start_lab("sci-torus:columns=4,rate=100Mbit/s,segment-rate=50Mbit/s,mtu=1500,buffer=64KiB", nodes=4)
    sharing = rates_bit_s(lab, [(0, 2), (1, 3)])  # both from n1 to n2
    apart = rates_bit_s(lab, [(0, 1), (2, 3)])
    assert 0.6 * segment_bit_s < sum(sharing) < 1.05 * segment_bit_s
    assert min(sharing) > 0.1 * segment_bit_s
    assert 1.3 * segment_bit_s < sum(apart) < 2.1 * segment_bit_s
