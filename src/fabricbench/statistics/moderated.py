"""Student's t of many alike comparisons, each with a variance that borrows from the others (moderated t).

Of ten launches a variance has nine degrees of freedom, and a family of hundreds of tests then asks for six or seven standard
errors. Where many comparisons of one sort are made, their variances scatter around a common one: how much, beside what chance
makes, says how many degrees of freedom the common one is worth (none, where they differ much). Source: Smyth, "Linear models and
empirical Bayes methods for assessing differential expression in microarray experiments", Statistical Applications in Genetics and
Molecular Biology 3 (2004), sections 4 to 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.ratios import EXACT, MINIMUM_LAUNCHES, Rounding, student_one_sided

Floats = NDArray[np.float64]

FEWEST_ALIKE = 8
"""Comparisons from which on they tell of a common variance; fewer have their own alone."""

MOST_FREEDOM = 30.0
"""That the common variance is worth at most: comparisons of one run share launches, and agree more than they know."""


@dataclass(frozen=True)
class Common:
    """The variance that comparisons have in common, and the degrees of freedom that it is worth beside each one's own."""

    variance: float
    freedom: float


NOTHING_COMMON = Common(0.0, 0.0)


def common_variance(variances: Floats, freedom: Floats) -> Common:
    """Return what variances, each with its own degrees of freedom, have in common; NaN and 0 do not count."""
    is_there = (variances > 0) & (freedom > 0)
    own = freedom[is_there]
    if own.size < FEWEST_ALIKE:
        return NOTHING_COMMON
    logs = np.log(variances[is_there]) - special.digamma(own / 2.0) + np.log(own / 2.0)
    beyond_chance = float(np.var(logs, ddof=1) - np.mean(special.polygamma(1, own / 2.0)))
    worth = MOST_FREEDOM if beyond_chance <= 0.0 else min(2.0 * _inverse_trigamma(beyond_chance), MOST_FREEDOM)
    level = float(np.mean(logs) + special.digamma(worth / 2.0) - np.log(worth / 2.0))
    return Common(float(np.exp(level)), worth)


def moderated_exceeding(rows: Floats, margin: float, rounding: Rounding = EXACT) -> Floats:
    """Return for each row of log ratios, shape (comparisons, launches), the p-value of "the mean ratio is at most 1 + margin".

    All rows are of one sort. NaN are left out; the p-value is NaN where fewer than MINIMUM_LAUNCHES are left.
    """
    is_there = ~np.isnan(rows)
    count = is_there.sum(axis=1)
    mean = np.where(is_there, rows, 0.0).sum(axis=1) / np.maximum(count, 1)
    own = np.maximum(count - 1, 1).astype(np.float64)
    variance = (np.where(is_there, rows - mean[:, None], 0.0) ** 2).sum(axis=1) / own
    variance = np.maximum(variance, np.asarray(rounding.deviation) ** 2)
    is_enough = count >= MINIMUM_LAUNCHES
    common = common_variance(np.where(is_enough, variance, np.nan), own)
    freedom = own + common.freedom
    shared = (own * variance + common.freedom * common.variance) / freedom
    beyond = mean - np.asarray(rounding.bound) - np.log1p(margin)
    p_values = student_one_sided(beyond, np.sqrt(shared / np.maximum(count, 1)), freedom)
    return np.where(is_enough, p_values, np.nan)


def _inverse_trigamma(value: float) -> float:
    """Return x with trigamma(x) = value, by Newton's method (Smyth 2004, appendix)."""
    if value > 1e7:
        return float(1.0 / np.sqrt(value))
    guess = 0.5 + 1.0 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, guess))
        step = trigamma * (1.0 - trigamma / value) / float(special.polygamma(2, guess))
        guess += step
        if abs(step) < 1e-8 * guess:
            break
    return guess
