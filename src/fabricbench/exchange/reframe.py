"""ReFrame's performance logs: of version 4 with a header line, between `|` or commas, and of 2 and 3 without, a variable a line.

A line is a run of a test, and each performance variable a figure of merit of it, by its own name: what it means is the test's
matter, and its unit tells whether less or more is better (a reference that is bounded on one side, where the unit does not). A test
that failed because of a figure was measured; one that failed for another reason was not (https://reframe-hpc.readthedocs.io).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from fabricbench.exchange.imported import CellParameters, Imported, ImportedLoad
from fabricbench.exchange.rows import SECOND_NS, RowError, TextLine, TextReading, lines_of, read_number, unix_ns
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.provenance import BY
from fabricbench.record.workload_cells import figure_in
from fabricbench.units import Direction, parse_unit, seconds_in

NAME = "reframe"
TITLE = "ReFrame"

DELIMITERS = ("|", ",")
VALUE, UNIT, REFERENCE, LOWER, UPPER = "_value", "_unit", "_ref", "_lower_thres", "_upper_thres"
"""What the columns of a variable end with."""
OF_VALUES = (VALUE, UNIT, REFERENCE, LOWER, UPPER, "_result")
OF_VARIABLE = "perf"
"""The columns' beginning where each line names its variable in the column `perf_var`."""
ANY_OF = ("result", "job_completion_time", "jobid", "name", "display_name", "version")
"""One of them is among the columns besides the variables'."""
NAMES = ("display_name", "name", "short_name", "unique_name")
"""Columns that name the test, the first being taken."""
OF_A_RUN = frozenset(
    {
        "result",
        "descr",
        "env_vars",
        "environ",
        "exclusive_access",
        "extra_resources",
        "jobid",
        "modules",
        "partition",
        "system",
    }
    | {
        "system:partition",
        "use_multithreading",
        "info",
        "version",
        "hashcode",
        "tags",
        "maintainers",
        "prefix",
        "perf_var",
    }
    | {"stagedir", "outputdir", "executable", "executable_opts", "time_limit", "osuser", "osgroup", "hostname", *NAMES}
)
"""Columns that may differ from run to run of one test, besides those of its job and of its tasks; of others its author knows."""
OURS = frozenset({"launch", "layer", "message_bytes", "receive", "origin", "path"})
"""Columns of the logs that fabricbench exports."""
NOT_TOLD = ("", "null", "None")

OLD = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.+-]+Z?\|reframe (?P<version>\d[^|]*)\|(?P<name>[^|]+?)(?: on (?P<place>[^| ]+))?"
    r"(?: using (?P<environ>[^|]+))?\|(?P<rest>.+)"
)
MEANT_AS_OLD = re.compile(r"\d{4}-\d\d-\d\dT|.*\|reframe \d|.*\|ref=")
OLD_VALUE = re.compile(r"(?P<variable>[^|=]+)=(?P<value>[^|=]*)")
OLD_REFERENCE = re.compile(r"ref=(?P<reference>\S+) \(l=(?P<lower>[^,()]+), u=(?P<upper>[^,()]+)\)")
OLD_RANKS = re.compile(r"num_tasks=(?P<ranks>\d+)")

RESULTS = ("pass", "fail", "xfail", "xpass")
MISSED = ("fail", "xfail")


@dataclass(frozen=True)
class _Value:
    """What a line tells of a variable, as it is written; `reference` has the reference, and its lower and upper bound."""

    variable: str
    value: str
    unit: str
    reference: tuple[str, str, str] = ("", "", "")

    @property
    def bounds(self) -> tuple[float, float]:
        """Between what it must be; infinite where there is no such bound, or no reference."""
        middle, *shares = (_float(one) for one in self.reference)
        if not middle:
            return -math.inf, math.inf
        lower, upper = (None if share is None else middle + share * abs(middle) for share in shares)
        return -math.inf if lower is None else lower, math.inf if upper is None else upper

    @property
    def direction(self) -> Direction | None:
        """Which way is better: by the unit, else by a reference that is bounded on one side; None where neither tells."""
        found = parse_unit(self.unit)
        if found is not None and found.direction is not None:
            return found.direction
        lower, upper = self.bounds
        if math.isinf(lower) == math.isinf(upper):
            return None
        return "lower" if math.isinf(lower) else "higher"


@dataclass(frozen=True)
class _Entry:
    """A line: a run of a test, where and how, and the values that it found."""

    line: TextLine
    test: str
    place: str
    environ: str
    ranks: int | None
    result: str
    values: tuple[_Value, ...]
    ended_unix_ns: int | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    """What stands in columns of the test's own."""

    @property
    def outside(self) -> list[str]:
        """The variables that are not between the bounds of their reference."""
        found = []
        for one in self.values:
            value, (lower, upper) = _float(one.value), one.bounds
            if value is not None and not lower <= value <= upper:
                found.append(one.variable)
        return found


def is_it(text: str) -> bool:
    """Tell by the names of its columns, or by the beginning of an older line."""
    lines = [line.rstrip() for line in text.split("\n", LINES_OF_HEAD) if len(line) < LONGEST_HEADER]
    return any(OLD.fullmatch(line) or _columns(line) for line in lines[:LINES_OF_HEAD])


LONGEST_HEADER, LINES_OF_HEAD = 10_000, 50
"""A test with a hundred variables has such a header line; what comes before it are few lines of whoever joined logs."""


def read(text: str) -> Imported:
    """Return a load for each line and variable."""
    found, loads = TextReading(), []
    versions: dict[str, None] = {}
    entries = list(_entries(text, found, versions))
    usual = _usual(entries)
    places = {entry.place for entry in entries}
    for entry in entries:
        of_line: list[ImportedLoad] = []
        with found.row(entry.line):
            _check_result(entry)
            of_line = list(_loads(entry, usual, found, is_place_told=len(places) > 1))
        if of_line and entry.outside:
            why = f"a result, though {', '.join(entry.outside)} missed its reference"
            found.note(ImportNoteKind.READ_AS, entry.line, why=why)
        loads += of_line
    _note_lines(loads, found)
    _note_columns(entries, found)
    return Imported(
        program="ReFrame",
        version=", ".join(versions) or "of unknown version",
        statistic="what the test's performance variable told, one run a line",
        loads=tuple(loads),
        notes=tuple(found.notes),
    )


def _entries(text: str, found: TextReading, versions: dict[str, None]) -> Iterator[_Entry]:
    """Yield what each line tells of a run; one that is meant as such and is none is noted."""
    columns: tuple[str, ...] = ()
    delimiter = "|"
    for line in lines_of(text, LONGEST_HEADER):
        if (header := _columns(line.text)) is not None:
            delimiter, columns = header
            if set(columns) >= OURS:
                raise ValueError("it is an export of fabricbench's own: the run that it was made of has all of it")
            for lacking in (name for name in ("environ", "num_tasks") if name not in columns):
                why = f"one of which nothing is known of {lacking}: there is no such column"
                found.note(ImportNoteKind.READ_AS, line, "a log", why)
        elif (old := OLD.fullmatch(line.text)) is not None:
            versions[old["version"].strip()] = None
            with found.row(line):
                yield _old_entry(line, old)
        elif columns and delimiter in line.text:
            with found.row(line):
                yield _entry(line, columns, line.text.split(delimiter))
        elif MEANT_AS_OLD.match(line.text):
            found.note(ImportNoteKind.DAMAGED, line, why="it is no whole line of a performance log")
        else:
            found.stray(line)


def _columns(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the delimiter and the names of a header line; None of any other line."""
    for delimiter in DELIMITERS:
        names = tuple(text.split(delimiter))
        variables = {name.removesuffix(VALUE) for name in names if name.endswith(VALUE)}
        is_header = variables and all(f"{one}{UNIT}" in names for one in variables) and set(ANY_OF) & set(names)
        if is_header and len(set(names)) == len(names):
            return delimiter, names
    return None


def _entry(line: TextLine, columns: Sequence[str], fields: Sequence[str]) -> _Entry:
    if len(fields) != len(columns):
        raise RowError(f"it has {len(fields)} fields, and the header line names {len(columns)}")
    if not line.has_end:
        raise RowError("the log ends within it")
    row = dict(zip(columns, fields, strict=True))
    values = []
    for begin in (name.removesuffix(VALUE) for name in columns if name.endswith(VALUE)):
        variable = row.get("perf_var", begin) if begin == OF_VARIABLE else begin
        reference, lower, upper = (row.get(f"{begin}{end}", "") for end in (REFERENCE, LOWER, UPPER))
        values.append(_Value(variable, row[f"{begin}{VALUE}"], row[f"{begin}{UNIT}"], (reference, lower, upper)))
    ranks = row.get("num_tasks", "")
    if re.fullmatch(r"\d{1,9}|null|None" if "num_tasks" in row else "", ranks) is None:
        raise RowError(f"num_tasks is {ranks!r}, which is no number")
    return _Entry(
        line=line,
        test=next((row[name] for name in NAMES if row.get(name, "") not in NOT_TOLD), "test"),
        place=row.get("system:partition") or ":".join(row.get(name, "") for name in ("system", "partition")),
        environ=row.get("environ", ""),
        ranks=int(ranks) if ranks.isdecimal() else None,
        result=row.get("result", ""),
        values=tuple(values),
        ended_unix_ns=_ended(row.get("job_completion_time_unix", ""), row.get("job_completion_time", "")),
        others={name: value for name, value in row.items() if not _is_of_run(name)},
    )


def _is_of_run(column: str) -> bool:
    return column in OF_A_RUN or column.startswith(("job_", "num_")) or column.endswith(OF_VALUES)


def _old_entry(line: TextLine, old: re.Match[str]) -> _Entry:
    """Return what a line without a header tells: the variable stands before its reference, its unit is the field of one word."""
    fields = old["rest"].split("|")
    at = next((place for place, one in enumerate(fields) if OLD_REFERENCE.fullmatch(one)), None)
    before = [one for one in fields[:at] if "=" in one]
    value = OLD_VALUE.fullmatch(before[-1]) if at is not None and before else None
    units = [one for one in fields if "=" not in one and one not in RESULTS and one]
    if value is None or at is None or not units or not line.has_end:
        raise RowError("it has not a variable with its value, its reference and its unit")
    reference = OLD_REFERENCE.fullmatch(fields[at])
    ranks = next((one for field in fields if (one := OLD_RANKS.fullmatch(field)) is not None), None)
    bounds = reference.group("reference", "lower", "upper") if reference is not None else ("", "", "")
    return _Entry(
        line=line,
        test=old["name"],
        place=old["place"] or "",
        environ=old["environ"] or "",
        ranks=None if ranks is None else int(ranks["ranks"]),
        result=next((one for one in fields if one in RESULTS), ""),
        values=(_Value(value["variable"], value["value"], units[0], (bounds[0], bounds[1], bounds[2])),),
        ended_unix_ns=_ended("", line.text.partition("|")[0]),
    )


def _ended(seconds: str, date: str) -> int | None:
    """Return when a job was done, by the seconds since 1970 or else a date, in UTC where it tells no zone; None of neither."""
    if re.fullmatch(r"\d{9,11}(?:\.\d+)?", seconds):
        return int(Decimal(seconds) * SECOND_NS)
    zoned = "%Y-%m-%dT%H:%M:%S%z"
    return unix_ns(date, zoned) or unix_ns(date, zoned.removesuffix("%z"))


def _float(text: str) -> float | None:
    """Return a number that may be below 0; None of what is none."""
    return float(text) if re.fullmatch(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", text) else None


def _check_result(entry: _Entry) -> None:
    """Raise RowError for a line whose result and values contradict each other, or whose test did not come to its figures.

    Older logs tell no result.
    """
    if entry.result not in ("", *RESULTS):
        raise RowError(f"its result is {entry.result!r}, needed {' or '.join(RESULTS)}")
    if entry.outside and entry.result == "pass":
        raise RowError(f"its test passed, though {', '.join(entry.outside)} is outside its reference")
    if not entry.outside and entry.result in MISSED:
        raise RowError("its test failed, and not because of a figure")


Usual = Mapping[tuple[str, str], tuple[str, bool]]
"""By test and variable: the unit that most lines have, and whether any value has a decimal point: Python writes one in all then."""


def _usual(entries: Sequence[_Entry]) -> Usual:
    units: dict[tuple[str, str], Counter[str]] = {}
    points: dict[tuple[str, str], bool] = {}
    for entry in entries:
        for one in entry.values:
            key = entry.test, one.variable
            units.setdefault(key, Counter())[one.unit] += 1
            points[key] = points.get(key, False) or "." in one.value
    return {key: (units[key].most_common(1)[0][0], points[key]) for key in units}


def _loads(entry: _Entry, usual: Usual, found: TextReading, *, is_place_told: bool) -> Iterator[ImportedLoad]:
    """Yield the figures of a line; one that cannot be read or judged is noted, and the others are yielded."""
    for one in entry.values:
        if one.value in NOT_TOLD:
            continue
        with found.row(entry.line):
            unit, has_point = usual[entry.test, one.variable]
            if one.unit != unit:
                raise RowError(f"{one.variable} is in {one.unit!r}, and in {unit!r} in other lines")
            if "," in one.value or (has_point and not {".", "e"} & set(one.value)):
                raise RowError(f"{one.variable} is {one.value}, which is not printed as other values are")
            yield _load(entry, one, is_place_told=is_place_told)


def _load(entry: _Entry, one: _Value, *, is_place_told: bool) -> ImportedLoad:
    direction = one.direction
    if direction is None:
        raise RowError(
            f"neither the unit of {one.variable}, {one.unit!r}, nor its reference tells whether more is better"
        )
    figure = figure_in(one.variable, one.unit, direction)
    if direction == "lower" and figure.told_in is None:
        raise RowError(f"{one.variable} is better lower in {one.unit!r}, needed a time, or a rate")
    scale = seconds_in(one.unit) if figure.told_in is not None else 1.0
    number = read_number(one.value, one.variable).times(scale)
    parameters: CellParameters = (
        *([("environ", entry.environ)] if entry.environ not in NOT_TOLD else []),
        *([("place", entry.place)] if is_place_told else []),
        ("figure", one.variable),
        (BY, NAME),
    )
    found = figure.found(number.value, number.step)
    return ImportedLoad(entry.test, entry.ranks, parameters, found, ended_unix_ns=entry.ended_unix_ns)


def _note_lines(loads: Sequence[ImportedLoad], found: TextReading) -> None:
    """Note tests of which there are fewer lines than of others: a name that was damaged is such a test."""
    lines = Counter((one.workload, *(str(value) for _, value in one.parameters[:-1])) for one in loads)
    most = max(lines.values(), default=0)
    fewer = [" ".join(what) for what, count in lines.items() if count < most]
    if fewer:
        found.note(ImportNoteKind.SHORTER, None, f"fewer than {most} lines of {', '.join(fewer)}")


def _note_columns(entries: Sequence[_Entry], found: TextReading) -> None:
    """Note columns of a test's own in which its lines differ: they may be parameters, of other tests by the same name."""
    of_test: dict[tuple[str, str], list[_Entry]] = {}
    for entry in entries:
        of_test.setdefault((entry.test, entry.environ), []).append(entry)
    for (test, _), lines in of_test.items():
        names = [name for name in lines[0].others if len({one.others.get(name) for one in lines}) > 1]
        if names:
            why = f"runs of one test: they have its name, though they differ in {', '.join(names)}"
            found.note(ImportNoteKind.READ_AS, lines[0].line, f"the lines of {test}", why)
            return
