"""Groups: members behind several switches are told from slow ones, by maps of networks whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fabricbench.statistics.candidates import Candidate, Touch
from fabricbench.statistics.judgement import Judgement, Matrix, judge

Floats = NDArray[np.float64]

MARGIN = 0.05
ACROSS = np.log(0.8)
NOISE = 0.02
MAPS = 20


def network(
    random: np.random.Generator, switches: tuple[int, ...], slow: float = 1.0, *, is_rate: bool = False
) -> Matrix:
    """Pairs of nodes behind switches, node 0 slow: times of each pair, which add up, or rates of the slowest link both ways."""
    switch = np.repeat(np.arange(len(switches)), switches)
    every = np.ones((switch.size, switch.size), dtype=bool)
    source, destination = np.nonzero(every & ~np.eye(switch.size, dtype=bool) if is_rate else np.triu(every, 1))
    across = np.where(switch[source] != switch[destination], ACROSS, 0.0)
    own = np.where((source == 0) | (destination == 0), np.log(slow), 0.0)
    levels = np.minimum(across, own) if is_rate else across + own
    lasting = levels + random.normal(0, NOISE, source.size)
    return Matrix(lasting + random.normal(0, NOISE, (3, source.size)), source, destination)


def maps(switches: tuple[int, ...], slow: float = 1.0, *, is_rate: bool = False, seed: int = 1) -> list[Judgement]:
    random = np.random.default_rng(seed)
    return [judge(network(random, switches, slow, is_rate=is_rate), margin=MARGIN) for _ in range(MAPS)]


@pytest.mark.slow
def test_a_healthy_network_of_several_switches_accuses_nobody():
    seen = [
        found
        for switches in ((4,), (8,), (14, 2), (6, 2), (4, 4), (12, 4))
        for is_rate in (False, True)
        for found in maps(switches, is_rate=is_rate)
    ]
    accusing = sum(bool(one.culprits) for one in seen)
    # Refused where so many would come of a true share of 1 % once in twenty times; none were seen in docs/map-proof.md.
    assert stats.binomtest(accusing, len(seen), 0.01, alternative="greater").pvalue > 0.05
    assert accusing <= 1


def test_a_node_alone_behind_a_switch_is_all_that_is_named_of_seven_and_one():
    seen = maps((7, 1))
    assert {tuple(one.candidate for one in found.culprits) for found in seen} == {(Candidate(Touch.MEMBER, 7),)}


@pytest.mark.parametrize("is_rate", [False, True])
def test_groups_are_told_as_they_are(is_rate: bool):
    for switches, groups in (
        ((14, 2), (tuple(range(14)), (14, 15))),
        ((4, 4, 4), ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11))),
    ):
        assert sum(one.groups == groups for one in maps(switches, is_rate=is_rate)) >= MAPS - 2


@pytest.mark.slow
@pytest.mark.parametrize("is_rate", [False, True])
@pytest.mark.parametrize("switches", [(6, 6), (14, 2)])
def test_a_slow_node_of_a_group_is_found_and_nobody_else(switches: tuple[int, ...], is_rate: bool):
    seen = maps(switches, 0.85, is_rate=is_rate)
    named = [{one.candidate.first for one in found.culprits} for found in seen]
    assert all(one <= {0} for one in named)
    assert sum(one == {0} for one in named) >= MAPS - 2


def test_two_nodes_that_are_slow_with_each_other_too_are_no_group():
    random = np.random.default_rng(2)
    for _ in range(MAPS):
        matrix = network(random, (12,))
        values = matrix.values + np.log(0.8) * np.isin(matrix.source, (10, 11))
        values = values + np.log(0.8) * np.isin(matrix.destination, (10, 11))
        found = judge(Matrix(values, matrix.source, matrix.destination), margin=MARGIN)
        assert {one.candidate for one in found.culprits} == {Candidate(Touch.MEMBER, 10), Candidate(Touch.MEMBER, 11)}
        assert not found.groups


def test_pairs_that_are_better_across_groups_accuse_nobody():
    random = np.random.default_rng(3)
    for _ in range(MAPS):
        matrix = network(random, (6, 2))
        is_within = (matrix.source < 6) == (matrix.destination < 6)
        better = Matrix(matrix.values + 2 * ACROSS * is_within, matrix.source, matrix.destination)
        assert judge(better, margin=MARGIN).culprits == []


def test_a_second_measurement_decides_within_the_groups_of_the_first():
    random = np.random.default_rng(4)
    first, second = network(random, (6, 6), 0.8), network(random, (6, 6), 0.8)
    confirmed = judge(first, second, margin=MARGIN)
    assert [one.candidate for one in confirmed.culprits] == [Candidate(Touch.MEMBER, 0)]
    assert len(confirmed.groups) == 2
    assert judge(first, network(random, (6, 6)), margin=MARGIN).culprits == []
