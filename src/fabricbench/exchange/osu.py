"""OSU Micro-Benchmarks, MPI, as text of version 4 to 7: latency, bandwidth, bidirectional bandwidth, collectives, barrier.

A latency is half a round trip, the mean of its iterations; an MB is 10^6 bytes; a collective's time is the mean over its iterations
and over ranks, each call behind a barrier (https://mvapich.cse.ohio-state.edu/benchmarks/).
"""

from __future__ import annotations

import math
import re

from fabricbench.exchange.imported import Imported, ImportedCell
from fabricbench.model import Layer, Pattern

NAME = "osu"
TITLE = "OSU Micro-Benchmarks"

HEAD = re.compile(r"^# OSU (?P<title>.*)$", re.MULTILINE)
"""Begins a test, one that is not known here as well: what stands below it is none of the test before."""

KNOWN_HEAD = re.compile(r"MPI (?P<title>.+?) Test v(?P<version>\S+)")

NS_OF_LATENCY, NS_OF_OPERATION, BIT_S_OF_MB_S = 2e3, 1e3, 8e6
"""Half a round trip in us as a whole one in ns; a call in us in ns; 10^6 bytes a second in bit/s."""

TIME, RATE = re.compile(r"(?:Avg )?Latency ?\(us\)"), re.compile(r"Bandwidth ?\(MB/s\)")
"""The columns that hold the result, as the versions call them."""

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


def is_it(text: str) -> bool:
    """Tell by the line that every test of theirs begins with."""
    return any(KNOWN_HEAD.match(head["title"]) for head in HEAD.finditer(text))


def read(text: str) -> Imported:
    """Return the results of all tests in a text, several one after the other included; ValueError names what cannot be read."""
    heads = list(HEAD.finditer(text))
    tests = [KNOWN_HEAD.match(head["title"]) for head in heads]
    if not tests or None in tests:
        unknown = next((head[0] for head, test in zip(heads, tests, strict=True) if test is None), "")
        raise ValueError(
            f"no test is known that begins with {unknown!r}; take it out of the text"
            if unknown
            else 'no line "# OSU MPI ... Test v..." is in it'
        )
    found = [test for test in tests if test is not None]
    ends = [head.start() for head in heads[1:]] + [len(text)]
    cells: dict[tuple[Pattern, int], ImportedCell] = {}
    for head, test, end in zip(heads, found, ends, strict=True):
        for cell in _cells(test["title"], text[head.end() : end]):
            if cells.setdefault((cell.pattern, cell.message_bytes), cell) is not cell:
                raise ValueError(
                    f"{test['title']} of {cell.message_bytes} B is in it twice: give each launch a file of its own"
                )
    return Imported(
        program="OSU Micro-Benchmarks",
        version=found[0]["version"],
        statistic="the mean of the iterations",
        cells=tuple(cells.values()),
    )


def _cells(title: str, text: str) -> list[ImportedCell]:
    if title not in TESTS:
        raise ValueError(f"no test {title!r} is known; there are {', '.join(TESTS)}")
    pattern, column, scale = TESTS[title]
    names: list[str] = []
    cells = []
    for whole in text.splitlines(keepends=True):
        line = whole.rstrip("\r\n")
        if column.search(line) and line.startswith("#"):
            # Two blanks part names; a name that fills its field has one behind it.
            names = re.findall(r"Size|\S+(?: \S+)*? ?\([^)]*\)|[A-Z]\S+", line.removeprefix("#"))
        elif names and line.lstrip()[:1].isdigit():
            if line == whole:
                raise ValueError(f"it ends in the middle of the line {line!r}")
            cells.append(_cell(pattern, scale, dict(zip(names, line.split(), strict=False)), column, line))
    return cells


def _cell(pattern: Pattern, scale: float, row: dict[str, str], column: re.Pattern[str], line: str) -> ImportedCell:
    if row.get("Validation", "Pass") != "Pass":
        raise ValueError(f"a result failed its validation: {line!r}")
    value = next((text for name, text in row.items() if column.fullmatch(name)), None)
    try:
        size, number = int(row.get("Size", "0")), float(value or "")
    except ValueError:
        raise ValueError(f"no result can be read from the line {line!r}") from None
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"no time and no rate is {value}, in the line {line!r}")
    return ImportedCell(
        pattern=pattern,
        message_bytes=size,
        values=(number * scale,),
        layer=Layer.MPI,
        ranks=2 if pattern in OF_TWO_RANKS else None,
    )
