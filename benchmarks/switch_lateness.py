"""How late is the emulated switch on this machine, and what held it up? Prints a Markdown table.

    python -m benchmarks.switch_lateness [--seconds 10] [--fabric myrinet] [--write docs/lab-truth.md]

Between two nodes of a lab a TCP stream runs, and then round trips with pauses, so that the switch is busy and woken again and
again. Meanwhile what its forwarding thread met is read every two milliseconds: how long it waited for its processor while others
ran there, page faults, interrupts on that processor, time that a hypervisor took. Each window of 5 ms with a frame more than
50 us late is put down to the first of these that happened around it; `nothing that Linux counts` is what is left: the hypervisor
again, where it does not tell, or firmware. The aim, on an idle machine with a processor for each node and each switch, is 50 us
for 99.9 % of frames; with fewer processors than that the nodes' own work is among what holds the switch up.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.lab_truth import go_before_other_sessions, inside, measure_stream, running
from benchmarks.page import show

from fabricbench.lab import Lab, parse_fabric
from fabricbench.lab.status import Window, read_windows
from fabricbench.quantity import format_seconds

LATE_NS = 50_000
LOOK_S = 0.002
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

ANSWER = """
import socket
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("", 5002))
print("bound", flush=True)
while True:
    message, sender = here.recvfrom(64)
    here.sendto(message, sender)
"""
ASK = """
import socket, sys, time
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.settimeout(1)
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    here.sendto(b"x" * 64, (sys.argv[1], 5002))
    here.recv(64)
    time.sleep(0.001)
"""


@dataclass(frozen=True)
class Look:
    """What the switch's forwarding thread and its processor had met until a time (ns since 1970)."""

    at_ns: int
    waited_ns: int
    faults: int
    stolen_ticks: int
    interrupts: int


CAUSES: tuple[tuple[str, Callable[[Look, Look], bool]], ...] = (
    ("another task had its processor", lambda before, after: after.waited_ns - before.waited_ns >= LATE_NS // 2),
    ("a page fault", lambda before, after: after.faults > before.faults),
    ("time that the hypervisor took", lambda before, after: after.stolen_ticks > before.stolen_ticks),
    ("interrupts on its processor", lambda before, after: after.interrupts - before.interrupts > 8),
)
UNKNOWN = "nothing that Linux counts"


class Watch:
    """A thread that looks at the switch again and again, on whatever processor the nodes have."""

    def __init__(self, pid: int, cpu: int | None) -> None:
        self.looks: list[Look] = []
        self._pid, self._cpu = pid, cpu
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _go(self) -> None:
        others = os.sched_getaffinity(0) - {self._cpu}
        if others:
            os.sched_setaffinity(0, others)  # of this thread alone
        while not self._over.wait(LOOK_S):
            self.looks.append(self._look())

    def _look(self) -> Look:
        task = Path(f"/proc/{self._pid}/task/{self._pid}")
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        name = "cpu" if self._cpu is None else f"cpu{self._cpu}"
        lines = Path("/proc/stat").read_text().splitlines()
        ticks = next(line.split() for line in lines if line.startswith(f"{name} "))
        return Look(
            at_ns=time.time_ns(),
            waited_ns=int((task / "schedstat").read_text().split()[1]),
            faults=int(fields[7]) + int(fields[9]),
            stolen_ticks=int(ticks[8]),
            interrupts=self._interrupts(),
        )

    def _interrupts(self) -> int:
        """Return how many interrupts the switch's processor has had."""
        head, *lines = Path("/proc/interrupts").read_text().splitlines()
        column = f"CPU{self._cpu}"
        if column not in (names := head.split()):
            return 0
        at = names.index(column) + 1
        counts = (line.split() for line in lines)
        return sum(int(line[at]) for line in counts if len(line) > at and line[at].isdecimal())

    def cause(self, window: Window) -> str:
        """Return what held the switch up around a window, by the looks before and behind it."""
        times = [look.at_ns for look in self.looks]
        first, last = bisect_right(times, window.begin_ns) - 1, bisect_left(times, window.end_ns)
        if first < 0 or last == len(times):
            return UNKNOWN
        before, after = self.looks[first], self.looks[last]
        return next((cause for cause, happened in CAUSES if happened(before, after)), UNKNOWN)


def round_trips(lab: Lab, seconds: float) -> None:
    """Send messages of 64 bytes to and fro, a millisecond apart, so that the switch falls asleep between them."""
    address = str(lab.topology.nodes[1].fabric_addresses[0])
    with subprocess.Popen(inside(lab, "n1", sys.executable, "-c", ANSWER), stdout=subprocess.PIPE) as answerer:
        assert answerer.stdout is not None
        answerer.stdout.readline()
        try:
            ask = inside(lab, "n0", sys.executable, "-c", ASK, address, str(seconds))
            subprocess.run(ask, check=True, timeout=seconds + 60)
        finally:
            answerer.kill()


def quantile_ns(windows: Sequence[Window], share: float) -> int:
    """Return the lateness that so large a share of frames keeps."""
    frames: Counter[int] = Counter()
    for window in windows:
        for late_ns, number in window.frames:
            frames[late_ns] += number
    rank, seen = share * frames.total(), 0
    for late_ns in sorted(frames):
        seen += frames[late_ns]
        if seen >= rank:
            return late_ns
    return 0


def row(what: str, windows: Sequence[Window], watch: Watch) -> str:
    """Return the line of a table about the windows of one kind of traffic."""
    late = [window for window in windows if window.maximum_ns > LATE_NS]
    causes = Counter(map(watch.cause, late))
    shown = "; ".join(f"{cause}: {number}" for cause, number in causes.most_common()) or "-"
    quantiles = " | ".join(format_seconds(quantile_ns(windows, share) * 1e-9) for share in (0.5, 0.99, 0.999))
    greatest = format_seconds(max((window.maximum_ns for window in windows), default=0) * 1e-9)
    frames = sum(number for window in windows for _, number in window.frames)
    return f"| {what} | {frames:,} | {quantiles} | {greatest} | {len(late)} of {len(windows)} | {shown} |"


def main() -> None:
    """Measure, print the table, write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="of each kind of traffic")
    parser.add_argument("--fabric", default="myrinet")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    go_before_other_sessions()
    with running(parse_fabric(given.fabric)) as lab:
        switch = lab.status().fabrics[0].switch
        path = lab.directory / f"switch-{lab.status().fabrics[0].name}.lateness.jsonl"
        rows = []
        with Watch(switch.pid, switch.cpu) as watch:
            for what, traffic in (("TCP stream", measure_stream), ("round trips, 1 ms apart", round_trips)):
                begin = time.time_ns()
                traffic(lab, given.seconds)
                end = time.time_ns()
                time.sleep(1)  # a window is written at most half a second after it
                rows.append((what, read_windows(path, (begin, end))))
        machine = f"Linux {platform.release()}, {os.cpu_count()} processors, load {load:.1f} at the start"
        text = [
            f"{machine}; {given.fabric}, {given.seconds:g} s each. Late: by more than {format_seconds(LATE_NS * 1e-9)}.",
            "",
            "| traffic | frames | late by: median | p99 | p99.9 | most | windows with a late frame | put down to |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
            *(row(what, windows, watch) for what, windows in rows),
        ]
    show(text, "switch-lateness", given.write)


if __name__ == "__main__":
    main()
