"""Tests that were imported, as the record of a launch: cells whose samples are what a text tells, exactly to its last digit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from operator import is_

import numpy as np

from fabricbench.errors import UsageError
from fabricbench.exchange.imported import CellParameters, ImportedCell
from fabricbench.exchange.sources import ImportedText
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.patterns import metric_of
from fabricbench.record.launch import cells_parquet
from fabricbench.record.lines import Cell, CellEnd, ClockInfo, Footer, Header, Phase, Quantity, RankInfo, StopReason
from fabricbench.record.manifest import PlannedLaunch
from fabricbench.record.provenance import BY
from fabricbench.record.reading import Batch, CellRecord, ChannelNumbers, Record

OPERATIONS = 1000
"""A time is stored as that of so many operations: a sample is a whole number of nanoseconds, and texts tell 10 ns and less."""

RATE_NS = 1_000_000_000
"""A rate is stored as what it moves in a second."""

MOST = 2**63
"""Times and bytes that a file of a run holds are below it."""


WAITING = {Layer.MPI: Receive.LIBRARY, Layer.RDMA: Receive.POLLING}
"""How programs wait over a layer unless they are told otherwise, of which their texts say nothing."""


def record_of_tests(launch: PlannedLaunch, sources: Sequence[ImportedText]) -> Record:
    """Return the record of a launch, given its texts; UsageError where one has a test twice, or a value that no run can hold."""
    started = next((one.imported.started_unix_ns for one in sources if one.imported.started_unix_ns), None) or 0
    mpi = next((one.imported.mpi_library for one in sources if one.imported.mpi_library), "not told")
    results = [(one, cell) for one in sources for cell in one.imported.cells]
    keys = [(cell.layer, cell.pattern, cell.message_bytes, cell.ranks, cell.parameters) for _, cell in results]
    times = Counter(keys)
    for (source, cell), key in zip(results, keys, strict=True):
        if times[key] > 1:
            raise UsageError(
                f"{source.path}: {cell.pattern} of {cell.message_bytes} B is in launch {launch.launch_id} twice",
                hint="give each repetition as a launch of its own: --fabric NAME=FIRST,SECOND",
            )
    return Record(
        header=Header(
            launch_id=launch.launch_id,
            fabric=launch.fabric,
            probe_version=", ".join(dict.fromkeys(f"{one.imported.program} {one.imported.version}" for one in sources)),
            mpi_library=mpi,
            started_unix_ns=started,
            ranks=_ranks_of(results),
            clock=ClockInfo(name="the program's own", resolution_ns=1.0, overhead_ns=0.0, loop_floor_ns=0.0),
        ),
        cells=[_cell(number, source, cell) for number, (source, cell) in enumerate(results)],
        footer=Footer(finished_unix_ns=started, cells=len(results), failed=0),
    )


def _ranks_of(results: Sequence[tuple[ImportedText, ImportedCell]]) -> tuple[RankInfo, ...]:
    """Return the hosts of a launch's ranks, as its matrices tell; none without any. UsageError where two tell other hosts."""
    told = {cell.hosts: source.path for source, cell in results if cell.hosts}
    if len(told) > 1:
        first, second, *_ = told.values()
        raise UsageError(
            f"{first} and {second} are of one launch, and tell of other hosts of its ranks",
            hint="give each as a launch of its own: --fabric NAME=FIRST,SECOND",
        )
    hosts = next(iter(told), ())
    return tuple(RankInfo(rank=rank, host=host, pid=0, cpus=()) for rank, host in enumerate(hosts))


def _cell(number: int, source: ImportedText, cell: ImportedCell) -> CellRecord:
    layer, message_bytes = cell.layer, cell.message_bytes
    assert layer is not None  # noqa: S101 - `_completed` saw to it
    assert message_bytes is not None  # noqa: S101
    values, is_time = cell.values, cell.metric.is_time
    if not all(isfinite(one) and one > 0 for one in values):
        raise UsageError(
            f"{source.path}: {cell.pattern} of {cell.message_bytes} B is {', '.join(f'{one:g}' for one in values)}",
            hint="needed times and rates that are finite and above 0",
        )
    rate_scale = max(message_bytes, 1) if cell.metric is Metric.MESSAGE_RATE else 1 / 8
    scale = OPERATIONS if is_time else rate_scale
    stored = [round(min(one * scale, MOST)) for one in values]
    if not all(0 < one < MOST for one in stored):
        unit = cell.metric.unit
        raise UsageError(
            f"{source.path}: {cell.pattern} of {cell.message_bytes} B is {', '.join(f'{one:g}' for one in values)} {unit}",
            hint=f"a run holds from {1 / scale:g} to {MOST / scale:.0e} {unit}: was the number read in another unit?",
        )
    whole = np.array(stored, np.uint64)
    times, moved = (whole, None) if is_time else (np.full(len(values), RATE_NS, np.uint64), whole)
    is_of_pair = Quantity.ROUND_TRIP if is_time else Quantity.TRANSFER
    opening, end = _lines(
        number,
        source.importer,
        layer,
        cell.pattern,
        message_bytes,
        cell.ranks or 0,
        cell.parameters,
        cell.printed_step,
        len(values),
    )
    return CellRecord(
        opening,
        [Batch(Phase.MEASURED, 0, times, moved)],
        end=end,
        channels=[
            ChannelNumbers(
                *pair,
                flow=0,
                round=0,
                quantity=is_of_pair,
                time_ns=times[at : at + 1].astype(np.int64),
                bytes=None if moved is None else moved[at : at + 1],
                sent=0,
                lost=0,
            )
            for at, pair in enumerate(cell.pairs)
        ],
    )


@lru_cache(maxsize=8192)  # the launches of an import have the same tests, mostly
def _lines(
    number: int,
    importer: str,
    layer: Layer,
    pattern: Pattern,
    message_bytes: int,
    ranks: int,
    parameters: CellParameters,
    printed_step: float | None,
    measured: int,
) -> tuple[Cell, CellEnd]:
    """Return what opens and what closes a cell."""
    metric = metric_of(pattern)
    return Cell(
        id=number,
        layer=layer,
        pattern=pattern,
        message_bytes=message_bytes,
        receive=WAITING.get(layer, Receive.BLOCKING),
        metric=metric,
        ranks=tuple(range(ranks)),
        operations_per_sample=OPERATIONS if metric.is_time else 1,
        bytes_per_sample=0,
        parameters={BY: importer, **dict(parameters)},
    ), CellEnd(cell=number, stop=StopReason.COUNT, warmup=0, measured=measured, seconds=0.0, printed_step=printed_step)


class CellTables:
    """`cells.parquet` of the launches of an import: mostly the very same cells, whose table is made once."""

    def __init__(self) -> None:
        self._lines: list[object] = []
        self._content = b""

    def content(self, record: Record) -> bytes:
        """Return that of a launch, given its record."""
        lines: list[object] = [line for cell in record.cells for line in (cell.cell, cell.end)]
        if len(lines) != len(self._lines) or not all(map(is_, lines, self._lines)):
            self._lines, self._content = lines, cells_parquet(record)
        return self._content
