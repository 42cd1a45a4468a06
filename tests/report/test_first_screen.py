"""The first screen: the same answer in every form, doubts and impossible values where they stand, undecided rows in grey."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from fabricbench.analysis.findings import Doubt, Findings, Grade, Reading, Severity
from fabricbench.report.drawing.figure import UNDECIDED
from fabricbench.report.first_screen import build_screen, count_words
from fabricbench.report.formats import FORMATS, Format
from fabricbench.report.html import render_html
from fabricbench.report.html.strips import common_axis, lines_of, strip
from fabricbench.report.palette import COLOURS
from fabricbench.report.terminal import SCREEN_LINES, render_terminal
from fabricbench.report.words import ratio_words
from support.example_findings import (
    before_after_findings,
    busy_findings,
    example_findings,
    kernel_findings,
    three_fabric_findings,
)
from support.pages import page_of

EXAMPLES = [example_findings, busy_findings, three_fabric_findings, before_after_findings, kernel_findings]
LOOKS = {"fast-ethernet": (COLOURS[0], "circle"), "myrinet": (COLOURS[1], "square")}


def plain(name: str, findings: Findings) -> str:
    """A report as words alone: neither line breaks nor marks of the format."""
    form = FORMATS[name]
    assert isinstance(form, Format)
    return in_words(name, form.render(findings).decode())


def in_words(name: str, text: str) -> str:
    text = re.sub(r"<[^>]*>", " ", text.partition("<main>")[2]) if name == "html" else text.replace("\\", "")
    return " ".join(text.replace("&#39;", "'").split())


@pytest.mark.parametrize("make", EXAMPLES)
@pytest.mark.parametrize("name", ["html", "markdown", "text"])
def test_every_form_tells_the_same_answer(name: str, make: Callable[[], Findings]):
    findings = make()
    screen = build_screen(findings)
    text = in_words(name, page_of(make)) if name == "html" else plain(name, findings)
    for line in (screen.sentence, screen.exceptions, *screen.doubts, screen.counts, screen.detail, screen.conditions):
        assert line in text, line
    for line in (*screen.evidence, *screen.changes, *screen.next_steps, *screen.reproduce):
        assert line in text or name == "text", line  # whose lines break inside a hanging column
    assert text.count(screen.sentence) == 1
    for row in screen.rows:
        for value in row.values:
            assert value.text in text


@pytest.mark.slow
@pytest.mark.parametrize("make", EXAMPLES)
def test_a_doubt_stands_below_the_first_table_that_marks_a_row_with_it(make: Callable[[], Findings]):
    findings = make()
    headline = findings.headline
    (*others, last) = (*headline.more_effects, headline.effects[-1])
    alone = last.model_copy(update={"doubts": (Doubt.of("seen in a row of the fold alone"),), "grade": Grade.DOUBTFUL})
    findings = findings.model_copy(update={"headline": headline.model_copy(update={"more_effects": (*others, alone)})})
    screen = build_screen(findings)
    leading = {number for row in screen.rows for number in row.doubts}
    (number,) = (at for at, doubt in enumerate(screen.doubts, 1) if "seen in a row of the fold alone" in doubt)
    assert number not in leading
    page = render_html(findings)
    first, _, rest = page.partition('class="fold inner more-effects"')
    folded = rest.partition("</details>")[0]
    for part, numbers in (
        (first, leading),
        (folded, {at for at, _ in screen.doubts_of(screen.more_rows, screen.rows)}),
    ):
        assert set(map(int, re.findall(r'<li id="doubt-(\d+)" value="\1">', part))) == numbers
    assert number in {at for at, _ in screen.doubts_of(screen.more_rows, screen.rows)}
    for form, above in (("markdown", "What explains it:"), ("text", "Layers that explain")):
        text = plain(form, findings)
        assert text.index(above) < text.index("seen in a row of the fold alone")


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("make", EXAMPLES)
def test_the_brief_report_is_one_screen_and_hides_nothing_grave(make: Callable[[], Findings], width: int):
    findings = make()
    lines = render_terminal(findings, width, color=False, is_brief=True).splitlines()
    assert len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for one in findings.warnings:
        if one.severity is Severity.INVALID:
            assert f"{one.subject}: {one.text}" in text


def test_doubts_about_the_instrument_stand_in_the_block_of_the_answer():
    page = page_of(busy_findings)
    block = page.partition("<h1")[2].partition("<table")[0]
    assert 'class="evidence in-doubt"' in block
    assert "May change: that myrinet is faster in MPI round trip" in block.replace("\u00a0", " ")
    assert "67 times a round trip" in page.partition("<table")[2].replace("\u00a0", " ")
    assert 'class="evidence in-doubt"' not in page_of(example_findings)
    brief = render_terminal(busy_findings(), 100, color=False, is_brief=True)
    assert brief.index("May change") < brief.index("geometric mean")


def test_a_value_that_cannot_be_is_struck_where_it_stands():
    assert re.search(r"<s>12\.2.Gbit/s</s> <em[^>]*>impossible", page_of(busy_findings))
    assert re.search(r"~~12\.2 Gbit/s[^~]*~~ impossible", plain("markdown", busy_findings()))
    assert "impossible" in render_terminal(busy_findings(), 120, color=False, is_brief=True)
    assert re.search(r"\x1b\[9m *12\.2 Gbit/s", render_terminal(busy_findings(), 120, color=True, is_brief=True))


def test_each_row_has_its_grade_as_a_shape_and_a_word():
    signs = {row.grade: row.grade_words for row in build_screen(busy_findings()).rows}
    assert set(signs) == {Grade.CLEAR, Grade.DOUBTFUL, Grade.VOID}
    assert signs[Grade.CLEAR] == "✓ clear"
    assert signs[Grade.DOUBTFUL].startswith("▲ doubtful [1")
    assert all(f'class="sign" aria-hidden="true">{words[0]}' in page_of(busy_findings) for words in signs.values())


def test_all_launches_are_points_and_those_that_gave_nothing_are_marked():
    readings = busy_findings().headline.effects[1].readings
    lines = lines_of(readings, is_lower_better=False, is_paired=True)
    drawn = str(strip(lines, LOOKS, common_axis([lines], 0.02), is_undecided=False))
    both = [None not in pair for pair in zip(*(one.launches for one in readings), strict=True)]
    assert drawn.count("scale(") + drawn.count("launch-beyond") == sum(both) == 7
    assert drawn.count("launch-nothing") == 3
    assert "3 gave nothing" in drawn
    assert COLOURS[1] in drawn


def reading(fabric: str, *launches: float) -> Reading:
    mean = math.exp(sum(map(math.log, launches)) / len(launches))
    return Reading(fabric=fabric, value=mean, low=None, high=None, launches=launches)


def uprights(drawn: str, name: str) -> list[float]:
    """Where the lines of a strip stand that have this name."""
    return [float(place) for place in re.findall(rf'x1="([\d.]+)" x2="\1"[^>]*class="{name}"', drawn)]


def test_right_is_better_and_a_factor_is_as_long_in_every_row():
    times = lines_of([reading("fast-ethernet", 20.0), reading("myrinet", 10.0)], is_lower_better=True, is_paired=True)
    rates = lines_of([reading("fast-ethernet", 10.0), reading("myrinet", 20.0)], is_lower_better=False, is_paired=True)
    worse = lines_of([reading("fast-ethernet", 10.0), reading("myrinet", 20.0)], is_lower_better=True, is_paired=True)
    axis = common_axis([times, rates, worse], 0.02)
    right, also_right, left = (
        uprights(str(strip(lines, LOOKS, axis, is_undecided=False)), "launch-whole")[0]
        for lines in (times, rates, worse)
    )
    (one,) = uprights(str(strip(times, LOOKS, axis, is_undecided=False)), "launch-one")
    assert left < one < right == also_right
    assert one - left == pytest.approx(right - one, abs=0.2)


def test_a_launch_far_off_is_an_arrow_and_does_not_squeeze_the_others():
    near = (10.0, 10.1, 9.9)
    calm = lines_of([reading("fast-ethernet", *near), reading("myrinet", *near)], is_lower_better=True, is_paired=True)
    wild = lines_of(
        [reading("fast-ethernet", *near), reading("myrinet", 10.0, 10.1, 90.0)], is_lower_better=True, is_paired=True
    )
    axis = common_axis([calm], 0.02)
    drawn = str(strip([replace(wild[0], whole=1.0)], LOOKS, axis, is_undecided=False))
    assert drawn.count("launch-beyond") == 1
    assert drawn.count("scale(") == 2


def test_before_and_after_have_a_line_each_around_the_first_mean():
    lines = lines_of([reading("before", 10.0, 10.2), reading("after", 5.0)], is_lower_better=True, is_paired=False)
    assert [line.fabric for line in lines] == ["before", "after"]
    assert lines[0].whole == 1.0
    assert lines[1].whole == pytest.approx(2.02, abs=0.01)


def test_an_undecided_row_is_grey_in_the_plot_and_in_the_table():
    effect = example_findings().headline.effects[-1]
    assert effect.grade is Grade.OPEN
    lines = lines_of(effect.readings, is_lower_better=True, is_paired=True)
    drawn = str(strip(lines, LOOKS, common_axis([lines], 0.02), is_undecided=True))
    assert UNDECIDED in drawn
    assert not any(colour in drawn for colour, _ in LOOKS.values())
    assert '<tr class="open undecided">' in page_of(example_findings)


@pytest.mark.slow
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
    configuration, counts, effects = (text.index(what) for what in ("driver: 6.1", "3 slower · 71 same", "75.24 µs"))
    assert configuration < counts < effects


def test_warnings_are_counted_by_severity():
    assert count_words(busy_findings().warnings) == "2 invalid, 9 warnings, 1 note"


def test_the_next_step_and_the_way_to_the_same_numbers_can_be_copied():
    page = page_of(example_findings)
    for place in ("next", "reproduce"):
        assert f'<span id="{place}">' in page
        assert f'data-copy="{place}"' in page


def test_no_form_uses_the_words_of_the_house():
    texts = {"html": in_words("html", page_of(example_findings))}
    texts |= {name: plain(name, example_findings()) for name in ("markdown", "text")}
    for name, text in texts.items():
        for words in ("round trip at frame", "undecided elsewhere", "| cell", "probe "):
            assert words not in text.casefold(), (name, words)


def test_the_level_is_called_what_it_is_where_it_stands_in_every_form():
    findings = busy_findings()
    page = page_of(busy_findings)
    assert re.search(r"<th[^>]*>[^\n]*<small>geometric mean \(p99: median\)</small></th>", page)
    assert "the upright line is their median" not in page
    assert "times better on the whole (upright line)" in page
    assert ", geometric mean (p99: median) |" in plain("markdown", findings)
    lines = render_terminal(findings, 120, color=False, is_brief=True).splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("geometric mean"))
    first_row = next(at for at, line in enumerate(lines) if line.startswith("MPI round trip, 64 B"))
    head = " ".join(re.split(r"\s{2,}", line)[0] for line in lines[start:first_row])
    assert head == "geometric mean (p99: median)"


@pytest.mark.parametrize("make", EXAMPLES)
def test_the_evidence_is_at_most_three_lines_and_names_what_a_doubt_would_change(make: Callable[[], Findings]):
    findings = make()
    lines = build_screen(findings).evidence
    assert 1 <= len(lines) <= 3
    doubtful = [one for one in findings.headline.effects if one.grade is Grade.DOUBTFUL]
    assert any(line.startswith("May change: that myrinet is faster in ") for line in lines) == bool(doubtful)
    assert any("shows the links asked for, not real cards" in line for line in lines) == findings.is_emulated


def test_a_value_has_the_digits_of_its_interval_and_lies_within_it():
    for effect in (*example_findings().headline.effects, *busy_findings().headline.effects):
        for value in next(row for row in build_screen(busy_findings()).rows if row.what == effect.what).values:
            low, _, high = value.interval.partition(" to ")
            shown, least, most = (float(re.findall(r"[\d.]+", text)[0]) for text in (value.text, low, high))
            assert least <= shown <= most, value


def test_an_interval_that_tells_nothing_is_called_so():
    assert ratio_words(6.0, 0.0258, 1472.0, is_of_a=False).interval == "no useful interval"
    assert ratio_words(6.0, 5.0, 7.0, is_of_a=False).interval == "5.00 to 7.00"


def test_a_narrow_interval_has_as_many_digits_as_show_its_width():
    found = ratio_words(13.4822, 13.4804, 13.4846, is_of_a=False)
    assert (found.value, found.interval) == ("13.482 ×", "13.480 to 13.485")
    assert ratio_words(2.0, 2.0, 2.0, is_of_a=False).interval == "2.00 to 2.00"
