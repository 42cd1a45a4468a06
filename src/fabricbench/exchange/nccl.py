"""nccl-tests and rccl-tests (all_reduce_perf and so on): the collectives of NCCL, out of place and in place, as such of layer mpi.

A time is that of the operation, the mean over iterations and ranks. A GB is 10^9 bytes; algbw is the size over the time, busbw that
times the factor of the operation for its ranks: both prove the row. The size is that of the whole buffer, which is told here as MPI
counts it: a block of it where each rank has one (https://github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from fabricbench.exchange.imported import CellParameters, Imported, ImportedCell
from fabricbench.exchange.rows import (
    NS_OF_US,
    BelowLastDigitError,
    Checked,
    PrintedNumber,
    PrintedTable,
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
from fabricbench.model import Layer, Pattern
from fabricbench.pattern_facts import Load
from fabricbench.patterns import PATTERNS, bus_factor
from fabricbench.record.import_notes import DATATYPE, ImportNoteKind

NAME = "nccl"
TITLE = "nccl-tests"

VERSION = re.compile(r"(?:# )?(?P<program>[nr]ccl-tests)(?: version|: Version) (?P<version>[\w.:-]+).*")
BEGIN = re.compile(r"# nThread +\d+ +nGpus +\d+ .*")
AGGREGATED = re.compile(r"\bagg iters: (?P<number>\d+)\b")
GRAPH = re.compile(r"\bgraph: (?P<number>\d+)\b")
BLOCKING = re.compile(r"# Blocking Enabled")
STARTING = re.compile(r"# Collective test starting: *(?P<name>\w+?)_perf(?:_mpi)?")
COMMAND = re.compile(r"\b(?P<name>[a-z]+(?:_[a-z]+)*)_perf(?:_mpi)?\b")
RANK = re.compile(r"# +Rank +(?P<rank>\d+) .*\bPid\b.*")
COLUMNS = re.compile(r"# +size +count +type\b.* algbw +busbw\b.*")
END = re.compile(r"# Out of bounds values *: *(?P<wrong>\d+) (?:OK|FAILED)\b.*")
OF_NCCL = re.compile(r".*\bNCCL (?:INFO|version)\b")

SIZE, COUNT, TYPE, OPERATION, ROOT = "size", "count", "type", "redop", "root"
OF_HALF = ("#wrong", "error", "i_min", "i_max", "i_p99", "i_cv%")
"""Columns that may be there for each half besides its time and bandwidths: of the operation out of place, and in place."""
IN_PLACE = " in place"
"""What is behind the names of the second ones."""

GB = 1e9
BYTES: Mapping[str, int] = {
    **dict.fromkeys(("int8", "uint8", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "double"), 8),
}
TESTS: Mapping[str, Pattern] = {
    "all_reduce": Pattern.ALLREDUCE,
    "all_gather": Pattern.ALLGATHER,
    "alltoall": Pattern.ALLTOALL,
    "broadcast": Pattern.BCAST,
    "gather": Pattern.GATHER,
    "reduce": Pattern.REDUCE,
    "reduce_scatter": Pattern.REDUCE_SCATTER_BLOCK,
    "scatter": Pattern.SCATTER,
    "sendrecv": Pattern.SENDRECV,
}
OPERATIONS = ("sum", "prod", "max", "min", "avg", "mulsum")
"""What reductions compute; `none` of all others."""
REDUCTIONS = (Pattern.ALLREDUCE, Pattern.REDUCE, Pattern.REDUCE_SCATTER_BLOCK)
ROOTED = (Pattern.BCAST, Pattern.GATHER, Pattern.REDUCE, Pattern.SCATTER)

DECIMALS_OF_TIME = {0: (2,), 1: (2,), 2: (2,), 3: (1, 2), 4: (1, 2), 5: (0, 1)}
"""By digits before the point, as versions print a time; of more there are none, or it has an exponent."""
TELLING = 100
"""Steps of the last digit from which on a bus bandwidth tells how many ranks there were."""


@dataclass
class _Table(PrintedTable):
    """What stands below one line of column names, and what the lines above it say of it."""

    begin: TextLine = field(default_factory=lambda: TextLine(0, ""))
    title: str = ""
    is_told: bool = False
    ranks: int | None = None
    parameters: CellParameters = ()
    wrong: int | None = None
    """Values out of bounds that its end counts; None without an end."""

    @property
    def halves(self) -> tuple[str, ...]:
        """What is behind the names of the columns of each half."""
        return tuple(behind for behind in ("", IN_PLACE) if f"time{behind}" in self.names)


@dataclass
class _Text:
    """Where the reading of a text stands: what the lines before said that holds for the next table."""

    found: TextReading = field(default_factory=TextReading)
    tables: list[_Table] = field(default_factory=list)
    table: _Table | None = None
    title: str = ""
    is_told: bool = False
    ranks: list[int] = field(default_factory=list)
    parameters: dict[str, int] = field(default_factory=dict)
    versions: dict[str, None] = field(default_factory=dict)
    programs: dict[str, None] = field(default_factory=dict)

    def take(self, line: TextLine) -> None:
        """Read one line."""
        text = line.text
        if COLUMNS.fullmatch(text):
            self._begin_table(line)
        elif end := END.fullmatch(text):
            self._end(int(end["wrong"]))
        elif self._take_head(text):
            return
        elif self.table is not None:
            if text and not text.startswith("#") and OF_NCCL.match(text) is None:
                self.table.add(line, self.found)
        elif command := COMMAND.search(text):
            self.title, self.is_told = command["name"], False
        elif re.match(r"\s*\d+ +\d+ +[a-z]\w+ ", text):
            self.found.note(ImportNoteKind.DAMAGED, line, why="no line above it says what its columns are")

    def _take_head(self, text: str) -> bool:
        """Read a line of a test's head; tell whether it is one."""
        if version := VERSION.fullmatch(text):
            self.versions[version["version"]], self.programs[version["program"]] = None, None
        elif starting := STARTING.fullmatch(text):
            self.table, self.title, self.is_told = None, starting["name"], True
        elif BEGIN.fullmatch(text):
            self._begin_test(text)
        elif BLOCKING.match(text):
            self.parameters["blocking"] = 1
        elif rank := RANK.fullmatch(text):
            self.ranks.append(int(rank["rank"]))
        else:
            return False
        return True

    def _begin_test(self, text: str) -> None:
        self.table, self.ranks, self.parameters = None, [], {}
        for name, one, usual in (("aggregated", AGGREGATED, 1), ("graph", GRAPH, 0)):
            number = one.search(text)
            if number is not None and int(number["number"]) != usual:
                self.parameters[name] = int(number["number"])

    def _begin_table(self, line: TextLine) -> None:
        names = _names(line.text)
        if not names:
            self.found.note(ImportNoteKind.DAMAGED, line, why="its columns are not those of any version")
            self.table = None
            return
        is_whole = self.ranks == list(range(len(self.ranks)))
        if not is_whole:
            why = f"a head that does not tell the number of ranks: it lists {', '.join(map(str, self.ranks))}"
            self.found.note(ImportNoteKind.READ_AS, line, "its list of ranks", why)
        self.table = _Table(
            names,
            begin=line,
            title=self.title,
            is_told=self.is_told,
            ranks=len(self.ranks) if self.ranks and is_whole else None,
            parameters=tuple(self.parameters.items()),
        )
        self.tables.append(self.table)

    def _end(self, wrong: int) -> None:
        if self.tables and self.tables[-1].wrong is None:
            self.tables[-1].wrong = wrong
        self.table, self.title, self.is_told = None, "", False


def _names(text: str) -> tuple[str, ...]:
    """Return the names of a table's columns, `in place` behind those of its second half; none where they are no known ones."""
    names: list[str] = []
    for name in text.removeprefix("#").split():
        names.append(name if name not in names else f"{name}{IN_PLACE}")
    if "timestamp" in names:
        names[names.index("timestamp") :] = ["day", "hour"]
    halves = ("", IN_PLACE) if f"time{IN_PLACE}" in names else ("",)
    needed = {SIZE, COUNT, TYPE, *(f"{name}{behind}" for name in ("time", "algbw", "busbw") for behind in halves)}
    others = {f"{name}{behind}" for name in OF_HALF for behind in halves}
    is_known = needed <= set(names) <= {*needed, *others, OPERATION, ROOT, "day", "hour"} and len(set(names)) == len(
        names
    )
    return tuple(names) if is_known else ()


def is_it(text: str) -> bool:
    """Tell by its head and the names of its columns."""
    lines = [line.rstrip() for line in text.split("\n") if line.startswith("#") and len(line) < 300]
    return any(map(BEGIN.fullmatch, lines)) and any(map(COLUMNS.fullmatch, lines))


def read(text: str) -> Imported:
    """Return the results of all tests of a text."""
    state = _Text()
    for line in lines_of(text):
        state.take(line)
    for table in state.tables:
        _read_table(table, state.found)
    if any(table.wrong is None for table in state.tables):
        state.found.note(ImportNoteKind.CUT, None, "there is no line '# Out of bounds values'")
    return Imported(
        program=", ".join(state.programs) or "nccl-tests",
        version=", ".join(state.versions) or "of unknown version",
        statistic="the mean over iterations and ranks",
        cells=tuple(state.found.cells),
        notes=tuple(state.found.notes),
    )


def _read_table(table: _Table, found: TextReading) -> None:
    pattern = _pattern(table, found)
    if pattern is None:
        return
    if table.wrong and "error" in table.names:
        why = f"its end counts {table.wrong} values out of bounds, and its rows do not tell which are wrong"
        found.note(ImportNoteKind.DAMAGED, table.begin, why=why)
        return
    if not _has_its_ranks(table, pattern):
        why = f"the bus bandwidths below it are not those of the {table.ranks} ranks that the head lists"
        found.note(ImportNoteKind.DAMAGED, table.begin, why=why)
        return
    rows = []
    for line, row in table.rows:
        with found.row(line):
            if not _fits(pattern, table.ranks, row):
                raise RowError("its size is not that of its elements, its root and its operation")
            if read_whole(row[SIZE], "the size") == 0:
                raise RowError("a call that moves nothing is no result of the network")
            rows.append((line, row))
    unchecked = [behind for behind in table.halves if any(row.get(f"#wrong{behind}") == "N/A" for _, row in rows)]
    if unchecked:
        of_half = "" if len(unchecked) == len(table.halves) else f" of the results{unchecked[0] or ' out of place'}"
        found.note(ImportNoteKind.READ_AS, table.begin, f"N/A{of_half}", "right: nobody checked the results")
    for group in _sweeps(rows):
        in_order = list(growing(group, SIZE, found))
        for behind in table.halves:
            read_rows(in_order, partial(_cell, table, pattern, behind), found)


def _sweeps(rows: Sequence[tuple[TextLine, Row]]) -> Iterator[list[tuple[TextLine, Row]]]:
    """Yield the rows of each datatype, operation and root: a program that sweeps them begins with the smallest size each time."""
    of_sweep: dict[tuple[str, ...], list[tuple[TextLine, Row]]] = {}
    for line, row in rows:
        of_sweep.setdefault(tuple(row.get(name, "") for name in (TYPE, OPERATION, ROOT)), []).append((line, row))
    yield from of_sweep.values()


def _pattern(table: _Table, found: TextReading) -> Pattern | None:
    """Return what a table is of: as it is told, or as a command above it says or its columns allow alone; None, noted, else."""
    if table.is_told:
        if table.title not in TESTS:
            found.unknown_test(table.begin, table.title)
        return TESTS.get(table.title)
    fitting = {
        name: pattern
        for name, pattern in TESTS.items()
        if 2 * sum(_fits(pattern, table.ranks, row) for _, row in table.rows) > len(table.rows)
    }
    if table.title in fitting:
        return fitting[table.title]
    if len(fitting) == 1:
        ((name, pattern),) = fitting.items()
        found.note(ImportNoteKind.READ_AS, table.begin, "a table of which no line tells the test", f"one of {name}")
        return pattern
    known = f", and its rows may be of {' or '.join(fitting)}" if fitting else ""
    found.note(ImportNoteKind.DAMAGED, table.begin, why=f"no line above it tells which test it is of{known}")
    return None


def _is_of_blocks(pattern: Pattern) -> bool:
    return PATTERNS[pattern].load is Load.BLOCK_OF_EACH


def _fits(pattern: Pattern, ranks: int | None, row: Row) -> bool:
    """Whether a row is one of a test: its operation, its root, and its size by its elements."""
    if not (row[SIZE].isdecimal() and row[COUNT].isdecimal() and row[TYPE] in BYTES):
        return False
    size, of_count = int(row[SIZE]), int(row[COUNT]) * BYTES[row[TYPE]]
    is_of_size = size == of_count
    if _is_of_blocks(pattern):
        is_of_size = size == of_count * ranks if ranks is not None else of_count > 0 and size % of_count == 0
    operations = OPERATIONS if pattern in REDUCTIONS else ("none",)
    is_rooted = row.get(ROOT, "-1") != "-1"
    return is_of_size and row.get(OPERATION, "none") in operations and is_rooted == (pattern in ROOTED)


def _factor(pattern: Pattern, ranks: int) -> float:
    """Return what busbw is times algbw; that of sendrecv is 1."""
    factor = bus_factor(pattern, ranks)
    return 1.0 if factor is None else factor


def _has_its_ranks(table: _Table, pattern: Pattern) -> bool:
    """Whether most of the bus bandwidths that can tell it are those of the number of ranks that the head lists."""
    fitting = []
    for _, row in table.rows:
        try:
            rate = _rate(row, "busbw")
            if table.ranks is not None and rate.value >= TELLING * rate.step:
                fitting.append(_bus(table.begin, row, "", _factor(pattern, table.ranks)).fits(GB))
        except RowError:
            continue
    return 2 * sum(fitting) >= len(fitting)


def _bus(line: TextLine, row: Row, behind: str, factor: float) -> Checked:
    """Return a row's bus bandwidth, or with a factor of 1 what algbw has to be, beside what follows from its size and its time."""
    time, size = _time(row[f"time{behind}"]), read_whole(row[SIZE], "the size")
    return Checked(line, size * factor / time.value * 1e6, time.step / time.value, _rate(row, f"busbw{behind}"))


def _cell(table: _Table, pattern: Pattern, behind: str, line: TextLine, row: Row) -> ImportedCell:
    if not re.fullmatch(r"0|N/A", row.get(f"#wrong{behind}", "0")):
        raise RowError(f"{row[f'#wrong{behind}']} of the values{behind} are wrong")
    time, size = _time(row[f"time{behind}"]), read_whole(row[SIZE], "the size")
    blocks = size // (int(row[COUNT]) * BYTES[row[TYPE]])
    ranks = blocks if table.ranks is None and _is_of_blocks(pattern) else table.ranks
    alone = Checked(line, size / time.value * 1e6, time.step / time.value, _rate(row, f"algbw{behind}"))
    if not alone.fits(GB):
        raise RowError(f"its algbw{behind} is not that of its size and its time")
    if ranks is not None and not _bus(line, row, behind, _factor(pattern, ranks)).fits(GB):
        raise RowError(f"its busbw{behind} is not that of its size, its time and {ranks} ranks")
    return ImportedCell(
        pattern=pattern,
        message_bytes=size // blocks if _is_of_blocks(pattern) else size,
        values=(time.times(NS_OF_US).value,),
        printed_step=time.times(NS_OF_US).step,
        layer=Layer.MPI,
        ranks=ranks,
        parameters=(*table.parameters, *_parameters(pattern, row), *([("place", "in")] if behind else [])),
    )


def _parameters(pattern: Pattern, row: Row) -> CellParameters:
    """Return what of a row sets its cell apart: a datatype that computes or is not the usual one, another operation or root."""
    operation, root = row.get(OPERATION, "none"), row.get(ROOT, "-1")
    is_reduction = pattern in REDUCTIONS
    return (
        *([(DATATYPE, row[TYPE])] if is_reduction or row[TYPE] != "float" else []),
        *([("op", operation)] if is_reduction and operation != "sum" else []),
        *([("root", read_whole(root, "the root"))] if pattern in ROOTED and root != "0" else []),
    )


def _time(text: str) -> PrintedNumber:
    """Return a time in us, which has as many decimals as its digits before the point leave room for."""
    time = read_number(text, "its time")
    whole, _, decimals = text.partition(".")
    if "," in text or ("e" not in text and len(decimals) not in DECIMALS_OF_TIME.get(len(whole), (0,))):
        raise RowError(f"its time is {text!r}, which is not printed as any version does")
    return time


def _rate(row: Row, name: str) -> PrintedNumber:
    """Return a rate in GB/s; one that was printed as 0 is less than its last digit."""
    try:
        return read_number(row[name], name)
    except BelowLastDigitError:
        return PrintedNumber(0.0, 0.01)
