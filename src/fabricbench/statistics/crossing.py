"""Where one side overtakes the other: the bracket of measured sizes, and a point with an interval where a model earns one.

Between two measured sizes anything may happen: a protocol may switch, a message may begin to need a second frame. So what is known
without a model is the *bracket*: the two neighbouring decided sizes of opposite sign. Hockney's model, fitted to each launch of
both sides, says where in between, once it has shown that it predicts: each size is predicted from the launch's other sizes, and the
worst error that the data do not rule out has to be small against the differences at the bracket's ends. That error widens the
interval as well, because a model that misses measured sizes by so much misses those in between by as much.

Hockney's model of a message's time is a latency and a time for each byte: t(s) = latency + s * per_byte. Fitted by least squares on
logarithms (so on the relative scale, where launches scatter alike at all sizes), by Gauss and Newton's method from the weighted
linear solution. A stream obeys it as well: its rate is s / t(s).
Source: R. W. Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20 (1994).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.ratios import MINIMUM_LAUNCHES

Floats = NDArray[np.float64]

STEPS = 6
"""Of Gauss and Newton's method; from the weighted start it has converged to 1e-9 after four, even over six decades of time."""


@dataclass(frozen=True)
class LatencyLine:
    """A latency and a time for each byte, in the unit of the times fitted, for each launch: shape (launches,). NaN: no fit."""

    latency: Floats
    per_byte: Floats

    def log_times(self, sizes: Floats) -> Floats:
        """Return the logarithms of the times at these sizes, shape (sizes, launches)."""
        times = self.latency + np.asarray(sizes)[:, None] * self.per_byte
        return np.asarray(np.log(np.where(times > 0, times, np.nan)), dtype=np.float64)


def fit(sizes: Floats, log_times: Floats, weights: Floats | None = None) -> LatencyLine:
    """Return the line of each launch; `sizes` has the shape (sizes,), `log_times` (sizes, launches).

    `weights` are those of squares, one for each size (default: all alike).
    """
    size = np.asarray(sizes, dtype=np.float64)[:, None]
    level = np.mean(log_times, axis=0)  # times of any unit become numbers about 1
    times = np.exp(log_times - level)
    weight = np.ones((len(size), 1)) if weights is None else np.sqrt(weights / np.max(weights))[:, None]
    latency, per_byte = _solve(weight / times, weight * size / times, weight * np.ones_like(times))
    for _ in range(STEPS):
        fitted = latency + size * per_byte
        fitted = np.where(fitted > 0, fitted, np.nan)
        more = _solve(weight / fitted, weight * size / fitted, weight * np.log(times / fitted))
        latency, per_byte = latency + more[0], per_byte + more[1]
    scale = np.exp(level)
    return LatencyLine(latency * scale, per_byte * scale)


def misfits(sizes: Floats, log_times: Floats) -> Floats:
    """Return by how much each size's log time differs from what the launch's other sizes predict, shape (sizes, launches)."""
    found = np.empty_like(log_times)
    for index in range(len(sizes)):
        others = np.arange(len(sizes)) != index
        line = fit(sizes[others], log_times[others])
        found[index] = log_times[index] - line.log_times(sizes[index : index + 1])[0]
    return found


def _solve(first: Floats, second: Floats, goal: Floats) -> tuple[Floats, Floats]:
    """Return the least squares of `x * first + y * second = goal` in each column."""
    scale = np.sqrt(np.sum(second**2, axis=0))  # bytes count to millions: without it the determinant loses its digits
    second = second / scale
    a, b, c = (np.sum(one, axis=0) for one in (first * first, first * second, second * second))
    u, v = np.sum(first * goal, axis=0), np.sum(second * goal, axis=0)
    determinant = a * c - b * b
    with np.errstate(invalid="ignore", divide="ignore"):
        return (c * u - b * v) / determinant, (a * v - b * u) / determinant / scale


HOCKNEY = "Hockney"

CLOSE = 4.0
"""Neighbouring sizes within this factor are close: over a wider gap a step of the curve goes unseen by any model."""

SIZES_BEYOND = 2
"""Sizes on each side of the bracket that the model is fitted to as well: what is far away tells nothing of what is here."""

FEWEST_SIZES = 4
"""A line through three points leaves one to judge it by; each of four is predicted by three."""

WORST_MISFIT = 0.05
"""In log time; beyond it the model does not describe the curve, however large the differences are."""

MISFIT_SHARE = 0.25
"""Of the larger difference at the bracket's ends: in simulation steps and power laws miss by 0.45 of it and more, so that
fits of other curves than Hockney's are turned down (docs/statistics.md has the rates)."""

WIDENED = 1.5
"""Times the worst misfit of the ratio by which the interval is widened: a step of the curve between two measured sizes shows in
them by half to nine tenths of its height."""

POINTS_PER_DOUBLING = 64
"""Resolution of the interval: 1.1 % of the size."""


@dataclass(frozen=True)
class Crossing:
    """Two measured sizes between which the ratio `b / a` crosses one; `is_rising`: at `lower` it is below one, at `upper` above.

    `point`, `low` and `high` are given by a `model` fitted to `sizes`; `worst_misfit` bounds by how much (in log time) it
    mispredicts any of them on either side. Without a model they are None and `model` is empty.
    """

    lower: float
    upper: float
    is_rising: bool
    point: float | None = None
    low: float | None = None
    high: float | None = None
    model: str = ""
    worst_misfit: float | None = None
    sizes: tuple[float, ...] = ()


def crossings(
    sizes: Floats, log_a: Floats, log_b: Floats, signs: NDArray[np.int64], confidence: float = 0.95
) -> list[Crossing]:
    """Return the crossings between neighbouring decided sizes whose decisions oppose each other.

    `sizes` ascend, shape (sizes,), all above 0; `log_a` and `log_b` are logarithms of a message's time, shape (sizes, launches),
    aligned by block, NaN where there is none; `signs` hold what was decided of b / a at each size: -1 lower, 1 higher, 0 neither.
    """
    is_complete = ~(np.isnan(log_a) | np.isnan(log_b)).any(axis=0)
    times = np.stack([log_a[:, is_complete], log_b[:, is_complete]])
    found = []
    for left, right in pairwise(np.flatnonzero(signs).tolist()):
        if signs[left] * signs[right] < 0:
            bracket = Crossing(float(sizes[left]), float(sizes[right]), bool(signs[right] > 0))
            found.append(_located(bracket, sizes, times, left, right, confidence))
    return found


def _located(bracket: Crossing, sizes: Floats, times: Floats, left: int, right: int, confidence: float) -> Crossing:
    """Return the bracket with a point and its interval, where the model earns them; `times` has the shape (2, sizes, launches)."""
    part = slice(max(left - SIZES_BEYOND, 0), right + SIZES_BEYOND + 1)
    used, near = sizes[part], times[:, part]
    is_close = bool(np.all(sizes[left + 1 : right + 1] <= CLOSE * sizes[left:right]))
    if used.size < FEWEST_SIZES or times.shape[2] < MINIMUM_LAUNCHES or not is_close:
        return bracket
    ends = np.abs(np.mean(times[1] - times[0], axis=1)[[left, right]])
    errors = np.stack([misfits(used, side) for side in near])
    worst = max(_bound(side, confidence) for side in errors)
    if not worst <= min(WORST_MISFIT, MISFIT_SHARE * float(ends.max())):
        return bracket
    steps = int(np.ceil(np.log2(bracket.upper / bracket.lower) * POINTS_PER_DOUBLING)) + 1
    grid = np.geomspace(bracket.lower, bracket.upper, steps)
    log_ratios = fit(used, near[1]).log_times(grid) - fit(used, near[0]).log_times(grid)
    mean, half = _mean_and_half(log_ratios, confidence)
    roots = np.flatnonzero((mean[:-1] < 0) != (mean[1:] < 0))
    if roots.size != 1 or (mean[-1] > 0) != bracket.is_rising or np.isnan(half).any():
        return bracket
    index = int(roots[0])
    point = float(np.exp(np.interp(0.0, *_ascending(mean[index : index + 2], np.log(grid[index : index + 2])))))
    possible = grid[np.abs(mean) <= half + WIDENED * _bound(errors[1] - errors[0], confidence)]
    return replace(
        bracket,
        point=point,
        low=min(point, float(possible.min(initial=point))),
        high=max(point, float(possible.max(initial=point))),
        model=HOCKNEY,
        worst_misfit=worst,
        sizes=tuple(used.tolist()),
    )


def _mean_and_half(values: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the mean over launches of each row, and half the width of its Student interval."""
    launches = values.shape[1]
    error = values.std(axis=1, ddof=1) / np.sqrt(launches)
    return values.mean(axis=1), special.stdtrit(launches - 1, 0.5 + confidence / 2.0) * error


def _bound(errors: Floats, confidence: float) -> float:
    """Return the largest misfit of any size that its interval holds; infinite where one could not be predicted at all."""
    mean, half = _mean_and_half(errors, confidence)
    worst = float(np.max(np.abs(mean) + half))
    return worst if np.isfinite(worst) else np.inf


def _ascending(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    return (x, y) if x[0] < x[-1] else (x[::-1], y[::-1])
