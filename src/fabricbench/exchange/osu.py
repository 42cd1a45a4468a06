"""OSU Micro-Benchmarks, MPI, as text of version 4 to 7: latency, bandwidth, bidirectional bandwidth, collectives, barrier.

A latency is half a round trip, the mean of its iterations; an MB is 10^6 bytes; a collective's time is the mean over its iterations
and over ranks, each call behind a barrier (https://mvapich.cse.ohio-state.edu/benchmarks/).

A table has rows of one width (`%-10d%18.2f` and more fields), by which a row is found again behind a warning that lacks its end of
line. Other lines among them are of MPI or of the batch system.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from fabricbench.exchange.imported import Imported, ImportedCell
from fabricbench.exchange.rows import (
    DATATYPES,
    LONGEST_LINE,
    BelowLastDigitError,
    PrintedNumber,
    Row,
    RowError,
    TextLine,
    TextReading,
    check_between,
    growing,
    read_number,
    read_rows,
    read_whole,
)
from fabricbench.model import Layer, Pattern
from fabricbench.record.import_notes import DATATYPE, ImportNoteKind

NAME = "osu"
TITLE = "OSU Micro-Benchmarks"

HEAD = "# OSU "
"""Begins a test, one that is not known here as well: what stands below it is none of the test before."""
KNOWN_HEAD = re.compile(r"# OSU MPI (?P<title>.+?) Test v(?P<version>\S+)")
DATATYPE_LINE = re.compile(r"# Datatype: *(?P<name>\w+)")

NS_OF_LATENCY, NS_OF_OPERATION, BIT_S_OF_MB_S = 2e3, 1e3, 8e6
"""Half a round trip in us as a whole one in ns; a call in us in ns; 10^6 bytes a second in bit/s."""

TIME, RATE = re.compile(r"(?:Avg )?Latency ?\(us\)"), re.compile(r"Bandwidth ?\(MB/s\)")
"""The columns that hold the result, as the versions call them."""
LEAST, MOST = re.compile(r"Min Latency ?\(us\)"), re.compile(r"Max Latency ?\(us\)")
UNIT = re.compile(r"(?:Latency|Bandwidth) ?\((?P<unit>[^()]{1,40})\)")
SIZE = "Size"
# Two blanks part names; a name that fills its field has one behind it.
COLUMN_NAMES = re.compile(r"Size|\S+(?: \S+)*? ?\([^)]*\)|[A-Z]\S+")

TESTS: dict[str, tuple[Pattern, re.Pattern[str], float]] = {
    "Latency": (Pattern.PINGPONG, TIME, NS_OF_LATENCY),
    "Bandwidth": (Pattern.STREAM, RATE, BIT_S_OF_MB_S),
    "Bi-Directional Bandwidth": (Pattern.BISTREAM, RATE, BIT_S_OF_MB_S),
    "All-to-All Personalized Exchange Latency": (Pattern.ALLTOALL, TIME, NS_OF_OPERATION),
    "Allgather Latency": (Pattern.ALLGATHER, TIME, NS_OF_OPERATION),
    "Allreduce Latency": (Pattern.ALLREDUCE, TIME, NS_OF_OPERATION),
    "Barrier Latency": (Pattern.BARRIER, TIME, NS_OF_OPERATION),
    "Broadcast Latency": (Pattern.BCAST, TIME, NS_OF_OPERATION),
    "Gather Latency": (Pattern.GATHER, TIME, NS_OF_OPERATION),
    "Reduce Latency": (Pattern.REDUCE, TIME, NS_OF_OPERATION),
    "Scatter Latency": (Pattern.SCATTER, TIME, NS_OF_OPERATION),
}
OF_TWO_RANKS = (Pattern.PINGPONG, Pattern.STREAM, Pattern.BISTREAM)
REDUCTIONS = (Pattern.ALLREDUCE, Pattern.REDUCE)
"""They compute with their datatype: whatever it is, it is part of the test. Others only move it."""

BYTES = "MPI_CHAR"
"""What every version moves unless it is told otherwise: it needs no name."""

LOST_ITS_POINT = re.compile(r"\d+|\d+\.[eE].*|\+.*")
"""A result that is no time and no rate as they are printed."""
PLAIN = re.compile(r"\d+\.\d+")
WITH_POINT = re.compile(r"\d*\.\d+|[+-]?(?:nan|inf)", re.IGNORECASE)
"""A result as it is printed, always with decimals: an exit code has none."""


def is_it(text: str) -> bool:
    """Tell by the line that every test of theirs begins with."""
    return any(
        KNOWN_HEAD.match(line) for line in text.split("\n") if line.startswith(HEAD) and len(line) < LONGEST_LINE
    )


def read(text: str) -> Imported:
    """Return the results of all tests in a text, several one after the other included; ValueError names what cannot be read."""
    found = TextReading()
    tables = list(_tables(text, found))
    if not tables and not found.notes:
        raise ValueError('no line "# OSU MPI ... Test v..." is in it')
    for table in tables:
        table.read(found)
    datatypes = tuple(dict.fromkeys(table.datatype for table in tables if table.datatype))
    for one in datatypes:
        if one not in DATATYPES:
            found.note(ImportNoteKind.READ_AS, None, one, "a datatype, and no known one has that name")
    return Imported(
        program="OSU Micro-Benchmarks",
        version=", ".join(dict.fromkeys(table.version for table in tables)),
        statistic="the mean of the iterations",
        cells=tuple(found.cells),
        datatypes=datatypes,
        notes=tuple(found.notes),
    )


@dataclass
class _Table:
    """What stands below one line of column names: its lines that are no remarks, each with its number, and if it ended."""

    title: str
    version: str
    datatype: str = ""
    names: tuple[str, ...] = ()
    lines: list[TextLine] = field(default_factory=list)

    def read(self, found: TextReading) -> None:
        """Read the results, and note what is none."""
        read_rows(growing(self._rows(found), SIZE, found), lambda _, row: self._cell(row), found)

    def _rows(self, found: TextReading) -> list[tuple[TextLine, Row]]:
        """Return the rows, those behind another text on their lines included; other lines are noted."""
        shaped = [(line, self._row(line.text)) for line in self.lines]
        texts = [line.text for line, row in shaped if row is not None]
        width = Counter(map(len, texts)).most_common(1)[0][0] if texts else 0
        sizes = {row.get(SIZE) for _, row in shaped if row is not None}
        column = TESTS[self.title][1]
        results = [self._of_column(row, column) for _, row in shaped if row is not None]
        plain = [result for result in results if PLAIN.fullmatch(result)]
        decimals = Counter(map(_decimals, plain)).most_common(1)[0][0] if plain else 0
        rows = []
        for line, row in shaped:
            if row is not None:
                result = self._of_column(row, column)
                if not line.has_end and (len(line.text) != width or len(texts) == 1):
                    found.note(ImportNoteKind.CUT, line)
                elif LOST_ITS_POINT.fullmatch(result) or (_decimals(result) != decimals and PLAIN.fullmatch(result)):
                    found.note(ImportNoteKind.DAMAGED, line, why=f"{result} is not printed as the other results are")
                else:
                    rows.append((line, row))
                continue
            behind = self._row(line.text[-width:]) if width < len(line.text) <= LONGEST_LINE else None
            if behind is not None and behind.get(SIZE) not in sizes:
                sizes.add(behind.get(SIZE))
                found.note(ImportNoteKind.GLUED, line)
                rows.append((line, behind))
            else:
                found.stray(replace(line, text=line.text[:LONGEST_LINE]))
        return rows

    def _row(self, line: str) -> Row | None:
        """Return the fields of a line that is shaped as a row: one for each column, a size first, and decimals in its result."""
        fields = line.split() if len(line) < LONGEST_LINE and line[:1] != "-" else []
        if len(fields) != len(self.names) or not (line[:1].isdigit() or SIZE not in self.names):
            return None
        row = dict(zip(self.names, fields, strict=True))
        has_size = row.get(SIZE, "0").isdecimal()
        return row if has_size and (len(fields) > 1 or WITH_POINT.fullmatch(fields[0]) is not None) else None

    def _of_column(self, row: Row, column: re.Pattern[str]) -> str:
        name = _name_of(self.names, column)
        return "" if name is None else row[name]

    def _cell(self, row: Row) -> ImportedCell:
        pattern, column, scale = TESTS[self.title]
        if row.get("Validation", "Pass") != "Pass":
            raise RowError("a result failed its validation")
        printed = _number(self._of_column(row, column))
        check_between(printed, _bound(self._of_column(row, LEAST)), _bound(self._of_column(row, MOST)))
        result = printed.times(scale)
        is_named = self.datatype and (pattern in REDUCTIONS or self.datatype != BYTES)
        return ImportedCell(
            pattern=pattern,
            message_bytes=read_whole(row.get(SIZE, "0"), "the size"),
            values=(result.value,),
            printed_step=result.step,
            layer=Layer.MPI,
            ranks=2 if pattern in OF_TWO_RANKS else None,
            parameters=((DATATYPE, self.datatype),) if is_named else (),
        )


def _decimals(result: str) -> int:
    return len(result.partition(".")[2])


@lru_cache(maxsize=256)
def _name_of(names: tuple[str, ...], column: re.Pattern[str]) -> str | None:
    """Return which of a table's columns it is: the same for all its rows."""
    return next((name for name in names if column.fullmatch(name)), None)


def _number(text: str) -> PrintedNumber:
    """Return a number as OSU prints one, with a decimal point in every locale."""
    if "," in text:
        raise RowError(f"{text} has a decimal comma, and OSU prints a point")
    return read_number(text, "its result")


def _bound(text: str) -> PrintedNumber | None:
    """Return the smallest or largest time of a row, where it was printed and is more than its last digit can tell."""
    try:
        return _number(text) if text else None
    except BelowLastDigitError:
        return None


def _tables(text: str, found: TextReading) -> Iterator[_Table]:
    """Yield the tables of a text; a test that is not known, of which nobody can say what its numbers are, is noted."""
    lines = text.split("\n")
    table: _Table | None = None
    for number, line in enumerate(lines, start=1):
        if line.startswith(HEAD):
            if table is not None:
                yield table
            table = _begun(TextLine(number, line[:LONGEST_LINE].rstrip()), found)
        elif table is not None:
            datatype = DATATYPE_LINE.match(line[:LONGEST_LINE])
            is_columns = line.startswith("#") and len(line) < LONGEST_LINE and UNIT.search(line)
            if table.lines and (
                datatype is not None or is_columns
            ):  # another datatype: a table without a head of its own
                yield table
                table = _Table(table.title, table.version, table.datatype, table.names)
            if datatype is not None:
                table.datatype = datatype["name"]
            elif is_columns:
                table.names = _names(TextLine(number, line.rstrip()), table.title, found)
            elif table.names and line.strip() and not line.startswith("#"):
                table.lines.append(TextLine(number, line.rstrip(), number < len(lines)))
    if table is not None:
        yield table


def _names(line: TextLine, title: str, found: TextReading) -> tuple[str, ...]:
    """Return the names of a table's columns; none, which is noted, of a table whose results are in another unit."""
    if TESTS[title][1].search(line.text) is not None:
        return tuple(COLUMN_NAMES.findall(line.text.removeprefix("#")))
    units = ", ".join(repr(one["unit"]) for one in UNIT.finditer(line.text))
    found.note(ImportNoteKind.DAMAGED, line, why=f"it begins a table of {title} in the unknown unit {units}")
    return ()


def _begun(line: TextLine, found: TextReading) -> _Table | None:
    """Return the table that a line begins; None of a test that is not known, which is noted."""
    known = KNOWN_HEAD.match(line.text)
    if known is None or known["title"] not in TESTS:
        found.unknown_test(line, line.text.removeprefix(HEAD) if known is None else known["title"])
        return None
    return _Table(known["title"], known["version"])
