"""Does a clock that drifts leave an operation its time? An allreduce again and again for a minute, by clocks that run apart.

    python -m benchmarks.clock_drift [--seconds 60] [--write docs/collectives.md]

Two ranks on this machine, the second with a CLOCK_MONOTONIC of its own by a preload (`tests/native/skew.c`): as it is, 20 ppm too
fast, and 20 ppm too fast from the middle on. A row has the cells that were measured, those that were refused for their clocks and
for late starts, and of the measured ones the agreed start over the time back to back, beside that of the undisturbed clock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.page import show

from fabricbench.native import native_file
from fabricbench.record.reading import Record, read_record
from support.measurer import command_of, plan_of

PPM = 20
CALL: dict[str, Any] = {
    "layer": "mpi",
    "pattern": "allreduce",
    "message_bytes": 8,
    "receive": "library",
    "ranks": [0, 1],
}
CALL |= {"stopping": {"maximum_samples": 500, "maximum_seconds": 0.5}}
MEASURED_SECONDS = 1.0
"""What such a cell takes, with its loops and the synchronisations around it."""
WAIT_SECONDS = 2.0
CLOCK_REASON = "the clocks of the ranks shifted by"
LATE_REASON = "did all ranks begin within"


def measured(folder: Path, seconds: float, planted: dict[str, str]) -> Record:
    """Measure for so long with a planted clock, and return the record."""
    library = folder / "skew.so"
    source = Path(__file__).parents[1] / "tests/native/skew.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    wait = {"layer": "tcp", "pattern": "paced", "message_bytes": 64, "parameters": {"interval_us": 10_000}}
    samples = int(WAIT_SECONDS / 0.01)
    wait |= {"stopping": {"minimum_samples": samples, "maximum_samples": samples, "maximum_seconds": 2 * WAIT_SECONDS}}
    rounds = max(3, round(seconds / (MEASURED_SECONDS + WAIT_SECONDS)))
    plan, records = folder / "plan.json", folder / "records.jsonl"
    records.unlink(missing_ok=True)
    plan.write_text(json.dumps(plan_of([CALL, wait] * rounds, records)))
    environment = {
        **os.environ,
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "lo",
        "MPIR_CVAR_NOLOCAL": "1",
        "LD_PRELOAD": f"{library}:{native_file('libfabricbench-yield.so')}",
        **planted,
    }
    subprocess.run(command_of(plan, 2), env=environment, check=True, timeout=60 + 5 * seconds)
    return read_record(records)


def row(name: str, record: Record, usual: float | None) -> tuple[list[str], float]:
    """Return a row of the table, and the median of agreed start over back to back."""
    cells = [cell for cell in record.cells if cell.id % 2 == 0]
    refused = [cell for cell in cells if cell.failed is not None and CLOCK_REASON in cell.failed.reason]
    late = [cell for cell in cells if cell.failed is not None and LATE_REASON in cell.failed.reason]
    ratios = []
    for cell in cells:
        if cell.end is None:
            continue
        times = [
            time
            for batch in cell.batches
            if batch.phase == "measured"
            for at, time in enumerate(batch.time_ns)
            if at not in batch.missed
        ]
        ratios.append(float(median(times)) / cell.end.values["back_to_back_ns"])
    shifts = [
        (cell.end.values if cell.end is not None else cell.failed.values if cell.failed is not None else {}).get(
            "clock_shift_ns", 0.0
        )
        for cell in cells
    ]
    here = median(ratios) if ratios else float("nan")
    beside = "" if usual is None else f"{here / usual:.3f}"
    others = len(cells) - len(ratios) - len(refused) - len(late)
    counts = [f"{len(ratios)}", f"{len(refused)}", f"{len(late)}", f"{others}"]
    return [name, *counts, f"{here:.3f}", beside, f"{max(shifts) / 1e3:.1f}"], here


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    planted = {
        "as it is": {"SKEW_PPM": "1e-9"},
        f"{PPM} ppm too fast": {"SKEW_PPM": str(PPM)},
        f"{PPM} ppm too fast from the middle on": {
            "SKEW_PPM": str(PPM),
            "SKEW_AFTER_S": str(arguments.seconds / 2),
        },
    }
    lines = [
        (
            "| the second clock | measured | refused: clocks | failed: late starts | failed otherwise "
            "| agreed start / back to back | beside the undisturbed | greatest shift, µs |"
        ),
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    usual = None
    with tempfile.TemporaryDirectory() as folder:
        for name, variables in planted.items():
            cells, ratio = row(name, measured(Path(folder), arguments.seconds, variables), usual)
            usual = usual or ratio
            lines.append(f"| {' | '.join(cells)} |")
    show(lines, "drift", arguments.write)


if __name__ == "__main__":
    main()
