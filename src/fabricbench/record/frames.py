"""A record as tables: the columns of the Parquet files of a launch, and the rows of each made from its lines.

Columns that came with a later version have a default, so that a run of an earlier one still opens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from pydantic import TypeAdapter

from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.pattern_facts import Parameters
from fabricbench.patterns import metric_of
from fabricbench.record.crossings import UNKNOWN, Crossings, crossed
from fabricbench.record.lines import (
    STAGE_TIMES,
    Cell,
    CellEnd,
    InterfaceBytes,
    Phase,
    PortState,
    Quantity,
    RdmaAttachment,
    Stages,
)
from fabricbench.record.probe_plan import PlanCongestor, PlanProbe
from fabricbench.record.reading import Batch, CellRecord, Numbers, Record, SignedNumbers
from fabricbench.record.setup import variant

Schema = dict[str, pl.DataType | type[pl.DataType]]


def _enumeration(names: Any) -> pl.Enum:
    return pl.Enum([str(name) for name in names])


PHASES = _enumeration(Phase)
_PHASES, _PLACES = pl.Series(list(Phase), dtype=PHASES), {phase: place for place, phase in enumerate(Phase)}
"""All phases as a column, and the place of each in it."""
QUANTITIES = _enumeration(Quantity)

CELL_SCHEMA: Schema = {
    "cell": pl.UInt32,
    "layer": _enumeration(Layer),
    "pattern": _enumeration(Pattern),
    "receive": _enumeration(Receive),
    "message_bytes": pl.UInt64,
    "variant": pl.String,
    "metric": _enumeration(Metric),
    "operations_per_sample": pl.UInt64,
    "bytes_per_sample": pl.UInt64,
    "messages_per_sample": pl.UInt64,
    "ranks": pl.List(pl.UInt32),
    "parameters": pl.String,
    "status": _enumeration(("done", "failed")),
    "failure_code": pl.String,
    "reason": pl.String,
    "stop": pl.String,
    "warmup": pl.UInt64,
    "measured": pl.UInt64,
    "seconds": pl.Float64,
    "sent": pl.UInt64,
    "lost": pl.UInt64,
    "reordered": pl.UInt64,
    "duplicated": pl.UInt64,
    "corrupted": pl.UInt64,
    "verified": pl.UInt64,
    "interfaces": pl.String,
    "channels": pl.UInt32,
    "missed": pl.UInt64,
    "values": pl.String,
    "congestor": pl.String,
    "begin_unix_ns": pl.Int64,
    "end_unix_ns": pl.Int64,
    "figure_of_merit": pl.Float64,
    "port_state": pl.String,
    "other_hosts": pl.String,
    "printed_step": pl.Float64,
    "rdma": pl.String,
}
OF_A_MEASURED_CELL = (
    "layer",
    "pattern",
    "receive",
    "message_bytes",
    "variant",
    "metric",
    "operations_per_sample",
    "bytes_per_sample",
    "messages_per_sample",
    "ranks",
)
"""What no cell that was measured may lack."""
LATER_CELL_COLUMNS: dict[str, Any] = {
    "channels": 1,
    "missed": 0,
    "values": "{}",
    "congestor": None,
    "begin_unix_ns": None,
    "end_unix_ns": None,
    "figure_of_merit": None,
    "port_state": "{}",
    "other_hosts": "{}",
    "printed_step": None,
    "rdma": "[]",
}
"""What a run of an earlier version lacks, and what is meant where it does."""

RDMA_ATTACHMENTS: TypeAdapter[tuple[RdmaAttachment, ...]] = TypeAdapter(tuple[RdmaAttachment, ...])
"""Reads and writes the column `rdma`."""

FIGURE_OF_MERIT = "figure_of_merit"
"""In the values of a cell, and its column: what a program printed of itself: a rate of work in its own unit, a time in ns."""

SAMPLE_SCHEMA: Schema = {
    "cell": pl.UInt32,
    "phase": PHASES,
    "index": pl.UInt32,
    "time_ns": pl.UInt64,
    "bytes": pl.UInt64,
    "missed": pl.Boolean,
}
LATER_SAMPLE_COLUMNS: dict[str, Any] = {"missed": False}

CHANNEL_SCHEMA: Schema = {
    "cell": pl.UInt32,
    "source": pl.UInt32,
    "destination": pl.UInt32,
    "flow": pl.UInt32,
    "round": pl.UInt32,
    "quantity": QUANTITIES,
    "index": pl.UInt32,
    "time_ns": pl.Int64,
    "bytes": pl.UInt64,
    "sent": pl.UInt64,
    "lost": pl.UInt64,
}
"""A row for each number of each channel. `sent` and `lost` are those of the whole channel, the same on all its rows; a channel
without a number has one row, whose `index`, `time_ns` and `bytes` are null."""

OF_A_CHANNELS_NUMBER = ("index", "time_ns", "bytes")
"""What a channel may have nulls in: it has no number, or its bytes were not counted."""


STAGE_SCHEMA: Schema = {
    "cell": pl.UInt32,
    "rank": pl.UInt32,
    "leads": pl.Boolean,
    "number": pl.UInt32,
    "before_unix_ns": pl.Int64,
    "asked_unix_ns": pl.Int64,
    "called_unix_ns": pl.Int64,
    "scheduled_unix_ns": pl.Int64,
    "departed_unix_ns": pl.Int64,
    "acknowledged_unix_ns": pl.Int64,
    "arrived_unix_ns": pl.Int64,
    "resumed_unix_ns": pl.Int64,
    "drained_unix_ns": pl.Int64,
    "received_unix_ns": pl.Int64,
    "waited_ns": pl.Int64,
    "round_trip_ns": pl.Int64,
    "switch_first_unix_ns": pl.Int64,
    "switch_last_unix_ns": pl.Int64,
    "wire_ns": pl.Int64,
    "due_unix_ns": pl.Int64,
}
"""A row for each round trip on each of its two ranks: the boundaries of `record.lines.Stages`, by the clock of the rank's host.

Of what the rank sent, an emulated switch tells when its first and last frame came, how long the links of the last alone take, and
when that was due at the other node: null where the fabric is real. The rows of the rank that leads are the measured samples.
"""
OF_ANY_STAGE = ("cell", "rank", "leads", "number", "waited_ns", "round_trip_ns")
"""Columns without nulls."""
LATER_STAGE_COLUMNS: Mapping[str, None] = dict.fromkeys(("asked_unix_ns", "called_unix_ns", "drained_unix_ns"))
"""Those that records of earlier versions do not have."""


def lacking(schema: Mapping[str, Any], required: Schema, later: Mapping[str, Any]) -> list[str]:
    """Return the columns that a file should have had in every version, and has not."""
    return sorted(set(required) - set(later) - set(schema))


def in_schema(frame: pl.LazyFrame, wanted: Schema, later: Mapping[str, Any]) -> pl.LazyFrame:
    """Return a frame that was read from a file in the columns of today: those it lacks are at their defaults."""
    there = frame.collect_schema()
    return frame.select(
        _as(name, there[name], dtype) if name in there else pl.lit(later[name], dtype=dtype).alias(name)
        for name, dtype in wanted.items()
    )


def _as(name: str, found: pl.DataType, wanted: pl.DataType | type[pl.DataType]) -> pl.Expr:
    """Return a column; enumerations of an earlier version had fewer words."""
    column = pl.col(name)
    return column if found == wanted else column.cast(pl.String).cast(wanted)


def check_cells(cells: pl.DataFrame) -> None:
    """Raise ValueError where cells are not what they should be: two of a number, no names, or columns of JSON that hold none."""
    done = cells.filter(pl.col("status") == "done")
    wrong = {
        "its cells are not numbered one by one": cells["cell"].n_unique() != cells.height or cells["cell"].null_count(),
        "a cell lacks its status": cells["status"].null_count(),
        "a measured cell lacks its name or its shape": sum(done[name].null_count() for name in OF_A_MEASURED_CELL),
        "a measured cell has samples of no operations": done["operations_per_sample"].eq(0).any(),
        "a measured cell has no ranks": done["ranks"].list.len().eq(0).any() or done["ranks"].explode().null_count(),
    }
    for reason, holds in wrong.items():
        if holds:
            raise ValueError(reason)
    for name in sorted(AS_TEXT):
        for text in dict.fromkeys(cells[name].to_list()):  # most rows have the same
            if text is None:
                continue
            value = _JSON_COLUMNS[name].validate_json(text)
            if name == "values" and any(not math.isfinite(number) for number in value.values()):
                raise ValueError("values holds a number that is not finite")


def cells_frame(record: Record, planned: Mapping[int, PlanProbe] | None = None) -> pl.DataFrame:
    """Return a row for each complete cell: its opening and its end or failure, flattened.

    A cell that failed before it opened takes from its probe in `planned` how it would have been measured.
    """
    probes = planned or {}
    rows = [_cell_row(cell, probes.get(cell.id)) for cell in record.cells]
    return pl.DataFrame(rows, schema=CELL_SCHEMA, orient="row")


def _cell_row(record: CellRecord, probe: PlanProbe | None) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(CELL_SCHEMA)
    row |= {"cell": record.id, "status": "done" if record.end else "failed", "variant": "", "interfaces": "{}"}
    row |= LATER_CELL_COLUMNS
    if record.failed is not None:
        failed = record.failed
        row |= {"layer": failed.layer, "pattern": failed.pattern, "message_bytes": failed.message_bytes}
        row |= {"failure_code": failed.code, "reason": failed.reason, "values": json.dumps(failed.values)}
        row |= {"port_state": json.dumps(failed.port_state), "interfaces": _interfaces_text(failed.interfaces)}
        row |= {"rdma": _attachments(failed.rdma)}
    if record.cell is not None:
        row |= {name: getattr(record.cell, name) for name in _OF_CELL}
        row |= _as_text(record.cell)
    elif probe is not None:
        row |= probe.model_dump(mode="json", include={"receive", "ranks", "messages_per_sample"})
        row |= {"metric": metric_of(probe.pattern).value, **_as_text(probe)}
    if record.end is not None:
        row |= {name: getattr(record.end, name) for name in _OF_END}
        if any(getattr(record.end, name) for name in _COUNTED):
            counted = record.end.model_dump(mode="json", include=_COUNTED)
            row |= {name: json.dumps(value) if value else "{}" for name, value in counted.items()}
        row |= {"rdma": _attachments(record.end.rdma) if record.end.rdma else "[]"}
        row |= {"figure_of_merit": record.end.values.get(FIGURE_OF_MERIT)}
    return row


def _interfaces_text(interfaces: Mapping[str, InterfaceBytes]) -> str:
    return json.dumps({name: count.model_dump() for name, count in interfaces.items()})


def _attachments(rdma: Sequence[RdmaAttachment]) -> str:
    return RDMA_ATTACHMENTS.dump_json(tuple(rdma)).decode()


AS_TEXT = {"parameters", "interfaces", "other_hosts", "values", "port_state", "rdma", "congestor"}
"""Columns that hold JSON."""
_AS_THEY_ARE = set(CELL_SCHEMA) - AS_TEXT - {"cell"}
_COUNTED = {"interfaces", "other_hosts", "values", "port_state"}
_OF_CELL = tuple(name for name in Cell.model_fields if name in _AS_THEY_ARE)
_OF_END = tuple(name for name in CellEnd.model_fields if name in _AS_THEY_ARE)


_JSON_COLUMNS: dict[str, TypeAdapter[Any]] = {
    "parameters": TypeAdapter(Parameters),
    "interfaces": TypeAdapter(dict[str, InterfaceBytes]),
    "other_hosts": TypeAdapter(dict[str, dict[str, InterfaceBytes]]),
    "values": TypeAdapter(dict[str, float]),
    "port_state": TypeAdapter(PortState),
    "rdma": RDMA_ATTACHMENTS,
    "congestor": TypeAdapter(PlanCongestor),
}


def _as_text(cell: Cell | PlanProbe) -> dict[str, str | None]:
    return {
        "variant": variant(cell),
        "parameters": json.dumps(cell.parameters),
        "congestor": None if cell.congestor is None else cell.congestor.model_dump_json(),
    }


def samples_frame(record: Record) -> pl.DataFrame:
    """Return every sample of the record's complete and failed cells, cell by cell in the order they were taken."""
    parts = [(cell, batch) for cell in record.cells if cell.cell is not None for batch in cell.batches]
    if not parts:
        return pl.DataFrame(schema=SAMPLE_SCHEMA)
    lengths = [len(batch.time_ns) for _, batch in parts]
    phases = np.array([_PLACES[batch.phase] for _, batch in parts], dtype=np.uint32)
    return pl.DataFrame(
        {
            "cell": np.repeat(np.array([cell.id for cell, _ in parts], dtype=np.uint32), lengths),
            "phase": _PHASES[np.repeat(phases, lengths)],
            "index": _sample_numbers([batch.first_index for _, batch in parts], lengths),
            "time_ns": np.concatenate([batch.time_ns for _, batch in parts]),
            "bytes": _bytes(parts, lengths),
            "missed": _missed([batch for _, batch in parts], lengths),
        },
        schema=SAMPLE_SCHEMA,
    )


_NO_CHANNELS = pl.DataFrame(schema=CHANNEL_SCHEMA)


def channels_frame(record: Record) -> pl.DataFrame:
    """Return what every logical channel of every cell did, cell by cell in the order of the record."""
    parts = [(cell.id, channel) for cell in record.cells for channel in cell.channels]
    if not parts:
        return _NO_CHANNELS
    lengths = [max(1, len(channel.time_ns)) for _, channel in parts]
    each = ("source", "destination", "flow", "round", "sent", "lost")
    columns: dict[str, Any] = {
        name: np.repeat(np.array([getattr(channel, name) for _, channel in parts]), lengths) for name in each
    }
    columns["cell"] = np.repeat(np.array([cell for cell, _ in parts]), lengths)
    quantities = np.repeat(np.array([list(Quantity).index(channel.quantity) for _, channel in parts]), lengths)
    columns["quantity"] = pl.Series([quantity.value for quantity in Quantity], dtype=QUANTITIES).gather(quantities)
    columns["index"] = np.concatenate([np.arange(length) for length in lengths])
    columns["time_ns"] = np.concatenate([_or_zeros(channel.time_ns, 1) for _, channel in parts])
    moved = [_or_zeros(one.bytes, length) for (_, one), length in zip(parts, lengths, strict=True)]
    columns["bytes"] = np.concatenate(moved)
    is_empty = np.repeat(np.array([not len(channel.time_ns) for _, channel in parts]), lengths)
    without_bytes = np.repeat(np.array([one.bytes is None or not len(one.bytes) for _, one in parts]), lengths)
    nulls = {"index": is_empty, "time_ns": is_empty, "bytes": without_bytes}
    return pl.DataFrame(columns).select(
        (pl.when(~pl.lit(pl.Series(nulls[name]))).then(pl.col(name)) if name in nulls else pl.col(name)).cast(dtype)
        for name, dtype in CHANNEL_SCHEMA.items()
    )


NO_CROSSINGS: Mapping[int, Crossings] = {}


def stages_frame(record: Record, crossings: Mapping[int, Crossings] = NO_CROSSINGS) -> pl.DataFrame:
    """Return when each message passed its boundaries, cell by cell; `crossings` are those of a switch, by the cell's number."""
    parts = [_stages_of(cell, crossings.get(cell.id)) for cell in record.cells if cell.stages]
    return pl.concat(parts) if parts else pl.DataFrame(schema=STAGE_SCHEMA)


def _stages_of(cell: CellRecord, crossings: Crossings | None) -> pl.DataFrame:
    rows = pl.concat(_rank_stages(line) for line in cell.stages)
    leads, follows = rows.filter("leads"), rows.filter(~pl.col("leads"))
    if crossings is not None and len(crossings):
        leads, follows = _crossed(leads, follows, crossings), _crossed(follows, leads, crossings)
    return pl.concat((leads, follows), how="diagonal").select(
        (pl.col(name) if name in leads.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in STAGE_SCHEMA.items()
    )


def _rank_stages(line: Stages) -> pl.DataFrame:
    durations = ("waited_ns", "round_trip_ns")
    columns: dict[str, Any] = {"number": pl.Series(line.number, dtype=pl.Int64)}
    for name in STAGE_TIMES:
        times = pl.Series(getattr(line, name) or (None,) * len(line.number), dtype=pl.Int64)
        columns[name if name in durations else name.replace("_ns", "_unix_ns")] = (
            times if name in durations else times + line.base_unix_ns
        )
    return pl.DataFrame(columns).with_columns(
        pl.lit(line.cell).alias("cell"), pl.lit(line.rank).alias("rank"), pl.lit(line.leads).alias("leads")
    )


def _crossed(sent: pl.DataFrame, received: pl.DataFrame, crossings: Crossings) -> pl.DataFrame:
    """Return the rows of what one rank sent with what the switch tells of it; `received` are those of the other rank."""
    both = sent.join(received.select("number", pl.col("arrived_unix_ns").alias("there")), on="number", how="left")
    # Of a message that its library asks the peer before, the frames of the question and the answer are none.
    begin = both.select(pl.coalesce("called_unix_ns", "before_unix_ns")).to_series()
    sent_ns, arrived_ns = (times.fill_null(UNKNOWN).to_numpy() for times in (begin, both["there"]))
    found = crossed(sent_ns, arrived_ns, crossings)
    told = {
        "switch_first_unix_ns": found.first,
        "switch_last_unix_ns": found.last,
        "wire_ns": found.wire,
        "due_unix_ns": found.due,
    }
    return sent.with_columns(pl.Series(name, values).replace(UNKNOWN, None) for name, values in told.items())


def _or_zeros(numbers: Numbers | SignedNumbers | None, count: int) -> Numbers | SignedNumbers:
    """Return the numbers, or zeros for what becomes null."""
    return numbers if numbers is not None and len(numbers) else np.zeros(count, dtype=np.int64)


def _sample_numbers(firsts: Sequence[int], lengths: Sequence[int]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return the numbers of the samples of each batch, from its first on."""
    offsets = np.array(firsts, dtype=np.int64) - _begins(lengths)
    return (np.repeat(offsets, lengths) + np.arange(sum(lengths))).astype(np.uint32)


def _begins(lengths: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return where each batch begins."""
    return np.cumsum(lengths) - np.array(lengths, dtype=np.int64)


def _bytes(parts: Sequence[tuple[CellRecord, Batch]], lengths: Sequence[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    usual = np.array([cell.cell.bytes_per_sample if cell.cell else 0 for cell, _ in parts], dtype=np.uint64)
    moved = np.repeat(usual, lengths)
    for begin, (_, batch) in zip(_begins(lengths).tolist(), parts, strict=True):
        if batch.bytes is not None:
            moved[begin : begin + len(batch.bytes)] = batch.bytes
    return moved


def _missed(batches: Sequence[Batch], lengths: Sequence[int]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    marks = np.zeros(sum(lengths), dtype=np.bool_)
    for begin, batch in zip(_begins(lengths).tolist(), batches, strict=True):
        if batch.missed:
            marks[[begin + each for each in batch.missed]] = True
    return marks
