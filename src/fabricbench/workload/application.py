"""What an application is said to be, and how what it wrote is read: figures of merit, success, numbers to be verified. Pure models.

`command` says how people write it. Whatever is missing in an output is the reason of a failed cell, never an exception.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from shlex import join
from statistics import fmean, median
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fabricbench.model import Model
from fabricbench.quantity import SECONDS_OF, parse_seconds
from fabricbench.record.workload_cells import (
    COMMUNICATION_SHARE,
    MPI_FACT,
    OF_FIGURE,
    CheckFound,
    Failed,
    Figure,
    FigureFound,
    file_fact,
)
from fabricbench.testbed.model import WITHOUT_NUL
from fabricbench.workload import counted
from fabricbench.workload.adapter import Output, Parsed, program_lines, read_output, told_around, told_outside

MOST_INPUT_BYTES = 256 * 1024
"""Of all input files together: they are kept in the plan, once for each launch."""

TAIL_LINES, MOST_OF_A_LINE = 6, 100
"""Of the output, shown where nothing was found in it."""

MARK_DIGITS = 12
"""Of a hash that people are shown: enough to tell any two texts apart."""

NONE = "none"

OF_FABRIC = re.compile(r"\{(interface|directory)\}")
"""In an argument: another file on each fabric, or in each launch."""

WHOLE_PERCENT = 100

COMMUNICATION = "communication"
"""The name of the figure that tells the share of communication, in %."""

SPELLED_OUT = re.compile(r"(nano|micro|milli|[numµ])?-?sec(ond)?s?|mins|minutes?|hours?|hrs?", re.IGNORECASE)
"""Times as no unit of ours is written."""

SELECT: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {
        "first": lambda values: values[0],
        "last": lambda values: values[-1],
        "max": max,
        "min": min,
        "mean": fmean,
        "median": median,
        "sum": math.fsum,
    }
)
"""What is made of several matches; `only` is for one."""

Text = Annotated[str, Field(pattern=WITHOUT_NUL)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=60)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", max_length=100)]
"""Of the launch's directory, and nowhere else."""

OURS = (
    counted.AROUND,
    counted.BEGUN,
    "plan.json",
    "launch.json",
    "stdout.log",
    "stderr.log",
    "records.jsonl",
    "kernel.jsonl",
)
"""Files of a launch's directory that are fabricbench's own."""


def as_tuple(value: Any) -> Any:
    """Return one value as a tuple of one, as people leave the brackets out."""
    return (value,) if isinstance(value, str | int | float) else value


def _regex(groups: int) -> AfterValidator:
    def check(text: str) -> str:
        try:
            found = re.compile(text, re.MULTILINE)
        except re.error as error:
            raise ValueError(f"{text!r} is no regular expression: {error}") from None
        if groups and found.groups != groups:
            raise ValueError(f"{text!r} has {found.groups} groups, needed one: round brackets around the number")
        return text

    return AfterValidator(check)


Pattern = Annotated[str, _regex(0)]
PatternOfNumber = Annotated[str, _regex(1)]
Places = Annotated[tuple[Pattern, ...], BeforeValidator(as_tuple)]


class FigureTable(Model):
    """A figure of merit: where in the output it stands, and what it means."""

    name: str = Field(min_length=1)
    regex: PatternOfNumber
    unit: str = Field(min_length=1)
    better: Literal["lower", "higher"]
    select: Literal["only", "first", "last", "max", "min", "mean", "median", "sum"] = "only"
    file: str = "stdout"

    @property
    def is_time(self) -> bool:
        """Whether it is a time, which is kept in seconds."""
        return self.unit in SECONDS_OF

    @property
    def figure(self) -> Figure:
        """What it is called and judged by."""
        told_in = self.unit if self.is_time else None
        return Figure(name=self.name, unit="s" if self.is_time else self.unit, better=self.better, told_in=told_in)

    def value(self, matches: Sequence[float]) -> float:
        """Return what is made of the matches, a time in seconds; an infinity where that is no number any more."""
        try:
            found = matches[0] if self.select == "only" else SELECT[self.select](matches)
        except OverflowError:
            return math.inf
        return found * SECONDS_OF.get(self.unit, 1.0)

    def __str__(self) -> str:
        """Return `loop ('^loop (.*)$' in stdout, only, s, better lower)` as it is recorded: in other words it would be another."""
        return f"{self.name} ('{self.regex}' in {self.file}, {self.select}, {self.unit}, better {self.better})"


class SuccessTable(Model):
    """What a good run looks like."""

    found: Places = ()
    absent: Places = ()
    file: str = "stdout"
    exit_codes: tuple[int, ...] = Field(default=(0,), min_length=1)


class VerifyTable(Model):
    """A number of the result. Without a `reference` it must be the same on every fabric, as it is written.

    With one it must be no further off than `relative` of it or than `absolute`, whichever is more.
    """

    name: str = Field(min_length=1)
    regex: PatternOfNumber
    reference: float | None = Field(default=None, allow_inf_nan=False)
    relative: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    absolute: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    file: str = "stdout"


class Application(Model):
    """What an application file says: all that is known of a program but which parameters and ranks it is run with."""

    name: Name
    description: str = ""
    command: tuple[Text, ...] = Field(min_length=1)
    admits: Literal["any number", "even numbers", "powers of two", "squares"] = "any number"
    expect_seconds: Annotated[float, BeforeValidator(parse_seconds)] = Field(default=60.0, gt=0, le=1e6)
    environment: dict[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")], Text] = {}
    files: dict[FileName, Text] = {}
    figure: tuple[FigureTable, ...] = Field(min_length=1)
    success: SuccessTable = SuccessTable()
    verify: tuple[VerifyTable, ...] = ()

    @model_validator(mode="after")
    def _figures_are_told_apart_and_compared(self) -> Application:
        names = [one.name for one in self.figure]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"figure: {twice!r} is there {names.count(twice)} times, each needs a name of its own")
        first = self.figure[0]
        if first.name == COMMUNICATION:
            raise ValueError(
                f"figure: the first one is what fabrics are compared by, and {COMMUNICATION!r} explains only"
            )
        if first.better == "lower" and not first.is_time:
            raise ValueError(
                f"figure: {first.name!r} is the primary one, in {first.unit} and better lower; needed a time "
                f"({', '.join(SECONDS_OF)}), or a rate, which is better higher"
            )
        if first.better == "higher" and first.is_time:
            raise ValueError(f"figure: {first.name!r} is a time ({first.unit}) and better higher: is that its unit?")
        return self

    @model_validator(mode="after")
    def _files_are_few_and_its_own(self) -> Application:
        ours = next((name for name in self.files if name in OURS), None)
        if ours is not None:
            raise ValueError(f"files: {ours} is fabricbench's own in a launch's directory; needed another name")
        size = sum(len(text.encode()) for text in self.files.values())
        if size > MOST_INPUT_BYTES:
            raise ValueError(
                f"files: {size} B of input, at most {MOST_INPUT_BYTES} B are kept in a plan; put large files onto every node and "
                "name them in the command"
            )
        return self

    def misleading(self) -> str | None:
        """Return what of a figure's unit would be read otherwise than it is meant; None where all is well."""
        for one in self.figure:
            if one.name == COMMUNICATION and one.unit != "%":
                return f"figure: {COMMUNICATION!r} is the share of the ranks' time in MPI, in %; found the unit {one.unit!r}"
            if SPELLED_OUT.fullmatch(one.unit):
                return (
                    f"figure: {one.name!r} has the unit {one.unit!r}; needed of a time one of {', '.join(SECONDS_OF)}"
                )
        return None

    @property
    def definition(self) -> dict[str, str]:
        """What makes its time or rate what it is, as it was written: what a placeholder stands for may differ by fabric.

        Of the program its name alone: where it lies is another place in each build, and what it is the hash in `fixed` tells.
        """
        program, *arguments = self.command
        return {
            "command": join((program.rpartition("/")[2], *arguments)),
            **{f"variable {name}": repr(text) for name, text in sorted(self.environment.items())},
            **{f"input file {name}": _mark(text) for name, text in sorted(self.files.items())},
            "primary figure": str(self.figure[0]),
        }

    @property
    def judged_by(self) -> dict[str, str]:
        """What is read besides the primary figure, and what a good run looks like."""
        further = "; ".join(map(str, self.figure[1:]))
        checks = "".join((self.success.model_dump_json(), *(one.model_dump_json() for one in self.verify)))
        return {"further figures": further or NONE, "success and verification": _mark(checks)}

    @property
    def searched(self) -> tuple[str, ...]:
        """The files that are searched."""
        return (*(one.file for one in self.figure), self.success.file, *(one.file for one in self.verify))

    @property
    def templates(self) -> Iterator[str]:
        """Every text that may hold placeholders."""
        return iter((*self.command, *self.environment.values(), *self.files.values()))


class Reading:
    """Reads what one launch of an application left."""

    def __init__(self, application: Application, ranks: int, output: Output, around: counted.Around) -> None:
        self._application = application
        self._ranks = ranks
        self._output = output
        self._around = around
        self._texts: dict[str, str] = {}
        self._told = told_around(read_output(output.stdout))

    def parsed(self) -> Parsed:
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
        primary = self._application.figure[0].figure
        told = told_outside(
            self._application.name,
            self._ranks,
            self._output,
            primary,
            figures[0].value if figures and figures[0].name == primary.name else None,
            failed=failed,
            values=values | ({} if share is None else {COMMUNICATION_SHARE: share}),
        )
        return Parsed(
            told=told,
            figures=tuple(figures) if told.failed is None else (),
            checks=tuple(checks),
            communication_share=share,
            fixed=self._fixed(),
        )

    def _figures(self) -> tuple[list[FigureFound], list[str]]:
        found, problems = [], []
        for one in self._application.figure:
            matches, problem = self._numbers(one.name, one.regex, one.file, is_only=one.select == "only")
            value = one.value(matches) if problem is None else math.nan
            if problem is None and one is self._application.figure[0] and (why := one.figure.why_not(value)):
                problem = f"figure {one.name!r} is {why}"
            if problem is None and one.name == COMMUNICATION and not 0 <= value <= WHOLE_PERCENT:
                problem = f"figure {one.name!r} is {value:g} %, needed a share of the ranks' time, 0 to 100 %"
            if problem is None and not math.isfinite(value):
                problem = f"figure {one.name!r}: its {one.select} is no finite number"
            if problem is None:
                found.append(one.figure.found(value))
            else:
                problems.append(problem)
        return found, problems

    def _numbers(self, name: str, regex: str, file: str, *, is_only: bool) -> tuple[list[float], str | None]:
        """Return the numbers that a regular expression finds, and what is wrong with them."""
        texts = self._matches(regex, file)
        searched = f"figure {name!r}: {regex!r} in {file}"
        if not texts:
            return [], f"{searched} matched nothing{self._absent(file)}"
        if is_only and len(texts) > 1:
            alone = "; as many as ranks: was the program built for another MPI than the one that started it?"
            return [], (
                f"{searched} matched {len(texts)} times; say by select which counts (first, last, max, mean ...)"
                f"{alone if len(texts) == self._ranks else ''}"
            )
        numbers = [_number(text) for text in texts]
        bad = next((text for text, number in zip(texts, numbers, strict=True) if number is None), None)
        if bad is not None:
            return [], f"{searched} matched {bad!r}, which is no finite number"
        return [number for number in numbers if number is not None], None

    def _successes(self) -> Iterator[CheckFound]:
        success = self._application.success
        text = self._text(success.file)
        for regex in success.found:
            there = re.search(regex, text, re.MULTILINE)
            found = repr(there[0]) if there else f"nothing in {success.file}{self._absent(success.file)}"
            yield CheckFound(name="success", holds=there is not None, found=found, needed=repr(regex))
        for regex in success.absent:
            there = re.search(regex, text, re.MULTILINE)
            is_there = self._path(success.file).is_file()
            found = repr(there[0]) if there else "nothing" if is_there else f"no file {success.file}"
            holds = is_there and there is None
            yield CheckFound(name="success", holds=holds, found=found, needed=f"no {regex!r} in {success.file}")

    def _verified(self) -> Iterator[CheckFound]:
        for one in self._application.verify:
            numbers, problem = self._numbers(one.name, one.regex, one.file, is_only=False)
            needed = "the same number on every fabric"
            if one.reference is not None:
                of_size = f", or {one.absolute:g} of any size" if one.absolute else ""
                needed = f"{one.reference:.12g} within {one.relative:g}{of_size}"
            holds = problem is None and all(
                one.reference is None
                or abs(number - one.reference) <= max(one.relative * abs(one.reference), one.absolute)
                for number in numbers
            )
            found = problem or ", ".join(f"{number:.12g}" for number in numbers)
            yield CheckFound(name=one.name, holds=holds, found=found, needed=needed)

    def _fixed(self) -> dict[str, str]:
        """Return what must be the same on all fabrics: the program, its MPI, and numbers of the result without a reference."""
        facts = {
            "program sha256": self._around.program_sha256,
            MPI_FACT: self._told.mpi_library or "",
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
        return [found[1] or "" for found in re.finditer(regex, self._text(file), re.MULTILINE)]

    def _text(self, file: str) -> str:
        """Return a file's text, of stdout what the program itself wrote; empty where there is none."""
        path = self._path(file)
        if file not in self._texts:
            self._texts[file] = self._told.own if path == self._output.stdout else read_output(path)
        return self._texts[file]

    def _path(self, file: str) -> Path:
        """Return where a file lies. One of another place is none of the launch's."""
        logs = {"stdout": self._output.stdout, "stderr": self._output.stderr}
        return logs.get(file, self._output.directory / Path(file).name)

    def _absent(self, file: str) -> str:
        return "" if self._text(file) or file == "stdout" else ", which is empty or not there"

    def _tail(self) -> str:
        """Return the last lines that the program wrote, for people to read behind a reason."""
        lines = [line[:MOST_OF_A_LINE] for line in program_lines(self._text("stdout"))[-TAIL_LINES:]]
        return f"; stdout ends: {' | '.join(lines)}" if lines else "; stdout is empty"


def _mark(text: str) -> str:
    """Return what tells a text from another one, short enough for a sentence."""
    return f"sha256 {sha256(text.encode()).hexdigest()[:MARK_DIGITS]}"


def _number(text: str) -> float | None:
    """Return a number as C and Fortran print it (`1.0D+03`); None for what is none."""
    try:
        found = float(text.replace("D", "E").replace("d", "e"))
    except ValueError:
        return None
    return found if math.isfinite(found) else None
