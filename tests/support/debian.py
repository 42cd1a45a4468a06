"""Programs of Debian that tests run: those that are installed, or unpacked below `build/`, which changes nothing else."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from support.scripts import script

ROOT = Path(__file__).parents[2]
LINPACK = Path("usr/lib/x86_64-linux-gnu/scalapack/mpich-tests/xdlu")
"""Where Debian's scalapack-mpi-test has the Linpack that it built for MPICH."""


def linpack(folder: Path) -> str | None:
    """Puts `xdlu` into `folder`, as a script that starts Debian's; what is missing where it cannot be had."""
    program, libraries = Path("/") / LINPACK, ""
    if not program.exists():
        unpacked = ROOT / "build/debian/scalapack"
        made = subprocess.run(
            [ROOT / "tools/unpack", unpacked, "scalapack-mpi-test"],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        program = unpacked / LINPACK
        if made.returncode or not program.exists():
            return made.stderr.strip() or f"Debian's scalapack-mpi-test has no {LINPACK} for this processor"
        shared = unpacked / "usr/lib/x86_64-linux-gnu"
        libraries = ":".join(str(one) for one in (shared, shared / "blas", shared / "lapack"))
    start = f'LD_LIBRARY_PATH={shlex.quote(libraries)} exec {shlex.quote(str(program))} "$@"'
    script(folder / "xdlu", start)
    return None
