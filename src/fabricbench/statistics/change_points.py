"""Where a series of independent values changes its distribution: E-divisive with a permutation test.

Source: Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate data", JASA 109 (2014).
The energy distance of two neighbouring parts (Szekely and Rizzo, 2005; exponent 1) is largest where the series is best split;
whether such a split would be found in any order of the same values says a test that permutes them within the parts found so far.
The parts are split until the best split is not significant.

The test is exact for values that could as well have come in another order. Those that depend on the ones before them could not:
then it finds changes where there is persistence or drift, more often than its level says, and `dependence` tells of some of that.
Its random orders follow from the values, so that the same series always has the same changes. It ends early once too many orders
split as well: the answer is that of all of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fabricbench.statistics.dependence import pooled_lag_one

Floats = NDArray[np.float64]

MINIMUM_SEGMENT = 5
"""Values of a part: fewer in a row that are apart from the rest are outliers as well as a change."""

LEAST_PERMUTATIONS, MOST_PERMUTATIONS = 999, 49_999
"""Random orders that are tried. The smallest level that a test may have is one over all of them: there one as good rejects it."""
ORDERS_A_LEVEL = 2
"""Random orders, times the level, that may split as well in a significant series: with one alone chance would decide more often."""

VALUES_AT_ONCE = 200_000
"""Distances in memory at a time: enough orders of a short series that the time goes into arithmetic."""

SAME = 1.0 - 1e-9
"""Statistics that are as near to each other are equal but for rounding: in a tie the other order counts as good as the one seen."""


@dataclass(frozen=True)
class ChangePoint:
    """A change: `index` is that of the first value of the new part, `p_value` that of "these values came in any order"."""

    index: int
    p_value: float


def change_points(values: Floats, level: float = 0.05, minimum: int = MINIMUM_SEGMENT) -> tuple[ChangePoint, ...]:
    """Return the changes of a series in its order, each significant at `level`; none where it is shorter than two parts.

    `minimum` is the least number of values of a part. A stable series has a change with probability `level` at most.
    """
    series = np.asarray(values, dtype=np.float64)
    draw = np.random.default_rng(int.from_bytes(hashlib.sha256(series.tobytes()).digest()[:8]))
    borders, found = [0, series.size], list[ChangePoint]()
    while True:
        parts = [series[start:end] for start, end in pairwise(borders)]
        splits = [best_split(part, minimum) for part in parts]
        best = max(range(len(parts)), key=lambda index: splits[index].statistic)
        if splits[best].statistic <= 0.0:
            break
        p_value = _p_value(parts, splits[best].statistic, level, minimum, draw)
        if p_value is None:
            break
        index = borders[best] + splits[best].index
        found.append(ChangePoint(index, p_value))
        borders = sorted([*borders, index])
    return tuple(sorted(found, key=lambda one: one.index))


DEPENDENT = 0.05
"""The p-value from which on values are taken to depend on those before them."""


def dependence(values: Floats, borders: Sequence[int]) -> float | None:
    """Return how much a value resembles the one before it (lag 1), levels between borders taken out; None where chance may do it.

    Some of it is gone with the levels: what was found as changes is no dependence any more.
    """
    parts = np.split(np.asarray(values, dtype=np.float64), borders)
    found = pooled_lag_one(np.concatenate([part - part.mean() if part.size else part for part in parts]))
    is_shown = found is not None and found.p_value <= DEPENDENT and found.autocorrelation > 0.0
    return found.autocorrelation if found is not None and is_shown else None


@dataclass(frozen=True)
class Split:
    """How well a part is split in two, and the index of the first value behind the split; nothing above 0 is no split at all."""

    statistic: float
    index: int


NO_SPLIT = Split(-math.inf, 0)


def _p_value(
    parts: Sequence[Floats], statistic: float, level: float, minimum: int, draw: np.random.Generator
) -> float | None:
    """Return the share of orders, the one seen among them, whose best split is as good; None once that is above the level."""
    wanted = math.ceil(ORDERS_A_LEVEL / level) - 1
    permutations = min(max(wanted, LEAST_PERMUTATIONS), MOST_PERMUTATIONS)
    most = math.floor(level * (permutations + 1) * (1.0 + 1e-12)) - 1
    together = max(1, VALUES_AT_ONCE // max(part.size**2 for part in parts))
    as_good = 0
    for first in range(0, permutations, together):
        orders = min(together, permutations - first)
        mixed = [draw.permuted(np.tile(part, (orders, 1)), axis=1) for part in parts if part.size >= 2 * minimum]
        best = np.max([_statistics(part, minimum).max(axis=(1, 2)) for part in mixed], axis=0)
        as_good += int(np.count_nonzero(best >= statistic * SAME))
        if as_good > most:
            return None
    return (as_good + 1) / (permutations + 1)


def best_split(part: Floats, minimum: int) -> Split:
    """Return the best split of a part in two: into all before it and all, or the first, after it (M. and J., equation 7)."""
    if part.size < 2 * minimum:
        return NO_SPLIT
    statistics = _statistics(part[None, :], minimum)[0]
    place = int(np.argmax(statistics))
    return Split(float(statistics.flat[place]), int(_scan(part.size, minimum).splits[place // statistics.shape[1]]))


def _statistics(parts: Floats, minimum: int) -> Floats:
    """Return the statistic of every split (second axis) and end behind it (third) of each of some parts of the same length."""
    scan = _scan(parts.shape[1], minimum)
    sums = np.abs(parts[:, :, None] - parts[:, None, :]).cumsum(axis=1).cumsum(axis=2)
    total = np.diagonal(sums, axis1=1, axis2=2)
    first, ends = total[:, scan.splits - 1, None], total[:, None, scan.ends - 1]
    both = sums[:, scan.splits[:, None] - 1, scan.ends - 1]  # of all before the split with all before the end
    between, after = both - first, ends - 2.0 * both + first
    return np.asarray(scan.between * between - scan.before * first - scan.after * after, dtype=np.float64)


@dataclass(frozen=True)
class _Scan:
    """All splits of so many values, and ends of what is compared behind each; by what the sums of distances are multiplied."""

    splits: NDArray[np.int64]
    ends: NDArray[np.int64]
    between: Floats
    before: Floats
    after: Floats


@lru_cache(maxsize=64)
def _scan(size: int, minimum: int) -> _Scan:
    splits = np.arange(minimum, size - minimum + 1)
    ends = np.arange(2 * minimum, size + 1)
    m, n = splits[:, None].astype(np.float64), (ends - splits[:, None]).astype(np.float64)
    is_whole = n >= minimum
    n = np.where(is_whole, n, 1.0)
    weight = np.where(is_whole, m * n / (m + n), 0.0)
    # Each pair within a part is twice in its sum of distances.
    with np.errstate(divide="ignore", invalid="ignore"):
        after = np.where(is_whole, weight / (n * (n - 1.0)), 0.0)
    return _Scan(splits, ends, 2.0 * weight / (m * n), weight / (m * (m - 1.0)), after)
