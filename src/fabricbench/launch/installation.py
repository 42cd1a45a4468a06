"""Where an MPI of the testbed is (`[[mpi]]`), and what loading it does to the environment; without one, what we were built with.

Which library it is, its own programs tell (`launch/mpi.py` knows whose words those are). What of ours was built with it is
`launch/building.py`'s.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from fabricbench.configuration import expanded
from fabricbench.errors import EnvironmentLacks
from fabricbench.native import build_info
from fabricbench.testbed.model import Mpi

COMPILERS = ("mpicxx", "mpic++")
STARTER = "mpiexec"

VERSION_SECONDS = 20
LOAD_SECONDS = 60
"""Module systems of large sites read thousands of files from a file server."""

LINE_FAILED = 97
"""Ends the shell that loads an MPI where a line of `load` fails."""

MOST_PRINTED = 500
"""Characters of what `load` prints that are shown."""

MARK = b"\0fabricbench: the environment follows\0"
"""What a login shell prints by itself comes before."""

OF_THE_SHELL = {"_", "SHLVL", "PWD", "OLDPWD"}
"""Variables that differ from one shell to the next, whatever is loaded."""

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Installation:
    """An MPI. `name` is the testbed's, empty for the one that we were built with.

    `loading` is what loading it changes in the environment, None: the variable is taken away. `inside` are tokens before all that
    a rank runs; `printed` is what loading it printed. `mpiexec` is empty where there is none (ranks may be started by srun).
    """

    name: str
    mpicxx: str
    mpiexec: str
    loading: Mapping[str, str | None] = field(default_factory=dict)
    inside: tuple[str, ...] = ()
    printed: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment with the MPI loaded."""
        return {name: value for name, value in {**os.environ, **self.loading}.items() if value is not None}

    @property
    def set_variables(self) -> dict[str, str]:
        """What loading sets."""
        return {name: value for name, value in self.loading.items() if value is not None}

    def loaded(self, tokens: Sequence[str]) -> list[str]:
        """Return the tokens with the MPI loaded: behind `env` where that changes anything."""
        if not self.loading:
            return list(tokens)
        taken = [token for name, value in self.loading.items() if value is None for token in ("-u", name)]
        return ["env", *taken, *(f"{name}={value}" for name, value in self.set_variables.items()), *tokens]

    def find(self, program: str) -> str | None:
        """Return where a program is on the PATH with the MPI loaded."""
        return shutil.which(program, path=self.environment.get("PATH"))

    def version_texts(self) -> Sequence[Sequence[str]]:
        """Return the commands that tell of its version, best first: the compiler in two dialects, then the starter.

        Several MPIs have the same starter, hydra, which does not say whose it is.
        """
        compiler = [*self.inside, self.mpicxx]
        asked = [[*compiler, "-v"], [*compiler, "--showme:version"]]
        return [*asked, [self.mpiexec, "--version"]] if self.mpiexec else asked

    def __str__(self) -> str:
        """Return the installation as messages name it."""
        return f"MPI {self.name}" if self.name else "the MPI that fabricbench was built with"


def find_installation(mpi: Mpi | None) -> Installation:
    """Return where an MPI is; None: the one that we were built with. EnvironmentLacks where it is not here, or cannot be loaded."""
    if mpi is None:
        info = build_info()
        return Installation("", info.mpicxx, info.mpiexec)
    return _find(mpi)


@cache
def _find(mpi: Mpi) -> Installation:
    loading = loading_of(mpi)
    found = Installation(mpi.name, mpi.mpicxx, mpi.mpiexec, loading.changed, mpi.inside, loading.printed)
    mpicxx = found.mpicxx if mpi.inside and mpi.mpicxx else _program(mpi, found, "mpicxx", mpi.mpicxx, COMPILERS)
    beside = str(Path(mpicxx).parent) if not mpi.inside else ""
    mpiexec = _program(mpi, found, "mpiexec", mpi.mpiexec, (STARTER,), beside)
    return replace(found, mpicxx=mpicxx, mpiexec=mpiexec)


def _program(mpi: Mpi, loaded: Installation, key: str, given: str, usual: Sequence[str], beside: str = "") -> str:
    """Return a program of an MPI: where it is given, below the prefix, beside another, or on the PATH; empty: no mpiexec at all."""
    names = (given,) if given else usual
    folder = str(expanded(mpi.prefix) / "bin") if mpi.prefix else ""
    searched = [folder] if folder else [beside] if beside else []
    for name in names:
        if "/" in name:
            path = expanded(name)
            found = str(path.absolute()) if os.access(path, os.X_OK) else None
        else:
            found = next(filter(None, (shutil.which(name, path=where) for where in searched)), None)
            if found is None and (given or not folder):
                found = loaded.find(name)
        if found is not None:
            return str(Path(found).absolute())
    if key == "mpiexec" and not given:
        return ""
    where = folder or (
        "where it is given" if "/" in names[0] else "on the PATH" + " once it is loaded" * bool(mpi.load)
    )
    raise EnvironmentLacks(
        f"[[mpi]] {mpi.name}: no {' or '.join(names)} {f'in {folder}' if folder else where}",
        hint=f"correct `prefix`, `{key}` or `load` of [[mpi]] {mpi.name} in the testbed",
    )


@dataclass(frozen=True)
class Loading:
    """What the lines of `load` change in this process's environment (None: taken away), and what they print."""

    changed: Mapping[str, str | None] = field(default_factory=dict)
    printed: str = ""


def loading_of(mpi: Mpi) -> Loading:
    """Return what loading an MPI does. Its lines run once in a login shell, here.

    EnvironmentLacks where a line fails, or all of them print something and change nothing: module systems end with 0 where there is
    no such module. A list (PATH) that a line adds to is added to as it is here, not as the shell had it.
    """
    if not mpi.load:
        return Loading()
    (before, before_said), (after, after_said) = _environment_after(mpi, ()), _environment_after(mpi, mpi.load)
    changed: dict[str, str | None] = {name: None for name in before if name not in after and name in os.environ}
    for name, value in after.items():
        old = before.get(name)
        if value == old:
            continue
        changed[name] = _with_elements(value, old, os.environ.get(name))
    found = {name: value for name, value in changed.items() if VARIABLE.fullmatch(name) and name not in OF_THE_SHELL}
    printed = after_said.removeprefix(before_said).strip()[-MOST_PRINTED:]
    if printed and not found:
        raise EnvironmentLacks(
            f"[[mpi]] {mpi.name}: its `load` changed nothing, and printed: {printed}",
            hint=f"try the lines of `load` in a login shell (`bash -l`), and correct [[mpi]] {mpi.name} in the testbed",
        )
    return Loading(found, printed)


def _with_elements(value: str, old: str | None, here: str | None) -> str:
    """Return a list (PATH) to which something was added, with what it has here in place of what it had in the shell.

    Whole elements between colons: of `OMP_NUM_THREADS=16`, which was 1, nothing is left.
    """
    if not old or here is None:
        return value
    elements, before = value.split(":"), old.split(":")
    at = (place for place in range(len(elements) - len(before) + 1) if elements[place : place + len(before)] == before)
    place = next(at, None)
    if place is None:
        return value
    return ":".join([*elements[:place], here, *elements[place + len(before) :]])


def _environment_after(mpi: Mpi, lines: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return the environment of a login shell after some lines, and what it printed until then."""
    told = [f"{{ {line}\n}} || {{ echo failed: {shlex.quote(line)} >&2; exit {LINE_FAILED}; }}" for line in lines]
    mark = shlex.quote(MARK.decode().replace("\0", "\\0"))
    script = "\n".join(["exec 3>&1 1>&2", *told, f"printf {mark} >&3", "exec /usr/bin/env -0 >&3"])
    problem = f"[[mpi]] {mpi.name}: it cannot be loaded"
    hint = f"try the lines of `load` in a login shell (`bash -l`), and correct [[mpi]] {mpi.name} in the testbed"
    try:
        done = subprocess.run(
            ["bash", "-l", "-c", script],
            capture_output=True,
            timeout=LOAD_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentLacks(f"{problem}: {error}", hint=hint) from error
    _, is_told, environment = done.stdout.partition(MARK)
    printed = done.stderr.decode(errors="replace")  # stdout of the lines goes there as well
    if done.returncode != 0 or not is_told:
        tail = printed.strip()[-MOST_PRINTED:]
        raise EnvironmentLacks(f"{problem}: the shell ended with {done.returncode}: {tail}", hint=hint)
    entries = (entry.decode(errors="surrogateescape").partition("=") for entry in environment.split(b"\0") if entry)
    return {name: value for name, _, value in entries}, printed


def version_text(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Return what a program prints of its version; EnvironmentLacks where it cannot be asked."""
    asked = " ".join(command)
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_SECONDS,
            check=False,
            env=dict(os.environ if environment is None else environment),
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
