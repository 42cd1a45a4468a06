"""Which MPI a program was built for, as the loader sees it before anything runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from fabricbench.launch.library import openmpi

LDD_SECONDS = 20.0

OPEN_MPI_SONAME = re.compile(r"\blibmpi\.so\.[234]0\b")
"""Open MPI 2 to 5. `libmpi.so.12` is the common ABI of MPICH, MVAPICH and Intel MPI."""

MPICH_SONAME = re.compile(r"\blibmpi(ch)?\.so\.12\b")


def why_of_other_mpi(program: Path, library: str) -> str | None:
    """Return in words why the starter of MPI `library` cannot start ranks of `program`; None where nothing speaks against it.

    A program that loads its MPI otherwise (a script, a static one) tells nothing, nor does one that cannot be asked.
    """
    try:
        told = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=LDD_SECONDS, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    is_open_mpi, is_mpich = (bool(soname.search(told)) for soname in (OPEN_MPI_SONAME, MPICH_SONAME))
    if is_open_mpi in (is_mpich, library == openmpi.NAME):
        return None
    built = "Open MPI" if is_open_mpi else "MPICH or what has its ABI"
    return f"{program} is built for {built}, and ranks are started by {library}"
