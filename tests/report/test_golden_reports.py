"""Whole reports against golden files: what a reader gets, to the letter."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

import pytest

from fabricbench.analysis.findings import Findings, Interval
from fabricbench.chapters.congestion import CONGESTIONS
from fabricbench.chapters.network_map import MAPS
from fabricbench.chapters.topologies import TOPOLOGIES
from fabricbench.report.comma_separated import findings_csv
from fabricbench.report.formats import FORMATS, Format
from fabricbench.report.terminal import render_terminal
from support.chapter_rows import with_rows
from support.example_findings import before_after_findings, small_findings, three_fabric_findings

NOTHING = Interval(value=0, low=None, high=None)


def rendered(name: str, findings: Findings) -> str:
    form = FORMATS[name]
    assert isinstance(form, Format)
    return form.render(findings).decode()


@pytest.mark.parametrize(("name", "file"), [("markdown", "small.md"), ("csv", "small.csv"), ("json", "small.json")])
def test_a_report_is_the_golden_one(name: str, file: str, check_golden: Callable[[str, str], None]):
    check_golden(file, rendered(name, small_findings()))


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_the_golden_report(width: int, check_golden: Callable[[str, str], None]):
    check_golden(f"terminal-{width}.txt", render_terminal(small_findings(), width, color=False))


def test_the_terminal_shows_three_fabrics_pair_by_pair(check_golden: Callable[[str, str], None]):
    check_golden("terminal-three.txt", render_terminal(three_fabric_findings(), 100, color=False))


def test_json_is_read_back_as_the_same_findings():
    findings = small_findings()
    assert Findings.model_validate_json(rendered("json", findings)) == findings


def test_csv_has_every_cell_and_every_curve_in_seven_digits():
    findings = small_findings()
    lines = rendered("csv", findings).splitlines()
    assert len(lines) == 1 + len(findings.cells) + len(findings.curves)
    assert f"{findings.cells[0].ratio:.7g}" in lines[1].split(",")
    assert not re.search(r"\d\.\d{9}", "\n".join(lines))


def test_a_report_says_emulated_only_where_numbers_are():
    assert "**Emulated**" in rendered("markdown", small_findings())
    real = before_after_findings()
    for name in ("markdown", "text", "html"):
        body = rendered(name, real).partition("</head>")[2] if name == "html" else rendered(name, real)
        assert "mulated fabrics" not in body
        assert 'class="badge"' not in body


def test_what_is_no_comparison_has_a_table_of_its_own_with_its_unit():
    findings = small_findings()
    tables = {name: list(csv.DictReader(io.StringIO(text))) for name, text in findings_csv(findings).items()}
    assert list(tables) == [
        "comparisons",
        "workloads",
        "workload-ratios",
        "workload-speed-up",
        "topologies",
        "congestion",
        "operations",
        "coefficients",
        "start-up",
        "one-way",
        "pairs",
        "slow",
    ]
    assert [float(row["mops_total"]) for row in tables["workloads"] if row["load"].startswith("IS.W")] == [100.0, 480.0]
    found = float(tables["topologies"][0]["channel_throughput"])
    assert found == pytest.approx(TOPOLOGIES.of(findings)[0].channel_throughput.value, rel=1e-6)
    found = float(tables["congestion"][0]["impact_p99_high"])
    assert found == pytest.approx((CONGESTIONS.of(findings)[0].impact_p99 or NOTHING).high, rel=1e-6)
    assert {row["unit"] for rows in tables.values() for row in rows if "metric" in row} == {"ns", "bit/s"}
    assert tables["congestion"][0]["congestor_flows"] == "16"
    assert {row["variant"] for row in tables["operations"]} >= {"4 ranks", "4 ranks,mode=nonblocking"}
    assert len(tables["pairs"]) == 12 * len(MAPS.of(findings))
    assert [row["is_confirmed"] for row in tables["slow"]] == ["True", "False"]


def test_tables_without_rows_are_left_out():
    bare = with_rows(small_findings(), topologies=(), maps=())
    assert {"topologies", "pairs", "slow"}.isdisjoint(findings_csv(bare))
    assert "Patterns of many ranks" not in rendered("markdown", bare)
    assert "The map of the network" not in rendered("html", bare)
    assert "Congestion" in rendered("text", bare)


@pytest.mark.parametrize("name", ["markdown", "text", "html"])
def test_every_form_has_every_section_and_calls_a_suspect_one(name: str):
    body = rendered(name, small_findings())
    for words in (
        "Patterns of many ranks",
        "Congestion",
        "MPI operations",
        "One-way latency",
        "The map of the network",
    ):
        assert words in body, words
    if name != "text":  # whose columns break lines where they must
        assert "n3 is slow with all others" in body
        assert "confirmed by a second run" in body
        assert "suspected: one run" in body
