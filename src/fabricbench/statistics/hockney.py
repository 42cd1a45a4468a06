"""Hockney's model of a message's time, fitted to each launch: a latency, and a time for each byte.

t(s) = latency + s * per_byte. Fitted by least squares on logarithms (so on the relative scale, where launches scatter alike at all
sizes), by Gauss and Newton's method from the weighted linear solution. A stream obeys it as well: its rate is s / t(s).
Source: R. W. Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20 (1994).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS = 6
"""Of Gauss and Newton's method; from the weighted start it has converged to 1e-9 after four, even over six decades of time."""


@dataclass(frozen=True)
class Line:
    """A latency and a time for each byte, in the unit of the times fitted, for each launch: shape (launches,). NaN: no fit."""

    latency: Floats
    per_byte: Floats

    def log_times(self, sizes: Floats) -> Floats:
        """Return the logarithms of the times at these sizes, shape (sizes, launches)."""
        times = self.latency + np.asarray(sizes)[:, None] * self.per_byte
        return np.asarray(np.log(np.where(times > 0, times, np.nan)), dtype=np.float64)


def fit(sizes: Floats, log_times: Floats) -> Line:
    """Return the line of each launch; `sizes` has the shape (sizes,), `log_times` (sizes, launches)."""
    size = np.asarray(sizes, dtype=np.float64)[:, None]
    level = np.mean(log_times, axis=0)  # times of any unit become numbers about 1
    times = np.exp(log_times - level)
    latency, per_byte = _solve(1.0 / times, size / times, np.ones_like(times))
    for _ in range(STEPS):
        fitted = latency + size * per_byte
        fitted = np.where(fitted > 0, fitted, np.nan)
        more = _solve(1.0 / fitted, size / fitted, np.log(times / fitted))
        latency, per_byte = latency + more[0], per_byte + more[1]
    scale = np.exp(level)
    return Line(latency * scale, per_byte * scale)


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
