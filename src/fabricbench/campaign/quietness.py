"""Other work on the machine that a run takes place on: looked for before anything of the run is started."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

SAMPLE_S = 0.5
BUSY_SHARE = 0.1
LEAST_BUSY = 0.25
"""Processors: a desktop's own housekeeping stays below; a program that runs all the time does not."""

_STAT = Path("/proc/stat")
_IDLE = (3, 4)
"""Places of the idle times of a processor in /proc/stat, behind its name: idle, and waiting for a disk."""


@dataclass(frozen=True)
class OtherLoad:
    """How many of a machine's processors do other work than ours: right now, where a load average remembers the last minute's."""

    busy: float
    processors: int

    @property
    def share(self) -> float:
        """The part of the processors that is busy."""
        return self.busy / self.processors

    def words(self) -> str | None:
        """Return what to tell who measures now; None where the machine is quiet."""
        if self.busy < max(LEAST_BUSY, BUSY_SHARE * self.processors):
            return None
        return (
            f"this machine is busy: {self.busy:.1f} of {self.processors} processors do other work "
            f"(load average {os.getloadavg()[0]:.1f}). "
            "What is measured now scatters more, and emulated switches are late; a quiet machine gives narrower intervals"
        )


def other_load(
    *,
    read: Callable[[], str] = _STAT.read_text,
    wait: Callable[[float], None] = time.sleep,
    cpus: Iterable[int] | None = None,
) -> OtherLoad:
    """Return how busy the processors that may be used are with other work. Takes `SAMPLE_S`."""
    mine = set(os.sched_getaffinity(0) if cpus is None else cpus)
    before = read()
    wait(SAMPLE_S)
    return OtherLoad(busy=busy_processors(before, read(), mine), processors=len(mine))


def busy_processors(before: str, after: str, cpus: Iterable[int]) -> float:
    """Return how many of `cpus` were busy on average between two readings of /proc/stat; time that a host took away counts."""
    busy = 0.0
    begin, end = _times(before), _times(after)
    for cpu in cpus:
        spent = [new - old for old, new in zip(begin.get(cpu, ()), end.get(cpu, ()), strict=False)]
        if total := sum(spent):
            busy += 1 - sum(spent[place] for place in _IDLE) / total
    return busy


def _times(stat: str) -> dict[int, list[int]]:
    """Return the times of each processor: user, nice, system, idle, iowait, irq, softirq, steal. Guests' are in user already."""
    lines = [line.split() for line in stat.splitlines() if line.startswith("cpu") and line[3].isdigit()]
    return {int(name[3:]): [int(each) for each in times[:8]] for name, *times in lines}
