"""The simulation of verdicts (`benchmarks.verdicts`): what it calls wrong, and that few campaigns of the plainest noise are."""

from __future__ import annotations

import numpy as np
import pytest

from support.verdict_campaigns import NOISES, run_campaign


@pytest.mark.parametrize("noise", NOISES)
def test_every_noise_gives_campaigns_that_the_first_screen_can_be_written_of(noise: str):
    run_campaign(np.random.default_rng(1), noise, 5, 1.1)


@pytest.mark.slow
def test_twice_as_fast_is_clear_beside_one_slow_mode_and_equal_fabrics_are_not_told_apart():
    random = np.random.default_rng(2)
    double = [run_campaign(random, "slow mode, both, 1 in 10", 6, 2.0) for _ in range(25)]
    assert sum(one.is_clear for one in double if one.is_one_sided) >= 0.95 * sum(one.is_one_sided for one in double)
    assert not any(one.is_wrong for one in double)
    equal = [run_campaign(random, "after b 5 % slower", 12, 1.0) for _ in range(25)]
    assert sum(one.is_wrong for one in equal) <= 4  # 58 % of them before orders were balanced


@pytest.mark.slow
def test_what_a_day_does_to_a_ratio_is_not_clear_and_twice_as_fast_on_both_days_is():
    random = np.random.default_rng(3)
    equal = [run_campaign(random, "2 days, 2 %", 12, 1.0) for _ in range(30)]
    assert sum(one.is_wrong for one in equal) <= 3  # a quarter of them while blocks counted as independent
    double = [run_campaign(random, "2 days, 2 %", 12, 2.0) for _ in range(30)]
    assert sum(one.is_clear for one in double) >= 27


@pytest.mark.parametrize("noise", ["1:1 runs, days 5 %", "1:3 runs, days 5 %", "imports, batches 5 %"])
def test_nothing_is_clear_of_a_single_run_or_batch_on_a_side(noise: str):
    random = np.random.default_rng(4)
    assert not any(run_campaign(random, noise, 12, 2.0).is_clear for _ in range(5))


@pytest.mark.parametrize("noise", ["2 days, 5 %, each row", "3 days, 5 %"])
def test_the_intervals_of_a_run_of_several_days_hold_the_ratio_of_other_days(noise: str):
    random = np.random.default_rng(8)
    assert sum(run_campaign(random, noise, 12, 1.0).is_held for _ in range(30)) >= 26  # 6 and 24 by blocks


@pytest.mark.parametrize("noise", ["1:1 runs, days 5 %", "imports, batches 5 %"])
def test_no_interval_is_shown_that_a_single_occasion_cannot_give(noise: str):
    random = np.random.default_rng(9)
    assert all(run_campaign(random, noise, 12, 1.0).is_held for _ in range(10))  # 1 of 10 held while one was


def test_a_late_switch_is_not_taken_for_a_slow_fabric():
    random = np.random.default_rng(10)
    assert (
        sum(run_campaign(random, "late switch on a, all frames", 12, 1.0).is_wrong for _ in range(10)) <= 1
    )  # 10 of 10


def test_the_intervals_of_one_run_against_three_hold_whatever_days_do():
    random = np.random.default_rng(5)
    assert sum(run_campaign(random, "1:3 runs, days 5 %", 6, 1.0).is_held for _ in range(30)) >= 27


def test_a_first_launch_that_is_slower_does_not_take_the_power_for_ten_per_cent():
    random = np.random.default_rng(6)
    found = [run_campaign(random, "first place 10 % slower", 12, 1.1) for _ in range(30)]
    assert sum(one.is_clear for one in found) >= 27  # 0 of them while it was in the scatter
    assert sum(one.is_held for one in found) >= 27
