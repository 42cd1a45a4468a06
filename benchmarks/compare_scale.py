"""What it costs to read, summarise and compare ten million samples: seconds and peak memory of `analyse`.

Writes a synthetic run once (not timed), then analyses it in a process of its own. Promised: under 10 s and 2 GB.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from store_scale import write_run

SECONDS, GIB = 10.0, 2.0


def analysed(path: Path) -> dict[str, float]:
    """Analyse the run and return what it cost."""
    began = time.perf_counter()
    from fabricbench.analysis import analyse  # noqa: PLC0415 - loading counts
    from fabricbench.record.store import Run  # noqa: PLC0415

    findings = analyse([Run.open(path)])
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"samples": findings.samples, "comparisons": len(findings.cells), "seconds": seconds, "peak_GiB": peak}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--analyse", type=Path, help="analyse this run and print its cost (used by the benchmark itself)"
    )
    options = parser.parse_args()
    if options.analyse:
        print(json.dumps(analysed(options.analyse)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        write_run(run, options.samples, options.blocks)
        costs = []
        for _ in range(options.repeat):
            command = [sys.executable, __file__, "--analyse", str(run)]
            costs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            print(
                "{samples:,} samples, {comparisons} comparisons: {seconds:.2f} s, {peak_GiB:.2f} GiB".format(
                    **costs[-1]
                )
            )
    seconds = sorted(cost["seconds"] for cost in costs)[len(costs) // 2]
    peak = max(cost["peak_GiB"] for cost in costs)
    holds = seconds < SECONDS and peak < GIB
    print(
        f"median {seconds:.2f} s (promised {SECONDS:g}), peak {peak:.2f} GiB (promised {GIB:g}): {'holds' if holds else 'BROKEN'}"
    )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
