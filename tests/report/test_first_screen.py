"""The first screen: the same answer in every form, doubts and impossible values where they stand, undecided rows in grey."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest

from fabricbench.analysis.findings import Caution, Findings, Grade, Reading, Severity
from fabricbench.report.drawing.figure import UNDECIDED
from fabricbench.report.first_screen import build_screen, count_words, grouped
from fabricbench.report.formats import FORMATS, Format
from fabricbench.report.html import render_html
from fabricbench.report.html.page import common_extent, launch_plot
from fabricbench.report.palette import OKABE_ITO
from fabricbench.report.terminal import SCREEN_LINES, render_terminal
from support.example_findings import (
    before_after_findings,
    busy_findings,
    example_findings,
    kernel_findings,
    three_fabric_findings,
)

EXAMPLES = [example_findings, busy_findings, three_fabric_findings, before_after_findings, kernel_findings]
LOOKS = {"fast-ethernet": (OKABE_ITO[0], "circle"), "myrinet": (OKABE_ITO[1], "square")}


def plain(name: str, findings: Findings) -> str:
    """A report as words alone: neither line breaks nor marks of the format."""
    form = FORMATS[name]
    assert isinstance(form, Format)
    text = form.render(findings).decode()
    text = re.sub(r"<[^>]*>", " ", text.partition("<main>")[2]) if name == "html" else text.replace("\\", "")
    return " ".join(text.replace("&#39;", "'").split())


@pytest.mark.parametrize("make", EXAMPLES)
@pytest.mark.parametrize("name", ["html", "markdown", "text"])
def test_every_form_tells_the_same_answer(name: str, make: Callable[[], Findings]):
    findings = make()
    screen = build_screen(findings)
    text = plain(name, findings)
    for line in (screen.sentence, screen.exceptions, *screen.doubts, screen.counts, screen.detail, screen.conditions):
        assert line in text, line
    for line in (*screen.evidence, *screen.changes, *screen.next_steps, *screen.reproduce):
        assert line in text or name == "text", line  # whose lines break inside a hanging column
    assert text.count(screen.sentence) == 1
    for row in screen.rows:
        for value in row.values:
            assert value.text in text


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("make", EXAMPLES)
def test_the_brief_report_is_one_screen_and_hides_nothing_grave(make: Callable[[], Findings], width: int):
    findings = make()
    lines = render_terminal(findings, width, color=False, is_brief=True).splitlines()
    assert len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for group in grouped(findings.warnings):
        if group.severity is Severity.INVALID:
            assert f"{group.subject}: {group.text}" in text


def test_doubts_about_the_instrument_stand_in_the_block_of_the_answer():
    page = render_html(busy_findings())
    block = page.partition("<h1")[2].partition("<table")[0]
    assert 'class="evidence in-doubt"' in block
    assert "67 times a round trip" in block.replace("\u00a0", " ")
    assert 'class="evidence in-doubt"' not in render_html(example_findings())
    brief = render_terminal(busy_findings(), 100, color=False, is_brief=True)
    assert brief.index("DOUBT") < brief.index("MPI round trip, 64 B")


def test_a_value_that_cannot_be_is_struck_where_it_stands():
    assert re.search(r"<s>12\.2.Gbit/s</s> <em[^>]*>impossible", render_html(busy_findings()))
    assert re.search(r"~~12\.2 Gbit/s[^~]*~~ impossible", plain("markdown", busy_findings()))
    assert "impossible" in render_terminal(busy_findings(), 120, color=False, is_brief=True)
    assert re.search(r"\x1b\[9m *12\.2 Gbit/s", render_terminal(busy_findings(), 120, color=True, is_brief=True))


def test_each_row_has_its_grade_as_a_shape_and_a_word():
    signs = {row.grade: row.grade_words for row in build_screen(busy_findings()).rows}
    assert set(signs) == {Grade.CLEAR, Grade.DOUBTFUL, Grade.VOID}
    assert signs[Grade.CLEAR] == "✓ clear"
    assert signs[Grade.DOUBTFUL].startswith("▲ doubtful [1")
    assert all(
        f'class="sign" aria-hidden="true">{words[0]}' in render_html(busy_findings()) for words in signs.values()
    )


def test_all_launches_are_points_and_those_that_gave_nothing_are_marked():
    readings = busy_findings().headline.effects[1].readings
    drawn = str(launch_plot(readings, LOOKS, common_extent([readings]), is_undecided=False))
    assert drawn.count("scale(") == sum(launch is not None for one in readings for launch in one.launches) == 17
    assert drawn.count("launch-nothing") == 3
    assert "3 gave nothing" in drawn
    assert OKABE_ITO[0] in drawn


def test_a_factor_is_as_long_in_every_row_so_that_small_differences_look_small():
    small, large = (
        [
            Reading(fabric=name, value=value, low=None, high=None, launches=(value,))
            for name, value in zip(LOOKS, values, strict=False)
        ]
        for values in ((1.0, 1.1), (1.0, 10.0))
    )
    extent = common_extent([small, large])
    assert extent == pytest.approx(math.log(10))

    def apart(readings: list[Reading]) -> float:
        places = re.findall(r'x1="([\d.]+)" x2="\1"', str(launch_plot(readings, LOOKS, extent, is_undecided=False)))
        return abs(float(places[0]) - float(places[-1]))

    assert apart(small) / apart(large) == pytest.approx(math.log10(1.1), abs=0.01)
    assert common_extent([[]]) > 0


def test_an_undecided_row_is_grey_in_the_plot_and_in_the_table():
    effect = example_findings().headline.effects[-1]
    assert effect.grade is Grade.OPEN
    drawn = str(launch_plot(effect.readings, LOOKS, common_extent([effect.readings]), is_undecided=True))
    assert UNDECIDED in drawn
    assert not any(colour in drawn for colour, _ in LOOKS.values())
    assert '<tr class="open undecided">' in render_html(example_findings())


def test_three_fabrics_are_ranked_in_each_row_and_compared_pair_by_pair_below():
    findings = three_fabric_findings()
    brief = render_terminal(findings, 100, color=False, is_brief=True)
    assert "B > A > C" in brief
    assert "A ~ B ~ C" in brief
    for name in ("html", "markdown", "text"):
        assert "atm-oc3 : myrinet" in plain(name, findings)


@pytest.mark.parametrize("name", ["html", "markdown", "text"])
def test_a_change_report_begins_with_what_differs_and_counts(name: str):
    text = plain(name, before_after_findings())
    configuration, counts, effects = (text.index(what) for what in ("driver: 6.1", "3 slower · 71 same", "75.2 µs"))
    assert configuration < counts < effects


def test_warnings_stand_by_severity_and_what_both_fabrics_share_is_one_line():
    groups = grouped(busy_findings().warnings)
    order = [list(Severity).index(group.severity) for group in groups]
    assert order == sorted(order)
    subjects = [group.subject for group in groups]
    assert "fast-ethernet and myrinet" in subjects
    assert "fast-ethernet and myrinet: tcp ping-pong" in subjects
    assert len({(group.severity, group.text) for group in groups}) == len(groups)
    assert count_words(groups) == "2 invalid, 9 warnings, 1 note"


def test_one_subject_with_several_parts_is_named_once():
    (group,) = grouped(
        [Caution(severity=Severity.NOTE, subject=f"myrinet: {part}", text="same") for part in ("tcp", "udp", "ip")]
    )
    assert group.subject == "myrinet: tcp, udp and ip"


def test_the_next_step_and_the_way_to_the_same_numbers_can_be_copied():
    page = render_html(example_findings())
    for place in ("next", "reproduce"):
        assert f'<dd id="{place}">' in page
        assert f'data-copy="{place}"' in page


def test_no_form_uses_the_words_of_the_house():
    for name in ("html", "markdown", "text"):
        text = plain(name, example_findings()).casefold()
        for words in ("round trip at frame", "undecided elsewhere", "| cell", "probe "):
            assert words not in text, (name, words)


def test_the_level_is_called_what_it_is_where_it_stands_in_every_form():
    findings = busy_findings()
    page = render_html(findings)
    assert re.search(r"<th[^>]*>[^\n]*<small>geometric mean</small></th>", page)
    assert "the upright line is their median" not in page
    assert "the upright line is their geometric mean" in page
    assert ", geometric mean |" in plain("markdown", findings)
    assert "geometric means" in render_terminal(findings, 120, color=False, is_brief=True)
