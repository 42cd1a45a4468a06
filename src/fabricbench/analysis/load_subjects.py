"""Workloads whatever their number of ranks, and on the most of them: what a report has one row of."""

from __future__ import annotations

from collections.abc import Iterable

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.node_sets import NO_LOSS, Blocks
from fabricbench.model import Pattern

GRID = "grid"
ARRANGED = frozenset({"hpl", "training-step"})
"""Workloads whose grid says how ranks are arranged; that of others (`elliptic`) is what they compute on."""


def subject_of(key: CellKey) -> tuple[Pattern, tuple[tuple[str, str | int | float], ...]]:
    """Return what is the same of a workload on every number of ranks."""
    if key.workload is None:
        return key.pattern, ()
    arrangement = GRID if key.workload.name in ARRANGED else None
    return key.pattern, tuple(one for one in key.workload.parameters if one[0] != arrangement)


def on_most_ranks(keys: Iterable[CellKey], blocks: Blocks = NO_LOSS) -> list[CellKey]:
    """Return each workload on the most ranks that it was run on, in every arrangement of them; cells of none are left out.

    Where nodes failed meanwhile, on the ranks that have the most blocks.
    """
    most: dict[object, tuple[tuple[int, int], list[CellKey]]] = {}
    for key in keys:
        if key.workload is not None:
            subject = subject_of(key)
            place = (blocks.get(key, 0), key.workload.ranks)
            if subject not in most or place > most[subject][0]:
                most[subject] = (place, [key])
            elif place == most[subject][0]:
                most[subject][1].append(key)
    return [key for _, chosen in most.values() for key in chosen]
