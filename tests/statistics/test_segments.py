"""Curves in pieces: where they end, what their lines are, and how far sizes are off that were left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fabricbench.statistics.segments import FEWEST_FOR_CHECK, pieces_of, predicted

Floats = NDArray[np.float64]
SIZES = 2.0 ** np.arange(6, 18)


def launches(times: Callable[[Floats], Floats], *, noise: float = 0.01, number: int = 10, seed: int = 1) -> Floats:
    random = np.random.default_rng(seed)
    own = noise * random.standard_normal((SIZES.size, number))
    return np.log(times(SIZES))[:, None] + 0.02 * random.standard_normal(number) + own


def test_a_line_is_one_piece_whose_intervals_hold_it():
    held = 0
    for seed in range(40):
        found = pieces_of(SIZES, launches(lambda size: 25e3 + 8.0 * size, seed=seed), 0.95)
        assert found is not None
        assert len(found.pieces) == 1
        (piece,) = found.pieces
        assert piece.start_up.low is not None
        assert piece.start_up.high is not None
        assert piece.start_up.value == pytest.approx(25e3, rel=0.04)
        assert piece.per_byte.value == pytest.approx(8.0, rel=0.04)
        held += piece.start_up.low <= 25e3 <= piece.start_up.high
        assert found.left_out == 5
        assert found.worst_misfit is not None
        assert found.worst_misfit < 0.03
    assert held >= 34


def test_pieces_end_where_time_jumps_and_where_the_slope_changes():
    jumps = pieces_of(SIZES, launches(lambda size: 25e3 + 8.0 * size + np.where(size > 8192, 30e3, 0.0)), 0.95)
    assert jumps is not None
    assert [(SIZES[one.first], SIZES[one.last]) for one in jumps.pieces] == [(64, 8192), (16384, 131072)]
    assert [one.start_up.value for one in jumps.pieces] == pytest.approx([25e3, 55e3], rel=0.05)
    bends = pieces_of(SIZES, launches(lambda size: 25e3 + 8.0 * size + 8.0 * np.minimum(size, 1448)), 0.95)
    assert bends is not None
    assert [one.per_byte.value for one in bends.pieces] == pytest.approx([16.0, 8.0], rel=0.05)


def test_a_piece_ends_at_a_jump_that_is_known():
    found = pieces_of(SIZES, launches(lambda size: 25e3 + 8.0 * size), 0.95, jumps=(7,))
    assert found is not None
    assert [(one.first, one.last) for one in found.pieces] == [(0, 6), (7, 11)]


def test_nothing_is_below_0_and_what_may_be_0_has_an_interval_from_there():
    found = pieces_of(SIZES, launches(lambda size: np.maximum(1e3, 0.8 * size)), 0.95)
    assert found is not None
    assert len(found.pieces) == 2
    flat, steep = found.pieces
    assert flat.start_up.value == pytest.approx(1e3, rel=0.02)
    assert (flat.per_byte.value, flat.per_byte.low) == (0.0, 0.0)
    assert (steep.start_up.value, steep.start_up.low) == (0.0, 0.0)
    assert steep.per_byte.value == pytest.approx(0.8, rel=0.02)


def test_a_size_whose_launches_scatter_weighs_little():
    logs = launches(lambda size: 1e3 + 8.0 * size)
    logs[0] += np.random.default_rng(2).normal(0.3, 0.7, 10)
    found = pieces_of(SIZES, logs, 0.95)
    assert found is not None
    assert found.pieces[-1].per_byte.value == pytest.approx(8.0, rel=0.02)


def test_of_few_sizes_or_launches_nothing_is_said():
    logs = launches(lambda size: 25e3 + 8.0 * size)
    assert pieces_of(SIZES[:2], logs[:2], 0.95) is None
    assert pieces_of(SIZES, logs[:, :2], 0.95) is None
    few = pieces_of(SIZES[: FEWEST_FOR_CHECK - 1], logs[: FEWEST_FOR_CHECK - 1], 0.95)
    assert few is not None
    assert few.worst_misfit is None


def test_other_sizes_are_predicted_from_the_piece_that_they_are_in():
    logs = launches(lambda size: 25e3 + 8.0 * size + np.where(size > 8192, 30e3, 0.0), noise=0.002)
    wanted = np.array([100.0, 6000.0, 20000.0, 100000.0])
    truth = 25e3 + 8.0 * wanted + np.where(wanted > 8192, 30e3, 0.0)
    assert np.exp(predicted(SIZES, logs, wanted)) == pytest.approx(truth, rel=0.03)
