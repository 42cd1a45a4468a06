"""Where a curve of ratios crosses one: the size at which one side overtakes the other, with an interval.

The curve is piecewise linear in log2(size) and log ratio. The interval is the set of sizes at which a paired t test of "the ratio
is 1 here" does not reject: the interpolated log ratio of each block at a size is one number, so the test is exact where the
per-block log ratios are normal (Fieller, J. R. Stat. Soc. B 16 (1954), in the form of test inversion). Percentiles of resampled
blocks cover far less than they promise with six blocks (docs/statistics.md has the figures).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

POINTS_PER_DOUBLING = 64
"""Resolution of the interval: 1.1 % of the size."""


@dataclass(frozen=True)
class Crossing:
    """A size where the ratio crosses one; `is_rising`: below it the ratio is smaller than one, above it larger."""

    size: float
    low: float
    high: float
    is_rising: bool


def crossings(sizes: Floats, log_ratios: Floats, signs: NDArray[np.int64], confidence: float = 0.95) -> list[Crossing]:
    """Return the crossings between sizes whose decisions oppose each other.

    `sizes` ascend, shape (sizes,), all above 0; `log_ratios` have the shape (sizes, blocks); `signs` hold what was decided at each
    size: -1 lower, 1 higher, 0 neither. A crossing is claimed only between two decided sizes of opposite sign with
    nothing decided in between, so that it is never more certain than the decisions beside it.
    """
    complete = log_ratios[:, ~np.isnan(log_ratios).any(axis=0)]
    decided = np.flatnonzero(signs)
    found = []
    for left, right in pairwise(decided):
        if signs[left] * signs[right] < 0 and complete.shape[1] >= 3:
            part = slice(int(left), int(right) + 1)
            found.append(_locate(np.log2(sizes[part]), complete[part], bool(signs[right] > 0), confidence))
    return found


def _locate(log_size: Floats, log_ratios: Floats, is_rising: bool, confidence: float) -> Crossing:
    steps = max(2, int(np.ceil((log_size[-1] - log_size[0]) * POINTS_PER_DOUBLING)) + 1)
    grid = np.union1d(np.linspace(log_size[0], log_size[-1], steps), log_size)
    at_grid = np.stack([np.interp(grid, log_size, block) for block in log_ratios.T], axis=1)
    blocks = at_grid.shape[1]
    mean = at_grid.mean(axis=1)
    half = special.stdtrit(blocks - 1, 0.5 + confidence / 2.0) * at_grid.std(axis=1, ddof=1) / np.sqrt(blocks)
    roots = _roots(grid, mean)
    # Several crossings between two decided sizes cannot be told apart: their middle is named, the interval holds them all.
    size = float(np.mean(roots)) if roots.size else float(grid[np.argmin(np.abs(mean))])
    possible = grid[np.abs(mean) <= half]
    low, high = (possible[0], possible[-1]) if possible.size else (size, size)
    return Crossing(2.0**size, 2.0 ** min(low, size), 2.0 ** max(high, size), is_rising)


def _roots(grid: Floats, mean: Floats) -> Floats:
    left, right = mean[:-1], mean[1:]
    change = np.flatnonzero((left * right < 0) | (left == 0))
    span = right[change] - left[change]
    share = np.where(span == 0, 0.0, -left[change] / np.where(span == 0, 1.0, span))
    return np.asarray(grid[change] + share * (grid[change + 1] - grid[change]), dtype=np.float64)
