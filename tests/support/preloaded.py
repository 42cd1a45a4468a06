"""Programs that run with a library of a test's own before all others."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fabricbench.native import native_file


def preloaded(source: Path, folder: Path) -> list[str]:
    """Return what goes before a command that is to run with a C source's functions in place of its own; skip without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = folder / source.with_suffix(".so").name
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True, timeout=60)
    return ["env", f"LD_PRELOAD={library}:{native_file('libfabricbench-yield.so')}"]
