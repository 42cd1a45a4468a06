"""Several runs a side: means of runs are what is inferred from, so that sessions that differ by themselves are no change."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from fabricbench.statistics.correction import benjamini_hochberg
from fabricbench.statistics.ratios import run_means, unpaired_ratios

CELLS, BLOCKS, LEVEL = 36, 6, 0.05


def side(random: np.random.Generator, campaigns: int, runs: int, session: float) -> NDArray[np.float64]:
    """Log values of launches, (campaigns * cells, runs * blocks): noise as measured, and an effect that a session's cells share."""
    launch = random.normal(0.0, 0.024, (campaigns, 1, runs, BLOCKS))
    cell = random.normal(0.0, 0.017, (campaigns, CELLS, runs, BLOCKS))
    of_session = random.normal(0.0, session, (campaigns, 1, runs, 1))
    return (launch + cell + of_session).reshape(campaigns * CELLS, runs * BLOCKS)


def wrong_campaigns(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[int, float]:
    """How many campaigns name a difference where there is none, and how many intervals cover it."""
    ratios = unpaired_ratios(a, b)
    adjusted = benjamini_hochberg(ratios.p_value.reshape(-1, CELLS))
    covered = float(np.mean((ratios.low <= 1.0) & (ratios.high >= 1.0)))
    return int((adjusted < LEVEL).any(axis=1).sum()), covered


def test_run_means_are_means_of_what_each_run_has():
    values = np.array([[1.0, 2.0, np.nan, 4.0, np.nan, np.nan], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]])
    means = run_means(values, (0, 0, 1, 1, 2, 2))
    assert means[0, :2].tolist() == [1.5, 4.0]
    assert np.isnan(means[0, 2])
    assert means[1].tolist() == [0.5, 2.5, 4.5]
    assert run_means(values[1], (0,) * 6).tolist() == [2.5]


@pytest.mark.parametrize("runs", [3, 6])
@pytest.mark.parametrize("session", [0.0, 0.02])
def test_before_and_after_over_several_runs_is_wrong_in_at_most_5_percent_of_campaigns(runs: int, session: float):
    random, campaigns = np.random.default_rng([runs, int(session * 100)]), 600
    run_of = np.repeat(np.arange(runs), BLOCKS)
    a, b = (run_means(side(random, campaigns, runs, session), run_of) for _ in range(2))
    wrong, covered = wrong_campaigns(a, b)
    assert binom.sf(wrong - 1, campaigns, LEVEL) > 0.001
    assert covered > 0.94


def test_launches_of_one_run_a_side_are_wrong_far_more_often_than_that_where_sessions_differ():
    random, campaigns = np.random.default_rng(3), 300
    a, b = (side(random, campaigns, 1, 0.02) for _ in range(2))
    wrong, _ = wrong_campaigns(a, b)
    assert binom.sf(wrong - 1, campaigns, 3 * LEVEL) < 0.01
