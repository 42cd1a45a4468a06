"""Whether LogGOPS parameters are what a lab was told: `python -m benchmarks.loggops [--output RUNDIR | --read RUNDIR]`.

Two fabrics of one lab are alike but for their delay. The rate is that of 1/G, set against what TCP may carry at the rate that was
told; the delay is the difference of both fabrics' L + 2o, for hosts are in both (a busy host takes longer to wake from a longer
sleep: the fastest round trips beside it have none of that). Curves of ping-pong and exchange say how far sizes
are off that were left out and predicted. Prints the table of docs/explain.md, with the load of the machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.findings.loggops import CurveFit, FitOf, LogGops
from fabricbench.analysis.sides import read_sides
from fabricbench.chapters.chapter import rows_of
from fabricbench.chapters.loggops import FITS, NAME
from fabricbench.model import Layer, Pattern
from fabricbench.record.store import Run

LAB = "curves-loggops"
RATE_BIT_S = 200e6
NEAR_NS, FAR_NS = 100e3, 2_100e3
"""Of a link; a path has two."""
LARGEST = 131072
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


def fabricbench(*arguments: str) -> None:
    command = [str(Path(sys.executable).parent / "fabricbench"), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr, timeout=3600)


def measure(output: Path, blocks: int) -> None:
    fabrics = [
        f"{name}=myrinet:rate={RATE_BIT_S / 1e6:g}Mbit/s,delay={delay / 1e3:g}us"
        for name, delay in (("near", NEAR_NS), ("far", FAR_NS))
    ]
    with tempfile.TemporaryDirectory() as folder:
        campaign = Path(folder) / "loggops.toml"
        campaign.write_text(CAMPAIGN.format(blocks=blocks))
        fabricbench("lab", "up", LAB, "--nodes", "2", "--fabric", fabrics[0], "--fabric", fabrics[1])
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
    fastest = fastest_ns(run, "far") - fastest_ns(run, "near")
    print(
        f"| the same by the fastest round trips | {wanted / 1e3:.0f} µs | {fastest / 1e3:.0f} µs | {fastest / wanted - 1:+.1%} |"
    )
    for fit in rows_of(findings, FITS, CurveFit):
        if fit.of is not FitOf.STREAMED and fit.typical_misfit is not None and fit.worst_misfit is not None:
            what = f"{fit.key.pattern} of {fit.fabric}, {fit.left_out} sizes left out"
            print(f"| {what} | | | {fit.typical_misfit:.1%} in the median, {fit.worst_misfit:.1%} at worst |")


def fastest_ns(run: Run, fabric: str) -> float:
    """Return half of the fastest round trip of the smallest message."""
    (side,) = (side for side in read_sides([run]) if side.name == fabric)
    smallest = min(
        (cell for key, cell in side.cells.items() if key.pattern is Pattern.PINGPONG),
        key=lambda cell: cell.key.message_bytes,
    )
    return float(smallest.pooled[0]) / 2.0


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
        if options.read is None:
            measure(output, options.blocks)
        run = Run.open(output)
        show(run, analyse([run]))
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
