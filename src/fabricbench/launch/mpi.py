"""Which starter starts the ranks of which MPI library, and what it is told of a job: `launch/starting.py` says by which rule.

A library or a starter is a file of its own and a line in `LIBRARIES` or `STARTERS`. Each is recognised by what it prints of its
version.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from fabricbench.configuration import did_you_mean
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.launch import on_subnet
from fabricbench.launch.building import find_build
from fabricbench.launch.foreign import CLEARED, Foreign, foreign
from fabricbench.launch.installation import VERSION_SECONDS, Installation, find_installation, version_text
from fabricbench.launch.library import intelmpi, mpich, openmpi
from fabricbench.launch.library.mvapich import MVAPICH, MVAPICH2
from fabricbench.launch.starter import hydra, intel_hydra, srun
from fabricbench.launch.starter.prterun import ORTERUN, PRTERUN
from fabricbench.launch.starter.template import Template
from fabricbench.launch.starting import (
    BINDING,
    ON_INTERFACE,
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
from fabricbench.preload import PRELOAD, joined
from fabricbench.testbed.allocation import are_allocated
from fabricbench.testbed.model import Fabric, Mpi, Testbed

LIBRARIES: tuple[Library, ...] = (MVAPICH2, MVAPICH, intelmpi, mpich, openmpi)
"""MVAPICH and Intel MPI are made of MPICH, and some of their words are its words: they are asked first."""

STARTERS: tuple[Starter, ...] = (hydra, intel_hydra, PRTERUN, ORTERUN, srun)


def _by_node(name: str, template: str, fabric: Fabric) -> str:
    what = "" if template == ON_INTERFACE else f"{template} "
    return f"{name}: {what}a node's own in {fabric.where}"


@dataclass(frozen=True)
class Merged:
    """What the ranks and the starter of a launch are told. `replaced`: what of ours the testbed set otherwise, in words.

    `options`: what of ours the testbed's arguments say themselves (`Given.replaced`).
    """

    environment: dict[str, str]
    by_node: dict[str, str]
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
        for name in (*ours.environment, *ours.by_node)
    }
    kept = {name: value for name, value in ours.environment.items() if setters[name] is None}
    environment = {**kept, **{name: value for name, value in theirs.items() if value is not None}}
    preloads = [preload, fabric.mpi_environment.get(PRELOAD), given.environment.get(PRELOAD)]
    if preload is not None and PRELOAD in given.environment and preloads[-1] is None:
        raise UsageError(
            f"fabric {fabric.name}: mpi_arguments hand on the caller's {PRELOAD}, and {preload} is to be preloaded as well",
            hint=f"write its value into the testbed: mpi_environment = {{ {PRELOAD} = ... }}",
        )
    if preloaded := joined(*preloads):
        environment[PRELOAD] = preloaded
    where = fabric.where
    told = {**ours.environment, **{name: f"{template} in {where}" for name, template in ours.by_node.items()}}
    return Merged(
        environment,
        {name: template for name, template in ours.by_node.items() if setters[name] is None},
        given.arguments,
        tuple(
            f"{name}={told[name]} by the testbed's {setter}"
            for name, setter in setters.items()
            if setter is not None and theirs[setter] != told[name]
        ),
        given.replaced,
    )


BUILT_WITH = Installation("", "", "")
"""Nothing to load, and nothing around what ranks run."""


@dataclass(frozen=True)
class MpiStarter:
    """A starter that was found, with the MPI library of the ranks that it is to start.

    `others` are those of the testbed's other MPIs, by name: a fabric that names one is measured with that.
    """

    program: str
    starter: Starter
    version: str
    library: Library
    library_version: str
    installation: Installation = BUILT_WITH
    others: Mapping[str, MpiStarter] = field(default_factory=dict)

    def of(self, fabric: Fabric) -> MpiStarter:
        """Return the starter of the MPI that a fabric is measured with."""
        return self.others.get(fabric.mpi, self)

    @property
    def mpi(self) -> str:
        """The library with its version."""
        return f"{self.library.NAME} {self.library_version}"

    def tokens(self, placement: Placement, fabric: Fabric, program: Sequence[str]) -> list[str]:
        """Return the tokens that start the program over the placement, with MPI on the fabric."""
        return self.of(fabric)._tokens(placement, fabric, program)  # noqa: SLF001 - another of this class

    def _tokens(self, placement: Placement, fabric: Fabric, program: Sequence[str]) -> list[str]:
        told = self._merged(placement, fabric)
        behind = [*self.installation.inside, *program]
        if told.by_node:
            behind = on_subnet.wrapped(told.by_node, fabric.where, behind)
        pmi = self.library.SLURM_PMI
        environment = {**self.installation.set_variables, **told.environment}
        job = Job(tuple(behind), placement, environment, told.arguments, pmi, told.options)
        return self.installation.loaded(self.starter.tokens(self.program, job))

    def conditions(self, placement: Placement, fabric: Fabric) -> dict[str, str]:
        """Return what a reader must know of how ranks are started so: what -> fact."""
        return self.of(fabric)._conditions(placement, fabric)  # noqa: SLF001 - another of this class

    def _conditions(self, placement: Placement, fabric: Fabric) -> dict[str, str]:
        told = self._merged(placement, fabric)
        layout = placement.layout
        found = {
            "mpi": self.mpi,
            "mpi installation": self.installation.mpicxx if self.installation.name else "",
            "mpi load printed": self.installation.printed,
            "mpi inside": shlex.join(self.installation.inside),
            "starter": f"{self.starter.NAME} {self.version}".strip(),
            "binding": "as mpi_arguments say" if BINDING in told.options else str(layout.binding),
            "ranks per node": "" if layout.ranks_per_node is None else str(layout.ranks_per_node),
            "threads per rank": "" if layout.threads_per_rank is None else str(layout.threads_per_rank),
            "mpi environment": shlex.join(f"{name}={value}" for name, value in told.environment.items()),
            "mpi interface": ", ".join(_by_node(name, template, fabric) for name, template in told.by_node.items()),
            "mpi arguments": shlex.join(told.arguments),
            "mpi replaced": "; ".join(told.replaced),
            CLEARED: self.foreign(fabric, placement).told,
        }
        waits = WAITING_ASLEEP if placement.preload is not None else {}
        return {**waits, **{what: fact for what, fact in found.items() if fact}}

    def foreign(self, fabric: Fabric, placement: Placement | None = None) -> Foreign:
        """Return what is taken of the caller's environment before ranks are started: of an MPI's own starter alone."""
        one = self.of(fabric)
        if not any(one.starter.NAME in library.OWN_STARTERS for library in LIBRARIES):
            return Foreign()
        given = one.starter.parse(fabric.mpi_arguments).environment
        handed_on = [name for name, value in given.items() if value is None]
        return foreign(handed_on, is_own_job=placement is not None and are_allocated(placement.hosts))

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
        whole = Selection(ours, selection.by_node, selection.gives_way)
        return merged(whole, placement.preload, fabric, self.starter.parse(fabric.mpi_arguments))


def starter_of(testbed: Testbed) -> MpiStarter:
    """Return the starter of a testbed, with those of its other MPIs. Raises as `find_starter`."""
    named = {mpi.name: find_starter(testbed.starter, mpi) for mpi in testbed.mpis}
    _check_apart([one.installation for one in named.values()])
    first = next(iter(named.values()), None) or find_starter(testbed.starter)
    return replace(first, others=named)


def _check_apart(installations: Sequence[Installation]) -> None:
    """Raise UsageError where two MPIs of a testbed are the same programs, loaded alike: they would be compared with themselves."""
    seen: dict[Any, str] = {}
    for one in installations:
        loading = tuple(sorted((name, value or "") for name, value in one.loading.items()))
        programs = (
            (one.mpicxx, one.mpiexec)
            if one.inside
            else tuple(str(Path(path).resolve()) for path in (one.mpicxx, one.mpiexec))
        )
        other = seen.setdefault((*programs, one.inside, loading), one.name)
        if other != one.name:
            printed = f"; `load` of {one.name} printed: {one.printed}" if one.printed else ""
            raise UsageError(
                f"[[mpi]] {other} and [[mpi]] {one.name} are one: both are {one.mpicxx}, "
                f"and loading them changes the same{printed}",
                hint="correct `prefix` or `load` of one of the two, or take it out of the testbed",
            )


@cache
def find_starter(wish: str | tuple[str, ...] | None = None, mpi: Mpi | None = None) -> MpiStarter:
    """Return the starter that a testbed wishes for: by name, by a template of tokens, else that of the MPI itself.

    `mpi` is one of the testbed's, None the one that we were built with. UsageError for a name that there is not, or that starts no
    rank of this MPI, EnvironmentLacks where it is not here, or answers as something else.
    """
    installation = find_installation(mpi)
    if wish is None:
        return _own_starter(installation)
    if isinstance(wish, tuple):
        template = Template(wish)
        program = installation.find(wish[0])
        if program is None:
            raise EnvironmentLacks(
                f"testbed.starter: there is no program {wish[0]} here",
                hint="correct the first token of `starter`, or start fabricbench where that program is",
            )
        return MpiStarter(program, template, "", *find_library(installation), installation)
    named = {starter.NAME: starter for starter in STARTERS}
    if wish not in named:
        known = list(named)
        raise UsageError(
            f"testbed.starter: found {wish!r}, needed one of {', '.join(known)}{did_you_mean(wish, known)}",
            hint="or write the tokens of another starter, with placeholders (docs/starting.md)",
        )
    library, library_version = find_library(installation)
    comes_with = [one.NAME for one in LIBRARIES if wish in one.OWN_STARTERS]
    if comes_with and library.NAME not in comes_with:
        raise UsageError(
            f"testbed.starter: {wish} starts {', '.join(comes_with)}; {installation} is {library.NAME} {library_version}",
            hint=f"leave `starter` out, or write one of {', '.join((*library.OWN_STARTERS, srun.NAME))}",
        )
    program, version = _found(named[wish], installation)
    return MpiStarter(program, named[wish], version, library, library_version, installation)


def _own_starter(installation: Installation) -> MpiStarter:
    if not installation.mpiexec:
        raise EnvironmentLacks(
            f"{installation} has no mpiexec beside {installation.mpicxx}",
            hint='name it: `mpiexec` of the [[mpi]]; or let another program start its ranks: starter = "srun" of the testbed',
        )
    text = version_text([installation.mpiexec, "--version"], installation.environment)
    for starter in STARTERS:
        if starter.is_it(text):
            library = find_library(installation, text)
            return MpiStarter(installation.mpiexec, starter, version_in(text), *library, installation)
    raise _unknown(installation, text)


def _found(starter: Starter, installation: Installation) -> tuple[str, str]:
    """Return where a starter is, and its version; EnvironmentLacks where it is not."""
    beside = str(Path(installation.mpicxx).parent)
    answers = []
    for name in starter.PROGRAMS:
        for program in dict.fromkeys(filter(None, (shutil.which(name, path=beside), installation.find(name)))):
            text = version_text([program, "--version"], installation.environment)
            if starter.is_it(text):
                return program, version_in(text)
            answers.append(f"{program} is another: `{program} --version` printed {text.strip()[:200]!r}")
    raise EnvironmentLacks(
        f"no {starter.NAME}: {', '.join(starter.PROGRAMS)} is neither on the PATH nor in {beside}"
        if not answers
        else f"no {starter.NAME}: {'; '.join(answers)}",
        hint=f"start fabricbench where {starter.NAME} is (a login or compute node), or leave `starter` out of the testbed",
    )


def find_library(installation: Installation, text: str = "") -> tuple[Library, str]:
    """Return the library of an MPI, and its version, from what its starter printed (`text`), or its compiler prints.

    A site whose ranks are started by srun may have no mpiexec at all.
    """
    texts = [text] if text and not hydra.is_it(text) else []  # which several libraries have
    for command in installation.version_texts() if not texts else []:
        try:
            texts.append(version_text(command, installation.environment))
        except EnvironmentLacks as error:
            texts.append(error.message)
        if any(library.is_it(texts[-1]) for library in LIBRARIES):
            break
    for library in LIBRARIES:
        if library.is_it(texts[-1]):
            _check_called(installation, library, version_in(texts[-1]))
            return _as_built(library, installation), version_in(texts[-1])
    raise _unknown(installation, texts[-1])


def _check_called(installation: Installation, library: Library, version: str) -> None:
    """Raise EnvironmentLacks where a testbed calls an MPI by the name of another library than it is by its own words."""
    called = [one for one in LIBRARIES if any(word in installation.name for word in one.CALLED)]
    if called and library.NAME not in [one.NAME for one in called]:
        printed = f"; its `load` printed: {installation.printed}" if installation.printed else ""
        raise EnvironmentLacks(
            f"[[mpi]] {installation.name}: {installation.mpicxx} is {library.NAME} {version} by its own words, and no "
            f"{called[0].NAME}{printed}",
            hint=f"correct `load` or `prefix` of [[mpi]] {installation.name}, or call it what it is",
        )


def _as_built(library: Library, installation: Installation) -> Library:
    """Return the MPICH that this one is, by what stands beside its compiler; any other library as it is."""
    if library is not mpich:
        return library
    teller = str(Path(installation.mpicxx).with_name(mpich.BUILD_TELLER))
    try:
        text = version_text([*installation.inside, teller], installation.environment)
    except EnvironmentLacks:
        return library
    return mpich.OVER_UCX_ALONE if mpich.OVER_UCX_ALONE.is_it(text) else library


def _unknown(installation: Installation, text: str) -> EnvironmentLacks:
    known = ", ".join(library.NAME for library in LIBRARIES)
    asked = f"{installation.mpiexec or installation.mpicxx} --version"
    return EnvironmentLacks(
        f"`{asked}` is of no MPI that fabricbench knows; it printed: {text.strip()[:200]!r}",
        hint=f"name one of {known} in [[mpi]] {installation.name}"
        if installation.name
        else f"build with one of {known}: set MPICC and run `make clean all`",
    )


def is_built_with(installation: Installation) -> bool:
    """Tell whether it is the MPI that the package's own programs were built with, under another name."""
    return not installation.inside and Path(installation.mpicxx).resolve() == Path(build_info().mpicxx).resolve()


@cache
def programs_of(mpi: Mpi | None) -> Path | None:
    """Return the folder of our programs that were built with an MPI; None: the package's own were. EnvironmentLacks: none were."""
    if mpi is None:
        return None
    installation = find_installation(mpi)
    if is_built_with(installation):
        return None
    library, version = find_library(installation)
    found = find_build(installation, f"{library.NAME} {version}")
    if found is None:
        raise EnvironmentLacks(
            f"fabricbench is not built for MPI {mpi.name}, {library.NAME} {version} of {installation.mpicxx}, "
            "or only from other sources",
            hint=f"run `fabricbench build --mpi {mpi.name} --testbed FILE`: once, some minutes, without internet",
        )
    return found


LIBRARY_PATH = "LD_LIBRARY_PATH"


def _about_library_path(said: str, path: str) -> str | None:
    """Return what to do where the loader took a library from LD_LIBRARY_PATH that it cannot load; None where it did not."""
    folder = next((one for one in path.split(os.pathsep) if one and f"{one.rstrip('/')}/" in said), None)
    if folder is None:
        return None
    return f"{LIBRARY_PATH} brings it from {folder}: unload the module that sets that, or start without the variable"


def check_fits(starter: MpiStarter, program: Path) -> None:
    """Raise EnvironmentLacks where a program of ours is linked to another MPI library than the one that is to start it, or to none.

    It is asked itself, with the MPI loaded as its ranks will have it. What gives no answer is not refused here.
    """
    installation = starter.installation
    command = [*installation.inside, str(program), "--mpi"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=VERSION_SECONDS, check=False,
            env=installation.environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return
    name = installation.name
    hint = (
        f"run `fabricbench build --mpi {name} --testbed FILE --again`"
        if name
        else "run `make clean all`, or install again"
    )
    if "error while loading shared libraries" in answer.stderr:
        hint = _about_library_path(answer.stderr, installation.environment.get(LIBRARY_PATH, "")) or hint
        raise EnvironmentLacks(f"{program} does not start with {starter.mpi}: {answer.stderr.strip()}", hint=hint)
    found = next((one for one in LIBRARIES if one.is_it(answer.stdout)), None) if answer.returncode == 0 else None
    if found is not None and found.NAME != starter.library.NAME:
        raise EnvironmentLacks(
            f"{program} runs with {found.NAME} {version_in(answer.stdout)}, and {starter.program} starts ranks of {starter.mpi}",
            hint=hint,
        )
