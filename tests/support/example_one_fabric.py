"""A run of one fabric whose truth is known: ping-pongs and streams of four layers by size, over TCP paced ones and bursts."""

from __future__ import annotations

from pathlib import Path

from fabricbench.chapters import by_size
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.store import Run
from support.synthetic_run import SyntheticCell, synthetic_testbed, write_synthetic_run

OF_ONE = frozenset(by_size.CHAPTER.figures)
"""The figures that findings of several fabrics hold nothing for."""

SIZES = [64 * 4**power for power in range(8)]
PACED_SIZES = (64, 1024, 16384)
LAYERS = {Layer.FRAME: 20e3, Layer.UDP: 35e3, Layer.TCP: 44e3, Layer.MPI: 53e3}
"""What an empty message takes one way over each, in ns."""
LONGER_NS = 24e3
"""What a message on a line that was idle takes longer, each way; only over TCP is it measured."""
FURTHER_NS = 5e3
"""What each of a burst's 8 messages but the first adds."""


def run_of_one_fabric(path: Path, *, blocks: int = 8) -> Run:
    """Gigabit Ethernet, whose bits take a tenth longer than its line rate says and whose streams reach 92 % of it."""
    testbed = synthetic_testbed({"gigabit": 1e9})
    return write_synthetic_run(path, cells=_cells(), blocks=blocks, testbed=testbed)


def _cells() -> list[SyntheticCell]:
    cells = []
    for layer, base in LAYERS.items():
        receive = Receive.LIBRARY if layer is Layer.MPI else Receive.BLOCKING
        for size in (one for one in SIZES if layer is not Layer.FRAME or one <= 1500):
            trip, rate = 2 * (base + 1.1 * 8 * size), 0.92e9 * size / (size + 200)
            cells.append(SyntheticCell(layer, Pattern.PINGPONG, size, {"gigabit": trip}, receive=receive))
            of_stream = SyntheticCell(layer, Pattern.STREAM, size, {"gigabit": rate}, receive, 40, 10, 16)
            cells.append(of_stream)
            if layer is Layer.TCP and size in PACED_SIZES:
                paced, burst = {"gigabit": trip + 2 * LONGER_NS}, {"gigabit": trip + 7 * FURTHER_NS}
                cells.append(SyntheticCell(layer, Pattern.PACED, size, paced, parameters={"interval_us": 1000}))
                cells.append(SyntheticCell(layer, Pattern.BURST, size, burst, parameters={"messages": 8}))
    return cells
