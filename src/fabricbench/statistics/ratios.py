"""The ratio of two sides: geometric mean, interval and p-value, many comparisons at once.

Everything happens on logarithms, where a ratio is a difference, faster and slower are symmetric, and launch medians are close to
normal. Interval and p-value come from one and the same test, so they always agree: the interval excludes 1 exactly where
p < 1 - confidence. Rows are comparisons, columns are blocks (or launches); NaN marks what was not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

MINIMUM_LAUNCHES = 3
"""Below this there is neither an interval nor a p-value: two values say almost nothing of their own spread."""

LARGEST_EXACT = 50
"""Blocks up to which the signed-rank distribution is counted exactly; above, the normal approximation is good to 1e-3."""


class Assumption(Enum):
    """What the caller takes for granted about the logarithm of a per-block ratio; the test follows from it.

    NORMAL: close to normal, which launch medians are -> Student's t. SYMMETRIC: symmetric about its centre, nothing more ->
    Wilcoxon's exact signed-rank test with the Hodges-Lehmann estimate; it cannot say p < 2 / 2**n for n blocks.
    """

    NORMAL = "normal"
    SYMMETRIC = "symmetric"


@dataclass(frozen=True)
class Ratios:
    """The outcome of many comparisons, an array entry for each: `b / a` with interval, two-sided p-value of "ratio is 1".

    `log_deviation` is the standard deviation that `blocks_to_settle` plans with: of a per-block log ratio when paired; unpaired,
    of a hypothetical pair of one launch from each side. `launches` counts the pairs, or the launches of the smaller side.
    NaN where fewer than MINIMUM_LAUNCHES allow no statement.
    """

    ratio: Floats
    low: Floats
    high: Floats
    p_value: Floats
    launches: Counts
    log_deviation: Floats
    degrees_of_freedom: Floats

    @property
    def log_standard_error(self) -> Floats:
        """Standard error of the log ratio, from the deviation and the number of launches."""
        return self.log_deviation / np.sqrt(np.maximum(self.launches, 1))


def paired_ratios(
    log_ratios: Floats,
    confidence: float = 0.95,
    assumption: Assumption = Assumption.NORMAL,
    least_deviation: Floats | float = 0.0,
) -> Ratios:
    """Return the geometric mean of each row's per-block ratios `b / a`, given as logarithms, shape (comparisons, blocks).

    `least_deviation` is a floor under the standard deviation of a log ratio: medians read from a coarse clock can agree to the
    last digit, which must not pass for certainty.
    """
    rows = np.atleast_2d(np.asarray(log_ratios, dtype=np.float64))
    present = ~np.isnan(rows)
    count = present.sum(axis=1)
    mean = _mean(rows, present, count)
    deviation = np.maximum(_deviation(rows, present, count, mean), least_deviation)
    freedom = np.maximum(count - 1, 1).astype(np.float64)
    if assumption is Assumption.SYMMETRIC:
        return _signed_rank_ratios(rows, confidence, count, deviation)
    return _student(mean, deviation, deviation / np.sqrt(np.maximum(count, 1)), freedom, count, confidence)


def unpaired_ratios(
    log_a: Floats, log_b: Floats, confidence: float = 0.95, least_deviation: Floats | float = 0.0
) -> Ratios:
    """Return the ratio `b / a` of geometric means of two independent sets of launches for each row, by Welch's t on logarithms.

    Source: Welch, "The generalization of Student's problem when several different population variances are involved",
    Biometrika 34 (1947); degrees of freedom after Satterthwaite (1946).
    """
    sides = []
    for log in (log_a, log_b):
        rows = np.atleast_2d(np.asarray(log, dtype=np.float64))
        present = ~np.isnan(rows)
        count = present.sum(axis=1)
        mean = _mean(rows, present, count)
        deviation = np.maximum(_deviation(rows, present, count, mean), np.asarray(least_deviation) / np.sqrt(2.0))
        sides.append((count, mean, deviation**2 / np.maximum(count, 1)))
    (count_a, mean_a, square_a), (count_b, mean_b, square_b) = sides
    smaller = np.minimum(count_a, count_b)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = square_a**2 / np.maximum(count_a - 1, 1) + square_b**2 / np.maximum(count_b - 1, 1)
        freedom = np.where(spread > 0, (square_a + square_b) ** 2 / spread, np.maximum(smaller - 1, 1))
    error = np.sqrt(square_a + square_b)
    return _student(mean_b - mean_a, error * np.sqrt(np.maximum(smaller, 1)), error, freedom, smaller, confidence)


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


def student_one_sided(difference: Floats, standard_error: Floats, degrees_of_freedom: Floats) -> Floats:
    """Return the p-value of "the difference is at most 0" against "it is larger", NaN where the error is unknown."""
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.where(difference == 0.0, 0.0, difference / standard_error)
    return np.asarray(special.stdtr(degrees_of_freedom, -statistic), dtype=np.float64)


def _mean(rows: Floats, present: NDArray[np.bool_], count: Counts) -> Floats:
    total = np.where(present, rows, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _deviation(rows: Floats, present: NDArray[np.bool_], count: Counts, mean: Floats) -> Floats:
    squares = np.where(present, rows - mean[:, None], 0.0) ** 2
    return np.where(count > 1, np.sqrt(squares.sum(axis=1) / np.maximum(count - 1, 1)), np.nan)


def _student(
    mean: Floats, deviation: Floats, error: Floats, freedom: Floats, count: Counts, confidence: float
) -> Ratios:
    enough = count >= MINIMUM_LAUNCHES
    half = special.stdtrit(freedom, 0.5 + confidence / 2.0) * error
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.where(mean == 0.0, 0.0, np.abs(mean) / error)
    p_value = 2.0 * special.stdtr(freedom, -statistic)
    return Ratios(
        ratio=np.exp(mean),
        low=np.where(enough, np.exp(mean - half), np.nan),
        high=np.where(enough, np.exp(mean + half), np.nan),
        p_value=np.where(enough, p_value, np.nan),
        launches=count.astype(np.int64),
        log_deviation=np.where(enough, deviation, np.nan),
        degrees_of_freedom=freedom,
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


def _signed_rank_ratios(rows: Floats, confidence: float, count: Counts, deviation: Floats) -> Ratios:
    """One row after the other: the distribution depends on how many blocks a row has."""
    ratio, low, high, p_value = (np.full(len(rows), np.nan) for _ in range(4))
    for index, row in enumerate(rows):
        values = row[~np.isnan(row)]
        if values.size == 0:
            continue
        walsh = np.sort([(x + y) / 2.0 for x, y in combinations_with_replacement(values, 2)])
        ratio[index] = np.exp(np.median(walsh))
        if values.size < MINIMUM_LAUNCHES:
            continue
        tail = _signed_rank_cdf(values.size)
        # A Walsh average of 0 counts half, as in the midrank treatment of zeros.
        negative = np.count_nonzero(walsh < 0) + 0.5 * np.count_nonzero(walsh == 0)
        smaller = int(np.ceil(min(negative, len(walsh) - negative)))
        p_value[index] = min(1.0, 2.0 * tail[min(smaller, len(tail) - 1)])
        outside = int(np.searchsorted(tail, (1.0 - confidence) / 2.0, side="right"))
        if outside >= 1:
            low[index], high[index] = np.exp(walsh[outside - 1]), np.exp(walsh[len(walsh) - outside])
    return Ratios(ratio, low, high, p_value, count.astype(np.int64), deviation, np.maximum(count - 1.0, 1.0))


def _signed_rank_cdf(count: int) -> Floats:
    if count <= LARGEST_EXACT:
        return signed_rank_tail(count)
    ranks = np.arange(count * (count + 1) // 2 + 1)
    mean, variance = count * (count + 1) / 4.0, count * (count + 1) * (2 * count + 1) / 24.0
    return np.asarray(special.ndtr((ranks + 0.5 - mean) / np.sqrt(variance)), dtype=np.float64)
