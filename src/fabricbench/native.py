"""Finds the native programs that were built with this package, and the MPI that they were built with."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from fabricbench.errors import EnvironmentLacks

FOLDER_VARIABLE = "FABRICBENCH_BIN"
"""Names the folder of another build, a sanitized one say, that is to be used instead of the package's own."""


COMPLETE_IT = (
    "`make` in the source tree builds everything (`make demo` what a first run needs), else `pip install .` again"
)
"""What to do where a program or a part of it is not built."""


BUILD_DIGITS = 12
"""How much of a build's id is shown: enough to tell builds apart."""


@dataclass(frozen=True)
class BuildInfo:
    """What CMake wrote down: the MPI compiler and starter, the C++ compiler, the kind of build, whether the MPI is a wheel's."""

    mpicxx: str
    mpiexec: str
    compiler: str
    build_type: str
    mpi_is_wheel: bool = False


def _folders() -> list[Path]:
    given = os.environ.get(FOLDER_VARIABLE)
    if given:  # and nowhere else: a slip in it must not be answered with programs of another build
        return [Path(given)]
    package = Path(__file__).parent / "bin"
    installed = Path(sysconfig.get_path("platlib")) / "fabricbench" / "bin"
    return [package, installed]


def installed_folder() -> Path:
    """Return the folder of the installation that holds what is not Python: programs, sources, builds for other MPIs."""
    package = Path(__file__).parent
    return package if (package / "bin").exists() else Path(sysconfig.get_path("platlib")) / "fabricbench"


def native_file(name: str, build: Path | None = None) -> Path:
    """Return the path of a native program or of build_info.json; EnvironmentLacks says where it was looked for.

    `build` is the folder of a build for another MPI (`launch/building.py`).
    """
    if build is not None:
        if (build / name).exists():
            return build / name
        there = ", ".join(path.name for path in sorted(build.glob("fabricbench-*"))) or "nothing"
        raise EnvironmentLacks(
            f"{name} is not in {build}, which has {there}",
            hint=f"build it: `{_command_for(build)} --again`, without --without-kernels",
        )
    for folder in _folders():
        if (folder / name).exists():
            return folder / name
    raise EnvironmentLacks(
        f"{name} is not built: looked in {', '.join(str(folder) for folder in _folders())}",
        hint=f"correct {FOLDER_VARIABLE}, or unset it" if os.environ.get(FOLDER_VARIABLE) else COMPLETE_IT,
    )


def _command_for(build: Path) -> str:
    """Return the command that made a build."""
    about = {"mpicxx": "PATH", "mpi": "NAME"}
    with suppress(OSError, ValueError):
        about |= json.loads((build / "about.json").read_text())
    return f"fabricbench build --mpicxx {about['mpicxx']} --name {about['mpi']}"


def builds_of(paths: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the programs that can be read, in hexadecimal: the id of each one's build."""
    found = {}
    for path in paths:
        with suppress(OSError), Path(path).open("rb") as file:
            found[path] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


@cache
def doors() -> dict[str, tuple[str, ...]]:
    """Return the doors that the measurer has into each layer, the one that a cell gets unasked first; none if it is not built."""
    try:
        told = subprocess.run(
            [str(native_file("fabricbench-probe")), "--list"], capture_output=True, text=True, timeout=10, check=True
        )
    except (EnvironmentLacks, OSError, subprocess.SubprocessError):
        return {}
    lines = [line.split() for line in told.stdout.splitlines() if line.startswith("door ")]
    return {layer: tuple(words[2] for words in lines if words[1] == layer) for _, layer, *_ in lines}


def native_programs() -> list[Path]:
    """Return the native programs that are built, by name."""
    found = {path.name: path for folder in reversed(_folders()) for path in folder.glob("fabricbench-*")}
    return [found[name] for name in sorted(found)]


def built_for_levels(name: str, build: Path | None = None) -> tuple[str, ...]:
    """Return the names of a program of kernels and of its builds for higher levels of the processor: it goes on as one of these."""
    programs = native_programs() if build is None else sorted(build.glob("fabricbench-*"))
    return (name, *(path.name for path in programs if path.name.startswith(f"{name}-")))


@cache
def build_info() -> BuildInfo:
    """Return what the native part was built with."""
    path = native_file("build_info.json")
    try:
        info = BuildInfo(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise EnvironmentLacks(
            f"{path} cannot be read: {error}", hint="run `make clean all`, or install again"
        ) from None
    if info.mpi_is_wheel and not Path(info.mpiexec).exists():
        return replace(info, mpicxx=_beside_python(info.mpicxx), mpiexec=_beside_python(info.mpiexec))
    return info


def _beside_python(program: str) -> str:
    """Return where a program of a wheel is now, the environment that it was built in being gone; where it was, if nowhere."""
    name = Path(program).name
    folders = (
        Path(sysconfig.get_path("scripts")),
        Path(__file__).parents[4] / "bin",
    )  # the second: `pip install --user`
    return next((str(folder / name) for folder in folders if (folder / name).exists()), program)
