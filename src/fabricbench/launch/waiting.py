"""How ranks wait where nodes share processors.

An MPI library that waits spins and calls sched_yield; two spinning ranks on one core starve each other for milliseconds. The
preloaded library lets them sleep until data come, which costs some microseconds of MPI latency, and is therefore recorded with
each launch.
"""

from __future__ import annotations

from pathlib import Path

from fabricbench.native import native_file

YIELD_LIBRARY = "libfabricbench-yield.so"

WAITING_ASLEEP = {"mpi waits": f"asleep: nodes share processors, so {YIELD_LIBRARY} lets ranks that wait sleep"}


def yield_library() -> Path:
    """Return the library to be preloaded; EnvironmentLacks where it was not built."""
    return native_file(YIELD_LIBRARY)
