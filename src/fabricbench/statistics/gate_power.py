"""What a gate can decide with the data at hand: what it would catch, what it would let pass, and how much more it would need.

A gate of one cell compares two sides of n units each (launches, or runs) by Welch's t on logarithms. With `log_deviation` s, that
of a pair of one unit from each side, and L the slowdown that is allowed,

    passed      mean + t(1 - a/2) s / sqrt(n) <= log L: the interval lies below
    regressed   mean - t(1 - a/2 / cells) s / sqrt(n) > log L: Holm's first step over all cells

and the mean over its standard error follows the noncentral t. Equal variances are taken for both sides, so degrees of freedom are
2 (n - 1), or Satterthwaite's where the sides differ in length. Chances of all cells are products; where the cells of a launch
rise and fall together, as they do, the true chance is higher, by little near 80 %: with simulated noise "needed: 31" stood where
30 blocks passed 87 % of unchanged systems.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.ratios import MINIMUM_LAUNCHES

Floats = NDArray[np.float64]

POWER = 0.8
"""The chance that "would be caught", "would pass" and "would need" are told for."""

CERTAIN = 15.0
"""Standard errors beyond which the chance to pass is 1 to all digits that matter, and the noncentral t is not evaluated any more:
from about 37 on it is lost to underflow."""

MOST_UNITS = 1000
"""A gate that would need more is said to have no number: its cells are noisier than the allowed slowdown by far."""


def caught_with_power(log_deviation: Floats, units: int, maximum: float, confidence: float, cells: int) -> Floats:
    """Return for each cell the smallest slowdown (a ratio) that a gate of so many `cells` catches with probability POWER."""
    freedom, error = 2.0 * (units - 1), np.asarray(log_deviation, dtype=np.float64) / np.sqrt(units)
    reach = special.stdtrit(freedom, 1.0 - (1.0 - confidence) / 2.0 / max(cells, 1)) + special.stdtrit(freedom, POWER)
    return np.asarray(np.exp(np.log1p(maximum) + reach * error), dtype=np.float64)


def passed_with_power(log_deviation: Floats, units: int, maximum: float, confidence: float) -> Floats:
    """Return for each cell the largest change (a ratio) that passes with probability POWER; below 1 it got faster."""
    freedom, error = 2.0 * (units - 1), np.asarray(log_deviation, dtype=np.float64) / np.sqrt(units)
    reach = special.stdtrit(freedom, 1.0 - (1.0 - confidence) / 2.0) + special.stdtrit(freedom, POWER)
    return np.asarray(np.exp(np.log1p(maximum) - reach * error), dtype=np.float64)


def chance_to_pass(
    log_deviation: Floats | float, maximum: float, confidence: float, units: int, other: int | None = None
) -> Floats:
    """Return the chance to pass of each cell that did not change: `units` on one side, `other` (or as many) on the other."""
    second = units if other is None else other
    error = np.asarray(log_deviation, dtype=np.float64) * np.sqrt((1.0 / units + 1.0 / second) / 2.0)
    spread = 1.0 / units**2 / (units - 1.0) + 1.0 / second**2 / (second - 1.0)
    freedom = (1.0 / units + 1.0 / second) ** 2 / spread
    critical = special.stdtrit(freedom, 1.0 - (1.0 - confidence) / 2.0)
    distance = np.log1p(maximum) / np.where(error > 0, error, 1.0)
    chance = 1.0 - special.nctdtr(freedom, np.minimum(distance, CERTAIN), critical)
    return np.asarray(np.where(error > 0, chance, 1.0), dtype=np.float64)


def blocks_to_decide(
    log_deviation: Floats | float, maximum: float, confidence: float, cells: int, other: int | None = None
) -> int | None:
    """Return how many blocks a side (or runs) pass a system that did not change with probability POWER; None beyond MOST_UNITS.

    `log_deviation` is of a pair of one launch from each side: one value, or one of each of some cells that stand for all `cells`.
    With `other` the old side keeps so many, and the answer is how many the new one needs; a noisy old side alone can make it None.
    """
    deviations = np.atleast_1d(np.asarray(log_deviation, dtype=np.float64))
    deviations = deviations[~np.isnan(deviations)]
    if deviations.size == 0 or cells < 1:
        return None

    def is_enough(units: int) -> bool:
        chances = chance_to_pass(deviations, maximum, confidence, units, other)
        with np.errstate(divide="ignore"):
            return bool(cells * np.mean(np.log(np.maximum(chances, 0.0))) >= np.log(POWER))

    low, high = MINIMUM_LAUNCHES, MOST_UNITS
    if not is_enough(high):
        return None
    while low < high:  # more units never pass less: look for the first that is enough
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
