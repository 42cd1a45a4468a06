"""Whether LogGOPS parameters are what a lab was told: `python -m benchmarks.loggops [--output RUNDIR | --read RUNDIR]`.

Two fabrics of one lab are alike but for their delay. The rate is that of 1/G, set against what TCP may carry at the rate that
was told; the delay is the difference of both fabrics' L + 2o, for hosts are in both (a busy host takes longer to wake from a
longer sleep). What else a launch may be told by (its lower quartile, tenth, fastest round trip) stands beside. Curves of
ping-pong and exchange say how far sizes are off that were left out and predicted. A broadcast of four ranks over MPI is predicted
from its ping-pongs alone, T(s) half a round trip: MPICH's binomial tree of four has rank 0 send to 2 and then to 1, and 2 to 3.
Messages of up to 128 B are sent and forgotten, so that the last rank has its message after 2 T(s); larger ones are acknowledged
over libfabric's tcp before the next is sent, so that rank 0 is done after 2 (T(s) + T(0)). Prints the tables of
docs/explain.md, with the load.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from fabricbench.analysis import analyse
from fabricbench.analysis.cell_parts import Keys
from fabricbench.analysis.curves import measured_curves
from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.findings.loggops import CurveFit, FitOf, LogGops
from fabricbench.analysis.measured import Side
from fabricbench.analysis.sides import read_sides
from fabricbench.chapters.chapter import rows_of
from fabricbench.chapters.loggops import FITS, NAME
from fabricbench.model import Layer, Pattern
from fabricbench.record.launch import scan_samples
from fabricbench.record.store import Run
from fabricbench.statistics.segments import predicted

LAB = "curves-loggops"
RATE_BIT_S = 200e6
NEAR_NS, FAR_NS = 100e3, 2_100e3
"""Of a link; a path has two."""
BROADCAST_NS = 600e3
"""Of a link that broadcasts cross: well above what four ranks wait for the processor that they share."""
LARGEST = 131072
INCOMPLETE = 4
"""The exit code of a run that lost a result, and kept the others."""
UNACKNOWLEDGED = 128
"""The largest message that libfabric's tcp sends and forgets."""
QUANTILES = {"the medians": 0.5, "the lower quartiles": 0.25, "the tenths": 0.1, "the fastest": 0.0}
CAMPAIGN = """
[campaign]
name = "loggops"
blocks = {blocks}

[[experiment]]
layers = ["tcp"]
pattern = "pingpong"
message_bytes = [64, 256, 512, 1024, 1448, 2048, 2896, 4096, 8192, 16384, 32768, 65536, 131072]
maximum_seconds = 0.3

[[experiment]]
layers = ["tcp"]
pattern = "exchange"
message_bytes = [64, 256, 512, 1024, 1448, 2048, 2896, 4096, 8192, 16384, 32768, 65536, 131072]
maximum_seconds = 0.3

[[experiment]]
layers = ["tcp"]
pattern = "stream"
message_bytes = [64, 1024, 4096, 16384, 65536, 131072]
maximum_seconds = 0.4
"""
BROADCASTS = """
[campaign]
name = "broadcasts"
blocks = {blocks}

[[experiment]]
layers = ["mpi"]
pattern = "pingpong"
message_bytes = [64, 512, 2048, 4096, 8192, 16384, 32768, 65536]
maximum_seconds = 0.3

[[experiment]]
layers = ["mpi"]
pattern = "bcast"
ranks = 4
message_bytes = [128, 1024, 6144, 24576, 49152]
maximum_seconds = 0.3
"""


def fabricbench(*arguments: str) -> None:
    command = [str(Path(sys.executable).parent / "fabricbench"), *arguments]
    code = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=sys.stderr, timeout=3600).returncode
    if code not in (0, INCOMPLETE):  # broadcasts of a busy machine lack a start in common here and there
        raise SystemExit(code)


def measure(output: Path, text: str, nodes: int, **delays_ns: float) -> None:
    """Run a campaign over fabrics that differ in the delay of their links alone."""
    asked = [
        f"{name}=myrinet:rate={RATE_BIT_S / 1e6:g}Mbit/s,delay={delay / 1e3:g}us" for name, delay in delays_ns.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        campaign = Path(folder) / "loggops.toml"
        campaign.write_text(text)
        fabricbench("lab", "up", LAB, "--nodes", str(nodes), *(part for one in asked for part in ("--fabric", one)))
        try:
            fabricbench("run", str(campaign), "--testbed", f"lab:{LAB}", "-o", str(output))
        finally:
            fabricbench("lab", "down", LAB)


def show(run: Run, findings: Findings) -> None:
    wire = run.manifest.testbed.fabric("near").wire
    assert wire is not None
    told = wire.payload_rate_bit_s(Layer.TCP, LARGEST, run.manifest.testbed.fabric("near").mtu)
    assert told is not None
    found = {one.fabric: one for one in rows_of(findings, NAME, LogGops)}
    print("| what | told | found | off |")
    print("| --- | --: | --: | --: |")
    for name, one in found.items():
        assert one.per_byte is not None
        rate = 8e9 / one.per_byte.value
        print(f"| rate of {name}, 1/G | {told / 1e6:.1f} Mbit/s | {rate / 1e6:.1f} Mbit/s | {rate / told - 1:+.1%} |")
    delay, wanted = difference(found["far"], found["near"]), 2.0 * (FAR_NS - NEAR_NS)
    print(
        f"| delay, far less near | {wanted / 1e3:.0f} µs | {delay.value / 1e3:.0f} µs "
        f"({(delay.low or 0) / 1e3:.0f} to {(delay.high or 0) / 1e3:.0f}) | {delay.value / wanted - 1:+.1%} |"
    )
    lower = [found[name].latency_lower for name in ("far", "near")]
    if lower[0] is not None and lower[1] is not None:
        quiet = lower[0].value - lower[1].value
        print(
            f"| the same by lower quartiles | {wanted / 1e3:.0f} µs | {quiet / 1e3:.0f} µs | {quiet / wanted - 1:+.1%} |"
        )
    sides = {side.name: side for side in read_sides([run])}
    for words, quantile in QUANTILES.items():
        far, near = (one_way_ns(run, sides[name], quantile) for name in ("far", "near"))
        shown = far - near
        both = f"{wanted / 1e3:.0f} µs | {shown / 1e3:.0f} µs | {shown / wanted - 1:+.1%}"
        print(f"| the same of 64 B by {words} of launches | {both} |")
    for fit in rows_of(findings, FITS, CurveFit):
        if fit.of is not FitOf.STREAMED and fit.typical_misfit is not None and fit.worst_misfit is not None:
            what = f"{fit.key.pattern} of {fit.fabric}, {fit.left_out} sizes left out"
            print(f"| {what} | | | {fit.typical_misfit:.1%} in the median, {fit.worst_misfit:.1%} at worst |")


def one_way_ns(run: Run, side: Side, quantile: float) -> float:
    """Return half of a round trip of the smallest message over tcp: a quantile of each launch, of these the median."""
    key = min(
        (key for key in side.cells if (key.layer, key.pattern) == (Layer.TCP, Pattern.PINGPONG)),
        key=lambda key: key.message_bytes,
    )
    numbers = {
        (str(row["launch_id"]), int(row["cell"]))
        for row in run.cells().iter_rows(named=True)
        if row["fabric"] == side.fabric.name and row["status"] == "done" and Keys(run).of(row) == key
    }
    found = []
    for launch in side.launches:
        samples = scan_samples(launch.directory).collect()
        for launch_id, cell in numbers:
            if launch_id == launch.launch_id:
                times = samples.filter(pl.col("cell") == cell, pl.col("phase").cast(pl.String) == "measured")["time_ns"]
                found.append(float(np.quantile(times.to_numpy(), quantile)) / 2.0)
    return float(np.median(found))


def show_broadcasts(run: Run) -> None:
    """Print how far a broadcast of four ranks is from its messages one after the other, of sizes that no ping-pong had."""
    print("\n| broadcast of 4 ranks over mpi | predicted | measured, medians | off | lower quartiles | off |")
    print("| --: | --: | --: | --: | --: | --: |")
    for side in read_sides([run]):
        (curve,) = (one for one in measured_curves(side, {Pattern.PINGPONG}) if one.key.layer is Layer.MPI)
        for key, cell in side.cells.items():
            if key.pattern is Pattern.BCAST and cell.lower is not None:
                wanted = np.array([float(key.message_bytes), curve.sizes[0]])
                message, empty = np.exp(predicted(curve.sizes, curve.log_lower - np.log(2.0), wanted))
                told = 2.0 * float(message + (empty if key.message_bytes > UNACKNOWLEDGED else 0.0))
                found = [float(np.nanmedian(values)) for values in (cell.launch_values, cell.lower)]
                shown = " | ".join(f"{one / 1e3:.0f} µs | {told / one - 1:+.1%}" for one in found)
                print(f"| {key.message_bytes} B | {told / 1e3:.0f} µs | {shown} |")


def difference(far: LogGops, near: LogGops) -> Interval:
    """Return the difference of both L + 2o; its ends are as wide as both intervals together."""
    a, b = near.latency_and_overheads, far.latency_and_overheads
    ends = [None if x is None or y is None else x - y for x, y in ((b.low, a.high), (b.high, a.low))]
    return Interval(value=b.value - a.value, low=ends[0], high=ends[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="where the run is kept")
    parser.add_argument("--read", type=Path, help="a run of this benchmark, to be shown again")
    parser.add_argument("--blocks", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output = options.read or options.output or Path(folder) / "run"
        broadcasts = output.with_name(f"{output.name}-broadcasts")
        if not options.read and not output.exists():
            measure(output, CAMPAIGN.format(blocks=options.blocks), 2, near=NEAR_NS, far=FAR_NS)
        if not options.read and not broadcasts.exists():
            measure(broadcasts, BROADCASTS.format(blocks=options.blocks), 4, near=BROADCAST_NS)
        run = Run.open(output)
        show(run, analyse([run]))
        show_broadcasts(Run.open(broadcasts))
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
