"""High-Performance Linpack 1 and 2 (HPL.out, also NVIDIA's): the rate of each run, as own runs of the workload hpl are judged.

A run whose residual check failed is none. The rate is that of the whole machine; that of a GPU beside it is left out
(https://netlib.org/benchmark/hpl).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fabricbench.exchange.imported import Imported, ImportedLoad
from fabricbench.exchange.rows import CTIME, RowError, TextLine, TextReading, lines_of, read_number, read_whole, unix_ns
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.provenance import BY
from fabricbench.workload.hpl import RATE

NAME = "hpl"
TITLE = "HPL"

HEAD = re.compile(r"\s*HPLinpack (?P<version>[\d.]+)")
OF_HPCC = re.compile(r"HPC Challenge")
ROW = re.compile(
    r"\s*(?P<code>W[RC]\d\S*) +(?P<n>\d+) +(?P<nb>\d+) +(?P<p>\d+) +(?P<q>\d+) +(?P<time>\S+) +(?P<rate>\S+)"
    r"(?: *\( *\S+\))?"
)
MEANT_AS_ROW = re.compile(r"\s*W[RC]\d")
RESIDUAL = re.compile(r"\s*\|\|.*(?P<verdict>PASSED|FAILED)$")
END = re.compile(r"\s*End of Tests\.")
TIME = re.compile(r"HPL_pdgesv\(\) (?P<which>start|end) time +(?P<time>\S.*)")


def is_it(text: str) -> bool:
    """Tell by its head; HPC Challenge, which runs it as well, is another program."""
    lines = text.split("\n")
    return any(map(HEAD.match, lines)) and not any(OF_HPCC.search(line) for line in lines if len(line) < 200)


def read(text: str) -> Imported:
    """Return a load for each row."""
    found, loads = TextReading(), []
    lines = lines_of(text)
    versions = [head["version"] for line in lines if (head := HEAD.match(line.text)) is not None]
    for place, line in enumerate(lines):
        if MEANT_AS_ROW.match(line.text):
            with found.row(line):
                loads.append(_load(line, lines[place + 1 :], found))
    if sum(END.match(line.text) is not None for line in lines) < len(versions):
        found.note(ImportNoteKind.CUT, None, "there is no line 'End of Tests.'")
    return Imported(
        program="HPLinpack",
        version=", ".join(dict.fromkeys(versions)),
        statistic="the rate of one run",
        loads=tuple(loads),
        notes=tuple(found.notes),
    )


def _load(line: TextLine, below: Sequence[TextLine], found: TextReading) -> ImportedLoad:
    row = ROW.fullmatch(line.text)
    if row is None:
        raise RowError("it has not the columns of a result: T/V, N, NB, P, Q, Time, Gflops")
    n, nb, p, q = (read_whole(row[name], name.upper()) for name in ("n", "nb", "p", "q"))
    time, rate = read_number(row["time"], "the time"), read_number(row["rate"], "the rate")
    operations = (2 / 3 * n + 3 / 2) * n * n
    seconds = operations / rate.value / 1e9
    if abs(seconds - time.value) > time.step / 2 + seconds * (rate.step / rate.value + 1e-3):
        raise RowError("its rate is not that of N and its time")
    verdict = _verdict(below)
    times = {one["which"]: unix_ns(one["time"], CTIME) for line in _of_row(below) if (one := TIME.match(line.text))}
    if verdict == "FAILED":
        raise RowError("its residual check failed: the result is wrong")
    if verdict is None:
        found.note(ImportNoteKind.READ_AS, line, why="a result that nobody verified: no residual check follows it")
    return ImportedLoad(
        workload="hpl",
        ranks=p * q,
        parameters=(("n", n), ("nb", nb), ("grid", f"{p}x{q}"), ("variant", row["code"]), (BY, NAME)),
        figure=RATE.found(rate.value, rate.step),
        seconds=time.value,
        started_unix_ns=times.get("start"),
        ended_unix_ns=times.get("end"),
    )


def _of_row(below: Sequence[TextLine]) -> Iterator[TextLine]:
    """Yield the lines below a row that are its own: those above the next one."""
    for line in below:
        if MEANT_AS_ROW.match(line.text) or END.match(line.text):
            return
        yield line


def _verdict(below: Sequence[TextLine]) -> str | None:
    """Return what the checks of a row say; a failed one is the last word."""
    verdicts = [check["verdict"] for line in _of_row(below) if (check := RESIDUAL.match(line.text))]
    return "FAILED" if "FAILED" in verdicts else next(iter(verdicts), None)
