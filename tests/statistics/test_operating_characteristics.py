"""What the whole procedure does on simulated campaigns: the promises of docs/statistics.md, held with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest

from fabricbench.statistics.ratios import Assumption
from fabricbench.statistics.simulation import Noise, Shape, operating_characteristics, simulate_launch_medians

CAMPAIGNS = 2000


@pytest.mark.parametrize("blocks", [6, 12])
def test_at_most_5_percent_of_2000_campaigns_without_a_difference_give_a_verdict_and_intervals_cover(blocks: int):
    found = operating_characteristics(20260101, CAMPAIGNS, Shape(blocks=blocks))
    assert found.wrong_campaigns <= 0.05
    assert 0.93 <= found.coverage <= 0.97
    assert 0.93 <= found.curve_coverage <= 0.97


def test_twelve_blocks_find_at_least_80_percent_of_differences_of_5_percent():
    found = operating_characteristics(20260102, CAMPAIGNS, Shape(blocks=12), effect=0.05)
    assert found.found >= 0.80
    assert found.wrong_campaigns <= 0.001
    assert 0.93 <= found.coverage <= 0.97


def test_where_one_curve_differs_few_of_the_others_are_called_different():
    found = operating_characteristics(20260103, 1000, Shape(blocks=12), effect=0.05, differing_curves=1)
    assert found.found >= 0.55
    assert found.wrong_decisions <= 0.02


def test_quiet_machines_reach_equivalence():
    quiet = Noise(launch_deviation=0.005, cell_launch_deviation=0.005, sample_deviation=0.01)
    found = operating_characteristics(20260104, 500, Shape(blocks=12), quiet)
    assert found.equivalent >= 0.80
    assert found.wrong_campaigns <= 0.05


def test_disturbed_launches_make_verdicts_rarer_never_wrong():
    disturbed = Noise(outlying_share=0.05)
    found = operating_characteristics(20260105, 1000, Shape(blocks=12), disturbed)
    assert found.wrong_campaigns <= 0.05
    assert found.coverage >= 0.93


def test_students_t_finds_more_than_signed_ranks_with_six_blocks():
    by_t = operating_characteristics(7, 150, Shape(blocks=6), effect=0.05)
    by_rank = operating_characteristics(7, 150, Shape(blocks=6), effect=0.05, assumption=Assumption.SYMMETRIC)
    assert by_t.found > 1.4 * by_rank.found


def test_simulated_launches_have_the_noise_that_their_parameters_say():
    shape = Shape(blocks=12, samples=40)
    noise = Noise(cell_spread=0.0)
    medians = simulate_launch_medians(np.random.default_rng(1), 300, shape, noise)
    ratios = medians[:, 1] - medians[:, 0]
    launch = np.hypot(noise.launch_deviation, noise.cell_launch_deviation)
    assert medians.std() == pytest.approx(np.hypot(launch, noise.block_deviation), rel=0.1)
    assert ratios.std() == pytest.approx(np.sqrt(2) * launch, rel=0.1)  # the drift of blocks cancels
    between_cells = np.corrcoef(ratios[:, 0].ravel(), ratios[:, 1].ravel())[0, 1]
    assert between_cells == pytest.approx((noise.launch_deviation / launch) ** 2, abs=0.12)


def test_an_effect_moves_the_second_side_by_what_was_asked():
    quiet = Noise(0.001, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    medians = simulate_launch_medians(np.random.default_rng(1), 5, Shape(blocks=6), quiet, np.log(1.05))
    assert np.exp(np.mean(medians[:, 1] - medians[:, 0])) == pytest.approx(1.05, rel=1e-3)
