r"""Any MPI program as a workload, described in TOML: in a campaign, or in an application file that people share.

[[workload]]
kind = "command"
name = "hpl"
command = ["xhpl"]                     # {ranks} ({rows} x {columns}), {nodes}, {directory}, {interface}, {input}, any parameter
ranks = [4]                            # default "all"
admits = "any number"                  # or "even numbers", "powers of two", "squares"
needs = ["/opt/hpl/data"]              # further programs or files that there must be, and in `get` how to come by them
expect_seconds = "60s"                 # generously: far beyond it a launch counts as hung
usual_seconds = "10s"                  # for plans and budgets; default expect_seconds
environment = { OMP_NUM_THREADS = "1" }
transport = "mpi"                      # who is told the fabric: or "gloo", "sockets", "pvm" (`transports`)
work = "constant"                      # or "timed": it runs for a time, and tells rates only
scaling = { n = "round(n * sqrt(ranks))" }   # weak (`scaling`); default "strong": the same input on any number of ranks

[workload.parameters]                  # of lists every combination is a launch of its own, in every block on every fabric
n = [1000, 2000]

[workload.files]                       # written into the directory where rank 0 starts; placeholders as in the command
"HPL.dat" = "..."

[[workload.figure]]                    # the first one is the primary one: what fabrics are compared by
name = "HPL"
regex = 'WR.*\s(\S+)$'                # with one group, of each line
unit = "GFLOP/s"                       # of a time: s, ms, s/step ..., or "duration", written as 1m 2.5s or 180.0ms
better = "higher"                      # or "lower"; need not be said where the unit tells (`units`)
measures = "work"                      # or "network": a latency or a bandwidth, which is no work; default by the unit
select = "last"                        # of several matches; or first, max, min, mean, median, sum; default "only"
file = "stdout"                        # or "stderr", or a file that the program writes beside its input (`*` in its name: the one)

[workload.success]
found = ['PASSED']                     # each must be somewhere in the output
absent = ['FAILED']
exit_codes = [0]

[[workload.verify]]                    # a number that is known, and how near it the result must be
name = "energy"
regex = 'E = (\S+)'
reference = -4.62
relative = 1e-6                        # or absolute = 1e-9; a whole number needs neither. Without a reference: the same everywhere

`application = "hpl.toml"` takes all of it from a file beside the campaign, `application = "lammps-lj"` from one that comes with
fabricbench (`fabricbench list workloads` names them); what stands beside `application` comes before what the
file says. A figure of the name "communication" in % explains and is not compared: the share of the ranks' time in MPI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import isqrt
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ModelWrapValidatorHandler, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails

from fabricbench.configuration import (
    KeyProblemError,
    Place,
    check_expanded,
    did_you_mean,
    expanded,
    mistakes,
    place_of,
    problem_of,
    read_table,
    shown,
    text_or_number,
)
from fabricbench.errors import UsageError
from fabricbench.record.setup import Value
from fabricbench.workload import transports
from fabricbench.workload.adapter import (
    Ranks,
    RankSlots,
    Unseated,
    WorkloadKind,
    WorkloadStart,
    WorkloadTable,
    seated,
)
from fabricbench.workload.application import PLACEHOLDER, Application, as_tuple, quoted, shipped
from fabricbench.workload.command_start import CommandStart
from fabricbench.workload.scaling import ParameterName, names_of

ADMITS: Mapping[str, Callable[[int], bool]] = MappingProxyType(
    {
        "any number": lambda _: True,
        "even numbers": lambda ranks: ranks % 2 == 0,
        "powers of two": lambda ranks: ranks & (ranks - 1) == 0,
        "squares": lambda ranks: isqrt(ranks) ** 2 == ranks,
    }
)
"""The numbers of ranks that a program may take."""

BUILT_IN = ("ranks", "nodes", "rows", "columns", "directory", "interface", "input")

ReadValue = Annotated[Value, BeforeValidator(text_or_number)]


MERGED = ("parameters", "environment")
"""Tables of which a campaign may say a part, and an application file the rest."""


OF_A_FILE = re.compile(rf"(?<![$@\\]){PLACEHOLDER.pattern}")
"""Placeholders of a file: `${name}` is a variable of whoever reads it, a shell, LAMMPS or CMake."""


class CommandTable(WorkloadTable, Application):
    """An application with what it is run with. `application` names a file that has the rest."""

    kind: Literal["command"] = "command"
    application: str | None = None
    """The file that has the rest; None once it is read."""
    ranks: Ranks = "all"
    parameters: dict[ParameterName, Annotated[tuple[ReadValue, ...], BeforeValidator(as_tuple)]] = {}

    @model_validator(mode="after")
    def _is_read_as_it_is_meant(self) -> CommandTable:
        self.check_figures()
        self.check_searched_files()
        return self

    @model_validator(mode="after")
    def _success_demands_something(self) -> CommandTable:
        if not self.success.found and not self.verify:
            raise KeyProblemError(
                ("success",),
                "nothing tells a good run from one that printed its figure and failed; needed `found`, what a good one prints, or "
                "a number of its result in [[verify]]",
            )
        empty = next((one for one in (*self.success.found, *self.success.absent) if re.search(one, "")), None)
        if empty is not None:
            raise KeyProblemError(
                ("success",),
                f"{quoted(empty)} is found in any output, in an empty one as well; needed what only some have",
            )
        return self

    @model_validator(mode="after")
    def _what_is_built_is_carried_to_the_nodes(self) -> CommandTable:
        if self.build and (
            self.transport is not transports.RankTransport.PVM or not self.command[0].startswith("{directory}/")
        ):
            raise KeyProblemError(
                ("build",),
                'is for transport = "pvm" and a command that begins with {directory}/, where it puts the program; others must be '
                "on every node",
            )
        return self

    @model_validator(mode="after")
    def _rules_have_values(self) -> CommandTable:
        for name, rule in {} if isinstance(self.scaling, str) else self.scaling.items():
            known = [
                "ranks",
                "nodes",
                *(one for one, values in self.parameters.items() if not any(isinstance(each, str) for each in values)),
            ]
            if name in (*BUILT_IN, *self.places):
                raise KeyProblemError(("scaling",), f"{name} is a name of fabricbench's own; needed another one")
            unknown = next((one for one in names_of(rule) if one not in known), None)
            if unknown is not None:
                raise KeyProblemError(
                    ("scaling", name),
                    f"{shown(rule)} needs a number {unknown}{did_you_mean(unknown, known)}; there are {', '.join(known)}",
                )
        return self

    @model_validator(mode="after")
    def _variables_are_whole(self) -> CommandTable:
        check_expanded("environment", self.environment)
        return self

    @model_validator(mode="after")
    def _placeholders_have_values(self) -> CommandTable:
        rules = {} if isinstance(self.scaling, str) else self.scaling
        built_in = (*BUILT_IN, *self.places)
        known = list(dict.fromkeys([*built_in, *self.parameters, *rules]))
        for text in (*self.build, *self.command, *self.environment.values()):
            for name in PLACEHOLDER.findall(text):
                if name not in known or (name == "input" and not self.files):
                    guess = did_you_mean(name, [one for one in known if one != name])
                    why = "is the first of `files`, and there are none" if name == "input" else f"has no value{guess}"
                    raise ValueError(f"{{{name}}} {why}; there are {', '.join(one for one in known if one != name)}")
        _check_slips(self.files, known)
        used = {name for text in self.templates for name in PLACEHOLDER.findall(text)}
        unused = next((name for name in rules if name not in used), None)
        if unused is not None:
            raise KeyProblemError(
                ("scaling",), f"{unused} changes nothing: write {{{unused}}} into the command, a file or a variable"
            )
        used |= {name for rule in rules.values() for name in names_of(rule)}
        for name, values in self.parameters.items():
            if name in (*built_in, "workload", "figure", "unit"):
                raise KeyProblemError(("parameters", name), "is a name of fabricbench's own; needed another one")
            if name not in used:
                meant = did_you_mean(name, sorted(used.difference(built_in)))
                advice = meant or f": write {{{name}}} into the command, a file or a variable"
                raise KeyProblemError(("parameters", name), f"changes nothing{advice}")
            if not values or len({*map(str, values)}) < len(values):
                raise KeyProblemError(
                    ("parameters", name), f"found {list(values)}, needed at least one value, each once"
                )
        return self

    # The last validator encloses those above, so that what they find can be told of the file as well.
    @model_validator(mode="wrap")
    @classmethod
    def _with_the_file(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        if not isinstance(data, Mapping) or data.get("application") is None:
            return handler(data)
        given = {name: value for name, value in data.items() if name != "application"}
        path = _beside_the_campaign(data["application"], info)
        try:
            file = read_table(path)
        except UsageError as error:
            raise ValueError(f"application: {error.message}") from None
        unknown = [name for name in file if name not in (*Application.model_fields, "parameters", "ranks")]
        if unknown:
            guess = did_you_mean(unknown[0], [*Application.model_fields, "parameters", "ranks"])
            raise ValueError(f"application: {path}: {unknown[0]}: unknown key{guess}")
        for source, where in ((file, f" in {path}"), (given, "")):
            wrong = [name for name in MERGED if not isinstance(source.get(name, {}), Mapping)]
            if wrong:
                raise ValueError(f"{wrong[0]}: found {source[wrong[0]]!r}{where}, needed a table: {{ key = value }}")
        merged = {name: {**file.get(name, {}), **given.get(name, {})} for name in MERGED}
        try:
            return handler({**file, **given, **merged})
        except ValidationError as error:
            raise _told_of_the_file(error, path, given) from None

    @property
    def names(self) -> tuple[str, ...]:
        """The application's."""
        return (self.name,)

    def plan(self, seats: RankSlots) -> Iterator[WorkloadStart | Unseated]:
        """Yield a start for each number of ranks and each combination of parameters."""
        counts, left_out = seated(self.name, self.ranks, seats, ADMITS[self.admits], self.admits)
        yield from left_out
        application = Application.model_validate({name: getattr(self, name) for name in Application.model_fields})
        for ranks in counts:
            for values in product(*self.parameters.values()):
                start = CommandStart(
                    application=application,
                    ranks=ranks,
                    values=dict(zip(self.parameters, values, strict=True)),
                    nodes=min(ranks, seats.number),
                )
                try:
                    start.files()
                except ValueError as error:
                    raise UsageError(f"application {self.name} on {ranks} ranks: scaling: {error}") from None
                yield start


def _check_slips(files: Mapping[str, str], known: Sequence[str]) -> None:
    """Raise KeyProblemError for braces in a file that are nearly a placeholder of ours; others are the program's own."""
    for file, text in files.items():
        for name in OF_A_FILE.findall(text):
            if name not in known and (guess := did_you_mean(name, list(known))):
                raise KeyProblemError(
                    ("files", file),
                    f"{{{name}}} has no value{guess} Braces that are the program's own may have a blank in them, {{ {name} }}",
                )


def shipped_table(name: str) -> CommandTable:
    """Return one of the applications that come with fabricbench, as a campaign has it that names it and nothing else."""
    return CommandTable.model_validate({"kind": "command", "application": name})


def _beside_the_campaign(name: Any, info: ValidationInfo) -> Path:
    """Return the path of an application file: of that name among ours, beside the campaign that names it, else as it stands."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"application: found {name!r}, needed the path of a TOML file")
    if name in shipped():
        return shipped()[name]
    if "/" not in name and not name.endswith(".toml"):
        known = list(shipped())
        raise ValueError(
            f"application: found {name!r}{did_you_mean(name, known)}; needed one of {', '.join(known)}, or the path of a TOML file"
        )
    folder = (info.context or {}).get("folder")
    beside = Path(folder) / expanded(name) if folder is not None else expanded(name)
    return beside if beside.exists() else expanded(name)


def _told_of_the_file(error: ValidationError, path: Path, given: Mapping[str, Any]) -> ValidationError:
    """Return the same problems, those that do not stand in the campaign (`given`) with the file's name and its keys."""
    told = []
    for detail in mistakes(error):
        one = InitErrorDetails(type=detail["type"], loc=detail["loc"], input=detail["input"], ctx=detail.get("ctx", {}))
        if not _stands_in(given, place_of(detail)):
            of_the_file = KeyProblemError(("application",), f"{path}: {problem_of(detail, CommandTable)}")
            one = InitErrorDetails(type="value_error", loc=(), input=detail["input"], ctx={"error": of_the_file})
        told.append(one)
    return ValidationError.from_exception_data(CommandTable.__name__, told)


def _stands_in(given: Mapping[str, Any], place: Place) -> bool:
    if not place:
        return False
    table = given.get(str(place[0]))
    return (
        place[1] in table if place[0] in MERGED and isinstance(table, Mapping) and len(place) > 1 else place[0] in given
    )


COMMAND = WorkloadKind(
    "command",
    "any MPI program, described in TOML: its command, its input, what to read from its output",
    CommandTable,
    CommandStart,
)
