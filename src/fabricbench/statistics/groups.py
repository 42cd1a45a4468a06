"""Which members of a matrix belong together, because pairs within a group are at one level and pairs across at another?

Members behind different switches are the usual reason. Here are the ways to split members that are worth a look, found by
hierarchical clustering of the matrix itself; `culprits` decides between them, as it knows what else may explain the values.

Two notions of nearness are clustered (average linkage; Sokal and Michener 1958), as neither finds every split. Members are near
where the pair of them is good. And members are near where their pairs with all third members differ by the same amount: this one
does not see a slow member, whose pairs are all worse by as much. Slow members that are no nearer to each other than to the rest
are found by what each usually gets, cut in two. Each split is then improved by moving single members to the group
whose pattern of levels theirs follows best (as stochastic block models are fitted; Karrer and Newman, Phys. Rev. E 83, 2011).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST_TOGETHER = 2
"""A group of one is no group: its pairs with others look the same whether it is slow or stands apart."""

MOST_GROUPS = 8
"""Switches that a map tells apart: more need more levels than a map of a few dozen nodes can bear."""

MOST_SPLITS = 5
"""Splits that are handed on: the best by a quick look, so that the long look stays affordable."""

SWEEPS = 4
"""Rounds of moving members, and of fitting levels and members in turn: they settle after two or three."""

Split = tuple[int, ...]
"""The group of each member, numbered in the order of their first members."""

Groups = tuple[tuple[int, ...], ...]
"""The members of each group."""


@cache
def log_splits(members: int, groups: int) -> float:
    """Return the logarithm of how many ways there are to split members into that many groups of two or more.

    The last member joins one of the groups of the others, or makes one with any of them (associated Stirling numbers).
    """
    before, now = [1] + [0] * groups, [0] * (groups + 1)
    for others in range(1, members):
        joined = [number * ways for number, ways in enumerate(now)]
        before, now = now, [0, *(joined[one] + others * before[one - 1] for one in range(1, groups + 1))]
    return math.log(now[groups])


def blocks_of(split: Split, source: Integers, destination: Integers) -> Integers:
    """Return the block of each ordered pair, numbered from 0: one for each ordered pair of groups that occurs."""
    group = np.asarray(split, dtype=np.int64)
    of_groups = group[source] * (group.max() + 1) + group[destination]
    number = np.cumsum(np.bincount(of_groups) > 0, dtype=np.int64) - 1
    return np.asarray(number[of_groups], dtype=np.int64)


def group_blocks(groups: Groups, source: Integers, destination: Integers) -> Integers:
    """Return the block of each ordered pair, by the groups of its ends; a member in none is in a group with all such members."""
    members = int(max(source.max(initial=-1), destination.max(initial=-1))) + 1
    split = np.zeros(members, dtype=np.int64)
    for number, group in enumerate(groups, start=1):
        split[[member for member in group if member < members]] = number
    return blocks_of(tuple(split.tolist()), source, destination)


def typical_values(values: Floats, source: Integers, destination: Integers) -> tuple[Floats, Integers, Integers]:
    """Return the median of each pair over the repetitions: one disturbed repetition accuses nobody."""
    is_there = ~np.isnan(values).all(axis=0)
    return np.nanmedian(values[:, is_there], axis=0), source[is_there], destination[is_there]


def propose_splits(values: Floats, source: Integers, destination: Integers, members: int) -> list[Split]:
    """Return the splits that explain the values best by a quick look, the best first; groups have FEWEST_TOGETHER members or more.

    `values` has one value for each ordered pair (source, destination); every member is in some pair.
    """
    matrix = _filled(values, source, destination, members)
    raw = [cut for nearness in (_apart_by_value(matrix), _apart_by_profile(matrix)) for cut in _cuts(nearness)]
    cuts = {_without_single(one, matrix) for one in (*raw, _by_level(matrix))}
    found = {
        split
        for cut in cuts
        for split in (cut, _improved(cut, matrix))
        if len(set(split)) > 1 and min(np.bincount(split)) >= FEWEST_TOGETHER
    }
    scores = {split: _quick_score(split, values, source, destination) for split in found}
    best = sorted(found, key=lambda split: (scores[split], split))[:MOST_SPLITS]
    return list(dict.fromkeys([*best, *(near for split in best for near in _without_guest(split))]))


def _without_guest(split: Split) -> list[Split]:
    """Return the splits with one member of a group of three in the largest group instead.

    A member as slow in its group as others are across goes as well with any group, and hides in the smallest, where nothing shows
    that it is slow there too.
    """
    group = np.asarray(split, dtype=np.int64)
    sizes = np.bincount(group)
    largest = int(np.argmax(sizes))
    found = []
    for member in np.flatnonzero((sizes[group] == FEWEST_TOGETHER + 1) & np.not_equal(group, largest)):
        moved = group.copy()
        moved[member] = largest
        found.append(_numbered(moved))
    return found


def _filled(values: Floats, source: Integers, destination: Integers, members: int) -> Floats:
    """Return the symmetric matrix of means of both directions; what was not measured is what both members usually get."""
    sums, counts = np.zeros((2, members, members))
    for one, other in ((source, destination), (destination, source)):
        np.add.at(sums, (one, other), values)
        np.add.at(counts, (one, other), 1.0)
    matrix = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    usual = np.nanmedian(matrix, axis=1)
    expected = usual[:, None] + usual[None, :] - np.median(usual)
    matrix = np.where(np.isnan(matrix), expected, matrix)
    np.fill_diagonal(matrix, np.nan)
    return matrix


def _apart_by_value(matrix: Floats) -> Floats:
    apart = np.nanmax(matrix) - matrix
    np.fill_diagonal(apart, 0.0)
    return apart


def _apart_by_profile(matrix: Floats) -> Floats:
    """Return the spread, over third members, of the difference between two members' pairs with them.

    All sums over third members come from one product of the matrix with itself, what each member usually gets being taken off
    before: no spread depends on that, and squares that are small lose no digits. The diagonal is 0, so that neither of the two
    members is a third one.
    """
    usual = np.nanmean(matrix, axis=1)
    values = matrix - usual[:, None] - usual[None, :]
    np.fill_diagonal(values, 0.0)
    third = len(values) - 2
    sums, squares = values.sum(axis=1), np.sum(values**2, axis=1)
    of_squares = squares[:, None] + squares[None, :] - 2.0 * (values**2 + values @ values.T)
    apart = np.sqrt(np.maximum(of_squares / third - ((sums[:, None] - sums[None, :]) / third) ** 2, 0.0))
    np.fill_diagonal(apart, 0.0)
    return np.asarray(apart, dtype=np.float64)


def _by_level(matrix: Floats) -> Integers:
    """Return the members in two groups by what they usually get, where the two means leave least of its squares."""
    usual = np.nanmean(matrix, axis=1)
    order = np.argsort(usual)
    counts = np.arange(1, usual.size)
    below = np.cumsum(usual[order] - usual.mean())[:-1]
    worse = order[: 1 + int(np.argmax(below**2 / (counts * (usual.size - counts))))]
    return np.isin(np.arange(usual.size), worse).astype(np.int64)


def _cuts(apart: Floats) -> list[Integers]:
    from scipy.cluster import hierarchy  # noqa: PLC0415 - takes a tenth of a second, which every command would take
    from scipy.spatial import distance  # noqa: PLC0415

    tree = hierarchy.linkage(distance.squareform(apart, checks=False), method="average")
    most = min(MOST_GROUPS, len(apart) // FEWEST_TOGETHER)
    # A member far from all is a branch of its own: two branches more leave room for groups beside it.
    return [hierarchy.fcluster(tree, count, criterion="maxclust").astype(np.int64) - 1 for count in range(2, most + 3)]


def _without_single(group: Integers, matrix: Floats) -> Split:
    """Return the split with each lone member in the group that it goes best with."""
    sizes = np.bincount(group)
    kept = np.flatnonzero(sizes >= FEWEST_TOGETHER)
    if kept.size == 0:
        return (0,) * group.size
    group = group.copy()
    together = [np.flatnonzero(group == one) for one in kept]
    for member in np.flatnonzero(sizes[group] < FEWEST_TOGETHER):
        group[member] = kept[int(np.argmax([np.mean(matrix[member, others]) for others in together]))]
    return _numbered(group)


def _improved(split: Split, matrix: Floats) -> Split:
    """Return the split after members have moved to where their pairs follow the groups' levels best, up to a shift."""
    group = np.asarray(split, dtype=np.int64)
    known = ~np.eye(group.size, dtype=bool)
    values = np.where(known, matrix, 0.0)
    for _ in range(SWEEPS):
        # Of each group that a member may be in: how far its pairs with others are from that group's levels, up to a shift.
        spread = np.empty((group.size, int(group.max()) + 1))
        for one, levels in enumerate(_levels(group, values)):
            misfit = np.where(known, values - levels[group], 0.0)
            spread[:, one] = np.sum(misfit**2, axis=1) - np.sum(misfit, axis=1) ** 2 / (group.size - 1)
        moved = np.argmin(spread, axis=1)
        # A group that would lose too many keeps its members.
        sizes = np.bincount(moved, minlength=int(group.max()) + 1)
        moved = np.where(sizes[group] < FEWEST_TOGETHER, group, moved)
        if np.array_equal(moved, group):
            break
        group = moved
    return _numbered(group)


def _levels(group: Integers, values: Floats) -> Floats:
    """Return the mean of pairs between each two groups; the diagonal of `values` is 0."""
    member_of = np.equal(group[:, None], np.arange(int(group.max()) + 1)).astype(np.float64)
    sizes = member_of.sum(axis=0)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    return np.asarray(member_of.T @ values @ member_of / np.maximum(pairs, 1), dtype=np.float64)


def _numbered(group: Integers) -> Split:
    order = {int(one): place for place, one in enumerate(dict.fromkeys(group.tolist()))}
    return tuple(order[int(one)] for one in group)


def _quick_score(split: Split, values: Floats, source: Integers, destination: Integers) -> float:
    """Return the Bayesian information criterion of levels of blocks and an effect of each member, fitted in turn."""
    blocks = blocks_of(split, source, destination)
    members = len(split)
    shared = np.bincount(source, minlength=members) + np.bincount(destination, minlength=members)
    residual = values.copy()
    for _ in range(SWEEPS):
        residual -= block_means(residual, blocks)[blocks]
        ends = np.bincount(source, residual, members) + np.bincount(destination, residual, members)
        effect = ends / np.maximum(shared, 1) * (members - 1) / max(members - 2, 1)
        residual -= effect[source]
        residual -= effect[destination]
    residual -= block_means(residual, blocks)[blocks]
    square = max(float(residual @ residual) / residual.size, np.finfo(np.float64).tiny)
    groups = max(split) + 1
    return float(
        values.size * np.log(square) + (blocks.max() + 1) * np.log(values.size) + 2 * log_splits(members, groups)
    )


def block_means(values: Floats, blocks: Integers) -> Floats:
    """Return the mean of each block."""
    return np.asarray(np.bincount(blocks, values) / np.bincount(blocks), dtype=np.float64)


def centred(values: Floats, blocks: Integers) -> Floats:
    """Return values, or columns of them, less the means of their blocks: what the levels leave to explain."""
    if values.ndim == 1:
        return values - block_means(values, blocks)[blocks]
    return np.stack([centred(column, blocks) for column in values.T], axis=1) if values.size else values
