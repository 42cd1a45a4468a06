"""The examples that CONTRIBUTING.md shows, loaded as they stand."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples" / "extending"


def example(name: str) -> Any:
    """Return the module of an example; it is any module with the names that its kind needs."""
    specification = spec_from_file_location(f"extending_{name}", EXAMPLES / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module
