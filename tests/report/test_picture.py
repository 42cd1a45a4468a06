"""The first screen as a picture: all that the screen says, whole, in one file that stands alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from xml.etree.ElementTree import Element, fromstring

import pytest

from fabricbench.analysis.findings import Findings
from fabricbench.errors import UsageError
from fabricbench.report.first_screen import build_screen
from fabricbench.report.formats import FIRST_SCREEN, FORMATS, FigureFormat, picture_names
from fabricbench.report.html.picture import BOLD_LETTER, EDGE, picture
from support.example_findings import (
    before_after_findings,
    busy_findings,
    hostile_findings,
    small_findings,
    three_fabric_findings,
)

EXAMPLES = [small_findings, busy_findings, three_fabric_findings, before_after_findings, hostile_findings]
TEXT = "{http://www.w3.org/2000/svg}text"


def texts(findings: Findings) -> list[Element]:
    return list(fromstring(picture(findings)).iter(TEXT))


def said(findings: Findings) -> str:
    return "".join("".join(one.text or "" for one in texts(findings)).split())


@pytest.mark.parametrize("make", EXAMPLES)
def test_it_says_what_the_screen_says(make: Callable[[], Findings]):
    findings = make()
    screen, words = build_screen(findings), said(make())
    told = [screen.sentence, screen.exceptions, *screen.evidence, *screen.lost, *screen.decision, *screen.reproduce]
    told += [text for _, text in screen.doubts_of(screen.rows)]
    for row in screen.rows:
        told += [row.what, row.grade.value, *(value.text for value in row.values)]
        told += [row.ratios[0].times, row.ratios[0].interval] if screen.has_pairs and row.ratios else [row.ranking]
    assert [text for text in told if "".join(text.split()) not in words] == []
    assert ("emulated" in words) is findings.is_emulated


@pytest.mark.parametrize("make", EXAMPLES)
def test_no_line_leaves_the_picture_and_names_from_elsewhere_are_text(make: Callable[[], Findings]):
    drawn = fromstring(picture(make()))
    assert {one.tag.rpartition("}")[2] for one in drawn.iter()} <= {
        "svg",
        "title",
        "style",
        "rect",
        "text",
        "path",
        "g",
        "line",
    }
    bottom = float(drawn.attrib["height"])
    for one in drawn.iter(TEXT):
        width = len(one.text or "") * float(one.attrib["font-size"]) * BOLD_LETTER
        x = float(one.attrib["x"])
        if one.attrib.get("text-anchor") is None:
            assert x + width <= float(drawn.attrib["width"]), one.text
        elif one.attrib["text-anchor"] == "end":
            assert x - width >= EDGE, one.text
        assert float(one.attrib["y"]) < bottom


def test_many_fabrics_have_a_line_each_and_no_number_lies_over_another():
    findings = three_fabric_findings()
    fabrics = tuple(
        fabric.model_copy(update={"name": f"{fabric.name}-{number}" if number else fabric.name})
        for number in range(4)
        for fabric in findings.fabrics
    )
    many, fewer = (findings.model_copy(update={"fabrics": some}) for some in (fabrics, fabrics[:5]))
    drawn = fromstring(picture(many))
    assert drawn.attrib["width"] == fromstring(picture(fewer)).attrib["width"]
    rows: dict[str, list[tuple[float, float]]] = {}
    for one in drawn.iter(TEXT):
        width = len(one.text or "") * float(one.attrib["font-size"]) * BOLD_LETTER
        left = float(one.attrib["x"]) - (width if one.attrib.get("text-anchor") == "end" else 0.0)
        rows.setdefault(one.attrib["y"], []).append((left, left + width))
    screen = build_screen(many)
    words = said(many)
    assert [name for letter, name in screen.fabrics if f"{letter}{name}".replace(" ", "") not in words] == []
    assert sum(len(places) == 1 + len(screen.rows) for places in rows.values()) >= len(fabrics)
    for places in rows.values():
        ordered = sorted(places)
        assert all(right < left for (_, right), (left, _) in pairwise(ordered))


def test_it_is_one_of_the_pictures_and_has_a_width_of_its_own():
    form = FORMATS["png"]
    assert isinstance(form, FigureFormat)
    assert picture_names(small_findings())[0] == FIRST_SCREEN
    assert form.render(small_findings(), FIRST_SCREEN).startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="has a width of its own"):
        form.render(small_findings(), FIRST_SCREEN, 85.0)
