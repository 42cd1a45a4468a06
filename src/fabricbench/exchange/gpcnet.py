"""GPCNeT 1 (network_test, network_load_test): latencies and bandwidths of rings, alone and beside congestors, tests of their own.

A latency is that of a step in which every rank sends two messages, over two: no half of a round trip. A MiB is 2^20 bytes, and a
bandwidth is one rank's. Means and 99th percentiles (of a bandwidth the first) are figures each. The congestion impact factors of
the key results are the ratios of these: they prove the rows, and are no further results (https://github.com/netbench/GPCNET).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fabricbench.exchange.imported import Imported, ImportedLoad
from fabricbench.exchange.rows import PrintedNumber, RowError, TextLine, TextReading, lines_of, read_number, read_whole
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.provenance import BY
from fabricbench.record.workload_cells import FigureOfMerit, Measures

NAME = "gpcnet"
TITLE = "GPCNeT"

HEAD = re.compile(r"\s*Network(?P<load>Load)? Tests v(?P<version>[\w.]+)")
RANKS = re.compile(r"\s*Test with (?P<ranks>\d+) MPI ranks \((?P<nodes>\d+) nodes\)")
BAR = re.compile(r"\+-[-+]*\+")
TITLES = re.compile(
    r"\| +(?P<title>Isolated Network|Isolated Congestion|Network Tests running with Congestion) Tests(?P<more>.*) +\|"
)
NAMES = re.compile(r"\| +Name \|.*")
OF_KEY = re.compile(r"\| +\| +Avg \| +99% \|")
ROW = re.compile(r"\| *(?P<name>\S.*?) \( *(?P<bytes>\d+) B\) \|(?P<fields>.+)\|")

ISOLATED, CONGESTED, CONGESTORS, KEY = (
    "the table without congestors",
    "the table with congestors",
    "congestors",
    "key results",
)
MEAN, TAIL = "Avg", "99%"
STATISTICS: Mapping[str, str] = {MEAN: "mean", TAIL: "p99"}
DECIMALS = 1

LATENCY = FigureOfMerit(name="latency", unit="s", better="lower", told_in="us", measures=Measures.NETWORK)
BANDWIDTH = FigureOfMerit(name="bandwidth", unit="MiB/s/rank", better="higher", measures=Measures.NETWORK)
UNITS: Mapping[str, tuple[FigureOfMerit, float]] = {"usec": (LATENCY, 1e-6), "MiB/s/rank": (BANDWIDTH, 1.0)}
"""By the unit of a row: the figure, and how much of its unit one is."""
TESTS = (
    "RR Two-sided Lat",
    "RR Get Lat",
    "RR Two-sided BW",
    "RR Put BW",
    "RR Two-sided BW+Sync",
    "Nat Two-sided BW",
    "Multiple Allreduce",
    "Multiple Alltoall",
)


@dataclass(frozen=True)
class _Row:
    """A row: the test with its size, and what stands in each column of its table."""

    line: TextLine
    name: str
    size: int
    fields: Mapping[str, str]

    @property
    def title(self) -> str:
        """What it is called, as it is printed."""
        return f"{self.name} ({self.size} B)"

    @property
    def unit(self) -> str:
        """The unit of its numbers."""
        return self.fields.get("Units", "")

    def number(self, column: str) -> PrintedNumber:
        """Return a number of it; RowError where it is none."""
        return read_number(self.fields.get(column, ""), f"{column} of {self.title}", DECIMALS)


@dataclass
class _Run:
    """One start of the program: its head, and the rows of each kind of table; `kind` and `names` are the table's that is read."""

    head: TextLine
    version: str
    is_load: bool
    ranks: int | None = None
    nodes: int | None = None
    rows: dict[str, list[_Row]] = field(default_factory=dict)
    kind: str = ""
    names: tuple[str, ...] = ()
    width: int = 0

    def take(self, line: TextLine, found: TextReading) -> None:
        """Read one line."""
        text = line.text
        if of_ranks := RANKS.fullmatch(text):
            self.ranks, self.nodes = int(of_ranks["ranks"]), int(of_ranks["nodes"])
        elif text.startswith("+"):
            is_bar = BAR.fullmatch(text) is not None
            if not is_bar:
                found.note(ImportNoteKind.DAMAGED, line, why="it is no line between rows")
            if not is_bar or "+" not in text[1:-1]:  # the one above a title
                self.kind, self.names = "", ()
            self.width = len(text)
        elif title := TITLES.fullmatch(text):
            self.kind, self.names = _kind(title), ()
        elif NAMES.fullmatch(text):
            self.names = tuple(one.strip() for one in text.strip("|").split("|"))
        elif self.kind == KEY and OF_KEY.fullmatch(text):
            self.names = ("Name", MEAN, TAIL)
        elif text.startswith("|"):
            with found.row(line):
                self._add(_row(line, self.names, self.width))

    def _add(self, row: _Row) -> None:
        rows = self.rows.setdefault(self.kind, [])
        first = next((one.line.number for one in rows if one.title == row.title), None)
        if first is not None and self.kind in (ISOLATED, CONGESTED):
            raise RowError(f"{self.kind} has that test in line {first} already")
        rows.append(row)


def is_it(text: str) -> bool:
    """Tell by its head."""
    return any(HEAD.fullmatch(line.rstrip()) for line in text.split("\n") if len(line) < 200)


def read(text: str) -> Imported:
    """Return the results of each run of a text."""
    found, versions = TextReading(), []
    loads: list[ImportedLoad] = []
    for run in _runs(text, found):
        versions.append(run.version)
        loads += _loads(run, found)
        if KEY not in run.rows and run.is_load:
            found.note(ImportNoteKind.CUT, run.head, f"{run.head.text.strip()}: no key results follow")
    return Imported(
        program="GPCNeT",
        version=", ".join(dict.fromkeys(versions)),
        statistic="of each test the mean and the 99th percentile over ranks and iterations",
        loads=tuple(loads),
        notes=tuple(found.notes),
    )


def _runs(text: str, found: TextReading) -> list[_Run]:
    """Return the runs of a text."""
    runs: list[_Run] = []
    for line in lines_of(text):
        if head := HEAD.fullmatch(line.text):
            runs.append(_Run(line, head["version"], is_load=head["load"] is not None))
        elif runs:
            runs[-1].take(line, found)
    return runs


def _kind(title: re.Match[str]) -> str:
    if title["title"] == "Isolated Congestion":
        return CONGESTORS
    if title["title"] == "Isolated Network":
        return ISOLATED
    return KEY if "Key Results" in title["more"] else CONGESTED


def _row(line: TextLine, names: Sequence[str], width: int) -> _Row:
    row = ROW.fullmatch(line.text)
    if row is None or len(line.text) != width:
        raise RowError("it has not the shape of a row")
    fields = [one.strip() for one in row["fields"].split("|")]
    if len(fields) != len(names) - 1:
        raise RowError(f"it has {len(fields) + 1} fields, and its table has {len(names)} columns")
    return _Row(line, row["name"], read_whole(row["bytes"], "the size"), dict(zip(names[1:], fields, strict=True)))


def _loads(run: _Run, found: TextReading) -> Iterator[ImportedLoad]:
    """Yield the figures of a run whose rows agree with each other."""
    if run.ranks is None or run.nodes is None:
        found.note(ImportNoteKind.DAMAGED, run.head, why="no line below it tells its ranks and nodes")
        return
    for row in run.rows.get(CONGESTORS, ()):
        found.unknown_test(row.line, row.title)
    denied = _denied(run, found)
    for kind in (ISOLATED, CONGESTED):
        for row in run.rows.get(kind, ()):
            if row.name not in TESTS:
                found.unknown_test(row.line, row.title)
                continue
            of_row: list[ImportedLoad] = []
            with found.row(row.line):
                _check_order(row)
                of_row = [_load(run, kind, row, column) for column in STATISTICS if (row.title, column) not in denied]
            yield from of_row


def _check_order(row: _Row) -> None:
    """Raise RowError where the worst is better than the mean."""
    mean, tail = row.number(MEAN), row.number(TAIL)
    is_wrong = mean.value > tail.value if row.unit == "usec" else mean.value < tail.value
    if is_wrong:
        raise RowError("its 99 % is better than its mean")


def _load(run: _Run, kind: str, row: _Row, column: str) -> ImportedLoad:
    if row.unit not in UNITS:
        raise RowError(f"its unit is {row.unit!r}, needed {' or '.join(UNITS)}")
    figure, scale = UNITS[row.unit]
    number = row.number(column).times(scale)
    return ImportedLoad(
        workload=row.name,
        ranks=run.ranks,
        parameters=(
            ("bytes", row.size),
            ("nodes", run.nodes or 0),
            *([("beside", CONGESTORS)] if kind == CONGESTED else []),
            ("statistic", STATISTICS[column]),
            (BY, NAME),
        ),
        figure=figure.found(number.value, number.step),
    )


def _denied(run: _Run, found: TextReading) -> set[tuple[str, str]]:
    """Return the tests and columns whose impact factor is not the ratio of their values in both tables; each is noted."""
    of_kind = {kind: {row.title: row for row in run.rows.get(kind, ())} for kind in (ISOLATED, CONGESTED)}
    denied: set[tuple[str, str]] = set()
    for key in run.rows.get(KEY, ()):
        alone, beside = (of_kind[kind].get(key.title) for kind in (ISOLATED, CONGESTED))
        for column in STATISTICS:
            with found.row(key.line):
                if alone is not None and beside is not None and not _is_ratio(key, alone, beside, column):
                    denied.add((key.title, column))
                    raise RowError(f"its {column} is not the ratio of its values in both tables, which are left out")
    return denied


def _is_ratio(key: _Row, alone: _Row, beside: _Row, column: str) -> bool:
    """Whether a printed factor, `1.4X`, is that of two values as they are printed."""
    text = key.fields.get(column, "")
    if not text.endswith("X"):
        raise RowError(f"its {column} is {text!r}, which is no factor")
    factor = float(text[:-1]) if re.fullmatch(r"\d+\.\dX", text) else -1.0
    one, other = alone.number(column), beside.number(column)
    ratio = other.value / one.value if alone.unit == "usec" else one.value / other.value
    slack = 0.05 + ratio * 0.5 * (one.step / one.value + other.step / other.value) + 1e-9
    return abs(ratio - factor) <= slack
