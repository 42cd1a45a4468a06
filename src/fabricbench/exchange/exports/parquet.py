"""Parquet: the rows of CSV with their types; version, origins and units are among the file's own key-value metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable
from io import BytesIO

from fabricbench import __version__
from fabricbench.exchange.exported import Export, ExportedFile, Exporter, Fact, Result
from fabricbench.exchange.exports.tidy_csv import launch_table

SUFFIX = ".parquet"

SCHEMA = "fabricbench/launches/1"


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield the table as Parquet."""
    manifest = export.run.manifest
    told = {
        "fabricbench.schema": SCHEMA,
        "fabricbench.version": __version__,
        "fabricbench.campaign": manifest.campaign_name,
        "fabricbench.testbed": manifest.testbed.name,
        "fabricbench.created": manifest.created.isoformat(),
        **({} if (note := export.note_of_date) is None else {"fabricbench.created_note": note}),
        "fabricbench.versions": json.dumps(export.versions),
        "fabricbench.origins": json.dumps([origin.value for origin in export.origins]),
        "fabricbench.units": json.dumps(_units(export.results)),
    }
    written = BytesIO()
    launch_table(export).write_parquet(written, metadata=told)
    yield ExportedFile(f"launches{SUFFIX}", written.getvalue())


def _units(results: Iterable[Result]) -> dict[str, str]:
    """Return the unit of each metric, without those that workloads give in several: each row has its own."""
    found: dict[str, set[str]] = {}
    for one in results:
        found.setdefault(one.metric.value, set()).add(one.unit)
    return {metric: min(units) for metric, units in found.items() if len(units) == 1}


EXPORTER = Exporter(
    name="parquet",
    title="pandas, polars, DuckDB, Spark: the rows of csv, typed",
    suffix=SUFFIX,
    files=files,
    is_text=False,
    marks_bad=True,
    cannot_hold=(Fact.MACHINES,),
)
