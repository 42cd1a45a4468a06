"""What the order of launches does: found where it is there, taken out, paid for; and left where it is not shown."""

from __future__ import annotations

import numpy as np
import pytest

from fabricbench.campaign.order import balanced
from fabricbench.statistics.order_effects import FEWEST_BLOCKS, LEVEL, Floats, OrderEffects, find_order_effects
from fabricbench.statistics.ratios import NOTHING_FITTED, paired_ratios

SCATTER = 0.02
PAIR = ((0, -1.0), (1, 1.0))
"""The second side against the first."""


def candidates_of(sides: int, blocks: int, seed: int) -> Floats:
    """Who was first, and who followed each side, in balanced orders."""
    found = np.zeros((1 + sides, sides, blocks))
    before = None
    for block in range(blocks):
        for place, side in enumerate(balanced(range(sides), block, str(seed))):
            found[0, side, block] = place == 0
            if before is not None:
                found[1 + before, side, block] = 1.0
            before = side
    return found


def campaign(
    sides: int, blocks: int, seed: int, first: float = 0.0, after: float = 0.0
) -> tuple[Floats, OrderEffects | None]:
    """Values of a cell of equal sides, the first launch and those after side 1 slower by so much, and what is found in them."""
    candidates = candidates_of(sides, blocks, seed)
    random = np.random.default_rng(seed)
    values = random.normal(0.0, SCATTER, (sides, blocks)) + random.normal(0.0, 0.1, blocks)
    values += first * candidates[0] + after * candidates[2]
    return values, find_order_effects(values, values[np.newaxis], candidates)


def test_a_first_launch_that_is_slower_is_found_and_no_longer_widens_the_interval():
    values, found = campaign(2, 12, 1, first=0.1)
    assert found is not None
    assert found.chosen == (0,)
    assert found.pooled[0] == pytest.approx(0.1, abs=4 * SCATTER / np.sqrt(6))
    with_it = paired_ratios(values[1] - values[0])
    rest = values - found.removed[0]
    without = paired_ratios(rest[1] - rest[0], fitted=found.fitted(PAIR))
    assert without.degrees_of_freedom[0] == 10
    assert without.log_deviation[0] < 0.5 * with_it.log_deviation[0]
    assert np.log(without.ratio[0]) == pytest.approx(np.log(with_it.ratio[0]))  # the orders were balanced


def test_the_deviation_is_that_of_a_regression():
    values, found = campaign(2, 13, 3, first=0.1)
    assert found is not None
    difference, is_first = values[1] - values[0], candidates_of(2, 13, 3)[0]
    design = np.stack([np.ones(13), is_first[1] - is_first[0]])
    coefficients, squares, *_ = np.linalg.lstsq(design.T, difference, rcond=None)
    rest = values - found.removed[0]
    made = paired_ratios(rest[1] - rest[0], fitted=found.fitted(PAIR))
    assert np.log(made.ratio[0]) == pytest.approx(coefficients[0])
    error = np.sqrt(squares[0] / 11 * np.linalg.inv(design @ design.T)[0, 0])
    assert made.log_standard_error[0] == pytest.approx(error)


@pytest.mark.parametrize("sides", [3, 4])
def test_what_follows_a_certain_side_is_found_and_taken_out_of_the_ratios_to_it(sides: int):
    values, found = campaign(sides, 24, 2, after=0.1)
    assert found is not None
    assert found.chosen == (2,)
    biased = values.mean(axis=1) - values.mean()
    rest = values - found.removed[0]
    assert np.ptp(biased) > 0.02 > np.ptp(rest.mean(axis=1))
    assert found.fitted(PAIR).error_times > 1.0


def test_a_contrast_of_four_sides_pays_what_a_regression_says():
    values, found = campaign(4, 24, 2, after=0.1)
    assert found is not None
    weights = np.array([1.0, -1.0, -1.0, 1.0])
    sides, blocks = values.shape
    dummies = [np.eye(sides)[:, :, None] * np.ones(blocks), np.ones((sides, 1)) * np.eye(blocks)[:, None, :]]
    effect = candidates_of(4, 24, 2)[list(found.chosen)]
    design = np.concatenate([part.reshape(len(part), -1) for part in (*dummies, effect)])
    contrast = np.concatenate([weights, np.zeros(blocks + 1)])
    of_regression = contrast @ np.linalg.pinv(design @ design.T) @ contrast
    without_effect = weights @ weights / blocks
    paid = found.fitted(tuple(enumerate(weights)))
    assert paid.effects == 1
    assert paid.error_times == pytest.approx(np.sqrt(of_regression / without_effect))
    assert paid.error_times > 1.0


def test_two_sides_that_take_turns_carry_over_to_both_alike_so_nothing_is_to_be_taken_out():
    assert all(campaign(2, 24, seed, after=0.1)[1] is None for seed in range(10))


def test_what_is_not_there_is_hardly_ever_found_and_never_of_few_blocks():
    found = [campaign(2, 12, seed)[1] is not None for seed in range(600)]
    assert np.mean(found) <= 2 * LEVEL
    assert campaign(2, FEWEST_BLOCKS - 1, 1, first=0.5)[1] is None
    assert campaign(2, FEWEST_BLOCKS, 1, first=0.5)[1] is not None


def test_a_side_that_is_always_first_tells_nothing_of_places():
    values = np.random.default_rng(1).normal(0.0, SCATTER, (2, 12)) + np.array([[0.1], [0.0]])
    assert find_order_effects(values, values[np.newaxis], np.array([[[1.0] * 12, [0.0] * 12]])) is None
    assert NOTHING_FITTED.effects == 0
