"""NetPIPE 3 and 5: `np.out`, and what version 3 shows while it runs. The layer is not told: NPtcp and NPmpi write alike.

A time is half a round trip, of version 3 that of the best of its trials, of version 5 the mean of them. A Mbps of version 3 is 2^20
bit/s, a Gbps of version 5 is 10^9; size and time of every row prove it (https://netpipe.cs.ksu.edu).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from fabricbench.exchange.imported import Imported, ImportedCell
from fabricbench.exchange.rows import (
    LONGEST_LINE,
    MIB,
    Checked,
    Row,
    RowError,
    TextLine,
    TextReading,
    growing,
    lines_of,
    read_number,
    read_rows,
    read_whole,
)
from fabricbench.model import Pattern
from fabricbench.record.import_notes import ImportNoteKind

NAME = "netpipe"
TITLE = "NetPIPE"

FILE_3 = re.compile(r" *(?P<size>\d+) +(?P<rate>\d+\.\d{6}) +(?P<time>\d+\.\d{8})")
SHOWN_3 = re.compile(
    r" *\d+: +(?P<size>\d+) bytes +\d+ times --> +(?P<rate>\d+\.\d\d) Mbps in +(?P<time>\d+\.\d\d) usec"
)
FILE_5 = re.compile(r" *(?P<size>\d+) +(?P<rate>\d+\.\d+) +(?P<least>\d+\.\d+) +(?P<most>\d+\.\d+) +(?P<time>\d+\.\d+)")
ROWS = ((FILE_3, "3", MIB / 8, 1.0), (SHOWN_3, "3", MIB / 8, 1e-6), (FILE_5, "5", 1e9 / 8, 1e-6))
"""How rows look, of which version, with the bytes of its unit of rates, and its unit of times in seconds."""

SIZE = "size"

LEAST_SHARE = 0.5
"""Of the lines of a table that nothing names, rows whose size, time and rate belong together."""

MOST_LOOKED_AT = 40
"""Of the lines of a text, to know whose it is."""

STATISTICS = {"3": "the best of its trials", "5": "the mean of its trials"}


def is_it(text: str) -> bool:
    """Tell by columns whose rates are those of the sizes and the times beside them."""
    if re.search(r"^ *\d+(?:: +\d+ bytes +\d+ times -->| +\d+\.\d+ +\d+\.\d)", text, re.MULTILINE) is None:
        return False
    lines = [line for line in lines_of(text) if line.text.strip()][:MOST_LOOKED_AT]
    return any(sum(_is_row(line, kind) for line in lines) > LEAST_SHARE * len(lines) for kind in range(len(ROWS)))


def _is_row(line: TextLine, kind: int) -> bool:
    pattern, _, unit, scale = ROWS[kind]
    row = pattern.fullmatch(line.text) if len(line.text) < 200 else None
    try:
        return row is not None and _checked(line, row.groupdict(), scale).fits(unit)
    except RowError:
        return False


def _checked(line: TextLine, row: Row, scale: float) -> Checked:
    size = read_whole(row[SIZE], "the size")
    time, rate = read_number(row["time"], "the time"), read_number(row["rate"], "the rate")
    return Checked(line, size / (time.value * scale), time.step / time.value, rate)


def read(text: str) -> Imported:
    """Return a round trip for each size of the table; what is no row of it is noted."""
    lines = lines_of(text)
    kind = max(range(len(ROWS)), key=lambda one: sum(ROWS[one][0].fullmatch(line.text) is not None for line in lines))
    pattern, version, unit, scale = ROWS[kind]
    found = TextReading()
    for table in _tables(lines, pattern, found):
        read_rows(growing(table, SIZE, found), partial(_cell, unit, scale), found)
    if version == "5":
        found.note(ImportNoteKind.READ_AS, None, "usec", "half a round trip: files of --bidir and --stream look alike")
    return Imported(
        program="NetPIPE",
        version=version,
        statistic=f"{STATISTICS[version]}; twice the half round trip it prints",
        cells=tuple(found.cells),
        notes=tuple(found.notes),
    )


def _tables(
    lines: Sequence[TextLine], pattern: re.Pattern[str], found: TextReading
) -> list[list[tuple[TextLine, Row]]]:
    """Return the rows of each run, which begins with the sizes that the first began with; lines that are no rows are noted."""
    rows: list[tuple[TextLine, Row]] = []
    width = LONGEST_LINE
    for line in lines:
        row = pattern.fullmatch(line.text)
        if row is None:
            _note_other(line, found)
        elif not line.has_end and len(line.text) < width:  # digits may be missing
            found.note(ImportNoteKind.CUT, line)
        else:
            rows.append((line, row.groupdict()))
            width = len(line.text)
    sizes = [row[SIZE] for _, row in rows]
    begins = [place for place in range(1, len(rows)) if sizes[place : place + 2] == sizes[:2]]
    return [rows[begin:end] for begin, end in pairwise([0, *begins, len(rows)])]


def _cell(unit: float, scale: float, line: TextLine, row: Row) -> ImportedCell:
    if not _checked(line, row, scale).fits(unit):
        raise RowError("its rate is not that of its size and its time")
    time = read_number(row["time"], "the time").times(2e9 * scale)
    return ImportedCell(Pattern.PINGPONG, read_whole(row[SIZE], "the size"), (time.value,), time.step, ranks=2)


SAID = re.compile(
    r"Sending output to|Send and receive buffers|\(A bug in Linux|Now starting the main loop|Clock resolution|Opening|Start"
)


def _note_other(line: TextLine, found: TextReading) -> None:
    """Note a line that is no row: what was meant as one, or a stranger's; the program's own remarks are neither."""
    if re.match(r"\s*\d+[ :.]", line.text):
        kind = ImportNoteKind.DAMAGED if line.has_end else ImportNoteKind.CUT
        found.note(kind, line, why="it is no size with a rate and a time" if line.has_end else "")
    elif SAID.match(line.text) is None:
        found.stray(line)
