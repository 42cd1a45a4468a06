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
unit = "GFLOP/s"                       # of a time: s, ms, us, ns, min or h, or "duration", written as 1m 2.5s
better = "higher"                      # or "lower", which the primary figure may be only where it is a time
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

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import isqrt
from pathlib import Path
from shlex import join, quote
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ModelWrapValidatorHandler, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from fabricbench.configuration import did_you_mean, mistakes, problem_of, read_table, shown, text_or_number
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.native import native_file
from fabricbench.record.workload_cells import Figure
from fabricbench.workload import counted, transports
from fabricbench.workload.adapter import (
    Kind,
    LeftOut,
    Output,
    Parameters,
    Parsed,
    Place,
    Ranks,
    Seats,
    Start,
    WorkloadTable,
    launch_name,
    named,
    seated,
)
from fabricbench.workload.application import PLACEHOLDER, Application, Lacking, as_tuple, filled, shipped
from fabricbench.workload.application_output import Reading
from fabricbench.workload.pace import Pace
from fabricbench.workload.scaling import ParameterName, names_of, value_of

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

Value = str | int | float
ReadValue = Annotated[Value, BeforeValidator(text_or_number)]


MERGED = ("parameters", "environment")
"""Tables of which a campaign may say a part, and an application file the rest."""


def grid(ranks: int) -> tuple[int, int]:
    """Return the most square grid of ranks, no more rows than columns."""
    rows = next(rows for rows in range(isqrt(ranks), 0, -1) if ranks % rows == 0)
    return rows, ranks // rows


class CommandStart(Start):
    """One command on so many ranks with one value for each parameter."""

    starts_others: ClassVar[bool] = True
    kind: Literal["command"] = "command"
    application: Application
    values: dict[str, Value] = {}
    nodes: int | None = None
    """How many nodes the ranks are on; None: one on each."""

    @property
    def name(self) -> str:
        """`hpl-n1000.4`."""
        return launch_name(self.application.name, self.values, self.ranks)

    @property
    def title(self) -> str:
        """`application hpl`."""
        return f"application {self.application.name}"

    @property
    def parameters(self) -> Parameters:
        """Its own, with the application's name."""
        return named(self.application.name, self.figure, self.values)

    @property
    def definition(self) -> Mapping[str, str]:
        """The application's."""
        return self.application.definition

    @property
    def figure(self) -> Figure:
        """The first one."""
        return self.application.figure_of(self.application.figure[0])

    def expected_seconds(self, pace: Pace) -> float:
        """Return what the application usually takes, on whichever fabric."""
        del pace
        return self.application.usual_seconds or self.application.expect_seconds

    @property
    def slowness(self) -> float:
        """Times as long as usually is what it is expected to take generously."""
        return self.application.expect_seconds / (self.application.usual_seconds or self.application.expect_seconds)

    def tokens(self, place: Place) -> list[str]:
        """Return the command in the launch's directory, behind what counts the interfaces around it."""
        values = self._placeholders(place)
        build, (program, *arguments) = (
            [filled(token, values) for token in tokens] for tokens in (self.application.build, self.application.command)
        )
        found = _found(self.application, build[0] if build else program, self.values, place.build)
        return counted.wrapped(
            [program if build else str(found), *arguments],
            place.directory / counted.AROUND,
            place.directory,
            self.environment(place),
            build=build,
            front=transports.front(self.application.transport, self.ranks, place),
        )

    def told_on_nodes(self) -> Mapping[str, str]:
        """Return what tells its transport the fabric."""
        return transports.told_on_nodes(self.application.transport)

    def environment(self, place: Place) -> dict[str, str]:
        """Return the application's variables with their placeholders filled."""
        values = self._placeholders(place)
        own = {name: filled(text, values) for name, text in self.application.environment.items()}
        return {**transports.inherited(self.application.transport), **own}

    def files(self) -> Mapping[str, str]:
        """Return the input files."""
        values = self._placeholders()
        return {name: filled(text, values) for name, text in self.application.files.items()}

    def _placeholders(self, place: Place | None = None) -> dict[str, Value]:
        rows, columns = grid(self.ranks)
        files = tuple(self.application.files)
        known: dict[str, Value] = {
            "ranks": self.ranks,
            "nodes": self.nodes or self.ranks,
            "rows": rows,
            "columns": columns,
            **self.application.places,
        }
        if place is not None:
            known["directory"] = str(place.directory)
            if place.fabric.interface is not None:
                known["interface"] = place.fabric.interface
            elif "{interface}" in "".join((*self.application.command, *self.application.environment.values())):
                raise EnvironmentLacks(
                    f"application {self.application.name} is told {{interface}}, and fabric {place.fabric.name} has no name of one",
                    hint="name the interface in the testbed, or take it out of the application",
                )
        if files:
            known["input"] = files[0]
        return known | self.values | self._scaled(known)

    def _scaled(self, known: Mapping[str, Value]) -> dict[str, Value]:
        """Return what the rules of weak scaling make of the parameters."""
        rules = {} if isinstance(self.application.scaling, str) else self.application.scaling
        return {name: value_of(rule, {**known, **self.values}) for name, rule in rules.items()}

    @property
    def native_programs(self) -> tuple[str, ...]:
        """The command's program, if it is one of ours."""
        program = self.application.command[0]
        return (program,) if program.startswith("fabricbench-") else ()

    def is_well(self, exit_code: int | None) -> bool:
        """Tell by the exit codes that it may end with."""
        return exit_code in self.application.success.exit_codes

    def parse(self, output: Output) -> Parsed | None:
        """Return what the output holds of figures, success and numbers to be verified."""
        around = counted.read_around(output.directory / counted.AROUND)
        if not output.stdout.exists() or (around.exit_code is None and not output.stdout.stat().st_size):
            return None
        return Reading(self.application, self.ranks, output, around).parsed()

    def beyond(self) -> Iterator[str]:
        """Yield the command: any program at all."""
        if self.application.build:
            yield f"{self.title}: {join(self.application.build)}"
        yield f"{self.title}: {join(self.application.command)}"
        for name, text in self.application.environment.items():
            yield f"{self.title}: every rank gets {name}={quote(text)}"


def _found(application: Application, program: str, values: Mapping[str, Value], build: Path | None) -> Path:
    found = shutil.which(program)
    if found is None and program.startswith("fabricbench-"):
        found = str(native_file(program, build))
    lacking = (Lacking.of(program),) if found is None else application.lacking(values)
    if found is None or lacking:
        raise _lacks(application, lacking)
    return Path(found).absolute()


def _lacks(application: Application, lacking: Sequence[Lacking]) -> EnvironmentLacks:
    """Return the error for what was looked for here, which every node must have at the same place."""
    first = lacking[0]
    is_of_transport = first.what in application.wanted_by_transport
    get = application.get or (transports.GET[application.transport] if is_of_transport else "")
    whose = f' for transport = "{application.transport}"' if is_of_transport else ""
    whats = ", and ".join(f"{one.what}, which {one.why}" for one in lacking)
    return EnvironmentLacks(
        f"application {application.name} needs{whose} {whats} (looked for on this machine, {os.uname().nodename})",
        hint=f"{get if get and first.is_absent else first.action}. It must be at the same place on every node and on this machine; "
        "where only nodes have it, plan and run on one of them",
    )


class CommandTable(WorkloadTable, Application):
    """An application with what it is run with. `application` names a file that has the rest."""

    kind: Literal["command"] = "command"
    application: str | None = None
    """The file that has the rest; None once it is read."""
    ranks: Ranks = "all"
    parameters: dict[ParameterName, Annotated[tuple[ReadValue, ...], BeforeValidator(as_tuple)]] = {}

    @model_validator(mode="after")
    def _units_say_what_is_meant(self) -> CommandTable:
        misleading = self.misleading()
        if misleading is not None:
            raise ValueError(misleading)
        return self

    @model_validator(mode="after")
    def _searches_its_own_directory(self) -> CommandTable:
        elsewhere = next((name for name in self.searched if "/" in name or name in ("", ".", "..")), None)
        if elsewhere is not None:
            raise ValueError(
                f"file: found {elsewhere!r}, needed stdout, stderr or the name of a file that the program writes where it starts"
            )
        return self

    @model_validator(mode="after")
    def _success_demands_something(self) -> CommandTable:
        if not self.success.found and not self.verify:
            raise ValueError(
                "success: nothing tells a good run from one that printed its figure and failed; needed `found`, what a good one "
                "prints, or a number of its result in [[verify]]"
            )
        empty = next((one for one in (*self.success.found, *self.success.absent) if re.search(one, "")), None)
        if empty is not None:
            raise ValueError(
                f"success: {empty!r} is found in any output, in an empty one as well; needed what only some have"
            )
        return self

    @model_validator(mode="after")
    def _what_is_built_is_carried_to_the_nodes(self) -> CommandTable:
        if self.build and (
            self.transport is not transports.Transport.PVM or not self.command[0].startswith("{directory}/")
        ):
            raise ValueError(
                'build: is for transport = "pvm" and a command that begins with {directory}/, where it puts the program; '
                "others must be on every node"
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
                raise ValueError(f"scaling: {name} is a name of fabricbench's own; needed another one")
            unknown = next((one for one in names_of(rule) if one not in known), None)
            if unknown is not None:
                raise ValueError(
                    f"scaling.{name}: {shown(rule)} needs a number {unknown}{did_you_mean(unknown, known)}; "
                    f"there are {', '.join(known)}"
                )
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
        used = {name for text in self.templates for name in PLACEHOLDER.findall(text)}
        unused = next((name for name in rules if name not in used), None)
        if unused is not None:
            raise ValueError(
                f"scaling: {unused} changes nothing: write {{{unused}}} into the command, a file or a variable"
            )
        used |= {name for rule in rules.values() for name in names_of(rule)}
        for name, values in self.parameters.items():
            if name in (*built_in, "workload", "figure", "unit"):
                raise ValueError(f"parameters: {name} is a name of fabricbench's own; needed another one")
            if name not in used:
                meant = did_you_mean(name, sorted(used.difference(built_in)))
                advice = meant or f": write {{{name}}} into the command, a file or a variable"
                raise ValueError(f"parameters: {name} changes nothing{advice}")
            if not values or len({*map(str, values)}) < len(values):
                raise ValueError(f"parameters: {name} is {list(values)}, needed at least one value, each once")
        return self

    # The last validator encloses those above, so that what they find can be told of the file as well.
    @model_validator(mode="wrap")
    @classmethod
    def _with_the_file(
        cls, data: Any, handler: ModelWrapValidatorHandler[CommandTable], info: ValidationInfo
    ) -> CommandTable:
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

    def plan(self, seats: Seats) -> Iterator[Start | LeftOut]:
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
    beside = Path(folder) / Path(name).expanduser() if folder is not None else Path(name).expanduser()
    return beside if beside.exists() else Path(name).expanduser()


def _told_of_the_file(error: ValidationError, path: Path, given: Mapping[str, Any]) -> ValidationError:
    """Return the same problems, those that do not stand in the campaign (`given`) with the file's name and its keys."""
    told = []
    for detail in mistakes(error):
        kind: str | PydanticCustomError = detail["type"]
        place: tuple[int | str, ...] = detail["loc"]
        if not _stands_in(given, place or _place_said(detail["msg"])):
            text = f"{path}: {problem_of(detail, CommandTable)}"
            kind, place = PydanticCustomError("value_error", "{text}", {"text": text}), ("application",)
        told.append(InitErrorDetails(type=kind, loc=place, input=detail["input"], ctx=detail.get("ctx", {})))
    return ValidationError.from_exception_data(CommandTable.__name__, told)


def _place_said(message: str) -> tuple[str, ...]:
    """Return the keys that a message begins with: `parameters: n changes nothing`, `scaling.n: ...`."""
    found = re.match(r"(\w+)(?:\.|: )(\w*)", message.removeprefix("Value error, "))
    return found.groups() if found else ()


def _stands_in(given: Mapping[str, Any], place: tuple[int | str, ...]) -> bool:
    if not place:
        return False
    table = given.get(str(place[0]))
    return (
        place[1] in table if place[0] in MERGED and isinstance(table, Mapping) and len(place) > 1 else place[0] in given
    )


COMMAND = Kind(
    "command",
    "any MPI program, described in TOML: its command, its input, what to read from its output",
    CommandTable,
    CommandStart,
)
