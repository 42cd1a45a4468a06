"""The terminal's report: the verdict first, colours only where asked, never wider than the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from fabricbench.analysis.findings import Findings
from fabricbench.report.terminal import render_terminal
from support.example_findings import (
    before_after_findings,
    example_findings,
    hostile_findings,
    three_fabric_findings,
)

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def test_the_verdict_is_the_first_line():
    findings = example_findings()
    first = render_terminal(findings, 200, color=False).splitlines()[0]
    assert first == findings.headline.sentence


def test_there_are_colours_only_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    plain = render_terminal(example_findings(), 100, color=False)
    assert "\x1b" not in plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" in render_terminal(example_findings(), 100, color=True)


def test_colours_change_no_word():
    findings = example_findings()
    coloured = ESCAPE.sub("", render_terminal(findings, 100, color=True))
    plain = render_terminal(findings, 100, color=False)
    assert [line.rstrip() for line in coloured.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("make", [example_findings, three_fabric_findings, before_after_findings])
def test_no_line_is_wider_than_the_terminal(make: Callable[[], Findings], width: int):
    lines = render_terminal(make(), width, color=False).splitlines()
    assert max(map(len, lines)) <= width


def test_the_three_kinds_of_verdict_look_different():
    text = render_terminal(example_findings(), 120, color=False)
    rows = {sign: [line for line in text.splitlines() if sign in line] for sign in "●◇?"}
    assert all("faster" in row for row in rows["●"])
    assert all("equivalent" in row for row in rows["◇"])
    assert all("not enough data" in row for row in rows["?"])
    assert all(rows.values())


def test_names_with_rich_markup_are_shown_as_they_are():
    findings = hostile_findings().model_copy(update={"testbed": "[bold]red[/bold]"})
    assert "</script>" in render_terminal(findings, 200, color=False)


@pytest.mark.parametrize("make", [example_findings, three_fabric_findings, before_after_findings])
def test_the_brief_report_fits_on_a_screen_and_holds_verdict_ladder_and_effects(make: Callable[[], Findings]):
    findings = make()
    brief = render_terminal(findings, 80, color=False, is_brief=True)
    assert len(brief.splitlines()) <= 50
    assert max(map(len, brief.splitlines())) <= 80
    assert "Best throughput" in brief
    assert findings.headline.effects[0].split(":")[0] in brief
    assert "in the dossier" in brief
