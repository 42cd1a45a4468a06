"""The counters of a launch's cells as a table: `counters.parquet`."""

from __future__ import annotations

import polars as pl

from fabricbench.record.counters import Counter, CounterScope
from fabricbench.record.frames import Schema
from fabricbench.record.reading import Record

COUNTER_SCHEMA: Schema = {
    "cell": pl.UInt32,
    "rank": pl.UInt32,
    "scope": pl.Enum([scope.value for scope in CounterScope]),
    "counter": pl.Enum([counter.value for counter in Counter]),
    "count": pl.UInt64,
}
"""A row for each counter of each scope of a cell. `rank` read it: of a host or a machine the first of the cell's ranks there."""


def counters_frame(record: Record) -> pl.DataFrame:
    """Return what was counted, cell by cell in the order of the record."""
    rows = [
        (cell.id, line.rank, line.scope, counter, count)
        for cell in record.cells
        for line in cell.counters
        for counter, count in line.counts.items()
    ]
    return pl.DataFrame(rows, schema=COUNTER_SCHEMA, orient="row")
