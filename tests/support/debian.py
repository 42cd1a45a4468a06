"""Programs of Debian that tests run: those that are installed, or unpacked below `build/`, which changes nothing else."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from support.scripts import script

ROOT = Path(__file__).parents[2]
LINPACK = Path("usr/lib/x86_64-linux-gnu/scalapack/mpich-tests/xdlu")
"""Where Debian's scalapack-mpi-test has the Linpack that it built for MPICH."""


def linpack(folder: Path) -> str | None:
    """Puts `xdlu` into `folder`, as a script that starts Debian's; what is missing where it cannot be had."""
    program, libraries = Path("/") / LINPACK, ""
    if not program.exists():
        unpacked = ROOT / "build/debian/scalapack"
        why = _unpack(unpacked, "scalapack-mpi-test")
        program = unpacked / LINPACK
        if why or not program.exists():
            return why or f"Debian's scalapack-mpi-test has no {LINPACK} for this processor"
        shared = unpacked / "usr/lib/x86_64-linux-gnu"
        libraries = ":".join(str(one) for one in (shared, shared / "blas", shared / "lapack"))
    start = f'LD_LIBRARY_PATH={shlex.quote(libraries)} exec {shlex.quote(str(program))} "$@"'
    script(folder / "xdlu", start)
    return None


def torch(folder: Path) -> str | None:
    """Puts `python-torch` into `folder`, Debian's Python with its torch; what to do where it is neither installed nor unpacked.

    It is not fetched here: with what it needs it is 150 MB, and unpacked 630 MB.
    """
    start = 'exec /usr/bin/python3 "$@"'
    if not Path("/usr/lib/python3/dist-packages/torch").exists():
        unpacked = ROOT / "build/debian/torch"
        if not unpacked.exists():
            return "torch is not here: apt install python3-torch, or tools/unpack build/debian/torch python3-torch"
        shared = unpacked / "usr/lib/x86_64-linux-gnu"
        folders = (shared, shared / "blas", shared / "lapack", unpacked / "usr/lib", unpacked / "lib/x86_64-linux-gnu")
        libraries = shlex.quote(":".join(str(one) for one in folders))
        packages = shlex.quote(str(unpacked / "usr/lib/python3/dist-packages"))
        start = f"LD_LIBRARY_PATH={libraries} PYTHONPATH={packages} {start}"
    script(folder / "python-torch", start)
    return None


PVM = Path("usr/lib/pvm3")


def pvm() -> dict[str, Any] | str:
    """Return what a campaign says of Debian's PVM beside `application = "pvm-pingpong"`; what is missing where it cannot be had."""
    if shutil.which("cc") is None:
        return "there is no C compiler"
    if (Path("/") / PVM / "lib/pvmd").exists() and Path("/usr/include/pvm3.h").exists():
        return {}
    unpacked = ROOT / "build/debian/pvm"
    if why := _unpack(unpacked, "pvm", "pvm-dev"):
        return why
    libraries = next((path.parent for path in unpacked.glob("usr/lib/*/libpvm3.so.3")), unpacked)
    there = ["-I{pvm_include}", f"-L{libraries}", "-lpvm3"]
    return {
        "build": ["cc", "-O2", "-o", "pvm-pingpong", "pingpong.c", *there],
        "environment": {"PVM_ROOT": str(unpacked / PVM), "LD_LIBRARY_PATH": str(libraries)},
    }


def _unpack(folder: Path, *packages: str) -> str:
    """Unpack packages into a folder, if they are not; return what hinders it, nothing where they are there."""
    made = subprocess.run(
        [ROOT / "tools/unpack", folder, *packages], capture_output=True, text=True, timeout=100, check=False
    )
    return (made.stderr.strip() or "they cannot be unpacked") if made.returncode else ""
