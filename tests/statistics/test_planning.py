from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fabricbench.statistics import decision
from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES, Decision
from fabricbench.statistics.planning import (
    Components,
    best_cell_seconds,
    best_repetitions,
    blocks_for,
    components,
    detectable,
)
from fabricbench.statistics.ratios import paired_ratios

MARGIN = 0.02


def log_ratios(seed: int, rows: int, blocks: int, deviation: float, effect: float) -> np.ndarray:
    """Log ratios of a true difference with the deviation of a block, normal."""
    return np.log1p(effect) + deviation * np.random.default_rng(seed).standard_normal((rows, blocks))


@pytest.mark.parametrize("sides", [1, 2, 3])
def test_components_find_launch_and_batch_and_leave_out_what_a_block_shares(sides: int):
    random = np.random.default_rng(sides)
    blocks, batches, seconds = 3000, 4, 0.025
    values = random.normal(0, 0.05, (sides, blocks, 1)) + random.normal(0, 0.04, (sides, blocks, batches))
    if sides > 1:
        values = values + random.normal(0, 0.3, (1, blocks, 1)) + np.arange(sides)[:, None, None]
    found = components(values, seconds)
    assert found.launch == pytest.approx(0.05, rel=0.05)
    assert found.second == pytest.approx(0.04 * np.sqrt(seconds), rel=0.03)
    assert found.value(4 * seconds) == pytest.approx(np.sqrt(0.05**2 + 0.04**2 / 4), rel=0.05)


def test_components_do_without_batches_and_blocks_that_are_missing():
    values = np.random.default_rng(3).normal(0, 0.1, (2, 400, 4))
    values[0, ::5] = np.nan
    values[1, :, 3] = np.nan
    found = components(values, 0.1)
    assert found.launch < 0.03
    assert found.second == pytest.approx(0.1 * np.sqrt(0.1), rel=0.05)
    assert np.isnan(components(values[:, :1], 0.1).launch)


def test_the_best_number_of_repetitions_is_that_of_kalibera_and_jones():
    # Starting costs 100 times as much as an iteration, and varies four times as much: sqrt(100 / 4) iterations.
    assert best_repetitions((1.0, 100.0), (1.0, 4.0)) == 5.0
    assert best_repetitions((1.0, 100.0), (1.0, 0.0)) == np.inf


@pytest.mark.parametrize("noise", [Components(0.03, 0.009), Components(0.085, 0.028), Components(0.003, 0.006)])
def test_no_other_length_of_a_cell_gives_a_smaller_variance_for_the_same_budget(noise: Components):
    overhead = 0.04
    best = best_cell_seconds(noise, overhead, least_seconds=0.001)
    seconds = np.geomspace(0.001, 10, 400)

    def variance(length: float) -> float:
        return noise.value(length) ** 2 * (overhead + length)

    assert variance(best) <= min(variance(each) for each in seconds)
    assert best_cell_seconds(noise, overhead, least_seconds=5.0) == 5.0
    assert best_cell_seconds(noise, overhead, least_seconds=0.001, most_seconds=0.002) == 0.002


@pytest.mark.parametrize(("blocks", "tests"), [(6, 1), (16, 50), (44, 112)])
def test_a_detectable_difference_is_called_in_four_of_five_campaigns(blocks: int, tests: int):
    found = detectable(0.08, blocks, MARGIN, tests=tests)
    level = 0.05 / tests  # what Benjamini and Hochberg ask of one that differs alone
    beyond = paired_ratios(log_ratios(blocks, 20_000, blocks, 0.08, float(found.beyond)))
    assert np.mean(decision.p_values_of(beyond, MARGIN).margin < level) == pytest.approx(0.8, abs=0.012)
    ahead = paired_ratios(log_ratios(blocks + 1, 20_000, blocks, 0.08, float(found.ahead)))
    assert np.mean(ahead.p_value < level) == pytest.approx(0.8, abs=0.012)


def test_a_detectable_difference_agrees_with_the_noncentral_t_distribution():
    found = detectable(0.05, 12, MARGIN, tests=20)
    distance = (np.log1p(found.beyond) - np.log1p(MARGIN)) * np.sqrt(12) / 0.05
    assert stats.nct.sf(stats.t.isf(0.05 / 20 / 2, 11), 11, distance) == pytest.approx(0.8, abs=1e-4)


def test_more_blocks_find_less_and_more_comparisons_ask_for_more():
    by_blocks = detectable(0.05, np.array([2, 4, 5, 6, 30]), MARGIN).beyond
    assert list(by_blocks[:2]) == [np.inf, np.inf]  # fewer than five pairs decide nothing
    assert np.all(np.diff(by_blocks[2:]) < 0)
    alone, among = (detectable(0.05, 12, MARGIN, tests=50, differing=each) for each in (1, 50))
    assert alone.beyond > among.beyond > detectable(0.05, 12, MARGIN).beyond
    assert alone.ahead < alone.beyond


def test_blocks_for_is_the_inverse_of_detectable():
    needed = blocks_for(0.1, 0.08, MARGIN, tests=50)
    for blocks, name in ((needed.beyond, "beyond"), (needed.ahead, "ahead")):
        enough, short = (float(getattr(detectable(0.08, blocks - less, MARGIN, tests=50), name)) for less in (0, 1))
        assert enough <= 0.1 < short
    assert blocks_for(0.02, 0.08, MARGIN).beyond == np.inf, "what is no larger than the margin is never beyond it"


def test_equivalence_takes_its_blocks_and_never_less_than_a_rare_mode_asks_for():
    assert blocks_for(0.1, 0.001, MARGIN).equivalent == EQUIVALENT_LAUNCHES
    needed = int(blocks_for(0.1, 0.04, MARGIN).equivalent)
    decided = []
    for blocks in (needed - 8, needed):
        ratios = paired_ratios(log_ratios(5, 4000, blocks, 0.04, 0.0))
        decided.append(
            np.mean(decision.decide(ratios, decision.p_values_of(ratios, MARGIN), MARGIN) == Decision.EQUIVALENT)
        )
    assert decided[0] < 0.8 < decided[1] + 0.02


@pytest.mark.parametrize("blocks", [6, 12])
def test_where_all_differ_four_of_five_are_found_as_the_correction_counts_only_what_is_found(blocks: int):
    tests, campaigns = 40, 200
    effect = float(detectable(0.03, blocks, MARGIN, confidence=0.96, tests=tests, differing=tests).beyond)
    ratios = paired_ratios(log_ratios(blocks, campaigns * tests, blocks, 0.03, effect), 0.96)
    raw = decision.p_values_of(ratios, MARGIN)
    of_campaign = decision.PValues(
        *(each.reshape(campaigns, tests) for each in (raw.zero, raw.margin, raw.equivalence))
    )
    codes = decision.decision_codes(ratios, decision.corrected(of_campaign), MARGIN, 0.96)
    assert np.mean(codes == decision.HIGHER) == pytest.approx(0.8, abs=0.03)
