"""Where the numbers of a launch come from, and whether their traffic was shown to take the fabric that they are told of."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.testbed.model import Fabric


class Origin(StrEnum):
    """How the numbers of a launch came about."""

    MEASURED = "measured"
    EMULATED = "emulated"
    """Measured on links that a lab emulates."""
    SIMULATED = "simulated"
    PREDICTED = "predicted"
    IMPORTED = "imported"
    """Measured by another program, and read from what it wrote."""


class Proof(StrEnum):
    """Whether counters show that the traffic of a launch took its fabric, and no other way."""

    PROVEN = "proven"
    REFUTED = "refuted"
    """The traffic went elsewhere: the launch is kept, and counts nowhere."""
    UNKNOWN = "unknown"
    """Nobody counted it. The launch counts, and what is made of it says so."""


def origin_of(fabric: Fabric) -> Origin:
    """Return where the numbers come from that are measured on a fabric."""
    return Origin.EMULATED if fabric.is_emulated else Origin.MEASURED
