"""LinkTest 1 (mpilinktest): a ping-pong of every pair of ranks in each direction, as the matrix of the pattern pairs.

A time is half a round trip, the mean of its messages. Of pairs that are measured one by one (`-S 1`) the text has each; of those
that are measured at once it has the smallest, the largest and the mean, and the matrix lies in a binary file (SION), which is not
read. The rate beside each time proves it, and the three results prove the matrix (https://www.fz-juelich.de/jsc/linktest).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fabricbench.exchange.imported import Imported, ImportedCell
from fabricbench.exchange.rows import (
    MB,
    MIB,
    NS_OF_HALF_US,
    Checked,
    PrintedNumber,
    RowError,
    TextLine,
    TextReading,
    lines_of,
    read_number,
    read_whole,
)
from fabricbench.model import Layer, Pattern
from fabricbench.record.import_notes import ImportNoteKind

NAME = "linktest"
TITLE = "LinkTest"

RANKS = re.compile(r"linktest: Number of MPI-Task: +(?P<ranks>\d+)")
SIZE = re.compile(r"linktest: Message length: +(?P<bytes>\d+) Bytes")
TASK = re.compile(r"task\[(?P<rank>\d+)\] on (?P<host>\S+) \(.*")
PAIR = re.compile(
    r" *(?P<source>\d+)-> *(?P<destination>\d+): *(?P<time>\S+)us \( *(?P<rate>\S+) MB/s\) \(l=\d+\)",
)
RESULT = re.compile(r"RESULT: (?P<what>Min|Max|Avg) Time: +(?P<time>\S+)us \( *(?P<rate>\S+) MB/s\) \[iter *\d+ *\]")
MEANT_AS_PAIR = re.compile(r" *\d+ *-> *\d+|.*MB/s\) \(l=")
MEANT_AS_RESULT = re.compile(r"RESULT: (?!\w+ Time Stest)")
DECIMALS_OF_PAIR, DECIMALS_OF_RESULT, DECIMALS_OF_RATE = 5, 8, 2


@dataclass
class _Run:
    """One start of the program and, anew for each of its iterations, what it printed of pairs and of all of them."""

    begin: TextLine
    ranks: int
    size: int | None = None
    hosts: dict[int, str] = field(default_factory=dict)
    pairs: dict[tuple[int, int], PrintedNumber] = field(default_factory=dict)
    results: dict[str, PrintedNumber] = field(default_factory=dict)
    is_damaged: bool = False
    """Whether the line of a pair could not be read."""

    def take(self, line: TextLine, found: TextReading) -> None:
        """Read one line."""
        if size := SIZE.fullmatch(line.text):
            self.size = read_whole(size["bytes"], "the message length")
        elif task := TASK.fullmatch(line.text):
            self.hosts[int(task["rank"])] = task["host"]
        elif MEANT_AS_PAIR.match(line.text):
            before = len(self.pairs)
            with found.row(line):
                self._add(line, PAIR.fullmatch(line.text))
            self.is_damaged = self.is_damaged or len(self.pairs) == before
        elif MEANT_AS_RESULT.match(line.text):
            with found.row(line):
                result = RESULT.fullmatch(line.text)
                if result is None:
                    raise RowError("it is none of its results")
                self.results[result["what"]] = self._time(line, result, DECIMALS_OF_RESULT)
            if "Avg Time" in line.text:
                self._end(line, found)

    def _add(self, line: TextLine, pair: re.Match[str] | None) -> None:
        if pair is None:
            raise RowError("it is no result of a pair")
        ends = int(pair["source"]), int(pair["destination"])
        if ends in self.pairs or not max(ends) < self.ranks or ends[0] == ends[1]:
            raise RowError(f"there is no such pair of {self.ranks} ranks, or it was there already")
        self.pairs[ends] = self._time(line, pair, DECIMALS_OF_PAIR)

    def _time(self, line: TextLine, row: re.Match[str], decimals: int) -> PrintedNumber:
        """Return a time that the rate beside it proves."""
        time = read_number(row["time"], "its time", decimals)
        rate = read_number(row["rate"], "its rate", DECIMALS_OF_RATE)
        if self.size is None:
            raise RowError("no line above it tells the length of messages")
        checked = Checked(line, self.size / time.value * 1e6, time.step / time.value, rate)
        if not (checked.fits(MIB) or checked.fits(MB)):
            raise RowError("its rate is not that of the length of messages and its time")
        return time

    def _end(self, line: TextLine, found: TextReading) -> None:
        """Make a cell of what an iteration has printed."""
        with found.row(line):
            found.cells.append(self._matrix() if self.pairs else self._mean())
        missing = self.ranks * (self.ranks - 1) - len(self.pairs)
        if self.pairs and missing:
            found.note(ImportNoteKind.CUT, line, f"{missing} of {self.ranks * (self.ranks - 1)} pairs are missing")
        self.pairs, self.results, self.is_damaged = {}, {}, False

    def _matrix(self) -> ImportedCell:
        """Return what pairs were measured alone; RowError where all are there, and are not what the results say of them."""
        if len(self.pairs) == self.ranks * (self.ranks - 1):
            times = [one.value for one in self.pairs.values()]
            self._check("Min", min(times))
            self._check("Max", max(times))
            self._check("Avg", sum(times) / len(times))
        elif not self.is_damaged and len(self.pairs) < 2:
            raise RowError("it has the result of one pair")
        return ImportedCell(
            pattern=Pattern.PAIRS,
            message_bytes=self.size,
            values=tuple(self.pairs[ends].times(NS_OF_HALF_US).value for ends in sorted(self.pairs)),
            printed_step=10.0**-DECIMALS_OF_PAIR * NS_OF_HALF_US,
            layer=Layer.MPI,
            ranks=self.ranks,
            pairs=tuple((min(ends), max(ends)) for ends in sorted(self.pairs)),
            hosts=tuple(self.hosts.get(rank, f"rank {rank}") for rank in range(self.ranks)),
        )

    def _check(self, what: str, value: float) -> None:
        told = self.results.get(what)
        if told is None or abs(told.value - value) > 0.1**DECIMALS_OF_PAIR:
            raise RowError(f"{what} Time is not that of its pairs")

    def _mean(self) -> ImportedCell:
        """Return the mean of pairs that were measured at once."""
        least, mean, most = (self.results.get(what) for what in ("Min", "Avg", "Max"))
        if least is None or mean is None or most is None or not least.value <= mean.value <= most.value:
            raise RowError("Min, Avg and Max Time do not follow one another, or are not there")
        result = mean.times(NS_OF_HALF_US)
        at_once = (("schedule", "rounds"), ("statistic", "mean"))
        return ImportedCell(
            Pattern.PAIRS, self.size, (result.value,), result.step, Layer.MPI, self.ranks, parameters=at_once
        )


def is_it(text: str) -> bool:
    """Tell by the line of its number of ranks."""
    return any(RANKS.fullmatch(line.rstrip()) for line in text.split("\n") if line.startswith("linktest:"))


def read(text: str) -> Imported:
    """Return the matrix, or the mean of all pairs, of each iteration of each run of a text."""
    found, runs = TextReading(), []
    run: _Run | None = None
    for line in lines_of(text):
        if begin := RANKS.fullmatch(line.text):
            run = _Run(line, read_whole(begin["ranks"], "the number of ranks"))
            runs.append(run)
        elif run is not None:
            run.take(line, found)
    for one in runs:
        if one.pairs or one.results:
            found.note(ImportNoteKind.CUT, one.begin, "its results do not follow its last iteration")
    return Imported(
        program="LinkTest",
        version="1",
        statistic="of each pair twice the half round trip it prints, the mean of its messages",
        cells=tuple(found.cells),
        notes=tuple(found.notes),
    )
