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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum

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

ADDED_BLOCKS = np.unique(np.round(np.geomspace(1.0, MOST_BLOCKS, 60)))
"""Numbers of blocks that are tried, each by an eighth more than the one before: the chance grows slowly with them."""

AT_ONCE = 6
"""Parts in which these are tried: most comparisons need none of the last, and an array of all would be large."""

DEVIATIONS = 24
"""Quantiles of the deviation that a chance is averaged over."""

FEWEST_PAIRS = 5
"""Pairs of launches below which nothing is decided between two sides: four tell nothing of two groups or of dependence (`skew`,
`dependence`), and three leave no order balanced and an interval that is too wide to show a fabric twice as fast."""

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


STRENGTHS = {
    Decision.LOWER: -2,
    Decision.LOWER_AHEAD: -1,
    Decision.UNDECIDED: 0,
    Decision.HIGHER_AHEAD: 1,
    Decision.HIGHER: 2,
}
"""Which side leads, by the sign, and how surely; an equivalence is on no side and has none."""


class Consequence(StrEnum):
    """What is lost of a decision if something that speaks against it is true."""

    NOTHING = "nothing"
    """The decision would be the same."""
    AMOUNT = "amount"
    """The same side would lead, perhaps by less than matters."""
    EQUALITY = "equality"
    """An equivalence would not be shown."""
    DIRECTION = "direction"
    """Nobody would be shown to lead."""


def consequence_of(decision: Decision, left: Decision) -> Consequence:
    """Return what a decision loses where only `left` is shown; an undecided one has nothing to lose."""
    if left is decision or decision is Decision.UNDECIDED:
        return Consequence.NOTHING
    if decision is Decision.EQUIVALENT:
        return Consequence.EQUALITY
    strength, remaining = STRENGTHS[decision], STRENGTHS.get(left, 0)
    if strength * remaining <= 0:
        return Consequence.DIRECTION
    return Consequence.NOTHING if abs(remaining) >= abs(strength) else Consequence.AMOUNT


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
    """Return the uncorrected p-values of each comparison, with the most favourable of what rounding leaves possible."""
    limit = np.log1p(margin)
    size, off = np.abs(np.log(ratios.ratio)), ratios.rounding_bound
    error, freedom = ratios.log_standard_error, ratios.degrees_of_freedom
    is_known = ~np.isnan(ratios.p_value)
    with np.errstate(invalid="ignore", divide="ignore"):
        beyond = special.stdtr(freedom, -_over(size - off - limit, error))
        within = special.stdtr(freedom, -_over(limit - size - off, error))
    return PValues(
        zero=ratios.p_value,
        # Doubled, as either side might have been claimed; above 1/2 nothing is beyond the margin at all.
        margin=np.where(is_known, np.minimum(2.0 * beyond, 1.0), np.nan),
        equivalence=np.where(is_known, within, np.nan),
    )


def larger(tests: PValues, others: PValues) -> PValues:
    """Return the larger p-values of two tests that both have to show something; the first ones where there is no second."""
    pairs = ((getattr(tests, name), getattr(others, name)) for name in PValues.__dataclass_fields__)
    return PValues(*(np.where(np.isnan(one), one, np.fmax(one, other)) for one, other in pairs))


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
    ratios: Ratios,
    tests: PValues,
    adjusted: PValues,
    margin: float,
    confidence: float = 0.95,
    *,
    of: NDArray[np.bool_] | None = None,
) -> Floats:
    """Return how many more blocks would settle each comparison with probability POWER: beyond the margin, or within it.

    `of` says which comparisons are asked about (default: all); the others are NaN.

    The true ratio and deviation are not taken for those that were measured: a ratio that looks worth more blocks does so partly by
    luck, and as many blocks as it asks for would settle it far less often. The chance is averaged over both as they may be after
    these blocks (the predictive distribution after a flat prior; Spiegelhalter and others, J. R. Stat. Soc. A 157 (1994)), and
    the blocks so far stay in the mean that is tested then. The correction is taken to leave of 1 - confidence what it left now.
    What rounding may be off comes off the distance: no blocks make it up. NaN where no estimate can be made, or where MOST_BLOCKS
    more would not do.
    """
    found = np.full(ratios.ratio.shape, np.nan)
    of_beyond = (1.0 - confidence) / _left(tests.margin, adjusted.margin)
    of_within = (1.0 - confidence) / _left(tests.equivalence, adjusted.equivalence)
    is_asked = ~np.isnan(ratios.log_deviation) & (True if of is None else of)
    for more in np.array_split(ADDED_BLOCKS, AT_ONCE):
        is_open = np.flatnonzero(np.isnan(found) & is_asked)
        if not is_open.size:
            break
        chances = _chances_to_settle(ratios, is_open, more, margin, of_beyond, of_within)
        is_enough = chances >= POWER
        found[is_open] = np.where(is_enough.any(axis=1), more[np.argmax(is_enough, axis=1)], np.nan)
    return found


def _chances_to_settle(
    ratios: Ratios, chosen: NDArray[np.int64], more: Floats, margin: float, of_beyond: Floats, of_within: Floats
) -> Floats:
    """Return the chance that some comparisons are settled, after each number of `more` blocks: shape (chosen, numbers).

    `of_*` is the level of either test of each comparison.
    """
    mean, bound, had, deviation, freedom, beyond_level, within_level = (
        one[chosen].astype(np.float64)[:, None, None]
        for one in (
            np.abs(np.log(ratios.ratio)),
            ratios.rounding_bound,
            ratios.launches,
            ratios.log_deviation,
            ratios.degrees_of_freedom,
            of_beyond,
            of_within,
        )
    )
    more = more[:, None]
    blocks, limit = had + more, np.log1p(margin)
    shares = (np.arange(DEVIATIONS) + 0.5) / DEVIATIONS
    true_deviation = deviation * np.sqrt(freedom / special.chdtri(freedom, 1.0 - shares))
    # How far the mean of all blocks will be from that of these: the new ones alone move it, and their true mean is as unsure.
    moved = true_deviation * np.sqrt(more / (blocks * had))
    later = np.sqrt(((had - 1.0) * deviation**2 + more * true_deviation**2) / (blocks - 1.0) / blocks)
    reach = special.stdtrit(blocks - 1.0, 1.0 - beyond_level / 2.0) * later + limit + bound
    room = limit - bound - special.stdtrit(blocks - 1.0, 1.0 - within_level) * later
    # Beyond on the side that leads now: noise alone may make either one lead.
    beyond = special.ndtr(_over(mean - reach, moved))
    within = special.ndtr(_over(room - mean, moved)) - special.ndtr(_over(-room - mean, moved))
    chance = np.where(blocks >= FEWEST_PAIRS, beyond, 0.0)
    chance = chance + np.where((room > 0.0) & (blocks >= EQUIVALENT_LAUNCHES), within, 0.0)
    return np.asarray(chance.mean(axis=2), dtype=np.float64)


def is_unresolved(ratios: Ratios, margin: float) -> NDArray[np.bool_]:
    """Return where rounding alone forbids every verdict: no number of launches would say who leads, nor that nobody does."""
    return unresolved(np.log(ratios.ratio), ratios.rounding_bound, margin)


def unresolved(log_ratio: Floats | float, bound: Floats | float, margin: float) -> NDArray[np.bool_]:
    """Return where the ratio may be on either side of 1, and beyond the margin, by no more than rounding (`bound`)."""
    size = np.abs(log_ratio)
    return np.asarray((size <= bound) & (size + bound >= np.log1p(margin)), dtype=np.bool_)


def _left(raw: Floats, adjusted: Floats) -> Floats:
    """Return how many times the correction raised a p-value; at least once, at most by as many as there are."""
    with np.errstate(invalid="ignore", divide="ignore"):
        times = np.where(raw > 0, adjusted / raw, 1.0)
    most = max(float(np.count_nonzero(~np.isnan(raw))), 1.0)
    return np.asarray(np.clip(np.nan_to_num(times, nan=1.0), 1.0, most), dtype=np.float64)


@dataclass(frozen=True)
class LogRatio:
    """A mean log ratio `b / a`, the standard deviation of a pair's, how many pairs, and the degrees of freedom of the deviation.

    `met` counts launches where they are not the pairs: those of several runs, say. By `rounding_bound` the mean may be off,
    whatever the number of launches.
    """

    mean: float
    deviation: float
    launches: int
    freedom: float
    met: int | None = None
    rounding_bound: float = 0.0

    @classmethod
    def of_means(cls, means: Floats, rounding_bound: float = 0.0) -> LogRatio:
        """Return that of a few values, two at least, each of them the mean of what was measured together."""
        return cls(
            float(np.mean(means)),
            float(np.std(means, ddof=1)),
            means.size,
            float(means.size - 1),
            rounding_bound=rounding_bound,
        )

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / float(np.sqrt(self.launches))

    def bounds(self, error_rate: float) -> tuple[float, float]:
        """Return the interval of the log ratio that misses it at most so often, on both sides together."""
        half = float(special.stdtrit(self.freedom, 1.0 - error_rate / 2.0)) * self.error + self.rounding_bound
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

    def p_value(self, limit: float = 0.0) -> float:
        """Return the two-sided p-value of "the log ratio is at most `limit`, either way"."""
        away = abs(self.mean) - self.rounding_bound - limit
        error = self.error
        statistic = away / error if error > 0.0 else float(np.sign(away)) * float("inf")
        return min(2.0 * float(special.stdtr(self.freedom, -statistic)), 1.0)

    def off_by(self, bias: float) -> LogRatio:
        """Return this log ratio with a mean that may be off by so much more, either way."""
        return replace(self, rounding_bound=self.rounding_bound + bias)

    def anywhere_within(self, reach: float) -> LogRatio:
        """Return this log ratio with a mean of unknown scatter that is within `reach` of the truth."""
        return replace(self, deviation=0.0, rounding_bound=self.rounding_bound + reach)

    def is_unresolved(self, margin: float) -> bool:
        """Whether rounding alone forbids every decision, whatever the number of launches."""
        return bool(unresolved(self.mean, self.rounding_bound, margin))

    def is_at_least(self, limit: float, error_rate: float) -> bool:
        """Return whether the log ratio is shown to be above `limit`, one-sided."""
        reach = float(special.stdtrit(self.freedom, 1.0 - error_rate)) * self.error + self.rounding_bound
        return self.mean - reach > limit


def shared_by(parts: Sequence[LogRatio], error_rate: float, margin: float) -> Decision:
    """Return what all parts of a comparison decide, the weakest of them: undecided where they do not agree on who leads."""
    return weaker(*(part.decide(error_rate, margin) for part in parts))


def weaker(*decisions: Decision) -> Decision:
    """Return the weakest of some decisions; undecided where they do not agree on who leads."""
    if all(one is Decision.EQUIVALENT for one in decisions):
        return Decision.EQUIVALENT
    strengths = [STRENGTHS.get(one, 0) for one in decisions]
    is_one_way = min(strengths) > 0 or max(strengths) < 0
    return min(decisions, key=lambda one: abs(STRENGTHS[one])) if is_one_way else Decision.UNDECIDED


def stronger(whole: Decision, shared: Decision) -> Decision:
    """Return the stronger of what all launches and both of their groups decide; of launches in groups nothing is equivalent.

    Both groups may show what their mean does not, as it scatters by what the groups are apart.
    """
    if whole is Decision.EQUIVALENT:
        return shared
    return whole if abs(STRENGTHS[whole]) >= abs(STRENGTHS.get(shared, 3)) else shared
