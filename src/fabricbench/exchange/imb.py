"""Intel MPI Benchmarks, 3 to 2021: MPI-1 and the collectives of NBC; of other parts (RMA, EXT, IO, MT) the tests are named.

A ping-pong's time is half a round trip; any other is that of the whole operation, the mean over its repetitions of the slowest rank
(t_max, where there is one). Mbytes/sec are of 10^6 bytes since 2018 and of 2^20 before, which size and time of the rows prove
(https://www.intel.com/content/www/us/en/docs/mpi-library/user-guide-benchmarks).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from fabricbench.exchange.imported import CellParameters, Imported, ImportedCell
from fabricbench.exchange.rows import (
    CTIME,
    DATATYPES,
    MB,
    NS_OF_HALF_US,
    NS_OF_US,
    Checked,
    PrintedTable,
    Row,
    RowError,
    TextLine,
    TextReading,
    growing,
    lines_of,
    once_each,
    proven_unit,
    read_number,
    read_rows,
    read_whole,
    unit_words,
    unix_ns,
)
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import metric_of
from fabricbench.record.import_notes import DATATYPE, ImportNoteKind

NAME = "imb"
TITLE = "Intel MPI Benchmarks"

HEAD = re.compile(r"#\s+Intel ?\(R\) MPI Benchmark(?:s| Suite) V?(?P<version>[\w.]+(?: Update \w+)?)", re.IGNORECASE)
BENCHMARK = re.compile(r"# Benchmarking +(?P<name>\S+)")
PROCESSES = re.compile(r"# #processes = (?P<ranks>[1-9]\d{0,8}) *(?P<threads>\(threads.*)?")
OF_REDUCTIONS = re.compile(r"# MPI_Datatype for reductions *: *(?P<name>\w+)")
COLUMNS = re.compile(r"\s*(?:Group +)?#(?:bytes|repetitions)\b")
OWN_SIZES = "# Message lengths were user defined"
"""Their order is that of whoever ran it."""
TEXT_ROW = re.compile(r"\s*\d+ +(?:out-of-mem|int-overflow|time-out)\.")
END = "# All processes entering MPI_Finalize"

DECIMALS = 2
"""Of its times; a rate of messages has none."""

SIZE, MB_S, MESSAGES_S = "#bytes", "Mbytes/sec", "Msg/sec"


@dataclass(frozen=True)
class Test:
    """One of theirs: the pattern that it is, the columns its result may stand in, the first that a table has being taken.

    `messages` of its size are what Mbytes/sec counts in the time.
    """

    pattern: Pattern
    columns: tuple[str, ...] = ("t_max[usec]", "t[usec]")
    scale: float = NS_OF_US
    messages: int | None = None
    parameters: CellParameters = ()
    is_reduction: bool = False


def _collectives() -> Iterator[tuple[str, Test]]:
    of_names = {
        "Allgather": Pattern.ALLGATHER,
        "Allgatherv": Pattern.ALLGATHERV,
        "Alltoall": Pattern.ALLTOALL,
        "Alltoallv": Pattern.ALLTOALLV,
        "Barrier": Pattern.BARRIER,
        "Bcast": Pattern.BCAST,
        "Gather": Pattern.GATHER,
        "Gatherv": Pattern.GATHERV,
        "Scatter": Pattern.SCATTER,
        "Scatterv": Pattern.SCATTERV,
        "Allreduce": Pattern.ALLREDUCE,
        "Reduce": Pattern.REDUCE,
        "Reduce_scatter": Pattern.REDUCE_SCATTER,
        "Reduce_scatter_block": Pattern.REDUCE_SCATTER_BLOCK,
    }
    nonblocking = (("mode", "nonblocking"),)
    for name, pattern in of_names.items():
        is_reduction = "educe" in name
        yield name, Test(pattern, is_reduction=is_reduction)
        of_call = f"I{name[0].lower()}{name[1:]}"
        yield of_call, Test(pattern, ("t_pure[usec]",), parameters=nonblocking, is_reduction=is_reduction)
        alone = (*nonblocking, ("test", "pure"))
        yield f"{of_call}_pure", Test(pattern, parameters=alone, is_reduction=is_reduction)


TESTS: Mapping[str, Test] = {
    "PingPong": Test(Pattern.PINGPONG, ("t[usec]",), NS_OF_HALF_US, messages=1),
    "PingPing": Test(Pattern.PINGPING, ("t[usec]",), messages=1),
    "Sendrecv": Test(Pattern.SENDRECV, messages=2),
    "Exchange": Test(Pattern.EXCHANGE, messages=4),
    "Uniband": Test(Pattern.MESSAGE_RATE, (MESSAGES_S,), scale=1.0),
    **dict(_collectives()),
}

DATE = re.compile(r"# Date +: (?P<time>\S.*)")
OF_OTHER_SOURCE = re.compile(r"(PingPong|PingPing)(AnySource|SpecificSource)")


@dataclass
class _Table(PrintedTable):
    """A table, of which benchmark it is and on how many ranks."""

    title: str = ""
    ranks: int | None = None
    datatype: str = ""


@dataclass
class _Text:
    """Where the reading of a text stands: what the lines before said that holds for the next table."""

    found: TextReading = field(default_factory=TextReading)
    tables: list[_Table] = field(default_factory=list)
    table: _Table | None = None
    title: str = ""
    last_title: str = ""
    ranks: int | None = None
    is_other: bool = False
    datatype: str = ""

    def take(self, line: TextLine) -> None:
        """Read one line."""
        text = line.text
        if benchmark := BENCHMARK.match(text):
            self.table, self.title, self.last_title = None, benchmark["name"], ""
            self.ranks, self.is_other = None, False
        elif processes := PROCESSES.fullmatch(text):
            self.ranks, self.is_other = int(processes["ranks"]), processes["threads"] is not None
        elif "MODE:" in text and text.startswith("#"):
            self.title, self.is_other = self.last_title or self.title, True
        elif datatype := OF_REDUCTIONS.match(text):
            self.datatype = datatype["name"]
        elif COLUMNS.match(text):
            self._begin(line)
        elif self.table is not None and TEXT_ROW.match(text):
            self.found.note(ImportNoteKind.DAMAGED, line, why="the program could not measure it")
        elif self.table is not None and text and not text.startswith("#"):
            self.table.add(line, self.found)
        elif self.table is not None and self.table.rows:
            self.table = None
        elif self.table is None and re.match(r"\s*\d+ +\d", text):
            self.found.note(ImportNoteKind.DAMAGED, line, why="no line above it says which test it is of")

    def _begin(self, line: TextLine) -> None:
        title, self.title, self.last_title = self.title, "", self.title
        if not title:
            self.found.note(ImportNoteKind.STRAY, line)
            self.table = None
            return
        self.table = _Table(tuple(line.text.split()), title=title, ranks=self.ranks, datatype=self.datatype)
        if self.is_other or (title not in TESTS and OF_OTHER_SOURCE.fullmatch(title) is None):
            self.found.unknown_test(line, title)
        else:
            self.tables.append(self.table)


def is_it(text: str) -> bool:
    """Tell by the line that their output begins with."""
    return any(HEAD.match(line) for line in text.split("\n") if line.startswith("#") and len(line) < 200)


def read(text: str) -> Imported:
    """Return the results of all tables of a text; ValueError where nobody can say what a megabyte of theirs is."""
    state = _Text()
    versions, ends, dates = [], 0, []
    for line in lines_of(text):
        if date := DATE.match(line.text):
            dates.append(unix_ns(date["time"], CTIME))
        if head := HEAD.match(line.text):
            versions.append(head["version"].removesuffix(","))
        ends += line.text.startswith(END)
        state.take(line)
    found = state.found
    _check_rates(state.tables, found)
    for table in state.tables:
        test = _test(table.title)
        in_order = growing if SIZE in table.names and OWN_SIZES not in text else once_each
        rows = in_order(table.rows, SIZE if SIZE in table.names else "", found)
        read_rows(rows, partial(_cell, table, test), found)
    datatypes = {table.datatype for table in state.tables if _test(table.title).is_reduction}
    for one in sorted(datatypes - DATATYPES):
        why = f"{one!r}, which is no known one" if one else "one that it does not tell"
        found.note(ImportNoteKind.READ_AS, None, "the datatype of reductions", why)
    if ends < len(versions):
        found.note(ImportNoteKind.CUT, None, f"there is no line {END!r}")
    return Imported(
        program="Intel MPI Benchmarks",
        version=", ".join(dict.fromkeys(versions)),
        statistic="the mean over repetitions, of collectives the slowest rank's; PingPong: twice the half round trip it prints",
        cells=tuple(found.cells),
        started_unix_ns=min(filter(None, dates), default=None),
        notes=tuple(found.notes),
    )


def _test(title: str) -> Test:
    other = OF_OTHER_SOURCE.fullmatch(title)
    if other is None:
        return TESTS[title]
    known = TESTS[other[1]]
    return Test(known.pattern, known.columns, known.scale, known.messages, (("source", other[2]),))


def _cell(table: _Table, test: Test, _: TextLine, row: Row) -> ImportedCell:
    size = read_whole(row[SIZE], "the size") if SIZE in row else 0
    read_whole(row.get("#repetitions", "?"), "the number of repetitions")
    if size == 0 and SIZE in row and test.pattern is not Pattern.PINGPONG:
        raise RowError("a call that moves nothing is no result of the network")
    column = next((one for one in test.columns if one in row), None)
    if column is None:
        raise RowError(f"its table has no column {' or '.join(test.columns)}")
    times = {name: read_number(text, name, DECIMALS).value for name, text in row.items() if name in ORDERED}
    if sorted(times, key=ORDERED.index) != sorted(times, key=lambda name: (times[name], ORDERED.index(name))):
        raise RowError("t_min, t_avg and t_max do not follow one another")
    if len(times) == len(ORDERED) and table.ranks is not None:
        _check_mean(times, table.ranks)
    result = read_number(row[column], column, DECIMALS if column != MESSAGES_S else 0).times(test.scale)
    of_datatype = ((DATATYPE, table.datatype),) if test.is_reduction and table.datatype else ()
    return ImportedCell(
        pattern=test.pattern,
        message_bytes=size,
        values=(result.value,),
        printed_step=result.step,
        layer=Layer.MPI,
        ranks=table.ranks,
        parameters=(*test.parameters, *of_datatype),
    )


def _check_mean(times: Mapping[str, float], ranks: int) -> None:
    """Raise RowError where so many ranks cannot have that mean: one takes the least, one the most."""
    least, mean, most = (times[name] for name in ORDERED)
    slack = 0.1**DECIMALS * (1 + 1e-6) + 1e-9 * mean  # half of the last digit of each
    least_mean = (most + (ranks - 1) * least) / ranks
    most_mean = (least + (ranks - 1) * most) / ranks
    if not least_mean - slack <= mean <= most_mean + slack:
        raise RowError(
            f"{ranks} ranks of which one takes {least:g} and one {most:g} us have a mean of {least_mean:.2f} to {most_mean:.2f}, "
            f"not of {mean:g}"
        )


ORDERED = ("t_min[usec]", "t_avg[usec]", "t_max[usec]")


def _check_rates(tables: list[_Table], found: TextReading) -> None:
    """Prove what a megabyte is by all rows that have a rate, and leave out those whose numbers contradict each other."""
    checked = [one for table in tables for line, row in table.rows if (one := _checked(table, line, row)) is not None]
    unit, wrong = proven_unit(checked)
    for one in wrong:
        found.note(ImportNoteKind.DAMAGED, one.line, why="its rate is not that of its size and its time")
    numbers = {one.line.number for one in wrong}
    for table in tables:
        table.rows = [(line, row) for line, row in table.rows if line.number not in numbers]
    if checked and unit != MB:
        found.note(
            ImportNoteKind.READ_AS, None, MB_S, f"{unit_words(unit)} a second, as sizes and times of its rows show"
        )


def _checked(table: _Table, line: TextLine, row: Row) -> Checked | None:
    """Return a row's rate beside its size and its time, or beside its messages a second; None where it has no such numbers."""
    test = _test(table.title)
    try:
        size, rate = read_whole(row[SIZE], "the size"), read_number(row[MB_S], MB_S)
        if metric_of(test.pattern).is_time:
            time = read_number(row[next(one for one in test.columns if one in row)], "the time")
            return (
                None
                if test.messages is None
                else Checked(line, size * test.messages / time.value * 1e6, time.step / time.value, rate)
            )
        messages = read_number(row[MESSAGES_S], MESSAGES_S)
        return Checked(line, size * messages.value, messages.step / messages.value, rate)
    except (RowError, KeyError, StopIteration):
        return None
