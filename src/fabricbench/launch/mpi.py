"""Which starter starts the ranks of which MPI library, and what it is told of a job: `launch/starting.py` says by which rule.

A library or a starter is a file of its own and a line in `LIBRARIES` or `STARTERS`. Each is recognised by what it prints of its
version.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fabricbench.configuration import did_you_mean
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.launch import on_subnet
from fabricbench.launch.library import mpich, openmpi
from fabricbench.launch.starter import hydra, srun
from fabricbench.launch.starter.prterun import ORTERUN, PRTERUN
from fabricbench.launch.starter.template import Template
from fabricbench.launch.starting import (
    BINDING,
    PRELOAD,
    WAITING_ASLEEP,
    Given,
    Job,
    Library,
    Placement,
    Selection,
    Starter,
    version_in,
)
from fabricbench.native import build_info
from fabricbench.testbed.model import Fabric

LIBRARIES: tuple[Library, ...] = (mpich, openmpi)
STARTERS: tuple[Starter, ...] = (hydra, PRTERUN, ORTERUN, srun)

VERSION_SECONDS = 20


@dataclass(frozen=True)
class Merged:
    """What the ranks and the starter of a launch are told. `replaced`: what of ours the testbed set otherwise, in words.

    `options`: what of ours the testbed's arguments say themselves (`Given.replaced`).
    """

    environment: dict[str, str]
    by_subnet: dict[str, str]
    arguments: tuple[str, ...]
    replaced: tuple[str, ...]
    options: frozenset[str]


def merged(ours: Selection, preload: Path | None, fabric: Fabric, given: Given) -> Merged:
    """Return what we set and what the testbed sets for a fabric, merged by the rule of `launch/starting.py`.

    UsageError where the testbed's arguments hand on an `LD_PRELOAD` whose value is not known, so that ours cannot be joined to it.
    """
    theirs = {**fabric.mpi_environment, **given.environment}
    setters = {
        name: next((one for one in (name, *ours.gives_way.get(name, ())) if one in theirs), None)
        for name in (*ours.environment, *ours.by_subnet)
    }
    kept = {name: value for name, value in ours.environment.items() if setters[name] is None}
    environment = {**kept, **{name: value for name, value in theirs.items() if value is not None}}
    preloads = [preload, fabric.mpi_environment.get(PRELOAD), given.environment.get(PRELOAD)]
    if preload is not None and PRELOAD in given.environment and preloads[-1] is None:
        raise UsageError(
            f"fabric {fabric.name}: mpi_arguments hand on the caller's {PRELOAD}, and {preload} is to be preloaded as well",
            hint=f"write its value into the testbed: mpi_environment = {{ {PRELOAD} = ... }}",
        )
    if joined := ":".join(str(one) for one in preloads if one):
        environment[PRELOAD] = joined
    told = {**ours.environment, **{name: f"the interface in {subnet}" for name, subnet in ours.by_subnet.items()}}
    return Merged(
        environment,
        {name: subnet for name, subnet in ours.by_subnet.items() if setters[name] is None},
        given.arguments,
        tuple(
            f"{name}={told[name]} by the testbed's {setter}"
            for name, setter in setters.items()
            if setter is not None and theirs[setter] != told[name]
        ),
        given.replaced,
    )


@dataclass(frozen=True)
class MpiStarter:
    """A starter that was found, with the MPI library of the ranks that it is to start."""

    program: str
    starter: Starter
    version: str
    library: Library
    library_version: str

    def tokens(self, placement: Placement, fabric: Fabric, program: Sequence[str]) -> list[str]:
        """Return the tokens that start the program over the placement, with MPI on the fabric."""
        told = self._merged(placement, fabric)
        behind = list(program)
        for name, subnet in told.by_subnet.items():
            behind = [sys.executable, "-I", "-S", on_subnet.__file__, name, subnet, *behind]
        pmi = self.library.SLURM_PMI
        job = Job(tuple(behind), placement, told.environment, told.arguments, pmi, told.options)
        return self.starter.tokens(self.program, job)

    def conditions(self, placement: Placement, fabric: Fabric) -> dict[str, str]:
        """Return what a reader must know of how ranks are started so: what -> fact."""
        told = self._merged(placement, fabric)
        layout = placement.layout
        found = {
            "mpi": f"{self.library.NAME} {self.library_version}",
            "starter": f"{self.starter.NAME} {self.version}".strip(),
            "binding": "as mpi_arguments say" if BINDING in told.options else str(layout.binding),
            "ranks per node": "" if layout.ranks_per_node is None else str(layout.ranks_per_node),
            "threads per rank": "" if layout.threads_per_rank is None else str(layout.threads_per_rank),
            "mpi environment": shlex.join(f"{name}={value}" for name, value in told.environment.items()),
            "mpi interface": ", ".join(f"{name}: a node's own in {subnet}" for name, subnet in told.by_subnet.items()),
            "mpi arguments": shlex.join(told.arguments),
            "mpi replaced": "; ".join(told.replaced),
        }
        waits = WAITING_ASLEEP if placement.preload is not None else {}
        return {**waits, **{what: fact for what, fact in found.items() if fact}}

    @property
    def reaches_nodes(self) -> bool:
        """Whether no ssh is needed to reach a node."""
        return self.starter.REACHES_NODES

    def on_node(self, node: str, tokens: Sequence[str]) -> list[str]:
        """Return the tokens that run something else, no MPI program, once on a node."""
        return self.starter.tokens(self.program, Job(tuple(tokens), Placement(1, (node,))))

    def _merged(self, placement: Placement, fabric: Fabric) -> Merged:
        selection = self.library.selection(fabric, shares_memory=placement.shares_memory)
        threads = placement.layout.threads_per_rank
        ours = {
            **selection.environment,
            **({} if placement.preload is None else self.library.WAITS_ASLEEP),
            **({} if threads is None else {"OMP_NUM_THREADS": str(threads)}),
        }
        whole = Selection(ours, selection.by_subnet, selection.gives_way)
        return merged(whole, placement.preload, fabric, self.starter.parse(fabric.mpi_arguments))


@cache
def find_starter(wish: str | tuple[str, ...] | None = None) -> MpiStarter:
    """Return the starter that a testbed wishes for: by name, by a template of tokens, else that of the MPI we were built with.

    UsageError for a name that there is not, EnvironmentLacks where it is not here, or answers as something else.
    """
    if wish is None:
        mpiexec = build_info().mpiexec
        text = _version_text([mpiexec, "--version"])
        for starter in STARTERS:
            if starter.is_it(text):
                return MpiStarter(mpiexec, starter, version_in(text), *_library(text))
        raise _unknown(mpiexec, text)
    if isinstance(wish, tuple):
        template = Template(wish)
        program = shutil.which(wish[0])
        if program is None:
            raise EnvironmentLacks(
                f"testbed.starter: there is no program {wish[0]} here",
                hint="correct the first token of `starter`, or start fabricbench where that program is",
            )
        return MpiStarter(program, template, "", *_library())
    named = {starter.NAME: starter for starter in STARTERS}
    if wish not in named:
        known = list(named)
        raise UsageError(
            f"testbed.starter: found {wish!r}, needed one of {', '.join(known)}{did_you_mean(wish, known)}",
            hint="or write the tokens of another starter, with placeholders (docs/starting.md)",
        )
    program, version = _found(named[wish])
    return MpiStarter(program, named[wish], version, *_library())


def _found(starter: Starter) -> tuple[str, str]:
    """Return where a starter is, and its version; EnvironmentLacks where it is not."""
    beside = str(Path(build_info().mpicxx).parent)
    answers = []
    for name in starter.PROGRAMS:
        for program in dict.fromkeys(filter(None, (shutil.which(name, path=beside), shutil.which(name)))):
            text = _version_text([program, "--version"])
            if starter.is_it(text):
                return program, version_in(text)
            answers.append(f"{program} is another ({version_in(text)})")
    raise EnvironmentLacks(
        f"no {starter.NAME}: {', '.join(starter.PROGRAMS)} is neither on the PATH nor in {beside}"
        if not answers
        else f"no {starter.NAME}: {'; '.join(answers)}",
        hint=f"start fabricbench where {starter.NAME} is (a login or compute node), or leave `starter` out of the testbed",
    )


def _library(text: str | None = None) -> tuple[Library, str]:
    """Return the MPI library that we were built with, and its version, from what its starter printed, or its compiler prints.

    A site whose ranks are started by srun may have no mpiexec at all.
    """
    info = build_info()
    asked = [[info.mpiexec, "--version"], [info.mpicxx, "-v"], [info.mpicxx, "--showme:version"]]
    texts = [text] if text is not None else []
    for command in asked if text is None else []:
        try:
            texts.append(_version_text(command))
        except EnvironmentLacks as error:
            texts.append(error.message)
        if any(library.is_it(texts[-1]) for library in LIBRARIES):
            break
    for library in LIBRARIES:
        if library.is_it(texts[-1]):
            return library, version_in(texts[-1])
    raise _unknown(info.mpiexec, texts[0])


def _version_text(command: list[str]) -> str:
    """Return what a program prints of its version; EnvironmentLacks where it cannot be asked."""
    asked = " ".join(command)
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=VERSION_SECONDS, check=False, env=dict(os.environ)
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentLacks(
            f"`{asked}` failed: {error}",
            hint="repeat it by hand; if that MPI is gone, build with another: `make clean all`",
        ) from error
    if answer.returncode < 0:
        by = signal.Signals(-answer.returncode).name
        raise EnvironmentLacks(f"`{asked}` was ended by {by}", hint="repeat the command; who ends programs here?")
    return answer.stdout + answer.stderr


def _unknown(mpiexec: str, text: str) -> EnvironmentLacks:
    known = ", ".join(library.NAME for library in LIBRARIES)
    return EnvironmentLacks(
        f"`{mpiexec} --version` is of no MPI that fabricbench knows; it printed: {text.strip()[:200]!r}",
        hint=f"build with one of {known}: set MPICC and run `make clean all`",
    )
