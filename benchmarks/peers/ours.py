"""One launch of our measurer in a lab, and its samples put through the statistic that the peer prints."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from benchmarks.launching import launch, unsatisfied
from benchmarks.peers.link import Link

from fabricbench.launch.lab import LabLauncher
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.lines import Cell
from fabricbench.record.probe_plan import PlanProbe

NETPIPE_TRIALS = 7
"""NetPIPE repeats a size this often and prints the best trial's mean (TRIALS in its netpipe.h)."""


def median_ns(times: Sequence[int]) -> float:
    """Return what sockperf prints as its 50th percentile."""
    return statistics.median(times)


def best_trial_ns(times: Sequence[int]) -> float:
    """Return what NetPIPE prints: the smallest mean of its trials, here equal parts of our samples in their order."""
    size = len(times) // NETPIPE_TRIALS
    return min(statistics.fmean(times[trial * size : (trial + 1) * size]) for trial in range(NETPIPE_TRIALS))


def measure(
    link: Link, launcher: LabLauncher, layer: Layer, pattern: Pattern, message_bytes: int, seconds: float
) -> tuple[Cell, tuple[int, ...]]:
    """Return a cell of two ranks and its measured samples in ns."""
    probe = PlanProbe(
        id=0,
        layer=layer,
        pattern=pattern,
        message_bytes=message_bytes,
        receive=Receive.LIBRARY if layer is Layer.MPI else Receive.BLOCKING,
        warmup_samples=100,
        stopping=unsatisfied(seconds, 10_000_000),
    )
    measured = launch(launcher, link.fabric, [probe], 2)[1][0]
    return measured.cell, measured.times


def ping_pong(
    link: Link,
    launcher: LabLauncher,
    layer: Layer,
    message_bytes: int,
    seconds: float,
    statistic: Callable[[Sequence[int]], float],
) -> tuple[float, float]:
    """Return the round trip in ns by the peer's statistic, and our median of the same samples."""
    _, times = measure(link, launcher, layer, Pattern.PINGPONG, message_bytes, seconds)
    return statistic(times), median_ns(times)


def stream(link: Link, launcher: LabLauncher, message_bytes: int, seconds: float) -> tuple[float, float]:
    """Return all bits over all time, as iperf3's receiver counts, twice: it is our figure too."""
    cell, times = measure(link, launcher, Layer.TCP, Pattern.STREAM, message_bytes, seconds)
    rate = cell.bytes_per_sample * len(times) * 8e9 / sum(times)
    return rate, rate
