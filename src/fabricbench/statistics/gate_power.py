"""What a gate can decide with the data at hand: what it would catch, what it would let pass, and how much more it would need.

A gate of one cell compares two sides of n units each (launches, or runs) by Welch's t on logarithms. With `log_deviation` s, that
of a pair of one unit from each side, and L the slowdown that is allowed,

    passed      mean + t(1 - a/2) e <= log L: the interval lies below
    regressed   mean - t(1 - a/2 / cells) e > log L: Holm's first step over all cells

Both the error e and the degrees of freedom of t are estimated from the same two deviations, so no single noncentral t describes
the chance: with three launches a side Welch's degrees of freedom are between 2 and 4, and the formula with 4 promised 80 % where
48 % passed. Given both deviations the mean is normal, so the chance is the mean of a normal probability over their distribution
(chi-squared each, equal variances taken), summed over QUANTILES of either. Chances of all cells are products; where the cells of
a launch rise and fall together, as they do, the true chance is higher. `bound` is by how much rounding may have put the log ratio
of a cell off, which no number of units makes up (`ratios.Rounding`): it comes off what may pass, and comes on top of what is
caught.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.ratios import MINIMUM_LAUNCHES

Floats = NDArray[np.float64]

POWER = 0.8
"""The chance that "would be caught", "would pass" and "would need" are told for."""

QUANTILES = 32
"""Of the variance of either side: chances are those of simulated gates within half a point, from three units a side on."""

FARTHEST = 60.0
"""Standard errors within which the change is sought that is caught or passes: t with two degrees of freedom, corrected for 1,000
cells, reaches that far."""

MOST_UNITS = 1000
"""A gate that would need more is said to have no number: its cells are noisier than the allowed slowdown by far."""


@dataclass(frozen=True)
class _Scatter:
    """Half widths of the interval, in true standard errors, by what two sides may measure of their errors; each as likely."""

    half_widths: Floats

    def chance_within(self, distance: Floats) -> Floats:
        """Return the chance that the mean and its half width stay below a limit so many standard errors away."""
        flat, place = np.unique(distance, return_inverse=True)
        chances = np.array([np.mean(special.ndtr(one - self.half_widths)) for one in flat])
        return np.asarray(chances[place].reshape(np.shape(distance)), dtype=np.float64)

    def distance_for(self, power: float) -> float:
        """Return how many standard errors away the limit must be for that chance; inf where FARTHEST is not enough."""
        low, high = 0.0, FARTHEST
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (low, middle) if np.mean(special.ndtr(middle - self.half_widths)) >= power else (middle, high)
        return high


@lru_cache(maxsize=512)
def _scatter(units: int, other: int, level: float) -> _Scatter:
    """Return the half widths of Welch's interval at a one-sided `level`."""
    shares = (np.arange(QUANTILES) + 0.5) / QUANTILES
    squares = [special.chdtri(count - 1.0, 1.0 - shares) / (count - 1.0) / count for count in (units, other)]
    first, second = squares[0][:, None], squares[1][None, :]
    freedom = (first + second) ** 2 / (first**2 / (units - 1.0) + second**2 / (other - 1.0))
    error = np.sqrt((first + second) / (1.0 / units + 1.0 / other))
    return _Scatter((special.stdtrit(freedom, 1.0 - level) * error).ravel())


def _level(confidence: float) -> float:
    return (1.0 - confidence) / 2.0


def caught_with_power(
    log_deviation: Floats, units: int, maximum: float, confidence: float, cells: int, bound: Floats | float = 0.0
) -> Floats:
    """Return for each cell the smallest slowdown (a ratio) that a gate of so many `cells` catches with probability POWER."""
    error = np.asarray(log_deviation, dtype=np.float64) / np.sqrt(units)
    reach = _scatter(units, units, _level(confidence) / max(cells, 1)).distance_for(POWER)
    return np.asarray(np.exp(np.log1p(maximum) + reach * error + bound), dtype=np.float64)


def passed_with_power(
    log_deviation: Floats, units: int, maximum: float, confidence: float, bound: Floats | float = 0.0
) -> Floats:
    """Return for each cell the largest change (a ratio) that passes with probability POWER; below 1 it got faster."""
    error = np.asarray(log_deviation, dtype=np.float64) / np.sqrt(units)
    reach = _scatter(units, units, _level(confidence)).distance_for(POWER)
    return np.asarray(np.exp(np.log1p(maximum) - reach * error - bound), dtype=np.float64)


def chance_to_pass(
    log_deviation: Floats | float,
    maximum: float,
    confidence: float,
    units: int,
    other: int | None = None,
    bound: Floats | float = 0.0,
) -> Floats:
    """Return the chance to pass of each cell that did not change: `units` on one side, `other` (or as many) on the other."""
    second = units if other is None else other
    error = np.asarray(log_deviation, dtype=np.float64) * np.sqrt((1.0 / units + 1.0 / second) / 2.0)
    room = np.log1p(maximum) - np.asarray(bound, dtype=np.float64)
    distance = room / np.where(error > 0, error, 1.0)
    chance = _scatter(units, second, _level(confidence)).chance_within(np.where(np.isnan(error), np.nan, distance))
    return np.asarray(np.where(room < 0, 0.0, np.where(error > 0, chance, 1.0)), dtype=np.float64)


def blocks_to_decide(
    log_deviation: Sequence[float] | Floats | float,
    maximum: float,
    confidence: float,
    cells: int,
    other: int | None = None,
    bound: Floats | float = 0.0,
) -> int | None:
    """Return how many blocks a side (or runs) pass a system that did not change with probability POWER; None beyond MOST_UNITS.

    `log_deviation` is of a pair of one launch from each side: one value, or one of each of some cells that stand for all `cells`.
    With `other` the old side keeps so many, and the answer is how many the new one needs; a noisy old side alone can make it None.
    """
    deviations = np.atleast_1d(np.asarray(log_deviation, dtype=np.float64))
    is_known = ~np.isnan(deviations)
    bounds = np.broadcast_to(np.asarray(bound, dtype=np.float64), deviations.shape)[is_known]
    deviations = deviations[is_known]
    if deviations.size == 0 or cells < 1:
        return None

    def is_enough(units: int) -> bool:
        chances = chance_to_pass(deviations, maximum, confidence, units, other, bounds)
        with np.errstate(divide="ignore"):
            return bool(cells * np.mean(np.log(np.maximum(chances, 0.0))) >= np.log(POWER))

    low, high = MINIMUM_LAUNCHES, MOST_UNITS
    if not is_enough(high):
        return None
    while low < high:  # more units never pass less: look for the first that is enough
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
