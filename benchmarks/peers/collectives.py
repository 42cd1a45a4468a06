"""The loop that every user writes around a collective (plain_collectives.c) beside our measurement of the same call.

Both run on the MPI that our measurer was built with, started the same way, and are compiled by its compiler. Like is beside like
for calls back to back, which our measurer times as well. A barrier before each call is what others do where ours begins on all
ranks at a time that clocks agree on: there the definitions differ, and the ratio says by how much.
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

RANKS = 4
OPERATIONS = (Pattern.ALLREDUCE, Pattern.ALLTOALL)
SIZES = (8, 64 * 1024)


def ours_ns(
    link: Link, launcher: LabLauncher, operation: Pattern, message_bytes: int, seconds: float
) -> list[tuple[float, float]]:
    """Return our figures beside those of the two plain loops: back to back, and the median from an agreed start."""
    probe = PlanProbe(
        id=0,
        layer=Layer.MPI,
        pattern=operation,
        message_bytes=message_bytes,
        receive=Receive.LIBRARY,
        ranks=tuple(range(RANKS)),
        warmup_samples=100,
        stopping=unsatisfied(seconds),
    )
    _, (cell,) = launch(launcher, link.fabric, [probe], RANKS)
    back_to_back, median = cell.end.values["back_to_back_ns"], statistics.median(cell.times)
    return [(back_to_back, back_to_back), (median, median)]


def plain_ns(
    link: Link, program: Path, launcher: LabLauncher, operation: Pattern, message_bytes: int, seconds: float
) -> list[float]:
    """Return the mean of calls back to back, and the median of calls with a barrier before each."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = [str(program), str(operation), str(message_bytes), str(seconds)]
        text = checked(list(launcher.command(link.fabric, tokens, Path(folder), RANKS).tokens), folder)
    found = dict(re.findall(r"^(\w+) ([0-9.]+)$", text, re.MULTILINE))
    return [float(found["back_to_back"]), float(found["apart"])]
