"""What counting costs, and how much of what is counted is a test's messages: of any stored run.

    python benchmarks/counters.py RUNDIR

Prints a Markdown table of what the readings around a test took, by whose counters they are, over all tests and launches; and of
ping-pongs between ranks that sleep the share of the time between two readings that lies in the samples of the rank that keeps the
time: what is left are untimed messages, the rule for stopping, and the orders between batches. docs/costs.md has what came out.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.model import Pattern, Receive
from fabricbench.record.counters import Counter, CounterScope
from fabricbench.record.store import Run


def readings(run: Run) -> pl.DataFrame:
    """Return the median and the 90th percentile of what both readings around a test took, in us, for each scope."""
    return (
        run.counters()
        .filter(pl.col("counter") == Counter.READING_NS.value)
        .group_by("scope")
        .agg(
            pl.len().alias("tests"),
            (pl.col("count").median() / 1e3).alias("median"),
            (pl.col("count").quantile(0.9, "linear") / 1e3).alias("q90"),
        )
        .sort("scope")
        .collect()
    )


def shares(run: Run) -> NDArray[np.float64]:
    """Return of each ping-pong the share of the time between the readings of its first rank that its samples have."""
    cells = run.cells().filter(
        pl.col("pattern") == Pattern.PINGPONG.value,
        pl.col("receive") == Receive.BLOCKING.value,
        pl.col("status") == "done",
    )
    named = cells.lazy().select("launch_id", "cell", first=pl.col("ranks").list.first())
    sampled = run.samples().group_by("launch_id", "cell").agg(pl.col("time_ns").sum())
    elapsed = run.counters().filter(
        pl.col("scope") == CounterScope.RANK.value, pl.col("counter") == Counter.ELAPSED_NS.value
    )
    both = elapsed.join(named, on=["launch_id", "cell"]).filter(pl.col("rank") == pl.col("first"))
    share = both.join(sampled, on=["launch_id", "cell"]).select(pl.col("time_ns") / pl.col("count"))
    return share.collect().to_series().to_numpy()


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUNDIR")
    run = Run.open(parser.parse_args().run)
    print("| counters of a | tests | both readings, median | 90th percentile |\n| --- | --- | --- | --- |")
    for scope, tests, median, q90 in readings(run).iter_rows():
        print(f"| {scope} | {tests:,} | {median:.0f} µs | {q90:.0f} µs |")
    found = shares(run)
    if found.size:
        least, middle = np.min(found), np.median(found)
        print(
            f"\nIn samples: {middle:.1%} of the time between readings (median of {len(found)} ping-pongs), {least:.1%} at least."
        )


if __name__ == "__main__":
    main()
