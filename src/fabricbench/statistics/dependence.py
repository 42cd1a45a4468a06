"""What breaks independence: autocorrelation of samples within a launch and of launches over blocks, and a trend over blocks.

Neither enters a decision, because a launch is the unit of replication and fabrics are paired within a block; both are told to the
reader, who would otherwise believe ten thousand samples to be ten thousand facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

LARGEST_EXACT = 60
"""Blocks up to which Kendall's distribution is counted exactly."""


def side_autocorrelation(samples: Floats, median: float | None = None) -> float:
    """Return the lag-1 autocorrelation of "above the median", which spikes cannot distort; 0 for fewer than 4 samples.

    `median` is that of the samples, where it is known.
    """
    if samples.size < 4:
        return 0.0
    centred = (samples > (np.median(samples) if median is None else median)).astype(np.float64)
    centred -= centred.mean()
    variance = float(np.dot(centred, centred))
    return float(np.dot(centred[1:], centred[:-1])) / variance if variance > 0 else 0.0


def effective_samples(count: int, autocorrelation: float) -> float:
    """Return how many independent samples would give the median the same spread: n (1 - r) / (1 + r), for 0 <= r < 1.

    The variance of a sample median is that of the mean of "above the median" indicators over a squared density
    (Bahadur 1966), so their autocorrelation is the one that counts; r is taken at lag 1, its powers at longer lags.
    """
    bounded = min(max(autocorrelation, 0.0), 0.999)
    return count * (1.0 - bounded) / (1.0 + bounded)


LEAST_IN_A_ROW = 5
"""Fewer launches in a row tell nothing of what follows what: no order of them is rare enough."""

ALL_ORDERS = 7
"""Launches up to which every order is counted (5,040); above, RANDOM_ORDERS are drawn."""
RANDOM_ORDERS = 9999
ONE_IN_TWENTY = 1.6449
"""Standard deviations that a normal value exceeds once in twenty times."""


@dataclass(frozen=True)
class LagOne:
    """How much a launch resembles the one before it.

    `autocorrelation` is less what independent launches would show, and `deviation` its standard deviation in any order of them;
    the p-value is of "in any order they would do so as well".
    """

    autocorrelation: float
    p_value: float
    deviation: float

    @property
    def most(self) -> float:
        """How much it may be, one-sided, with an error of a twentieth; deviations taken for normal."""
        return self.autocorrelation + ONE_IN_TWENTY * self.deviation


def times_wider(correlation: float) -> float:
    """Return how many times as wide as of independent values the interval of their mean is, of many with that lag-1 correlation.

    Of an autoregression of the first order.
    """
    return sqrt((1.0 + correlation) / (1.0 - correlation))


def pooled_lag_one(log_values: Floats) -> LagOne | None:
    """Return the lag-1 autocorrelation of launches in time order, pooled over cells: shape (cells, launches); NaN was not measured.

    Tested by exchanging whole launches, so that it does not matter how much the cells of a launch resemble each other. None for
    fewer than LEAST_IN_A_ROW launches, or where nothing varies. Source: a permutation test of the serial correlation, Wald and
    Wolfowitz, "An exact test for randomness in the non-parametric case", Annals of Mathematical Statistics 14 (1943).
    """
    rows = _standardised(np.atleast_2d(np.asarray(log_values, dtype=np.float64)))
    launches = rows.shape[1]
    if launches < LEAST_IN_A_ROW or not rows.any():
        return None
    products = rows.T @ rows
    sums = products.ravel()[_steps(launches)].sum(axis=1)
    total = float(np.trace(products))
    # The order as it was is the first, and counts: no p-value is 0. A hair below it is as much, but for rounding.
    p_value = float(np.mean(sums >= sums[0] - 1e-9 * total))
    return LagOne(float(sums[0] - sums.mean()) / total, p_value, float(sums.std()) / total)


@lru_cache(maxsize=16)
def _steps(launches: int) -> NDArray[np.int64]:
    """Return orders of launches, the one in time first: of each step from a launch to the next its entry in a square matrix.

    The seed is fixed, so that a verdict does not change by itself.
    """
    if launches <= ALL_ORDERS:
        orders = np.array(list(permutations(range(launches))))
    else:
        in_time = np.arange(launches)[None, :]
        drawn = np.random.default_rng(1).permuted(np.tile(in_time, (RANDOM_ORDERS, 1)), axis=1)
        orders = np.concatenate([in_time, drawn])
    return np.asarray(orders[:, :-1] * launches + orders[:, 1:], dtype=np.int64)


def _standardised(rows: Floats) -> Floats:
    """Return rows of mean 0 and variance 1; 0 stands for what is missing and for rows that do not vary."""
    present = ~np.isnan(rows)
    count = np.maximum(present.sum(axis=1, keepdims=True), 1)
    centred = np.where(present, rows - np.where(present, rows, 0.0).sum(axis=1, keepdims=True) / count, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    return np.where(deviation > 0, centred / np.where(deviation > 0, deviation, 1.0), 0.0)


@dataclass(frozen=True)
class BlockTrend:
    """A monotone change over blocks: Kendall's tau with its p-value, and the change in log units from first to last (Theil-Sen)."""

    tau: float
    p_value: float
    change: float


def trend(log_values: Floats) -> BlockTrend | None:
    """Return the trend of one value for each block, in time order, or None for fewer than 5 (no p below 0.05 is possible).

    Mann (1945) and Kendall (1975) for the test, Sen (1968) for the slope.
    """
    position = np.flatnonzero(~np.isnan(log_values)).astype(np.float64)
    values = log_values[~np.isnan(log_values)]
    if values.size < 5 or np.ptp(values) == 0:
        return None
    earlier, later = np.triu_indices(values.size, k=1)
    steps = values[later] - values[earlier]
    score = float(np.sign(steps).sum())
    slope = float(np.median(steps / (position[later] - position[earlier])))
    return BlockTrend(
        score / steps.size, _kendall_p_value(score, values.size), slope * float(position[-1] - position[0])
    )


def _kendall_p_value(score: float, count: int) -> float:
    """Return the two-sided p-value of Kendall's score: inversions counted exactly up to LARGEST_EXACT, else normal."""
    if count > LARGEST_EXACT:
        variance = count * (count - 1) * (2 * count + 5) / 18.0
        return float(min(1.0, 2.0 * special.ndtr(-max(abs(score) - 1.0, 0.0) / np.sqrt(variance))))
    chance = np.ones(1)
    for length in range(2, count + 1):  # inserting one more element adds 0 .. length - 1 inversions, each as likely
        chance = np.convolve(chance, np.full(length, 1.0 / length))
    inversions = int(np.floor((count * (count - 1) / 2 - abs(score)) / 2))
    return float(min(1.0, 2.0 * chance[: inversions + 1].sum()))
