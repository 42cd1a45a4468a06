"""Whether this machine has anything else to do, looked at before the first launch of a run that takes place on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

SAMPLE_S = 0.5
BUSY_SHARE = 0.1
LEAST_BUSY = 0.25
"""Processors: a desktop's own housekeeping stays below; a program that runs all the time does not."""

_STAT = Path("/proc/stat")
_IDLE = (3, 4)
"""Places of the idle times of a processor in /proc/stat, behind its name: idle, and waiting for a disk."""


def other_load(
    *,
    read: Callable[[], str] = _STAT.read_text,
    wait: Callable[[float], None] = time.sleep,
    cpus: Iterable[int] | None = None,
) -> str | None:
    """Return in words how busy the processors that may be used are with other work; None where they are quiet. Takes `SAMPLE_S`."""
    mine = set(os.sched_getaffinity(0) if cpus is None else cpus)
    before = read()
    wait(SAMPLE_S)
    busy = busy_processors(before, read(), mine)
    if busy < max(LEAST_BUSY, BUSY_SHARE * len(mine)):
        return None
    return (
        f"this machine is busy: {busy:.1f} of {len(mine)} processors do other work (load average {os.getloadavg()[0]:.1f}). "
        "What is measured now scatters more, and emulated switches are late; a quiet machine gives narrower intervals"
    )


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
