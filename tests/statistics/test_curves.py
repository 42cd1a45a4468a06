"""Anomalies of curves: what is named, what passes for clean, and how often chance names anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.simulation import Noise, Shape, simulate_launches
from numpy.typing import NDArray

from fabricbench.statistics.curves import Anomaly, Curve, CurveBreak, anomalies, number_of_tests

Floats = NDArray[np.float64]
SIZES = 2.0 ** np.arange(6, 18)
NOWHERE = np.zeros(SIZES.size - 1, dtype=np.bool_)


def line(size: Floats) -> Floats:
    return 25e3 + 8.0 * size


def curve(
    times: Callable[[Floats], Floats],
    *,
    launches: int = 10,
    noise: float = 0.01,
    expected: Floats | None = None,
    seed: int = 1,
) -> Curve:
    random = np.random.default_rng(seed)
    shared, own = random.normal(0, 0.03, launches), random.normal(0, noise, (SIZES.size, launches))
    logs = np.log(times(SIZES))[:, None] + shared + own
    return Curve(SIZES, logs, NOWHERE if expected is None else np.asarray(expected, dtype=np.bool_))


def named(one: Curve, *others: Curve) -> list[Anomaly]:
    return anomalies([one, *others], 0.02, 0.05)[0]


def places(found: list[Anomaly]) -> list[tuple[CurveBreak, int, int]]:
    return [(one.kind, one.first, one.last) for one in found]


def at(first: int, last: int, factor: float) -> Floats:
    return np.where((np.arange(SIZES.size) >= first) & (np.arange(SIZES.size) <= last), factor, 1.0)


@pytest.mark.parametrize(("first", "last"), [(3, 3), (3, 4), (5, 6), (8, 9), (7, 9)])
def test_sizes_that_are_slower_than_their_neighbours_say_are_slow_and_nothing_else(first: int, last: int):
    (found,) = named(curve(lambda size: line(size) * at(first, last, 1.15)))
    assert (found.kind, found.first, found.last) == (CurveBreak.SLOW, first, last)
    assert found.excess == pytest.approx(0.15, abs=0.03)
    assert len(found.of_launches) == 10


def test_a_jump_that_stays_lies_between_two_sizes():
    (found,) = named(curve(lambda size: line(size) + np.where(size > 2.0**11, 20e3, 0.0)))
    assert (found.kind, found.first, found.last) == (CurveBreak.JUMP, 5, 6)


def test_a_larger_message_that_is_faster_and_one_that_its_parts_outrun_are_named():
    assert places(named(curve(lambda size: line(size) - np.where(size > 2.0**11, 25e3, 0.0)))) == [
        (CurveBreak.DROP, 5, 6)
    ]
    falls = curve(lambda size: 100.0 + 8.0 * size + np.where(size > 2.0**14, 4.0 * (size - 2.0**14), 0.0))
    assert CurveBreak.PARTS in {one.kind for one in named(falls)}


@pytest.mark.parametrize(
    "times",
    [
        line,
        lambda size: np.maximum(1e3, 0.8 * size),
        lambda size: np.minimum(20e3 + 8.0 * size, 60e3 + 1.0 * size),
        lambda size: 20e3 + 8.0 * size + 0.2 * np.maximum(size - 2.0**12, 0.0),
    ],
    ids=["line", "bound by messages, then by bytes", "another protocol in time", "somewhat slower beyond"],
)
def test_what_bends_one_way_is_no_anomaly(times: Callable[[Floats], Floats]):
    for seed in range(5):
        assert named(curve(times, seed=seed)) == []


def test_what_a_second_packet_costs_is_expected_and_a_timer_that_it_waits_for_is_not():
    expected = (SIZES[:-1] < 3000) & (SIZES[1:] >= 1300)
    packets = curve(lambda size: 20e3 + 8.0 * size + 8e3 * np.ceil(size / 1448), expected=expected)
    assert named(packets) == []
    waits = curve(lambda size: line(size) + np.where(size > 1448, 40e6, 0.0), expected=expected)
    assert places(named(waits)) == [(CurveBreak.PARTS, 4, 5)]


def test_a_receiver_that_the_second_packet_finds_awake_makes_no_jump_of_larger_messages():
    """Measured in a lab (udp, MTU 1500): the line from 1472 to 4000 B, drawn on to 16 KiB, said that time jumps up by 57 %."""
    sizes = np.array([64, 256, 512, 1024, 1472, 4000, 16 * 1024, 48 * 1024], dtype=np.float64)
    times = np.array([57.0, 64.9, 75.1, 94.0, 109.5, 131.0, 357.7, 927.0])
    random = np.random.default_rng(2)
    logs = np.log(times)[:, None] + random.normal(0, 0.01, 6) + random.normal(0, 0.002, (sizes.size, 6))
    is_expected = (sizes[:-1] < 2.1 * 1472) & (sizes[1:] >= 0.9 * 1472)
    assert not named(Curve(sizes, logs, is_expected))


def test_a_jump_is_told_by_what_both_lines_show_at_least():
    """Where messages beyond it cost more by the byte as well, the line of the smaller ones, drawn on, says more."""

    def times(size: Floats) -> Floats:
        return np.where(size > 2.0**11, line(np.array(2.0**11)) + 20e3 + 16.0 * (size - 2.0**11), line(size))

    (found,) = named(curve(times, noise=0.002))
    assert (found.kind, found.first, found.last) == (CurveBreak.JUMP, 5, 6)
    assert found.excess == pytest.approx(20e3 / line(np.array(2.0**11)), abs=0.03)
    assert found.of_launches == pytest.approx([np.log1p(found.excess)] * 10, abs=0.05)


def test_launches_in_two_groups_at_some_sizes_alone_are_named_with_which_they_are():
    one = curve(line)
    logs = one.log_times.copy()
    logs[7:9, [2, 5, 6]] += 0.4
    (found,) = named(replace(one, log_times=logs))
    assert (found.kind, found.first, found.last) == (CurveBreak.GROUPS, 7, 8)
    assert np.flatnonzero(found.is_slow).tolist() == [2, 5, 6]
    logs = one.log_times + np.where(np.isin(np.arange(10), [2, 5, 6]), 0.4, 0.0)
    assert named(replace(one, log_times=logs)) == [], "slow at every size: a matter of the launches, not of the curve"


def test_time_that_changes_over_launches_at_one_size_drifts():
    one = curve(line)
    logs = one.log_times.copy()
    logs[4] += np.linspace(0.0, 0.3, 10)
    (found,) = named(replace(one, log_times=logs))
    assert (found.kind, found.first, found.last) == (CurveBreak.DRIFT, 4, 4)
    assert found.excess == pytest.approx(np.expm1(0.3), abs=0.05)


def test_of_few_launches_or_sizes_nothing_is_said():
    slow = curve(lambda size: line(size) * at(5, 6, 2.0), launches=4)
    assert named(slow) == []
    short = curve(lambda size: line(size) * at(1, 1, 2.0))
    assert named(Curve(SIZES[:3], short.log_times[:3], NOWHERE[:2])) == []
    assert number_of_tests([slow]) == 0


def test_steps_of_a_clock_that_explain_an_excess_leave_it_unnamed():
    one = curve(lambda size: line(size) * at(5, 6, 1.15))
    assert named(one)
    assert named(replace(one, step=0.05)) == []


def test_launches_that_lack_sizes_count_where_they_were_measured():
    one = curve(lambda size: line(size) * at(5, 6, 1.2), launches=12)
    logs = one.log_times.copy()
    logs[2, :3], logs[:, 7] = np.nan, np.nan
    assert places(named(replace(one, log_times=logs))) == [(CurveBreak.SLOW, 5, 6)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [Noise(), replace(Noise(), outlying_share=0.05), replace(Noise(), block_deviation=0.1, block_autocorrelation=0.95)],
    ids=["as measured", "some disturbed", "drifting blocks"],
)
def test_clean_curves_are_rarely_named_and_slow_sizes_mostly(noise: Noise):
    random = np.random.default_rng(7)
    shape = Shape(blocks=10, curves=6, sizes=SIZES.size, samples=0)
    true = np.tile(np.log(line(SIZES)), 6)
    wrong = found = 0
    for _ in range(40):
        values = simulate_launches(random, 1, shape, noise)[0] + true[:, None]
        clean = [Curve(SIZES, rows, NOWHERE) for side in values for rows in np.split(side, 6)]
        wrong += any(anomalies(clean, 0.02, 0.05))
        slow = replace(clean[0], log_times=clean[0].log_times + np.log(at(5, 6, 1.1))[:, None])
        found += any(
            one.kind is CurveBreak.SLOW and one.first <= 6 and one.last >= 5 for one in named(slow, *clean[1:])
        )
    assert wrong <= 2 + 3 * np.sqrt(40 * 0.05 * 0.95)
    assert found >= 36 - 3 * np.sqrt(40 * 0.9 * 0.1)
