"""Axes: where values stand, and which of them are labelled."""

from __future__ import annotations

import pytest

from fabricbench.model import Metric
from fabricbench.report.drawing.axes import (
    EMPTY_PLACE,
    decade_ticks,
    plotted_size,
    ratio_domain,
    ratio_ticks,
    size_at,
    size_channel,
    value_channel,
)


def test_ticks_reach_the_end_of_the_data():
    assert max(ratio_ticks(0.95, 7.7)) == 7.0
    assert {1e3, 3e3} <= set(decade_ticks(25.0, 4e5))


def test_sizes_stand_at_powers_of_two_and_an_empty_message_a_step_before_one_byte():
    ticks = size_channel([0, 8, 2**20])["axis"]["values"]
    assert ticks == [EMPTY_PLACE, 16.0, 512.0, 16384.0, 524288.0]
    assert [size_at(plotted_size(size)) for size in (0, 1, 64)] == [0, 1, 64]
    assert size_channel([64])["axis"]["values"] == [64.0, 128.0]


@pytest.mark.parametrize(("low", "high"), [(0.97, 1.03), (0.5, 1.4), (0.9, 12.0), (0.001, 900.0)])
def test_ratio_axes_always_mark_1_and_a_few_more(low: float, high: float):
    ticks = ratio_ticks(*ratio_domain([low, high], 0.02))
    assert 1.0 in ticks
    assert 3 <= len(ticks) <= 12


@pytest.mark.parametrize(("low", "high"), [(95.0, 105.0), (40.0, 90.0), (1e3, 1e5), (1e3, 1e9)])
def test_value_axes_have_a_few_ticks_within_their_bounds(low: float, high: float):
    ticks = decade_ticks(low, high)
    assert all(low <= tick <= high for tick in ticks)
    assert 1 <= len(ticks) <= 12
    assert value_channel(Metric.THROUGHPUT, [low, high])["scale"]["domain"][0] < low
