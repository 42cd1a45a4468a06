"""One run of our measurer over a lab's link: one cell, and its samples put through the statistic that the peer prints."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.peers.link import Link

from fabricbench.launch.lab import LabLauncher
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.native import native_file
from fabricbench.record.lines import LINE_ADAPTER, Cell, CellFailed, Phase, Samples
from fabricbench.record.probe_plan import PlanFabric, PlanProbe, ProbePlan, Stopping

TIME_LIMIT_S = 60


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
) -> tuple[Cell, list[int]]:
    """Return the cell and its measured samples in ns."""
    fabric = link.fabric
    probe = PlanProbe(
        id=0,
        layer=layer,
        pattern=pattern,
        message_bytes=message_bytes,
        receive=Receive.LIBRARY if layer is Layer.MPI else Receive.BLOCKING,
        warmup_samples=100,
        # Never narrow enough: the whole time is used, as the peers do.
        stopping=Stopping(maximum_seconds=seconds, relative_width=1e-9, maximum_samples=10_000_000),
    )
    with tempfile.TemporaryDirectory() as folder:
        plan = ProbePlan(
            launch_id="peers",
            token=0x5EED,
            fabric=PlanFabric(name=fabric.name, interface=fabric.interface, subnet=fabric.subnet, mtu=fabric.mtu),
            output="records.jsonl",
            probes=(probe,),
        )
        path = Path(folder) / "plan.json"
        path.write_text(plan.model_dump_json(by_alias=True))
        command = launcher.command(fabric, [str(native_file("fabricbench-probe")), str(path)], Path(folder), 2)
        done = subprocess.run(
            command.tokens, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
        if done.returncode:
            raise RuntimeError(f"the measurer ended with {done.returncode}: {done.stderr[-1000:]}")
        return _samples((Path(folder) / "records.jsonl").read_text())


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


def _samples(records: str) -> tuple[Cell, list[int]]:
    lines = [LINE_ADAPTER.validate_json(line) for line in records.splitlines()]
    failed = [line.reason for line in lines if isinstance(line, CellFailed)]
    if failed:
        raise RuntimeError(failed[0])
    cell = next(line for line in lines if isinstance(line, Cell))
    measured = [line for line in lines if isinstance(line, Samples) and line.phase is Phase.MEASURED]
    return cell, [time for line in measured for time in line.time_ns]
