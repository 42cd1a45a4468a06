"""Change points: found where they are, the same each time, and hardly ever where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fabricbench.statistics.change_points import MINIMUM_SEGMENT, best_split, change_points, dependence

Floats = NDArray[np.float64]


def scattered(levels: list[float], seed: int = 1) -> Floats:
    return np.asarray(levels) + np.random.default_rng(seed).standard_normal(len(levels))


def energy(first: Floats, second: Floats) -> float:
    """The statistic as Matteson and James write it, pair by pair."""
    m, n = len(first), len(second)
    between = sum(abs(x - y) for x in first for y in second) * 2 / (m * n)
    within = [
        sum(abs(x - y) for index, x in enumerate(part) for y in part[:index]) / (len(part) * (len(part) - 1) / 2)
        for part in (first, second)
    ]
    return float((between - sum(within)) * m * n / (m + n))


def test_the_best_split_is_that_of_the_definition():
    series = scattered([0.0] * 7 + [2.0] * 6 + [0.0] * 5)
    expected = max(
        (energy(series[:split], series[split:end]), split)
        for split in range(3, len(series) - 2)
        for end in range(split + 3, len(series) + 1)
    )
    found = best_split(series, 3)
    assert (found.statistic, found.index) == (pytest.approx(expected[0]), expected[1])


def test_a_step_and_a_way_back_are_found_where_they_are():
    assert [one.index for one in change_points(scattered([0.0] * 15 + [9.0] * 15))] == [15]
    there_and_back = scattered([0.0] * 20 + [9.0] * 6 + [0.0] * 20)
    found = change_points(there_and_back)
    assert [one.index for one in found] == [20, 26]
    assert all(one.p_value <= 0.05 for one in found)
    assert change_points(there_and_back) == found


def test_a_series_that_is_too_short_or_never_differs_has_no_change():
    assert change_points(np.arange(2.0 * MINIMUM_SEGMENT - 1)) == ()
    assert change_points(np.full(40, 7.0)) == ()
    assert change_points(np.zeros(0)) == ()


def test_values_that_follow_each_other_are_told_unless_a_change_is_all_of_it():
    drifting = np.cumsum(np.random.default_rng(3).standard_normal(40))
    assert (dependence(drifting, ()) or 0.0) > 0.5
    step = scattered([0.0] * 20 + [9.0] * 20)
    assert (dependence(step, ()) or 0.0) > 0.5
    assert dependence(step, (20,)) is None
    assert dependence(np.zeros(0), ()) is None


@pytest.mark.slow
def test_stable_series_have_a_change_with_the_level_at_most():
    draw = np.random.default_rng(20261127)
    series = [draw.standard_normal(24) for _ in range(1000)]
    alarms = sum(bool(change_points(one)) for one in series)
    assert alarms <= 1000 * 0.05 + 3 * np.sqrt(1000 * 0.05 * 0.95)
