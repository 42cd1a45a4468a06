"""Where one side overtakes the other: the bracket, and the point that a model has to earn."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.characteristics import crossing_characteristics
from benchmarks.simulation import Curves, Noise, noisier, simulate_curves, step_curves, straight_curves
from numpy.typing import NDArray

from fabricbench.statistics.crossing import Crossing, crossings, fit, misfits

Floats = NDArray[np.float64]

FRAMES = (64, 512, 1472)
QUICK = (64, 512, 1472, 16384, 65536)
POWERS = (64, 256, 1024, 4096, 16384, 65536, 262144)
JITTER = np.array([-0.01, 0.0, 0.01])


def linear_curves(size: Floats) -> tuple[Floats, Floats]:
    log_a = np.log(50e-6 + 8e-8 * size)
    return log_a, log_a + 0.06 * (np.log2(size) - 8.2)


SMOOTH = {
    "50 us, 100 Mbit/s against 60 us, 1 Gbit/s": straight_curves((50e-6, 1e8), (60e-6, 1e9)),
    "30 us, 1 Gbit/s against 40 us, 10 Gbit/s": straight_curves((30e-6, 1e9), (40e-6, 1e10)),
    "5 us, 10 Gbit/s against 8 us, 100 Gbit/s": straight_curves((5e-6, 1e10), (8e-6, 1e11)),
}
OTHERS = {
    "a protocol step at 8 KiB": step_curves((20e-6, 1e9), 8192, 0.8, 1.15),
    "a small step at 8 KiB": step_curves((60e-6, 1e9), 8192, 0.95, 1.05),
    "linear in log2 size": linear_curves,
}


def found_in(curves: Curves, sizes: tuple[int, ...], blocks: int, noise: float) -> Crossing:
    """Return the one crossing of a simulated curve whose sizes are all decided as they truly are."""
    size = np.array(sizes, dtype=np.float64)
    log_a, log_b = simulate_curves(np.random.default_rng(5), curves, size, blocks, noisier(Noise(), noise))
    true_a, true_b = curves(size)
    (one,) = crossings(size, log_a, log_b, np.sign(true_b - true_a).astype(np.int64))
    return one


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
    log_times, _ = straight_curves((50e-6, 1e8), (60e-6, 1e9))(sizes)
    line = fit(sizes, log_times[:, None] + np.array([0.0, np.log(2.0)]))
    assert line.latency == pytest.approx([50e-6, 100e-6])
    assert line.per_byte == pytest.approx([8e-8, 16e-8])
    assert misfits(sizes, log_times[:, None]) == pytest.approx(0.0, abs=1e-9)


def test_a_model_that_predicts_each_size_from_the_others_earns_a_point_and_names_its_sizes():
    one = found_in(SMOOTH["30 us, 1 Gbit/s against 40 us, 10 Gbit/s"], POWERS, 12, 0.1)
    # 30 us + 8 ns a byte meets 40 us + 0.8 ns a byte at 10 us / 7.2 ns
    assert one.point == pytest.approx(10e-6 / 7.2e-9, rel=0.02)
    assert one.low is not None
    assert one.high is not None
    assert one.lower <= one.low < 10e-6 / 7.2e-9 < one.high <= one.upper
    assert one.model == "Hockney"
    assert one.worst_misfit is not None
    assert one.worst_misfit < 0.02
    assert one.sizes == (64, 256, 1024, 4096, 16384, 65536)


def test_a_block_that_lacks_a_size_is_left_out_of_the_model():
    size = np.array(POWERS, dtype=np.float64)
    curves = SMOOTH["30 us, 1 Gbit/s against 40 us, 10 Gbit/s"]
    log_a, log_b = simulate_curves(np.random.default_rng(5), curves, size, 12, noisier(Noise(), 0.1))
    signs = np.array([-1, 1])[(curves(size)[1] > curves(size)[0]).astype(np.int64)]
    whole = crossings(size, log_a[:, 1:], log_b[:, 1:], signs)
    assert whole[0].model == "Hockney"
    log_a[2, 0], log_b[:, 0] = np.nan, 9.0
    assert crossings(size, log_a, log_b, signs) == whole


def test_three_sizes_or_a_wide_gap_earn_no_point_however_quiet_it_is():
    curves = SMOOTH["50 us, 100 Mbit/s against 60 us, 1 Gbit/s"]
    for sizes in (FRAMES, (8, 64, 1024, 16384, 65536)):
        one = found_in(curves, sizes, 30, 0.01)
        assert (one.lower, one.upper) == sizes[1:3] if sizes[0] == 8 else sizes[:2]
        assert (one.point, one.low, one.high, one.model) == (None, None, None, "")


@pytest.mark.slow
@pytest.mark.parametrize("curves", SMOOTH.values(), ids=SMOOTH)
@pytest.mark.parametrize(("sizes", "blocks", "noise"), [(QUICK, 6, 1.0), (POWERS, 12, 0.5), (POWERS, 16, 0.1)])
def test_statements_hold_the_truth_where_both_sides_obey_hockneys_model(
    curves: Curves, sizes: tuple[int, ...], blocks: int, noise: float
):
    found = crossing_characteristics(41, 60, curves, sizes, blocks, noisier(Noise(), noise))
    assert found.claimed >= 0.9
    assert found.bracket_right >= 0.95
    assert found.earned == 0.0 or found.interval_right >= 0.95
    if noise == 0.5:
        assert found.earned >= 0.2


@pytest.mark.slow
@pytest.mark.parametrize("curves", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize(("blocks", "noise"), [(6, 1.0), (12, 0.5), (16, 0.1)])
def test_curves_of_another_shape_earn_no_point_and_their_brackets_hold_the_truth(
    curves: Curves, blocks: int, noise: float
):
    found = crossing_characteristics(43, 60, curves, POWERS, blocks, noisier(Noise(), noise))
    assert found.bracket_right >= 0.95
    assert found.earned <= 0.02
