"""The numbers beside a figure: those that it draws, all of them and no others, with their units."""

from __future__ import annotations

import csv
import io
from functools import cache

import pytest

from fabricbench.model import Metric
from fabricbench.report.drawing.drawn import ORIGIN, drawn_csv
from fabricbench.report.figures import build, present
from support.example_findings import before_after_findings, example_findings


@cache
def rows(name: str) -> list[dict[str, str]]:
    findings = example_findings()
    figure = build(name, findings)
    assert figure is not None
    return list(csv.DictReader(io.StringIO(drawn_csv(figure, findings))))


@pytest.mark.slow
def test_every_figure_has_numbers_of_every_panel_that_say_where_they_come_from():
    for name, figure in present(example_findings()).items():
        assert {row["panel"] for row in rows(name)} == {panel.title for panel in figure.panels}
        assert {row[ORIGIN] for row in rows(name)} == {"emulated"}
        assert not any(value.startswith(("[", "{")) for row in rows(name) for value in row.values())


def test_numbers_of_hardware_are_measured():
    findings = before_after_findings()
    figure = build("ladder", findings)
    assert figure is not None
    assert f"{ORIGIN}\n" in drawn_csv(figure, findings)
    assert drawn_csv(figure, findings).endswith(",measured\n")


def test_curves_are_the_medians_with_their_intervals_in_units():
    drawn = rows("round-trip")
    of_medians = {(row["fabric"], row["size"], row["value"], row["low"]) for row in drawn if row["median"]}
    summaries = [one for one in example_findings().summaries if one.key.metric is Metric.ROUND_TRIP_TIME]
    pingpongs = [one for one in summaries if one.key.message_bytes and one.key.setup.parameters == ()]
    assert len(of_medians) > 20
    for one in pingpongs:
        key = (one.fabric, str(float(one.key.message_bytes)), str(one.median.value), str(one.median.low or ""))
        assert key in of_medians
    assert {row["value in"] for row in drawn if row["value"]} == {"ns"}
    assert {row["size in"] for row in drawn if row["size"]} == {"B"}


def test_bins_of_samples_are_a_row_each_and_a_ratio_is_in_times():
    bins = [row for row in rows("distributions") if row["samples in bin"]]
    assert len(bins) > 100
    assert {row["drawn as"] for row in bins} == {"area+line"}
    assert {row["value in"] for row in rows("verdict") if row["value"]} == {"times"}


@pytest.mark.parametrize("look", ["dash", "order", "is course"])
def test_what_only_rules_how_a_mark_looks_is_left_out(look: str):
    assert all(look not in row for name in ("ladder", "round-trip") for row in rows(name))
