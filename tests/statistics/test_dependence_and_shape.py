"""Autocorrelation, trend, and the hint at two modes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fabricbench.statistics.dependence import effective_samples, side_autocorrelation, trend
from fabricbench.statistics.shape import has_two_modes, log_edges


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
