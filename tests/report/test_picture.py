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
from fabricbench.report.html.picture import BOLD_LETTER, EDGE, WIDTH, picture
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


def test_with_many_fabrics_it_is_wider_and_no_number_lies_over_another():
    findings = three_fabric_findings()
    fabrics = tuple(
        fabric.model_copy(update={"name": f"{fabric.name}-{number}" if number else fabric.name})
        for number in range(3)
        for fabric in findings.fabrics
    )
    drawn = fromstring(picture(findings.model_copy(update={"fabrics": fabrics})))
    assert float(drawn.attrib["width"]) > WIDTH
    rows: dict[str, list[tuple[float, float]]] = {}
    for one in drawn.iter(TEXT):
        if one.attrib.get("text-anchor") == "end":
            width = len(one.text or "") * float(one.attrib["font-size"]) * BOLD_LETTER
            rows.setdefault(one.attrib["y"], []).append((float(one.attrib["x"]) - width, float(one.attrib["x"])))
    assert max(map(len, rows.values())) == 9
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
