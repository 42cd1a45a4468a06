"""What the whole procedure does on simulated campaigns: the promises of docs/statistics.md, held with fixed seeds.

A rate is judged by the number of campaigns that a true rate of what is promised exceeds once in a thousand such tests.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.characteristics import claims_characteristics, runs_characteristics
from benchmarks.simulation import LAB_NOISE, Noise, Shape, noisier, simulate_launches, simulate_runs
from scipy import special

from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES
from fabricbench.statistics.ratios import Assumption

pytestmark = pytest.mark.slow  # simulates many campaigns

CAMPAIGNS = 300
MEASURED = Noise()
HALF = noisier(MEASURED, 0.5)
QUIET = Noise(launch_deviation=0.005, cell_launch_deviation=0.005, sample_deviation=0.01)
NOISES = {
    "as measured": MEASURED,
    "the lab's": LAB_NOISE,
    "quiet": QUIET,
    "one side in ten launches slow": replace(HALF, slow_share=(0.0, 0.1)),
    "both sides in ten launches slow": replace(HALF, slow_share=(0.1, 0.1)),
    "slower by 30 % half-way": replace(HALF, step_excess=0.3),
    "sides drift apart": replace(MEASURED, fabric_drift=0.05),
    "blocks drift": Noise(block_deviation=0.1, block_autocorrelation=0.95),
}


def quick(blocks: int) -> Shape:
    return Shape(blocks=blocks, samples=0)


def holds(rate: float, promised: float, campaigns: int = CAMPAIGNS) -> bool:
    """Whether so many campaigns do not refute what was promised."""
    most = int(np.flatnonzero(special.bdtr(np.arange(campaigns + 1), campaigns, promised) >= 0.999)[0])
    return round(rate * campaigns) <= most


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_at_most_5_percent_of_headlines_are_wrong_whatever_the_truth(noise: Noise):
    for blocks in (6, 12):
        same = claims_characteristics(1, CAMPAIGNS, quick(blocks), noise)
        half = claims_characteristics(2, CAMPAIGNS, quick(blocks), noise, effect=0.5, differing_curves=3)
        below = claims_characteristics(3, CAMPAIGNS, quick(blocks), noise, effect=0.015)
        assert all(holds(one.headlines.wrong, 0.05) for one in (same, half, below))


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_tables_name_nobody_faster_where_the_truth_is_none_or_below_the_margin(noise: Noise):
    same = claims_characteristics(4, CAMPAIGNS, quick(12), noise)
    below = claims_characteristics(5, CAMPAIGNS, quick(12), noise, effect=0.015)
    assert holds(same.tables.wrong, 0.05)
    assert holds(below.tables.wrong_beyond, 0.05)


@pytest.mark.parametrize("noise", [MEASURED, HALF, QUIET, replace(QUIET, slow_share=(0.0, 0.1))])
def test_at_most_5_percent_of_campaigns_call_anything_equivalent_that_differs_by_more_than_the_margin(noise: Noise):
    for effect in (0.0, 0.0201):
        found = claims_characteristics(6, CAMPAIGNS, quick(EQUIVALENT_LAUNCHES), noise, effect=effect)
        assert holds(found.tables.wrong_equivalent, 0.05)
    # fewer launches would miss the slow mode altogether, so they show no equivalence however quiet it is
    assert claims_characteristics(6, 50, quick(12), noise).tables.equivalent == 0.0


def test_an_equivalence_is_found_where_it_is_quiet_enough():
    assert claims_characteristics(7, 100, quick(EQUIVALENT_LAUNCHES), QUIET).headlines.equivalent >= 0.95
    assert claims_characteristics(7, 100, quick(EQUIVALENT_LAUNCHES), HALF).headlines.equivalent >= 0.7


def test_twelve_blocks_say_who_is_ahead_by_5_percent_and_find_10_percent_beyond_the_margin():
    five = claims_characteristics(8, 200, quick(12), effect=0.05).tables
    ten = claims_characteristics(9, 200, quick(12), effect=0.10).tables
    assert five.ahead >= 0.80
    assert ten.beyond >= 0.95
    assert five.wrong == ten.wrong == 0.0


def test_intervals_cover_95_percent_of_true_means():
    for blocks in (6, 12):
        found = claims_characteristics(10, CAMPAIGNS, quick(blocks))
        assert 0.93 <= found.coverage <= 0.97
        assert 0.92 <= found.curve_coverage <= 0.98


def test_launch_values_drawn_at_once_fare_like_medians_of_simulated_samples():
    by_samples = claims_characteristics(11, 100, Shape(blocks=12), effect=0.05)
    at_once = claims_characteristics(11, 100, quick(12), effect=0.05)
    assert by_samples.tables.ahead == pytest.approx(at_once.tables.ahead, abs=0.05)
    assert 0.93 <= by_samples.coverage <= 0.97


def test_disturbed_launches_make_verdicts_rarer_never_wrong():
    found = claims_characteristics(12, CAMPAIGNS, quick(12), Noise(outlying_share=0.05))
    assert holds(found.tables.wrong, 0.05)
    assert found.coverage >= 0.93


def test_students_t_finds_more_than_signed_ranks_with_six_blocks():
    by_t = claims_characteristics(13, 60, quick(6), effect=0.05)
    by_rank = claims_characteristics(13, 60, quick(6), effect=0.05, assumption=Assumption.SYMMETRIC)
    assert by_t.tables.ahead > 1.4 * by_rank.tables.ahead


@pytest.mark.parametrize("session", [0.0, 0.01, 0.02])
def test_before_and_after_over_several_runs_are_wrong_in_at_most_5_percent(session: float):
    noise = replace(MEASURED, session_deviation=session)
    for runs in (3, 6):
        found = runs_characteristics(14, CAMPAIGNS, runs, quick(6), noise)
        assert holds(found.headlines.wrong, 0.05)
        assert holds(found.tables.wrong, 0.05)
        assert found.coverage >= 0.93


def test_one_run_a_side_takes_a_session_for_a_change():
    noise = replace(MEASURED, session_deviation=0.02)
    assert not holds(runs_characteristics(15, CAMPAIGNS, 1, quick(6), noise).headlines.wrong, 0.05)


def test_simulated_launches_have_the_noise_that_their_parameters_say():
    noise = Noise(cell_spread=0.0)
    values = simulate_launches(np.random.default_rng(1), 300, Shape(blocks=12, samples=40), noise)
    ratios = values[:, 1] - values[:, 0]
    launch = np.hypot(noise.launch_deviation, noise.cell_launch_deviation)
    assert values.std() == pytest.approx(np.hypot(launch, noise.block_deviation), rel=0.1)
    assert ratios.std() == pytest.approx(np.sqrt(2) * launch, rel=0.1)  # the drift of blocks cancels
    between_cells = np.corrcoef(ratios[:, 0].ravel(), ratios[:, 1].ravel())[0, 1]
    assert between_cells == pytest.approx((noise.launch_deviation / launch) ** 2, abs=0.12)


def test_the_labs_noise_is_15_percent_between_small_messages_and_a_tenth_of_it_in_bulk():
    values = simulate_launches(np.random.default_rng(2), 300, quick(12), LAB_NOISE)
    by_size = (values[:, 1] - values[:, 0]).reshape(300, 6, 6, 12).std(axis=(0, 1, 3))
    assert by_size[0] == pytest.approx(0.14, abs=0.01)
    assert by_size[-1] == pytest.approx(0.018, abs=0.004)


def test_an_effect_moves_the_second_side_by_what_was_asked():
    still = Noise(0.001, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    values = simulate_launches(np.random.default_rng(1), 5, Shape(blocks=6), still, np.log(1.05))
    assert np.exp(np.mean(values[:, 1] - values[:, 0])) == pytest.approx(1.05, rel=1e-3)


def test_a_slow_mode_a_step_and_sessions_do_what_their_parameters_say():
    still = Noise(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    random = np.random.default_rng(3)
    slow = simulate_launches(random, 400, quick(12), replace(still, slow_share=(0.0, 0.1)))
    assert slow[:, 0].max() == 0.0
    assert np.mean(slow[:, 1] > 0) == pytest.approx(0.1, abs=0.01)
    assert slow.max() == pytest.approx(np.log(1.3))
    assert replace(still, slow_share=(0.0, 0.1)).mean_shift == pytest.approx(0.1 * np.log(1.3))
    stepped = simulate_launches(random, 50, quick(12), replace(still, step_excess=0.3))
    torn = np.count_nonzero(stepped[:, 0, 0] != stepped[:, 1, 0], axis=1)
    assert set(torn.tolist()) == {0, 1}  # the moment lies within a block, or between two
    assert np.all(np.diff(stepped, axis=-1) >= 0)
    sessions = simulate_runs(random, 200, 3, quick(6), replace(still, session_deviation=0.02))
    assert sessions.shape == (200, 2, 3, 36, 6)
    assert sessions[..., 0, 0].std() == pytest.approx(0.02, rel=0.1)
    assert np.ptp(sessions, axis=(3, 4)).max() < 1e-12
