"""Corrected p-values against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fabricbench.statistics.correction import benjamini_hochberg, hochberg, holm


def test_adjusted_p_values_are_scipys():
    p_values = np.random.default_rng(2).uniform(size=57) ** 3
    assert benjamini_hochberg(p_values) == pytest.approx(stats.false_discovery_control(p_values, method="bh"))


def test_the_example_of_benjamini_and_hochberg_rejects_four_of_fifteen():
    # Section 3.2 of their paper: thrombolysis, 15 hypotheses
    p_values = np.array(
        [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
            0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0,
        ]
    )  # fmt: skip
    assert np.count_nonzero(benjamini_hochberg(p_values) <= 0.05) == 4


def test_a_comparison_without_a_test_stays_without_and_does_not_count():
    adjusted = benjamini_hochberg(np.array([0.01, np.nan, 0.04]))
    assert adjusted[[0, 2]] == pytest.approx([0.02, 0.04])
    assert np.isnan(adjusted[1])


def test_families_are_corrected_row_by_row():
    rows = np.array([[0.01, 0.5], [0.04, 0.03]])
    assert benjamini_hochberg(rows) == pytest.approx(np.array([[0.02, 0.5], [0.04, 0.04]]))


def test_holm_and_hochberg_follow_their_papers_steps():
    p_values = np.array([0.01, 0.04, np.nan, 0.03, 0.005])
    assert holm(p_values)[[0, 1, 3, 4]] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert hochberg(p_values)[[0, 1, 3, 4]] == pytest.approx([0.03, 0.04, 0.04, 0.02])
    assert np.isnan(holm(p_values)[2])
    assert np.isnan(hochberg(p_values)[2])


def test_holm_lets_any_wrong_claim_through_at_most_as_often_as_promised_where_half_the_tests_are_false():
    random = np.random.default_rng(9)
    z = random.standard_normal((4000, 12))
    z[:, 6:] += 5.0
    p_values = 2 * stats.norm.sf(np.abs(z))
    any_wrong = {
        name: np.mean((adjust(p_values)[:, :6] < 0.05).any(axis=1))
        for name, adjust in (("holm", holm), ("bh", benjamini_hochberg))
    }
    assert any_wrong["holm"] <= 0.06
    assert any_wrong["bh"] > 0.1
