"""Finds the peers: on PATH, else Debian's packages unpacked (not installed) under build/peers, which needs no root."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from fabricbench.native import build_info

FOLDER = Path("build/peers").resolve()
PACKAGES = {
    "sockperf": ("sockperf",),
    "NPtcp": ("netpipe-tcp",),
    "NPmpich2": ("netpipe-mpich2",),
    "iperf3": ("iperf3", "libiperf0", "libsctp1"),
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
    return ":".join(str(path) for path in sorted((FOLDER / "root/usr/lib").glob("*-linux-gnu")))


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
