"""Builds of our native programs against an MPI of the testbed, from the sources that the installed package carries.

A build is a folder, named by the MPI and by a key of all that it was made from: our sources and version, the compiler of that MPI,
the MPI's version. So one that is not of this MPI as it is now is never found. It is made aside and moved into place once whole.
Builds lie below the installation, which nodes have at the same path, or, where that cannot be written, in the user's data folder.

The programs that know no MPI (the switch, the library that lets ranks sleep) are the package's own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fabricbench import __version__
from fabricbench.configuration import expanded
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.launch.installation import Installation
from fabricbench.native import installed_folder
from fabricbench.private import check_private, make_private
from fabricbench.quantity import format_duration
from fabricbench.record.atomic import replace_text

BUILDS = "builds"
OF_DATA = ("fabricbench", BUILDS)
"""Of the user's data folder: nobody else's, as its programs are started."""
STEP_SECONDS = 2 * 3600.0
"""What configuring, or building with one process on a slow file system, may take; a compiler that hangs takes for ever."""
ABOUT = "about.json"
KEY_DIGITS = 12
LOG_LINES = 40
ABANDONED_SECONDS = 86_400
STEP = re.compile(r"^\[ *(\d+)(?:/(\d+)\]|%\]) *(.*)")
"""ninja's `[3/41] Building ...`, make's `[ 7%] Building ...`."""

Tell = Callable[[str, int, int], None]
"""Hears what is done: in words, and how much of how much; of nothing where that is not known."""


@dataclass(frozen=True)
class Build:
    """A build that is there: `mpi` is the name that the MPI had, `library` its library with its version."""

    folder: Path
    mpi: str
    library: str
    mpicxx: str
    fabricbench: str
    sources: str
    kernels: str = ""
    """`yes` or `no`; of a build before this was written down, what its programs tell."""
    definitions: str = ""
    """Further `-D` of CMake, as JSON."""

    def has_all(self, wanted: BuildRequest) -> bool:
        """Whether it has what is wanted: kernels where they are, and these definitions where there are any."""
        has_kernels = self.kernels == "yes" if self.kernels else any("npb" in one.name for one in self.programs)
        is_defined = not wanted.definitions or json.loads(self.definitions or "[]") == list(wanted.definitions)
        return is_defined and (has_kernels or not wanted.has_kernels)

    @property
    def is_current(self) -> bool:
        """Whether it was made from the sources that are installed now."""
        return self.sources == sources_digest()

    @property
    def programs(self) -> list[Path]:
        """Its programs, by name."""
        return sorted(self.folder.glob("fabricbench-*"))


def source_folder() -> Path:
    """Return where the sources are; EnvironmentLacks where the package has none."""
    folder = installed_folder() / "source"
    if not (folder / "CMakeLists.txt").exists():
        raise EnvironmentLacks(
            f"this installation carries no sources: there is no {folder}",
            hint="install fabricbench with pip, from its wheel or its source tree: `make` does that",
        )
    return folder


@cache
def sources_digest() -> str:
    """Return the SHA-256 of the sources, with their names."""
    folder = source_folder()
    digest = hashlib.sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def build_folders() -> list[Path]:
    """Return where builds may be: below the installation, and in the user's data folder."""
    folders = [installed_folder() / BUILDS]
    with suppress(UsageError):  # in a container this user may have no home
        folders.append(_data_folder().joinpath(*OF_DATA))
    return folders


def _data_folder() -> Path:
    return expanded(os.environ.get("XDG_DATA_HOME") or "~/.local/share")


def _trusted_folders() -> list[Path]:
    """Return where builds are looked for: what others may have put into the user's data folder is never started."""
    folders = build_folders()
    try:
        check_private(_data_folder(), *OF_DATA)
    except (EnvironmentLacks, UsageError):
        return folders[:1]
    return folders


def key_of(installation: Installation, library: str) -> str:
    """Return what a build for this MPI is known by; `library` is its library with its version."""
    made_from = [__version__, sources_digest(), installation.mpicxx, library, *installation.inside]
    return hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:KEY_DIGITS]


def find_build(installation: Installation, library: str) -> Path | None:
    """Return the folder of the programs that were built with this MPI as it is now, whatever it was called; None: there is none."""
    key = key_of(installation, library)
    found = (one for folder in _trusted_folders() for one in sorted(folder.glob(f"*-{key}")) if (one / ABOUT).exists())
    return next(found, None)


def read_build(folder: Path) -> Build:
    """Return what a build tells of itself. OSError, ValueError or TypeError where that cannot be read."""
    return Build(**{**json.loads((folder / ABOUT).read_text()), "folder": folder})


def has_all(folder: Path, wanted: BuildRequest) -> bool:
    """Return whether a build has what is wanted; one that does not tell has not."""
    try:
        return read_build(folder).has_all(wanted)
    except (OSError, ValueError, TypeError):
        return False


def all_builds() -> list[Build]:
    """Return every build that is there, by the name of its MPI."""
    found = []
    for about in (one for folder in _trusted_folders() for one in folder.glob(f"*/{ABOUT}")):
        try:
            found.append(read_build(about.parent))
        except (OSError, ValueError, TypeError):
            continue  # of another version, or somebody else's: it is never used
    return sorted(found, key=lambda one: (one.mpi, one.folder))


@dataclass(frozen=True)
class BuildRequest:
    """How to build: with kernels or without, with further `-D` of CMake, with so many processes (0: as many as processors)."""

    has_kernels: bool = True
    definitions: tuple[str, ...] = ()
    jobs: int = 0


def build(installation: Installation, library: str, wanted: BuildRequest, tell: Tell = lambda *_: None) -> Path:
    """Build our programs with an MPI and return their folder; one of the same key is replaced.

    EnvironmentLacks where a tool is missing or the build fails, with the end of its log; what was there before is then left.
    """
    if not installation.inside:
        _check_tools(installation)
    folder = _writable_folder()
    _remove_leftovers(folder)
    target = folder / f"{installation.name or 'mpi'}-{key_of(installation, library)}"
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as aside:
        made = _make(installation, wanted, Path(aside), tell)
        about = Build(
            made,
            installation.name,
            library,
            installation.mpicxx,
            __version__,
            sources_digest(),
            kernels="yes" if wanted.has_kernels else "no",
            definitions=json.dumps(wanted.definitions),
        )
        described = {name: str(value) for name, value in asdict(about).items() if name != "folder"}
        replace_text(made / ABOUT, json.dumps(described, indent=1) + "\n")
        _replace(made, target)
    return target


def _make(installation: Installation, wanted: BuildRequest, aside: Path, tell: Tell) -> Path:
    """Configure, build and install into a folder; return where the programs are."""
    log = aside / "log"
    generator, cmake = _generator(installation), _cmake(installation)
    work, installed = aside / "work", aside / "installed"
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "MPI_CXX_COMPILER": installation.mpicxx,
        "FABRICBENCH_MPI_STAYS": "ON",
        "FABRICBENCH_KERNELS": "ON" if wanted.has_kernels else "OFF",
        "SKBUILD_PROJECT_VERSION": __version__,
        "Python3_EXECUTABLE": sys.executable,
    }
    if installation.mpiexec:
        options["MPIEXEC_EXECUTABLE"] = installation.mpiexec
    defined = [f"-D{name}={value}" for name, value in options.items()]
    defined += [one if one.startswith("-D") else f"-D{one}" for one in wanted.definitions]
    jobs = str(wanted.jobs or len(os.sched_getaffinity(0)))
    steps: list[tuple[str, list[str]]] = [
        ("configuring", [*cmake, "-S", str(source_folder()), "-B", str(work), *generator, *defined]),
        ("building", [*cmake, "--build", str(work), "--target", "fabricbench_mpi", "--parallel", jobs]),
        ("installing", [*cmake, "--install", str(work), "--component", "mpi", "--prefix", str(installed)]),
    ]
    for what, command in steps:
        tell(what, 0, 0)
        _run(installation, what, command, log, tell)
    return installed / "fabricbench" / "bin"


def _run(installation: Installation, what: str, command: Sequence[str], log: Path, tell: Tell) -> None:
    """Run one step, its output into the log; EnvironmentLacks with the end of that where it fails."""
    lines: list[str] = []
    try:
        with subprocess.Popen(
            [*installation.inside, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env=installation.environment | _scripts_on_path(installation),
        ) as process:
            late = threading.Event()
            limit = threading.Timer(STEP_SECONDS, _end_late, (process, late))
            limit.start()
            try:
                for line in _lines(process, log):
                    lines = [*lines[1 - LOG_LINES :], line.rstrip()]
                    if step := STEP.match(line):
                        done, whole = int(step[1]), int(step[2] or 100)
                        tell(what, done, whole)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)  # with every compiler
                raise
            finally:
                limit.cancel()
    except OSError as error:
        raise EnvironmentLacks(f"{what} failed: {command[0]}: {error.strerror}", hint="is it installed?") from error
    if late.is_set():
        raise EnvironmentLacks(
            f"{what} with {installation.mpicxx} was not over after {format_duration(STEP_SECONDS)} and was ended; nothing was "
            f"changed. The last that it said: {lines[-1] if lines else 'nothing'}",
            hint="does that compiler wait for a licence, or a file system that does not answer? Try it by hand",
        )
    if process.returncode != 0:
        end = "\n    ".join(lines)
        raise EnvironmentLacks(
            f"{what} with {installation.mpicxx} failed (exit code {process.returncode}); nothing was changed. "
            f"The end of what it said:\n    {end}",
            hint="does the compiler know C++20 (GCC 12, Clang 15)? `-D CMAKE_CXX_COMPILER=g++-13` names another",
        )


def _end_late(process: subprocess.Popen[str], late: threading.Event) -> None:
    late.set()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _lines(process: subprocess.Popen[str], log: Path) -> Iterator[str]:
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    with log.open("a") as file:
        for line in process.stdout:
            file.write(line)
            yield line


def _replace(made: Path, target: Path) -> None:
    """Move a whole build into place; programs that run from an earlier one go on running from it."""
    old = made.parent / "replaced"
    if target.exists():
        target.rename(old)
    try:
        made.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise


def _writable_folder() -> Path:
    """Return the first folder of builds that can be written; EnvironmentLacks where none can."""
    tried = []
    for index, folder in enumerate(build_folders()):
        try:
            if index:  # the user's
                make_private(_data_folder(), *OF_DATA)
            else:
                folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder):
                return folder
        except OSError as error:
            tried.append(f"{folder}: {error.strerror}")
    raise EnvironmentLacks(
        f"no folder for builds can be written: {'; '.join(tried)}",
        hint="set XDG_DATA_HOME to a folder of yours that every node has at the same path",
    )


def _remove_leftovers(folder: Path) -> None:
    """Remove what builds that were killed have left aside."""
    for aside in folder.glob(".*-*.*"):
        with suppress(OSError):
            if time.time() - aside.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(aside)


def _check_tools(installation: Installation) -> None:
    """Raise EnvironmentLacks for each tool that is missing, with how to get it."""
    _cmake(installation)
    _generator(installation)
    if os.access(installation.mpicxx, os.X_OK) is False:
        raise EnvironmentLacks(
            f"there is no program {installation.mpicxx}", hint="name the MPI's C++ compiler: --mpicxx"
        )
    if not any(installation.find(name) for name in _compilers()):
        raise EnvironmentLacks(
            f"no C++ compiler: {', '.join(_compilers())} are not on the PATH",
            hint="load one (`module load gcc`), install g++ or clang, or set CXX to its path",
        )


def _compilers() -> tuple[str, ...]:
    given = os.environ.get("CXX", "").split()
    return (given[0],) if given else ("c++", "g++", "clang++", "icpx", "nvc++")


def _cmake(installation: Installation) -> list[str]:
    """Return how CMake is called: on the PATH, else the module of this Python."""
    if installation.inside or installation.find("cmake"):
        return ["cmake"]
    if find_spec("cmake") is not None:
        return [sys.executable, "-m", "cmake"]
    raise EnvironmentLacks(
        "CMake is missing: no `cmake` on the PATH, and no module of that name",
        hint="load it (`module load cmake`), install it, or `pip install cmake` beside fabricbench (3.24 or newer)",
    )


def _generator(installation: Installation) -> list[str]:
    """Return what tells CMake of the tool that follows its rules: ninja, else make."""
    if installation.inside or _has_ninja(installation):
        return ["-G", "Ninja"] if not installation.inside else []
    if any(installation.find(name) for name in ("make", "gmake")):
        return ["-G", "Unix Makefiles"]
    raise EnvironmentLacks(
        "neither make nor ninja is on the PATH",
        hint="install make (Debian: `apt-get install make`), or `pip install ninja` beside fabricbench",
    )


def _has_ninja(installation: Installation) -> bool:
    beside_python = shutil.which("ninja", path=str(Path(sys.executable).parent))
    return bool(installation.find("ninja") or beside_python)


def _scripts_on_path(installation: Installation) -> dict[str, str]:
    """Return the PATH with this Python's programs at its end: `ninja` may be one of them."""
    path = installation.environment.get("PATH", os.defpath)
    return {"PATH": f"{path}{os.pathsep}{Path(sys.executable).parent}"}
