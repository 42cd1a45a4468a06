"""From an interval and a corrected p-value to a decision, and from an open question to the blocks that would settle it.

    EQUIVALENT       the interval lies within the margin that matters: two one-sided tests (Schuirmann 1987), each at half of
                     1 - confidence, stricter than customary, so that the interval shown is the one decided by
    LOWER, HIGHER    the corrected p-value is below 1 - confidence and the ratio itself is beyond the margin
    UNDECIDED        everything else: more blocks are needed

An equivalence needs no correction: claiming it wrongly needs an interval that misses the truth by the margin, each at its own rate.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.ratios import Ratios

Floats = NDArray[np.float64]

POWER = 0.8
"""Chance of a decision that `blocks_to_settle` plans for."""

MOST_BLOCKS = 1000
"""A comparison that would need more is said to have no estimate: its ratio sits on the margin or its noise swamps it."""


class Decision(Enum):
    """What is known about `b / a`."""

    LOWER = "lower"
    HIGHER = "higher"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


_DECISIONS = np.array([Decision.UNDECIDED, Decision.LOWER, Decision.HIGHER, Decision.EQUIVALENT], dtype=object)


def decide(ratios: Ratios, p_adjusted: Floats, margin: float, confidence: float = 0.95) -> NDArray[np.object_]:
    """Return an array of `Decision`, one for each comparison; `margin` is the smallest relative difference that matters."""
    return np.asarray(_DECISIONS[decision_codes(ratios, p_adjusted, margin, confidence)], dtype=object)


def decision_codes(ratios: Ratios, p_adjusted: Floats, margin: float, confidence: float = 0.95) -> NDArray[np.int64]:
    """Return 0 undecided, 1 lower, 2 higher, 3 equivalent: what `decide` names, for millions of them at once."""
    limit = np.log1p(margin)
    log_ratio = np.log(ratios.ratio)
    with np.errstate(invalid="ignore"):
        is_equivalent = (np.log(ratios.low) > -limit) & (np.log(ratios.high) < limit)
        is_different = (p_adjusted < 1.0 - confidence) & ~is_equivalent
        codes = np.where(is_equivalent, 3, 0)
        codes = np.where(is_different & (log_ratio <= -limit), 1, codes)
        codes = np.where(is_different & (log_ratio >= limit), 2, codes)
    return codes.astype(np.int64)


def blocks_to_settle(ratios: Ratios, p_adjusted: Floats, margin: float, confidence: float = 0.95) -> Floats:
    """Return how many more blocks would settle each comparison with probability POWER, if ratio and noise stay what they are.

    A ratio beyond the margin needs n with s / sqrt(n) * (t(1 - alpha/2) + t(POWER)) <= |log ratio|, where alpha is what the
    correction left of 1 - confidence; one within it needs the interval to fit into what the margin leaves. NaN where no estimate
    can be made or more than MOST_BLOCKS would be needed. Source: the usual normal-theory sample size, Cohen (1988), section 2.4.
    """
    limit = np.log1p(margin)
    size = np.abs(np.log(ratios.ratio))
    is_beyond = size >= limit
    with np.errstate(invalid="ignore", divide="ignore"):
        penalty = np.where(is_beyond & (ratios.p_value > 0), np.maximum(p_adjusted / ratios.p_value, 1.0), 1.0)
        goal = np.where(is_beyond, size, limit - size)
        needed = (ratios.log_deviation / goal) ** 2
    upper = 1.0 - (1.0 - confidence) / 2.0 / np.nan_to_num(penalty, nan=1.0)
    blocks = np.full(size.shape, 10.0)
    for _ in range(20):  # n stands on both sides, through the degrees of freedom: iterate to the fixed point
        freedom = np.maximum(blocks - 1.0, 1.0)
        factor = special.stdtrit(freedom, upper) + special.stdtrit(freedom, POWER)
        blocks = np.clip(needed * factor**2, 3.0, 10.0 * MOST_BLOCKS)
    more = np.maximum(np.ceil(blocks) - ratios.launches, 1.0)
    return np.where(np.isnan(needed) | (more > MOST_BLOCKS), np.nan, more)
