"""A launch's further tables: each is written where its record has anything for it, hashed, and read back."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fabricbench.record.integrity import HASHED, TABLE_FILES
from fabricbench.record.launch import scan_table
from fabricbench.record.tables import TABLES, RecordTable


def test_every_table_has_a_name_of_its_own_and_is_hashed():
    assert tuple(table.file for table in TABLES) == TABLE_FILES
    assert set(TABLE_FILES) <= set(HASHED)
    assert all(set(table.complete) <= set(table.schema) for table in TABLES)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_launch_without_a_table_reads_as_one_without_rows(tmp_path: Path, table: RecordTable):
    assert scan_table(tmp_path, table).collect().schema == pl.Schema(table.schema)
