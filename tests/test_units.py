"""Units of figures tell which way is better, how large they are, and whether they are of work or of a network."""

from __future__ import annotations

import pytest

from fabricbench.units import parse_unit, seconds_in


@pytest.mark.parametrize(
    ("unit", "direction"),
    [
        *((unit, "lower") for unit in ("s", "ms", "µs", "days", "d", "seconds", "s/step", "ms/step", "us/op", "s/iteration")),
        *((unit, "lower") for unit in ("hour/ns", "h/ns", "s/GB", "ms per query", "s/step/atom")),
        *((unit, "higher") for unit in ("GFLOP/s", "Mflops", "GFLOPS", "MB/s", "Mbps", "step/s", "jobs/h", "ns/day", "ps/h")),
        *((unit, "higher") for unit in ("Hz", "GTEPS", "images/sec", "1/s", "MB/s/node", "tokens per second")),
        *((unit, None) for unit in ("s/s", "%", "GB", "EUR", "joule", "steps", "ms/s", "what is this?")),
    ],
)  # fmt: skip
def test_a_unit_tells_which_way_is_better(unit: str, direction: str | None):
    found = parse_unit(unit)
    assert (None if found is None else found.direction) == direction


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("GFLOP/s", "Gflops", True),
        ("MFLOP/s", "GFLOP/s", False),
        ("Mbit/s", "Mbps", True),
        ("Mbit/s", "MB/s", False),
        ("s", "seconds", True),
        ("iteration/s", "it/s", True),
        ("step/s", "step/h", False),
        ("s/step", "step/s", False),
        ("s", "step/s", False),
    ],
)
def test_units_are_the_same_where_a_number_means_the_same(one: str, other: str, is_same: bool):
    first, second = parse_unit(one), parse_unit(other)
    assert first is not None
    assert second is not None
    assert first.is_same(second) == second.is_same(first) == is_same


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [("ms", 1e-3), ("ms/step", 1e-3), ("days", 86400), ("GFLOP/s", 1), ("ns/day", 1), ("h/ns", 3600), ("?!", 1)],
)
def test_a_time_is_so_many_seconds_and_a_rate_keeps_its_own_unit(unit: str, seconds: float):
    assert seconds_in(unit) == seconds


@pytest.mark.parametrize(
    ("unit", "is_of_network"),
    [
        ("us", True),
        ("ns", True),
        ("MB/s", True),
        ("Gbps", True),
        ("message/s", True),
        ("ms", False),
        ("GFLOP/s", False),
    ],
)
def test_latencies_and_bandwidths_are_of_a_network(unit: str, is_of_network: bool):
    found = parse_unit(unit)
    assert found is not None
    assert found.is_of_network == is_of_network
