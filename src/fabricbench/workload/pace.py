"""What a workload's time is estimated from: how fast the testbed lets it go.

The speeds in the workloads' models are about half of what a processor of a 2-core EPYC reached in November 2026, where the ranks of
a lab shared two of them (`python -m benchmarks.workload_estimates` sets estimates beside what launches took). Slower machines are
what limits are wider for, by `SLOWNESS`.
"""

from __future__ import annotations

from dataclasses import dataclass

MESSAGE_SECONDS = 200e-6
"""For a message to go through a stack whose ranks sleep while they wait, and may share a processor."""

SLOWNESS = 5.0
"""Times as long as estimated a launch may take on a machine that is slower or busy with something else."""


@dataclass(frozen=True)
class Pace:
    """What a healthy testbed gives the ranks of a launch.

    `computing` is how many of them have a processor at the same time, and `line_rate_bit_s` what the link of each carries.
    """

    line_rate_bit_s: float
    computing: int
