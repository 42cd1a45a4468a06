"""Culprits: known faults are found and named alone; where there is none, nobody is accused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fabricbench.statistics.candidates import Candidate, Touch
from fabricbench.statistics.culprits import Culprit, confirm_culprits, find_culprits_and_groups

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MARGIN = 0.05


def find_culprits(values: Floats, source: Integers, destination: Integers, *, margin: float) -> list[Culprit]:
    return find_culprits_and_groups(values, source, destination, margin=margin).culprits


def directed(members: int) -> tuple[Integers, Integers]:
    source, destination = np.nonzero(~np.eye(members, dtype=bool))
    return source.astype(np.int64), destination.astype(np.int64)


def undirected(members: int) -> tuple[Integers, Integers]:
    source, destination = np.nonzero(np.triu(np.ones((members, members)), 1))
    return source.astype(np.int64), destination.astype(np.int64)


def measured(
    random: np.random.Generator,
    source: Integers,
    destination: Integers,
    faults: dict[Candidate, float],
    noise: float = 0.01,
    repetitions: int = 3,
) -> Floats:
    """Rates as they are measured: each pair is a little different for good, each repetition a little more."""
    level = np.log(94e6) + random.normal(0, noise / 2, source.size)
    for candidate, factor in faults.items():
        level = level + np.log(factor) * candidate.touches(source, destination)
    return np.asarray(level + random.normal(0, noise, (repetitions, source.size)))


FAULTS = [
    Candidate(Touch.MEMBER, 2),
    Candidate(Touch.SENDING, 0),
    Candidate(Touch.RECEIVING, 3),
    Candidate(Touch.PAIR, 1, 3),
    Candidate(Touch.DIRECTION, 2, 0),
]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.touch.value)
@pytest.mark.parametrize("members", [4, 9])
def test_a_fault_is_found_and_nothing_else(fault: Candidate, members: int) -> None:
    random = np.random.default_rng(7)
    source, destination = directed(members)
    covered = 0
    for _ in range(50):
        values = measured(random, source, destination, {fault: 0.8})
        found = find_culprits(values, source, destination, margin=MARGIN)
        assert [one.candidate for one in found] == [fault]
        covered += found[0].low < np.log(0.8) < found[0].high
    assert covered >= 42  # of 50 intervals at 95 %: fewer have a probability of 2e-3


def test_a_slow_member_is_found_by_pairs_without_direction() -> None:
    random = np.random.default_rng(8)
    source, destination = undirected(4)
    fault = Candidate(Touch.MEMBER, 1)
    for _ in range(50):
        values = measured(random, source, destination, {fault: 0.8}, noise=0.005)
        assert [one.candidate for one in find_culprits(values, source, destination, margin=MARGIN)] == [fault]


def test_two_faults_are_told_apart() -> None:
    random = np.random.default_rng(9)
    source, destination = directed(8)
    faults = {Candidate(Touch.MEMBER, 2): 0.8, Candidate(Touch.PAIR, 4, 6): 0.7}
    values = measured(random, source, destination, faults)
    assert {one.candidate for one in find_culprits(values, source, destination, margin=MARGIN)} == set(faults)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.002, 0.01, 0.05])
def test_nobody_is_accused_where_nothing_differs(noise: float) -> None:
    random = np.random.default_rng(10)
    source, destination = directed(4)
    accused = sum(
        bool(find_culprits(measured(random, source, destination, {}, noise), source, destination, margin=MARGIN))
        for _ in range(1000)
    )
    assert accused <= 10


def test_one_disturbed_repetition_accuses_nobody() -> None:
    random = np.random.default_rng(11)
    source, destination = directed(4)
    values = measured(random, source, destination, {})
    values[1, Candidate(Touch.MEMBER, 3).touches(source, destination)] -= 1.0
    assert find_culprits(values, source, destination, margin=MARGIN) == []


def test_a_difference_within_the_margin_accuses_nobody() -> None:
    random = np.random.default_rng(12)
    source, destination = directed(6)
    values = measured(random, source, destination, {Candidate(Touch.MEMBER, 2): 0.97}, noise=0.001)
    assert find_culprits(values, source, destination, margin=MARGIN) == []


def test_three_members_cannot_be_told_apart() -> None:
    source, destination = directed(3)
    values = measured(np.random.default_rng(1), source, destination, {Candidate(Touch.MEMBER, 0): 0.5})
    assert find_culprits(values, source, destination, margin=MARGIN) == []


def test_new_data_confirm_a_fault_and_clear_a_suspect() -> None:
    random = np.random.default_rng(13)
    source, destination = directed(4)
    fault, suspect = Candidate(Touch.MEMBER, 2), Candidate(Touch.DIRECTION, 0, 1)
    values = measured(random, source, destination, {fault: 0.8})
    confirmed = confirm_culprits(values, source, destination, [fault, suspect], margin=MARGIN)
    assert [one.candidate for one in confirmed] == [fault]
    healthy = measured(random, source, destination, {})
    assert confirm_culprits(healthy, source, destination, [fault, suspect], margin=MARGIN) == []


def test_pairs_that_were_not_measured_are_left_out() -> None:
    random = np.random.default_rng(14)
    source, destination = directed(5)
    fault = Candidate(Touch.MEMBER, 2)
    values = measured(random, source, destination, {fault: 0.8})
    values[:, 0] = np.nan
    assert [one.candidate for one in find_culprits(values, source, destination, margin=MARGIN)] == [fault]
