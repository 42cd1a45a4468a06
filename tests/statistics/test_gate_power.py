"""What a gate can decide, against gates simulated with that noise."""

from __future__ import annotations

import numpy as np
import pytest

from fabricbench.statistics.gate_power import (
    MOST_UNITS,
    blocks_to_decide,
    caught_with_power,
    chance_to_pass,
    passed_with_power,
)
from fabricbench.statistics.ratios import Ratios, unpaired_ratios

NOISE, LIMIT = 0.06, 0.05


def gates(old: int, new: int, change: float = 1.0, count: int = 20_000) -> Ratios:
    random = np.random.default_rng(7)
    one_side = NOISE / np.sqrt(2.0)
    return unpaired_ratios(
        random.normal(0.0, one_side, (count, old)), random.normal(np.log(change), one_side, (count, new))
    )


@pytest.mark.parametrize(("old", "new"), [(3, 3), (8, 8), (8, 30)])
def test_the_chance_that_an_unchanged_cell_passes_is_that_of_simulated_gates(old: int, new: int):
    simulated = float(np.mean(gates(old, new).high <= 1.0 + LIMIT))
    # Welch's degrees of freedom are estimated as well: with three launches a side they are between 2 and 4.
    assert float(chance_to_pass(NOISE, LIMIT, 0.95, new, old)) == pytest.approx(simulated, abs=0.01)


def test_what_is_caught_and_passed_with_80_percent_is_so_in_simulation():
    noise = np.array([NOISE])
    caught = float(caught_with_power(noise, 10, LIMIT, 0.95, cells=1)[0])
    assert np.mean(gates(10, 10, caught).low > 1.0 + LIMIT) == pytest.approx(0.8, abs=0.02)
    passed = float(passed_with_power(noise, 10, LIMIT, 0.95)[0])
    assert np.mean(gates(10, 10, passed).high <= 1.0 + LIMIT) == pytest.approx(0.8, abs=0.02)


def test_so_many_blocks_pass_an_unchanged_system_and_fewer_do_not():
    needed = blocks_to_decide(NOISE, LIMIT, 0.95, cells=20)
    assert needed is not None

    def all_pass(blocks: int) -> float:
        return float(np.mean((gates(blocks, blocks).high <= 1.0 + LIMIT).reshape(-1, 20).all(axis=1)))

    assert all_pass(needed) >= 0.76
    assert all_pass(needed // 2) < 0.7


@pytest.mark.parametrize("scatter", [0.01, 0.041])
def test_a_gate_of_many_tests_passes_an_unchanged_system_as_often_as_is_promised(scatter: float):
    # Three blocks of quiet launches were promised to pass with 80 %, and did in a quarter of the campaigns.
    needed = blocks_to_decide(scatter * np.sqrt(2.0), LIMIT, 0.96, cells=22)
    assert needed is not None
    random = np.random.default_rng(3)
    sides = (random.normal(0.0, scatter, (22 * 1000, needed)) for _ in range(2))
    passed = (unpaired_ratios(*sides, 0.96).high <= 1.0 + LIMIT).reshape(22, 1000).all(axis=0)
    assert np.mean(passed) >= 0.76


def test_more_noise_more_cells_and_an_old_side_that_stays_ask_for_more_blocks():
    few = blocks_to_decide(0.03, LIMIT, 0.95, cells=1)
    many = blocks_to_decide(0.03, LIMIT, 0.95, cells=36)
    noisy = blocks_to_decide(0.06, LIMIT, 0.95, cells=36)
    assert few is not None
    assert many is not None
    assert noisy is not None
    assert 3 <= few < many < noisy
    stays = blocks_to_decide(0.06, LIMIT, 0.95, cells=36, other=20)
    assert stays is not None
    assert stays > noisy
    assert blocks_to_decide(0.06, LIMIT, 0.95, cells=36, other=4) is None  # no number makes up for the old side
    assert blocks_to_decide(1.0, LIMIT, 0.95, cells=1) is None
    assert blocks_to_decide(np.array([np.nan]), LIMIT, 0.95, cells=1) is None
    assert blocks_to_decide(np.array([0.0, 1e-6]), LIMIT, 0.95, cells=36) == 3
    assert noisy <= MOST_UNITS
