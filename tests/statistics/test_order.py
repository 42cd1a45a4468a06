"""Quantile intervals against tables, scipy and simulated coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fabricbench.statistics.order import enclosing_ranks, median_interval


@pytest.mark.parametrize(
    ("count", "ranks"),
    [(5, None), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (12, (3, 10)), (15, (4, 12)), (20, (6, 15)), (25, (8, 18))],
)
def test_ranks_of_the_median_are_those_of_the_printed_tables(count: int, ranks: tuple[int, int] | None):
    # Le Boudec (2010), table A.1; Conover (1999), table A3
    assert enclosing_ranks(count, 0.5, 0.95) == ranks


@pytest.mark.parametrize("probability", [0.05, 0.25, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("count", [30, 100, 1000])
def test_enclosing_ranks_cover_at_least_what_was_asked_and_cannot_be_narrower(probability: float, count: int):
    ranks = enclosing_ranks(count, probability, 0.95)
    if ranks is None:
        assert probability**count > 0.025 or (1 - probability) ** count > 0.025
        return
    low, high = ranks
    assert stats.binom.cdf(low - 1, count, probability) <= 0.025 < stats.binom.cdf(low, count, probability)
    assert stats.binom.sf(high - 1, count, probability) <= 0.025 < stats.binom.sf(high - 2, count, probability)


def test_the_interpolated_interval_by_hand():
    # n = 12: ranks 3 and 10 hold 0.96143, ranks 4 and 9 hold 0.85400; share = 0.01143 / 0.10743 = 0.10637,
    # weight = 9 * 0.10637 / (3 + 6 * 0.10637) = 0.26313
    estimate = median_interval(np.arange(1.0, 13.0))
    assert estimate.value == 6.5
    assert estimate.low == pytest.approx(3.26313, abs=2e-5)
    assert estimate.high == pytest.approx(10 - 0.26313, abs=2e-5)


def test_five_launches_are_too_few_for_a_median_interval_at_95_percent_but_not_at_90():
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert median_interval(values).low is None
    assert median_interval(values).value == 3.0
    assert median_interval(values, 0.90).low is not None


def test_nothing_measured_gives_no_number():
    assert np.isnan(median_interval(np.array([np.nan])).value)


@pytest.mark.parametrize("count", [6, 7, 8, 10, 12, 24])
def test_the_interval_of_the_median_covers_93_to_97_percent_of_skewed_launches(count: int):
    random = np.random.default_rng(7)
    intervals = [median_interval(row) for row in random.lognormal(0.0, 1.0, (4000, count))]
    covered = np.mean(
        [one.low is not None and one.high is not None and one.low <= 1.0 <= one.high for one in intervals]
    )
    assert 0.93 <= covered <= 0.97
