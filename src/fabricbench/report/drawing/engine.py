"""Whether the engine that draws figures as pictures can be started: it ends the process where it cannot have its address space."""

from __future__ import annotations

import resource

from fabricbench.errors import EnvironmentLacks

ENGINE_BYTES = 72 * 2**30
"""Address space, of which it uses little: with a limit of 64 GiB it died of a trap, with 70 it drew (vl-convert 1.9)."""


def can_draw() -> bool:
    """Tell whether this process may have the address space that drawing takes."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return limit == resource.RLIM_INFINITY or limit >= ENGINE_BYTES


def check_can_draw() -> None:
    """Raise EnvironmentLacks where it may not."""
    if not can_draw():
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        raise EnvironmentLacks(
            f"drawing pictures takes {ENGINE_BYTES // 2**30} GiB of address space, and this process may have {limit / 2**30:.3g}",
            hint="raise the limit (`ulimit -v unlimited`), or write html, whose figures the browser draws",
        )
