"""What one or two measurements of a matrix come to: groups, culprits, and the pairs that neither explains.

The first measurement suspects, the second one decides alone: it tests the suspects anew, in the groups that the first one showed,
and what is told as unexplained is what it finds beyond the others. `culprits`, `groups` and `outliers` say how each is found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabricbench.statistics.culprits import (
    FEWEST_MEMBERS,
    Culprit,
    Groups,
    confirm_culprits,
    find_culprits_and_groups,
    group_blocks,
    typical_values,
)
from fabricbench.statistics.outliers import Outlier, find_outliers

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Matrix:
    """Values with a row for each repetition and a column for each ordered pair; more is better, effects add up."""

    values: Floats
    source: Integers
    destination: Integers


@dataclass(frozen=True)
class Judgement:
    """The culprits and the unexplained pairs (columns of the last measurement), the worst first, and the groups of members.

    `groups` are two or more, or none. Where `is_unclear` they may as well be members that are slow each: only kept from accusation.
    `crossing` is how far pairs across groups are from those within, by their medians (below 0: worse), beyond the margin.
    """

    culprits: list[Culprit]
    groups: Groups
    is_unclear: bool
    outliers: list[Outlier]
    crossing: float = 0.0


def judge(first: Matrix, second: Matrix | None = None, *, margin: float, level: float = 0.01) -> Judgement:
    """Return what a matrix comes to; with a second measurement, of members numbered alike, what that one confirms.

    `margin` is the smallest relative slowness that matters. `level` bounds the probability that any culprit is named where nothing
    differs, and that of any outlier where all pairs scatter alike. Nobody is judged where fewer than FEWEST_MEMBERS take part.
    """
    if np.union1d(first.source, first.destination).size < FEWEST_MEMBERS:
        return Judgement([], (), False, [])
    culprits, found = _culprits_and_groups(first, margin, level)
    if second is None:
        return _told(first, culprits, *found, margin, level)
    if found[1]:
        found = _culprits_and_groups(second, margin, level)[1]
    confirmed = confirm_culprits(
        second.values,
        second.source,
        second.destination,
        [one.candidate for one in culprits],
        margin=margin,
        level=level,
        groups=found[0],
    )
    return _told(second, confirmed, *found, margin, level)


def _told(
    matrix: Matrix, culprits: list[Culprit], groups: Groups, is_unclear: bool, margin: float, level: float
) -> Judgement:
    """Return the judgement by the last measurement; groups whose difference is too small to matter are not told."""
    outliers = _outliers(matrix, culprits, groups, is_unclear, margin, level)
    crossing = _crossing(matrix, groups)
    if not is_unclear and np.log1p(-margin) < crossing < -np.log1p(-margin):
        return Judgement(culprits, (), False, outliers)
    return Judgement(culprits, groups, is_unclear, outliers, crossing)


def _crossing(matrix: Matrix, groups: Groups) -> float:
    typical, source, destination = typical_values(matrix.values, matrix.source, matrix.destination)
    is_within = np.zeros(typical.size, dtype=bool)
    for group in groups:
        is_within |= np.isin(source, group) & np.isin(destination, group)
    if is_within.all() or not is_within.any():
        return 0.0
    return float(np.median(typical[~is_within]) - np.median(typical[is_within]))


def _culprits_and_groups(matrix: Matrix, margin: float, level: float) -> tuple[list[Culprit], tuple[Groups, bool]]:
    found = find_culprits_and_groups(matrix.values, matrix.source, matrix.destination, margin=margin, level=level)
    return found.culprits, (found.groups, found.is_unclear)


def _outliers(
    matrix: Matrix,
    culprits: list[Culprit],
    groups: Groups,
    is_unclear: bool,
    margin: float,
    level: float,
) -> list[Outlier]:
    """Return the outliers among the pairs that no culprit touches; unclear groups explain nothing."""
    is_free = ~np.isnan(matrix.values).all(axis=0)
    for one in culprits:
        is_free &= ~one.candidate.touches(matrix.source, matrix.destination)
    columns = np.flatnonzero(is_free)
    if not columns.size:
        return []
    blocks = group_blocks(() if is_unclear else groups, matrix.source[columns], matrix.destination[columns])
    found = find_outliers(matrix.values[:, columns], blocks, margin=margin, level=level)
    return [Outlier(int(columns[one.column]), one.effect) for one in found]
