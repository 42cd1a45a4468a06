"""What launches of workloads were expected to take, and what they took, in a run that was measured.

    fabricbench run applications --testbed lab:fast-ethernet,gigabit-ethernet --blocks 2 -o RUNDIR
    python -m benchmarks.workload_estimates RUNDIR [--write docs/workloads.md]

A line for each workload, in seconds: on each fabric the estimate of the plan, the median over blocks of what the journal says, and
their ratio. The last line has all launches of the run together.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from benchmarks.page import show

from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.errors import FabricbenchError
from fabricbench.record.journal import Journal, JournalEvent


def table(path: Path) -> list[str]:
    """Return the lines of the table of a run directory; raises FabricbenchError where it is none."""
    plan = RunDirectory(path).read_plan().plan
    launches = {launch.launch_id: launch for launch in plan.launches if launch.workload is not None}
    took: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    expected: dict[tuple[str, str], float] = {}
    for entry in Journal(path).entries():
        launch = launches.get(entry.launch_id or "")
        seconds = entry.facts.get("seconds")
        if launch is not None and entry.event is JournalEvent.FINISHED and isinstance(seconds, float):
            took[launch.arm].append(seconds)
            expected[launch.arm] = launch.estimated_seconds
    fabrics = [fabric.name for fabric in plan.fabrics]
    lines = [
        f"| seconds | {' | '.join(f'{name}: expected | took | ratio' for name in fabrics)} |",
        f"| --- |{' ---: | ---: | ---: |' * len(fabrics)}",
    ]
    for name in sorted({name for _, name in took}):
        cells = []
        for half in ((fabric, name) for fabric in fabrics):
            if half in took:
                one = statistics.median(took[half])
                cells += [f"{expected[half]:.1f}", f"{one:.1f}", f"{one / expected[half]:.2f}"]
            else:
                cells += ["", "", ""]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    total = sum(sum(each) for each in took.values())
    planned = sum(expected[half] * len(each) for half, each in took.items())
    return [
        *lines,
        "",
        f"All launches: {total:.0f} s where {planned:.0f} s were expected, {total / planned:.2f} of it.",
    ]


def main() -> None:
    """Print the table, write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run directory with workloads")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    try:
        lines = table(given.run)
    except FabricbenchError as error:
        sys.exit(f"workload_estimates: {error}")
    show([f"{os.cpu_count()} processors; medians over blocks.", "", *lines], "workload-estimates", given.write)


if __name__ == "__main__":
    main()
