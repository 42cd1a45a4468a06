"""What printed digits and the ticks of a clock may hide is in every interval, p-value and decision, and does not average out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fabricbench.statistics.decision import (
    EQUIVALENT,
    HIGHER,
    HIGHER_AHEAD,
    LOWER,
    LOWER_AHEAD,
    UNDECIDED,
    Decision,
    LogRatio,
    blocks_to_settle,
    decision_codes,
    is_unresolved,
    p_values_of,
    shared_by,
)
from fabricbench.statistics.gate_power import blocks_to_decide, caught_with_power, chance_to_pass, passed_with_power
from fabricbench.statistics.order import median_interval
from fabricbench.statistics.ratios import Assumption, Ratios, Rounding, paired_ratios, unpaired_ratios
from fabricbench.statistics.scores import chances_of_first, mean_draws, pair_tests, share_of_no_difference
from fabricbench.statistics.skew import split_ratio

Floats = NDArray[np.float64]

CAMPAIGNS = 600


def rounded(values: Floats, step: float) -> Floats:
    return np.maximum(np.rint(values / step) * step, step)


def campaigns(true: float, scatter: float, step: float, launches: int, seed: int, level: float = 0.204) -> Ratios:
    """Campaigns of launches on a and on b, `true` times as long there, of which `step` is the last digit that is printed."""
    random = np.random.default_rng(seed)
    shape = (CAMPAIGNS, launches)
    # Every campaign at a level of its own: where in a digit the truth lies decides what rounding does to it.
    levels = level * (1 + random.uniform(-0.05, 0.05, (CAMPAIGNS, 1)))
    a, b = (rounded(levels * factor * np.exp(random.normal(0, scatter, shape)), step) for factor in (1.0, true))
    shares = np.array([np.mean(step / a, axis=1), np.mean(step / b, axis=1)])
    rounding = Rounding.of(shares[0]).against(Rounding.of(shares[1]))
    return paired_ratios(np.log(b) - np.log(a), rounding=rounding)


@pytest.mark.parametrize("launches", [3, 6, 12, 32])
@pytest.mark.parametrize("scatter", [0.0, 0.003, 0.01, 0.04])
@pytest.mark.parametrize("step", [0.01, 0.001], ids=["two digits", "three digits"])
def test_equal_fabrics_are_hardly_ever_told_apart_by_rounded_values_however_many_launches(
    launches: int, scatter: float, step: float
):
    found = campaigns(1.0, scatter, step, launches, seed=launches)
    codes = decision_codes(found, p_values_of(found, 0.02), 0.02)
    wrong = np.isin(codes, (LOWER, HIGHER, LOWER_AHEAD, HIGHER_AHEAD))
    assert wrong.mean() <= 0.05
    assert np.mean((found.low <= 1.0) & (found.high >= 1.0)) >= 0.95


@pytest.mark.parametrize("launches", [3, 6, 12, 32])
@pytest.mark.parametrize("true", [1.01, 1.02, 1.05])
def test_intervals_of_rounded_values_hold_the_ratio_and_nothing_is_called_what_it_is_not(launches: int, true: float):
    found = campaigns(true, 0.01, 0.01, launches, seed=launches)
    assert np.mean((found.low <= true) & (found.high >= true)) >= 0.95
    codes = decision_codes(found, p_values_of(found, 0.02), 0.02)
    wrong = (
        np.isin(codes, (LOWER, LOWER_AHEAD))
        | ((codes == HIGHER) & (true <= 1.02))
        | ((codes == EQUIVALENT) & (true > 1.02))
    )
    assert wrong.mean() <= 0.05


def test_without_the_rounding_more_launches_make_it_worse():
    """What was wrong: a true 1 %, of which two digits are printed, became "faster" the surer the more launches there were."""
    random = np.random.default_rng(1)
    share = []
    for launches in (6, 32):
        levels = 0.2 * (1 + random.uniform(-0.2, 0.2, (CAMPAIGNS, 1)))
        a, b = (rounded(levels * f * np.exp(random.normal(0, 0.005, (CAMPAIGNS, launches))), 0.01) for f in (1.0, 1.01))
        found = paired_ratios(np.log(b) - np.log(a))
        share.append(np.mean(np.isin(decision_codes(found, p_values_of(found, 0.02), 0.02), (LOWER, HIGHER))))
        bound = Rounding.of(np.mean(0.01 / a, axis=1)).against(Rounding.of(np.mean(0.01 / b, axis=1)))
        right = paired_ratios(np.log(b) - np.log(a), rounding=bound)
        assert np.mean(np.isin(decision_codes(right, p_values_of(right, 0.02), 0.02), (LOWER, HIGHER))) <= 0.05
    assert share[1] > max(share[0], 0.05)


def test_each_end_is_moved_out_by_half_a_digit_of_each_side_and_never_less():
    exact = 0.5 * (0.01 / 0.15 + 0.01 / 0.16)
    for launches in (4, 400):
        found = paired_ratios(np.full(launches, np.log(0.16 / 0.15)), rounding=of_two(0.15, 0.16, 0.01))
        assert np.log(found.high[0] / found.ratio[0]) > exact
        assert np.log(found.ratio[0] / found.low[0]) > exact
        assert found.p_value[0] == 1.0
    assert np.log(found.high[0] / found.ratio[0]) < 1.1 * exact


def of_two(a: float, b: float, step: float) -> Rounding:
    return Rounding.of(step / a).against(Rounding.of(step / b))


def test_equal_prints_are_no_certainty():
    alike = np.log(np.full((1, 4), 1.0))
    found = paired_ratios(alike, rounding=of_two(0.01, 0.01, 0.01))
    assert found.low[0] < 1 / 3
    assert found.high[0] > 3
    assert found.p_value[0] == 1.0


@pytest.mark.parametrize("way", list(Assumption))
def test_interval_and_p_value_agree_with_rounding_too(way: Assumption):
    random = np.random.default_rng(5)
    rows = random.normal(0.03, 0.03, (300, 9))
    found = paired_ratios(rows, 0.95, way, Rounding(0.0, 0.02))
    is_outside = (found.low > 1.0) | (found.high < 1.0)
    assert np.array_equal(is_outside, found.p_value < 0.05)
    plain = paired_ratios(rows, 0.95, way)
    assert np.all(found.p_value >= plain.p_value)
    assert np.allclose(np.log(plain.low / found.low), 0.02)


def test_of_independent_sides_the_bound_is_no_smaller():
    random = np.random.default_rng(6)
    a, b = random.normal(0, 0.01, (2, 5, 8))
    plain, found = unpaired_ratios(a, b), unpaired_ratios(a, b, rounding=Rounding(0.0, 0.05))
    assert np.allclose(np.log(found.high / plain.high), 0.05)


def test_what_rounding_alone_leaves_open_is_told_and_no_launches_are_promised():
    rows = np.log(np.stack([np.full(6, 0.16 / 0.15), np.full(6, 1.003), np.full(6, 1.2)])) + np.tile([1e-3, -1e-3], 3)
    bounds = Rounding(np.full(3, 1e-3), np.array([0.0656, 0.004, 0.0656]))
    found = paired_ratios(rows, rounding=bounds)
    assert is_unresolved(found, 0.02).tolist() == [True, False, False]
    tests = p_values_of(found, 0.02)
    more = blocks_to_settle(found, tests, tests, 0.02)
    assert np.isnan(more[0])
    assert more[1] >= 1
    codes = decision_codes(found, tests, 0.02)
    assert codes.tolist() == [UNDECIDED, UNDECIDED, HIGHER]


def test_a_log_ratio_of_the_first_screen_has_it_as_well():
    plain = LogRatio(0.06, 0.001, 6, 5.0)
    coarse = LogRatio(0.06, 0.001, 6, 5.0, rounding_bound=0.0656)
    assert plain.decide(0.05, 0.02).name == "HIGHER"
    assert coarse.decide(0.05, 0.02).name == "UNDECIDED"
    assert coarse.is_unresolved(0.02)
    assert not plain.is_unresolved(0.02)
    assert plain.is_at_least(0.05, 0.05)
    assert not coarse.is_at_least(0.05, 0.05)
    assert coarse.bounds(0.05)[0] == pytest.approx(plain.bounds(0.05)[0] - 0.0656)


def test_both_groups_of_launches_have_it_as_well():
    row, is_slow = np.full(8, 0.06), np.arange(8) < 2
    for bound, decision in ((0.0, Decision.HIGHER), (0.05, Decision.HIGHER_AHEAD), (0.07, Decision.UNDECIDED)):
        groups = split_ratio(row, is_slow, Rounding(1e-6, bound))
        assert groups is not None
        assert shared_by(groups, 0.05, 0.02) is decision


def test_a_median_of_one_side_is_moved_out_by_half_a_digit():
    found = median_interval(np.full(8, 0.15), rounding=Rounding.of(0.01 / 0.15))
    assert (found.low, found.high) == (pytest.approx(0.145), pytest.approx(0.15 / 0.145 * 0.15))


def test_a_gate_neither_passes_nor_fails_by_what_digits_hide():
    deviation, bound = np.array([0.01]), np.array([0.06])
    assert chance_to_pass(deviation, 0.05, 0.95, 12)[0] > 0.99
    assert chance_to_pass(deviation, 0.05, 0.95, 12, bound=bound)[0] == 0.0
    assert blocks_to_decide(deviation, 0.05, 0.95, 1, bound=bound) is None
    caught = caught_with_power(deviation, 12, 0.05, 0.95, 1)
    assert caught_with_power(deviation, 12, 0.05, 0.95, 1, bound)[0] == pytest.approx(caught[0] * np.exp(0.06))
    passed = passed_with_power(deviation, 12, 0.05, 0.95)
    assert passed_with_power(deviation, 12, 0.05, 0.95, bound)[0] == pytest.approx(passed[0] * np.exp(-0.06))


def test_nobody_is_first_or_pays_by_what_digits_hide():
    logs = np.log(np.array([[1.0, 0.20 / 0.21]] * 4))
    rounding = Rounding.of(np.array([0.01 / 0.20, 0.01 / 0.21]))
    tests = pair_tests(logs, rounding)
    assert tests.adjusted[0] == 1.0
    draws = mean_draws(logs, rounding)
    assert draws is not None
    chances = chances_of_first(draws, rounding)
    assert chances.sum() == pytest.approx(1.0)
    assert 0.5 <= chances[0] < 0.8
    ahead, behind = np.full(6, 0.04), np.full(6, -0.04)
    wave = np.tile([1e-4, -1e-4], 3)
    assert share_of_no_difference(ahead + wave, behind - wave, 0.0) is not None
    coarse = Rounding(0.0, 0.05)
    assert share_of_no_difference(ahead + wave, behind - wave, 0.0, rounding=(coarse, coarse)) is None
