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


def test_the_answer_stands_below_what_was_measured_and_when():
    findings = example_findings()
    first, second, third = render_terminal(findings, 200, color=False).splitlines()[:3]
    assert first == f"{findings.title} · 2026-03-14  EMULATED fabrics"
    assert second == findings.headline.system
    assert third == findings.headline.sentence.replace(" us", " µs")


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


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("make", [example_findings, three_fabric_findings, before_after_findings])
def test_no_line_is_wider_than_the_terminal(make: Callable[[], Findings], width: int):
    lines = render_terminal(make(), width, color=False).splitlines()
    assert max(map(len, lines)) <= width


def test_the_kinds_of_verdict_look_different():
    text = render_terminal(before_after_findings(), 120, color=False) + render_terminal(
        example_findings(), 120, color=False
    )
    tables = "\n".join(part.partition("\n\n")[0] for part in text.split("over all message sizes\n")[1:])
    rows = {sign: [line for line in tables.splitlines() if sign in line] for sign in "●◐◇?"}
    assert all("faster" in row for row in rows["●"])
    assert all("ahead" in row for row in rows["◐"])
    assert all("equivalent" in row for row in rows["◇"])
    assert all("not enough data" in row for row in rows["?"])
    assert all(rows[sign] for sign in "●◇?")


def test_names_with_rich_markup_are_shown_as_they_are():
    findings = hostile_findings().model_copy(update={"testbed": "[bold]red[/bold]"})
    assert "</script>" in render_terminal(findings, 200, color=False)
