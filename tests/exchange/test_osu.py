"""OSU's texts as its versions write them."""

from __future__ import annotations

import re

import pytest

from fabricbench.errors import UsageError
from fabricbench.exchange import osu
from fabricbench.exchange.importer import read_text
from fabricbench.model import Layer, Pattern

LATENCY = """
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       2.50
4096                   10.25
"""
OLD_LATENCY = """# OSU MPI Latency Test v5.3
# Size          Latency (us)
0                       1.00
1                       1.50
"""
BANDWIDTH = """# OSU MPI Bandwidth Test v5.3
# Size      Bandwidth (MB/s)
1024                  100.00
"""
ALLTOALL = """
# OSU MPI All-to-All Personalized Exchange Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
[node1] warning: something of the MPI library
8                     182.32            165.51            203.54          50
"""
BARRIER = """# OSU MPI Barrier Latency Test v7.4
# Avg Latency(us)
            12.30
"""


def test_a_latency_is_half_a_round_trip():
    found = osu.read(LATENCY)
    assert found.version == "7.4"
    assert [(one.message_bytes, one.values) for one in found.cells] == [(1, (5000.0,)), (4096, (20500.0,))]
    assert {(one.pattern, one.layer, one.ranks) for one in found.cells} == {(Pattern.PINGPONG, Layer.MPI, 2)}


def test_versions_name_the_column_differently():
    assert [one.values for one in osu.read(OLD_LATENCY).cells] == [(2000.0,), (3000.0,)]


def test_a_megabyte_is_a_million_bytes():
    (one,) = osu.read(BANDWIDTH).cells
    assert (one.pattern, one.values) == (Pattern.STREAM, (8e8,))


def test_a_collective_takes_the_mean_over_ranks_and_does_not_tell_how_many():
    (one,) = osu.read(ALLTOALL).cells
    assert (one.pattern, one.message_bytes, one.values, one.ranks) == (Pattern.ALLTOALL, 8, (182_320.0,), None)


def test_a_barrier_has_no_sizes():
    (one,) = osu.read(BARRIER).cells
    assert (one.pattern, one.message_bytes, one.values) == (Pattern.BARRIER, 0, (12_300.0,))


def test_tests_that_follow_one_another_are_all_read():
    assert {one.pattern for one in osu.read(LATENCY + BANDWIDTH + ALLTOALL).cells} == {
        Pattern.PINGPONG,
        Pattern.STREAM,
        Pattern.ALLTOALL,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LATENCY.replace("2.50", "nan?"), "no result can be read from the line '1                       nan?'"),
        (LATENCY.replace("MPI Latency", "MPI Teleport"), "no test 'Teleport' is known"),
        (LATENCY + LATENCY, "Latency of 1 B is in it twice"),
        (
            ALLTOALL.replace("Iterations", "Iterations  Validation").replace("          50", "          50  Fail"),
            "a result failed its validation",
        ),
        ("# OSU MPI Latency Test v7.4\n", "no result is in it"),
        (LATENCY + LATENCY.replace("MPI Latency", "MPI_Put Latency"), "begins with '# OSU MPI_Put Latency Test v7.4'"),
        (LATENCY.rstrip("\n"), "ends in the middle of the line '4096                   10.25'"),
        (LATENCY.replace("2.50", "0.00"), "no time and no rate is 0.00"),
        (LATENCY.replace("2.50", "-2.5"), "no time and no rate is -2.5"),
        (LATENCY.replace("2.50", "nan"), "no time and no rate is nan"),
        (LATENCY.replace("2.50", "inf"), "no time and no rate is inf"),
    ],
    ids=[
        "garbled",
        "another test",
        "twice",
        "wrong result",
        "cut short",
        "one-sided",
        "cut within a line",
        "zero",
        "negative",
        "nan",
        "inf",
    ],
)
def test_what_cannot_be_read_is_named(text: str, said: str):
    with pytest.raises(UsageError, match=re.escape(said)):
        read_text(text, "a.txt")
