"""HPCG 3, its result file (HPCG-Benchmark_3.1_....txt): the rating of a valid run, as own runs of the workload hpcg are judged.

The rating is of the whole machine, set-up and convergence taken off (https://hpcg-benchmark.org). The log beside it is no result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fabricbench.exchange.imported import Imported, ImportedLoad
from fabricbench.exchange.rows import RowError, TextLine, TextReading, lines_of, read_number, read_whole
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.provenance import BY
from fabricbench.workload.hpcg import RATE

NAME = "hpcg"
TITLE = "HPCG"

HEAD = "HPCG-Benchmark"
RATING = "Final Summary::HPCG result is VALID with a GFLOP/s rating of"
INVALID = "Final Summary::HPCG result is INVALID"
SAME_RATING = "GFLOP/s Summary::Total with convergence and optimization phase overhead"
SECONDS = "Benchmark Time Summary::Total"
RANKS, THREADS = "Machine Summary::Distributed Processes", "Machine Summary::Threads per processes"
SIDES = tuple(f"Local Domain Dimensions::{side}" for side in ("nx", "ny", "nz"))
REFERENCE = re.compile(r"Final Summary::Reference version of (?P<what>\w+) used")
LAST_WORDS = ("Final Summary::Results are valid", "Final Summary::Please upload")
"""Behind what it says of its code."""
KINDS_OF_REFERENCE = 4
"""Of whose code it tells whether it is the reference's: all of them are, of a run of nobody's optimisation."""

Values = Mapping[str, str]


def is_it(text: str) -> bool:
    """Tell by its first line."""
    return any(line.strip() == HEAD for line in text.split("\n"))


def read(text: str) -> Imported:
    """Return a load for each result of the text, each of which begins with the same line."""
    found, loads, versions = TextReading(), [], []
    for head, values in _results(text):
        versions.append(values.get("version", "of unknown version"))
        with found.row(head):
            loads.append(_load(values))
            if not any(name.startswith(LAST_WORDS) for name in values):
                found.note(ImportNoteKind.CUT, head, "its summary does not come to its last lines")
            if 0 < len(_references(values)) < KINDS_OF_REFERENCE:
                why = f"optimised: {len(_references(values))} of {KINDS_OF_REFERENCE} parts are the reference's"
                found.note(ImportNoteKind.READ_AS, head, "its code", why)
    return Imported(
        program="HPCG",
        version=", ".join(dict.fromkeys(versions)),
        statistic="the rating of one run",
        loads=tuple(loads),
        notes=tuple(found.notes),
    )


def _results(text: str) -> Iterator[tuple[TextLine, Values]]:
    """Yield the line that a result begins with, and its values. Of the last line without an end some digits may be missing."""
    head: TextLine | None = None
    values: dict[str, str] = {}
    for line in lines_of(text):
        if line.text.strip() == HEAD:
            if head is not None:
                yield head, values
            head, values = line, {}
        elif line.has_end:
            name, equals, value = line.text.rpartition("=")
            if equals:
                values.setdefault(name, value)
    if head is not None:
        yield head, values


def _load(values: Values) -> ImportedLoad:
    if any(name.startswith(INVALID) for name in values):
        raise RowError("it calls its result invalid")
    missing = [name for name in (RATING, SAME_RATING, SECONDS, RANKS, *SIDES) if name not in values]
    if missing:
        raise RowError(f"it has no {missing[0]!r}: it was cut short or damaged")
    rate, again = read_number(values[RATING], "the rating"), read_number(values[SAME_RATING], "the rate with overheads")
    if abs(rate.value - again.value) > max(rate.step, again.step):
        raise RowError(f"its rating is {rate.value:g}, and its rate with all overheads is {again.value:g}")
    box = "x".join(str(read_whole(values[side], side)) for side in SIDES)
    threads = read_whole(values.get(THREADS, "1"), THREADS)
    variant = "reference" if len(_references(values)) == KINDS_OF_REFERENCE else "optimised"
    return ImportedLoad(
        workload="hpcg",
        ranks=read_whole(values[RANKS], RANKS),
        parameters=(
            ("box", box),
            ("variant", variant),
            *((("threads", threads),) if threads != 1 else ()),
            (BY, NAME),
        ),
        figure=RATE.found(rate.value, rate.step),
        seconds=read_number(values[SECONDS], SECONDS).value,
    )


def _references(values: Values) -> set[str]:
    """Return the parts of its code that it says are the reference's."""
    return {found["what"] for name in values if (found := REFERENCE.match(name)) is not None}
