"""Ratios against scipy, closed forms and worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fabricbench.statistics.ratios import (
    Assumption,
    Rounding,
    paired_ratios,
    signed_rank_tail,
    student_one_sided,
    unpaired_ratios,
)

LOGS = np.array([0.031, 0.052, 0.048, 0.027, 0.064, 0.041])


def test_a_paired_ratio_is_students_t_on_logarithms():
    found = paired_ratios(LOGS)
    expected = stats.ttest_1samp(LOGS, 0.0)
    interval = expected.confidence_interval(0.95)
    assert found.p_value[0] == pytest.approx(expected.pvalue)
    assert (found.low[0], found.high[0]) == pytest.approx((np.exp(interval.low), np.exp(interval.high)))
    assert found.ratio[0] == pytest.approx(stats.gmean(np.exp(LOGS)))
    assert found.launches[0] == 6


def test_each_row_stands_for_itself_and_missing_blocks_are_left_out():
    rows = np.array([LOGS, [0.1, np.nan, 0.2, np.nan, 0.15, 0.12], np.full(6, np.nan)])
    found = paired_ratios(rows)
    alone = paired_ratios(np.array([0.1, 0.2, 0.15, 0.12]))
    assert found.launches.tolist() == [6, 4, 0]
    assert found.p_value[1] == pytest.approx(alone.p_value[0])
    assert np.isnan(found.ratio[2])
    assert np.isnan(found.p_value[2])


def test_two_blocks_give_a_ratio_but_neither_interval_nor_p_value():
    found = paired_ratios(np.array([0.1, 0.12]))
    assert found.ratio[0] == pytest.approx(np.exp(0.11))
    assert np.isnan(found.p_value[0])
    assert np.isnan(found.low[0])


def test_an_unpaired_ratio_is_welchs_t_on_logarithms():
    random = np.random.default_rng(3)
    a, b = random.normal(0.0, 0.02, 9), random.normal(0.05, 0.06, 6)
    found = unpaired_ratios(a, b)
    expected = stats.ttest_ind(b, a, equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert found.p_value[0] == pytest.approx(expected.pvalue)
    assert (found.low[0], found.high[0]) == pytest.approx((np.exp(interval.low), np.exp(interval.high)))
    assert found.degrees_of_freedom[0] == pytest.approx(expected.df)
    assert found.launches[0] == 6
    assert student_one_sided(np.log(found.ratio), found.log_standard_error, found.degrees_of_freedom)[
        0
    ] == pytest.approx(stats.ttest_ind(b, a, equal_var=False, alternative="greater").pvalue)


def test_the_signed_rank_distribution_is_wilcoxons():
    # 6 blocks: 64 equally likely sign patterns, so P(W <= 0) = 1/64; Wilcoxon's table gives P(W <= 2) = 3/64
    assert signed_rank_tail(6)[:4] == pytest.approx(np.array([1, 2, 3, 5]) / 64)
    assert signed_rank_tail(12)[-1] == pytest.approx(1.0)


def test_under_symmetry_the_p_value_is_the_exact_signed_rank_one():
    values = np.array([0.031, -0.012, 0.048, 0.027, 0.064, 0.041, -0.003, 0.019])
    found = paired_ratios(values, assumption=Assumption.SYMMETRIC)
    assert found.p_value[0] == pytest.approx(stats.wilcoxon(values, mode="exact").pvalue)
    walsh = [(x + y) / 2 for i, x in enumerate(values) for y in values[i:]]
    assert found.ratio[0] == pytest.approx(np.exp(np.median(walsh)))


def test_six_blocks_cannot_be_significant_by_signed_ranks_after_correction():
    assert paired_ratios(LOGS, assumption=Assumption.SYMMETRIC).p_value[0] == pytest.approx(2 / 64)


def test_an_outlying_launch_widens_the_t_interval_more_than_the_signed_rank_one():
    disturbed = np.append(np.tile(LOGS, 2), 1.0)
    by_t, by_rank = paired_ratios(disturbed), paired_ratios(disturbed, assumption=Assumption.SYMMETRIC)
    assert by_rank.p_value[0] < 0.01 < by_t.p_value[0]
    assert by_rank.high[0] < by_t.high[0]


def test_equal_medians_from_a_coarse_clock_are_not_certainty():
    equal = np.full(6, np.log(1.03))
    certain = paired_ratios(equal)
    floored = paired_ratios(equal, rounding=Rounding(deviation=0.03))
    assert certain.high[0] / certain.low[0] == pytest.approx(1.0)
    assert floored.high[0] / floored.low[0] > 1.05


def test_no_difference_at_all_is_a_ratio_of_one_with_p_one():
    found = paired_ratios(np.zeros(6))
    assert (found.ratio[0], found.low[0], found.high[0], found.p_value[0]) == (1.0, 1.0, 1.0, 1.0)


@given(
    st.lists(st.floats(-0.3, 0.3), min_size=4, max_size=14, unique=True),
    st.sampled_from([0.9, 0.95, 0.99]),
    st.sampled_from(list(Assumption)),
)
def test_interval_and_p_value_never_contradict_each_other(logs: list[float], confidence: float, way: Assumption):
    found = paired_ratios(np.array(logs), confidence, way)
    low, high, p_value = found.low[0], found.high[0], found.p_value[0]
    if np.isnan(low) or abs(p_value - (1 - confidence)) < 1e-9:
        return
    is_outside = not low - 1e-12 <= 1.0 <= high + 1e-12
    if is_outside:
        assert p_value < 1 - confidence
    if p_value < 1 - confidence - 1e-9:
        assert not low + 1e-12 < 1.0 < high - 1e-12


@given(st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=12))
def test_exchanging_the_sides_inverts_the_ratio_and_keeps_the_p_value(logs: list[float]):
    there, back = paired_ratios(np.array(logs)), paired_ratios(-np.array(logs))
    assert there.ratio[0] * back.ratio[0] == pytest.approx(1.0)
    assert there.low[0] * back.high[0] == pytest.approx(1.0)
    assert there.p_value[0] == pytest.approx(back.p_value[0])


def test_three_launches_against_thirty_keep_their_rate_of_error():
    random = np.random.default_rng(5)
    few, many = random.standard_normal((20_000, 3)), random.standard_normal((20_000, 30))
    p_values = unpaired_ratios(few, many).p_value
    assert np.mean(p_values < 0.05) <= 0.05  # 0.077 by Satterthwaite's estimate alone
    assert np.mean(p_values < 0.007) <= 0.007  # 0.028


@pytest.mark.parametrize(("few", "many"), [(1, 3), (1, 6), (2, 5)])
def test_a_side_of_one_or_two_runs_is_taken_to_scatter_as_the_other_and_keeps_its_rate_of_error(few: int, many: int):
    random = np.random.default_rng(6)
    sides = random.standard_normal((20_000, few)), random.standard_normal((20_000, many))
    assert np.isnan(unpaired_ratios(*sides).p_value).all()
    found = unpaired_ratios(*sides, is_alike=True)
    assert set(found.degrees_of_freedom) == {float(few + many - 2)}
    assert np.mean(found.p_value < 0.05) == pytest.approx(0.05, abs=0.006)
    assert np.mean((np.log(found.low) < 0) & (np.log(found.high) > 0)) == pytest.approx(0.95, abs=0.006)
    assert np.isnan(unpaired_ratios(sides[0][:, :2], sides[0][:, :2], is_alike=True).p_value).all()
