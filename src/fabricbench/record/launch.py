"""A finished launch on the disk: `launch.json` as a model, and the conversion of its record into Parquet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import ValidationError

from fabricbench.configuration import first_problem
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Metric, Model, Pattern, Receive
from fabricbench.patterns import metric_of
from fabricbench.record.atomic import replace_text, replaced
from fabricbench.record.lines import Footer, Header, Phase
from fabricbench.record.probe_plan import PlanProbe, ProbePlan
from fabricbench.record.reading import Batch, CellRecord, Damage, Record, read_record

PLAN = "plan.json"
RECORDS = "records.jsonl"
CELLS = "cells.parquet"
SAMPLES = "samples.parquet"
LAUNCH = "launch.json"

MEASURE_AGAIN = "`fabricbench resume` measures that launch again"

ROW_GROUP_ROWS = 262_144
"""Small enough that a reader who streams holds little, large enough that compression works."""


class LaunchFacts(Model):
    """What only the one who ran the launch knows. `is_valid` is False where the path proof failed; `invalid_because` says why.

    `conditions` are what a reader must know of how programs were started (how MPI waits, say): what -> fact.
    """

    block: int | None = None
    position: int | None = None
    is_valid: bool = True
    invalid_because: tuple[str, ...] = ()
    exit_code: int | None = None
    path_proof: dict[str, Any] = {}
    conditions: dict[str, str] = {}
    switches_before: dict[str, Any] = {}
    switches_after: dict[str, Any] = {}


class LaunchSummary(Model):
    """`launch.json`: the record's header and footer, what of the record was lost, and the facts of the runner."""

    launch_id: str
    fabric: str
    complete: bool
    damage: tuple[Damage, ...] = ()
    cells: int
    failed: int
    samples: int
    header: Header | None
    footer: Footer | None
    facts: LaunchFacts = LaunchFacts()

    @property
    def block(self) -> int:
        """The block that the launch belongs to, from the runner or from the launch's name."""
        named = re.match(r"b(\d+)-", self.launch_id)
        return self.facts.block if self.facts.block is not None else int(named.group(1)) if named else 0


def write_launch(
    directory: Path, lines: Record | None = None, *, facts: LaunchFacts | None = None, keep_records: bool = False
) -> LaunchSummary:
    """Convert the record in a launch's directory to Parquet and write `launch.json`, which marks it as converted.

    Each file appears whole or not at all, `launch.json` last. The raw record is removed only once everything in it is safely in
    Parquet; one that is damaged or cut short stays. Calling it again does no harm: a launch that is converted keeps its data and
    takes the new facts. EnvironmentLacks if the disk is full (the raw record stays); UsageError if there is nothing to convert.
    """
    records = directory / RECORDS
    if lines is None and not records.exists():
        return _rewritten(directory, facts)
    record = read_record(records) if lines is None else lines
    summary = _summary(directory, record, facts or LaunchFacts())
    with replaced(directory / CELLS) as path:
        cells_frame(record, _planned(directory)).write_parquet(path)
    with replaced(directory / SAMPLES) as path:
        samples_frame(record).write_parquet(path, row_group_size=ROW_GROUP_ROWS)
    _write_summary(directory, summary)
    if summary.complete and not keep_records:
        records.unlink(missing_ok=True)
    return summary


def read_launch(directory: Path) -> LaunchSummary:
    """Return a converted launch's `launch.json`; UsageError if that or one of the Parquet files beside it cannot be read."""
    path = directory / LAUNCH
    try:
        summary = LaunchSummary.model_validate_json(path.read_bytes())
        for path, columns in ((directory / CELLS, CELL_SCHEMA), (directory / SAMPLES, SAMPLE_SCHEMA)):
            _check_columns(path, columns)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        reason = first_problem(error) if isinstance(error, ValidationError) else str(error).splitlines()[0]
        raise UsageError(f"{path} cannot be read: {reason}", hint=MEASURE_AGAIN) from error
    return summary


def _check_columns(path: Path, columns: Iterable[str]) -> None:
    """Raise ValueError where a Parquet file lacks columns; polars raises errors of its own where the file was cut short."""
    lacking = set(columns) - set(pl.read_parquet_schema(path))
    if lacking:
        raise ValueError(f"it lacks {', '.join(sorted(lacking))}")


def is_converted(directory: Path) -> bool:
    """Whether a launch's directory holds everything that a reader needs."""
    return all((directory / name).exists() for name in (LAUNCH, CELLS, SAMPLES))


def _rewritten(directory: Path, facts: LaunchFacts | None) -> LaunchSummary:
    if not is_converted(directory):
        raise UsageError(
            f"{directory} holds no record: {RECORDS} is missing",
            hint="look into stderr.log beside it: the measurer did not start or could not write",
        )
    summary = read_launch(directory)
    if facts is not None and facts != summary.facts:
        summary = summary.model_copy(update={"facts": facts})
        _write_summary(directory, summary)
    return summary


def _write_summary(directory: Path, summary: LaunchSummary) -> None:
    replace_text(directory / LAUNCH, summary.model_dump_json(by_alias=True, indent=2) + "\n")


def _summary(directory: Path, record: Record, facts: LaunchFacts) -> LaunchSummary:
    launch_id = record.header.launch_id if record.header else directory.name
    return LaunchSummary(
        launch_id=launch_id,
        fabric=record.header.fabric if record.header else re.sub(r"^b\d+-", "", directory.name),
        complete=record.is_complete,
        damage=tuple(record.damage),
        cells=sum(cell.end is not None for cell in record.cells),
        failed=sum(cell.failed is not None for cell in record.cells),
        samples=sum(len(batch.time_ns) for cell in record.cells for batch in cell.batches),
        header=record.header,
        footer=record.footer,
        facts=facts,
    )


def _enumeration(names: Any) -> pl.Enum:
    return pl.Enum([str(name) for name in names])


PHASES = _enumeration(Phase)

CELL_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
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
}

SAMPLE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "cell": pl.UInt32,
    "phase": PHASES,
    "index": pl.UInt32,
    "time_ns": pl.UInt64,
    "bytes": pl.UInt64,
}


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
    if record.failed is not None:
        failed = record.failed
        row |= {"layer": failed.layer, "pattern": failed.pattern, "message_bytes": failed.message_bytes}
        row |= {"failure_code": failed.code, "reason": failed.reason}
    if record.cell is not None:
        row |= record.cell.model_dump(mode="json", include=set(CELL_SCHEMA) - {"cell", "parameters"})
        row |= _parameters(record.cell.parameters)
    elif probe is not None:
        row |= probe.model_dump(mode="json", include={"receive", "ranks", "messages_per_sample"})
        row |= {"metric": metric_of(probe.pattern).value, **_parameters(probe.parameters)}
    if record.end is not None:
        row |= record.end.model_dump(mode="json", include=set(CELL_SCHEMA) - {"cell", "interfaces"})
        interfaces = {name: count.model_dump() for name, count in record.end.interfaces.items()}
        row["interfaces"] = json.dumps(interfaces)
    return row


def _parameters(parameters: dict[str, str | int | float]) -> dict[str, str]:
    return {"variant": variant(parameters), "parameters": json.dumps(parameters)}


def _planned(directory: Path) -> dict[int, PlanProbe]:
    """Return the probes that the measurer was told to run; none where the plan is gone or was never written."""
    try:
        plan = ProbePlan.model_validate_json((directory / PLAN).read_bytes())
    except (OSError, ValidationError):
        return {}
    return {probe.id: probe for probe in plan.probes}


def variant(parameters: dict[str, str | int | float]) -> str:
    """Return what tells probes apart that differ in their parameters: `triad` for a kernel, `name=value` for others, else ''."""
    return ",".join(str(value) if name == "kernel" else f"{name}={value}" for name, value in sorted(parameters.items()))


def samples_frame(record: Record) -> pl.DataFrame:
    """Return every sample of the record's complete and failed cells, cell by cell in the order they were taken."""
    parts = [(cell, batch) for cell in record.cells if cell.cell is not None for batch in cell.batches]
    if not parts:
        return pl.DataFrame(schema=SAMPLE_SCHEMA)
    lengths = [len(batch.time_ns) for _, batch in parts]
    phases = np.array([list(Phase).index(batch.phase) for _, batch in parts], dtype=np.uint32)
    return pl.DataFrame(
        {
            "cell": np.repeat(np.array([cell.id for cell, _ in parts], dtype=np.uint32), lengths),
            "phase": pl.Series([phase.value for phase in Phase], dtype=PHASES).gather(np.repeat(phases, lengths)),
            "index": np.concatenate([_indices(batch) for _, batch in parts]),
            "time_ns": np.concatenate([batch.time_ns for _, batch in parts]),
            "bytes": np.concatenate([_bytes(cell, batch) for cell, batch in parts]),
        },
        schema=SAMPLE_SCHEMA,
    )


def _indices(batch: Batch) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.arange(batch.first_index, batch.first_index + len(batch.time_ns), dtype=np.uint32)


def _bytes(cell: CellRecord, batch: Batch) -> np.ndarray[Any, np.dtype[np.uint64]]:
    if batch.bytes is not None or cell.cell is None:
        return batch.bytes if batch.bytes is not None else np.zeros(len(batch.time_ns), dtype=np.uint64)
    return np.full(len(batch.time_ns), cell.cell.bytes_per_sample, dtype=np.uint64)
