"""How importers read what programs print: lines, numbers with their last digit, tables by the names of their columns.

A row that is not wholly what it should be is left out and noted with its line and the reason, and the others are read on. Where a
row has a size, a time and a rate, these must agree: what a megabyte is, is proven by them and not taken from a label.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fabricbench.exchange.imported import ImportedCell
from fabricbench.model import Pattern
from fabricbench.printable import printable
from fabricbench.quantity import decimal_product, last_digit
from fabricbench.record.import_notes import ImportNote, ImportNoteKind

MOST_OF_A_LINE = 120
"""Letters of a line that are shown."""

LONGEST_LINE = 1000
"""Of a line that is read: those of benchmarks have a tenth, and an expression that tries many ways must not meet a long one."""

NS_OF_HALF_US, NS_OF_US, MB, MIB = 2e3, 1e3, 1e6, 2.0**20
"""Half a round trip in us as a whole one in ns; a time in us in ns; bytes of a megabyte of either kind."""

_PLAIN = re.compile(r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_WHOLE = re.compile(r"\d{1,15}")
_DECIMAL_COMMA = re.compile(r"(?P<whole>[+-]?\d+),(?P<decimals>\d+)")

ENDED = re.compile(
    r"cancel+ed|killed|abort|terminat|time ?limit|sig(?:term|kill|segv|int)\b|signal \d|segmentation|out of memory|oom",
    re.IGNORECASE,
)
"""Words of a line that says that the program did not come to its end."""


_INTEGERS = ("BYTE", "CHAR", "SIGNED_CHAR", "UNSIGNED_CHAR", "SHORT", "INT", "LONG", "LONG_LONG", "UNSIGNED")
_OTHERS = ("INT8_T", "INT16_T", "INT32_T", "INT64_T", "FLOAT", "DOUBLE", "C_FLOAT_COMPLEX", "C_DOUBLE_COMPLEX")
DATATYPES = frozenset(f"MPI_{name}" for name in (*_INTEGERS, *_OTHERS))
"""Those that benchmarks offer."""


class RowError(ValueError):
    """Why a row is no result, in words."""


class BelowLastDigitError(RowError):
    """A number that was printed as 0: less than half of its last digit."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line without blanks at its end; the last of a text may lack its end. `number` counts from 1."""

    number: int
    text: str
    has_end: bool = True


def lines_of(text: str, longest: int = LONGEST_LINE) -> list[TextLine]:
    """Return the lines of a text; of one that is longer than any of theirs the beginning, which is then no row."""
    lines = text.split("\n")
    return [
        TextLine(number, line[:longest].rstrip(), number < len(lines)) for number, line in enumerate(lines, start=1)
    ]


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """A number above 0 and what its last printed digit counts."""

    value: float
    step: float

    def times(self, scale: float) -> PrintedNumber:
        """Return it in another unit."""
        return PrintedNumber(decimal_product(self.value, scale), decimal_product(self.step, scale))


def read_number(text: str, what: str, decimals: int | None = None) -> PrintedNumber:
    """Return a number that is finite and above 0, with a decimal point or a comma that can be nothing else; RowError else.

    `decimals` is how many a program prints, whatever the number is: another number of them has lost some, or its point.
    """
    comma = _DECIMAL_COMMA.fullmatch(text) if "," in text else None
    if comma is not None and len(comma["decimals"]) == 3:
        raise RowError(f"{what} is {text!r}, which may be thousands or decimals")
    plain = text.replace(",", ".") if comma is not None else text
    if _PLAIN.fullmatch(plain) is None:
        raise RowError(f"{what} is {text!r}, which is no number")
    if decimals is not None and len(plain.partition(".")[2]) != decimals:
        raise RowError(f"{what} is {text!r}, and is printed with {decimals} decimals")
    value = float(plain)
    if value == 0:
        raise BelowLastDigitError(f"{what} is {text}")
    if not 0 < value < 1e300:
        raise RowError(f"{what} is {text}, and none is")
    return PrintedNumber(value, last_digit(plain))


def read_whole(text: str, what: str) -> int:
    """Return a whole number from 0; RowError where it is none, or one that no count is."""
    if _WHOLE.fullmatch(text) is None:
        raise RowError(f"{what} is {text!r}, which is no whole number")
    return int(text)


SECOND_NS = 1_000_000_000


def unix_ns(text: str, form: str) -> int | None:
    """Return a date that was printed in a form of strptime(3), taken as UTC where it tells no zone; None where it is none."""
    try:
        moment = datetime.strptime(text.strip(), form)  # noqa: DTZ007 - its zone comes next
    except ValueError:
        return None
    seconds = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return int(seconds) * SECOND_NS if seconds > 0 else None


CTIME = "%a %b %d %H:%M:%S %Y"
"""A date as ctime(3) prints it: of the machine's own zone."""


@dataclass
class TextReading:
    """What was read of a text so far: cells in their order, and notes."""

    cells: list[ImportedCell] = field(default_factory=list)
    notes: list[ImportNote] = field(default_factory=list)

    def note(self, kind: ImportNoteKind, line: TextLine | None, text: str = "", why: str = "") -> None:
        """Note something of a line, whose text is shown where none is given."""
        shown = printable(text or (line.text.strip() if line is not None else ""))[:MOST_OF_A_LINE]
        self.notes.append(ImportNote(kind=kind, line=None if line is None else line.number, text=shown, why=why))

    def unknown_test(self, line: TextLine, title: str) -> None:
        """Note a test of which there is no pattern; all of a text are one note, at the line of the first."""
        for place, one in enumerate(self.notes):
            if one.kind is ImportNoteKind.UNKNOWN_TEST:
                names = one.text.split(", ")
                if title not in names:
                    self.notes[place] = one.model_copy(update={"text": ", ".join((*names, printable(title)))})
                return
        self.note(ImportNoteKind.UNKNOWN_TEST, line, title)

    def stray(self, line: TextLine) -> None:
        """Note a line that is no result: one that says that the program was ended, or another program's."""
        if line.text.strip():
            self.note(ImportNoteKind.CUT if ENDED.search(line.text) else ImportNoteKind.STRAY, line)

    def row(self, line: TextLine) -> RowReading:
        """Read a row within: whatever RowError says of it is noted, and no cell of it is kept."""
        return RowReading(self, line)


@dataclass(slots=True)
class RowReading:
    """The reading of a row, for `with`: there are a hundred of them in a text."""

    found: TextReading
    line: TextLine
    before: int = 0

    def __enter__(self) -> None:
        self.before = len(self.found.cells)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, RowError):
            return False
        del self.found.cells[self.before :]
        if isinstance(error, BelowLastDigitError):
            self.found.note(ImportNoteKind.BELOW_LAST_DIGIT, self.line)
        else:
            self.found.note(ImportNoteKind.DAMAGED, self.line, why=str(error))
        return True


Row = Mapping[str, str]
"""The fields of a row by the names of their columns."""


@dataclass
class PrintedTable:
    """Rows below a line of column names, each with as many fields as there are columns.

    `begins` is what a line begins with that was meant as a row, a size mostly: one that is none is damaged, any other line a stray.
    """

    names: Sequence[str]
    begins: re.Pattern[str] = re.compile(r"\s*\d")
    rows: list[tuple[TextLine, Row]] = field(default_factory=list)

    def add(self, line: TextLine, found: TextReading) -> None:
        """Take a line as a row, or note what is wrong with it."""
        fields = line.text.split()
        if self.begins.match(line.text) is None:
            found.stray(line)
        elif len(fields) != len(self.names):
            is_cut = not line.has_end and len(fields) < len(self.names)
            why = f"it has {len(fields)} fields, and the table has {len(self.names)} columns"
            found.note(ImportNoteKind.CUT if is_cut else ImportNoteKind.DAMAGED, line, why="" if is_cut else why)
        elif not line.has_end and self.rows and len(line.text) < len(self.rows[-1][0].text):
            found.note(ImportNoteKind.CUT, line)
        else:
            self.rows.append((line, dict(zip(self.names, fields, strict=True))))


def once_each(rows: Iterable[tuple[TextLine, Row]], column: str, found: TextReading) -> Iterator[tuple[TextLine, Row]]:
    """Yield the rows of a table, of several with one size the first; the others are noted: one of them is not what it says."""
    seen: dict[str, int] = {}
    for line, row in rows:
        first = seen.setdefault(row.get(column, ""), line.number)
        if first == line.number:
            yield line, row
        else:
            found.note(ImportNoteKind.DAMAGED, line, why=f"the table has that size in line {first} already")


def growing(rows: Iterable[tuple[TextLine, Row]], column: str, found: TextReading) -> Iterator[tuple[TextLine, Row]]:
    """Yield the rows of a table whose sizes grow by definition, each size once; the others are noted.

    Where a size does not follow, those stay that are in every longest growing sequence: of two that exclude each other nobody knows
    which is damaged. A row whose size is no number has no place in it, and is left to who reads the row.
    """
    rows = list(rows)
    places = [place for place, (_, row) in enumerate(rows) if _WHOLE.fullmatch(row.get(column, ""))]
    sizes = [int(rows[place][1][column]) for place in places]
    before = _lengths(sizes)
    behind = _lengths([-size for size in reversed(sizes)])[::-1]
    longest = max(before, default=0)
    fitting = [first + last == longest + 1 for first, last in zip(before, behind, strict=True)]
    rivals = Counter(length for length, fits in zip(before, fitting, strict=True) if fits)
    outside = {
        place for place, length, fits in zip(places, before, fitting, strict=True) if not (fits and rivals[length] == 1)
    }
    for place in sorted(outside):
        found.note(ImportNoteKind.DAMAGED, rows[place][0], why="its size is not between those of the rows around it")
    yield from once_each((one for place, one in enumerate(rows) if place not in outside), column, found)


def _lengths(numbers: Sequence[int]) -> list[int]:
    """Return of each number the length of the longest sequence that does not fall and ends with it."""
    ends: list[int] = []
    lengths = []
    for number in numbers:
        place = bisect_right(ends, number)
        ends[place : place + 1] = [number]
        lengths.append(place + 1)
    return lengths


FALLS, FALLS_OF_MANY = 3.0, 10.0
"""Times that a message of a larger size is faster, or a stream of one slower, that is doubted; operations of many ranks, whose
algorithm may be another from a size on, by the second."""


def read_rows(
    rows: Iterable[tuple[TextLine, Row]], cell: Callable[[TextLine, Row], ImportedCell], found: TextReading
) -> None:
    """Read the rows of a table, each by `cell`, and note where its time or its rate falls far from one size to the next."""
    before: tuple[TextLine, ImportedCell] | None = None
    for line, row in rows:
        with found.row(line):
            one = cell(line, row)
            found.cells.append(one)
            if before is not None and _falls(before[1], one):
                what = "time" if one.metric.is_time else "rate"
                first = f"line {before[0].number}, {printable(before[0].text.strip())[:MOST_OF_A_LINE]!r}"
                share = "third" if one.pattern in OF_PAIRS else "tenth"
                why = f"a result, though its {what} is less than a {share} of that of the smaller size in {first}"
                found.note(ImportNoteKind.READ_AS, line, why=why)
            before = line, one


OF_PAIRS = (Pattern.PINGPONG, Pattern.STREAM, Pattern.BISTREAM)


def _falls(before: ImportedCell, after: ImportedCell) -> bool:
    grows = before.message_bytes is not None and (after.message_bytes or 0) > before.message_bytes
    is_one_table = before.pattern is after.pattern and before.parameters == after.parameters
    times = FALLS if after.pattern in OF_PAIRS else FALLS_OF_MANY
    return grows and is_one_table and after.values[0] * times < before.values[0]


def check_between(mean: PrintedNumber, least: PrintedNumber | None, most: PrintedNumber | None) -> None:
    """Raise RowError where a mean is not between the smallest and the largest of what it is of, as far as they are known."""
    for bound, is_outside, name in (
        (least, least is not None and mean.value < least.value - mean.step / 2, "smallest"),
        (most, most is not None and mean.value > most.value + mean.step / 2, "largest"),
    ):
        if bound is not None and is_outside:
            beyond = "below" if bound is least else "above"
            raise RowError(f"its mean, {mean.value:.12g}, is {beyond} the {name} that it is of, {bound.value:.12g}")


@dataclass(frozen=True)
class Checked:
    """A row in which a rate was printed beside what it can be computed from: `bytes_s` of payload, known to `relative`."""

    line: TextLine
    bytes_s: float
    relative: float
    rate: PrintedNumber

    def fits(self, unit: float) -> bool:
        """Whether the rate is that number of units, as far as the digits of both tell."""
        expected = self.bytes_s / unit
        return abs(expected - self.rate.value) <= self.rate.step + expected * (self.relative + EXACT)


EXACT = 1e-3
"""By which a program's own arithmetic may be off, relative: kinds of megabytes differ by fifty times as much."""


def proven_unit(rows: Sequence[Checked], units: Sequence[float] = (MB, MIB)) -> tuple[float, list[Checked]]:
    """Return the unit that most rows are in, and the rows that do not fit it; ValueError where no row fits any."""
    if not rows:
        return units[0], []
    fitting = {unit: [row for row in rows if row.fits(unit)] for unit in units}
    unit = max(units, key=lambda one: len(fitting[one]))
    if not fitting[unit]:
        first = rows[0]
        kinds = " or ".join(f"{one / MIB:g} x 2^20" if one != MB else "10^6" for one in units)
        raise ValueError(
            f"line {first.line.number}: {printable(first.line.text.strip())[:MOST_OF_A_LINE]!r} has a rate that its size and its "
            f"time do not give, whether its unit is {kinds} bytes"
        )
    return unit, [row for row in rows if not row.fits(unit)]


def unit_words(unit: float) -> str:
    """Return `10^6 bytes`."""
    return "10^6 bytes" if unit == MB else "2^20 bytes"


MOST_NOTES = 5
"""Of a kind, that are told one by one."""


def fewer(notes: Sequence[ImportNote]) -> Iterator[ImportNote]:
    """Yield the first notes of each kind, the last of them with how many more there are."""
    for kind in ImportNoteKind:
        mine = [one for one in notes if one.kind is kind]
        yield from mine[: MOST_NOTES - 1]
        if len(mine) >= MOST_NOTES:
            yield mine[MOST_NOTES - 1].model_copy(update={"more": len(mine) - MOST_NOTES})
