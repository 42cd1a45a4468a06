"""The interval of a proportion against published values and its exact coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fabricbench.statistics.proportion import clustered_interval, exact_p_value, wilson_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_the_interval_is_the_published_one(successes: int, trials: int, low: float, high: float):
    """81 of 263: Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17 (1998)."""
    found = wilson_interval(successes, trials)
    assert found.value == successes / trials
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.9885])
def test_it_covers_about_what_is_asked_for(share: float):
    trials = 400
    counts = np.arange(trials + 1)
    inside = [(one := wilson_interval(int(count), trials)).low <= share <= one.high for count in counts]
    assert float(stats.binom.pmf(counts, trials, share)[inside].sum()) == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (3, 2), (-1, 4)])
def test_what_is_no_proportion_is_refused(successes: int, trials: int):
    with pytest.raises(ValueError, match="needed at least one trial"):
        wilson_interval(successes, trials)


def test_the_same_trials_repeated_are_no_more_trials():
    one = wilson_interval(39, 40)
    for launches in (1, 5, 12):
        assert clustered_interval([39] * launches, [40] * launches) == one


def test_clusters_that_differ_by_more_than_chance_tell_less():
    """One of twelve clusters fails whole: about as one failure of twelve trials does."""
    found, trials = clustered_interval([40] * 11 + [0], [40] * 12), wilson_interval(11, 12)
    assert found.value == pytest.approx(11 / 12)
    assert found.low is not None
    assert trials.low is not None
    assert trials.low - 0.06 < found.low < trials.low


def test_clusters_without_a_trial_are_refused():
    with pytest.raises(ValueError, match="needed at least one trial"):
        clustered_interval([], [])


def test_failures_on_one_side_alone_are_more_than_chance_from_as_many_as_fisher_says():
    assert exact_p_value((6, 0), (12, 12)) == pytest.approx(0.01373, abs=1e-5)
    assert exact_p_value((0, 6), (12, 12)) == exact_p_value((6, 0), (12, 12))
    assert exact_p_value((3, 3), (12, 12)) == pytest.approx(1.0)
    assert exact_p_value((0, 0), (5, 8)) == 1.0
    assert exact_p_value((1, 7), (8, 10)) == pytest.approx(stats.fisher_exact([[1, 7], [7, 3]]).pvalue)
