"""How far a report reaches: what it did not measure, by the campaign that would, and its numbers as other programs have them."""

from __future__ import annotations

import re

import pytest

from fabricbench.report.reach import reach_words
from support.chapter_rows import with_rows
from support.example_findings import example_findings, small_findings


def test_what_was_not_measured_is_named_with_the_campaign_that_measures_it():
    (unmeasured, _) = reach_words(with_rows(example_findings(), congestions=(), maps=()))
    assert unmeasured.startswith("Not measured: ")
    assert "a fabric beside other traffic (campaign congestion)" in unmeasured
    assert "every pair of nodes (campaign map)" in unmeasured
    assert unmeasured.endswith("messages of more than 1 MiB.")


def test_the_round_trip_over_mpi_is_told_as_osu_prints_it():
    row = next(one for one in small_findings().headline.effects if one.what == "MPI round trip, 64 B")
    (osu,) = [words for words in reach_words(small_findings()) if "osu_latency" in words]
    told = {fabric: float(number) for number, fabric in re.findall(r"([\d.]+) µs on ([\w-]+)", osu)}
    assert told == {one.fabric: pytest.approx((one.value or 0) / 2e3, rel=0.01) for one in row.readings}
