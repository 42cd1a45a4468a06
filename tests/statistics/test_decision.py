"""Decisions and the number of blocks that would settle an open one."""

from __future__ import annotations

import numpy as np
import pytest

from fabricbench.statistics.decision import POWER, Decision, blocks_to_settle, decide
from fabricbench.statistics.ratios import paired_ratios


def noisy(centre: float, deviation: float, blocks: int) -> np.ndarray:
    """Log ratios with exactly that mean and standard deviation."""
    pattern = np.linspace(-1.0, 1.0, blocks)
    return np.log(centre) + deviation * pattern / pattern.std(ddof=1)


@pytest.mark.parametrize(
    ("centre", "deviation", "decision"),
    [
        (1.10, 0.01, Decision.HIGHER),
        (0.90, 0.01, Decision.LOWER),
        (1.005, 0.005, Decision.EQUIVALENT),
        (1.015, 0.0002, Decision.EQUIVALENT),  # certainly different, but by less than what matters
        (1.015, 0.012, Decision.UNDECIDED),  # different from 1, not within the margin, not beyond it
        (1.10, 0.5, Decision.UNDECIDED),
        (1.0, 0.1, Decision.UNDECIDED),
    ],
)
def test_a_decision_follows_from_interval_margin_and_corrected_p_value(
    centre: float, deviation: float, decision: Decision
):
    ratios = paired_ratios(noisy(centre, deviation, 12))
    assert decide(ratios, ratios.p_value, margin=0.02)[0] is decision


def test_the_correction_can_take_a_difference_back_but_never_an_equivalence():
    ratios = paired_ratios(np.stack([noisy(1.05, 0.03, 8), noisy(1.0, 0.005, 8)]))
    assert decide(ratios, ratios.p_value, 0.02).tolist() == [Decision.HIGHER, Decision.EQUIVALENT]
    assert decide(ratios, np.array([0.2, 1.0]), 0.02).tolist() == [Decision.UNDECIDED, Decision.EQUIVALENT]


def test_too_few_blocks_leave_everything_undecided():
    ratios = paired_ratios(np.array([0.5, 0.51]))
    assert decide(ratios, ratios.p_value, 0.02)[0] is Decision.UNDECIDED


@pytest.mark.parametrize(("centre", "margin"), [(1.03, 0.02), (1.005, 0.02)])
def test_the_blocks_asked_for_settle_it_about_as_often_as_promised(centre: float, margin: float):
    ratios = paired_ratios(noisy(centre, 0.04, 6))
    more = blocks_to_settle(ratios, ratios.p_value, margin)[0]
    random = np.random.default_rng(4)
    later = paired_ratios(random.normal(np.log(centre), 0.04, (4000, 6 + int(more))))
    settled = [one is not Decision.UNDECIDED for one in decide(later, later.p_value, margin)]
    assert POWER - 0.06 <= np.mean(settled) <= POWER + 0.08


def test_no_number_of_blocks_is_promised_where_the_ratio_sits_on_the_margin_or_noise_swamps_it():
    rows = np.stack([noisy(1.0 / 1.02, 0.02, 8), noisy(1.03, 3.0, 8)])
    ratios = paired_ratios(rows)
    more = blocks_to_settle(ratios, ratios.p_value, 0.02)
    assert np.isnan(more[1])
    assert more[0] >= 1 or np.isnan(more[0])


def test_a_harder_correction_asks_for_more_blocks():
    ratios = paired_ratios(noisy(1.04, 0.06, 8))
    assert blocks_to_settle(ratios, ratios.p_value * 20, 0.02)[0] > blocks_to_settle(ratios, ratios.p_value, 0.02)[0]
