"""The shape of a distribution: histograms, two modes in samples, and launches of one side that fall into two groups.

Of samples: a histogram on a logarithmic axis, and a hint at two modes. Of launches: where a mean of logarithms with Student's t is
wrong. A slow mode of one launch in ten, 30 % slower, moves the mean by 2.7 % and goes unseen by six launches in half of all runs;
then the interval is narrow and wrong. So three things are offered: a test for such a mode in what was seen (`find_slow_modes`),
the ratio in each of the two groups where it is found (`split_ratio`), and how large a mode may have gone unseen
(`unseen_share`). What both sides of a block share cancels, because differences within blocks are what is tested.

Everything that is said of launches speaks of log times: larger is slower. For rates the caller turns the sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fabricbench.statistics.decision import LogRatio, PValues
from fabricbench.statistics.ratios import EXACT, NOTHING_FITTED, Fitted, Rounding

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

SMALLER_MODE_SHARE = 0.1
"""A second mode holds at least this share of all samples, else it is a tail."""

VALLEY_DEPTH = 0.5
"""Between two modes the density falls below this share of the lower peak."""

CHANCE = 5.0
"""Many valleys are tried in many histograms: five standard deviations keep chance out."""

FEWEST_SAMPLES = 100
"""With fewer samples than this, gaps in a histogram are chance."""


def log_edges(low: float, high: float, bins: int) -> Floats:
    """Return `bins + 1` edges, evenly spaced in the logarithm, that hold [low, high]; both above 0."""
    if not high > low:
        low, high = low * 0.99, low * 1.01
    edges = np.geomspace(low, high, bins + 1)
    edges[0], edges[-1] = low, high
    return edges


def has_two_modes(counts: Counts) -> bool:
    """Return whether a histogram looks bimodal: two peaks, each with a good share of the samples, and a deep valley between.

    A hint for the reader, never a test: counts are summed over five bins, then every valley is tried; it must be deeper than
    chance makes it (CHANCE standard deviations of a Poisson count).
    """
    return bool(np.any(_valleys(counts)))


HISTOGRAM_BINS = 50
TAIL = 0.01
"""Share of the samples on each side that one wide bin holds: else a single straggler would squeeze all others into two bins."""

BETWEEN = (0.25, 0.75)
"""Of the samples below the valley between two modes: launches differ by a few of a hundred, which then moves a median across; not
by the 25 of a hundred that it takes beyond. What it moves: docs/statistics.md, "Constants of the grades"."""


def splits_median(ordered: Floats) -> bool:
    """Return whether the median of samples, which are sorted, lies between two modes, or would with a few samples moved."""
    positive = ordered[ordered > 0]
    if positive.size < FEWEST_SAMPLES:
        return False
    low, high = (float(end) for end in np.quantile(positive, [TAIL, 1.0 - TAIL]))
    counts = np.histogram(positive, log_edges(low, high, HISTOGRAM_BINS))[0]
    share = np.cumsum(counts) / counts.sum()
    return bool(np.any(_valleys(counts) & (share >= BETWEEN[0]) & (share <= BETWEEN[1])))


def _valleys(counts: Counts) -> NDArray[np.bool_]:
    """Return which bins of a histogram are a deep valley between two peaks."""
    total = int(counts.sum())
    if total < FEWEST_SAMPLES or counts.size < 5:
        return np.zeros(counts.shape, dtype=np.bool_)
    smooth = np.convolve(counts, np.ones(5), mode="same")
    peak = np.minimum(np.maximum.accumulate(smooth), np.maximum.accumulate(smooth[::-1])[::-1])
    left_share = np.cumsum(counts) / total
    is_valley = (smooth < VALLEY_DEPTH * peak) & (peak - smooth > CHANCE * np.sqrt(peak + 1.0))
    is_shared = (left_share >= SMALLER_MODE_SHARE) & (left_share <= 1.0 - SMALLER_MODE_SHARE)
    return np.asarray(is_valley & is_shared, dtype=np.bool_)


Booleans = NDArray[np.bool_]

LEVEL = 0.01
"""Chance of an alarm where launches scatter normally; an alarm costs power, so it is kept rarer than a verdict's error."""

FEWEST_LAUNCHES = 5
"""Of four values one off the others is no surprise: no test at LEVEL has power."""

LEAST_GAP = 0.02
"""In log time: groups nearer to each other than that move a mean by less than anybody's margin, whatever their shares."""

OWN_PART = 0.75
"""Of the gap between the groups a side must show beside its own neighbouring launches. A machine that becomes slower between
the two launches of a block makes one difference large as well, and shows one half on either side."""

DRAWS = 40_000
"""Normal samples that stand for "no mode": 1 % is known to a twentieth of itself."""
MOST_DRAWN = 15_000
"""Values of them at once: of more each step waits for memory, and takes three times as long."""


@dataclass(frozen=True)
class SlowModes:
    """What was found for each comparison on sides a and b, arrays of shape (2, comparisons).

    `p_value` (one for each comparison, shape (comparisons,)) is of "differences within blocks are normal"; `share` of the side's
    launches are slow, `slower` is by how much (0.3: 30 %); both NaN where `is_mixed` is false. `is_slow` says which launches, shape
    (comparisons, blocks).
    """

    is_mixed: Booleans
    share: Floats
    slower: Floats
    p_value: Floats
    is_slow: Booleans


def pooled(log_times: Floats) -> Floats:
    """Return one value for each launch, shape (1, blocks), from the cells that it measured, shape (cells, blocks).

    Each cell is centred on its median over blocks: a slow launch is slow in all of its cells, whose own noise the mean takes away.
    """
    measured = log_times[~np.isnan(log_times).all(axis=1)]
    if not measured.size:
        return np.full((1, log_times.shape[1]), np.nan)
    centred = measured - np.nanmedian(measured, axis=1, keepdims=True)
    is_there = ~np.isnan(centred)
    count = is_there.sum(axis=0, keepdims=True)
    total = np.where(is_there, centred, 0.0).sum(axis=0, keepdims=True)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def find_slow_modes(log_a: Floats, log_b: Floats, level: float = LEVEL, least_gap: float = LEAST_GAP) -> SlowModes:
    """Return which side of each comparison has launches in two groups; shapes (comparisons, blocks), blocks in the order of time.

    Differences within blocks are cut in two where the classification likelihood of two normal groups is largest (Symons,
    Biometrics 37 (1981)); that likelihood and the skewness are tested against normal samples of the same size, each at half the
    level. For many comparisons the caller divides the level by their number, or tests launches pooled over their cells.
    """
    a, b = np.atleast_2d(log_a), np.atleast_2d(log_b)
    difference = b - a
    p_values = _p_values(difference)
    is_mixed = np.zeros((2, len(a)), dtype=np.bool_)
    share, slower = np.full((2, len(a)), np.nan), np.full((2, len(a)), np.nan)
    is_slow = np.zeros(difference.shape, dtype=np.bool_)
    for row in np.flatnonzero(p_values < level):
        is_there = ~np.isnan(difference[row])
        is_high = _split(difference[row, is_there])
        values = np.stack([-a[row, is_there], b[row, is_there]])
        gaps = np.array([_own_gap(side, is_high) for side in values])
        side = int(np.argmax(gaps))
        if gaps.sum() < least_gap or gaps[side] < OWN_PART * gaps.sum():
            continue
        is_mixed[side, row] = True
        is_slow[row, is_there] = is_high if side == 1 else ~is_high
        share[side, row] = np.mean(is_slow[row, is_there])
        slower[side, row] = np.expm1(gaps[side])
    return SlowModes(is_mixed, share, slower, p_values, is_slow)


@dataclass(frozen=True)
class Groups:
    """Values of each row in two groups: `p_value` of "they are normal", `gap` between the groups, `is_high` which values."""

    p_value: Floats
    gap: Floats
    is_high: Booleans


def two_groups(rows: Floats, least_gap: float = LEAST_GAP) -> Groups:
    """Return whether the values of each row, shape (rows, launches), fall into two groups, NaN left out.

    The likelihood of `find_slow_modes`, without its test of skewness. The p-value is 1 where a group is a single launch, or
    nearer to the other than `least_gap`; NaN for fewer than FEWEST_LAUNCHES.
    """
    p_value, gap = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    is_high = np.zeros(rows.shape, dtype=np.bool_)
    counts = (~np.isnan(rows)).sum(axis=1)
    for count in np.unique(counts[counts >= FEWEST_LAUNCHES]):
        mine = np.flatnonzero(counts == count)
        values = np.sort(rows[mine], axis=1)[:, :count]
        has_spread = values[:, -1] > values[:, 0]
        p_value[mine], gap[mine] = 1.0, 0.0
        mine, values = mine[has_spread], values[has_spread]
        if not mine.size:
            continue
        gains = _gains(values)
        cut = np.argmax(gains, axis=1) + 1
        below = np.take_along_axis(np.cumsum(values, axis=1), cut[:, None] - 1, axis=1)[:, 0]
        gap[mine] = (values.sum(axis=1) - below) / (count - cut) - below / cut
        is_high[mine] = rows[mine] >= np.take_along_axis(values, cut[:, None], axis=1)
        is_apart = (np.minimum(cut, count - cut) >= 2) & (gap[mine] >= least_gap)
        if is_apart.any():
            p_value[mine[is_apart]] = _upper_tail(_null(int(count))[0], gains.max(axis=1)[is_apart])
    return Groups(p_value, gap, is_high)


def split_ratio(
    log_ratios: Floats, is_slow: Booleans, rounding: Rounding = EXACT, fitted: Fitted = NOTHING_FITTED
) -> tuple[LogRatio, LogRatio] | None:
    """Return the mean log ratio of the blocks whose launch is slow, and that of the others; None where a group has no value.

    Both scatter as launches do within the groups: one deviation, pooled, with n - 2 degrees of freedom less the effects that were
    `fitted`, as a group of one or two launches has none of its own that tells anything.
    """
    present = ~np.isnan(log_ratios)
    groups = [log_ratios[present & chosen] for chosen in (is_slow, ~is_slow)]
    freedom = int(present.sum()) - 2
    if freedom < 1 or not all(group.size for group in groups):
        return None
    freedom = max(freedom - int(fitted.effects), 1)
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    deviation = max(float(np.sqrt(squares / freedom)) * float(fitted.error_times), float(rounding.deviation))
    slow, others = (
        LogRatio(float(group.mean()), deviation, group.size, float(freedom), rounding_bound=float(rounding.bound))
        for group in groups
    )
    return slow, others


def p_values_of_both(
    log_ratios: Floats, is_slow: Booleans, margin: float, rounding: Rounding = EXACT, fitted: Fitted = NOTHING_FITTED
) -> PValues | None:
    """Return the p-values, one of each, of "one of the two groups leads no side, or by no more than the margin".

    An intersection-union test: the larger of the groups' p-values (Berger, Technometrics 24 (1982)), as each group must show it; 1
    where they lead different sides. Nothing in two groups is equivalent. None where a group has no value.
    """
    groups = split_ratio(log_ratios, is_slow, rounding, fitted)
    if groups is None:
        return None
    is_one_way = groups[0].mean * groups[1].mean > 0
    zero, beyond = (
        np.array([max(one.p_value(limit) for one in groups) if is_one_way else 1.0])
        for limit in (0.0, float(np.log1p(margin)))
    )
    return PValues(zero, beyond, np.ones(1))


def unseen_share(launches: int, risk: float = 0.05) -> float:
    """Return the largest share of launches in a slow mode of which so many launches would have met none, with that risk.

    1 - risk**(1/n), the exact upper limit of a share that was never seen (Clopper and Pearson, Biometrika 26 (1934)): 39 % for 6
    launches, 8.9 % for 32.
    """
    return 1.0 if launches < 1 else float(1.0 - risk ** (1.0 / launches))


def _p_values(rows: Floats) -> Floats:
    """Return the p-value of "normal" for each row: twice the smaller of two tests'; NaN for too few values or without spread."""
    counts = (~np.isnan(rows)).sum(axis=1)
    p_values = np.full(len(rows), np.nan)
    for count in np.unique(counts[counts >= FEWEST_LAUNCHES]):
        mine = np.flatnonzero(counts == count)
        values = np.sort(rows[mine], axis=1)[:, :count]
        has_spread = values[:, -1] > values[:, 0]
        mine, values = mine[has_spread], values[has_spread]
        null_gain, null_skew = _null(int(count))
        gain = _gains(values).max(axis=1)
        p_gain = _upper_tail(null_gain, gain)
        p_skew = _upper_tail(null_skew, np.abs(_skewness(values)))
        p_values[mine] = np.minimum(2.0 * np.minimum(p_gain, p_skew), 1.0)
    return p_values


def _gains(values: Floats) -> Floats:
    """Return for each cut of sorted rows, after 1 to n - 1 values, twice the log likelihood that two groups gain over one."""
    count = values.shape[1]
    below = np.arange(1.0, count)
    above = count - below
    centred = values - values.mean(axis=1, keepdims=True)
    total = np.sum(centred**2, axis=1, keepdims=True)
    between = np.cumsum(centred, axis=1)[:, :-1] ** 2 * (1.0 / below + 1.0 / above)
    within = np.maximum(total - between, 1e-12 * total)
    mixing = 2.0 * (count * np.log(count) - below * np.log(below) - above * np.log(above))
    return np.asarray(count * np.log(total / within) - mixing, dtype=np.float64)


def _skewness(values: Floats) -> Floats:
    centred = values - values.mean(axis=1, keepdims=True)
    squares = centred * centred
    return np.asarray(np.mean(squares * centred, axis=1) / np.mean(squares, axis=1) ** 1.5, dtype=np.float64)


@lru_cache(maxsize=64)
def _null(count: int) -> tuple[Floats, Floats]:
    """Return both statistics of DRAWS normal samples, ascending; the seed is fixed, so that a verdict does not change by itself."""
    random = np.random.default_rng(count)
    gains, skews = [], []
    rows = max(MOST_DRAWN // count, 1)  # at a time: of thousands of launches all would be gigabytes
    for first in range(0, DRAWS, rows):
        values = np.sort(random.standard_normal((min(rows, DRAWS - first), count)), axis=1)
        gains.append(_gains(values).max(axis=1))
        skews.append(np.abs(_skewness(values)))
    return np.sort(np.concatenate(gains)), np.sort(np.concatenate(skews))


def _upper_tail(null: Floats, found: Floats) -> Floats:
    larger = null.size - np.searchsorted(null, found, side="left")
    return np.asarray((1.0 + larger) / (1.0 + null.size), dtype=np.float64)


def _split(values: Floats) -> Booleans:
    """Return which values are in the upper group of the best cut."""
    order = np.argsort(values)
    cut = int(np.argmax(_gains(values[order][None])[0])) + 1
    is_high = np.zeros(values.size, dtype=np.bool_)
    is_high[order[cut:]] = True
    return is_high


def _own_gap(values: Floats, is_high: Booleans) -> float:
    """Return by how much a side's high launches lie above its own nearest other launches before and after."""
    low = np.flatnonzero(~is_high)
    excess = []
    for index in np.flatnonzero(is_high):
        beside = [*low[low < index][-1:], *low[low > index][:1]]
        excess.append(values[index] - np.mean(values[beside]))
    return float(np.mean(excess))
