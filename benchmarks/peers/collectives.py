"""The loop that every user writes around a collective (plain_collectives.c) beside our measurement of the same call.

Both run on the MPI that our measurer was built with, started the same way, and are compiled by its compiler. Like is beside like
for calls back to back (as IMB) and for calls with a barrier before each, averaged over ranks (as OSU): our measurer times both.
Our samples begin on all ranks at a time that clocks agree on: there the definitions differ, and the ratio says by how much.
"""

from __future__ import annotations

import re
import statistics
import tempfile
from pathlib import Path

from benchmarks.launching import launch, unsatisfied
from benchmarks.peers.link import Link
from benchmarks.peers.theirs import checked

from fabricbench.launch.lab import LabLauncher
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.probe_plan import PlanProbe

OPERATIONS = (Pattern.ALLREDUCE, Pattern.ALLTOALL)
SIZES = (8, 4 * 1024, 64 * 1024)
FIGURES = ("back to back", "barrier start, mean over ranks", "agreed start / slowest rank after a barrier")
"""In the order of what `ours_ns` and `plain_ns` return. The last has two definitions."""


def ours_ns(
    link: Link, launcher: LabLauncher, operation: Pattern, message_bytes: int, seconds: float, ranks: int
) -> list[tuple[float, float]]:
    """Return our figures: back to back, after barriers, and the median from an agreed start."""
    probe = PlanProbe(
        id=0,
        layer=Layer.MPI,
        pattern=operation,
        message_bytes=message_bytes,
        receive=Receive.LIBRARY,
        ranks=tuple(range(ranks)),
        warmup_samples=100,
        stopping=unsatisfied(seconds),
    )
    _, (cell,) = launch(launcher, link.fabric, [probe], ranks)
    told = cell.end.values
    found = (told["back_to_back_ns"], told["barrier_start_ns"], statistics.median(cell.times))
    return [(figure, figure) for figure in found]


def plain_ns(
    link: Link, program: Path, launcher: LabLauncher, operation: Pattern, message_bytes: int, seconds: float, ranks: int
) -> list[float]:
    """Return the figures of plain_collectives.c, in the order of ours."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = [str(program), str(operation), str(message_bytes), str(seconds)]
        text = checked(list(launcher.command(link.fabric, tokens, Path(folder), ranks).tokens), folder)
    found = dict(re.findall(r"^(\w+) ([0-9.]+)$", text, re.MULTILINE))
    return [float(found[name]) for name in ("back_to_back", "barrier_start", "apart")]
