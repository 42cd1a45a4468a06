"""What a sample and a launch are worth: the one definition that exports, summaries, planning and every report share.

A sample's value is its time over its operations (ns), or its bytes over its time as a rate. A launch's value is the median of its
times, but all bytes over all time of a rate: windows of a stream arrive in bursts from a socket's buffer, at the speed of memory,
so that the median window can be many times what the wire carries. A time of 0 ns is shorter than the clock can tell: a rate
over it, and a median of it, is no value (null). Where a program told a figure of its own, a rate of work or a time, that is the
value, whatever its samples took.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from fabricbench.model import Metric
from fabricbench.record.launch import scan_samples
from fabricbench.record.lines import Phase

NO_VALUE = "every sample took 0 ns, less than the clock can tell: there is no value"
"""Why a cell that was measured has none."""


def _is_time(metric: pl.Expr) -> pl.Expr:
    return metric.cast(pl.String).is_in([metric.value for metric in Metric if metric.is_time])


def _is_work(metric: pl.Expr) -> pl.Expr:
    return metric.cast(pl.String) == Metric.WORK_RATE.value


def _scale(metric: pl.Expr, message_bytes: pl.Expr) -> pl.Expr:
    """Return what bytes over nanoseconds are multiplied by: to bit/s, or to messages of the cell's size a second."""
    of_messages = 1.0e9 / pl.max_horizontal(message_bytes, pl.lit(1))
    return pl.when(metric == Metric.MESSAGE_RATE.value).then(of_messages).otherwise(8.0e9)


IS_TIME = _is_time(pl.col("metric"))
"""Whether the cell of a row measures a time."""

IS_WORK = _is_work(pl.col("metric"))
"""Whether it measures a rate of work, of which each launch has one figure."""

VALUE_COLUMNS = ("metric", "message_bytes", "operations_per_sample", "figure_of_merit")
"""What of its cell a sample must have beside it, for the expressions here."""


def rate(moved_bytes: pl.Expr, time_ns: pl.Expr) -> pl.Expr:
    """Return so many bytes in so much time as a rate in the metric's unit; null where no time passed."""
    return pl.when(time_ns > 0).then(moved_bytes * _scale(pl.col("metric"), pl.col("message_bytes")) / time_ns)


def sample_value() -> pl.Expr:
    """Return a sample's value in its metric's unit, from the columns of a sample and its cell."""
    time = pl.col("time_ns") / pl.col("operations_per_sample")
    measured = pl.when(IS_TIME).then(time).otherwise(rate(pl.col("bytes"), pl.col("time_ns")))
    return pl.coalesce("figure_of_merit", measured)


def launch_value() -> pl.Expr:
    """Return the value of a group of samples: of all that a launch has of a cell, or of a part of them.

    For `group_by(cell).agg(...)`, beside the samples' `value` from `sample_value`.
    """
    median = pl.col("value").median()
    of_median = pl.when(median > 0).then(median)
    total = total_rate(pl.col("bytes").sum(), pl.col("time_ns").sum())
    metric = pl.col("metric").first()
    return pl.when(_is_time(metric) | _is_work(metric)).then(of_median).otherwise(total)


def total_rate(total_bytes: pl.Expr, total_ns: pl.Expr) -> pl.Expr:
    """Return the rate of a group from its sums; null where no time passed."""
    return pl.when(total_ns > 0).then(
        total_bytes * _scale(pl.col("metric").first(), pl.col("message_bytes").first()) / total_ns
    )


def counted_samples(directory: Path, cells: pl.DataFrame, phase: Phase = Phase.MEASURED) -> pl.LazyFrame:
    """Return the samples of a launch that count, each with its `value` and what of its cell tells it: those of `cells`, unread.

    Those that missed their start are left out. The order is that of the record.
    """
    of_cell = cells.lazy().select("cell", *VALUE_COLUMNS)
    return (
        scan_samples(directory)
        .filter(pl.col("phase") == phase.value, ~pl.col("missed"))
        .join(of_cell, on="cell", maintain_order="left")
        .select("cell", "time_ns", "bytes", "metric", "message_bytes", value=sample_value())
    )


def mean_rate(metric: Metric, message_bytes: int, total_bytes: int, total_ns: int) -> float | None:
    """Return all bytes over all time of several launches, as a rate in the metric's unit; None where no time passed."""
    row = pl.DataFrame({"metric": [metric.value], "message_bytes": [message_bytes]})
    found: float | None = row.select(rate(pl.lit(float(total_bytes)), pl.lit(float(total_ns)))).item()
    return found
