"""The tables that a launch has beside its cells and samples, each where its record holds anything for it.

One more is a module that says its columns and makes its rows of a record, a line of `TABLES`, and its file's name among those that
are hashed (`integrity.TABLE_FILES`). Writing, checking, hashing and reading it follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from fabricbench.record.counter_frame import COUNTER_SCHEMA, counters_frame
from fabricbench.record.crossings import Crossings
from fabricbench.record.frames import (
    CHANNEL_SCHEMA,
    LATER_STAGE_COLUMNS,
    OF_A_CHANNELS_NUMBER,
    OF_ANY_STAGE,
    STAGE_SCHEMA,
    Schema,
    channels_frame,
    stages_frame,
)
from fabricbench.record.reading import Record

Rows = Callable[[Record, Mapping[int, Crossings]], pl.DataFrame]
"""Makes the rows of a record; beside it what an emulated switch tells of frames, by the number of a cell."""


@dataclass(frozen=True, eq=False)
class RecordTable:
    """One table: `name` is that of its file without the ending; `complete` are its columns without nulls.

    `row_bytes` bounds what a row takes, packed or not. `later` are columns that files of earlier versions lack, and what they hold.
    """

    name: str
    schema: Schema
    rows: Rows
    complete: tuple[str, ...]
    row_bytes: int
    later: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The name of its file in a launch's directory."""
        return f"{self.name}.parquet"


CHANNELS = RecordTable(
    "channels",
    CHANNEL_SCHEMA,
    lambda record, _: channels_frame(record),
    complete=tuple(name for name in CHANNEL_SCHEMA if name not in OF_A_CHANNELS_NUMBER),
    row_bytes=64,
)
STAGES = RecordTable(
    "stages", STAGE_SCHEMA, stages_frame, complete=OF_ANY_STAGE, row_bytes=256, later=LATER_STAGE_COLUMNS
)
COUNTERS = RecordTable(
    "counters",
    COUNTER_SCHEMA,
    lambda record, _: counters_frame(record),
    complete=tuple(COUNTER_SCHEMA),
    row_bytes=64,
)

TABLES: tuple[RecordTable, ...] = (CHANNELS, STAGES, COUNTERS)
