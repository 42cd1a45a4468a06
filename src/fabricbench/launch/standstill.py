"""Sees that a process of a launch, or the machine, stood still while it was measured: a sample of 30 s is then no fact of a fabric.

Looked for is what no measurement can tell from a slow network: a process that was stopped (SIGSTOP, by hand or by a batch system),
a machine that slept, and a watcher that got no processor for seconds while the launch used none either (a frozen container).
Nothing is asked of the ranks: whoever watches the launch looks at /proc, between its own waits. So what is shorter than two looks
is not seen, and of a launch on other machines only its starter is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fabricbench.launch import guard
from fabricbench.record.launch import Standstill

LEAST_STOPPED_SECONDS = 0.4
"""Seen as stopped twice in a row: some programs stop for a moment, while a debugger takes hold of them say."""

LEAST_ASLEEP_SECONDS = 0.1
"""What the kernel's two clocks differ by more than while the machine slept."""

LEAST_GAP_SECONDS = 5.0
"""Longer than a busy machine keeps a process that waits from going on."""

BUSY_SHARE = 0.01
"""Of a gap, as time of processors: a launch that used more of it went on without the watcher."""

FIND_EVERY = 10
"""Looks, after which the launch's processes are found anew: that reads all of /proc, 2 ms for 150 processes."""

FIND_FIRST = 4
"""Looks at the beginning of which each finds them: ranks start one after the other."""

STATE, TIMES = 0, slice(11, 15)
"""Places in /proc/PID/stat, counted behind the command's closing bracket; times also of children that have ended."""

STOPPED = "T"


@dataclass(frozen=True)
class _Seen:
    """What /proc tells of a process: whether it is stopped, and the clock ticks that it has used."""

    is_stopped: bool
    ticks: int


class StandstillWatch:
    """Looks at one launch: the processes below `root`, and those `beside` it that it needs, by PID with what they are."""

    def __init__(self, root: int, beside: Mapping[int, str]) -> None:
        self._root = root
        self._beside = dict(beside)
        self._processes: dict[int, str] = {}
        self._looks = 0
        self._ticks = 0
        self._stopped: dict[int, tuple[float, float, str]] = {}
        """When a process was seen as stopped first, when it was looked at before that, and what it is."""
        self._last = time.monotonic()
        self._asleep = _seconds_asleep()
        self.found: list[Standstill] = []

    def look(self, late_seconds: float = 0.0, *, is_here: bool = True) -> None:
        """Look once. `late_seconds`: how much later than asked the watcher woke; that tells of ranks only where they are here."""
        now = time.monotonic()
        if self._looks < FIND_FIRST or self._looks % FIND_EVERY == 0:
            with suppress(OSError):  # this process may have too many files open
                self._processes = {**dict.fromkeys((self._root, *guard.descendants(self._root)), ""), **self._beside}
        self._looks += 1
        seen = {pid: one for pid in self._processes if (one := _look_at(pid)) is not None}
        ticks = sum(one.ticks for pid, one in seen.items() if pid not in self._beside)
        used_seconds = (ticks - self._ticks) / os.sysconf("SC_CLK_TCK")
        if is_here and late_seconds > LEAST_GAP_SECONDS and used_seconds < BUSY_SHARE * late_seconds:
            self._note("this machine, or the container of the launch,", None, late_seconds)
        asleep = _seconds_asleep()
        if asleep - self._asleep > LEAST_ASLEEP_SECONDS:
            self._note("this machine", None, asleep - self._asleep)
        for pid in self._processes:
            if pid in seen and seen[pid].is_stopped:
                self._stopped.setdefault(pid, (now, self._last, self._processes[pid] or _command(pid)))
            else:
                self._end_of_stop(pid, now)
        self._last, self._ticks, self._asleep = now, ticks, asleep

    def finish(self) -> tuple[Standstill, ...]:
        """Look for the last time, before anything is ended; return all that was found."""
        self.look()
        for pid in list(self._stopped):
            self._end_of_stop(pid, time.monotonic())
        return tuple(self.found)

    def _end_of_stop(self, pid: int, now: float) -> None:
        first_seen, before, what = self._stopped.pop(pid, (now, now, ""))
        if now - first_seen >= LEAST_STOPPED_SECONDS:
            self._note(what, pid, now - before)

    def _note(self, what: str, pid: int | None, seconds: float) -> None:
        begin = time.time_ns() - round(seconds * 1e9)
        self.found.append(Standstill(what=what, pid=pid, begin_unix_ns=begin, seconds=round(seconds, 3)))


def _look_at(pid: int) -> _Seen | None:
    try:
        fields = Path("/proc", str(pid), "stat").read_text(errors="replace").rpartition(")")[2].split()
        return _Seen(fields[STATE] == STOPPED, sum(map(int, fields[TIMES])))
    except (OSError, ValueError, IndexError):
        return None


def _command(pid: int) -> str:
    return str(guard.describe(pid)["command"]) or "a process of the launch"


def _seconds_asleep() -> float:
    """Return how long the machine has slept since it was started: what lies between two readings is none, so the least counts."""
    since_start = (
        (time.clock_gettime(time.CLOCK_MONOTONIC), time.clock_gettime(time.CLOCK_BOOTTIME)) for _ in range(3)
    )
    return min(asleep - awake for awake, asleep in since_start)
