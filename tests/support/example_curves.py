"""Runs of one fabric whose curves over message size are known, with whatever is odd about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.chapters import anomalies
from fabricbench.model import Layer, Pattern, Receive
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed, write_synthetic_run

OF_CURVES = frozenset(anomalies.CHAPTER.figures)
"""The figures that findings without an anomaly hold nothing for."""

SIZES = [64 * 2**power for power in range(12)]
QUIET = Noise(launch=0.02, sample=0.02)


def findings_of(path: Path, odd: Callable[[Layer, int], float], *, blocks: int = 8) -> Findings:
    """A run of ping-pongs over TCP and MPI, and TCP streams, whose times are so many times as long as a line says."""
    cells = []
    for layer in (Layer.TCP, Layer.MPI):
        receive = Receive.LIBRARY if layer is Layer.MPI else Receive.BLOCKING
        for size in SIZES:
            time = (40e3 + 8.8 * size) * odd(layer, size)
            cells.append(
                SyntheticCell(layer, Pattern.PINGPONG, size, {"net": 2 * time}, receive=receive, samples=40, warmup=2)
            )
    cells += [
        SyntheticCell(
            Layer.TCP, Pattern.STREAM, size, {"net": 0.9e9 * size / (size + 200)}, samples=10, messages_per_sample=16
        )
        for size in SIZES
    ]
    testbed = synthetic_testbed({"net": 1e9})
    return analyse([write_synthetic_run(path, cells=cells, blocks=blocks, noise=QUIET, testbed=testbed)])


def odd_findings(path: Path) -> Findings:
    """Findings of a run with slow sizes over TCP and a jump over MPI."""

    def odd(layer: Layer, size: int) -> float:
        if layer is Layer.TCP:
            return 1.2 if size in (8192, 16384) else 1.0
        return 1.5 if size > 32768 else 1.0

    return findings_of(path, odd)
