"""Whole reports against golden files: what a reader gets, to the letter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fabricbench.analysis.findings import Findings
from fabricbench.report.formats import FORMATS, Format
from fabricbench.report.terminal import render_terminal
from support.example_findings import before_after_findings, small_findings, three_fabric_findings


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


def test_csv_has_every_cell_and_every_curve_at_full_precision():
    findings = small_findings()
    lines = rendered("csv", findings).splitlines()
    assert len(lines) == 1 + len(findings.cells) + len(findings.curves)
    assert repr(findings.cells[0].ratio) in lines[1].split(",")


def test_a_report_says_emulated_only_where_numbers_are():
    assert "**Emulated**" in rendered("markdown", small_findings())
    real = before_after_findings()
    for name in ("markdown", "text", "html"):
        body = rendered(name, real).partition("</head>")[2] if name == "html" else rendered(name, real)
        assert "mulated fabrics" not in body
        assert 'class="badge"' not in body
