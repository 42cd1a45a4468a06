"""Reads a record: streams over its lines, keeps every complete cell, and tells exactly what could not be used.

A cell is complete when its opening line, its samples and its end are all there and the end counts as many samples as were read.
A line that is damaged (cut short, garbled, not of the schema) costs the cell it stands in and nothing else; it is never
guessed at. A cell whose lines contradict one another, or the plan of the launch, is no better (`contradictions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from fabricbench.model import Model
from fabricbench.printable import shortened
from fabricbench.record import contradictions
from fabricbench.record.contradictions import Measured
from fabricbench.record.integrity import read_lines
from fabricbench.record.lines import (
    LINE_ADAPTER,
    Cell,
    CellEnd,
    CellFailed,
    Channel,
    Clock,
    Counters,
    Footer,
    Header,
    PairFailed,
    Phase,
    Quantity,
    Stages,
)
from fabricbench.record.probe_plan import PlanProbe, ProbePlan

Numbers = NDArray[np.uint64]
SignedNumbers = NDArray[np.int64]
Line = TypeVar("Line")

NUMBERS_MARK = b'"time_ns"'
"""What only a line of samples or of a channel has; such lines are most of a record and take a shorter way."""


class Damage(Model):
    """Something in a record that could not be used. `line` counts from 1.

    `cell` is the cell that it cost, and `lost_samples` how many samples that cell had as far as can be told; a line whose cell is
    unknown has None, and each cell that it may have cost follows.
    """

    line: int
    reason: str
    cell: int | None = None
    lost_samples: int = 0


def take_lines(
    lines: Iterable[bytes], adapter: TypeAdapter[Line], kind: str, take: Callable[[Line], str | None]
) -> tuple[list[Damage], int]:
    """Hand each line of a simple record to `take`, which returns why it cannot be used, None if it can.

    Returns what could not be used, and how many lines there were. Never raises on what they hold.
    """
    damage: list[Damage] = []
    number = 0
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            damage.append(Damage(line=number, reason="the file ends in the middle of this line"))
            continue
        try:
            problem = take(adapter.validate_json(line))
        except ValidationError as error:
            problem = f"not a line of {kind}: {_first_problem(error)}"
        if problem is not None:
            damage.append(Damage(line=number, reason=problem))
    return damage, number


@dataclass
class Batch:
    """Samples of one phase, in order; `bytes` is None where each moved the cell's `bytes_per_sample`.

    `missed` are the positions of those whose start window some rank missed: they are kept and do not count.
    """

    phase: Phase
    first_index: int
    time_ns: Numbers
    bytes: Numbers | None
    missed: tuple[int, ...] = ()


@dataclass
class ChannelNumbers:
    """What one logical channel did: a `Channel` line with its numbers as arrays, `bytes` None where none were given."""

    source: int
    destination: int
    flow: int
    round: int
    quantity: Quantity
    time_ns: SignedNumbers
    bytes: Numbers | None
    sent: int
    lost: int


@dataclass
class CellRecord:
    """A cell as it was recorded: `end` or `failed` is set once it is complete; `cell` is None where it failed before it opened."""

    cell: Cell | None
    batches: list[Batch] = field(default_factory=list)
    end: CellEnd | None = None
    failed: CellFailed | None = None
    channels: list[ChannelNumbers] = field(default_factory=list)
    stages: list[Stages] = field(default_factory=list)
    counters: list[Counters] = field(default_factory=list)

    @property
    def id(self) -> int:
        """The number of the cell in the plan."""
        for line in (self.cell, self.failed):
            if line is not None:
                return line.id if isinstance(line, Cell) else line.cell
        raise AssertionError

    @property
    def measured(self) -> Measured:
        """All measured samples, and how many there are in the channels."""
        batches = [batch for batch in self.batches if batch.phase is Phase.MEASURED]
        has_bytes = any(batch.bytes is not None for batch in batches)
        return Measured(
            time_ns=np.concatenate([batch.time_ns for batch in batches]) if batches else np.array([], np.uint64),
            missed=tuple(batch.first_index + at for batch in batches for at in batch.missed),
            has_missed_warmup=any(batch.missed for batch in self.batches if batch.phase is Phase.WARMUP),
            bytes=sum(int(batch.bytes.sum()) for batch in batches if batch.bytes is not None) if has_bytes else None,
            channels_ns=(
                sum(len(channel.time_ns) for channel in self.channels),
                sum(int(channel.time_ns.sum()) for channel in self.channels),
            )
            if self.channels
            else None,
        )

    def count(self, phase: Phase) -> int:
        """Return how many samples of `phase` there are, those that missed their window included."""
        return sum(len(batch.time_ns) for batch in self.batches if batch.phase is phase)


@dataclass
class Record:
    """Everything usable in one record, and what was not."""

    header: Header | None = None
    footer: Footer | None = None
    cells: list[CellRecord] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)
    failed_pairs: list[PairFailed] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether the record has its beginning and its end and nothing in it is damaged."""
        return self.header is not None and self.footer is not None and not self.damage


def read_record(path: Path, plan: ProbePlan | None = None) -> Record:
    """Read the record at `path`; damage is in the result, only an OSError is raised. `plan` is what its launch was told."""
    return parse_record(read_lines(path), plan)


def parse_record(lines: Iterable[bytes], plan: ProbePlan | None = None) -> Record:
    """Read a record from its lines and hold it against the launch's plan; never raises on what they hold."""
    parser = _Parser(plan)
    number = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            parser.take(number, line)
    return parser.finish(number)


class _Refused(Exception):  # noqa: N818 - never leaves this module
    """A line that cannot be used, and why; `cell` is the one it belongs to, None where that cannot be told."""

    def __init__(self, reason: str, cell: int | None = None) -> None:
        super().__init__(shortened(reason))
        self.cell = cell


def _refuse_where(contradiction: str | None, cell: int | None = None) -> None:
    if contradiction is not None:
        raise _Refused(contradiction, cell)


class _Parser:
    """The state between two lines: which cells are open, which are finished, and which are spoilt (by which damage)."""

    def __init__(self, plan: ProbePlan | None) -> None:
        self.record = Record()
        self.plan = plan
        self.probes = {probe.id: probe for probe in plan.probes} if plan is not None else {}
        self.open: dict[int, CellRecord] = {}
        self.finished: set[int] = set()
        self.spoilt: dict[int, int] = {}
        """Cell -> index of the damage that tells of it."""

    def take(self, number: int, line: bytes) -> None:
        try:
            if not line.endswith(b"\n"):
                raise _Refused("the file ends in the middle of this line")  # noqa: TRY301
            if NUMBERS_MARK in line:
                self._take_numbers(line)
            else:
                self._take_line(LINE_ADAPTER.validate_json(line))
        except _Refused as refused:
            self._refuse(number, str(refused), refused.cell)
        except ValidationError as error:
            self._refuse(number, f"not a line of the record schema: {_first_problem(error)}", None)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            self._refuse(number, f"not a line of the record schema: {error}", None)

    def finish(self, last_line: int) -> Record:
        for cell in list(self.open):
            self._spoil(cell, last_line, "the record ends before this cell's end")
        if self.record.header is None:
            self.record.damage.append(Damage(line=1, reason="the record has no header"))
        if self.record.footer is None:
            self.record.damage.append(Damage(line=last_line, reason="the record has no footer: it was cut short"))
        elif not self.record.damage:
            self._miss_cells(self.record.footer, last_line)
        return self.record

    def _miss_cells(self, footer: Footer, last_line: int) -> None:
        """Note cells that the plan or the footer has and the record, in which nothing else is wrong, has not."""
        for cell in sorted(set(self.probes) - self.finished):
            reason = "the plan has this cell, the record has not"
            self.record.damage.append(Damage(line=last_line, reason=reason, cell=cell))
        ended = sum(cell.end is not None for cell in self.record.cells)
        failed = len(self.record.cells) - ended
        if not self.record.damage and (footer.cells, footer.failed) != (ended, failed):
            stated = f"the footer counts {footer.cells} cells and {footer.failed} failed"
            self.record.damage.append(Damage(line=last_line, reason=f"{stated}, {ended} and {failed} were read"))

    def _probe(self, cell: int) -> PlanProbe | None:
        """Return a cell's probe; None where there is no plan."""
        if self.plan is not None and cell not in self.probes:
            raise _Refused(f"the plan has no cell {cell}", cell)
        return self.probes.get(cell)

    def _refuse(self, number: int, reason: str, cell: int | None) -> None:
        """Note a line that cannot be used. Where its cell cannot be told, any that is open may miss it and is no longer whole."""
        if cell is not None:
            self._spoil(cell, number, reason)
            return
        self.record.damage.append(Damage(line=number, reason=reason))
        for opened in list(self.open):
            self._spoil(opened, number, "this cell may have lost the line")

    def _spoil(self, cell: int, number: int, reason: str) -> None:
        opened = self.open.pop(cell, None)
        lost = sum(len(batch.time_ns) for batch in opened.batches) if opened else 0
        self.spoilt.setdefault(cell, len(self.record.damage))
        self.record.damage.append(Damage(line=number, reason=reason, cell=cell, lost_samples=lost))

    def _count_lost(self, cell: int, samples: int) -> None:
        """Set how many samples a spoilt cell had."""
        index = self.spoilt[cell]
        damage = self.record.damage[index]
        self.record.damage[index] = damage.model_copy(update={"lost_samples": samples})

    def _take_line(self, line: object) -> None:
        match line:
            case Header():
                self._begin(line)
            case Footer():
                self._close(line)
            case Cell():
                self._open(line)
            case CellEnd():
                self._end(line)
            case CellFailed():
                self._fail(line)
            case Clock():
                self.record.clocks.append(line)
            case PairFailed():
                self.record.failed_pairs.append(line)
            case Stages() | Counters():
                self._add(line)
            case _:
                raise _Refused("a line that has no place here")

    def _begin(self, header: Header) -> None:
        if self.record.header is not None:
            raise _Refused("a second header")
        self.record.header = header
        _refuse_where(contradictions.in_header(header, self.plan) if self.plan is not None else None)

    def _close(self, footer: Footer) -> None:
        if self.record.footer is not None:
            raise _Refused("a second footer")
        self.record.footer = footer

    def _add(self, line: Stages | Counters) -> None:
        cell = self._opened(line.cell, line.type)
        if cell is None:
            return
        if isinstance(line, Stages):
            cell.stages.append(line)
        else:
            cell.counters.append(line)

    def _open(self, cell: Cell) -> None:
        if cell.id in self.open or cell.id in self.finished or cell.id in self.spoilt:
            raise _Refused(f"cell {cell.id} opens twice", cell.id)
        _refuse_where(contradictions.in_opening(cell, self._probe(cell.id)), cell.id)
        self.open[cell.id] = CellRecord(cell)

    def _end(self, end: CellEnd) -> None:
        cell = self.open.get(end.cell)
        if cell is None:
            if end.cell not in self.spoilt:
                raise _Refused("the end of a cell that is not open", end.cell)
            self._count_lost(end.cell, end.warmup + end.measured)
            return
        for phase, stated in ((Phase.WARMUP, end.warmup), (Phase.MEASURED, end.measured)):
            if cell.count(phase) != stated:
                raise _Refused(f"the end counts {stated} {phase} samples, {cell.count(phase)} were read", end.cell)
        if cell.cell is not None:
            _refuse_where(contradictions.in_end(cell.cell, end, cell.measured), end.cell)
        cell.end = end
        self._finish_cell(cell)

    def _fail(self, failed: CellFailed) -> None:
        if failed.cell in self.finished:
            raise _Refused(f"cell {failed.cell} fails after its end", failed.cell)
        _refuse_where(contradictions.in_failure(failed, self._probe(failed.cell)), failed.cell)
        cell = self.open.get(failed.cell) or CellRecord(None)
        cell.failed = failed
        self._finish_cell(cell)

    def _finish_cell(self, cell: CellRecord) -> None:
        self.open.pop(cell.id, None)
        self.record.cells.append(cell)
        self.finished.add(cell.id)

    def _take_numbers(self, line: bytes) -> None:
        frame, time_ns, size = _numbers_line(line)
        if frame.get("type") == "channel":
            number, channel = _channel(frame, time_ns, size)
            cell = self._opened(number, "a channel")
            if cell is not None:
                cell.channels.append(channel)
        else:
            self._take_samples(*_batch(frame, time_ns, size))

    def _opened(self, number: int, what: str) -> CellRecord | None:
        """Return the open cell of that number; None if it was spoilt before."""
        cell = self.open.get(number)
        if cell is None and number not in self.spoilt:
            raise _Refused(f"{what} of a cell that is not open", number)
        return cell

    def _take_samples(self, number: int, batch: Batch) -> None:
        cell = self._opened(number, "samples")
        if cell is None:
            return
        before = next((one for one in reversed(cell.batches) if one.phase is batch.phase), None)
        needed = before.first_index + len(before.time_ns) if before is not None else 0
        if batch.first_index != needed:
            raise _Refused(f"samples begin at {batch.first_index}, {needed} is needed", number)
        cell.batches.append(batch)


SAMPLES_KEYS = {"type", "cell", "phase", "first_index", "time_ns"}
DIGITS_AND_COMMAS = b"0123456789,"
MOST_DIGITS = 18
"""Numbers of more digits may not fit 64 bits; 10^18 ns are 30 years."""
MOST_NUMBER = 10**MOST_DIGITS


def _numbers_line(line: bytes) -> tuple[dict[str, Any], SignedNumbers, Numbers | None]:
    """Return a line of samples or of a channel as its frame without the arrays, its times, and its bytes (None if not given).

    The arrays are cut out and read by NumPy, the rest as JSON: five times as fast as building a Python number for each sample.
    """
    rest, time_ns = _cut_numbers(line, b'"time_ns":[')
    rest, size = _cut_numbers(rest, b'"bytes":[')
    frame = from_json(rest)
    if not isinstance(frame, dict) or "time_ns" not in frame:
        raise _Refused("not a line of the record schema")
    if time_ns is None:
        time_ns = _numbers(frame["time_ns"], "time_ns")
    if size is None and frame.get("bytes") is not None:
        size = _numbers(frame["bytes"], "bytes")
    if size is not None and len(size) != len(time_ns):
        raise _Refused(f"{len(time_ns)} times and {len(size)} byte counts")
    return frame, time_ns, None if size is None else _not_negative(size, "bytes")


def _batch(frame: dict[str, Any], time_ns: SignedNumbers, size: Numbers | None) -> tuple[int, Batch]:
    """Return the cell's number and its samples; _Refused for what is no line of samples."""
    if frame["type"] != "samples" or not SAMPLES_KEYS <= set(frame) <= SAMPLES_KEYS | {"bytes", "missed"}:
        raise _Refused("not a line of samples")
    if type(frame["cell"]) is not int or type(frame["first_index"]) is not int:
        raise _Refused("not a line of samples")
    if not 0 <= frame["first_index"] <= np.iinfo(np.uint32).max - len(time_ns):
        raise _Refused(f"the first index {frame['first_index']} is out of range")
    missed = frame.get("missed", [])
    if not isinstance(missed, list) or any(type(at) is not int or not 0 <= at < len(time_ns) for at in missed):
        raise _Refused(f"missed are not positions among {len(time_ns)} samples")
    times = _not_negative(time_ns, "time_ns")
    return frame["cell"], Batch(Phase(frame["phase"]), frame["first_index"], times, size, tuple(missed))


def _channel(frame: dict[str, Any], time_ns: SignedNumbers, size: Numbers | None) -> tuple[int, ChannelNumbers]:
    """Return the cell's number and what a channel of it did; only one-way times may be negative, within the clocks' error."""
    line = Channel.model_validate({**frame, "time_ns": (), "bytes": None})
    if line.quantity is not Quantity.ONE_WAY:
        _not_negative(time_ns, "time_ns")
    return line.cell, ChannelNumbers(
        source=line.source,
        destination=line.destination,
        flow=line.flow,
        round=line.round,
        quantity=line.quantity,
        time_ns=time_ns,
        bytes=size,
        sent=line.sent,
        lost=line.lost,
    )


def _not_negative(numbers: SignedNumbers, what: str) -> Numbers:
    if len(numbers) and int(numbers.min()) < 0:
        raise _Refused(f"{what} holds {int(numbers.min())}: numbers that are not negative are needed")
    return numbers.view(np.uint64)


def _cut_numbers(line: bytes, mark: bytes) -> tuple[bytes, SignedNumbers | None]:
    """Return the line with the array after `mark` emptied, and the array; the line itself and None if it is not a plain one."""
    begin = line.find(mark) + len(mark)
    end = line.find(b"]", begin)
    if begin < len(mark) or end < 0 or line.count(mark) > 1:
        return line, None
    text = line[begin:end]
    if not text or text.translate(None, DIGITS_AND_COMMAS):
        return line, None
    numbers = np.fromstring(text, dtype=np.uint64, sep=",")
    is_plain = len(numbers) == text.count(b",") + 1 and int(numbers.max()) < MOST_NUMBER
    return (line[:begin] + line[end:], numbers.view(np.int64)) if is_plain else (line, None)


def _numbers(values: object, what: str) -> SignedNumbers:
    """Return a list of whole numbers as an array; _Refused for anything else in it."""
    if not isinstance(values, list):
        raise _Refused(f"{what} is not a list")
    for value in values:
        if type(value) is not int or not -MOST_NUMBER < value < MOST_NUMBER:
            raise _Refused(f"{what} holds {value!r}: whole nanoseconds or bytes are needed")
    return np.array(values, dtype=np.int64)


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    return shortened(f"{place}: {problem['msg']}" if place else str(problem["msg"]))
