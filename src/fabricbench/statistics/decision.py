"""From intervals and corrected p-values to decisions, and from an open question to the blocks that would settle it.

    EQUIVALENT                  both one-sided tests reject a difference of the margin (Schuirmann 1987), corrected over the family,
                                the interval shown lies within it, and there were launches enough to have met a rare slow mode
    LOWER, HIGHER               "the difference is at most the margin" is rejected: the ratio lies beyond what matters
    LOWER_AHEAD, HIGHER_AHEAD   "there is no difference" is rejected, "it is at most the margin" is not: one side is ahead,
                                perhaps by less than matters
    UNDECIDED                   everything else: more blocks are needed

All p-values of a test come from one Student's t: of the log ratio against 0, against the margin, and against it from within.

Intervals that hold together (`LogRatio`) are for the few sentences that a reader takes away: if all cover their ratios at once, no
decision read off them can be wrong, whatever mixture of equal, nearly equal and different pairs is true; so the chance of any wrong
one is at most the share of the error that the family was given (Bonferroni; the argument is that of the partitioning principle,
Finner and Strassburger, Annals of Statistics 30, 2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.correction import benjamini_hochberg, hochberg
from fabricbench.statistics.ratios import Ratios

Floats = NDArray[np.float64]

POWER = 0.8
"""Chance of a decision that `blocks_to_settle` plans for."""

MOST_BLOCKS = 1000
"""A comparison that would need more is said to have no estimate: its ratio sits on the margin or its noise swamps it."""

RARE_SHARE = 0.1
MISSED = 0.035
EQUIVALENT_LAUNCHES = int(np.ceil(np.log(MISSED) / np.log(1.0 - RARE_SHARE)))
"""Launches that miss a slow mode of one launch in ten in 3.4 % of runs, so that there is room for other errors within 5 %: with
fewer, six say, half of all runs would see none of it."""


class Decision(Enum):
    """What is known about `b / a`."""

    UNDECIDED = "undecided"
    LOWER = "lower"
    HIGHER = "higher"
    EQUIVALENT = "equivalent"
    LOWER_AHEAD = "lower, by less than matters perhaps"
    HIGHER_AHEAD = "higher, by less than matters perhaps"


DECISIONS = np.array(list(Decision), dtype=object)
UNDECIDED, LOWER, HIGHER, EQUIVALENT, LOWER_AHEAD, HIGHER_AHEAD = range(len(Decision))


@dataclass(frozen=True)
class PValues:
    """A p-value a comparison, corrected or not, of three hypotheses about the log ratio.

    `zero`: it is 0. `margin`: it is at most the margin, either way. `equivalence`: it is the margin or more, the larger of two
    one-sided p-values.
    """

    zero: Floats
    margin: Floats
    equivalence: Floats


def p_values_of(ratios: Ratios, margin: float) -> PValues:
    """Return the uncorrected p-values of each comparison."""
    limit = np.log1p(margin)
    size = np.abs(np.log(ratios.ratio))
    error, freedom = ratios.log_standard_error, ratios.degrees_of_freedom
    is_known = ~np.isnan(ratios.p_value)
    with np.errstate(invalid="ignore", divide="ignore"):
        beyond = special.stdtr(freedom, -_over(size - limit, error))
        within = special.stdtr(freedom, -_over(limit - size, error))
    return PValues(
        zero=ratios.p_value,
        # Doubled, as either side might have been claimed; above 1/2 nothing is beyond the margin at all.
        margin=np.where(is_known, np.minimum(2.0 * beyond, 1.0), np.nan),
        equivalence=np.where(is_known, within, np.nan),
    )


def _over(difference: Floats, error: Floats) -> Floats:
    """Return how many standard errors a difference is; without an error, certainly so or certainly not."""
    safe = np.where(error > 0, error, 1.0)
    return np.asarray(np.where(error > 0, difference / safe, np.sign(difference) * np.inf), dtype=np.float64)


def corrected(tests: PValues) -> PValues:
    """Return the p-values corrected over the last axis, as tables of many rows are read.

    Differences for the false discovery rate; equivalence for the chance of any wrong one, as a reader adds equivalent rows up.
    """
    return PValues(benjamini_hochberg(tests.zero), benjamini_hochberg(tests.margin), hochberg(tests.equivalence))


def decide(ratios: Ratios, tests: PValues, margin: float, confidence: float = 0.95) -> NDArray[np.object_]:
    """Return an array of `Decision`, one for each comparison; `tests` are corrected, `margin` is the smallest that matters."""
    return np.asarray(DECISIONS[decision_codes(ratios, tests, margin, confidence)], dtype=object)


def decision_codes(
    ratios: Ratios, tests: PValues, margin: float, confidence: float = 0.95, met: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the number of each decision in the order of `Decision`: what `decide` names, for millions of them at once.

    `met` counts the launches of the smaller side where they are not what `ratios` counts: those of several runs.
    """
    limit, level = np.log1p(margin), 1.0 - confidence
    shape = ratios.ratio.shape
    zero, beyond, within = (np.reshape(one, shape) for one in (tests.zero, tests.margin, tests.equivalence))
    with np.errstate(invalid="ignore", divide="ignore"):
        log_ratio = np.log(ratios.ratio)
        is_inside = (np.log(ratios.low) > -limit) & (np.log(ratios.high) < limit)
    is_equivalent = is_inside & (within < level) & ((ratios.launches if met is None else met) >= EQUIVALENT_LAUNCHES)
    codes = np.full(shape, UNDECIDED)
    codes = np.where(zero < level, np.where(log_ratio < 0, LOWER_AHEAD, HIGHER_AHEAD), codes)
    codes = np.where(beyond < level, np.where(log_ratio < 0, LOWER, HIGHER), codes)
    return np.asarray(np.where(is_equivalent, EQUIVALENT, codes), dtype=np.int64)


def blocks_to_settle(
    ratios: Ratios, tests: PValues, adjusted: PValues, margin: float, confidence: float = 0.95
) -> Floats:
    """Return how many more blocks would settle each comparison with probability POWER, if ratio and noise stay what they are.

    A ratio beyond the margin needs n with s / sqrt(n) * (t(1 - alpha/2) + t(POWER)) <= |log ratio| - margin, where alpha is what
    the correction left of 1 - confidence; one within it needs the interval to fit into what the margin leaves, and launches enough
    for an equivalence. NaN where no estimate can be made or more than MOST_BLOCKS would be needed. Source: the usual
    normal-theory sample size, Cohen (1988), section 2.4.
    """
    limit = np.log1p(margin)
    size = np.abs(np.log(ratios.ratio))
    is_beyond = size > limit
    left = np.where(is_beyond, _left(tests.margin, adjusted.margin), _left(tests.equivalence, adjusted.equivalence))
    with np.errstate(invalid="ignore", divide="ignore"):
        needed = (ratios.log_deviation / np.abs(size - limit)) ** 2
    upper = 1.0 - (1.0 - confidence) / 2.0 / left
    blocks = np.full(size.shape, 10.0)
    for _ in range(20):  # n stands on both sides, through the degrees of freedom: iterate to the fixed point
        freedom = np.maximum(blocks - 1.0, 1.0)
        factor = special.stdtrit(freedom, upper) + special.stdtrit(freedom, POWER)
        blocks = np.clip(needed * factor**2, np.where(is_beyond, 3.0, EQUIVALENT_LAUNCHES), 10.0 * MOST_BLOCKS)
    more = np.maximum(np.ceil(blocks) - ratios.launches, 1.0)
    return np.asarray(np.where(np.isnan(needed) | (more > MOST_BLOCKS), np.nan, more), dtype=np.float64)


def _left(raw: Floats, adjusted: Floats) -> Floats:
    """Return how many times the correction raised a p-value; at least once, at most by as many as there are."""
    with np.errstate(invalid="ignore", divide="ignore"):
        times = np.where(raw > 0, adjusted / raw, 1.0)
    most = max(float(np.count_nonzero(~np.isnan(raw))), 1.0)
    return np.asarray(np.clip(np.nan_to_num(times, nan=1.0), 1.0, most), dtype=np.float64)


@dataclass(frozen=True)
class LogRatio:
    """A mean log ratio `b / a`, the standard deviation of a pair's, how many pairs, and the degrees of freedom of the deviation.

    `met` counts launches where they are not the pairs: those of several runs, say.
    """

    mean: float
    deviation: float
    launches: int
    freedom: float
    met: int | None = None

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / float(np.sqrt(self.launches))

    def bounds(self, error_rate: float) -> tuple[float, float]:
        """Return the interval of the log ratio that misses it at most so often, on both sides together."""
        half = float(special.stdtrit(self.freedom, 1.0 - error_rate / 2.0)) * self.error
        return self.mean - half, self.mean + half

    def decide(self, error_rate: float, margin: float) -> Decision:
        """Return what the interval at that rate decides; `margin` is the smallest relative difference that matters."""
        low, high = self.bounds(error_rate)
        limit = float(np.log1p(margin))
        if low > limit:
            return Decision.HIGHER
        if high < -limit:
            return Decision.LOWER
        if low > -limit and high < limit and (self.launches if self.met is None else self.met) >= EQUIVALENT_LAUNCHES:
            return Decision.EQUIVALENT
        if low > 0:
            return Decision.HIGHER_AHEAD
        return Decision.LOWER_AHEAD if high < 0 else Decision.UNDECIDED

    def is_at_least(self, limit: float, error_rate: float) -> bool:
        """Return whether the log ratio is shown to be above `limit`, one-sided."""
        return self.mean - float(special.stdtrit(self.freedom, 1.0 - error_rate)) * self.error > limit
