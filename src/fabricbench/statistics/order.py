"""Quantiles and their nonparametric intervals by order statistics.

The number of values below the p-quantile of a continuous distribution is binomial(n, p), whatever the distribution; so two order
statistics enclose the quantile with a probability that is a sum of binomial terms. Source: Le Boudec, "Performance Evaluation of
Computer and Communication Systems" (2010), theorem 2.1; Hahn and Meeker, "Statistical Intervals" (1991), section 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.ratios import EXACT, Rounding

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A point and its interval; the bounds are None where too few values give one at the confidence asked for."""

    value: float
    low: float | None
    high: float | None


def enclosing_ranks(count: int, probability: float, confidence: float) -> tuple[int, int] | None:
    """Return 1-based ranks (low, high) whose order statistics enclose a quantile, or None where no pair of them does.

    Takes the largest low rank and the smallest high rank that leave at most half of `1 - confidence` outside on each side, so
    that the coverage is at least `confidence` for every continuous distribution.
    """
    tail = (1.0 - confidence) / 2.0
    below = special.bdtr(np.arange(count), count, probability)
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1.0 - tail, side="left")) + 1
    return (low, high) if low >= 1 and high <= count else None


def median_interval(values: Floats, confidence: float = 0.95, rounding: Rounding = EXACT) -> Estimate:
    """Return the median of independent `values` with an interval whose coverage is close to `confidence`, not above it by luck.

    Few values make the exact interval far too wide (7 values: 98.4 % where 95 % were asked for), so the bounds are interpolated
    between the two neighbouring exact intervals, after Hettmansperger and Sheather, "Confidence intervals based on interpolated
    order statistics", Statistics and Probability Letters 4 (1986). None where even the range of the values is not enough: fewer
    than 6 values at 95 %. NaN are left out. By `rounding` all values may be off the same way: the bounds are moved out by it.
    """
    ordered = np.sort(values[~np.isnan(values)])
    count = ordered.size
    if count == 0:
        return Estimate(float("nan"), None, None)
    value = float(np.median(ordered))
    ranks = enclosing_ranks(count, 0.5, confidence)
    if ranks is None:
        return Estimate(value, None, None)
    outer = ranks[0]
    weight = _weight_of_inner(count, outer, confidence)
    inner_low, inner_high = ordered[min(outer, count - 1)], ordered[max(count - outer - 1, 0)]
    low = (1.0 - weight) * ordered[outer - 1] + weight * inner_low
    high = (1.0 - weight) * ordered[count - outer] + weight * inner_high
    off = float(np.exp(rounding.bound))
    return Estimate(value, float(low) / off, float(high) * off)


def _weight_of_inner(count: int, outer: int, confidence: float) -> float:
    """Return how far the bounds move from rank `outer` to the next one inside (0: not at all)."""
    if 2 * (outer + 1) > count:
        return 0.0
    gamma_outer = 1.0 - 2.0 * float(special.bdtr(outer - 1, count, 0.5))
    gamma_inner = 1.0 - 2.0 * float(special.bdtr(outer, count, 0.5))
    share = (gamma_outer - confidence) / (gamma_outer - gamma_inner)
    return (count - outer) * share / (outer + (count - 2 * outer) * share)


def quantile_of_sorted(ordered: Floats, probability: float) -> float:
    """Return what `np.quantile` does of sorted values (type 7), bit by bit, without the 70 microseconds that it takes."""
    place = (ordered.size - 1) * probability
    lower = int(place)
    below, above = float(ordered[lower]), float(ordered[min(lower + 1, ordered.size - 1)])
    share, step = place - lower, above - below
    return below + step * share if share < 0.5 else above - step * (1.0 - share)  # as numpy rounds
