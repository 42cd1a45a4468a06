"""What ten million samples cost: reading a record, the quantiles of every launch and cell, the comparison. See `--help`.

Writes a synthetic run once, then measures each step in a process of its own, so that peak memory is that step's alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import fabricbench
from fabricbench.record.integrity import SAMPLES
from fabricbench.record.reading import read_record
from fabricbench.record.store import Run
from support.synthetic_run import ladder_cells, write_synthetic_run

FABRICS = {"fast-ethernet": 100e6, "myrinet": 1280e6}
SIZES = tuple(2**power for power in range(2, 21, 2))
BATCH = 1000


def write_run(path: Path, samples: int, blocks: int) -> None:
    """Write a run of about that many samples over both fabrics, six layers and ten sizes."""
    trial = ladder_cells(FABRICS, sizes=SIZES, samples=1000)
    share = sum(cell.samples + cell.warmup for cell in trial) / 1000
    each = round(samples / blocks / len(FABRICS) / share)
    write_synthetic_run(path, cells=ladder_cells(FABRICS, sizes=SIZES, samples=each), blocks=blocks)


def write_record(path: Path, samples: int) -> None:
    """Write a raw record of one cell with that many samples, as the measurer writes it."""
    head = (Path(__file__).parents[1] / "schema/fixtures/record.jsonl").read_text().splitlines()
    with path.open("w") as file:
        file.write(f"{head[0]}\n{head[1]}\n")
        for first in range(0, samples, BATCH):
            times = [190_000 + (first + k) * 7919 % 9973 for k in range(BATCH)]
            line = {"type": "samples", "cell": 0, "phase": "measured", "first_index": first, "time_ns": times}
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
        seconds = samples * 200e-6
        end = {"type": "cell_end", "cell": 0, "stop": "count", "warmup": 0, "measured": samples, "seconds": seconds}
        footer = json.loads(head[-1]) | {"cells": 1, "failed": 0}
        file.write(f"{json.dumps(end)}\n{json.dumps(footer)}\n")


def quantiles(path: Path) -> int:
    return int(Run.open(path).launch_quantiles()["n"].sum())


def scan(path: Path) -> int:
    return Run.open(path).samples().collect().height


def convert(path: Path) -> int:
    return sum(len(batch.time_ns) for cell in read_record(path).cells for batch in cell.batches)


def compare(path: Path) -> int:
    return fabricbench.compare(path).samples


STEPS: dict[str, Callable[[Path], int]] = {"quantiles": quantiles, "scan": scan, "convert": convert, "compare": compare}


def measured(step: str, path: Path) -> dict[str, float]:
    """Run one step in a process of its own and return its samples, seconds and peak memory."""
    command = [sys.executable, __file__, "--step", step, "--at", str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--at", type=Path)
    options = parser.parse_args()
    if options.step:
        began = time.perf_counter()
        count = STEPS[options.step](options.at)
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"samples": count, "seconds": round(seconds, 2), "peak_MiB": round(peak)}))
        return
    with tempfile.TemporaryDirectory() as folder:
        run, record = Path(folder) / "run", Path(folder) / "records.jsonl"
        write_run(run, options.samples, options.blocks)
        write_record(record, options.samples)
        size = sum(path.stat().st_size for path in run.rglob(SAMPLES)) / 2**20
        print(f"run of {options.blocks * len(FABRICS)} launches, samples take {size:.0f} MiB on disk")
        for step, path in (("convert", record), ("scan", run), ("quantiles", run), ("compare", run)):
            cost = measured(step, path)
            print(f"{step:10} {cost['samples']:>12,} samples {cost['seconds']:>7.2f} s {cost['peak_MiB']:>7,.0f} MiB")


if __name__ == "__main__":
    main()
