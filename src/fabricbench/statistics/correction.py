"""Many comparisons at once: p-values adjusted for their number, each procedure with what it promises.

    benjamini_hochberg   the false discovery rate: of what is claimed, the expected share that is wrong (tables of many rows)
    holm                 the chance of any wrong claim at all, whatever the dependence (what a headline quotes)
    hochberg             the same for positively dependent tests, with more power where most of the hypotheses are false

Benjamini and Hochberg, "Controlling the false discovery rate", J. R. Stat. Soc. B 57 (1995). The comparisons of one campaign share
launches, so they are positively correlated, for which the bound holds (Benjamini and Yekutieli, Annals of Statistics 29 (2001));
two-sided tests are not covered by the letter of that theorem, so `simulation` checks it on campaigns with such correlation.
Where nothing differs at all, the false discovery rate is the probability of any false discovery. Holm, "A simple sequentially
rejective multiple test procedure", Scand. J. Statistics 6 (1979); Hochberg, Biometrika 75 (1988).

All work on the last axis; NaN (no test was possible) stays NaN and does not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Return p-values adjusted for the false discovery rate."""
    ordered, order, tests, rank = _ordered(p_values)
    stepped = np.minimum.accumulate((ordered * (np.maximum(tests, 1) / rank))[..., ::-1], axis=-1)[..., ::-1]
    return _restored(p_values, stepped, order)


def benjamini_yekutieli(p_values: Floats) -> Floats:
    """Return adjusted p-values that hold under any dependence, at the cost of a factor of about ln(tests) + 0.58."""
    p_values = np.asarray(p_values, dtype=np.float64)
    tests = int(np.max(np.count_nonzero(~np.isnan(p_values), axis=-1), initial=1))
    penalty = float(np.sum(1.0 / np.arange(1, tests + 1)))
    return np.minimum(benjamini_hochberg(p_values) * penalty, 1.0)


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted so that the chance of any wrong rejection keeps its bound, whatever the dependence: step down."""
    ordered, order, tests, rank = _ordered(p_values)
    stepped = np.maximum.accumulate(ordered * np.maximum(tests - rank + 1, 1), axis=-1)
    return _restored(p_values, stepped, order)


def hochberg(p_values: Floats) -> Floats:
    """Return p-values adjusted as `holm` does, stepping up: never larger than Holm's, and sound for positively dependent tests."""
    ordered, order, tests, rank = _ordered(p_values)
    stepped = np.minimum.accumulate((ordered * np.maximum(tests - rank + 1, 1))[..., ::-1], axis=-1)[..., ::-1]
    return _restored(p_values, stepped, order)


def _ordered(p_values: Floats) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return ascending p-values (missing ones infinite, last), their order, how many tests there are, and each one's rank."""
    p_values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p_values, axis=-1)
    ordered = np.take_along_axis(p_values, order, axis=-1)
    tests = np.count_nonzero(~np.isnan(p_values), axis=-1, keepdims=True)
    rank = np.arange(1, p_values.shape[-1] + 1)
    return np.where(np.isnan(ordered), np.inf, ordered), order, tests, rank


def _restored(p_values: Floats, stepped: Floats, order: NDArray[np.int64]) -> Floats:
    p_values = np.asarray(p_values, dtype=np.float64)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, np.minimum(stepped, 1.0), axis=-1)
    return np.where(np.isnan(p_values), np.nan, adjusted)
