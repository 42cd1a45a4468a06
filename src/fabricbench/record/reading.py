"""Reads a record: streams over its lines, keeps every complete cell, and tells exactly what could not be used.

A cell is complete when its opening line, its samples and its end are all there and the end counts as many samples as were read.
A line that is damaged (cut short, garbled, not of the schema) costs the cell it stands in and nothing else; it is never
guessed at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from pydantic_core import from_json

from fabricbench.model import Model
from fabricbench.record.lines import LINE_ADAPTER, Cell, CellEnd, CellFailed, Footer, Header, Phase

Numbers = NDArray[np.uint64]

SAMPLES_MARK = b'"time_ns"'
"""What only a line of samples has; such lines are most of a record and take a shorter way."""


class Damage(Model):
    """Something in a record that could not be used. `line` counts from 1; `lost_samples` were in lines read before."""

    line: int
    reason: str
    cell: int | None = None
    lost_samples: int = 0


@dataclass
class Batch:
    """Samples of one phase, in order; `bytes` is None where each moved the cell's `bytes_per_sample`."""

    phase: Phase
    first_index: int
    time_ns: Numbers
    bytes: Numbers | None


@dataclass
class CellRecord:
    """A cell as it was recorded: `end` or `failed` is set once it is complete; `cell` is None where it failed before it opened."""

    cell: Cell | None
    batches: list[Batch] = field(default_factory=list)
    end: CellEnd | None = None
    failed: CellFailed | None = None

    @property
    def id(self) -> int:
        """The number of the cell in the plan."""
        for line in (self.cell, self.failed):
            if line is not None:
                return line.id if isinstance(line, Cell) else line.cell
        raise AssertionError

    def count(self, phase: Phase) -> int:
        """Return how many samples of `phase` there are."""
        return sum(len(batch.time_ns) for batch in self.batches if batch.phase is phase)


@dataclass
class Record:
    """Everything usable in one record, and what was not."""

    header: Header | None = None
    footer: Footer | None = None
    cells: list[CellRecord] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether the record has its beginning and its end and nothing in it is damaged."""
        return self.header is not None and self.footer is not None and not self.damage


def read_record(path: Path) -> Record:
    """Read the record at `path`; damage is in the result, only an OSError is raised."""
    with path.open("rb") as lines:
        return parse_record(lines)


def parse_record(lines: Iterable[bytes]) -> Record:
    """Read a record from its lines; never raises on what they hold."""
    parser = _Parser()
    number = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            parser.take(number, line)
    return parser.finish(number)


class _Refused(Exception):  # noqa: N818 - never leaves this module
    """A line that cannot be used, and why."""


class _Parser:
    """The state between two lines: which cells are open, which are spoilt by damage and wait for their end."""

    def __init__(self) -> None:
        self.record = Record()
        self.open: dict[int, CellRecord] = {}
        self.spoilt: set[int] = set()
        self.finished: set[int] = set()

    def take(self, number: int, line: bytes) -> None:
        try:
            if not line.endswith(b"\n"):
                raise _Refused("the file ends in the middle of this line")  # noqa: TRY301
            if SAMPLES_MARK in line:
                self._take_samples(_batch(line))
            else:
                self._take_line(LINE_ADAPTER.validate_json(line))
        except _Refused as refused:
            self._spoil(number, str(refused))
        except ValidationError as error:
            self._spoil(number, f"not a line of the record schema: {_first_problem(error)}")
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            self._spoil(number, f"not a line of the record schema: {error}")

    def finish(self, last_line: int) -> Record:
        for cell in self.open.values():
            self._lose(cell, last_line, f"cell {cell.id} has no end: the record was cut short")
        if self.record.header is None and not self.record.damage:
            self.record.damage.append(Damage(line=1, reason="the record has no header"))
        if self.record.footer is None:
            self.record.damage.append(Damage(line=last_line, reason="the record has no footer: it was cut short"))
        return self.record

    def _spoil(self, number: int, reason: str) -> None:
        """Note the damage; cells that are open now may miss the samples of this line, so they cannot be called complete."""
        self.record.damage.append(Damage(line=number, reason=reason))
        for cell in self.open.values():
            self._lose(cell, number, f"cell {cell.id} is damaged by line {number}")
        self.spoilt |= set(self.open)
        self.open.clear()

    def _lose(self, cell: CellRecord, number: int, reason: str) -> None:
        lost = sum(len(batch.time_ns) for batch in cell.batches)
        self.record.damage.append(Damage(line=number, reason=reason, cell=cell.id, lost_samples=lost))

    def _take_line(self, line: Header | Cell | CellEnd | CellFailed | Footer | object) -> None:
        match line:
            case Header():
                if self.record.header is not None:
                    raise _Refused("a second header")
                self.record.header = line
            case Cell():
                if line.id in self.open or line.id in self.finished:
                    raise _Refused(f"cell {line.id} opens twice")
                self.open[line.id] = CellRecord(line)
            case CellEnd():
                self._end(line)
            case CellFailed():
                self._fail(line)
            case Footer():
                self.record.footer = line
            case _:
                raise _Refused("a line that has no place here")

    def _end(self, end: CellEnd) -> None:
        cell = self.open.pop(end.cell, None)
        if cell is None:
            self._refuse_unless_spoilt(end.cell, "ends")
            return
        for phase, stated in ((Phase.WARMUP, end.warmup), (Phase.MEASURED, end.measured)):
            if cell.count(phase) != stated:
                self.spoilt.add(end.cell)
                raise _Refused(f"cell {end.cell} ends with {stated} {phase} samples, {cell.count(phase)} were read")
        cell.end = end
        self._finish_cell(cell)

    def _fail(self, failed: CellFailed) -> None:
        if failed.cell in self.finished:
            raise _Refused(f"cell {failed.cell} fails after its end")
        cell = self.open.pop(failed.cell, None) or CellRecord(None)
        cell.failed = failed
        self._finish_cell(cell)

    def _finish_cell(self, cell: CellRecord) -> None:
        self.record.cells.append(cell)
        self.finished.add(cell.id)

    def _take_samples(self, numbered: tuple[int, Batch]) -> None:
        number, batch = numbered
        cell = self.open.get(number)
        if cell is None:
            self._refuse_unless_spoilt(number, "has samples")
            return
        before = cell.batches[-1] if cell.batches else None
        if before is not None and before.phase is batch.phase:
            after = before.first_index + len(before.time_ns)
            if batch.first_index < after:
                raise _Refused(f"samples of cell {number} begin at {batch.first_index}, at least {after} is needed")
        cell.batches.append(batch)

    def _refuse_unless_spoilt(self, cell: int, what: str) -> None:
        if cell not in self.spoilt:
            raise _Refused(f"cell {cell} {what} but is not open")


SAMPLES_KEYS = {"type", "cell", "phase", "first_index", "time_ns"}
DIGITS_AND_COMMAS = b"0123456789,"
MOST_DIGITS = 18
"""Numbers of more digits may not fit 64 bits; 10^18 ns are 30 years."""


def _batch(line: bytes) -> tuple[int, Batch]:
    """Read a line of samples and return the cell's number with them.

    The arrays are cut out and read by NumPy, the rest as JSON: five times as fast as building a Python number for each sample.
    """
    rest, time_ns = _cut_numbers(line, b'"time_ns":[')
    rest, size = _cut_numbers(rest, b'"bytes":[')
    frame = from_json(rest)
    if not isinstance(frame, dict) or not SAMPLES_KEYS <= set(frame) <= SAMPLES_KEYS | {"bytes"}:
        raise _Refused("not a line of samples")
    if frame["type"] != "samples" or type(frame["cell"]) is not int or type(frame["first_index"]) is not int:
        raise _Refused("not a line of samples")
    if time_ns is None:
        time_ns = _numbers(frame["time_ns"], "time_ns")
    if size is None and frame.get("bytes") is not None:
        size = _numbers(frame["bytes"], "bytes")
    if size is not None and len(size) != len(time_ns):
        raise _Refused(f"{len(time_ns)} times and {len(size)} byte counts")
    if not 0 <= frame["first_index"] <= np.iinfo(np.uint32).max - len(time_ns):
        raise _Refused(f"the first index {frame['first_index']} is out of range")
    return frame["cell"], Batch(Phase(frame["phase"]), frame["first_index"], time_ns, size)


def _cut_numbers(line: bytes, mark: bytes) -> tuple[bytes, Numbers | None]:
    """Return the line with the array after `mark` emptied, and the array; the line itself and None if it is not a plain one."""
    begin = line.find(mark) + len(mark)
    end = line.find(b"]", begin)
    if begin < len(mark) or end < 0 or line.count(mark) > 1:
        return line, None
    text = line[begin:end]
    if not text or text.translate(None, DIGITS_AND_COMMAS):
        return line, None
    numbers = np.fromstring(text, dtype=np.uint64, sep=",")
    is_plain = len(numbers) == text.count(b",") + 1 and int(numbers.max()) < 10**MOST_DIGITS
    return (line[:begin] + line[end:], numbers) if is_plain else (line, None)


def _numbers(values: object, what: str) -> Numbers:
    """Return a list of whole numbers that are not negative as an array; _Refused for anything else in it."""
    if not isinstance(values, list):
        raise _Refused(f"{what} is not a list")
    for value in values:
        if type(value) is not int or not 0 <= value < 10**MOST_DIGITS:
            raise _Refused(f"{what} holds {value!r}: whole nanoseconds or bytes that are not negative are needed")
    return np.array(values, dtype=np.uint64)


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])
