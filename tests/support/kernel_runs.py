"""The programs of our kernels, started on ranks of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from fabricbench.native import build_info, native_file

TIME_LIMIT_S = 60
LIBRARY = "libsleeping-yield.so"

Done = subprocess.CompletedProcess[str]


def kernel_command(program: str, ranks: int, *words: object) -> list[str]:
    """The tokens that start a program of ours on so many ranks."""
    return [build_info().mpiexec, "-n", str(ranks), str(native_file(program)), *map(str, words)]


def run_kernel(program: str, ranks: int, *words: object, **environment: str) -> Done:
    """Run a program of ours on ranks that sleep while they wait."""
    return subprocess.run(
        kernel_command(program, ranks, *words),
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
        env={**waiting_asleep(), **environment},
    )


def waiting_asleep() -> dict[str, str]:
    """The environment in which ranks sleep that wait: by a library of the tests where there is a C compiler, else by ours."""
    folder = _with_sleeping_yield()
    library = native_file("libfabricbench-yield.so") if folder is None else Path(folder.name) / LIBRARY
    return {**os.environ, "LD_PRELOAD": str(library)}


@cache
def _with_sleeping_yield() -> tempfile.TemporaryDirectory[str] | None:
    """Return the folder of the tests' library, which goes when this process ends."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    folder = tempfile.TemporaryDirectory(prefix="sleeping-yield-")
    source = Path(__file__).with_name("sleeping_yield.c")
    build = [compiler, "-O1", "-shared", "-fPIC", "-o", str(Path(folder.name) / LIBRARY), str(source)]
    subprocess.run(build, check=True, timeout=60)
    return folder
