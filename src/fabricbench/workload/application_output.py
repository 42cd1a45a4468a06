"""Reads what one launch of an application left: figures of merit, success, numbers to be verified.

Whatever is missing in an output is the reason of a failed cell, never an exception.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fabricbench.deadline import deadline
from fabricbench.record.workload_cells import (
    COMMUNICATION_SHARE,
    MPI_FACT,
    OF_FIGURE,
    PROGRAM_FACT,
    CheckFound,
    Failed,
    FigureFound,
    WorkloadResult,
    file_fact,
)
from fabricbench.workload import counted
from fabricbench.workload.adapter import Output, program_lines, read_output, result_of_external, split_counted_output
from fabricbench.workload.application import COMMUNICATION, DURATION, Application, FigureTable, quoted
from fabricbench.workload.counted import BEGUN, CLOCKS_APART
from fabricbench.workload.printed_number import (
    NotWholeError,
    Printed,
    check_unit,
    check_whole,
    read_duration,
    read_number,
)
from fabricbench.workload.transports import RankTransport

TAIL_LINES, MOST_OF_A_LINE = 6, 100
"""Of the output, shown where nothing was found in it."""

OF_FABRIC = re.compile(r"\{(interface|directory)\}")
"""In an argument: another file on each fabric, or in each launch."""

WHOLE_PERCENT = 100

MOST_MATCHES_SHOWN = 3

DATES_APART_NS = 2_000_000_000
"""How exactly file systems date a file, FAT to two seconds."""

THREADS_FACT = "threads"
"""What `WorkloadPart.fixed` calls the variables that tell programs and their libraries how many threads to start."""


SEARCH_SECONDS = 5.0
"""A search of 64 MiB takes a tenth of a second; one that has not ended by then tries one way after the other to match a line."""


class Match(NamedTuple):
    """A number that an expression found: its text, its value, and all that the expression matched."""

    text: str
    printed: Printed
    line: str


@contextmanager
def _in_time(regex: str, file: str) -> Iterator[None]:
    try:
        with deadline(SEARCH_SECONDS):
            yield
    except TimeoutError as error:
        raise ValueError(
            f"{quoted(regex)} was searched for in {file} for {SEARCH_SECONDS:g} s without an end; write it so that a text matches "
            "in one way only: (x+)+ does in very many"
        ) from error


class OutputReader:
    """Reads what one launch of an application left."""

    def __init__(self, application: Application, ranks: int, output: Output, around: counted.Around) -> None:
        self._application = application
        self._ranks = ranks
        self._output = output
        self._around = around
        self._texts: dict[str, str] = {}
        self._told = split_counted_output(read_output(output.stdout))

    def result(self) -> WorkloadResult:
        """Return all of it; whatever is missing is the reason of a failed cell, never an exception."""
        checks = [*self._successes(), *self._verified()]
        figures, problems = self._figures()
        wrong = next((one for one in checks if not one.holds), None)
        failed, code = None, self._around.exit_code
        if code is not None and code not in self._application.success.exit_codes:
            failed = Failed(f"it ended with exit code {code}{self._tail()}", is_wrong=False)
        elif wrong is not None:
            failed = Failed(f"wrong result: {wrong.name}: found {wrong.found}, needed {wrong.needed}{self._tail()}")
        elif problems:
            failed = Failed(f"{problems[0]}{self._tail()}", is_wrong=False)
        share = next((one.value / WHOLE_PERCENT for one in figures if one.name == COMMUNICATION), None)
        values = {f"{OF_FIGURE}{one.name}": one.value for one in figures[1:] if one.name != COMMUNICATION}
        primary = self._application.figure_of(self._application.figure[0])
        result = result_of_external(
            self._application.name,
            self._ranks,
            self._output,
            primary,
            figures[0].value if figures and figures[0].name == primary.name else None,
            printed_step=figures[0].printed_step if figures and figures[0].name == primary.name else None,
            failed=failed,
            values=values | ({} if share is None else {COMMUNICATION_SHARE: share}),
            is_over_mpi=self._application.transport is RankTransport.MPI,
            about=self._told,
        )
        return replace(
            result,
            figures=tuple(figures) if result.failed is None else (),
            checks=tuple(checks),
            communication_share=share,
            fixed=self._fixed(),
        )

    def _figures(self) -> tuple[list[FigureFound], list[str]]:
        found, problems = [], []
        for number, one in enumerate(self._application.figure):
            read = read_duration if one.unit == DURATION else read_number
            matches, problem = self._numbers(one.name, one.regex, one.file, read, of=one)
            if problem is None and one.is_time:
                problem = self._longer_than_its_launch(one, matches, is_primary=number == 0)
            value = one.value([match.printed.value for match in matches]) if problem is None else math.nan
            if problem is None and number == 0 and (why := one.figure.why_not(value)):
                problem = f"figure {one.name!r} is {why}"
            if problem is None and one.name == COMMUNICATION and not 0 <= value <= WHOLE_PERCENT:
                problem = f"figure {one.name!r} is {value:g} %, needed a share of the ranks' time, 0 to 100 %"
            if problem is None and not math.isfinite(value):
                problem = f"figure {one.name!r}: its {one.select} is no finite number"
            if problem is None:
                step = one.printed_step([match.printed.last_digit for match in matches])
                found.append(self._application.figure_of(one).found(value, step))
            else:
                problems.append(problem)
        return found, problems

    def _longer_than_its_launch(self, figure: FigureTable, matches: Sequence[Match], *, is_primary: bool) -> str | None:
        """Return which match tells a time longer than the launch took that printed it; None where none does.

        Further figures may be sums over processors, so they have the time of all of them.
        """
        lasted = self._around.lasted_seconds
        processors = 1 if is_primary else len({(rank.host, cpu) for rank in self._told.ranks for cpu in rank.cpus})
        if lasted is None or not processors:
            return None
        for match in matches:
            seconds, last = (part * figure.seconds for part in (match.printed.value, match.printed.last_digit))
            if seconds > lasted * processors * (1 + CLOCKS_APART) + last:
                unit = "" if figure.unit == DURATION else f" {figure.unit}"
                within = f"{lasted:.3g} s" if is_primary else f"{lasted:.3g} s on {processors} processors"
                return (
                    f"figure {figure.name!r}: {match.text!r}{unit} in {match.line!r}, and the launch that printed it took "
                    f"{within}, which no time of it can exceed; is that its unit, and a time of this run?"
                )
        return None

    def _numbers(
        self, name: str, regex: str, file: str, read: Callable[[str], Printed], *, of: FigureTable | None = None
    ) -> tuple[list[Match], str | None]:
        """Return the numbers that a regular expression finds, as `read` reads them, and what is wrong with them.

        `of` is the figure that they are; None of numbers that are only verified, of which several may be there.
        """
        searched = f"figure {name!r}: {quoted(regex)} in {file}"
        if (why := self._not_of_the_program(file)) is not None:
            return [], f"{searched}: {why}"
        found = self._found(regex, file)
        if not found:
            return [], f"{searched} matched nothing{self._absent(file)}"
        if of is not None and of.select == "only" and len(found) > 1:
            shown = ", ".join(f"{one[1]!r} in line {_line_number(one)}" for one in found[:MOST_MATCHES_SHOWN])
            more = "" if len(found) <= MOST_MATCHES_SHOWN else " and further on"
            return [], (
                f"{searched} matched {len(found)} times: {shown}{more}; say by select which counts (first, last, max, min, mean, "
                "median, or sum, of parts of one run), or write an expression that one of them alone fits"
            )
        try:
            return [self._read(one, read, of) for one in found], None
        except NotWholeError as error:
            return [], f"{searched} matched {error}"

    @staticmethod
    def _read(found: re.Match[str], read: Callable[[str], Printed], of: FigureTable | None) -> Match:
        printed = read(found[1] or "")
        check_whole(found)
        if of is not None and of.unit != DURATION:
            check_unit(found, of.parsed_unit, of.unit)
        return Match(found[1], printed, found[0].strip()[:MOST_OF_A_LINE])

    def _not_of_the_program(self, file: str) -> str | None:
        """Return why a file is not what this launch's program wrote; None where it may be. Logs are always its own."""
        path = self._path(file)
        if path in (self._output.stdout, self._output.stderr):
            return None
        if path.name in self._application.files:
            return f"{path.name} is one of `files`, which fabricbench writes: no program's result"
        try:
            written_ns = path.stat().st_mtime_ns
            # The marker beside it is dated by the same file system, whose clock may differ from the node's.
            marked_ns = (self._output.directory / BEGUN).stat().st_mtime_ns
        except OSError:
            return None
        begun_ns = min(marked_ns, self._around.started_unix_ns or marked_ns)
        if written_ns < begun_ns - DATES_APART_NS:
            return (
                f"{path.name} was last written {(begun_ns - written_ns) * 1e-9:.0f} s before the program was started: it is no "
                "result of this launch"
            )
        return None

    def _successes(self) -> Iterator[CheckFound]:
        success = self._application.success
        for regex in success.found:
            there = self._search(regex, success.file)
            found = repr(there[0]) if there else f"nothing in {success.file}{self._absent(success.file)}"
            yield CheckFound(name="success", holds=there is not None, found=found, needed=quoted(regex))
        for regex in success.absent:
            there = self._search(regex, success.file)
            is_there = self._path(success.file).is_file()
            found = repr(there[0]) if there else "nothing" if is_there else f"no file {success.file}"
            holds = is_there and there is None
            yield CheckFound(name="success", holds=holds, found=found, needed=f"no {quoted(regex)} in {success.file}")

    def _verified(self) -> Iterator[CheckFound]:
        for one in self._application.verify:
            matches, problem = self._numbers(one.name, one.regex, one.file, read_number)
            numbers = [match.printed.value for match in matches]
            needed = "the same number on every fabric"
            is_exact = one.reference is not None and not (one.relative or one.absolute)
            digits = 17 if is_exact else 12  # that tell any two numbers apart
            if is_exact:
                needed = f"{one.reference:.17g} exactly"
            elif one.reference is not None:
                of_size = f", or {one.absolute:g} of any size" if one.absolute else ""
                needed = f"{one.reference:.12g} within {one.relative:g}{of_size}"
            holds = problem is None and all(
                one.reference is None
                or abs(number - one.reference) <= max(one.relative * abs(one.reference), one.absolute)
                for number in numbers
            )
            found = problem or ", ".join(f"{number:.{digits}g}" for number in numbers)
            yield CheckFound(name=one.name, holds=holds, found=found, needed=needed)

    def _fixed(self) -> dict[str, str]:
        """Return what must be the same on all fabrics: the program, its MPI, and numbers of the result without a reference."""
        facts = {
            PROGRAM_FACT: self._around.program_sha256,
            MPI_FACT: self._told.mpi_library or "",
            THREADS_FACT: self._around.threads,
            **self._application.judged_by,
        }
        of_arguments = zip(self._application.command[1:], self._around.arguments_sha256, strict=False)
        facts |= {file_fact(text): digest for text, digest in of_arguments if not OF_FABRIC.search(text)}
        for one in self._application.verify:
            if one.reference is None:
                name = f"number {one.name}" if one.name in facts else one.name
                facts[name] = " ".join(self._matches(one.regex, one.file))
        return {what: fact for what, fact in facts.items() if fact}

    def _matches(self, regex: str, file: str) -> list[str]:
        """Return what the group of a regular expression holds, of each match: nothing where the group took no part."""
        return [found[1] or "" for found in self._found(regex, file)]

    def _found(self, regex: str, file: str) -> list[re.Match[str]]:
        text = self._text(file)
        with _in_time(regex, file):
            return list(re.finditer(regex, text, re.MULTILINE))

    def _search(self, regex: str, file: str) -> re.Match[str] | None:
        text = self._text(file)
        with _in_time(regex, file):
            return re.search(regex, text, re.MULTILINE)

    def _text(self, file: str) -> str:
        """Return a file's text, of stdout what the program itself wrote; empty where there is none."""
        path = self._path(file)
        if file not in self._texts:
            self._texts[file] = self._told.own if path == self._output.stdout else read_output(path)
        return self._texts[file]

    def _path(self, file: str) -> Path:
        """Return where a file lies, of a name with `*` the one that matches it. One of another place is none of the launch's."""
        logs = {"stdout": self._output.stdout, "stderr": self._output.stderr}
        alike = sorted(self._output.directory.glob(Path(file).name)) if "*" in file else []
        return alike[0] if len(alike) == 1 else logs.get(file, self._output.directory / Path(file).name)

    def _absent(self, file: str) -> str:
        return "" if self._text(file) or file == "stdout" else ", which is empty or not there"

    def _tail(self) -> str:
        """Return the last lines that the program wrote, for people to read behind a reason."""
        lines = [line[:MOST_OF_A_LINE] for line in program_lines(self._text("stdout"))[-TAIL_LINES:]]
        return f"; stdout ends: {' | '.join(lines)}" if lines else "; stdout is empty"


def _line_number(found: re.Match[str]) -> int:
    return found.string.count("\n", 0, found.start(1)) + 1
