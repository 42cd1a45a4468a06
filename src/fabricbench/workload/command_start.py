"""One start of a command: its tokens, its files, its variables, and what its output holds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from math import isqrt
from pathlib import Path
from shlex import join, quote
from typing import ClassVar, Literal

from fabricbench.errors import EnvironmentLacks
from fabricbench.native import native_file
from fabricbench.record.setup import Value
from fabricbench.record.workload_cells import FigureOfMerit, WorkloadResult
from fabricbench.workload import counted, transports
from fabricbench.workload.adapter import (
    Output,
    Parameters,
    Place,
    WorkloadStart,
    launch_name,
    named,
)
from fabricbench.workload.application import Application, MissingPrerequisite, filled
from fabricbench.workload.application_output import OutputReader
from fabricbench.workload.pace import Pace
from fabricbench.workload.scaling import value_of


def grid(ranks: int) -> tuple[int, int]:
    """Return the most square grid of ranks, no more rows than columns."""
    rows = next(rows for rows in range(isqrt(ranks), 0, -1) if ranks % rows == 0)
    return rows, ranks // rows


class CommandStart(WorkloadStart):
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
    def figure(self) -> FigureOfMerit:
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
            fabric=place.fabric.where,
            build=build,
            front=transports.front(self.application.transport, self.ranks, place),
        )

    def canonical_form(self, place: Place) -> object:
        """Return its ranks, and its texts with their placeholders filled but for a fabric's."""
        del place
        values = self._placeholders()
        return self.ranks, [filled(text, values) for text in self.application.templates]

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
    def threads_told(self) -> Mapping[str, int]:
        """What its variables say; a placeholder is filled."""
        values = self._placeholders()
        told = {
            name: filled(text, values) for name, text in self.application.environment.items() if name in counted.THREADS
        }
        return {name: int(text) for name, text in told.items() if text.isdecimal()}

    @property
    def native_programs(self) -> tuple[str, ...]:
        """The command's program, if it is one of ours."""
        program = self.application.command[0]
        return (program,) if program.startswith("fabricbench-") else ()

    def is_success(self, exit_code: int | None) -> bool:
        """Tell by the exit codes that it may end with."""
        return exit_code in self.application.success.exit_codes

    def parse(self, output: Output) -> WorkloadResult | None:
        """Return what the output holds of figures, success and numbers to be verified."""
        around = counted.read_around(output.directory / counted.AROUND)
        if not output.stdout.exists() or (around.exit_code is None and not output.stdout.stat().st_size):
            return None
        return OutputReader(self.application, self.ranks, output, around).result()

    def external_commands(self) -> Iterator[str]:
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
    lacking = (MissingPrerequisite.of(program),) if found is None else application.lacking(values)
    if found is None or lacking:
        raise _lacks(application, lacking)
    return Path(found).absolute()


def _lacks(application: Application, lacking: Sequence[MissingPrerequisite]) -> EnvironmentLacks:
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
