"""Points on a grid are found to be on it, and points at random on none."""

from __future__ import annotations

import numpy as np
import pytest

from fabricbench.statistics.periods import find_period, resultant_length

SHORTEST, LONGEST = 50e3, 400e3


def at_random(points: int, random: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Points at random pauses of half to one and a half millisecond, ns."""
    return np.cumsum(random.uniform(0.5e6, 1.5e6, points))


@pytest.mark.parametrize("period", [62_500.0, 125_000.0, 333_000.0])
def test_a_grid_is_found_by_its_own_period_and_not_by_a_part_of_it(period: float):
    random = np.random.default_rng(1)
    for _ in range(20):
        times = np.ceil(at_random(200, random) / period) * period + random.exponential(3e3, 200)
        found = find_period(times, SHORTEST, LONGEST)
        assert found is not None
        assert found.period == pytest.approx(period, rel=1e-3)
        assert found.by_chance < 1e-6


def test_a_grid_is_found_where_every_fourth_point_came_late():
    random = np.random.default_rng(2)
    for _ in range(20):
        times = np.ceil(at_random(200, random) / 125e3) * 125e3
        times[::4] += random.uniform(0, 3e6, len(times[::4]))
        found = find_period(times, SHORTEST, LONGEST)
        assert found is not None
        assert found.period == pytest.approx(125e3, rel=1e-3)
        assert found.length == pytest.approx(0.75, abs=0.1)


@pytest.mark.slow
def test_points_at_random_are_seldom_found_on_a_grid():
    random = np.random.default_rng(3)
    found = [find_period(at_random(200, random), SHORTEST, LONGEST) for _ in range(400)]
    assert sum(one is not None and one.by_chance < 0.05 for one in found) <= 0.08 * len(found)
    assert not any(one is not None and one.by_chance < 1e-4 for one in found)


def test_a_grid_beyond_the_longest_period_is_none():
    times = np.ceil(at_random(300, np.random.default_rng(4)) / 1e6) * 1e6
    assert find_period(times, SHORTEST, LONGEST) is None
    assert resultant_length(times, 1e6) == pytest.approx(1.0)


def test_too_few_points_have_no_period():
    times = np.arange(10.0) * 125e3
    assert find_period(times, SHORTEST, LONGEST) is None
