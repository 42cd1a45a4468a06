"""fabricbench beside sockperf, NetPIPE and iperf3 over one emulated link: A B A B, a ratio for each pair, their median.

    python -m benchmarks.peers [--rounds 7] [--fabric myrinet] [--seconds 2]

Prints a Markdown table. A ratio is ours / theirs; lower is better for round trips, higher for streams. Like is set beside like: our
samples go through the statistic that the peer prints (sockperf: the median; NetPIPE: the best of seven trials' means;
iperf3: all bits over all time).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import ours, theirs
from benchmarks.peers.link import Link
from benchmarks.peers.programs import find_program

from fabricbench.lab import Lab, parse_fabric
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.mpi import find_starter
from fabricbench.model import Layer
from fabricbench.native import native_file
from fabricbench.quantity import format_bit_s, format_seconds

MESSAGE_BYTES = 64
STREAM_BYTES = 128 * 1024
"""The block that iperf3 writes by default."""


@dataclass(frozen=True)
class Contest:
    """What is compared, the two measurements, and which side of 1 is good."""

    title: str
    ours: Callable[[], tuple[float, float]]
    """Our figure by the peer's statistic, and our median."""
    theirs: Callable[[], float]
    is_time: bool

    def show(self, value: float) -> str:
        """Write a figure with its unit."""
        return format_seconds(value / 1e9) if self.is_time else format_bit_s(value, 4)


def contests(link: Link, launcher: LabLauncher, seconds: int) -> Iterator[Contest]:
    """Yield what can be compared here; a peer that is missing is named on stderr."""

    def ping_pong(layer: Layer, statistic: Callable[[Sequence[int]], float]) -> Callable[[], tuple[float, float]]:
        return lambda: ours.ping_pong(link, launcher, layer, MESSAGE_BYTES, seconds, statistic)

    programs = {name: find_program(name) for name in ("sockperf", "NPtcp", "NPmpich2", "iperf3")}
    for name, found in programs.items():
        if found is None:
            sys.stderr.write(f"{name} is not here and cannot be unpacked: left out\n")
    sockperf, netpipe, netpipe_mpi, iperf3 = programs.values()
    if sockperf:
        for layer, tcp in ((Layer.UDP, False), (Layer.TCP, True)):
            yield Contest(
                f"{layer} ping-pong, {MESSAGE_BYTES} B / sockperf",
                ping_pong(layer, ours.median_ns),
                lambda tcp=tcp: theirs.sockperf_round_trip_ns(link, sockperf, MESSAGE_BYTES, seconds, tcp=tcp),
                is_time=True,
            )
    if netpipe:
        yield Contest(
            f"tcp ping-pong, {MESSAGE_BYTES} B / NetPIPE",
            ping_pong(Layer.TCP, ours.best_trial_ns),
            lambda: theirs.netpipe_tcp_round_trip_ns(link, netpipe, MESSAGE_BYTES),
            is_time=True,
        )
    if netpipe_mpi:
        yield Contest(
            f"mpi ping-pong, {MESSAGE_BYTES} B / NetPIPE, same MPICH",
            ping_pong(Layer.MPI, ours.best_trial_ns),
            lambda: theirs.netpipe_mpi_round_trip_ns(link, netpipe_mpi, launcher, MESSAGE_BYTES),
            is_time=True,
        )
    if iperf3:
        yield Contest(
            f"tcp stream, {STREAM_BYTES // 1024} KiB writes / iperf3",
            lambda: ours.stream(link, launcher, STREAM_BYTES, seconds),
            lambda: theirs.iperf3_bit_s(link, iperf3, seconds),
            is_time=False,
        )


def run(contest: Contest, rounds: int) -> str:
    """Alternate the two sides and return the table's row."""
    pairs = []
    for index in range(rounds):
        pairs.append((*contest.ours(), contest.theirs()))
        sys.stderr.write(f"{contest.title}: pair {index + 1} of {rounds}: {pairs[-1][0] / pairs[-1][2]:.3f}\n")
    ratios = sorted(mine / other for mine, _, other in pairs)
    of_medians = statistics.median(middle / other for _, middle, other in pairs)
    mine, middle, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    return (
        f"| {contest.title} | {contest.show(mine)} | {contest.show(other)} "
        f"| {statistics.median(ratios):.3f} | {ratios[0]:.3f} to {ratios[-1]:.3f} "
        f"| {contest.show(middle)} | {of_medians:.3f} |"
    )


def main() -> None:
    """Run every contest in a lab of our own and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--fabric", default="myrinet")
    given = parser.parse_args()
    lab = Lab.up(f"peers-{os.getpid()}", 2, [parse_fabric(given.fabric)], owned=True)
    try:
        launcher = LabLauncher(lab, find_starter(), Path(native_file("libfabricbench-yield.so")))
        link = Link(lab, lab.testbed().fabrics[0])
        print(f"Emulated {given.fabric} link, {given.rounds} pairs of {given.seconds} s, ours and theirs in turn.\n")
        print("| what / peer | ours | peer | ratio (median of pairs) | range | our median | its ratio |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for contest in contests(link, launcher, given.seconds):
            print(run(contest, given.rounds), flush=True)
    finally:
        lab.down()


if __name__ == "__main__":
    main()
