"""A launch's further tables: each is written where its record has anything for it, hashed, and read back."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.record.counters import Counter, CounterScope
from fabricbench.record.integrity import HASHED, TABLE_FILES
from fabricbench.record.launch import read_launch, scan_table
from fabricbench.record.store import Run
from fabricbench.record.tables import COUNTERS, TABLES, RecordTable
from support.counts import Counted
from support.synthetic_run import SyntheticCell, write_synthetic_run


def test_every_table_has_a_name_of_its_own_and_is_hashed():
    assert tuple(table.file for table in TABLES) == TABLE_FILES
    assert set(TABLE_FILES) <= set(HASHED)
    assert all(set(table.complete) <= set(table.schema) for table in TABLES)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_launch_without_a_table_reads_as_one_without_rows(tmp_path: Path, table: RecordTable):
    assert scan_table(tmp_path, table).collect().schema == pl.Schema(table.schema)


def counted_run(path: Path) -> Run:
    cell = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"net": 9_000.0}, samples=5, counted={"net": Counted()})
    return write_synthetic_run(path, cells=[cell], blocks=2)


def test_counters_are_kept_with_who_read_them(tmp_path: Path):
    run = counted_run(tmp_path)
    counters = run.counters().collect()
    assert counters["launch_id"].n_unique() == 2
    rows = counters.filter(scope=CounterScope.RANK.value, counter=Counter.MESSAGES_SENT.value)
    assert rows.select("rank", "count").sort("rank").unique(maintain_order=True).rows() == [(0, 1000), (1, 1000)]
    assert run.launches[0].summary.table_rows == {COUNTERS.name: counters.height // 2}


def test_counters_that_were_altered_cost_their_launch(tmp_path: Path):
    run = counted_run(tmp_path)
    path = run.launches[0].directory / COUNTERS.file
    pl.read_parquet(path).with_columns(pl.col("count") + 1).write_parquet(path)
    with pytest.raises(UsageError, match=COUNTERS.file):
        read_launch(path.parent)
    assert [one.launch_id for one in Run.open(run.path).damaged] == [path.parent.name]
