"""mpiGraph 1: the bandwidth of every pair of ranks in each direction, as the matrix of the pattern pairs-stream.

In turn N of its turns each rank sends to the one N places to its right and receives from the one N places to its left, all at once.
What arrived counts, the matrix Recv; that of what was sent ends when the sender is done with its buffers. A MB is 2^20 bytes, and a
value the total of its windows. The largest and the mean of a matrix, which are printed, prove it (https://github.com/LLNL/mpiGraph).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fabricbench.exchange.imported import Imported, ImportedCell
from fabricbench.exchange.rows import MIB, RowError, TextLine, TextReading, lines_of, read_number, read_whole
from fabricbench.model import Layer, Pattern
from fabricbench.record.import_notes import ImportNoteKind

NAME = "mpigraph"
TITLE = "mpiGraph"

BEGIN = re.compile(r"START mpiGraph v(?P<version>\S+)")
SETTING = re.compile(r"(?P<name>MsgSize|Times|Window|Procs)\t(?P<number>\d+)")
SUMMARY = re.compile(r"Recv (?P<what>max|avg)\t(?P<number>\d+\.\d{6})")
COLUMNS, ROW = "Recv\t", re.compile(r"(?P<host>[^\t]+) from\t.*")
END = "END mpiGraph"
LONGEST = 1_000_000
"""Of a line: those of 65,536 ranks have less."""
DECIMALS = 3
BIT_S_OF_MIB_S = 8 * MIB


@dataclass
class _Run:
    """One start of the program: its settings, and the lines of its matrix of what arrived."""

    begin: TextLine
    version: str
    settings: dict[str, int] = field(default_factory=dict)
    summary: dict[str, float] = field(default_factory=dict)
    columns: TextLine | None = None
    rows: list[TextLine] = field(default_factory=list)
    is_whole: bool = False

    def take(self, line: TextLine) -> None:
        """Read one line."""
        if setting := SETTING.fullmatch(line.text):
            self.settings.setdefault(setting["name"], read_whole(setting["number"], setting["name"]))
        elif summary := SUMMARY.fullmatch(line.text):
            self.summary.setdefault(summary["what"], float(summary["number"]))
        elif line.text.startswith(COLUMNS):
            self.columns = line
        elif ROW.fullmatch(line.text):
            self.rows.append(line)
        elif line.text == END:
            self.is_whole = True


def is_it(text: str) -> bool:
    """Tell by the line that it begins with."""
    return any(BEGIN.fullmatch(line.rstrip()) for line in text.split("\n") if line.startswith("START"))


def read(text: str) -> Imported:
    """Return the matrix of each run of a text."""
    found = TextReading()
    runs = _runs(text)
    for run in runs:
        if not run.is_whole:
            found.note(ImportNoteKind.CUT, run.begin, f"{run.begin.text}: there is no line '{END}' below it")
        with found.row(run.begin if run.columns is None else run.columns):
            found.cells.append(_cell(run))
    return Imported(
        program="mpiGraph",
        version=", ".join(dict.fromkeys(run.version for run in runs)),
        statistic="of each pair and direction what arrived over the time of all its windows",
        cells=tuple(found.cells),
        notes=tuple(found.notes),
    )


def _runs(text: str) -> list[_Run]:
    runs: list[_Run] = []
    for line in lines_of(text, LONGEST):
        if begin := BEGIN.fullmatch(line.text):
            runs.append(_Run(line, begin["version"]))
        elif runs:
            runs[-1].take(line)
    return runs


def _cell(run: _Run) -> ImportedCell:
    """Return the matrix of a run; RowError where it is not whole, or has not the largest and the mean that are printed of it."""
    lacking = [name for name in ("MsgSize", "Window", "Procs") if name not in run.settings]
    lacking += [f"Recv {name}" for name in ("max", "avg") if name not in run.summary]
    if run.columns is None or lacking:
        raise RowError(f"it does not tell {', '.join(lacking) or 'what arrived'}")
    ranks = run.settings["Procs"]
    hosts = run.columns.text.removeprefix(COLUMNS).rstrip("\t").split("\t")
    if [one.rpartition(":")[2] for one in hosts] != [str(rank) for rank in range(ranks)]:
        raise RowError(f"its columns are not those of ranks 0 to {ranks - 1}")
    values = {}
    for destination, row in enumerate(_rows(run, hosts)):
        for source, text in enumerate(row):
            if source != destination:
                values[source, destination] = read_number(text, f"from {hosts[source]}", DECIMALS).value
    _check_summary(run, list(values.values()))
    step = 0.1**DECIMALS * BIT_S_OF_MIB_S
    return ImportedCell(
        pattern=Pattern.PAIRS_STREAM,
        message_bytes=run.settings["MsgSize"],
        values=tuple(value * BIT_S_OF_MIB_S for value in values.values()),
        printed_step=step,
        layer=Layer.MPI,
        ranks=ranks,
        parameters=(("schedule", "shifts"), ("window", run.settings["Window"])),
        pairs=tuple(values),
        hosts=tuple(one.rpartition(":")[0] for one in hosts),
    )


def _rows(run: _Run, hosts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the fields of each row; RowError where the rows are not those of the hosts, one a rank."""
    if [line.text.partition(" from\t")[0] for line in run.rows] != list(hosts):
        raise RowError("its rows are not those of the ranks that its columns name")
    for line in run.rows:
        fields = line.text.partition(" from\t")[2].rstrip("\t").split("\t")
        if len(fields) != len(hosts):
            raise RowError(f"line {line.number} has {len(fields)} values of {len(hosts)} ranks")
        yield fields


def _check_summary(run: _Run, values: Sequence[float]) -> None:
    """Raise RowError where values have not the largest, or the mean (that of the times), which the program printed of them."""
    if not values:
        raise RowError("one rank has nobody to exchange with")
    mean = len(values) / sum(1.0 / value for value in values)
    half = 0.5 * 0.1**DECIMALS * (1 + 1e-6)
    slack = half * max(1.0, (mean / min(values)) ** 2)
    if abs(run.summary["max"] - max(values)) > half or abs(run.summary["avg"] - mean) > slack:
        raise RowError("its values have not the largest and the mean that are printed of them")
