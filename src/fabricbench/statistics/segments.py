"""Curves over message size as straight lines in pieces: a start-up and a time for each byte between sizes where a protocol changes.

Each piece is Hockney's line, by least squares on logarithms (`crossing.fit`), launch by launch; sizes whose launches scatter weigh
less. Where pieces end is found on the medians over launches by dynamic programming, as many as the Bayesian information criterion
wants (Bai and Perron, J. Applied Econometrics 18 (2003), for the algorithm); what the scatter of launches explains buys none.
How far such a curve may be believed between the sizes that it was made of, sizes say that it was not made of: every other one is
left out and predicted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabricbench.statistics.crossing import fit
from fabricbench.statistics.order import Estimate, median_interval
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES

Floats = NDArray[np.float64]

FEWEST_SIZES = 3
"""Of a curve: a line through two says nothing of how good it is."""
FEWEST_FOR_CHECK = 5
"""Sizes of which every other one may be left out, with three to make a line of."""
FEWEST_OF_PIECE = 2
MOST_PIECES = 5
LEAST_SCATTER = 0.01
"""Of log times: lines that miss by less are no worse for it, and pieces are not bought with it."""
MEDIAN_VARIANCE = np.pi / 2.0
"""Of the median of normal values, times that of their mean."""
PARAMETERS = 3
"""Of a piece: its line, and where it ends."""


@dataclass(frozen=True)
class Piece:
    """The sizes with the indices `first` to `last`, their start-up and time for each byte: medians over launches, never below 0."""

    first: int
    last: int
    start_up: Estimate
    per_byte: Estimate


@dataclass(frozen=True)
class Pieces:
    """A curve in pieces. Misfits are how far predictions of sizes that were left out are off (0.05: 5 %); None of too few sizes.

    `typical_misfit` is their median, `worst_misfit` the largest, of so many `left_out`.
    """

    pieces: tuple[Piece, ...]
    typical_misfit: float | None = None
    worst_misfit: float | None = None
    left_out: int = 0


def pieces_of(sizes: Floats, log_times: Floats, confidence: float, jumps: Collection[int] = ()) -> Pieces | None:
    """Return a curve, `log_times` of shape (sizes, launches), as lines in pieces; None of too few sizes or launches.

    A piece ends before each of `jumps`, indices of the first size after one.
    """
    whole = ~np.isnan(log_times).any(axis=0)
    if sizes.size < FEWEST_SIZES or np.count_nonzero(whole) < MINIMUM_LAUNCHES:
        return None
    log_times = log_times[:, whole]
    starts = _starts(sizes, log_times, jumps)
    ends = [*starts[1:], sizes.size]
    pieces = tuple(
        _piece(sizes, log_times, first, end - 1, confidence) for first, end in zip(starts, ends, strict=True)
    )
    if sizes.size < FEWEST_FOR_CHECK:
        return Pieces(pieces)
    off = np.abs(np.expm1(_left_out(sizes, log_times)))
    return Pieces(pieces, float(np.median(off)), float(off.max()), off.size)


def predicted(sizes: Floats, log_times: Floats, wanted: Floats) -> Floats:
    """Return the log times, of medians over launches, that a curve in pieces predicts for other sizes."""
    return _predict(sizes, log_times, _starts(sizes, log_times, ()), wanted)


def _piece(sizes: Floats, log_times: Floats, first: int, last: int, confidence: float) -> Piece:
    inside = slice(first, last + 1)
    if last == first:  # a size alone between two jumps has a time and no slope
        nothing = Estimate(0.0, 0.0, None)
        return Piece(first, last, _median(np.exp(log_times[first]), confidence), nothing)
    part, logs = sizes[inside], log_times[inside]
    weights = _weights(logs, 1)
    line = fit(part, logs, weights)
    is_fitted = ~np.isnan(line.latency)
    start_up, per_byte = (_median(values[is_fitted], confidence) for values in (line.latency, line.per_byte))
    # What is 0 at best may be as much as its interval says; the other one is that of a line without it.
    if start_up.value == 0.0:
        proportional = np.average(logs - np.log(part)[:, None], axis=0, weights=weights)
        per_byte = _median(np.exp(proportional), confidence)
    elif per_byte.value == 0.0:
        start_up = _median(np.exp(np.average(logs, axis=0, weights=weights)), confidence)
    return Piece(first, last, start_up, per_byte)


def _median(values: Floats, confidence: float) -> Estimate:
    """Return the median over launches with its interval, none of it below 0: disturbed launches move a mean."""
    found = median_interval(values, confidence)
    low, high = (None if end is None else max(end, 0.0) for end in (found.low, found.high))
    return Estimate(max(found.value, 0.0), low, high)


def _weights(log_times: Floats, launches: int) -> Floats:
    """Return the reciprocal variances of each size's median over so many launches, beside what lines may miss by.

    Every launch's own level, which all sizes share, is no scatter.
    """
    if log_times.shape[1] < 2:
        return np.full(log_times.shape[0], LEAST_SCATTER**-2)
    centred = log_times - np.median(log_times, axis=0)
    return np.asarray(1.0 / (LEAST_SCATTER**2 + MEDIAN_VARIANCE * _spread(centred) ** 2 / launches), dtype=np.float64)


def _spread(centred: Floats) -> Floats:
    """Return the deviation of each row, by its median absolute one: 1.4826 times that, of normal values."""
    middle = np.median(centred, axis=1, keepdims=True)
    return np.asarray(1.4826 * np.median(np.abs(centred - middle), axis=1), dtype=np.float64)


def _starts(sizes: Floats, log_times: Floats, jumps: Collection[int]) -> list[int]:
    """Return the index of the first size of each piece."""
    median, weights = np.median(log_times, axis=1), _weights(log_times, log_times.shape[1])
    count = sizes.size

    def cost(first: int, end: int) -> float:
        """Return what the line of a piece, from a size on up to but without another, leaves of squares."""
        inside = slice(first, end)
        start_up, per_byte = _line(sizes[inside], median[inside], weights[inside])
        left = median[inside] - np.log(start_up + per_byte * sizes[inside])
        return float(np.sum(weights[inside] * left**2))

    price = PARAMETERS * float(np.log(count))
    if not jumps and cost(0, count) <= price:  # two pieces that left nothing would not be worth it
        return [0]
    costs = np.full((count, count + 1), np.inf)
    for first in range(count):
        for end in range(first + 1, count + 1):
            is_whole = end - first >= FEWEST_OF_PIECE or (first in (0, *jumps) and end in (*jumps, count))
            if is_whole and not any(first < jump < end for jump in jumps):
                costs[first, end] = cost(first, end)
    nothing: tuple[float, list[int]] = (np.inf, [])
    best = [(0.0, nothing[1]), *[nothing] * count]  # of all sizes before an index
    found: list[tuple[float, list[int]]] = []
    for pieces in range(1, max(MOST_PIECES, len(jumps) + 1) + 1):
        best = [
            nothing
            if end == 0
            else min(
                ((best[first][0] + costs[first, end], [*best[first][1], first]) for first in range(end)),
                key=lambda one: one[0],
            )
            for end in range(count + 1)
        ]
        squares, starts = best[count]
        found.append((squares + price * pieces, starts))
    return min(found, key=lambda one: one[0])[1]


def _line(sizes: Floats, logs: Floats, weights: Floats) -> tuple[float, float]:
    """Return the start-up and the time for each byte of the line through log times, neither of them below 0."""
    if sizes.size == 1:
        return float(np.exp(logs[0])), 0.0
    line = fit(sizes, logs[:, None], weights)
    start_up, per_byte = float(line.latency[0]), float(line.per_byte[0])
    if np.isnan(start_up) or start_up < 0:
        return 0.0, float(np.exp(np.average(logs - np.log(sizes), weights=weights)))
    return (start_up, per_byte) if per_byte >= 0 else (float(np.exp(np.average(logs, weights=weights))), 0.0)


def _predict(sizes: Floats, log_times: Floats, starts: list[int], wanted: Floats) -> Floats:
    """Return what pieces predict of other sizes: one between two pieces belongs to the nearer, by the ratio of sizes."""
    median, weights = np.median(log_times, axis=1), _weights(log_times, log_times.shape[1])
    ends = [*starts[1:], sizes.size]
    borders = [np.sqrt(sizes[end - 1] * sizes[end]) for end in ends[:-1]]
    which = np.searchsorted(borders, wanted, side="right")
    found = np.empty(wanted.size)
    for piece, (first, end) in enumerate(zip(starts, ends, strict=True)):
        mine = which == piece
        if mine.any():
            start_up, per_byte = _line(sizes[first:end], median[first:end], weights[first:end])
            found[mine] = np.log(start_up + per_byte * wanted[mine])
    return found


def _left_out(sizes: Floats, log_times: Floats) -> Floats:
    """Return the log errors of predicting every other size from the rest; the first and last are never left out."""
    left = np.arange(1, sizes.size - 1, 2)
    used = np.setdiff1d(np.arange(sizes.size), left)
    error: Floats = np.median(log_times[left], axis=1) - predicted(sizes[used], log_times[used], sizes[left])
    return error
