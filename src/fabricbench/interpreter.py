"""The Python that runs fabricbench, for programs of ours that it starts here or on nodes.

Site modules set PYTHONPATH for a Python of their own. Packages there that this Python cannot load would shadow those of this
installation, so our programs are started without it, unless fabricbench or what it needs was installed there.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("fabricbench", "numpy", "polars", "pydantic", "pyroute2", "typer")
"""What may have been installed below PYTHONPATH, as Spack does: what is left out here comes with one of these."""


def python(module: str, *arguments: str) -> list[str]:
    """Return the tokens that run a module of ours with this Python, here or at the same path on a node.

    Nothing is imported from the directory that it is started in, which may be a stranger's.
    """
    return [sys.executable, "-P", *([] if _needs_pythonpath() else ["-E"]), "-m", module, *arguments]


@cache
def _needs_pythonpath() -> bool:
    folders = [Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    specs = [find_spec(name) for name in NEEDED] if folders else []
    places = [Path(spec.origin).resolve() for spec in specs if spec is not None and spec.origin is not None]
    return any(place.is_relative_to(folder) for place in places for folder in folders)
