"""Which of several workloads gain more than which others, by what they gained in the same blocks. Pure.

`gains` are logarithms, shape (blocks,), in the order of their means; None where nothing pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fabricbench.analysis.findings import Interval
from fabricbench.analysis.measured import Floats
from fabricbench.analysis.summary import geometric_mean


def joint_confidence(number: int, confidence: float) -> float:
    """Return at which confidence each neighbour is told apart, so that all of so many hold together (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / max(number - 1, 1)


def lead(one: Floats | None, other: Floats | None, confidence: float) -> Interval | None:
    """Return how many times the gain of `other` that of `one` is, paired by block."""
    return None if one is None or other is None else geometric_mean(one - other, confidence)


def leads(gains: Sequence[Floats | None], confidence: float) -> list[Interval | None]:
    """Return the lead of each over the next; None for the last."""
    return [*(lead(one, other, confidence) for one, other in pairwise(gains)), None][: len(gains)]


def settled(gains: Sequence[Floats | None], confidence: float) -> list[bool]:
    """Return for each whether it and all before it gain more than all after it: that neighbours do says nothing of others.

    The claim is of all of these pairs at once, so each is tested at the level of the whole (an intersection of tests).
    """
    return [_parts(gains[:place], gains[place:], confidence) for place in range(1, len(gains) + 1)]


def _parts(before: Sequence[Floats | None], after: Sequence[Floats | None], confidence: float) -> bool:
    found = [lead(one, other, confidence) for one in before for other in after]
    return bool(found) and all(each is not None and each.low is not None and each.low > 1 for each in found)
