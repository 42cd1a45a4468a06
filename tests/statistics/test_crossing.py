"""Crossings of a curve of ratios with one."""

from __future__ import annotations

import numpy as np
import pytest

from fabricbench.statistics.crossing import crossings

SIZES = 2.0 ** np.arange(6, 15, 2)
TRUE = np.linspace(-0.17, 0.23, 5)


def test_a_straight_curve_crosses_where_arithmetic_says():
    jitter = np.array([-0.01, 0.0, 0.01])
    found = crossings(SIZES, TRUE[:, None] + jitter, np.sign(TRUE).astype(np.int64))
    # log ratio -0.17 at 64 B rises by 0.1 with each factor of four: zero after 1.7 steps, at 2**(6 + 3.4)
    assert [one.size for one in found] == pytest.approx([2**9.4], rel=1e-6)
    assert found[0].is_rising
    assert found[0].low < 2**9.4 < found[0].high


def test_no_crossing_is_claimed_between_undecided_sizes_or_without_opposite_verdicts():
    blocks = TRUE[:, None] + np.array([-0.01, 0.0, 0.01])
    assert crossings(SIZES, blocks, np.array([-1, 0, 0, 0, 0])) == []
    assert crossings(SIZES, blocks, np.array([1, 1, 0, 1, 1])) == []


def test_a_dip_has_two_crossings():
    dip = np.array([0.2, 0.1, -0.1, 0.1, 0.2])
    found = crossings(SIZES, dip[:, None] + np.array([-0.01, 0.0, 0.01]), np.sign(dip).astype(np.int64))
    assert [one.is_rising for one in found] == [False, True]
    assert found[0].size == pytest.approx(2**9)
    assert found[1].size == pytest.approx(2**11)


def test_a_block_that_lacks_a_size_is_left_out():
    blocks = TRUE[:, None] + np.array([-0.01, 0.0, 0.01, 5.0])
    blocks[1, 3] = np.nan
    assert crossings(SIZES, blocks, np.sign(TRUE).astype(np.int64))[0].size == pytest.approx(2**9.4, rel=1e-6)


@pytest.mark.parametrize("blocks", [6, 12])
def test_the_interval_of_a_crossing_covers_93_to_97_percent(blocks: int):
    random = np.random.default_rng(11)
    signs = np.array([-1, 0, 0, 0, 1])
    covered = 0
    for _ in range(1500):
        logs = TRUE[:, None] + random.normal(0.0, 0.03, (5, blocks)) + random.normal(0.0, 0.02, (1, blocks))
        one = crossings(SIZES, logs, signs)[0]
        covered += one.low <= 2**9.4 <= one.high
    assert 0.93 <= covered / 1500 <= 0.97
