"""Outliers: pairs far behind the others are never passed over, and healthy ones never listed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fabricbench.statistics.judgement import Judgement, Matrix, find_outliers, judge

MARGIN = 0.05


def healthy(random: np.random.Generator, members: int) -> Matrix:
    source, destination = np.nonzero(np.triu(np.ones((members, members)), 1))
    lasting = random.normal(0, 0.02, source.size)
    return Matrix(lasting + random.normal(0, 0.02, (3, source.size)), source, destination)


@pytest.mark.parametrize("members", [4, 6, 8])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_pairs_two_to_five_times_slower_are_named_or_listed(members: int, share: float):
    random = np.random.default_rng(21)
    passed_over = 0
    for _ in range(20):
        matrix = healthy(random, members)
        count = matrix.source.size
        slow = random.choice(count, round(share * count), replace=False)
        matrix.values[:, slow] -= np.log(random.uniform(2, 5, slow.size))
        found = judge(matrix, margin=MARGIN)
        passed_over += not (
            found.culprits or found.outliers or found.is_unclear or are_what_groups_hold(found, matrix, slow)
        )
    assert passed_over <= 1


def are_what_groups_hold(found: Judgement, matrix: Matrix, slow: NDArray[np.int64]) -> bool:
    """Whether the slow pairs are all pairs within the groups that are told."""
    within = {
        number
        for number, (one, other) in enumerate(zip(matrix.source, matrix.destination, strict=True))
        if any({one, other} <= set(group) for group in found.groups)
    }
    return bool(found.groups) and within == set(slow.tolist())


@pytest.mark.parametrize("members", [4, 6, 16])
def test_healthy_pairs_are_not_listed(members: int):
    random = np.random.default_rng(22)
    blocks = np.zeros(members * (members - 1) // 2, dtype=np.int64)
    listed = sum(bool(find_outliers(healthy(random, members).values, blocks, margin=MARGIN)) for _ in range(400))
    assert listed <= 8  # a true 1 % of 400 gives nine and more with a probability of 2 %


def test_outliers_are_told_worst_first_with_how_far_they_are():
    values = np.tile(healthy(np.random.default_rng(23), 8).values[0], (3, 1))
    values[:, 3] -= np.log(2)
    values[:, 9] -= np.log(4)
    found = find_outliers(values, np.zeros(values.shape[1], dtype=np.int64), margin=MARGIN)
    assert [one.column for one in found] == [9, 3]
    assert found[0].effect == pytest.approx(-np.log(4), abs=0.1)


def test_where_most_pairs_are_slow_the_better_ones_are_the_level():
    values = np.zeros((3, 20)) + np.random.default_rng(24).normal(0, 0.01, (3, 20))
    values[:, :12] -= np.log(4)
    found = find_outliers(values, np.zeros(20, dtype=np.int64), margin=MARGIN)
    assert {one.column for one in found} == set(range(12))


def test_a_level_across_groups_is_no_outlier():
    values = np.random.default_rng(25).normal(0, 0.01, (3, 20))
    values[:, :6] -= np.log(4)
    assert find_outliers(values, np.repeat([1, 0], [6, 14]).astype(np.int64), margin=MARGIN) == []


def test_nothing_measured_has_no_outliers():
    empty: NDArray[np.float64] = np.empty((3, 0))
    assert find_outliers(empty, np.empty(0, dtype=np.int64), margin=MARGIN) == []
