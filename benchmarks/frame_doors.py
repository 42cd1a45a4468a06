"""What each door into layer frame costs, beside what a person would write by hand for it: round trips and one-way rates.

    python -m benchmarks.frame_doors [--through veth lab] [--blocks 5] [--seconds 1] [--write docs/frame-doors.md]

Through two network namespaces with a veth between them, a processor for each end, receivers that spin; and through the switch of a
lab, between two of its nodes, receivers that sleep: nodes share what processors the switch leaves. In each block every door is
measured by `frame_by_hand.c` and then by the measurer, so that what else the machine does falls on both; shown are medians over
blocks, and the median of the ratios within them. The first block warms up and does not count. Needs root and a C compiler; ends
with 0 whatever it finds.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.lab_truth import go_before_other_sessions
from benchmarks.launching import Measured, launch, unsatisfied
from benchmarks.page import show

from fabricbench.lab import Lab, parse_fabric
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.launcher import Command, Launcher
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.starting import yield_library
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.testbed.model import Fabric
from support.namespaces import FABRIC, GO_FIRST, InNamespaces, run, seat, two_namespaces

DOORS = ("packet", "ring", "xdp", "xdp-native")
BY_HAND = Path(__file__).with_name("frame_by_hand.c")
MESSAGE_BYTES = 64
TARGET_RATIO = 1.10
"""Of a round trip through packet rings or AF_XDP in generic mode, to the best by hand."""

LAB_FABRIC = "fast-ethernet"
"""Slow enough for the switch to carry small frames at its line's rate."""


class Place(Protocol):
    """Two ends of a link, and how programs are started there."""

    title: str
    fabric: Fabric
    receive: Receive

    @property
    def launcher(self) -> Launcher:
        """What starts a rank at each end."""

    def at_end(self, end: int, program: Sequence[str]) -> list[str]:
        """Return what runs a program at one of the two ends."""


class OverVeth:
    """A veth alone, of which each end has a processor to itself."""

    title = "a veth"
    fabric = FABRIC
    receive = Receive.POLLING

    def __init__(self, pids: Sequence[int], folder: Path) -> None:
        self._pids = pids
        self.launcher = InNamespaces(folder / "seat", pids)

    def at_end(self, end: int, program: Sequence[str]) -> list[str]:
        """Return what runs a program at one of the two ends."""
        return [*seat(end, self._pids[end]), *program]


@contextmanager
def over_veth(folder: Path) -> Iterator[Place]:
    """Yield two namespaces with a veth between them."""
    with two_namespaces() as pids:
        yield OverVeth(pids, folder)


class GoingFirst(LabLauncher):
    """Starts ranks in a lab that go before other sessions, as what is started beside them by hand does."""

    def __init__(self, lab: Lab, script: Path) -> None:
        super().__init__(lab, find_starter(), yield_library())
        script.write_text(f'#!/bin/sh\n{GO_FIRST}\nexec "$@"\n')
        script.chmod(0o755)
        self._script = script

    def command(self, fabric: Fabric, program: Sequence[str], directory: Path, ranks: int) -> Command:
        """Return what runs a program there."""
        return super().command(fabric, [str(self._script), *program], directory, ranks)


class ThroughSwitch:
    """Two nodes of a lab with its switch between them."""

    title = f"the switch of a lab, {LAB_FABRIC}"
    receive = Receive.BLOCKING

    def __init__(self, lab: Lab, folder: Path) -> None:
        self._lab = lab
        self.fabric = lab.testbed().fabrics[0]
        self.launcher = GoingFirst(lab, folder / "first")

    def at_end(self, end: int, program: Sequence[str]) -> list[str]:
        """Return what runs a program in one of the two nodes."""
        return self._lab.command_in(f"n{end}", program, working_directory=Path("/"), environment={})


@contextmanager
def through_switch(folder: Path) -> Iterator[Place]:
    """Yield the nodes of a lab of our own."""
    lab = Lab.up(f"doors{os.getpid()}", 2, [parse_fabric(LAB_FABRIC)], owned=True)
    try:
        yield ThroughSwitch(lab, folder)
    finally:
        lab.down()


PLACES = {"veth": (over_veth, "frame-doors"), "lab": (through_switch, "frame-doors-lab")}
"""Each with the name of its table's place in the documentation."""


def by_hand(program: Path, place: Place, door: str, roles: tuple[str, str], seconds: float) -> float:
    """Return what the first role's program printed."""
    waits = "spin" if place.receive is Receive.POLLING else "sleep"
    interface = place.fabric.interface or ""
    ends = [
        subprocess.Popen(
            place.at_end(end, [str(program), interface, door, role, str(seconds), str(MESSAGE_BYTES), waits]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for end, role in enumerate(roles)
    ]
    try:
        for end in ends:
            assert end.stderr is not None
            said = end.stderr.readline()
            if said != "READY\n":
                raise RuntimeError(f"the program by hand, door {door}: {said}")
        for end in reversed(ends):
            assert end.stdin is not None
            end.stdin.write("\n")
            end.stdin.flush()
        printed = ends[0].communicate(timeout=30 + seconds)[0]
        ends[1].communicate(timeout=30 + seconds)
        return float(printed)
    finally:
        for end in ends:
            end.kill()
            end.wait()


@dataclass(frozen=True)
class Found:
    """What one block found of a door: ns, frames a second."""

    hand_ns: float
    ours_ns: float
    hand_per_s: float
    ours_per_s: float


def probes(seconds: float, receive: Receive) -> list[PlanProbe]:
    """Return a ping-pong and a stream through each door."""
    return [
        PlanProbe(
            id=number,
            layer=Layer.FRAME,
            pattern=pattern,
            message_bytes=MESSAGE_BYTES,
            receive=receive,
            ranks=(0, 1),
            warmup_samples=50,
            messages_per_sample=1024 if pattern is Pattern.STREAM else 1,
            stopping=unsatisfied(seconds),
            parameters={"door": door},
        )
        for number, (door, pattern) in enumerate(
            (door, pattern) for door in DOORS for pattern in (Pattern.PINGPONG, Pattern.STREAM)
        )
    ]


def frames_per_s(stream: Measured) -> float:
    """Return what arrived in a second."""
    share = 1 - stream.end.lost / stream.end.sent
    return share * stream.cell.messages_per_sample * len(stream.times) * 1e9 / sum(stream.times)


def measure(program: Path, place: Place, seconds: float) -> dict[str, Found]:
    """Return one block: all doors by hand, then all by the measurer."""
    hand = {
        door: (
            by_hand(program, place, door, ("lead", "follow"), seconds),
            by_hand(program, place, door, ("count", "send"), seconds),
        )
        for door in DOORS
    }
    _, cells = launch(place.launcher, place.fabric, probes(seconds, place.receive), 2)
    ours = {
        door: (statistics.median(cells[2 * i].times), frames_per_s(cells[2 * i + 1])) for i, door in enumerate(DOORS)
    }
    return {door: Found(hand[door][0], ours[door][0], hand[door][1], ours[door][1]) for door in DOORS}


def table(blocks: Sequence[dict[str, Found]]) -> list[str]:
    """Return the doors as Markdown, and how they stand against what is asked."""
    lines = [
        "| door | round trip by hand | ours | ratio | over the best by hand | frames/s by hand | ours | over packet sockets |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    verdicts = []
    for door in DOORS:
        found = [block[door] for block in blocks]
        hand_ns, ours_ns, hand_per_s, ours_per_s = (
            statistics.median(getattr(one, field) for one in found)
            for field in ("hand_ns", "ours_ns", "hand_per_s", "ours_per_s")
        )
        ratio = statistics.median(one.ours_ns / one.hand_ns for one in found)
        to_best = statistics.median(
            block[door].ours_ns / min(one.hand_ns for one in block.values()) for block in blocks
        )
        rate = statistics.median(block[door].ours_per_s / block["packet"].ours_per_s for block in blocks)
        lines.append(
            f"| {door} | {hand_ns / 1e3:.2f} µs | {ours_ns / 1e3:.2f} µs | {ratio:.2f} | {to_best:.2f} "
            f"| {hand_per_s:,.0f} | {ours_per_s:,.0f} | {rate:.2f} |"
        )
        if door in ("ring", "xdp"):
            verdicts.append(
                f"{door}: {ratio:.2f} of the same door by hand, {to_best:.2f} of the best by hand "
                f"({'held' if to_best <= TARGET_RATIO else 'not held'}, at most {TARGET_RATIO:.2f}); "
                f"rate {rate:.2f} of packet sockets ({'held' if rate >= 1 else 'not held'}, at least 1)."
            )
    return [*lines, "", *verdicts]


def report(program: Path, opened: AbstractContextManager[Place], blocks: int, seconds: float) -> list[str]:
    """Measure in one place; what was measured how, and the table."""
    with opened as place:
        found = [measure(program, place, seconds) for _ in range(blocks + 1)][1:]
    waits = "spinning" if place.receive is Receive.POLLING else "receivers that sleep"
    return [
        f"{datetime.now(UTC):%Y-%m-%d}, Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f};",
        f"{place.title}, {MESSAGE_BYTES} B, {waits};",
        f"{len(found)} blocks, {seconds:g} s a figure.",
        "",
        *table(found),
    ]


def main() -> None:
    """Measure and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--through", nargs="+", choices=PLACES, default=list(PLACES), help="what lies between the ends")
    parser.add_argument("--blocks", type=int, default=5, help="that count")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each figure")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    if not go_before_other_sessions():
        print(
            "this may not go before other sessions: on a busy machine rates are what the scheduler makes of them",
            file=sys.stderr,
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        program = folder / "frame_by_hand"
        run(["cc", "-O2", "-o", str(program), str(BY_HAND)])
        for through in given.through:
            opened, marker = PLACES[through]
            show(report(program, opened(folder), given.blocks, given.seconds), marker, given.write)


if __name__ == "__main__":
    main()
