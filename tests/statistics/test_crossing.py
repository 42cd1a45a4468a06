"""Where one side overtakes the other: the bracket, and the point that a model has to earn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fabricbench.statistics.correction import benjamini_hochberg
from fabricbench.statistics.crossing import Crossing, crossings, sizes_inside
from fabricbench.statistics.hockney import fit, misfits
from fabricbench.statistics.ratios import paired_ratios

Floats = NDArray[np.float64]
Curve = Callable[[Floats], Floats]

FRAMES = (64, 512, 1472)
QUICK = (64, 512, 1472, 16384, 65536)
POWERS = (64, 256, 1024, 4096, 16384, 65536, 262144)
JITTER = np.array([-0.01, 0.0, 0.01])


def hockney(latency_us: float, rate_bit_s: float) -> Curve:
    return lambda size: np.log(latency_us * 1e-6 + 8.0 * size / rate_bit_s)


def times(base: Curve, log_ratio: Curve) -> tuple[Curve, Curve]:
    return base, lambda size: base(size) + log_ratio(size)


SMOOTH = {
    "50 us, 100 Mbit/s against 60 us, 1 Gbit/s": (hockney(50, 1e8), hockney(60, 1e9)),
    "30 us, 1 Gbit/s against 40 us, 10 Gbit/s": (hockney(30, 1e9), hockney(40, 1e10)),
    "5 us, 10 Gbit/s against 8 us, 100 Gbit/s": (hockney(5, 1e10), hockney(8, 1e11)),
}
OTHERS = {
    "a protocol step at 8 KiB": times(hockney(20, 1e9), lambda size: np.where(size < 8192, np.log(0.8), np.log(1.15))),
    "a small step at 8 KiB": times(hockney(60, 1e9), lambda size: np.where(size < 8192, -0.05, 0.05)),
    "linear in log2 size": times(hockney(50, 1e8), lambda size: 0.06 * (np.log2(size) - 8.2)),
}


def launches(
    random: np.random.Generator, curves: tuple[Curve, Curve], sizes: Floats, blocks: int, noise: float
) -> tuple[Floats, Floats]:
    """Return log times of both sides: a launch's sizes share 2.4 %, each size has 1.7 % of its own, times `noise`."""
    shared = random.normal(0.0, 0.024 * noise, (2, 1, blocks))
    own = random.normal(0.0, 0.017 * noise, (2, sizes.size, blocks))
    log_a, log_b = (curve(sizes)[:, None] + shared[side] + own[side] for side, curve in enumerate(curves))
    return log_a, log_b


def found_in(curves: tuple[Curve, Curve], sizes: Floats, log_a: Floats, log_b: Floats) -> list[tuple[Crossing, bool]]:
    """Return what is claimed after decisions made as the analysis makes them, and whether a true crossing lies in it."""
    ratios = paired_ratios(log_b - log_a)
    is_decided = benjamini_hochberg(ratios.p_value) < 0.05
    signs = np.where(is_decided, np.sign(np.log(ratios.ratio)), 0).astype(np.int64)
    grid = np.geomspace(sizes[0], sizes[-1], 8001)
    above = curves[1](grid) > curves[0](grid)
    roots = grid[:-1][above[1:] != above[:-1]]
    step = grid[1] / grid[0]
    return [
        (
            one,
            bool(np.any((roots * step >= (one.low or one.lower)) & (roots <= (one.high or one.upper)))),
        )
        for one in crossings(sizes, log_a, log_b, signs)
    ]


def test_the_default_is_the_bracket_of_decided_sizes_without_point_or_interval():
    log_a = np.zeros((5, 3)) + JITTER
    log_b = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])[:, None] + JITTER
    sizes = 2.0 ** np.arange(6, 15, 2)
    assert crossings(sizes, log_a, log_b, np.array([-1, -1, 0, 1, 1])) == [Crossing(256.0, 4096.0, is_rising=True)]
    falling = crossings(sizes, log_b, log_a, np.array([1, 0, 0, 0, -1]))
    assert falling == [Crossing(64.0, 16384.0, is_rising=False)]


def test_no_crossing_is_claimed_between_undecided_sizes_or_without_opposite_verdicts():
    log_a = np.zeros((5, 3))
    assert crossings(2.0 ** np.arange(6, 15, 2), log_a, log_a, np.array([-1, 0, 0, 0, -1])) == []
    assert crossings(2.0 ** np.arange(6, 15, 2), log_a, log_a, np.array([1, 1, 0, 0, 0])) == []


def test_a_dip_has_two_crossings():
    log_a = np.zeros((5, 3)) + JITTER
    dip = np.array([0.2, 0.1, -0.1, 0.1, 0.2])[:, None] + JITTER
    found = crossings(2.0 ** np.arange(6, 15, 2), log_a, dip, np.array([1, 1, -1, 1, 1]))
    assert [(one.lower, one.upper, one.is_rising) for one in found] == [(256, 1024, False), (1024, 4096, True)]


def test_hockneys_model_is_found_again_in_times_that_obey_it():
    sizes = np.array(POWERS, dtype=np.float64)
    line = fit(sizes, hockney(50, 1e8)(sizes)[:, None] + np.array([0.0, np.log(2.0)]))
    assert line.latency == pytest.approx([50e-6, 100e-6])
    assert line.per_byte == pytest.approx([8e-8, 16e-8])
    assert misfits(sizes, hockney(50, 1e8)(sizes)[:, None]) == pytest.approx(0.0, abs=1e-9)


def test_a_model_that_predicts_each_size_from_the_others_earns_a_point_and_names_its_sizes():
    sizes = np.array(POWERS, dtype=np.float64)
    curves = SMOOTH["30 us, 1 Gbit/s against 40 us, 10 Gbit/s"]
    log_a, log_b = launches(np.random.default_rng(5), curves, sizes, 12, 0.1)
    ((one, is_right),) = found_in(curves, sizes, log_a, log_b)
    # 30 us + 8 ns a byte meets 40 us + 0.8 ns a byte at 10 us / 7.2 ns
    assert one.point == pytest.approx(10e-6 / 7.2e-9, rel=0.02)
    assert one.low is not None
    assert one.high is not None
    assert one.lower <= one.low < one.point < one.high <= one.upper
    assert one.model == "Hockney"
    assert one.worst_misfit is not None
    assert one.worst_misfit < 0.02
    assert one.sizes == (64, 256, 1024, 4096, 16384, 65536)
    assert is_right


def test_a_block_that_lacks_a_size_is_left_out_of_the_model():
    sizes = np.array(POWERS, dtype=np.float64)
    curves = SMOOTH["30 us, 1 Gbit/s against 40 us, 10 Gbit/s"]
    log_a, log_b = launches(np.random.default_rng(5), curves, sizes, 12, 0.1)
    signs = np.sign(curves[1](sizes) - curves[0](sizes)).astype(np.int64)
    whole = crossings(sizes, log_a[:, 1:], log_b[:, 1:], signs)
    log_a[2, 0], log_b[:, 0] = np.nan, 9.0
    assert crossings(sizes, log_a, log_b, signs) == whole


def test_three_sizes_or_a_wide_gap_earn_no_point_however_quiet_it_is():
    curves = SMOOTH["50 us, 100 Mbit/s against 60 us, 1 Gbit/s"]
    for sizes in (FRAMES, (8, 64, 1024, 16384, 65536)):
        size = np.array(sizes, dtype=np.float64)
        log_a, log_b = launches(np.random.default_rng(2), curves, size, 30, 0.01)
        ((one, is_right),) = found_in(curves, size, log_a, log_b)
        assert (one.point, one.model) == (None, "")
        assert is_right


@pytest.mark.parametrize("curves", SMOOTH.values(), ids=SMOOTH)
@pytest.mark.parametrize(("sizes", "blocks", "noise"), [(QUICK, 6, 1.0), (POWERS, 12, 0.5), (POWERS, 16, 0.1)])
def test_statements_hold_the_truth_where_both_sides_obey_hockneys_model(
    curves: tuple[Curve, Curve], sizes: tuple[int, ...], blocks: int, noise: float
):
    random = np.random.default_rng(41)
    size = np.array(sizes, dtype=np.float64)
    found = [one for _ in range(60) for one in found_in(curves, size, *launches(random, curves, size, blocks, noise))]
    assert len(found) >= 50
    assert sum(is_right for _, is_right in found) >= 0.95 * len(found)


@pytest.mark.parametrize("curves", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize(("blocks", "noise"), [(6, 1.0), (12, 0.5), (16, 0.1)])
def test_curves_of_another_shape_earn_no_point_and_their_brackets_hold_the_truth(
    curves: tuple[Curve, Curve], blocks: int, noise: float
):
    random = np.random.default_rng(43)
    size = np.array(POWERS, dtype=np.float64)
    found = [one for _ in range(60) for one in found_in(curves, size, *launches(random, curves, size, blocks, noise))]
    assert sum(is_right for _, is_right in found) >= 0.95 * len(found)
    assert sum(one.model != "" for one, _ in found) <= 0.02 * len(found)


def test_the_sizes_to_measure_next_lie_inside_evenly_and_are_round():
    assert sizes_inside(64, 512, 3) == [104, 184, 304]
    assert sizes_inside(4096, 16384, 3) == [5888, 8192, 11776]
    assert sizes_inside(64, 72, 3) == []
    assert sizes_inside(64, 80, 3) == [72]
