"""Many comparisons at once: p-values adjusted so that the false discovery rate keeps its bound.

Benjamini and Hochberg, "Controlling the false discovery rate", J. R. Stat. Soc. B 57 (1995). The comparisons of one campaign share
launches, so they are positively correlated, for which the bound holds (Benjamini and Yekutieli, Annals of Statistics 29 (2001));
two-sided tests are not covered by the letter of that theorem, so `simulation` checks it on campaigns with such correlation.
Where nothing differs at all, the false discovery rate is the probability of any false discovery.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Return adjusted p-values, of the last axis; NaN (no test was possible) stay NaN and do not count."""
    p_values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p_values, axis=-1)
    ordered = np.take_along_axis(p_values, order, axis=-1)
    tests = np.count_nonzero(~np.isnan(p_values), axis=-1, keepdims=True)
    rank = np.arange(1, p_values.shape[-1] + 1)
    scaled = np.where(np.isnan(ordered), np.inf, ordered * tests / rank)
    stepped = np.minimum.accumulate(scaled[..., ::-1], axis=-1)[..., ::-1]
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, np.minimum(stepped, 1.0), axis=-1)
    return np.where(np.isnan(p_values), np.nan, adjusted)


def benjamini_yekutieli(p_values: Floats) -> Floats:
    """Return adjusted p-values that hold under any dependence, at the cost of a factor of about ln(tests) + 0.58."""
    p_values = np.asarray(p_values, dtype=np.float64)
    tests = int(np.max(np.count_nonzero(~np.isnan(p_values), axis=-1), initial=1))
    penalty = float(np.sum(1.0 / np.arange(1, tests + 1)))
    return np.minimum(benjamini_hochberg(p_values) * penalty, 1.0)
