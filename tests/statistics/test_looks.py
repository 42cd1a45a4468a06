"""Looking more than once keeps the error that was promised: by arithmetic, and in simulated campaigns without any difference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fabricbench.statistics.correction import FIRST_SHARE, level_of_look, spent_alpha

ALPHA = 0.05
CELLS = 36
CAMPAIGNS = 3000
Floats = NDArray[np.float64]


def test_spending_begins_near_nothing_ends_with_everything_and_never_goes_back():
    shares = np.linspace(0.0, 1.0, 50)
    spent = [spent_alpha(share, ALPHA) for share in shares]
    assert spent[0] == 0.0
    assert spent_alpha(0.25, ALPHA) < 1e-4
    assert spent[-1] == pytest.approx(ALPHA)
    assert spent_alpha(3.0, ALPHA) == pytest.approx(ALPHA)
    assert np.all(np.diff(spent) >= 0)


def test_spending_is_that_of_the_published_table():
    # One-sided 0.025 at half of the information: 2 (1 - Phi(2.2414 / sqrt(0.5))) = 0.00153 (Lan and DeMets 1983).
    assert spent_alpha(0.5, ALPHA) == pytest.approx(2 * 0.00153, rel=0.01)


@pytest.mark.parametrize("most", [None, 60])
def test_all_looks_together_spend_no_more_than_there_is(most: int | None):
    looks = list(range(6, 61))
    levels = [level_of_look(looks[: n + 1], ALPHA, most=most) for n in range(len(looks))]
    assert all(level >= 0 for level in levels)
    assert sum(levels) == pytest.approx(ALPHA)


def test_a_run_that_is_never_extended_pays_a_fifth_and_one_declared_final_nothing():
    assert level_of_look([6], ALPHA) == pytest.approx(FIRST_SHARE * ALPHA)
    assert level_of_look([6], ALPHA, is_final=True) == ALPHA
    with pytest.raises(ValueError, match="leaves nothing for another"):
        level_of_look([6, 12], ALPHA, is_final=True)


def test_looking_twice_at_the_same_blocks_is_one_look():
    assert level_of_look([6, 6, 12, 12], ALPHA) == level_of_look([6, 12], ALPHA)


@pytest.mark.parametrize("looks", [[], [12, 6], [0, 6]])
def test_looks_that_cannot_be_are_refused(looks: list[int]):
    with pytest.raises(ValueError, match="ascending"):
        level_of_look(looks, ALPHA)


def log_ratios(seed: int, campaigns: int, shared: float) -> Floats:
    """Campaigns of 36 cells and 30 blocks without any difference; `shared` of a launch's variance is common to its cells."""
    random = np.random.default_rng(seed)
    own = random.standard_normal((campaigns, CELLS, 30))
    return np.sqrt(1 - shared) * own + np.sqrt(shared) * random.standard_normal((campaigns, 1, 30))


def p_values(ratios: Floats, blocks: int) -> Floats:
    seen = ratios[:, :, :blocks]
    t = seen.mean(-1) / (seen.std(-1, ddof=1) / np.sqrt(blocks))
    return np.asarray(2 * stats.t.sf(np.abs(t), blocks - 1))


def has_verdict(p: Floats, level: float) -> NDArray[np.bool_]:
    """Whether Benjamini and Hochberg reject anything."""
    return np.asarray((np.sort(p, axis=1) <= level * np.arange(1, CELLS + 1) / CELLS).any(axis=1))


def at_most(share: float, campaigns: int) -> float:
    """The share of wrong campaigns that a simulation of so many may show at most (two standard errors)."""
    return share + 2 * np.sqrt(share * (1 - share) / campaigns)


def wrong_campaigns(ratios: Floats, looks: list[int], level: Callable[[list[int]], float]) -> float:
    """The share of campaigns that say something before they stop: each is extended as long as it says nothing."""
    is_wrong = np.zeros(len(ratios), dtype=bool)
    for number, blocks in enumerate(looks, start=1):
        open_ = np.flatnonzero(~is_wrong)
        is_wrong[open_] = has_verdict(p_values(ratios[open_], blocks), level(looks[:number]))
    return float(is_wrong.mean())


@pytest.mark.parametrize("shared", [0.0, 0.7])
def test_extending_whenever_nothing_is_decided_keeps_five_percent_where_unpaid_looks_double_it(shared: float):
    ratios, looks = log_ratios(8, CAMPAIGNS, shared), [6, 12, 18, 24]
    assert wrong_campaigns(ratios, looks, lambda _: ALPHA) > 0.08
    assert wrong_campaigns(ratios, looks, lambda seen: level_of_look(seen, ALPHA)) <= at_most(ALPHA, len(ratios))


def test_looking_after_every_block_keeps_five_percent_too():
    ratios = log_ratios(9, 1000, 0.5)
    assert wrong_campaigns(ratios, list(range(6, 31)), lambda seen: level_of_look(seen, ALPHA)) <= at_most(
        ALPHA, len(ratios)
    )


def test_blocks_that_are_chosen_by_what_the_first_look_saw_keep_five_percent():
    """The second look comes where it would be most likely to say something: n times the square of (threshold over largest z)."""
    ratios = log_ratios(10, CAMPAIGNS, 0.0)
    first = p_values(ratios, 6)
    is_wrong = has_verdict(first, level_of_look([6], ALPHA))
    level = level_of_look([6, 12], ALPHA)
    threshold, largest = stats.norm.isf(level / CELLS / 2), stats.norm.isf(first.min(axis=1) / 2)
    chosen = np.clip(np.round(6 * (threshold / np.maximum(largest, 0.1)) ** 2), 7, 30).astype(int)
    for blocks in range(7, 31):
        at = np.flatnonzero(chosen == blocks)
        if at.size:
            is_wrong[at] |= has_verdict(p_values(ratios[at], blocks), level)
    assert is_wrong.mean() <= at_most(ALPHA, CAMPAIGNS)
