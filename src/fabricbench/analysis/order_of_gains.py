"""Which of several workloads gain more than which others, by what they gained in the same blocks. Pure.

`gains` are in the order of their means; None where nothing pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fabricbench.analysis.findings import Interval
from fabricbench.analysis.measured import Floats
from fabricbench.analysis.summary import geometric_mean
from fabricbench.statistics.ratios import EXACT, Rounding


@dataclass(frozen=True)
class MeasuredGain:
    """How many times better a workload is on the faster fabric: logarithms, shape (blocks,), and what rounding makes of them."""

    logs: Floats
    rounding: Rounding = EXACT


def joint_confidence(number: int, confidence: float) -> float:
    """Return at which confidence each neighbour is told apart, so that all of so many hold together (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / max(number - 1, 1)


def lead(one: MeasuredGain | None, other: MeasuredGain | None, confidence: float) -> Interval | None:
    """Return how many times the gain of `other` that of `one` is, paired by block."""
    if one is None or other is None:
        return None
    return geometric_mean(one.logs - other.logs, confidence, one.rounding.against(other.rounding))


def leads(gains: Sequence[MeasuredGain | None], confidence: float) -> list[Interval | None]:
    """Return the lead of each over the next; None for the last."""
    return [*(lead(one, other, confidence) for one, other in pairwise(gains)), None][: len(gains)]


def settled(gains: Sequence[MeasuredGain | None], confidence: float) -> list[bool]:
    """Return for each whether it and all before it gain more than all after it: that neighbours do says nothing of others.

    The claim is of all of these pairs at once, so each is tested at the level of the whole (an intersection of tests).
    """
    return [_parts(gains[:place], gains[place:], confidence) for place in range(1, len(gains) + 1)]


def _parts(before: Sequence[MeasuredGain | None], after: Sequence[MeasuredGain | None], confidence: float) -> bool:
    found = [lead(one, other, confidence) for one in before for other in after]
    return bool(found) and all(each is not None and each.low is not None and each.low > 1 for each in found)
