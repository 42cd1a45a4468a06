"""Launches in two groups: found where they are, not where both sides drift together, and what a verdict does then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.simulation import Noise, Shape, noisier, simulate_launches
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.decision import Decision, shared_by
from fabricbench.statistics.ratios import Fitted
from fabricbench.statistics.skew import SlowModes, find_slow_modes, p_values_of_both, pooled, split_ratio, unseen_share

Floats = NDArray[np.float64]

CAMPAIGNS = 400
SHAPE = Shape(blocks=12, samples=0)


def modes_of_campaigns(seed: int, noise: Noise, shape: Shape = SHAPE) -> SlowModes:
    """Return what is found in campaigns, a comparison each, of launches pooled over their cells."""
    launches = simulate_launches(np.random.default_rng(seed), CAMPAIGNS, shape, noise)
    a, b = (np.concatenate([pooled(campaign[side]) for campaign in launches]) for side in (0, 1))
    return find_slow_modes(a, b)


def most(rate: float, trials: int = CAMPAIGNS) -> int:
    """Return how often an event of that rate happens at most, with 99.9 %."""
    return int(np.flatnonzero(special.bdtr(np.arange(trials + 1), trials, rate) >= 0.999)[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [
        Noise(),
        noisier(Noise(), 0.5),
        noisier(Noise(), 2.0),
        Noise(block_deviation=0.1, block_autocorrelation=0.95),
        Noise(fabric_drift=0.05),
    ],
    ids=["as measured", "half", "twice", "blocks drift by 10 %", "fabrics drift apart by 5 %"],
)
def test_symmetric_noise_raises_a_false_alarm_in_at_most_1_percent_of_campaigns(noise: Noise):
    for blocks in (6, 12):
        found = modes_of_campaigns(11, noise, replace(SHAPE, blocks=blocks))
        assert found.is_mixed.any(axis=0).sum() <= most(0.01)


def test_a_slow_mode_of_one_side_is_found_on_that_side_with_its_share_and_size():
    noise = replace(noisier(Noise(), 0.5), slow_share=(0.0, 0.1), slow_excess=0.3)
    found = modes_of_campaigns(12, noise, replace(SHAPE, blocks=29))
    assert found.is_mixed[1].mean() >= 0.9  # 29 launches meet such a mode with 95 %
    assert found.is_mixed[0].sum() <= most(0.01)
    assert np.nanmean(found.share[1]) == pytest.approx(0.1, abs=0.03)
    assert np.nanmean(found.slower[1]) == pytest.approx(0.3, abs=0.03)


def test_the_other_side_is_accused_when_the_sides_are_exchanged():
    log_a, log_b = np.tile([0.0, 0.01, -0.01, 0.005], 3), np.tile([0.002, -0.01, 0.01, 0.0], 3)
    log_b[[3, 8]] += 0.3
    forth, back = find_slow_modes(log_a, log_b), find_slow_modes(log_b, log_a)
    assert forth.is_mixed.ravel().tolist() == [False, True]
    assert back.is_mixed.ravel().tolist() == [True, False]
    assert back.share[0, 0] == forth.share[1, 0] == pytest.approx(2 / 12)


def test_a_machine_that_becomes_slower_between_two_launches_of_a_block_is_no_slow_mode():
    random = np.random.default_rng(3)
    log_a, log_b = random.normal(0.0, 0.01, (2, 12))
    log_a[6:] += 0.3
    log_b[5:] += 0.3
    assert find_slow_modes(log_a, log_b).p_value[0] < 0.01
    assert not find_slow_modes(log_a, log_b).is_mixed.any()


def test_missing_launches_and_constant_values_are_no_evidence():
    log_a = np.full((3, 8), np.nan)
    log_a[1] = 0.0
    log_a[2, :4] = [0.0, 0.01, 0.02, 0.9]
    found = find_slow_modes(log_a, np.zeros((3, 8)))
    assert not found.is_mixed.any()
    assert np.isnan(found.p_value).all()


def test_a_launch_is_pooled_over_its_cells_whatever_their_levels():
    cells = np.array([[1.0, 1.0, 1.3], [5.0, 5.0, 5.3], [9.0, np.nan, 9.3]])
    assert pooled(cells)[0] == pytest.approx([-0.05, 0.0, 0.25])
    assert np.isnan(pooled(np.full((2, 3), np.nan))).all()


def test_launches_that_see_nothing_may_have_missed_39_percent_by_six_and_10_by_twenty_nine():
    assert unseen_share(6) == pytest.approx(0.393, abs=1e-3)
    assert unseen_share(29) == pytest.approx(0.098, abs=1e-3)
    assert (1.0 - unseen_share(12)) ** 12 == pytest.approx(0.05)
    assert unseen_share(0) == 1.0


def two_groups(slow: float, others: float, counts: tuple[int, int]) -> tuple[Floats, NDArray[np.bool_]]:
    """Log ratios of two groups of launches that scatter by some hundredths, and which are slow."""
    scatter = np.tile([-0.01, 0.0, 0.01], 20)
    row = np.concatenate([slow + scatter[: counts[0]], others + scatter[: counts[1]]])
    return row, np.arange(row.size) < counts[0]


def test_a_group_of_one_launch_has_an_interval_by_the_deviation_within_both():
    row, is_slow = two_groups(0.69, 0.69 - 0.4, (1, 5))
    groups = split_ratio(row, is_slow)
    assert groups is not None
    slow, others = groups
    assert (slow.launches, others.launches, slow.freedom) == (1, 5, 4.0)
    assert slow.deviation == others.deviation == pytest.approx(np.sqrt(np.sum((row[1:] - row[1:].mean()) ** 2) / 4))
    assert shared_by(groups, 0.007, 0.02) is Decision.HIGHER


def test_what_was_fitted_to_the_launches_is_charged_to_both_groups():
    row, is_slow = two_groups(0.69, 0.29, (4, 8))
    free, charged = split_ratio(row, is_slow), split_ratio(row, is_slow, fitted=Fitted(3, 1.2))
    assert free is not None
    assert charged is not None
    assert (free[0].freedom, charged[0].freedom) == (10.0, 7.0)
    assert charged[0].deviation == pytest.approx(free[0].deviation * np.sqrt(10 / 7) * 1.2)
    assert charged[0].p_value() > free[0].p_value()


def test_two_groups_share_the_weaker_of_their_decisions_and_none_where_they_disagree():
    for slow, shared in ((0.3, Decision.HIGHER), (0.025, Decision.HIGHER_AHEAD), (-0.3, Decision.UNDECIDED)):
        groups = split_ratio(*two_groups(slow, 0.5, (6, 6)))
        assert groups is not None
        assert shared_by(groups, 0.01, 0.02) is shared


def test_of_both_groups_the_larger_p_value_counts_and_nothing_is_equivalent():
    row, is_slow = two_groups(0.05, 0.5, (3, 9))
    both, groups = p_values_of_both(row, is_slow, 0.02), split_ratio(row, is_slow)
    assert both is not None
    assert groups is not None
    assert both.zero[0] == groups[0].p_value() > groups[1].p_value()
    assert both.margin[0] > both.zero[0]
    assert both.equivalence[0] == 1.0
    apart = p_values_of_both(*two_groups(-0.05, 0.5, (3, 9)), 0.02)
    assert apart is not None
    assert (apart.zero[0], apart.margin[0]) == (1.0, 1.0)


def test_a_group_without_a_value_is_no_group():
    row, is_slow = two_groups(0.3, 0.5, (1, 5))
    row[0] = np.nan
    assert split_ratio(row, is_slow) is None
    assert p_values_of_both(row, is_slow, 0.02) is None
