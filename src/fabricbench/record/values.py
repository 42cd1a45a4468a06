"""What a sample and a launch are worth: the one definition that exports, summaries, planning and every report share.

A sample's value is its time over its operations (ns), or its bytes over its time as a rate. A launch's value is the median of its
times, but all bytes over all time of a rate: windows of a stream arrive in bursts from a socket's buffer, at the speed of memory,
so that the median window can be many times what the wire carries. A time of 0 ns is shorter than the clock can tell: a rate
over it, and a median of it, is no value (null). Where a program told a figure of its own, a rate of work or a time, that is the
value, whatever its samples took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from fabricbench.model import Metric
from fabricbench.record.launch import scan_channels, scan_samples
from fabricbench.record.lines import Phase

NO_VALUE = "every sample took 0 ns, less than the clock can tell: there is no value"
"""Why a cell that was measured has none."""

NS_OF_SECOND = 1.0e9


def _is_time(metric: pl.Expr) -> pl.Expr:
    return metric.cast(pl.String).is_in([metric.value for metric in Metric if metric.is_time])


def _is_work(metric: pl.Expr) -> pl.Expr:
    return metric.cast(pl.String) == Metric.WORK_RATE.value


def _scale(metric: pl.Expr, message_bytes: pl.Expr) -> pl.Expr:
    """Return what bytes over nanoseconds are multiplied by: to bit/s, or to messages of the cell's size a second."""
    of_messages = NS_OF_SECOND / pl.max_horizontal(message_bytes, pl.lit(1))
    return pl.when(metric == Metric.MESSAGE_RATE.value).then(of_messages).otherwise(8 * NS_OF_SECOND)


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


SUMS = (
    pl.col("value").median().alias("median"),
    pl.col("bytes").sum().alias("total_bytes"),
    pl.col("time_ns").sum().alias("total_time_ns"),
)
"""What a launch's value is made of: for `group_by(...).agg(...)` of the samples that `counted_samples` returns."""


def launch_value() -> pl.Expr:
    """Return the value of all that a launch has of a cell, or of a part of it, from SUMS and the columns of its cell."""
    of_median = pl.when(pl.col("median") > 0).then("median")
    return pl.when(IS_TIME | IS_WORK).then(of_median).otherwise(rate(pl.col("total_bytes"), pl.col("total_time_ns")))


def total_rate(total_bytes: pl.Expr, total_ns: pl.Expr) -> pl.Expr:
    """Return the rate of a group from its sums; null where no time passed."""
    return pl.when(total_ns > 0).then(
        total_bytes * _scale(pl.col("metric").first(), pl.col("message_bytes").first()) / total_ns
    )


def counted_samples(directory: Path, cells: pl.DataFrame, phase: Phase = Phase.MEASURED) -> pl.LazyFrame:
    """Return the samples of a launch that count, with the `value` of each: those of `cells`, unread.

    Those that missed their start are left out. The order is that of the record.
    """
    of_cell = cells.lazy().select("cell", *VALUE_COLUMNS)
    return (
        scan_samples(directory)
        .filter(pl.col("phase") == phase.value, ~pl.col("missed"), pl.col("cell").is_in(cells["cell"].to_list()))
        .join(of_cell, on="cell", maintain_order="left")
        .select("cell", "time_ns", "bytes", value=sample_value())
    )


MOST_AT_ONCE = 2_000_000
"""Samples in memory at a time, unless one cell has more: twenty cells as large as cells are by default."""


def counted_batches(
    directory: Path, rows: int, cells: pl.DataFrame, phase: Phase = Phase.MEASURED
) -> Iterator[pl.DataFrame]:
    """Yield what `counted_samples` returns, some cells at a time, each whole: a launch may have more than memory holds at once.

    `rows` is how many samples the launch has. A cell of more than MOST_AT_ONCE comes alone.
    """
    if rows <= MOST_AT_ONCE:
        yield counted_samples(directory, cells, phase).collect()
        return
    sizes = counted_samples(directory, cells, phase).group_by("cell").len().collect(engine="streaming")
    portion = ((pl.col("len").cum_sum() - pl.col("len")) // MOST_AT_ONCE).alias("portion")
    portions = sizes.sort("len", "cell", descending=True).group_by(portion, maintain_order=True).agg("cell")["cell"]
    for numbers in portions.to_list() or [[]]:
        yield counted_samples(directory, cells.filter(pl.col("cell").is_in(numbers)), phase).collect()


AT_ONCE = 100
"""Launches whose samples are read together: each holds a file open."""


def counted_launches(launches: Sequence[tuple[Path, int, pl.DataFrame]]) -> Iterator[pl.DataFrame]:
    """Yield what `counted_batches` yields of each launch, of small ones some together, with the launch's number as `launch`.

    A launch is its directory, how many samples it has, and its cells that count.
    """
    portion: list[int] = []
    for number, (directory, rows, cells) in enumerate(launches):
        if rows > MOST_AT_ONCE:
            for batch in counted_batches(directory, rows, cells):
                yield batch.select(pl.lit(number, dtype=pl.UInt32).alias("launch"), pl.all())
            continue
        if len(portion) == AT_ONCE or sum(launches[one][1] for one in portion) + rows > MOST_AT_ONCE:
            yield _together(launches, portion)
            portion = []
        portion.append(number)
    if portion:
        yield _together(launches, portion)


def _together(launches: Sequence[tuple[Path, int, pl.DataFrame]], numbers: Sequence[int]) -> pl.DataFrame:
    # Read side by side, then joined: one lazy join of so many files takes four times as long to plan as these take in all.
    scans = [scan_samples(launches[number][0]) for number in numbers]
    columns = ("cell", "time_ns", "bytes", "phase", "missed")
    samples = _numbered(pl.collect_all([scan.select(columns) for scan in scans]), numbers)
    cells = _numbered([launches[number][2].select("cell", *VALUE_COLUMNS) for number in numbers], numbers)
    return (
        samples.filter(pl.col("phase") == Phase.MEASURED.value, ~pl.col("missed"))
        .join(cells, on=["launch", "cell"], maintain_order="left")
        .select("launch", "cell", "time_ns", "bytes", value=sample_value())
    )


def _numbered(frames: Sequence[pl.DataFrame], numbers: Sequence[int]) -> pl.DataFrame:
    """Return the rows of all frames, each with the number of its launch."""
    launch = np.repeat(np.asarray(numbers, dtype=np.uint32), [frame.height for frame in frames])
    return pl.concat(frames).with_columns(pl.Series("launch", launch))


def channel_batches(directory: Path, cells: Sequence[int]) -> Iterator[pl.LazyFrame]:
    """Yield the channels of a launch's cells, some at a time and each of them whole, unread: it may have more than memory holds."""
    scan = scan_channels(directory).filter(pl.col("cell").is_in(cells))
    portions = -(-int(scan.select(pl.len()).collect(engine="streaming").item()) // MOST_AT_ONCE)
    place = pl.sum_horizontal(pl.col("cell", "source", "destination").cast(pl.UInt64))
    for portion in range(portions):
        yield scan.filter(place % portions == portion) if portions > 1 else scan


def of_each_cell(samples: pl.DataFrame, found: Sequence[pl.Expr]) -> pl.DataFrame:
    """Return a row for each cell with what the expressions find; a grouping would copy the samples, so one cell is not grouped."""
    if samples.is_empty() or samples["cell"].min() != samples["cell"].max():
        return samples.group_by("cell").agg(found)
    return samples.select(pl.col("cell").first(), *found)


def mean_rate(metric: Metric, message_bytes: int, total_bytes: int, total_ns: int) -> float | None:
    """Return all bytes over all time of several launches, as a rate in the metric's unit; None where no time passed."""
    if total_ns == 0:
        return None
    scale = NS_OF_SECOND / max(message_bytes, 1) if metric is Metric.MESSAGE_RATE else 8 * NS_OF_SECOND
    return total_bytes * scale / total_ns
