"""Which MPI starts the measurer, and what every MPI is told: where the ranks run, over which fabric they talk, how they wait.

Each implementation is a file beside this one and a line in `IMPLEMENTATIONS`; it is recognised by what `mpiexec --version` prints.
"""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from fabricbench.errors import EnvironmentLacks
from fabricbench.launch import mpich, openmpi
from fabricbench.launch.placement import Placement
from fabricbench.native import build_info
from fabricbench.testbed.model import Fabric


class Implementation(Protocol):
    """How one MPI is started. A module with these names is one."""

    NAME: str

    def is_it(self, version_text: str) -> bool:
        """Tell from the output of `mpiexec --version` whether it is this MPI."""

    def tokens(self, mpiexec: str, version: str, placement: Placement, fabric: Fabric, program: list[str]) -> list[str]:
        """Return the tokens that start the program; UsageError where the fabric cannot be selected."""


IMPLEMENTATIONS: tuple[Implementation, ...] = (mpich, openmpi)


@dataclass(frozen=True)
class Starter:
    """An `mpiexec` that was found, which implementation it is, and what it says of its version."""

    mpiexec: str
    implementation: Implementation
    version: str

    def tokens(self, placement: Placement, fabric: Fabric, program: list[str]) -> list[str]:
        """Return the tokens that start the program over the placement, with MPI on the fabric."""
        return self.implementation.tokens(self.mpiexec, self.version, placement, fabric, program)


@cache
def find_starter() -> Starter:
    """Return the starter of the MPI that the measurer was built with; EnvironmentLacks says what it answered instead."""
    mpiexec = build_info().mpiexec
    command = [mpiexec, "--version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, env=dict(os.environ))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentLacks(
            f"`{mpiexec} --version` failed: {error}", hint="build again with the MPI that is here: `make clean all`"
        ) from error
    if answer.returncode < 0:
        by = signal.Signals(-answer.returncode).name
        raise EnvironmentLacks(
            f"`{mpiexec} --version` was ended by {by}", hint="repeat the command; who ends programs here?"
        )
    text = answer.stdout + answer.stderr
    for implementation in IMPLEMENTATIONS:
        if implementation.is_it(text):
            return Starter(mpiexec, implementation, _version(text))
    raise EnvironmentLacks(
        f"`{mpiexec} --version` is of no MPI that fabricbench knows; it printed: {text.strip()[:200]!r}",
        hint=f"build with one of {', '.join(each.NAME for each in IMPLEMENTATIONS)}: set MPICC and run `make clean all`",
    )


def _version(text: str) -> str:
    """The first word that looks like a version: `5.0.2`."""
    words = text.replace(")", " ").split()
    return next((word for word in words if word[:1].isdigit() and "." in word), "unknown")
