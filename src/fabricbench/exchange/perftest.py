"""perftest 4 to 6 (ib_send_lat, ib_write_bw and so on), text and JSON: latencies and bandwidths of verbs, over layer rdma.

A latency is half a round trip, but of RDMA read and of atomics, which have no answer: there it is the whole operation. Its typical
value is the median. A bandwidth is of 2^20 bytes under both names, MB and MiB, or of 10^9 bits, which message size and message rate
of its row prove; both directions of a bidirectional one are added (https://github.com/linux-rdma/perftest).

JSON (`--out_json`) is a document a test, which has the last size alone and tells no unit. Before version 24.01 nothing in it was
quoted, and a comma followed the last value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from fabricbench.exchange.imported import CellParameters, Imported, ImportedCell
from fabricbench.exchange.rows import (
    MIB,
    NS_OF_HALF_US,
    NS_OF_US,
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
from fabricbench.model import Layer, Pattern, RdmaDoor
from fabricbench.record.import_notes import ImportNoteKind

NAME = "perftest"
TITLE = "perftest"

TEST = re.compile(r"\s{4,}(?P<words>[A-Z][\w ]*?) (?P<kind>BW|Latency) Test *")
SETTING = re.compile(r"(?P<name>Connection type|Number of qps) *: *(?P<value>\w+)")
COLUMNS = re.compile(r"\s*#bytes\s+#iterations\b")
COLUMN = re.compile(
    r"#bytes|#iterations|BW peak\[[\w/]+\]|BW average\[[\w/]+\]|MsgRate\[Mpps\]|t_\w+\[\w+\]|99(?:\.9)?% percentile\[\w+\]"
    r"|tps average|CPU_Util\[%\]"
)
CONNECTION, PAIRS = "Connection type", "Number of qps"
CONNECTIONS = frozenset({"RC", "UC", "UD", "XRC", "DC", "SRD", "RawEth"})
WAITING = re.compile(r"\* Waiting for client to connect")
RULE = re.compile(r"\s*-{20,}")

SIZE, RATE_COLUMN, MESSAGE_RATE = "#bytes", "BW average", "MsgRate[Mpps]"
UNITS: Mapping[str, float] = {"MB/sec": MIB, "MiB/sec": MIB, "Gb/sec": 1e9 / 8}
"""Bytes in each of what a column says."""
TIMES = ("t_typical[usec]", "t_avg[usec]")
"""The median; the mean, where a run of a set duration prints it alone."""
ORDERED = ("t_min[usec]", "t_typical[usec]", "t_max[usec]")
DECIMALS, DECIMALS_OF_MESSAGES = 2, 6
LOW = re.compile(r"0\.0\d{5}")
"""A rate below 0.1 Gb/s, which has more decimals."""


@dataclass(frozen=True)
class Verb:
    """What is done: by which door a latency and a bandwidth take it, and whether an answer makes two of it a round trip."""

    latency: RdmaDoor
    bandwidth: RdmaDoor
    has_answer: bool = True


VERBS = {
    "Send": Verb(RdmaDoor.SEND, RdmaDoor.SEND),
    "RDMA_Write": Verb(RdmaDoor.WRITE_POLL, RdmaDoor.WRITE_PLAIN),
    "RDMA_Read": Verb(RdmaDoor.READ, RdmaDoor.READ, has_answer=False),
    "Atomic": Verb(RdmaDoor.ATOMIC, RdmaDoor.ATOMIC, has_answer=False),
}
BOTH_WAYS, POST_LIST = " Bidirectional", " Post List"
COMPARE_AND_SWAP, FETCH_AND_ADD = " CMP_AND_SWAP", " FETCH_AND_ADD"
OF_VERBS = (BOTH_WAYS, POST_LIST, COMPARE_AND_SWAP, FETCH_AND_ADD)
"""What may follow the name of a verb."""

IS_JSON = re.compile(r'\s*\{\s*"?test_info"?\s*:')
TOKEN = re.compile(r'\s*(?:(?P<sign>[{}:,])|"(?P<quoted>[^"\n]*)"|(?P<bare>[^\s{}:,"][^{}:,"\n]*))')
COLON = re.compile(r'[\w"] *:(?P<blank> *)(?=[\w".{-])')
OF_JSON: Mapping[str, str] = {
    "MsgSize": SIZE,
    "n_iterations": "#iterations",
    "MsgRate": MESSAGE_RATE,
    **{name: f"{name}[usec]" for name in ("t_min", "t_max", "t_typical", "t_avg")},
}
"""What the columns of a table are called whose values JSON has under these names."""


@dataclass
class _Test(PrintedTable):
    """One start of a program: its title, its settings, and its rows."""

    words: str = ""
    is_latency: bool = False
    is_of_server: bool = False
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def verb(self) -> Verb | None:
        """What it does; None of what has no door here."""
        words = self.words
        for more in OF_VERBS:
            words = words.replace(more, "")
        return VERBS.get(words.strip())

    @property
    def parameters(self) -> CellParameters:
        """What else tells its results apart."""
        connection, pairs = (self.settings.get(name, "") for name in (CONNECTION, PAIRS))
        verb = self.verb
        door = RdmaDoor.SEND if verb is None else verb.latency if self.is_latency else verb.bandwidth
        return (
            *([("door", door.value)] if door is not RdmaDoor.SEND else []),
            *([("connection", connection)] if connection not in ("", "RC") else []),
            *([("qps", int(pairs))] if pairs.isdigit() and int(pairs) != 1 else []),
            *([("post", "list")] if POST_LIST in f" {self.words}" else []),
            *([("atomic", "compare-and-swap")] if COMPARE_AND_SWAP in self.words else []),
        )


def is_it(text: str) -> bool:
    """Tell by a title and its columns, or by the beginning of its JSON."""
    if IS_JSON.match(text):
        return "n_iterations" in text
    lines = [line for line in text.split("\n") if len(line) < 200]
    return any(map(TEST.fullmatch, lines)) and any(map(COLUMNS.match, lines))


def read(text: str) -> Imported:
    """Return the results of all tests of a text; ValueError where the unit of a rate is none that its rows allow."""
    found = TextReading()
    tests = list(_of_json(text, found)) if IS_JSON.match(text) else _tests(text, found)
    if any(not one.is_of_server for one in tests) and any(one.is_of_server for one in tests):
        found.note(ImportNoteKind.READ_AS, None, "server", "the same measurement as its client's, which alone is read")
        tests = [one for one in tests if not one.is_of_server]
    if any(not test.is_latency and MESSAGE_RATE not in test.names and test.rows for test in tests):
        found.note(
            ImportNoteKind.READ_AS, None, "MB/sec", "2^20 bytes a second, as all its versions do; no row can prove it"
        )
    if any(not {CONNECTION, PAIRS} <= test.settings.keys() for test in tests):
        found.note(
            ImportNoteKind.READ_AS,
            None,
            "a test that does not tell them",
            "one of a reliable connection and one queue pair",
        )
    for test in tests:
        read_rows(growing(test.rows, SIZE, found), partial(_cell, test), found)
    return Imported(
        program="perftest",
        version="of unknown version",
        statistic="latency: the median, twice the half round trip it prints (of read and atomic as it is); bandwidth: the average",
        cells=tuple(found.cells),
        notes=tuple(found.notes),
    )


def _tests(text: str, found: TextReading) -> list[_Test]:
    """Return the tests of a text that have a door here, each with its rows."""
    tests: list[_Test] = []
    test, is_open, is_of_server = None, False, False
    for line in lines_of(text):
        if title := TEST.fullmatch(line.text):
            test = _Test((), words=title["words"], is_latency=title["kind"] == "Latency", is_of_server=is_of_server)
            is_open, is_of_server = False, False
            if test.verb is None:
                found.unknown_test(line, f"{title['words']} {title['kind']}")
            else:
                tests.append(test)
        elif WAITING.search(line.text):
            is_of_server = True
        elif COLUMNS.match(line.text) and test is not None:
            test.names, is_open = COLUMN.findall(line.text), True
        elif RULE.match(line.text):
            is_open = False
        elif line.text.strip().startswith("Remote results"):
            test, is_open = None, False
        elif is_open and test is not None and line.text:
            test.add(line, found)
        else:
            _take_other(line, test, found)
    return tests


Document = Mapping[tuple[str, str], tuple[str, int]]
"""By section and name: a value as it is written, and its line."""


def _documents(text: str, found: TextReading) -> Iterator[Document]:
    """Yield each document of a text that is JSON, or nearly; what is no pair of a name and a value is noted."""
    document: dict[tuple[str, str], tuple[str, int]] = {}
    depth, section, name, is_value, is_behind, line, position = 0, "", "", False, False, 1, 0
    for token in TOKEN.finditer(text):
        line, position = line + text.count("\n", position, token.end()), token.end()
        sign, word = token["sign"], (token["bare"] or "").strip() if token["quoted"] is None else token["quoted"]
        if sign == "{":
            depth, section, name, is_value = depth + 1, name, "", False
        elif sign == ":":
            is_value = True
        elif sign is None and is_value:
            document.setdefault((section, name), (word, line))
            name, is_value, is_behind = "", False, True
        elif name or (sign is None and is_behind):
            found.note(
                ImportNoteKind.DAMAGED, TextLine(line, name or word), why="it is not one of the values of its JSON"
            )
            name, is_behind = "" if sign else word, False
        elif sign is None:
            name = word
        is_behind = is_behind and sign not in (",", "{", "}")
        if sign == "}":
            depth, section = depth - 1, ""
        if sign == "}" and depth <= 0:
            yield document
            document, depth = {}, 0
    if document:
        found.note(ImportNoteKind.CUT, TextLine(line, "its JSON does not end"))
        yield document


def _of_json(text: str, found: TextReading) -> Iterator[_Test]:
    """Yield the test of each document that has a door here, its result as the row of a table."""
    if len({one["blank"] for one in COLON.finditer(text)}) > 1:
        found.note(
            ImportNoteKind.READ_AS, None, "its JSON", "that of perftest, though not all colons are printed alike"
        )
    for document in _documents(text, found):
        of_section: dict[str, dict[str, str]] = {"test_info": {}, "results": {}}
        for (section, name), (value, _) in document.items():
            of_section.setdefault(section, {})[name] = value
        told, results = of_section["test_info"], of_section["results"]
        first = min((number for _, number in document.values()), default=1)
        line = TextLine(
            document.get(("results", "MsgSize"), ("", first))[1], str(told.get("test", "a document without a test"))
        )
        words, _, kind = told.get("test", "").removesuffix("_Test").rpartition("_")
        for more in OF_VERBS:
            words = words.replace(more.replace(" ", "_"), more)
        test = _Test((), words=words, is_latency=kind == "Latency")
        if kind not in ("BW", "Latency") or test.verb is None:
            found.unknown_test(line, f"{words} {kind}".strip())
            continue
        test.settings = {
            name: told[name.replace(" ", "_")] for name in (CONNECTION, PAIRS) if name.replace(" ", "_") in told
        }
        _note_connection(line, test.settings, found)
        with found.row(line):
            row = _row_of_json(test, line, results)
            test.names = tuple(row)
            test.rows.append((line, row))
        yield test


def _row_of_json(test: _Test, line: TextLine, results: Mapping[str, str]) -> Row:
    """Return the results of a document as a row of the table that the program prints beside it."""
    row = {column: results[name] for name, column in OF_JSON.items() if name in results}
    lacking = next((name for name in ("MsgSize", "n_iterations") if name not in results), None)
    if lacking is not None:
        raise RowError(f"its JSON has no {lacking}")
    return row if test.is_latency else {**row, f"{RATE_COLUMN}[{_unit_of_json(line, results)}]": results["BW_average"]}


def _unit_of_json(line: TextLine, results: Mapping[str, str]) -> str:
    """Return the unit of a bandwidth, which its size and its messages a second prove."""
    lacking = next((name for name in ("BW_average", "MsgRate") if name not in results), None)
    if lacking is not None:
        raise RowError(f"its JSON has no {lacking}, and without it nobody knows the unit of its bandwidth")
    messages = read_number(results["MsgRate"], "MsgRate", DECIMALS_OF_MESSAGES)
    rate = read_number(results["BW_average"], "BW_average")
    size = read_whole(results["MsgSize"], "MsgSize")
    checked = Checked(line, size * messages.value * 1e6, messages.step / messages.value, rate)
    unit = next((name for name in ("MiB/sec", "Gb/sec") if checked.fits(UNITS[name])), None)
    if unit is None:
        raise RowError("its rate is not that of its size and its messages a second, in 2^20 bytes or 10^9 bits")
    return unit


def _note_connection(line: TextLine, settings: Mapping[str, str], found: TextReading) -> None:
    if settings.get(CONNECTION, "RC") not in CONNECTIONS:
        why = f"a connection of a type that is not known, of {settings[CONNECTION]}"
        found.note(ImportNoteKind.READ_AS, line, why=why)


def _take_other(line: TextLine, test: _Test | None, found: TextReading) -> None:
    """Take the settings from a line outside of a table, and note a row that nothing gives columns to."""
    if re.match(r"\s*\d+\s+\d+\s+\d", line.text) and (test is None or not test.rows):
        found.note(ImportNoteKind.DAMAGED, line, why="no line above it says what its columns are")
    elif test is not None:
        settings = {one["name"]: one["value"] for one in SETTING.finditer(line.text)}
        _note_connection(line, settings, found)
        test.settings |= settings


def _cell(test: _Test, line: TextLine, row: Row) -> ImportedCell:
    size = read_whole(row[SIZE], "the size")
    read_whole(row["#iterations"], "the number of iterations")
    result, statistic = (_time(test, row), _statistic(row)) if test.is_latency else (_rate(line, size, row), ())
    is_both = BOTH_WAYS in f" {test.words}"
    return ImportedCell(
        pattern=Pattern.PINGPONG if test.is_latency else Pattern.BISTREAM if is_both else Pattern.STREAM,
        message_bytes=size,
        values=(result.value,),
        printed_step=result.step,
        layer=Layer.RDMA,
        ranks=2,
        parameters=(*test.parameters, *statistic),
    )


def _time(test: _Test, row: Row) -> PrintedNumber:
    known = TIMES if ORDERED[0] not in row else TIMES[:1]  # beside a smallest one there is a median
    column = next((one for one in known if one in row), None)
    if column is None:
        raise RowError("its table has no time in microseconds")
    times = [read_number(row[name], name, DECIMALS).value for name in ORDERED if name in row]
    if times != sorted(times):
        raise RowError("t_min, t_typical and t_max do not follow one another")
    has_answer = test.verb is None or test.verb.has_answer
    return read_number(row[column], column, DECIMALS).times(NS_OF_HALF_US if has_answer else NS_OF_US)


def _statistic(row: Row) -> CellParameters:
    return () if TIMES[0] in row else (("statistic", "mean"),)


def _rate(line: TextLine, size: int, row: Row) -> PrintedNumber:
    """Return a bandwidth in bit/s, whose unit is that of its column if the rate of messages beside it says the same."""
    column = next((one for one in row if one.startswith(RATE_COLUMN)), "")
    unit = UNITS.get(column.removeprefix(RATE_COLUMN).strip("[]"))
    if unit is None:
        raise RowError(f"its table has no {RATE_COLUMN} in {', '.join(UNITS)}")
    rate = read_number(row[column], column, None if LOW.fullmatch(row[column]) else DECIMALS)
    if MESSAGE_RATE in row:
        messages = read_number(row[MESSAGE_RATE], MESSAGE_RATE, DECIMALS_OF_MESSAGES)
        checked = Checked(line, size * messages.value * 1e6, messages.step / messages.value, rate)
        if not checked.fits(unit):
            raise RowError(f"its rate is not that of its size and its messages a second in {column}")
    return rate.times(8 * unit)
