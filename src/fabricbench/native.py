"""Finds the native programs that were built with this package, and the MPI that they were built with."""

from __future__ import annotations

import json
import os
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fabricbench.errors import EnvironmentLacks


@dataclass(frozen=True)
class BuildInfo:
    """What CMake wrote down: the MPI compiler and starter, the C++ compiler, the kind of build."""

    mpicxx: str
    mpiexec: str
    compiler: str
    build_type: str


def _folders() -> list[Path]:
    given = os.environ.get("FABRICBENCH_BIN")
    package = Path(__file__).parent / "bin"
    installed = Path(sysconfig.get_path("platlib")) / "fabricbench" / "bin"
    return ([Path(given)] if given else []) + [package, installed]


def native_file(name: str) -> Path:
    """Return the path of a native program or of build_info.json; EnvironmentLacks says where it was looked for."""
    for folder in _folders():
        if (folder / name).exists():
            return folder / name
    raise EnvironmentLacks(
        f"{name} is not built: looked in {', '.join(str(folder) for folder in _folders())}",
        hint="run `make` in the source tree, or `pip install .` again",
    )


@cache
def build_info() -> BuildInfo:
    """Return what the native part was built with."""
    return BuildInfo(**json.loads(native_file("build_info.json").read_text()))
