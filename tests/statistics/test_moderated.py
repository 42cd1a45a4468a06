"""The moderated t: what variances have in common, and that its p-values are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from fabricbench.statistics.moderated import MOST_FREEDOM, common_variance, moderated_exceeding
from fabricbench.statistics.ratios import Rounding, exceeding


def test_variances_that_differ_by_chance_alone_are_one():
    random = np.random.default_rng(1)
    variances = 0.0004 * random.chisquare(9, 2000) / 9
    found = common_variance(variances, np.full(2000, 9.0))
    assert found.freedom == MOST_FREEDOM
    assert found.variance == pytest.approx(0.0004, rel=0.05)


@pytest.mark.parametrize("freedom", [2.0, 6.0, 15.0])
def test_the_degrees_of_freedom_of_what_variances_share_come_out(freedom: float):
    random = np.random.default_rng(2)
    true = 0.01 * freedom / random.chisquare(freedom, 20_000)
    found = common_variance(true * random.chisquare(9, 20_000) / 9, np.full(20_000, 9.0))
    assert found.freedom == pytest.approx(freedom, rel=0.1)
    assert found.variance == pytest.approx(0.01, rel=0.1)


def test_few_comparisons_have_their_own_variance_alone():
    rows = np.random.default_rng(3).normal(0.05, 0.02, (5, 8))
    assert moderated_exceeding(rows, 0.02) == pytest.approx(exceeding(rows, 0.02))


def test_p_values_at_the_edge_of_the_margin_are_uniform_where_scales_differ():
    random = np.random.default_rng(4)
    below = []
    for _ in range(300):
        scale = 0.02 * np.exp(random.uniform(-0.5, 0.5, (60, 1)))
        p_values = moderated_exceeding(np.log(1.02) + scale * random.standard_normal((60, 10)), 0.02)
        below += [p_values < level for level in (0.05, 0.001)]
    assert np.mean(below[::2]) == pytest.approx(0.05, abs=0.006)
    assert np.mean(below[1::2]) <= 0.002


def test_what_was_not_measured_and_what_rounding_leaves_possible():
    rows = np.full((9, 6), np.log(1.1)) + 1e-4 * np.random.default_rng(5).standard_normal((9, 6))
    rows[0, 2:] = np.nan
    p_values = moderated_exceeding(rows, 0.02)
    assert np.isnan(p_values[0])
    assert p_values[1:].max() < 1e-6
    assert moderated_exceeding(rows, 0.02, Rounding.of(0.2))[1:].min() > 0.5
