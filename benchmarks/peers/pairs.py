"""MPI between two ranks by OSU's definitions (plain_pairs.c) beside our measurement by the same: round trips and streams.

Both run on the MPI that our measurer was built with, started the same way, over a lab's link and through shared memory. Ours are
cells with `answer = "own"` and `round_trips` (osu_latency) and with `window = 64` (osu_bw), and their figures all time over all
round trips, and all bits over all time, as OSU prints them. Our own definitions (each round trip alone, an echo; messages without
a pause into buffers of their own) are the last columns: what the definition changes.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from benchmarks.launching import launch, unsatisfied
from benchmarks.peers.theirs import checked

from fabricbench.launch.launcher import Launcher
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.testbed.model import Fabric

LATENCY_BYTES = (8, 64 * 1024)
STREAM_BYTES = (8, 64 * 1024, 1024 * 1024)
WINDOW = 64
IN_A_ROW = 100
"""Round trips between two readings of the clock: enough to hide it, few enough for many samples."""


def ours_ns(fabric: Fabric, launcher: Launcher, message_bytes: int, seconds: float) -> tuple[float, float]:
    """Return a round trip by OSU's definition, and by ours."""
    common = {
        "layer": Layer.MPI,
        "pattern": Pattern.PINGPONG,
        "message_bytes": message_bytes,
        "receive": Receive.LIBRARY,
    }
    as_osu = PlanProbe(
        id=0,
        warmup_samples=10,
        stopping=unsatisfied(seconds),
        parameters={"answer": "own", "round_trips": IN_A_ROW},
        **common,
    )
    as_ours = PlanProbe(id=1, warmup_samples=100, stopping=unsatisfied(seconds, 10_000_000), **common)
    _, (osu, own) = launch(launcher, fabric, [as_osu, as_ours], 2)
    return sum(osu.times) / len(osu.times) / IN_A_ROW, sum(own.times) / len(own.times)


def ours_bit_s(fabric: Fabric, launcher: Launcher, message_bytes: int, seconds: float) -> tuple[float, float]:
    """Return the bandwidth by OSU's definition, and by ours."""
    common = {"layer": Layer.MPI, "pattern": Pattern.STREAM, "message_bytes": message_bytes, "receive": Receive.LIBRARY}
    stopping = unsatisfied(seconds)
    as_osu = PlanProbe(id=0, messages_per_sample=WINDOW, stopping=stopping, parameters={"window": WINDOW}, **common)
    as_ours = PlanProbe(id=1, messages_per_sample=WINDOW, stopping=stopping, **common)
    _, cells = launch(launcher, fabric, [as_osu, as_ours], 2)
    osu, own = (8e9 * cell.cell.bytes_per_sample * len(cell.times) / sum(cell.times) for cell in cells)
    return osu, own


def plain(fabric: Fabric, program: Path, launcher: Launcher, what: str, message_bytes: int, seconds: float) -> float:
    """Return the figure of plain_pairs.c: `latency` in ns of a round trip, `bandwidth` in bit/s."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = [str(program), what, str(message_bytes), str(seconds)]
        text = checked(list(launcher.command(fabric, tokens, Path(folder), 2).tokens), folder)
    found = re.search(r"^(?:round_trip|bit_s) ([0-9.]+)$", text, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"plain_pairs printed no figure:\n{text[-1000:]}")
    return float(found.group(1))
