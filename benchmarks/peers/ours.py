"""One run of our measurer over a lab's link: one cell, its median in the metric's unit."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from pathlib import Path

from benchmarks.peers.link import Link

from fabricbench.launch.lab import LabLauncher
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.lines import LINE_ADAPTER, Cell, CellFailed, Phase, Samples
from fabricbench.record.probe_plan import PlanFabric, PlanProbe, ProbePlan, Stopping

TIME_LIMIT_S = 60


def measure(
    link: Link, launcher: LabLauncher, layer: Layer, pattern: Pattern, message_bytes: int, seconds: float
) -> float:
    """Return the median round trip in ns, or the throughput of the whole stream in bit/s."""
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
        command = launcher.command(fabric, path, 2)
        done = subprocess.run(
            command.tokens, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
        if done.returncode:
            raise RuntimeError(f"the measurer ended with {done.returncode}: {done.stderr[-1000:]}")
        return _figure((Path(folder) / "records.jsonl").read_text())


def _figure(records: str) -> float:
    lines = [LINE_ADAPTER.validate_json(line) for line in records.splitlines()]
    failed = [line.reason for line in lines if isinstance(line, CellFailed)]
    if failed:
        raise RuntimeError(failed[0])
    cell = next(line for line in lines if isinstance(line, Cell))
    times = [
        time for line in lines if isinstance(line, Samples) and line.phase is Phase.MEASURED for time in line.time_ns
    ]
    if cell.pattern is Pattern.PINGPONG:
        return statistics.median(times)
    return cell.bytes_per_sample * len(times) * 8e9 / sum(times)
