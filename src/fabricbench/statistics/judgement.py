"""What one or two measurements of a matrix come to: groups, culprits, and the pairs that neither explains.

The first measurement suspects, the second one decides: it tests the suspects anew, in the groups that the first one showed; what is
told as unexplained both find beyond the others. How `culprits` and `groups` are found, they say themselves.

Outliers are for a matrix in which `culprits` can name nobody: causes are too many or too tangled, yet some pairs are far worse than
the rest. Pairs are held against the median of their block (the pairs between the same two groups), in units of a robust scale, so
that up to half of the pairs may be bad without hiding each other (Rousseeuw and Croux, JASA 88, 1993).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.candidates import FEWEST_MEMBERS, Culprit
from fabricbench.statistics.culprits import (
    LARGEST_SCATTER,
    confirm_culprits,
    find_culprits_and_groups,
)
from fabricbench.statistics.groups import Groups, group_blocks, typical_values

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

NORMAL_MAD = 1.4826
"""The standard deviation of normal values over their median absolute deviation."""

MAD_EFFICIENCY = 0.37
"""Of the standard deviation's: so many values tell as much by their standard deviation as all by the median absolute deviation."""

FEWEST_DEGREES = 4.0
"""Of freedom of the scale: with fewer, four members could have pairs five times slower unseen. Simulation: docs/map-proof.md."""

MEDIAN_ERROR = 1.2533
"""The standard error of a median over that of a mean, of normal values."""

MEDIAN_OF_VARIANCE = 0.69
"""The median of a variance over 2 degrees of freedom (three launches) as a share of its mean."""

MANY = 0.25
"""Share of the pairs from which better ones are the level that the others miss, and not a few lucky ones."""


@dataclass(frozen=True)
class Outlier:
    """A pair that lies beyond: the number of its column, and how far it is from the level (below 0: worse)."""

    column: int
    effect: float


def find_outliers(values: Floats, blocks: Integers, *, margin: float, level: float = 0.01) -> list[Outlier]:
    """Return the pairs that are worse than their block's level by more than the margin and the scatter explain, the worst first.

    `values` has a row for each repetition and a column for each pair; more is better, effects add up; every column has a value.
    `blocks` is the block of each column, numbered from 0. `level` bounds the probability that any pair is returned where all
    scatter alike, normally and within LARGEST_SCATTER: a t test of each pair, corrected for the number of pairs (Bonferroni).
    """
    typical = np.nanmedian(values, axis=0)
    count = typical.size
    if count <= int(blocks.max(initial=-1)) + 1:
        return []
    effects = typical - _block_medians(typical, blocks)[blocks]
    degrees = count - int(blocks.max()) - 1
    scale = _scale(effects, degrees, _launch_error(values))
    freedom = max(MAD_EFFICIENCY * degrees, FEWEST_DEGREES)
    allowed = float(-np.log1p(-margin) + special.stdtrit(freedom, 1 - level / count) * scale)
    better = effects > allowed
    if np.mean(better) > MANY:
        effects = effects - np.median(effects[better])
    found = [Outlier(int(column), float(effects[column])) for column in np.flatnonzero(effects < -allowed)]
    return sorted(found, key=lambda one: one.effect)


def _block_medians(values: Floats, blocks: Integers) -> Floats:
    """Return the upper median of each block: where half of few pairs are bad, the level is that of the good ones."""
    found = [np.quantile(values[blocks == one], 0.5, method="higher") for one in range(int(blocks.max()) + 1)]
    return np.array(found, dtype=np.float64)


def _launch_error(values: Floats) -> float:
    """Return the usual standard error of a pair's median over repetitions; 0 where there is one repetition alone."""
    counts = np.count_nonzero(~np.isnan(values), axis=0)
    repeated = values[:, counts > 1]
    if not repeated.size:
        return 0.0
    variance = np.nanvar(repeated, axis=0, ddof=1) / counts[counts > 1]
    # The median over pairs: one pair that came and went says nothing of the others.
    return MEDIAN_ERROR * math.sqrt(float(np.median(variance)) / MEDIAN_OF_VARIANCE)


def _scale(effects: Floats, degrees: int, launch_error: float) -> float:
    """Return how far pairs scatter: by their own deviations, no less than launches explain, no more than is healthy."""
    spread = NORMAL_MAD * float(np.median(np.abs(effects))) * math.sqrt(effects.size / degrees)
    return max(min(spread, LARGEST_SCATTER), launch_error, float(np.finfo(np.float64).eps))


@dataclass(frozen=True)
class Matrix:
    """Values with a row for each repetition and a column for each ordered pair; more is better, effects add up."""

    values: Floats
    source: Integers
    destination: Integers

    def pair(self, column: int) -> tuple[int, int]:
        """Return the ends of a column."""
        return int(self.source[column]), int(self.destination[column])


@dataclass(frozen=True)
class Judgement:
    """The culprits and the unexplained pairs (columns of the last measurement), the worst first, and the groups of members.

    `groups` are two or more, or none. Where `is_unclear` they may as well be members that are slow each: only kept from accusation.
    `crossing` is how far pairs across groups are from those within, by their medians (below 0: worse), beyond the margin; where it
    `is_unclear`, how far the pairs of those that stand `apart` are from the pairs of the largest group.
    """

    culprits: list[Culprit]
    groups: Groups
    is_unclear: bool
    outliers: list[Outlier]
    crossing: float = 0.0
    apart: tuple[int, ...] = ()


def judge(first: Matrix, second: Matrix | None = None, *, margin: float, level: float = 0.01) -> Judgement:
    """Return what a matrix comes to; with a second measurement, of members numbered alike, what that one confirms.

    `margin` is the smallest relative slowness that matters. `level` bounds the probability that any culprit is named where nothing
    differs, and that of any outlier where all pairs scatter alike. Nobody is judged where fewer than FEWEST_MEMBERS take part.
    """
    if np.union1d(first.source, first.destination).size < FEWEST_MEMBERS:
        return Judgement([], (), False, [])
    found = _explanation(first, margin, level)
    if second is None:
        return _judgement_of(first, found)
    suspects = [one.candidate for one in found.culprits]
    are_slow_many = found.is_unclear
    if are_slow_many:
        found = _explanation(second, margin, level)
    confirmed = confirm_culprits(
        second.values, second.source, second.destination, suspects, margin=margin, level=level, groups=found.groups
    )
    if not confirmed and (suspects or are_slow_many):
        # What is suspected once of a few and once of others may be of so many that none stands out.
        again = _explanation(second, margin, level, accuses=False)
        found = again if again.is_unclear else found
    return _judgement_of(second, replace(found, culprits=confirmed), before=first)


@dataclass(frozen=True)
class _Explanation:
    """What explains the values of a matrix, by which `margin` and `level` it was found, and what is left is tested."""

    culprits: list[Culprit]
    groups: Groups
    is_unclear: bool
    margin: float
    level: float


def _explanation(matrix: Matrix, margin: float, level: float, *, accuses: bool = True) -> _Explanation:
    found = find_culprits_and_groups(
        matrix.values, matrix.source, matrix.destination, margin=margin, level=level, accuses=accuses
    )
    return _Explanation(found.culprits, found.groups, found.is_unclear, margin, level)


def _judgement_of(matrix: Matrix, found: _Explanation, before: Matrix | None = None) -> Judgement:
    """Return the judgement by the last measurement; groups whose difference is too small to matter are not told.

    Pairs without a cause are those that were that in the one `before` as well.
    """
    outliers = _outliers(matrix, found)
    if before is not None:
        again = [before.pair(one.column) for one in _outliers(before, found)]
        outliers = [one for one in outliers if matrix.pair(one.column) in again]
    matters = -float(np.log1p(-found.margin))
    if found.is_unclear:
        apart, crossing = _apart(matrix, found.groups)
        is_worse = crossing < -matters
        groups = found.groups if is_worse else ()
        return Judgement(found.culprits, groups, is_worse, outliers, crossing, apart if is_worse else ())
    crossing = _crossing(matrix, found.groups)
    if -matters < crossing < matters:
        return Judgement(found.culprits, (), False, outliers)
    return Judgement(found.culprits, found.groups, False, outliers, crossing)


def _apart(matrix: Matrix, groups: Groups) -> tuple[tuple[int, ...], float]:
    """Return the members beside the largest group (of equal ones the best within), and how far their pairs are from its."""
    typical, source, destination = typical_values(matrix.values, matrix.source, matrix.destination)

    def within(group: tuple[int, ...]) -> float:
        among = typical[np.isin(source, group) & np.isin(destination, group)]
        return float(np.median(among)) if among.size else -math.inf

    largest = max(groups, key=lambda group: (len(group), within(group)))
    apart = tuple(member for group in groups if group is not largest for member in group)
    touched = typical[np.isin(source, apart) | np.isin(destination, apart)]
    return apart, float(np.median(touched)) - within(largest) if touched.size and within(largest) > -math.inf else 0.0


def _crossing(matrix: Matrix, groups: Groups) -> float:
    typical, source, destination = typical_values(matrix.values, matrix.source, matrix.destination)
    is_within = np.zeros(typical.size, dtype=bool)
    for group in groups:
        is_within |= np.isin(source, group) & np.isin(destination, group)
    if is_within.all() or not is_within.any():
        return 0.0
    return float(np.median(typical[~is_within]) - np.median(typical[is_within]))


def _outliers(matrix: Matrix, found: _Explanation) -> list[Outlier]:
    """Return the outliers among the pairs that no culprit touches; unclear groups explain nothing."""
    is_free = ~np.isnan(matrix.values).all(axis=0)
    for one in found.culprits:
        is_free &= ~one.candidate.touches(matrix.source, matrix.destination)
    columns = np.flatnonzero(is_free)
    if not columns.size:
        return []
    groups = () if found.is_unclear else found.groups
    blocks = group_blocks(groups, matrix.source[columns], matrix.destination[columns])
    outliers = find_outliers(matrix.values[:, columns], blocks, margin=found.margin, level=found.level)
    return [Outlier(int(columns[one.column]), one.effect) for one in outliers]
