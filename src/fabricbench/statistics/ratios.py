"""The ratio of two sides: geometric mean, interval and p-value, many comparisons at once.

Everything happens on logarithms, where a ratio is a difference, faster and slower are symmetric, and launch medians are close to
normal. Interval and p-value come from one and the same test, so they always agree: the interval excludes 1 exactly where
p < 1 - confidence. Rows are comparisons, columns are blocks (or launches); NaN marks what was not measured.

Values that were rounded, to printed digits or to the ticks of a clock, are all off by up to half a step, perhaps all the same way:
no number of launches averages that out. So each end of an interval is moved out by what the mean may be off (`Rounding.bound`), and
a p-value is that of the hypothesis nearest to what was tested that rounding leaves possible: partial identification (Manski,
Partial Identification of Probability Distributions, 2003).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

MINIMUM_LAUNCHES = 3
"""Below this there is neither an interval nor a p-value: two values say almost nothing of their own spread."""

FEWEST_SESSIONS = 2
"""Two means tell by how much sessions differ, with one degree of freedom."""

LARGEST_EXACT = 50
"""Blocks up to which the signed-rank distribution is counted exactly; above, the normal approximation is good to 1e-3."""


class Assumption(Enum):
    """What the caller takes for granted about the logarithm of a per-block ratio; the test follows from it.

    NORMAL: close to normal, which launch medians are -> Student's t. SYMMETRIC: symmetric about its centre, nothing more ->
    Wilcoxon's exact signed-rank test with the Hodges-Lehmann estimate; it cannot say p < 2 / 2**n for n blocks.
    """

    NORMAL = "normal"
    SYMMETRIC = "symmetric"


LARGEST_STEP = 1.98
"""Of a value: rounded to a step of twice its size and more it could be anything, which no logarithm holds."""


@dataclass(frozen=True)
class Rounding:
    """What rounding makes of logarithms: `deviation` is the least that launches scatter by, `bound` the most a mean is off.

    Rounded launches can agree to the last digit, which must not pass for certainty: the deviation is that of uniform rounding. The
    bound never becomes smaller with more launches.
    """

    deviation: Floats | float = 0.0
    bound: Floats | float = 0.0

    @classmethod
    def of(cls, step: Floats | float) -> Rounding:
        """Return that of values rounded to the nearest multiple of a step, which is given relative to the value."""
        half = np.minimum(step, LARGEST_STEP) / 2.0
        return cls(np.asarray(step) / np.sqrt(12.0), -np.log1p(-half))

    @classmethod
    def joined(cls, parts: Sequence[Rounding]) -> Rounding:
        """Return an array of them, an entry for each."""
        return cls(np.array([one.deviation for one in parts]), np.array([one.bound for one in parts]))

    def against(self, other: Rounding) -> Rounding:
        """Return that of a log ratio of two values, each rounded for itself."""
        return Rounding(np.hypot(self.deviation, other.deviation), np.add(self.bound, other.bound))

    def part(self, index: Any) -> Rounding:
        """Return that of some entries, where there is an array of them."""
        return Rounding(np.asarray(self.deviation)[index], np.asarray(self.bound)[index])

    def mean(self, weights: Floats) -> Rounding:
        """Return that of a weighted mean over the first axis of an array of them, as deviations and as bounds add up."""
        deviation, bound = np.asarray(self.deviation), np.asarray(self.bound)
        return Rounding(np.sqrt(np.tensordot(weights**2, deviation**2, axes=1)), np.tensordot(weights, bound, axes=1))


EXACT = Rounding()
"""Nothing was rounded by anything that matters."""


@dataclass(frozen=True)
class Fitted:
    """What was fitted to values and taken out of them: how many effects, and how many times as large the error of a mean is.

    Of all rows, or an entry for each.
    """

    effects: Counts | int = 0
    error_times: Floats | float = 1.0

    @classmethod
    def joined(cls, parts: Sequence[Fitted]) -> Fitted:
        """Return what was fitted to several rows, an entry for each."""
        return cls(np.array([one.effects for one in parts]), np.array([one.error_times for one in parts]))

    @classmethod
    def largest(cls, parts: Iterable[Fitted]) -> Fitted:
        """Return the largest cost among several fits: the most effects, and the largest factor of the error."""
        paid = cls.joined([NOTHING_FITTED, *parts])
        return cls(int(np.max(paid.effects)), float(np.max(paid.error_times)))


NOTHING_FITTED = Fitted()


@dataclass(frozen=True)
class Ratios:
    """The outcome of many comparisons, an array entry for each: `b / a` with interval, two-sided p-value of "ratio is 1".

    `log_deviation` is the standard deviation that `blocks_to_settle` plans with: of a per-block log ratio when paired; unpaired,
    of a hypothetical pair of one launch from each side. `launches` counts the pairs, or the launches of the smaller side.
    `rounding_bound` is by how much the log ratio may be off whatever the number of launches; interval and p-value have it within.
    NaN where fewer than MINIMUM_LAUNCHES allow no statement.
    """

    ratio: Floats
    low: Floats
    high: Floats
    p_value: Floats
    launches: Counts
    log_deviation: Floats
    degrees_of_freedom: Floats
    rounding_bound: Floats

    @property
    def log_standard_error(self) -> Floats:
        """Standard error of the log ratio, from the deviation and the number of launches."""
        return self.log_deviation / np.sqrt(np.maximum(self.launches, 1))


def paired_ratios(
    log_ratios: Floats,
    confidence: float = 0.95,
    assumption: Assumption = Assumption.NORMAL,
    rounding: Rounding = EXACT,
    fitted: Fitted = NOTHING_FITTED,
    fewest: int = MINIMUM_LAUNCHES,
) -> Ratios:
    """Return the geometric mean of each row's per-block ratios `b / a`, given as logarithms, shape (comparisons, blocks).

    `rounding` is that of the log ratios, of all rows or an entry for each; of what was `fitted` to them each effect costs a degree
    of freedom. Rows of fewer than `fewest` values tell nothing (Student's t only).
    """
    rows = np.atleast_2d(np.asarray(log_ratios, dtype=np.float64))
    present = ~np.isnan(rows)
    count = present.sum(axis=1)
    mean = _mean(rows, present, count)
    freedom = np.maximum(count - 1 - fitted.effects, 1).astype(np.float64)
    scatter = _deviation(rows, present, count, mean) * np.sqrt(np.maximum(count - 1, 1) / freedom) * fitted.error_times
    deviation = np.maximum(scatter, rounding.deviation)
    bound = np.broadcast_to(np.asarray(rounding.bound, dtype=np.float64), count.shape)
    if assumption is Assumption.SYMMETRIC:
        return _signed_rank_ratios(rows, confidence, count, deviation, bound)
    error = deviation / np.sqrt(np.maximum(count, 1))
    return _student(mean, deviation, error, freedom, count, confidence, bound, count >= fewest)


def unpaired_ratios(
    log_a: Floats, log_b: Floats, confidence: float = 0.95, rounding: Rounding = EXACT, *, is_alike: bool = False
) -> Ratios:
    """Return the ratio `b / a` of geometric means of two independent sets of launches for each row, by Welch's t on logarithms.

    Sources: Welch, "The generalization of Student's problem when several different population variances are involved",
    Biometrika 34 (1947); degrees of freedom after Satterthwaite (1946), and never more than sides that scatter alike would have:
    of 3 values against 30 the error is that of the 3, and 2.4 degrees of freedom are all there is, not the 30 that Satterthwaite's
    estimate gives whenever the 3 happen to agree.

    `is_alike`: a side of fewer than MINIMUM_LAUNCHES values, one run against three say, is taken to scatter as the other does.
    """
    sides = []
    for log in (log_a, log_b):
        rows = np.atleast_2d(np.asarray(log, dtype=np.float64))
        present = ~np.isnan(rows)
        count = present.sum(axis=1)
        mean = _mean(rows, present, count)
        deviation = np.maximum(_deviation(rows, present, count, mean), np.asarray(rounding.deviation) / np.sqrt(2.0))
        sides.append((count, mean, deviation))
    (count_a, mean_a, deviation_a), (count_b, mean_b, deviation_b) = sides
    smaller, larger = np.minimum(count_a, count_b), np.maximum(count_a, count_b)
    is_pooled = is_alike & (smaller > 0) & (smaller < MINIMUM_LAUNCHES) & (larger >= MINIMUM_LAUNCHES)
    pooled = _pooled(deviation_a, count_a, deviation_b, count_b)
    parts = [1.0 / np.maximum(count, 1) for count in (count_a, count_b)]
    freedoms = [np.maximum(count - 1, 1) for count in (count_a, count_b)]
    squares = [np.where(is_pooled, pooled, deviation) ** 2 for deviation in (deviation_a, deviation_b)]
    error = np.sqrt(squares[0] * parts[0] + squares[1] * parts[1])
    alike = _satterthwaite(parts, freedoms)
    estimated = _satterthwaite([square * part for square, part in zip(squares, parts, strict=True)], freedoms)
    freedom = np.where(error > 0, np.fmin(estimated, alike), np.maximum(smaller - 1, 1))
    freedom = np.where(is_pooled, count_a + count_b - 2, freedom).astype(np.float64)
    bound = np.broadcast_to(np.asarray(rounding.bound, dtype=np.float64), smaller.shape)
    deviation = error * np.sqrt(np.maximum(smaller, 1))
    enough = is_pooled | (smaller >= MINIMUM_LAUNCHES)
    return _student(mean_b - mean_a, deviation, error, freedom, smaller, confidence, bound, enough)


def _pooled(deviation_a: Floats, count_a: Counts, deviation_b: Floats, count_b: Counts) -> Floats:
    """Return the deviation that both sides share; a side of a single value tells nothing of it."""
    squares = sum(
        np.where(count > 1, np.maximum(count - 1, 0) * deviation**2, 0.0)
        for deviation, count in ((deviation_a, count_a), (deviation_b, count_b))
    )
    return np.asarray(np.sqrt(squares / np.maximum(count_a + count_b - 2, 1)), dtype=np.float64)


def _satterthwaite(parts: Sequence[Floats], freedoms: Sequence[Counts]) -> Floats:
    """Return the degrees of freedom of a sum of independent estimates of variance."""
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = sum(part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True))
        return np.asarray(sum(parts) ** 2 / spread, dtype=np.float64)


def run_means(log_values: Floats, run_of: Sequence[int] | Counts) -> Floats:
    """Return the mean of each run's launches: shape (..., launches) becomes (..., runs), NaN where a run has no value.

    `run_of` has for each launch the number of its run, from 0. Where runs differ by more than their launches do, a run is the unit
    of replication, and the means are all that there is to infer from: replicate at the highest level that varies (Kalibera and
    Jones, "Rigorous benchmarking in reasonable time", ISMM'13).
    """
    values, runs = np.asarray(log_values, dtype=np.float64), np.asarray(run_of, dtype=np.int64)
    is_of_run = runs[:, None] == np.arange(runs.max(initial=-1) + 1)
    present = ~np.isnan(values)
    count = present.astype(np.float64) @ is_of_run
    total = np.where(present, values, 0.0) @ is_of_run
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1.0), np.nan), dtype=np.float64)


def wider(ratios: Ratios, others: Ratios) -> Ratios:
    """Return ratios with intervals that hold those of others, where there are any."""
    is_known = ~np.isnan(ratios.low)
    low, high = np.fmin(ratios.low, others.low), np.fmax(ratios.high, others.high)
    return replace(ratios, low=np.where(is_known, low, np.nan), high=np.where(is_known, high, np.nan))


def ratios_of_sessions(
    log_ratios: Floats, sessions: Sequence[int] | Counts, confidence: float = 0.95, rounding: Rounding = EXACT
) -> Ratios:
    """Return `paired_ratios` of session means; `sessions` numbers each block's session from 0. NaN unless there are several."""
    rows = np.atleast_2d(log_ratios)
    has_several = np.unique(sessions).size >= FEWEST_SESSIONS
    means = run_means(rows, sessions) if has_several else np.full((len(rows), 1), np.nan)
    return paired_ratios(means, confidence, rounding=Rounding(0.0, rounding.bound), fewest=FEWEST_SESSIONS)


def ratios_over_sessions(
    log_ratios: Floats,
    sessions: Sequence[int] | Counts,
    confidence: float = 0.95,
    rounding: Rounding = EXACT,
    fitted: Fitted = NOTHING_FITTED,
) -> Ratios:
    """Return `paired_ratios` whose intervals and p-values hold by blocks and, where these are of several, by means of sessions.

    `sessions` has the number of each block's session, from 0; without any, all are of one.
    """
    ratios = paired_ratios(log_ratios, confidence, rounding=rounding, fitted=fitted)
    others = ratios_of_sessions(log_ratios, sessions, confidence, rounding)
    is_known = ~np.isnan(ratios.p_value)
    both = np.where(is_known, np.fmax(ratios.p_value, others.p_value), np.nan)
    return replace(wider(ratios, others), p_value=both)


def student_one_sided(difference: Floats, standard_error: Floats, degrees_of_freedom: Floats) -> Floats:
    """Return the p-value of "the difference is at most 0" against "it is larger", NaN where the error is unknown."""
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.where(difference == 0.0, 0.0, difference / standard_error)
    return np.asarray(special.stdtr(degrees_of_freedom, -statistic), dtype=np.float64)


def exceeding(log_ratios: Floats, margin: float, rounding: Rounding = EXACT) -> Floats:
    """Return for each row the p-value of "the geometric mean of the ratios is at most 1 + margin", one-sided.

    Rows are log ratios over launches, shape (comparisons, launches); NaN where fewer than MINIMUM_LAUNCHES have one.
    """
    found = paired_ratios(log_ratios, rounding=rounding)
    beyond = np.log(found.ratio) - found.rounding_bound - np.log1p(margin)
    p_values = student_one_sided(beyond, found.log_standard_error, found.degrees_of_freedom)
    return np.where(found.launches >= MINIMUM_LAUNCHES, p_values, np.nan)


def _mean(rows: Floats, present: NDArray[np.bool_], count: Counts) -> Floats:
    total = np.where(present, rows, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _deviation(rows: Floats, present: NDArray[np.bool_], count: Counts, mean: Floats) -> Floats:
    squares = np.where(present, rows - mean[:, None], 0.0) ** 2
    return np.where(count > 1, np.sqrt(squares.sum(axis=1) / np.maximum(count - 1, 1)), np.nan)


def _student(
    mean: Floats,
    deviation: Floats,
    error: Floats,
    freedom: Floats,
    count: Counts,
    confidence: float,
    bound: Floats,
    enough: NDArray[np.bool_] | None = None,
) -> Ratios:
    enough = count >= MINIMUM_LAUNCHES if enough is None else enough
    half = special.stdtrit(freedom, 0.5 + confidence / 2.0) * error + bound
    away = np.maximum(np.abs(mean) - bound, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.where(away == 0.0, 0.0, away / error)
    p_value = 2.0 * special.stdtr(freedom, -statistic)
    return Ratios(
        ratio=np.exp(mean),
        low=np.where(enough, np.exp(mean - half), np.nan),
        high=np.where(enough, np.exp(mean + half), np.nan),
        p_value=np.where(enough, p_value, np.nan),
        launches=count.astype(np.int64),
        log_deviation=np.where(enough, deviation, np.nan),
        degrees_of_freedom=freedom,
        rounding_bound=bound,
    )


def signed_rank_tail(count: int) -> Floats:
    """Return P(W <= w) for w = 0 .. n(n+1)/2 of Wilcoxon's signed-rank statistic without ties, counted exactly."""
    ways = np.zeros(count * (count + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, count + 1):
        shifted = np.zeros_like(ways)
        shifted[rank:] = ways[:-rank]
        ways = (ways + shifted) / 2.0
    return np.asarray(np.cumsum(ways), dtype=np.float64)


def _signed_rank_ratios(rows: Floats, confidence: float, count: Counts, deviation: Floats, bound: Floats) -> Ratios:
    """One row after the other: the distribution depends on how many blocks a row has."""
    ratio, low, high, p_value = (np.full(len(rows), np.nan) for _ in range(4))
    for index, row in enumerate(rows):
        values = row[~np.isnan(row)]
        if values.size == 0:
            continue
        walsh = np.sort([(x + y) / 2.0 for x, y in combinations_with_replacement(values, 2)])
        centre, off = float(np.median(walsh)), float(bound[index])
        ratio[index] = np.exp(centre)
        if values.size < MINIMUM_LAUNCHES:
            continue
        tail = _signed_rank_cdf(values.size)
        # A Walsh average of 0 counts half, as in the midrank treatment of zeros.
        nearest = np.clip(centre, -off, off)
        negative = np.count_nonzero(walsh < nearest) + 0.5 * np.count_nonzero(walsh == nearest)
        smaller = int(np.ceil(min(negative, len(walsh) - negative)))
        p_value[index] = min(1.0, 2.0 * tail[min(smaller, len(tail) - 1)])
        outside = int(np.searchsorted(tail, (1.0 - confidence) / 2.0, side="right"))
        if outside >= 1:
            low[index], high[index] = np.exp(walsh[outside - 1] - off), np.exp(walsh[len(walsh) - outside] + off)
    return Ratios(ratio, low, high, p_value, count.astype(np.int64), deviation, np.maximum(count - 1.0, 1.0), bound)


def _signed_rank_cdf(count: int) -> Floats:
    if count <= LARGEST_EXACT:
        return signed_rank_tail(count)
    ranks = np.arange(count * (count + 1) // 2 + 1)
    mean, variance = count * (count + 1) / 4.0, count * (count + 1) * (2 * count + 1) / 24.0
    return np.asarray(special.ndtr((ranks + 0.5 - mean) / np.sqrt(variance)), dtype=np.float64)
