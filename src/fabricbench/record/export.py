"""A run as flat tables for other programs: a row for each sample, for each cell of each launch, or for each cell of each fabric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from fabricbench.model import Metric
from fabricbench.quantity import count, format_bytes
from fabricbench.record.frames import Schema
from fabricbench.record.launch import scan_samples
from fabricbench.record.store import CELL_NAMES, LAUNCH_NAMES, Run, StoredLaunch, quantile_name
from fabricbench.record.values import IS_TIME, IS_WORK, NO_VALUE, sample_value, total_rate

SAMPLE_COLUMNS = (*LAUNCH_NAMES, *CELL_NAMES, "status", "phase", "index", "time_ns", "bytes", "missed", "value", "unit")
GRANTED = ("receive_buffer_bytes", "send_buffer_bytes")
"""Among the values of a cell: what the system granted its sockets."""
SUMMARY_PROBABILITIES = (0.01, 0.25, 0.75, 0.99)


def sample_scans(run: Run) -> Iterator[pl.LazyFrame]:
    """Yield every sample of a run, unread, a frame for each launch: launch and cell are named in each row, `value` is in `unit`.

    What a `failed` cell has measured is there as well; nothing else of fabricbench takes it for a value.
    """
    cells = run.cells()
    for launch in run.launches:
        mine = cells.lazy().filter(pl.col("launch_id") == launch.launch_id)
        yield (
            scan_samples(launch.directory)
            .join(
                mine.select(
                    *LAUNCH_NAMES,
                    "cell",
                    *CELL_NAMES,
                    "status",
                    "parameters",
                    "operations_per_sample",
                    "figure_of_merit",
                ),
                on="cell",
                maintain_order="left",
            )
            .with_columns(value=sample_value(), unit=unit_name())
            .select(SAMPLE_COLUMNS)
        )


def _least(name: str) -> pl.Expr:
    return pl.col("values").str.json_path_match(f"$.{name}").cast(pl.Float64).cast(pl.Int64).min().alias(name)


def summary_frame(run: Run, probabilities: Sequence[float] = SUMMARY_PROBABILITIES) -> pl.DataFrame:
    """Return a row for each fabric and cell, over the launches whose path proof holds.

    `median` is that of the launches' values, as every report has it (`record.values`); the quantiles are the medians, over
    launches, of each launch's own; `mean` is over all samples (of rates: all that was moved over all time); buffers are
    the least that any launch was granted; `failed` counts the launches in which the cell could not be measured, for the `reason`;
    `origin` is where the numbers come from, `proof` the least sure one of their paths.
    """
    named = ["fabric", *CELL_NAMES]
    key = [*named, "figure"]
    cells = run.cells().with_columns(figure=pl.col("parameters").str.json_path_match("$.figure"))
    spread = _spread(run, cells, key, probabilities)
    counted = (
        cells.filter("is_valid")
        .with_columns(unit=unit_name())
        .group_by(key, maintain_order=True)
        .agg(
            pl.col("unit").drop_nulls().first(),
            pl.col("sent").sum(),
            pl.col("lost").sum(),
            pl.col("missed").sum(),
            *(_least(name) for name in GRANTED),
            (pl.col("status") == "failed").sum().alias("failed"),
            pl.col("reason").drop_nulls().first(),
            pl.col("origin").first(),
            pl.col("proof").max(),
        )
    )
    # A launch measures its cells in an order of their own; people read them by layer and size.
    by_size = ["fabric", "layer", "pattern", "receive", "variant", "message_bytes"]
    return (
        counted.join(spread, on=key, how="left", nulls_equal=True)
        .sort(*by_size, "figure")
        .with_columns(
            # Of a program that tells several figures each is a test of its own.
            variant=pl.when(pl.len().over(named) > 1)
            .then(pl.concat_str("variant", pl.lit("figure=") + pl.col("figure"), separator=","))
            .otherwise("variant"),
        )
        .with_columns(
            pl.coalesce("reason", pl.when(pl.col("median").is_null(), pl.col("samples") > 0).then(pl.lit(NO_VALUE)))
        )
        .select(
            *named,
            "unit",
            *(column for column in spread.columns if column not in key),
            "sent",
            "lost",
            "missed",
            *GRANTED,
            "failed",
            "reason",
            "origin",
            "proof",
        )
    )


def _spread(run: Run, cells: pl.DataFrame, key: list[str], probabilities: Sequence[float]) -> pl.DataFrame:
    """Return what the launches of each fabric and cell have in common, a row for each `key`."""
    quantiles = run.launch_quantiles(probabilities).filter("is_valid")
    quantiles = quantiles.join(cells.select("launch_id", "cell", "figure"), on=["launch_id", "cell"], how="left")
    return quantiles.group_by(key).agg(
        pl.len().alias("launches"),
        pl.col("n").sum().alias("samples"),
        pl.col("launch_value").median().alias("median"),
        pl.when(IS_TIME.first())
        .then((pl.col("mean") * pl.col("n")).sum() / pl.col("n").sum())
        .when(IS_WORK.first())
        .then(pl.col("n").sum() / (pl.col("n") / pl.col("mean")).sum())
        .otherwise(total_rate(pl.col("total_bytes").sum(), pl.col("total_time_ns").sum()))
        .alias("mean"),
        pl.col("minimum").min(),
        pl.col("maximum").max(),
        *(pl.col(quantile_name(p)).median() for p in probabilities),
    )


def launch_frame(run: Run, probabilities: Sequence[float] = SUMMARY_PROBABILITIES) -> pl.DataFrame:
    """Return a row for each launch and cell, in the order of `Run.cells`, those that count nowhere and that failed among them.

    The columns of `Run.cells`; `unit`; what `Run.launch_quantiles` finds, null of a cell that failed; why the launch is invalid;
    the version of the `program` that measured; and `started_unix_ns`, `ended_unix_ns`: of the cell, or else of its launch, or null.
    """
    spread = run.launch_quantiles(probabilities)
    found = [name for name in spread.columns if name not in (*LAUNCH_NAMES, *CELL_NAMES, "cell")]
    told = [_told(launch) for launch in run.launches]
    cells = run.cells()
    of_launch: Schema = {"launch_id": cells.schema["launch_id"], "invalid_because": pl.String, "program": pl.String}
    times: Schema = {"launch_started": pl.Int64, "launch_ended": pl.Int64}
    return (
        cells.with_columns(unit=unit_name())
        .join(spread.select("launch_id", "cell", *found), on=["launch_id", "cell"], how="left", maintain_order="left")
        .join(
            pl.DataFrame(told, schema=of_launch | times, orient="row"),
            on="launch_id",
            how="left",
            maintain_order="left",
        )
        .with_columns(
            started_unix_ns=pl.coalesce("begin_unix_ns", "launch_started"),
            ended_unix_ns=pl.coalesce("end_unix_ns", "launch_ended"),
        )
        .drop(times)
    )


def _told(launch: StoredLaunch) -> tuple[str, str | None, str, int | None, int | None]:
    """Return a launch's name, why it is invalid, what measured it, when it began and ended; imported texts tell no times."""
    header, footer = launch.summary.header, launch.summary.footer
    reasons = "; ".join(launch.summary.facts.invalid_because) or None
    began, ended = header.started_unix_ns if header else 0, footer.finished_unix_ns if footer else 0
    return (
        launch.launch_id,
        reasons,
        header.probe_version if header else "",
        began or None,
        (ended or None) if began else None,
    )


def unit_name() -> pl.Expr:
    """Return the unit of `metric`; of a rate of work the one that its program told, which is among the parameters."""
    units = {metric.value: metric.unit for metric in Metric}
    usual = pl.col("metric").cast(pl.String).replace_strict(units, return_dtype=pl.String)
    told = pl.when(IS_WORK).then(pl.col("parameters").str.json_path_match("$.unit"))
    return pl.coalesce(told, usual).alias("unit")


def failed_tests(run: Run) -> list[str]:
    """Return in words each test that failed on a fabric, once, with the first reason and in how many launches."""
    failed = run.cells().filter(pl.col("status") == "failed")
    names = ("fabric", "layer", "pattern", "message_bytes", "variant")
    found: dict[tuple[str, ...], list[str]] = {}
    for *key, reason in failed.select(*names, "reason").iter_rows():
        found.setdefault(tuple(map(str, key)), []).append(str(reason))
    return [
        f"{fabric}: {layer} {pattern} {variant or format_bytes(int(size))}, {count(len(reasons), 'launch')}: {reasons[0]}"
        for (fabric, layer, pattern, size, variant), reasons in found.items()
    ]


def violations(run: Run) -> list[str]:
    """Return in words why each launch that counts nowhere does not."""
    invalid = (launch for launch in run.launches if not launch.is_valid)
    return [f"{launch.launch_id}: {launch.summary.facts.invalid_because[0]}" for launch in invalid]
