"""Anomalies of curves over message size: sizes that are slower than between their neighbours, jumps that stay, launches in groups.

Values are log times of launches, shape (sizes, launches): what a launch shares cancels in each statistic, which is made within a
launch and tested over launches by a moderated t (one-sided, against a margin). All tests of all curves are one family (Holm): where
all curves are clean, any anomaly is named with at most the level. What passes for clean is no model of a network:

    SLOW     sizes take longer than the straight line, in size and time, between the sizes on either side. A line, t = a + b s, and
             whatever is convex passes. A bend to a smaller slope (another protocol takes over in time) lies above it as well, but
             not above the lines of both sides drawn on, which SLOW does too (by half as much, in the mean over launches).
    JUMP     the lines through two sizes on either side, drawn on, both say that time jumps up in between, for good. Whatever is
             convex or concave there passes.
    PARTS    a message takes longer than as many smaller ones, one after the other, as it takes to hold it.
    DROP     a larger message takes less than a smaller one.
    GROUPS   launches fall into two groups at one size, beside what they do at the others of the curve.
    DRIFT    time changes over launches at one size, beside what it does at the others.

Where first packets become full (`is_expected`) each packet may cost something of its own, and a receiver that the second one finds
awake takes less: lines through such sizes say little, and there only PARTS and DROP are looked for, which no packet excuses.
A JUMP beside them is one by the steepest of their slopes and the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.correction import holm
from fabricbench.statistics.decision import FEWEST_PAIRS
from fabricbench.statistics.moderated import moderated_exceeding
from fabricbench.statistics.ratios import Rounding
from fabricbench.statistics.skew import two_groups

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

WIDEST = 3
"""Neighbouring sizes that may be slow together: of more nobody knows what would lie between their neighbours."""

FEWEST_SIZES = 4
"""Of a curve: a line through two sizes needs two on the other side."""

LEAST_MARGIN = 0.03
"""Of time: real curves are no nearer to straight lines than that, and nobody would act on less."""

OWN_SHARE = 0.5
"""Of the excess of SLOW sizes over the line between their neighbours: by so much at least they lie above those drawn on."""

AMPLIFIED = 6.0
"""Steps of values (a clock's) that a statistic may be off by: a line drawn on to twice its size has three times one end's."""


class CurveBreak(Enum):
    """What an anomaly is."""

    SLOW = "slow"
    JUMP = "jump"
    PARTS = "parts"
    DROP = "drop"
    GROUPS = "groups"
    DRIFT = "drift"


@dataclass(frozen=True)
class Curve:
    """Log times of launches by size: `sizes` in bytes, ascending and above 0, `log_times` of shape (sizes, launches), NaN: none.

    Launches stand in the order of time. `is_expected` says of each step to the next size whether first packets become full there;
    `step` is the largest step of any of its values, relative to the value.
    """

    sizes: Floats
    log_times: Floats
    is_expected: Booleans
    step: float = 0.0


@dataclass(frozen=True)
class Anomaly:
    """What was found at the sizes with the indices `first` to `last`; what lies between two sizes has these as its ends.

    `excess` is by how much time is longer (0.1: 10 %), of a DRIFT perhaps shorter; of a DROP it is the smaller message's that is.
    `of_launches` has it for each launch as a logarithm, empty of GROUPS and DRIFT. `is_slow` says of GROUPS which launches are
    in the slower one. `p_value` is corrected over all tests of all curves.
    """

    kind: CurveBreak
    first: int
    last: int
    excess: float
    p_value: float
    of_launches: tuple[float, ...] = ()
    is_slow: tuple[bool, ...] = ()

    def touches(self, other: Anomaly) -> bool:
        """Whether two have a size in common or lie side by side."""
        return self.first <= other.last + 1 and other.first <= self.last + 1


def anomalies(curves: Sequence[Curve], margin: float, level: float) -> list[list[Anomaly]]:
    """Return the anomalies of each curve, in the order of sizes: any of clean curves with probability `level` at most."""
    margin = max(margin, LEAST_MARGIN)
    suspects = _suspects(curves, margin)
    adjusted = holm(np.array([one.p_value for _, one, _ in suspects]))
    shown: list[list[Anomaly]] = [[] for _ in curves]
    for (curve, one, excess), p_value in zip(suspects, adjusted, strict=True):
        if p_value < level:
            shown[curve].append(
                replace(one, p_value=float(p_value), of_launches=tuple(excess[~np.isnan(excess)].tolist()))
            )
    return [_each_once(curve, found) for curve, found in zip(curves, shown, strict=True)]


def number_of_tests(curves: Sequence[Curve]) -> int:
    """Return how many tests the family has in which anomalies of these curves are named."""
    return len(_suspects(curves, LEAST_MARGIN))


def _is_long_enough(curve: Curve) -> bool:
    launches = int(np.count_nonzero(~np.isnan(curve.log_times).all(axis=0)))
    return curve.sizes.size >= FEWEST_SIZES and launches >= FEWEST_PAIRS


def _suspects(curves: Sequence[Curve], margin: float) -> list[tuple[int, Anomaly, Floats]]:
    """Return everything that is tested, by the number of its curve, each with its own p-value and the excess of each launch."""
    tried: dict[CurveBreak, list[Tried]] = {}
    found: list[tuple[int, Anomaly, Floats]] = []
    for number, curve in enumerate(curves):
        if _is_long_enough(curve):
            with np.errstate(invalid="ignore", divide="ignore"):
                for kind, first, last, excesses in (*_slow(curve), *_jumps(curve), *_neighbours(curve)):
                    tried.setdefault(kind, []).append((number, first, last, excesses))
            own = _own(curve)
            found += [(number, one, np.empty(0)) for one in (*_groups(own, margin), *_drifts(own, margin))]
    for kind, of_kind in tried.items():
        parts = [_rows(of_kind, part) for part in range(len(of_kind[0][3]))]
        rounding = Rounding.of(AMPLIFIED * np.array([curves[number].step for number, *_ in of_kind]))
        # Where there are several excesses each has to show it: an intersection-union test (Berger, Technometrics 24 (1982)).
        p_values = np.max([moderated_exceeding(rows, margin, rounding) for rows in parts], axis=0)
        means = np.stack(
            [np.nansum(rows, axis=1) / np.maximum(np.count_nonzero(~np.isnan(rows), axis=1), 1) for rows in parts]
        )
        for (number, first, last, excesses), p_value, of_parts in zip(of_kind, p_values, means.T, strict=True):
            least = int(np.argmin(of_parts))  # by so much at least
            one = Anomaly(kind, first, last, float(np.expm1(of_parts[least])), float(p_value))
            found.append((number, one, excesses[least]))
    return found


def _rows(tried: Sequence[Tried], part: int) -> Floats:
    """Return one excess of each, shape (tests, launches): those of one kind scatter alike as far as `moderated` finds."""
    rows = np.full((len(tried), max(excesses[part].size for *_, excesses in tried)), np.nan)
    for row, (*_, excesses) in zip(rows, tried, strict=True):
        row[: excesses[part].size] = excesses[part]
    return rows


Of = tuple[CurveBreak, int, int, tuple[Floats, ...]]
"""A kind, its sizes, and the log excesses of launches that must all be above the margin."""
Tried = tuple[int, int, int, tuple[Floats, ...]]
"""The same, of a kind, with the number of its curve."""


def _slow(curve: Curve) -> Iterator[Of]:
    times, sizes = np.exp(curve.log_times), curve.sizes
    for width in range(1, WIDEST + 1):
        for first in range(1, sizes.size - width):
            below, above = first - 1, first + width
            if curve.is_expected[below:above].any():
                continue
            inside = slice(first, above)
            share = ((sizes[inside] - sizes[below]) / (sizes[above] - sizes[below]))[:, None]
            line = (1.0 - share) * times[below] + share * times[above]
            yield CurveBreak.SLOW, first, above - 1, ((curve.log_times[inside] - np.log(line)).sum(axis=0) / width,)


def _jumps(curve: Curve) -> Iterator[Of]:
    times, sizes = np.exp(curve.log_times), curve.sizes
    for first in range(1, sizes.size - 2):
        below = None if curve.is_expected[first] else _steepest(curve, times, range(first - 1, -1, -1))
        above = None if below is None else _steepest(curve, times, range(first + 1, sizes.size - 1))
        if below is None or above is None:
            continue
        step = sizes[first + 1] - sizes[first]
        from_below = times[first] + below * step
        from_above = np.maximum(times[first + 1] - above * step, np.finfo(np.float64).tiny)
        excesses = (
            curve.log_times[first + 1] - np.log(from_below),
            np.log(from_above) - curve.log_times[first],
        )
        yield CurveBreak.JUMP, first, first + 1, excesses


def _steepest(curve: Curve, times: Floats, steps: Sequence[int]) -> Floats | None:
    """Return the slope of the first of some steps that lead away from a jump; None where it tells nothing.

    Where first packets become full a step says little of the sizes beyond: of these and the first one behind them it is the
    steepest, by which a jump is the least. A slope below 0 is noise, or a DROP: without it the lines claim less as well.
    """
    steepest = np.zeros(times.shape[1])
    for one in steps:
        steepest = np.maximum(steepest, _slope(times, curve.sizes, one))
        if not curve.is_expected[one]:
            return steepest
    return None


def _slope(times: Floats, sizes: Floats, first: int) -> Floats:
    slope: Floats = (times[first + 1] - times[first]) / (sizes[first + 1] - sizes[first])
    return slope


def _neighbours(curve: Curve) -> Iterator[Of]:
    growth = np.diff(curve.log_times, axis=0)
    parts = np.ceil(curve.sizes[1:] / curve.sizes[:-1])
    for first, row in enumerate(growth):
        yield CurveBreak.PARTS, first, first + 1, (row - np.log(parts[first]),)
        yield CurveBreak.DROP, first, first + 1, (-row,)


def _own(curve: Curve) -> Floats:
    """Return what launches do at each size beside what they do at the others: of these the median, as one alone may be odd."""
    centred = curve.log_times - np.nanmedian(curve.log_times, axis=1, keepdims=True)
    every = np.arange(curve.sizes.size)
    return np.stack([centred[one] - _medians(centred[every != one]) for one in every])


def _medians(rows: Floats) -> Floats:
    """Return the median of each column, NaN of one without any value."""
    is_missing = np.isnan(rows)
    if not is_missing.any():
        return np.median(rows, axis=0)
    has_any = ~is_missing.all(axis=0)
    medians = np.full(rows.shape[1], np.nan)
    medians[has_any] = np.nanmedian(rows[:, has_any], axis=0)
    return medians


def _groups(rows: Floats, margin: float) -> Iterator[Anomaly]:
    found = two_groups(rows, float(np.log1p(margin)))
    for size, (p_value, gap) in enumerate(zip(found.p_value, found.gap, strict=True)):
        is_slow = tuple(map(bool, found.is_high[size]))
        yield Anomaly(CurveBreak.GROUPS, size, size, float(np.expm1(gap)), float(p_value), is_slow=is_slow)


def _drifts(rows: Floats, margin: float) -> Iterator[Anomaly]:
    """Yield the change from the first launch to the last by least squares, tested by Student's t against the margin, either way."""
    is_there = ~np.isnan(rows)
    count = is_there.sum(axis=1)
    place = np.where(is_there, np.arange(rows.shape[1], dtype=np.float64), 0.0)
    last = rows.shape[1] - 1 - np.argmax(is_there[:, ::-1], axis=1)
    span = np.maximum(last - np.argmax(is_there, axis=1), 1)
    many = np.maximum(count, 1)[:, None]
    place = np.where(is_there, (place - place.sum(axis=1, keepdims=True) / many) / span[:, None], 0.0)
    values = np.where(is_there, rows, 0.0)
    centred = np.where(is_there, values - values.sum(axis=1, keepdims=True) / many, 0.0)
    squares, freedom = (place**2).sum(axis=1), np.maximum(count - 2, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        change = (place * centred).sum(axis=1) / squares
        error = np.sqrt(((centred - change[:, None] * place) ** 2).sum(axis=1) / freedom / squares)
        statistic = (np.abs(change) - np.log1p(margin)) / error
    p_values = np.minimum(2.0 * special.stdtr(freedom, -statistic), 1.0)
    for size in np.flatnonzero(count > 2):
        yield Anomaly(CurveBreak.DRIFT, int(size), int(size), float(np.expm1(change[size])), float(p_values[size]))


def _each_once(curve: Curve, shown: Sequence[Anomaly]) -> list[Anomaly]:
    """Return what is shown without what is the same seen otherwise.

    The start of slow sizes is no jump, their end no drop, and what some launches do at a size moves its mean.
    """
    of_launches = [
        one for kind in (CurveBreak.GROUPS, CurveBreak.DRIFT) for one in _joined([o for o in shown if o.kind is kind])
    ]
    jumps = [one.last for one in shown if one.kind is CurveBreak.JUMP]
    of_curve: list[Anomaly] = []
    for kind in (CurveBreak.SLOW, CurveBreak.JUMP, CurveBreak.PARTS, CurveBreak.DROP):
        mine = [one for one in shown if one.kind is kind]
        if kind is CurveBreak.SLOW:
            mine = [
                one
                for one in mine
                if _stands_out(curve, one, has_jump=any(one.first <= end <= one.last for end in jumps))
            ]
        for one in sorted(mine, key=lambda one: (one.p_value, one.first, one.last)):
            is_of_launches = any(one.first <= other.last and other.first <= one.last for other in of_launches)
            if not is_of_launches and not any(one.touches(other) for other in of_curve):
                of_curve.append(one)
    return sorted([*of_curve, *of_launches], key=lambda one: (one.first, one.last))


def _stands_out(curve: Curve, slow: Anomaly, *, has_jump: bool) -> bool:
    """Whether slow sizes lie above the lines of both sides drawn on: else one side only bends, or time stays up after a jump.

    Where there is no line on the far side a jump is one that stays, unless the size there is back on the line of the near side.
    """
    logs = np.nanmean(curve.log_times, axis=1)
    times, sizes = np.exp(logs), curve.sizes
    least = OWN_SHARE * np.log1p(slow.excess)
    below, above = slow.first - 1, slow.last + 1

    def drawn(size: int, end: int, slope_of: int) -> float:
        """Return the time at a size on the line through two, drawn on from one of them; a falling line is level."""
        return float(times[end] + max(float(_slope(times, sizes, slope_of)[()]), 0.0) * (sizes[size] - sizes[end]))

    has_near = below >= 1 and not curve.is_expected[below - 1]
    has_far = above + 1 < sizes.size and not curve.is_expected[above]
    if has_near and logs[slow.first] - np.log(drawn(slow.first, below, below - 1)) < least:
        return False
    if has_far:
        line = drawn(slow.last, above, above)
        return bool(line <= 0 or logs[slow.last] - np.log(line) >= least)
    if not has_jump or not has_near:
        return not has_jump
    # A start-up that is paid from a size on counts less and less against a message's time: what is left of it is told in time.
    left, was = (times[size] - drawn(size, below, below - 1) for size in (above, slow.last))
    return bool(left < OWN_SHARE * was)


def _joined(found: Sequence[Anomaly]) -> list[Anomaly]:
    """Return anomalies of launches, those of neighbouring sizes as one where the same launches are slow or time changes alike."""
    told: list[Anomaly] = []
    for one in sorted(found, key=lambda one: one.first):
        last = told[-1] if told else None
        is_alike = last is not None and last.is_slow == one.is_slow and last.excess * one.excess > 0
        if last is not None and is_alike and last.last + 1 == one.first:
            worst = max(last, one, key=lambda each: abs(each.excess))
            told[-1] = replace(worst, first=last.first, last=one.last, p_value=max(last.p_value, one.p_value))
        else:
            told.append(one)
    return told
