"""Autocorrelation, trend, and the hint at two modes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom

from fabricbench.statistics.dependence import (
    effective_samples,
    pooled_lag_one,
    side_autocorrelation,
    times_wider,
    trend,
)
from fabricbench.statistics.skew import has_two_modes, log_edges


def autoregression(random: np.random.Generator, count: int, correlation: float) -> np.ndarray:
    series = random.standard_normal(count)
    for step in range(1, count):
        series[step] = correlation * series[step - 1] + np.sqrt(1 - correlation**2) * series[step]
    return series


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_the_autocorrelation_of_signs_is_the_arcsine_law(correlation: float):
    series = np.exp(
        autoregression(np.random.default_rng(1), 40_000, correlation)
    )  # any monotone skewing changes nothing
    assert side_autocorrelation(series) == pytest.approx(2 / np.pi * np.arcsin(correlation), abs=0.02)


def test_effective_samples_predict_the_spread_of_a_launchs_median():
    random = np.random.default_rng(5)
    launches = [autoregression(random, 400, 0.6) for _ in range(400)]
    spread = np.std([np.median(one) for one in launches])
    effective = np.mean([effective_samples(400, side_autocorrelation(one)) for one in launches])
    assert spread == pytest.approx(np.sqrt(np.pi / 2 / effective), rel=0.15)
    assert effective_samples(100, -0.5) == 100


def test_a_trend_is_kendalls_exact_test_with_sens_slope():
    values = np.array([0.0, 0.02, 0.01, 0.04, 0.05, 0.03, 0.07, 0.08])
    found = trend(values)
    expected = stats.kendalltau(np.arange(8), values, method="exact")
    assert found is not None
    assert (found.tau, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.change == pytest.approx(7 * stats.theilslopes(values)[0])


def test_missing_blocks_keep_their_place_in_a_trend_and_few_blocks_give_none():
    found = trend(np.array([0.0, np.nan, 0.2, 0.3, np.nan, 0.5, 0.6]))
    assert found is not None
    assert found.change == pytest.approx(0.6)
    assert trend(np.array([0.0, 0.1, 0.2, 0.3])) is None
    assert trend(np.zeros(8)) is None


def histogram(values: np.ndarray) -> np.ndarray:
    return np.histogram(values, log_edges(values.min(), values.max(), 50))[0]


def test_two_modes_are_hinted_at_and_skew_or_chance_are_not():
    random = np.random.default_rng(9)
    for count in (200, 1000, 50_000):
        assert not has_two_modes(histogram(random.lognormal(3.0, 0.3, count)))
        assert not has_two_modes(histogram(10 + random.exponential(5.0, count)))
    both = np.concatenate([random.lognormal(3.0, 0.05, 700), random.lognormal(3.5, 0.05, 300)])
    assert has_two_modes(histogram(both))


def test_chance_makes_no_second_mode_in_two_thousand_cells():
    random = np.random.default_rng(10)
    assert sum(has_two_modes(histogram(random.lognormal(3.0, 0.05, 200))) for _ in range(2000)) <= 2


def test_edges_hold_their_range_also_where_all_samples_are_equal():
    assert log_edges(10.0, 1000.0, 2) == pytest.approx([10.0, 100.0, 1000.0])
    edges = log_edges(5.0, 5.0, 4)
    assert edges[0] < 5.0 < edges[-1]


def test_lag_one_over_cells_that_rise_and_fall_together_keeps_its_level():
    random = np.random.default_rng(11)
    p_values = []
    for _ in range(200):
        launches = random.normal(size=(1, 10)) + 0.3 * random.normal(size=(20, 10))  # 20 cells, far from 20 facts
        found = pooled_lag_one(launches)
        assert found is not None
        p_values.append(found.p_value)
    assert binom.sf(np.sum(np.array(p_values) < 0.05) - 1, 200, 0.05) > 0.001


def test_lag_one_finds_launches_that_resemble_the_one_before():
    random = np.random.default_rng(12)
    level = np.zeros(40)
    for launch in range(1, 40):
        level[launch] = 0.8 * level[launch - 1] + random.normal()
    found = pooled_lag_one(level + 0.3 * random.normal(size=(20, 40)))
    assert found is not None
    assert found.p_value < 0.01
    assert 0.4 < found.autocorrelation < 1.0


def test_the_largest_correlation_of_independent_launches_is_exceeded_once_in_twenty_times():
    random = np.random.default_rng(13)
    found = [pooled_lag_one(random.normal(size=(4, 12))) for _ in range(400)]
    exceeded = sum(one is not None and one.most < 0.0 for one in found)
    assert 0.001 < binom.cdf(exceeded, 400, 0.05) < 0.999


def test_the_interval_of_a_mean_is_as_much_wider_as_an_autoregression_asks_for():
    assert times_wider(0.0) == 1.0
    assert times_wider(0.6) == pytest.approx(2.0)


def test_lag_one_of_few_launches_counts_every_order_and_of_too_few_says_nothing():
    rising = pooled_lag_one(np.arange(6.0))
    assert rising is not None
    assert rising.p_value == pytest.approx(16 / 720)  # of the 720 orders so many have neighbours as alike
    assert pooled_lag_one(np.arange(4.0)) is None
    assert pooled_lag_one(np.ones((3, 8))) is None
    with_gaps = np.array([[1.0, np.nan, 3.0, 4.0, 5.0, 6.0]])
    assert pooled_lag_one(with_gaps) is not None
