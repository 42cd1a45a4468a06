"""What two measurements of a matrix come to: chance is told once, not twice; many slow members are told as a group."""

from __future__ import annotations

import numpy as np
import pytest

from fabricbench.statistics.candidates import Candidate, Touch
from fabricbench.statistics.culprits import find_culprits_and_groups, smallest_found
from fabricbench.statistics.judgement import Judgement, Matrix, judge

MARGIN = 0.05


def both_ways(members: int) -> tuple[np.ndarray, np.ndarray]:
    source, destination = np.where(~np.eye(members, dtype=bool))
    return source, destination


def judged_twice(random: np.random.Generator, members: int, slow: int, by: float) -> Judgement:
    """Healthy pairs differ by 2 % for good and by 2 % between launches; the first members are slower with all."""
    source, destination = both_ways(members)
    touched = (source < slow) | (destination < slow)
    level = random.normal(0, 0.02, source.size) + np.where(touched, np.log1p(-by), 0.0)
    first, second = (
        Matrix(level + 0.02 * random.standard_normal((3, source.size)), source, destination) for _ in range(2)
    )
    return judge(first, second, margin=MARGIN)


def test_a_pair_that_chance_put_behind_in_one_run_is_not_told_after_the_second():
    random = np.random.default_rng(1)
    source, destination = np.triu_indices(16, 1)
    told = 0
    for _ in range(10):
        level = random.normal(0, 0.01, source.size)
        runs = [
            Matrix(
                level + 0.01 * random.standard_normal((3, source.size)) - 0.05 * random.pareto(1.5, (3, source.size)),
                source,
                destination,
            )
            for _ in range(2)
        ]
        told += bool(judge(*runs, margin=MARGIN).outliers)
    assert told == 0


def test_a_pair_behind_in_both_runs_is_told():
    random = np.random.default_rng(2)
    source, destination = np.triu_indices(12, 1)
    slow = random.choice(source.size, 20, replace=False)
    level = random.normal(0, 0.01, source.size)
    level[slow] -= 1.0
    first, second = (
        Matrix(level + 0.01 * random.standard_normal((3, source.size)), source, destination) for _ in range(2)
    )
    found = judge(first, second, margin=MARGIN)
    assert {one.column for one in found.outliers} | {
        column for one in found.culprits for column in np.flatnonzero(one.candidate.touches(source, destination))
    } >= set(slow.tolist())


@pytest.mark.parametrize(
    ("members", "slow", "by"), [(4, 2, 0.25), (5, 2, 0.25), (6, 3, 0.25), (12, 4, 0.1), (12, 6, 0.1)]
)
def test_a_slow_third_or_half_is_told_as_a_group_and_no_healthy_member_with_it(members: int, slow: int, by: float):
    random = np.random.default_rng(3)
    for _ in range(6):
        found = judged_twice(random, members, slow, by)
        assert found.apart or found.culprits
        assert set(found.apart) <= set(range(slow))
        if found.apart:
            assert -np.expm1(found.crossing) == pytest.approx(by, abs=0.05)


def test_healthy_members_stand_in_no_group():
    random = np.random.default_rng(4)
    assert not [one for one in (judged_twice(random, 8, 0, 0.0) for _ in range(30)) if one.apart or one.culprits]


@pytest.mark.slow
@pytest.mark.parametrize("touch", [Touch.MEMBER, Touch.PAIR, Touch.DIRECTION])
@pytest.mark.parametrize("members", [4, 8])
def test_what_is_said_to_be_found_is_found_in_two_of_three(touch: Touch, members: int):
    random = np.random.default_rng(5)
    source, destination = both_ways(members)
    candidate = Candidate(touch, 0) if touch is Touch.MEMBER else Candidate(touch, 0, 1)
    touched = candidate.touches(source, destination)
    told = [
        smallest_found(random.normal(0, 0.02, (1, source.size)), source, destination, margin=MARGIN)[touch]
        for _ in range(20)
    ]
    effect = float(np.median(told))
    assert effect < np.log1p(-MARGIN)
    found = [
        find_culprits_and_groups(
            (random.normal(0, 0.02, source.size) + effect * touched)[np.newaxis], source, destination, margin=MARGIN
        ).culprits
        for _ in range(60)
    ]
    named = sum(any(one.candidate == candidate for one in each) for each in found)
    assert named / 60 >= 2 / 3 - 0.15  # two and a half standard errors
