"""How much of a run's time is measurement, and where the rest goes.

    python -m benchmarks.run_share RUNDIR...

Reads what runs have stored, measures nothing: when each launch began and ended (the journal), when each of its cells began and
ended, and how long its measured phase took (`cell_end`). Seconds and shares of the time from the first launch's start to the last
one's end; what comes before the first launch (the lab, the preflight) and after the last (the report) is not in the journal.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import polars as pl

from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.store import Run

MEASURED, WARM_UP, BETWEEN, START, END, LAUNCHES = (
    "measured samples",
    "warm-up and verification in cells",
    "between cells",
    "start of a launch, to its first cell",
    "end of a launch, from its last cell",
    "between launches",
)


def of_launch(cells: pl.DataFrame, begun: float, ended: float) -> dict[str, float]:
    """Return the seconds of a launch by what they went into, and how many gaps lie between its cells."""
    cells = cells.filter(pl.col("end_unix_ns").is_not_null()).sort("begin_unix_ns")
    begins, ends = (cells[name] * 1e-9 for name in ("begin_unix_ns", "end_unix_ns"))
    measured, within = float(cells["seconds"].sum()), float((ends - begins).sum())
    return {
        MEASURED: measured,
        WARM_UP: within - measured,
        BETWEEN: float(ends[-1] - begins[0]) - within,
        START: float(begins[0]) - begun,
        END: ended - float(ends[-1]),
        "gaps": float(len(cells) - 1),
    }


def of_run(path: Path) -> dict[str, float]:
    """Return the seconds of a run by what they went into, and how many gaps between cells there are."""
    begun: dict[str, float] = {}
    ended: dict[str, float] = {}
    for entry in Journal(path).entries():
        if entry.launch_id is not None and entry.event is JournalEvent.STARTED:
            begun[entry.launch_id] = entry.unix_ns * 1e-9
        elif entry.launch_id is not None and entry.event is JournalEvent.FINISHED:
            ended[entry.launch_id] = entry.unix_ns * 1e-9
    total: dict[str, float] = {}
    for (launch_id,), cells in Run.open(path).cells().group_by("launch_id"):
        for what, seconds in of_launch(cells, begun[str(launch_id)], ended[str(launch_id)]).items():
            total[what] = total.get(what, 0.0) + seconds
    order = sorted(ended, key=begun.__getitem__)
    total[LAUNCHES] = sum(begun[after] - ended[before] for before, after in pairwise(order))
    return total


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUNDIR")
    for path in parser.parse_args(arguments).runs:
        total = of_run(path)
        gaps = total.pop("gaps")
        whole = sum(total.values())
        print(f"{path}: {whole:.1f} s, {gaps:.0f} gaps between cells of {1e3 * total[BETWEEN] / max(gaps, 1):.1f} ms")
        for what, seconds in total.items():
            print(f"  {what:38} {seconds:7.2f} s {seconds / whole:6.1%}")


if __name__ == "__main__":
    main()
