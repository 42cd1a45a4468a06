"""What each door into layer frame costs, beside what a person would write by hand for it: round trips and one-way rates.

    python -m benchmarks.frame_doors [--blocks 5] [--seconds 1] [--write docs/frame-doors.md]

Two network namespaces with a veth between them, a processor for each end, receivers that spin. In each block every door is
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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.lab_truth import go_before_other_sessions
from benchmarks.launching import Measured, launch, unsatisfied
from benchmarks.page import show

from fabricbench.launch.launcher import Command
from fabricbench.launch.local import LocalLauncher
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.starting import yield_library
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.testbed.model import Fabric

DOORS = ("packet", "ring", "xdp", "xdp-native")
BY_HAND = Path(__file__).with_name("frame_by_hand.c")
INTERFACE = "fab0"
FABRIC = Fabric(name="veth", interface=INTERFACE, subnet="10.97.0.0/24", mtu=1500)
MESSAGE_BYTES = 64
TARGET_RATIO = 1.10
"""Of a round trip through packet rings or AF_XDP in generic mode, to the best by hand."""

HOLDER = ("setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo held; exec sleep 3600")


@contextmanager
def two_namespaces() -> Iterator[tuple[int, int]]:
    """Yield the processes that hold two network namespaces with a veth between them; they end with this one."""
    holders = [subprocess.Popen(HOLDER, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for holder in holders:
            assert holder.stdout is not None
            holder.stdout.readline()
        first, second = (holder.pid for holder in holders)
        inside = [["nsenter", "--target", str(pid), "--net"] for pid in (first, second)]
        run(
            [
                *inside[0],
                "ip",
                "link",
                "add",
                INTERFACE,
                "type",
                "veth",
                "peer",
                "name",
                INTERFACE,
                "netns",
                str(second),
            ]
        )
        for number, enter in enumerate(inside):
            run(
                [
                    *enter,
                    "sh",
                    "-c",
                    "test ! -d /proc/sys/net/ipv6 || echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
                ]
            )
            run([*enter, "ip", "address", "add", f"10.97.0.{number + 1}/24", "dev", INTERFACE])
            for interface in ("lo", INTERFACE):
                run([*enter, "ip", "link", "set", interface, "up"])
        yield first, second
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


def run(tokens: Sequence[str]) -> None:
    """Run a command that must succeed."""
    subprocess.run(tokens, check=True, timeout=20)


class InNamespaces(LocalLauncher):
    """Starts each of two ranks in a namespace of its own, on a processor of its own."""

    def __init__(self, script: Path, pids: Sequence[int]) -> None:
        super().__init__(find_starter(), yield_library())
        cases = " ".join(f"{rank}) at='{' '.join(seat(rank, pid))}';;" for rank, pid in enumerate(pids))
        # The starter's session is one of its own, which goes before others by itself.
        go_first = "echo -20 2>/dev/null >/proc/self/autogroup"
        script.write_text(
            f'#!/bin/sh\n{go_first}\ncase "${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}" in {cases} esac\nexec $at "$@"\n'
        )
        script.chmod(0o755)
        self._script = script

    def command(self, fabric: Fabric, program: Sequence[str], directory: Path, ranks: int) -> Command:
        """Return what runs a program there."""
        return super().command(fabric, [str(self._script), *program], directory, ranks)


def seat(end: int, pid: int) -> list[str]:
    """Return what starts a program at one of the two ends."""
    processors = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(processors[end % len(processors)]), "nsenter", "--target", str(pid), "--net"]


def by_hand(program: Path, pids: Sequence[int], door: str, roles: tuple[str, str], seconds: float) -> float:
    """Return what the first role's program printed."""
    ends = [
        subprocess.Popen(
            [*seat(end, pid), str(program), INTERFACE, door, role, str(seconds), str(MESSAGE_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for end, (pid, role) in enumerate(zip(pids, roles, strict=True))
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


def probes(seconds: float) -> list[PlanProbe]:
    """Return a ping-pong and a stream through each door."""
    return [
        PlanProbe(
            id=number,
            layer=Layer.FRAME,
            pattern=pattern,
            message_bytes=MESSAGE_BYTES,
            receive=Receive.POLLING,
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


def measure(program: Path, folder: Path, pids: Sequence[int], seconds: float) -> dict[str, Found]:
    """Return one block: all doors by hand, then all by the measurer."""
    hand = {
        door: (
            by_hand(program, pids, door, ("lead", "follow"), seconds),
            by_hand(program, pids, door, ("count", "send"), seconds),
        )
        for door in DOORS
    }
    _, cells = launch(InNamespaces(folder / "seat", pids), FABRIC, probes(seconds), 2)
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


def main() -> None:
    """Measure and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=5, help="that count")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each figure")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    if not go_before_other_sessions():
        print(
            "this may not go before other sessions: on a busy machine rates are what the scheduler makes of them",
            file=sys.stderr,
        )
    with tempfile.TemporaryDirectory() as name, two_namespaces() as pids:
        folder = Path(name)
        program = folder / "frame_by_hand"
        run(["cc", "-O2", "-o", str(program), str(BY_HAND)])
        blocks = [measure(program, folder, pids, given.seconds) for _ in range(given.blocks + 1)][1:]
    text = [
        f"Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f};",
        f"a veth, {MESSAGE_BYTES} B, spinning;",
        f"{len(blocks)} blocks, {given.seconds:g} s a figure.",
        "",
        *table(blocks),
    ]
    show(text, "frame-doors", given.write)


if __name__ == "__main__":
    main()
