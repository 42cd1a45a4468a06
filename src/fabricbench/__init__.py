"""Measure, explain, compare and predict cluster interconnects, and choose one with evidence.

    import fabricbench

    run = fabricbench.load("RUNDIR")
    run.cells()                         # polars: a row for each launch and cell
    run.samples()                       # polars, lazy: every sample
    run.launch_quantiles((0.5, 0.99))   # polars: a row for each launch and cell
    findings = fabricbench.compare("RUNDIR")
    fabricbench.verify("RUNDIR")        # whether it is whole and unaltered
    fabricbench.frame(findings.cells)   # polars: a row for each comparison

The names are imported when they are first used, so that the command line starts fast.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
"""As that of `typing`, which is not imported: `cli.starting` first looks at what PYTHONPATH would bring."""

if TYPE_CHECKING:
    from typing import Any

    from fabricbench.api import compare, frame, load, plan, run, verify
    from fabricbench.published import published_figures
    from fabricbench.record.store import Run
    from fabricbench.testbed.reading import local_testbed, read_testbed

__version__ = "0.1.0"

__all__ = [
    "Run",
    "__version__",
    "compare",
    "frame",
    "load",
    "local_testbed",
    "plan",
    "published_figures",
    "read_testbed",
    "run",
    "verify",
]

_HOME = {
    "Run": "fabricbench.record.store",
    "compare": "fabricbench.api",
    "frame": "fabricbench.api",
    "load": "fabricbench.api",
    "plan": "fabricbench.api",
    "local_testbed": "fabricbench.testbed.reading",
    "published_figures": "fabricbench.published",
    "read_testbed": "fabricbench.testbed.reading",
    "verify": "fabricbench.api",
    "run": "fabricbench.api",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its home at first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
