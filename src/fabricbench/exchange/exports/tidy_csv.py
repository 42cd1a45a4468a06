"""CSV, tidy: a row for each launch and cell, with all that is known of it. RFC 4180, decimal points; what is unknown is empty."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from fabricbench.exchange.exported import DOOR, Export, ExportedFile, Exporter, Fact
from fabricbench.printable import printable

SUFFIX = ".csv"

COLUMNS = (
    *("run", "launch_id", "block", "position", "fabric", "origin", "proof", "is_valid", "invalid_because"),
    *("layer", DOOR, "pattern", "receive", "message_bytes", "ranks", "parameters", "variant"),
    *("metric", "unit", "statistic", "value", "samples", "mean", "minimum"),
    *("q0.01", "q0.25", "q0.75", "q0.99", "maximum", "sent", "lost", "missed", "status", "reason", "started"),
)


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield the table as CSV."""
    yield ExportedFile(f"launches{SUFFIX}", launch_table(export).write_csv().encode())


def launch_table(export: Export) -> pl.DataFrame:
    """Return the rows in the columns that CSV and Parquet share: words are text, and `statistic` says what a value is."""
    frame = export.frame
    typed: dict[str, list[str] | list[str | None] | list[int | None]] = {
        "run": [printable(export.run.path.resolve().name)] * frame.height,
        DOOR: [one.door or None for one in export.results],
        "ranks": [one.ranks or None for one in export.results],
        "statistic": [None if one.value is None else one.statistic.value for one in export.results],
    }
    return (
        frame.rename({"launch_value": "value", "n": "samples"})
        .with_columns(pl.Series(name, column) for name, column in typed.items())
        .with_columns(
            pl.from_epoch("started_unix_ns", time_unit="ns").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").alias("started"),
            *(pl.col(name).cast(pl.String) for name, dtype in frame.schema.items() if isinstance(dtype, pl.Enum)),
        )
        .select(COLUMNS)
    )


EXPORTER = Exporter(
    name="csv",
    title="spreadsheets, R, pandas: a row a launch and test",
    suffix=SUFFIX,
    files=files,
    marks_bad=True,
    cannot_hold=(Fact.CONFIGURATION,),
)
