"""How long a kernel of NPB may take: enough to plan with and to tell a hung run from a slow one, never a result.

A run is taken to need its computing, with the processors shared by all ranks, then its bytes at the line rate, then its
messages one after the other. Everything is on the generous side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fabricbench.workload.npb import CLASSES

MESSAGE_SECONDS = 300e-6
"""For a message to go, through a stack whose ranks sleep while they wait."""

SLOWNESS = 2.0
"""Of the machine against the one whose seconds are below, and for the untimed parts of a run."""

SET_UP_SECONDS = 0.5


@dataclass(frozen=True)
class Effort:
    """One kernel. `seconds` is class A of the official program on one rank (a 2-core EPYC of 2.25 GHz, CPU time).

    `growth` is the work of the classes S, W, A, B, C, D in units of class A, from the official counts of operations.
    `bytes_sent` and `messages` are what all of 4 ranks send together in class W, by the profile of fabricbench-npb.
    """

    seconds: float
    growth: tuple[float, ...]
    bytes_sent: float
    messages: float


EFFORTS = {
    "ep": Effort(6.10, (1 / 16, 1 / 8, 1, 4, 16, 256), 384, 8),
    "is": Effort(0.32, (1 / 128, 1 / 8, 1, 4, 16, 256), 31.6e6, 280),
    "mg": Effort(0.64, (1 / 512, 1 / 8, 1, 5, 40, 800), 13.1e6, 248),
    "cg": Effort(0.65, (0.045, 0.28, 1, 37, 95, 2430), 65.5e6, 5520),
    "ft": Effort(1.64, (1 / 32, 1 / 16, 1, 13.3, 53, 1060), 44.0e6, 108),
    "lu": Effort(20.3, (0.0013, 0.16, 1, 4.05, 16.2, 311), 147.9e6, 80412),
    "sp": Effort(24.4, (0.0016, 0.178, 1, 4.05, 16.2, 324), 691.2e6, 19200),
    "bt": Effort(38.0, (0.002, 0.053, 1, 4.05, 16.2, 324), 152.1e6, 9600),
}


def usual_seconds(kernel: str, problem_class: str, ranks: int, line_rate_bit_s: float) -> float:
    """Return the seconds that one run of a kernel takes at most on a healthy fabric."""
    effort = EFFORTS[kernel]
    work = effort.growth[CLASSES.index(problem_class)]
    of_w = max(1.0, work / effort.growth[CLASSES.index("W")])
    computing = SLOWNESS * effort.seconds * work
    if ranks == 1:
        return SET_UP_SECONDS + computing
    # What crosses the network grows with the ranks, and each has a link of its own.
    moving = effort.bytes_sent * of_w * 8.0 / line_rate_bit_s
    talking = effort.messages * math.cbrt(of_w) * MESSAGE_SECONDS
    return SET_UP_SECONDS + computing + moving + talking
