"""What an application is said to be: how it is started, its figures of merit, success, numbers to be verified. Pure models.

`command` says how people write it, `application_output` reads what it wrote.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from shlex import join
from statistics import fmean, median
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fabricbench.configuration import KeyProblemError, Place, expanded
from fabricbench.model import Model
from fabricbench.quantity import SECONDS_OF, decimal_product, parse_seconds
from fabricbench.record.launch_files import OF_A_LAUNCH
from fabricbench.record.workload_cells import FigureOfMerit, Measures, figure_in
from fabricbench.testbed.model import WITHOUT_NUL
from fabricbench.units import Direction, Unit, parse_unit, seconds_in
from fabricbench.workload import transports
from fabricbench.workload.scaling import STRONG, Scaling
from fabricbench.workload.transports import RankTransport

MOST_INPUT_BYTES = 256 * 1024
"""Of all input files together: they are kept in the plan, once for each launch."""

TIMED = "timed"
"""The `work` of a program that runs for a time: on a faster fabric it does more."""

MARK_DIGITS = 12
"""Of a hash that people are shown: enough to tell any two texts apart."""

NONE = "none"

COMMUNICATION = "communication"
"""The name of the figure that tells the share of communication, in %."""

DURATION = "duration"
"""The unit of a time that is written with its own: `6.62s`, `180.0ms`, `1m 2.50s`, `1h23m`."""

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

NO_VALUES: Mapping[str, str | int | float] = MappingProxyType({})

Text = Annotated[str, Field(pattern=WITHOUT_NUL)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=60)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", max_length=100)]
"""Of the launch's directory, and nowhere else."""

PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
"""What is filled in where a command is started: `{ranks}`."""


def filled(text: str, values: Mapping[str, str | int | float]) -> str:
    """Return a text with its placeholders replaced; what is in braces and no name of ours stays as it is."""
    return PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), text)


def as_tuple(value: Any) -> Any:
    """Return one value as a tuple of one, as people leave the brackets out."""
    return value if isinstance(value, list | tuple) else (value,)


def quoted(regex: str) -> str:
    """Return a regular expression as its user wrote it: Python's own quotes would double each backslash."""
    return f"'{regex}'"


def _regex(groups: int) -> AfterValidator:
    def check(text: str) -> str:
        try:
            found = re.compile(text, re.MULTILINE)
        except re.error as error:
            raise ValueError(f"{quoted(text)} is no regular expression: {error}") from None
        if groups and found.groups != groups:
            raise ValueError(f"{quoted(text)} has {found.groups} groups, needed one: round brackets around the number")
        return text

    return AfterValidator(check)


Pattern = Annotated[str, _regex(0)]
PatternOfNumber = Annotated[str, _regex(1)]
Places = Annotated[tuple[Pattern, ...], BeforeValidator(as_tuple)]


class FigureTable(Model):
    """A figure of merit: where in the output it stands, and what it means.

    `better` need not be said where the unit tells; `measures` says of a time or a rate that it is of work, or of the network.
    """

    name: str = Field(min_length=1)
    regex: PatternOfNumber
    unit: str = Field(min_length=1)
    better: Literal["lower", "higher"]
    measures: Literal["work", "network"] | None = None
    select: Literal["only", "first", "last", "max", "min", "mean", "median", "sum"] = "only"
    file: str = "stdout"

    @model_validator(mode="before")
    @classmethod
    def _better_as_its_unit_tells(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or "better" in data or not isinstance(data.get("unit"), str):
            return data
        direction = "lower" if data["unit"] == DURATION else _direction(data["unit"])
        if direction is None:
            raise KeyProblemError(
                ("better",),
                f"missing, and the unit {data['unit']!r} does not tell whether less or more is better; needed "
                'better = "lower" or better = "higher"',
            )
        return {**data, "better": direction}

    @property
    def parsed_unit(self) -> Unit | None:
        """Its unit, as far as the grammar of units reads it; of a duration seconds."""
        return parse_unit("s" if self.unit == DURATION else self.unit)

    @property
    def is_time(self) -> bool:
        """Whether it is a time, which is kept in seconds."""
        return self.parsed_unit is not None and self.parsed_unit.is_time

    @property
    def is_time_of_work(self) -> bool:
        """Whether it is a time for each of something, which is kept in seconds as well."""
        return self.better == "lower" and self.parsed_unit is not None and self.parsed_unit.is_time_per_work

    @property
    def figure(self) -> FigureOfMerit:
        """What it is called and judged by."""
        found = figure_in(self.name, "s" if self.unit == DURATION else self.unit, self.better)
        return found.model_copy(update={"measures": self._measures(found.kind)})

    def _measures(self, usual: Measures) -> Measures:
        """Return what it measures as whoever wrote it says, else what is usual in its unit."""
        if self.measures == "network":
            return Measures.NETWORK
        if self.measures == "work" and usual is Measures.NETWORK:
            return Measures.RUN_TIME if self.is_time else Measures.WORK_RATE
        return usual

    def value(self, matches: Sequence[float]) -> float:
        """Return what is made of the matches, a time in seconds; an infinity where that is no number any more."""
        try:
            found = matches[0] if self.select == "only" else SELECT[self.select](matches)
        except OverflowError:
            return math.inf
        return decimal_product(found, self.seconds)

    @property
    def seconds(self) -> float:
        """What one of its unit is in seconds; 1 of what is no time."""
        return seconds_in(self.unit) if self.is_time or self.is_time_of_work else 1.0

    def why_not_better(self) -> str | None:
        """Return why its unit forbids the direction that was asked for; None where it does not."""
        direction = _direction("s" if self.unit == DURATION else self.unit)
        if direction in (None, self.better):
            return None
        of_each = "" if self.is_time or self.unit == DURATION else " for each of something"
        why = {
            "lower": f"{self.unit!r} is a time{of_each}, of which less is better: is that its unit?",
            "higher": f"{self.unit!r} is so much in a time, a rate, of which more is better",
        }[direction]
        return f"{self.name!r} is better {self.better}, and {why}"

    def printed_step(self, last_digits: Sequence[float]) -> float:
        """Return in which step the value is told, by what the last digit of each match counts: all may be off the same way."""
        step = math.fsum(last_digits) if self.select == "sum" else max(last_digits)
        return step * self.seconds

    def __str__(self) -> str:
        """Return `loop ('^loop (.*)$' in stdout, only, s, better lower)` as it is recorded: in other words it would be another."""
        told = f"{self.name} ('{self.regex}' in {self.file}, {self.select}, {self.unit}, better {self.better})"
        return f"{told}, of {self.measures}" if self.measures else told


def _direction(unit: str) -> Direction | None:
    found = parse_unit(unit)
    return None if found is None else found.direction


class SuccessTable(Model):
    """What a good run looks like."""

    found: Places = ()
    absent: Places = ()
    file: str = "stdout"
    exit_codes: tuple[Annotated[int, Field(ge=0, le=255)], ...] = Field(default=(0,), min_length=1)


class VerifyTable(Model):
    """A number of the result. Without a `reference` it must be the same on every fabric, as it is written.

    With one it must be no further off than `relative` of it or than `absolute`, whichever is more; a whole number, of which neither
    is said, must be met exactly.
    """

    name: str = Field(min_length=1)
    regex: PatternOfNumber
    reference: float | None = Field(default=None, allow_inf_nan=False)
    relative: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    absolute: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    file: str = "stdout"

    @model_validator(mode="after")
    def _says_how_near(self) -> VerifyTable:
        said = self.model_fields_set & {"relative", "absolute"}
        if self.reference is not None and not self.reference.is_integer() and not said:
            raise KeyProblemError(
                ("reference",),
                "nothing says how near the result must be, and rounding differs by machine; write relative = 1e-6, say, or "
                "absolute = 1e-9 (absolute = 0: to the last bit)",
            )
        if self.reference == 0 and said == {"relative"}:
            raise KeyProblemError(
                ("relative",),
                "of the reference 0 any share is 0; write absolute = 1e-9, say, or neither where it must be 0 exactly",
            )
        return self


class MissingPrerequisite(NamedTuple):
    """A program or file that cannot be used on this machine, why in words, and what can be done about it."""

    what: str
    why: str
    action: str
    is_absent: bool = False

    @classmethod
    def of(cls, what: str) -> MissingPrerequisite:
        """Tell why what no shell could start is none."""
        path = expanded(what)
        if "/" not in what:
            return cls(what, "is not on PATH", "install it, or write its whole path", is_absent=True)
        if not path.exists():
            return cls(what, "is not there", "put it there, or correct the path", is_absent=True)
        if path.is_dir():
            return cls(what, "is a directory", "name the program in it")
        if what.startswith("~"):
            return cls(what, "begins with ~, which no shell replaces here", "write its whole path")
        return cls(what, "is there but may not be executed", f"chmod +x {what}")


class Application(Model):
    """What an application file says: all that is known of a program but which parameters and ranks it is run with."""

    name: Name
    description: str = ""
    licence: str = ""
    needs: tuple[Text, ...] = ()
    """What there must be besides the command's program: programs on PATH, or with a slash in them files; with placeholders."""
    get: str = ""
    """How to come by it, in words."""
    transport: RankTransport = RankTransport.MPI
    """Who is told the fabric, and how."""
    build: tuple[Text, ...] = ()
    """What makes the command's program in the launch's directory: of PVM's programs only, which are carried to the other nodes."""
    command: tuple[Text, ...] = Field(min_length=1)
    admits: Literal["any number", "even numbers", "powers of two", "squares"] = "any number"
    expect_seconds: Annotated[float, BeforeValidator(parse_seconds)] = Field(default=60.0, gt=0, le=1e6)
    usual_seconds: Annotated[float, BeforeValidator(parse_seconds)] | None = Field(default=None, gt=0)
    environment: dict[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")], Text] = {}
    files: dict[FileName, Text] = {}
    scaling: Scaling = STRONG
    """Weak: what placeholders are worth on so many ranks and nodes; a parameter of that name is what the rule begins with."""
    work: Literal["constant", "timed"] = "constant"
    figure: Annotated[tuple[FigureTable, ...], BeforeValidator(as_tuple)] = Field(min_length=1)
    success: SuccessTable = SuccessTable()
    verify: Annotated[tuple[VerifyTable, ...], BeforeValidator(as_tuple)] = ()

    @model_validator(mode="after")
    def _usually_it_takes_no_longer_than_generously(self) -> Application:
        if self.usual_seconds is not None and self.usual_seconds > self.expect_seconds:
            raise KeyProblemError(
                ("usual_seconds",),
                f"found {self.usual_seconds:g} s, more than the {self.expect_seconds:g} s of expect_seconds, which is the generous "
                "one of the two",
            )
        return self

    @model_validator(mode="after")
    def _figures_are_told_apart_and_compared(self) -> Application:
        names = [one.name for one in self.figure]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise KeyProblemError(
                ("figure",), f"{twice!r} is there {names.count(twice)} times, each needs a name of its own"
            )
        if self.figure[0].name == COMMUNICATION:
            raise KeyProblemError(
                ("figure",), f"the first one is what fabrics are compared by, and {COMMUNICATION!r} explains only"
            )
        return self

    @model_validator(mode="after")
    def _in_a_fixed_time_only_rates_are_told(self) -> Application:
        a_time = next((one for one in self.figure if one.is_time), None)
        if self.work == TIMED and a_time is not None:
            raise KeyProblemError(
                ("figure",),
                f"{a_time.name!r} is a time ({a_time.unit}), and the work is timed: it lasts as long everywhere; needed a rate, "
                'which is better higher, or work = "constant"',
            )
        return self

    @model_validator(mode="after")
    def _files_are_few_and_its_own(self) -> Application:
        ours = next((name for name in self.files if name in OF_A_LAUNCH), None)
        if ours is not None:
            raise KeyProblemError(
                ("files",), f"{ours} is fabricbench's own in a launch's directory; needed another name"
            )
        size = sum(len(text.encode()) for text in self.files.values())
        if size > MOST_INPUT_BYTES:
            raise KeyProblemError(
                ("files",),
                f"{size} B of input, at most {MOST_INPUT_BYTES} B are kept in a plan; put large files onto every node and name "
                "them in the command",
            )
        return self

    @property
    def first_program(self) -> str:
        """The program that there must be: the command's, or what builds that."""
        return (self.build or self.command)[0]

    @property
    def places(self) -> Mapping[str, str]:
        """What the placeholders of its transport stand for."""
        return transports.places(self.transport, self.environment)

    def wanted(self, values: Mapping[str, str | int | float] = NO_VALUES) -> tuple[str, ...]:
        """Return the programs and files that there must be, with these values of its parameters."""
        return tuple(filled(one, {**self.places, **values}) for one in (*self._programs, *self.needs))

    def lacking(self, values: Mapping[str, str | int | float] = NO_VALUES) -> tuple[MissingPrerequisite, ...]:
        """Return which of these are not on this machine, or cannot be used, and why. One of our own programs always is."""
        found = []
        for number, one in enumerate(self.wanted(values)):
            is_program = number < len(self._programs)
            is_there = one.startswith("fabricbench-") if is_program else "/" in one and expanded(one).exists()
            if not is_there and shutil.which(one) is None:
                found.append(MissingPrerequisite.of(one))
        return tuple(found)

    @property
    def wanted_by_transport(self) -> tuple[str, ...]:
        """Of these, what its transport starts."""
        return tuple(filled(one, self.places) for one in transports.programs(self.transport))

    @property
    def _programs(self) -> tuple[str, ...]:
        return (self.first_program, *transports.programs(self.transport))

    def check_figures(self) -> None:
        """Raise KeyProblemError for a figure's unit or direction that would be read otherwise than it is meant."""
        place = ("figure",)
        for one in self.figure:
            if one.name == COMMUNICATION and one.unit != "%":
                raise KeyProblemError(
                    place,
                    f"{COMMUNICATION!r} is the share of the ranks' time in MPI, in %; found the unit {one.unit!r}",
                )
            if (why := one.why_not_better()) is not None:
                raise KeyProblemError(place, why)
        first = self.figure[0]
        if first.better == "lower" and not (first.is_time or first.is_time_of_work):
            raise KeyProblemError(
                place,
                f"{first.name!r} is the primary one, in {first.unit} and better lower; needed a time ({', '.join(SECONDS_OF)}, or "
                "for each of something, s/step), or a rate, which is better higher",
            )

    def check_searched_files(self) -> None:
        """Raise KeyProblemError for a file that is searched and is none that the program writes where it starts."""
        for table, name in self._searched_by_table():
            place = (*table, "file")
            if "/" in name or name in ("", ".", ".."):
                raise KeyProblemError(
                    place,
                    f"found {name!r}, needed stdout, stderr or the name of a file that the program writes where it starts",
                )
            if name in OF_A_LAUNCH or name in self.files:
                ours = "fabricbench's own in a launch's directory"
                why = ours if name in OF_A_LAUNCH else "one of `files`, which fabricbench writes"
                raise KeyProblemError(
                    place, f"{name} is {why}: nothing in it is the program's; needed a file that the program writes"
                )

    def figure_of(self, one: FigureTable) -> FigureOfMerit:
        """Return what a figure is called and judged by; one that is told of a fixed time says so wherever it stands."""
        is_marked = self.work == TIMED and one.name != COMMUNICATION
        return one.figure.model_copy(update={"name": f"{one.name} (timed)"}) if is_marked else one.figure

    @property
    def definition(self) -> dict[str, str]:
        """What makes its time or rate what it is, as it was written: what a placeholder stands for may differ by fabric.

        Of the program its name alone: where it lies is another place in each build, and what it is the hash in `fixed` tells.
        """
        program, *arguments = self.command
        rules = {} if isinstance(self.scaling, str) else self.scaling
        unusual = {
            "transport": "" if self.transport is RankTransport.MPI else str(self.transport),
            "build": join(self.build),
            "work": self.work if self.work == TIMED else "",
            **{f"scaling {name}": rule for name, rule in sorted(rules.items())},
        }
        return {
            "command": join((program.rpartition("/")[2], *arguments)),
            **{what: text for what, text in unusual.items() if text},
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
        return tuple(name for _, name in self._searched_by_table())

    def _searched_by_table(self) -> Iterator[tuple[Place, str]]:
        for number, figure in enumerate(self.figure):
            yield ("figure", number), figure.file
        yield ("success",), self.success.file
        for number, verify in enumerate(self.verify):
            yield ("verify", number), verify.file

    @property
    def templates(self) -> Iterator[str]:
        """Every text that may hold placeholders."""
        return iter((*self.build, *self.command, *self.environment.values(), *self.files.values()))


@cache
def shipped() -> Mapping[str, Path]:
    """Return the files of the applications that come with fabricbench, by name."""
    folder = Path(__file__).parent / "applications"
    return MappingProxyType({path.stem: path for path in sorted(folder.glob("*.toml"))})


def _mark(text: str) -> str:
    """Return what tells a text from another one, short enough for a sentence."""
    return f"sha256 {sha256(text.encode()).hexdigest()[:MARK_DIGITS]}"
