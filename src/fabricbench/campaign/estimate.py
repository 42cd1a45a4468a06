"""How long a launch takes: beforehand from its stopping bounds, during the run from the launches that are over. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from fabricbench.model import Layer, Pattern
from fabricbench.record.probe_plan import PlanProbe

START_SECONDS = 1.5
"""Starting the ranks, loading MPI and measuring the clock: 0.3 to 0.5 s on an idle machine, longer on a busy one."""

CELL_SECONDS = 0.06
"""Beside its measuring time a cell meets its peer, warms up, verifies and reads counters."""

WINDOW_SECONDS = 0.02
"""A window of a stream should take this long: several turns of a scheduler, so that none is only what a receiver found waiting."""

HANG_FACTOR = 3.0
HANG_SECONDS = 30.0
"""A launch is taken as hung after this factor of its bound and this much more: far from any honest delay."""


def cell_seconds(probe: PlanProbe) -> float:
    """Return the seconds that a cell takes at most if nothing goes wrong."""
    bound = probe.stopping.maximum_seconds
    is_network_stream = probe.pattern is Pattern.STREAM and probe.layer is not Layer.MEMORY
    warmup = min(bound, probe.warmup_samples * WINDOW_SECONDS) if is_network_stream else 0.0
    return CELL_SECONDS + warmup + bound


def launch_seconds(probes: Iterable[PlanProbe]) -> float:
    """Return the seconds that a launch takes at most if nothing goes wrong."""
    return START_SECONDS + sum(cell_seconds(probe) for probe in probes)


def limit_seconds(estimated_seconds: float) -> float:
    """Return the seconds after which a launch is taken as hung and ended."""
    return HANG_SECONDS + HANG_FACTOR * estimated_seconds


def seconds_left(remaining: Sequence[tuple[str, float]], observed: Sequence[tuple[str, float, float]]) -> float:
    """Return the seconds that `remaining` launches (fabric, estimate) need, given those over (fabric, estimate, actual).

    A fabric's own launches tell best; before there is one, the ratio of actual to estimate over all; at the start the estimate.
    """
    ratio = median([actual / estimate for _, estimate, actual in observed]) if observed else 1.0
    own: dict[str, list[float]] = {}
    for fabric, estimate, actual in observed:
        own.setdefault(fabric, []).append(actual / estimate)
    return sum(estimate * (median(own[fabric]) if fabric in own else ratio) for fabric, estimate in remaining)
