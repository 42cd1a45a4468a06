"""Screens of configurations whose truth is known: so many systems with so many runs each, no two of which differ, or one does.

Every run has an effect of its own on all tests, on each test, and on each fabric beside the others: what differs between sessions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from fabricbench.analysis.findings import Effect, Grade, Verdict
from fabricbench.analysis.headline import rows_of
from fabricbench.analysis.measured import Side
from fabricbench.analysis.pairing import all_pairs
from support.simulated_sides import compared, sides_of
from support.verdict_noises import KEYS

SLOWER = np.array([1.0 if key.metric.is_lower_better else -1.0 for key in KEYS])
OF_LAUNCHES = 0.01
"""Standard deviation of the logarithm from launch to launch."""


@dataclass(frozen=True)
class Design:
    """How many systems, fabrics of each and runs of each system, blocks a run, and how much (log) sessions differ by themselves."""

    systems: int = 5
    fabrics: int = 1
    runs: int = 3
    blocks: int = 6
    sessions: float = 0.02


def screen(random: np.random.Generator, design: Design, faster: float = 1.0) -> list[Effect]:
    """Return the rows of a screen on which the last configuration is so many times faster than the others, which are alike."""
    sides: list[Side] = []
    for system in range(design.systems):
        runs = tuple(
            cast(
                "Any",
                SimpleNamespace(path=f"s{system}-{run}", launches=(), manifest=None),
            )
            for run in range(design.runs)
        )
        shape = (design.runs, design.fabrics, len(KEYS))
        of_runs = random.normal(0, design.sessions, (design.runs, 1, 1)) + random.normal(0, design.sessions / 2, shape)
        slowness = np.repeat(of_runs.transpose(1, 2, 0), design.blocks, axis=2)
        slowness = slowness + random.normal(0, OF_LAUNCHES, slowness.shape)
        if system == design.systems - 1:
            slowness[-1] -= np.log(faster)
        names = [f"s{system}-f{fabric}" for fabric in range(design.fabrics)]
        values = np.log(1000.0) + slowness * SLOWER[:, np.newaxis]
        run_of = tuple(run for run in range(design.runs) for _ in range(design.blocks))
        for side in sides_of(KEYS, values, names):
            factors = {"processor": f"s{system}", "fabric": side.name.partition("-")[2]}
            sides.append(replace(side, run=runs[0], runs=runs, run_of=run_of, factors=factors, traits=factors))
    # A first look spends 0.8 of 5 %.
    _, effects, _ = rows_of(compared(sides, confidence=0.96, pairings=all_pairs(sides)))
    return effects


def is_wrong(effects: list[Effect]) -> bool:
    """Whether a row that is clear sets one configuration before another, of which none differ."""
    decided = (Verdict.A_FASTER, Verdict.B_FASTER, Verdict.A_AHEAD, Verdict.B_AHEAD)
    return any(
        one.grade is Grade.CLEAR and any(pair.verdict in decided for pair in one.pairs)
        for one in effects
        if one.is_typical
    )


def is_found(effects: list[Effect]) -> bool:
    """Whether every row is clear and has the last configuration first, before all others."""
    return all(one.grade is Grade.CLEAR and len(one.ranks[0]) == 1 for one in effects if one.is_typical)
