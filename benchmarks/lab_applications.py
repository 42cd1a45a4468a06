"""What do applications see of the lab's links? Round trips beside what was asked for, and where overdriven UDP is lost.

    python -m benchmarks.lab_applications [--rounds 5] [--seconds 1]

docs/lab-truth.md says how to read it. `lab_truth` measures links alone; here a program that sends and one that waits are in
the way, as in every measurement. Needs sockperf and iperf3; what is missing is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import which

from benchmarks.lab_truth import go_before_other_sessions, inside, running
from benchmarks.launching import launch, unsatisfied
from benchmarks.peers.link import Link
from benchmarks.peers.theirs import sockperf_round_trip_ns

from fabricbench.lab import EmulatedFabric, Lab, parse_fabric
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.starting import yield_library
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.probe_plan import PlanProbe

FABRIC = "gigabit-ethernet"
MESSAGE_BYTES = 64
UDP_HEADERS_BYTES = 42
ASKED_S = (20e-6, 200e-6, 2e-3)
"""Round trips: the shortest that FABRIC can have (and a little), and longer ones."""

OVERDRIVEN_BIT_S = "2G"
FULL_PAYLOAD_BYTES = 1472

Counts = Mapping[str, int]


def with_round_trip(asked_s: float) -> EmulatedFabric:
    """Return FABRIC with link delays such that a round trip of one message takes `asked_s` on links and switch."""
    plain = parse_fabric(f"{FABRIC}:delay=0s")
    added_s = plain.added_delay_s(MESSAGE_BYTES + UDP_HEADERS_BYTES)
    return parse_fabric(f"{FABRIC}:delay={(asked_s / 2 - added_s) / 2 * 1e9:.0f}ns")


def round_trips(asked_s: float, rounds: int, seconds: float) -> dict[str, list[float]]:
    """Return the median round trip in s that each way of measuring found, once a round, one way after the other."""
    with running(with_round_trip(asked_s)) as lab:
        link = Link(lab, lab.testbed().fabrics[0])
        launcher = LabLauncher(lab, find_starter(), yield_library())
        ways: dict[str, Callable[[], float]] = {
            f"ours, {receive.value}": lambda receive=receive: _ours(link, launcher, receive, seconds)  # type: ignore[misc]
            for receive in (Receive.BLOCKING, Receive.POLLING)
        }
        if (sockperf := which("sockperf")) is not None:
            program = Path(sockperf)
            ways["sockperf, blocking"] = lambda: sockperf_round_trip_ns(
                link, program, MESSAGE_BYTES, max(1, round(seconds)), tcp=False
            )
        found: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, measure in ways.items():
                found[way].append(measure() * 1e-9)
        return found


def _ours(link: Link, launcher: LabLauncher, receive: Receive, seconds: float) -> float:
    probe = PlanProbe(
        id=0,
        layer=Layer.UDP,
        pattern=Pattern.PINGPONG,
        message_bytes=MESSAGE_BYTES,
        receive=receive,
        warmup_samples=100,
        stopping=unsatisfied(seconds, 1_000_000),
    )
    return statistics.median(launch(launcher, link.fabric, [probe], 2)[1][0].times)


def overdriven(lab: Lab, seconds: float) -> Counts:
    """Send UDP faster than the link from n0 to n1 and return where datagrams went."""
    address = str(lab.topology.nodes[1].fabric_addresses[0])
    before = _counts(lab)
    with _server(lab):
        client = ["iperf3", "-u", "-c", address, "-b", OVERDRIVEN_BIT_S, "-l", str(FULL_PAYLOAD_BYTES)]
        tokens = inside(lab, "n0", *client, "-t", str(seconds), "-J")
        told = json.loads(subprocess.run(tokens, capture_output=True, check=True, timeout=120).stdout)
    time.sleep(0.3)
    after = _counts(lab)
    counted = {name: after[name] - before[name] for name in after}
    return counted | {"lost, as iperf3 has it": int(told["end"]["sum"]["lost_packets"])}


@contextmanager
def _server(lab: Lab) -> Iterator[None]:
    with subprocess.Popen(inside(lab, "n1", "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL):
        time.sleep(0.5)
        yield


def _counts(lab: Lab) -> dict[str, int]:
    first, second = lab.status().fabrics[0].switch.ports
    sender, receiver = _udp(lab, "n0"), _udp(lab, "n1")
    return {
        "handed to the network by n0": sender["OutDatagrams"],
        "frames into the switch from n0": first.received_frames,
        "dropped at the switch": first.dropped_frames + second.dropped_frames,
        "lost by the emulator": first.ring_lost_frames + second.unsent_frames,
        "out of order in the model": second.out_of_order_frames,
        "frames out of the switch to n1": second.sent_frames,
        "lost at n1, receive buffer full": receiver["RcvbufErrors"],
        "taken up by n1's socket": receiver["InDatagrams"],
    }


def _udp(lab: Lab, node: str) -> dict[str, int]:
    tokens = inside(lab, node, "cat", "/proc/net/snmp")
    lines = subprocess.run(tokens, capture_output=True, text=True, check=True, timeout=30).stdout.splitlines()
    names, values = (line.split()[1:] for line in lines if line.startswith("Udp:"))
    return dict(zip(names, map(int, values), strict=True))


def print_round_trips(rounds: int, seconds: float) -> None:
    print("| asked for | seen by | median | lowest, highest | more than asked |\n| ---: | --- | ---: | ---: | ---: |")
    for asked_s in ASKED_S:
        for way, found in round_trips(asked_s, rounds, seconds).items():
            median, (low, high) = statistics.median(found), (min(found), max(found))
            print(
                f"| {asked_s * 1e6:g} µs | {way} | {median * 1e6:.1f} µs | {low * 1e6:.1f}, {high * 1e6:.1f} µs "
                f"| {(median - asked_s) * 1e6:.1f} µs |",
                flush=True,
            )


def print_overdriven(rounds: int, seconds: float) -> None:
    if which("iperf3") is None:
        print("iperf3 is missing: no overdriven UDP")
        return
    with running(parse_fabric(FABRIC)) as lab:
        found = [overdriven(lab, seconds) for _ in range(rounds)]
    sent = [one["frames into the switch from n0"] for one in found]
    print(
        "| counted | median | share of what n0 put on its link | lowest, highest share |\n| --- | ---: | ---: | ---: |"
    )
    for name in found[0]:
        shares = [one[name] / total for one, total in zip(found, sent, strict=True)]
        median = statistics.median(one[name] for one in found)
        print(f"| {name} | {median:,.0f} | {statistics.median(shares):.1%} | {min(shares):.1%}, {max(shares):.1%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    arguments = parser.parse_args()
    goes_first = go_before_other_sessions()
    load_before = os.getloadavg()[0]
    print_round_trips(arguments.rounds, arguments.seconds)
    print()
    print_overdriven(arguments.rounds, arguments.seconds)
    load = f"load {load_before:.1f} before and {os.getloadavg()[0]:.1f} after"
    print(f"\nLinux {platform.release()}, {os.cpu_count()} processors, {load}, n = {arguments.rounds};")
    print("what was measured went before other sessions" if goes_first else "beside whatever else ran")


if __name__ == "__main__":
    main()
