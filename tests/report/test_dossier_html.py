"""The dossier's file: whole, self-contained, safe with any name, and readable without its figures."""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from jinja2 import UndefinedError

from fabricbench.report.drawing.figure import UNDECIDED
from fabricbench.report.figures import builders, present
from fabricbench.report.html import _text, environment, render_html
from fabricbench.report.palette import COLOURS
from support.example_conditions import OF_CONDITIONS
from support.example_curves import OF_CURVES
from support.example_findings import (
    before_after_findings,
    example_findings,
    hostile_findings,
    small_findings,
    three_fabric_findings,
)
from support.example_one_fabric import OF_ONE
from support.example_rdma import OF_RDMA
from support.example_stages import OF_STAGES
from support.example_trend import OF_TREND
from support.pages import page_of

VOID = {"meta", "link", "img", "br", "input", "path"}
LOADING = {"src", "srcset", "data", "action", "poster", "background"}


class Page(HTMLParser):
    """What the tests ask of a page: ids, elements with their attributes and ancestors, the text in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], f"elements left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes, tuple(self._open)))
        if identifier := attributes.get("id"):
            self.ids[identifier] += 1
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open, f"</{tag}> closes nothing"
            assert self._open[-1] == tag, f"</{tag}> closes <{self._open[-1]}>"
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of that name."""
        return [attributes for name, attributes, _ in self.elements if name == tag]


@pytest.fixture(scope="module", params=[example_findings, three_fabric_findings, before_after_findings])
def page(request: pytest.FixtureRequest) -> Page:
    return Page(page_of(request.param))


@pytest.mark.slow
def test_nothing_is_loaded_from_anywhere(page: Page):
    for tag, attributes, _ in page.elements:
        for name, value in attributes.items():
            assert name not in LOADING, (tag, name, value)
            if name == "href":
                assert value is not None
                assert value.startswith(("#", "data:")), (tag, value)
    assert "@import" not in "".join(page.texts["style"])
    assert "url(" not in "".join(page.texts["style"])
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_no_id_is_there_twice_and_every_reference_leads_somewhere(page: Page):
    assert [identifier for identifier, count in page.ids.items() if count > 1] == []
    for tag, attributes, _ in page.elements:
        wanted = [attributes.get("aria-labelledby"), attributes.get("data-copy")]
        href = attributes.get("href") or ""
        wanted += [href[1:]] if href.startswith("#") else []
        for identifier in filter(None, wanted):
            assert identifier in page.ids, (tag, identifier)


def test_every_figure_has_a_table_a_caption_and_a_title(page: Page):
    figures = [attributes["data-figure"] for attributes in page.all("figure")]
    shown = [
        name for name in builders() if name not in OF_CONDITIONS | OF_RDMA | OF_ONE | OF_TREND | OF_CURVES | OF_STAGES
    ]
    assert sorted(map(str, figures)) == sorted(shown)
    inside = Counter(tag for tag, _, ancestors in page.elements if "figure" in ancestors)
    numbers = [item for item in page.all("details") if item.get("class") == "numbers"]
    assert inside["table"] == inside["figcaption"] == len(numbers) == len(figures)
    assert {f"table-{name}" for name in shown} <= set(page.ids)


def test_headings_descend_without_a_gap(page: Page):
    levels = [int(tag[1]) for tag, _, _ in page.elements if tag in {"h1", "h2", "h3", "h4"}]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_it_can_be_used_without_a_mouse(page: Page):
    first_link = page.all("a")[0]
    assert first_link["class"] == "skip"
    assert all(attributes.get("type") == "button" or attributes.get("aria-label") for attributes in page.all("button"))
    scrolling = [item for item in page.all("div") if item.get("class") == "table-scroll"]
    assert scrolling
    assert all(item["tabindex"] == "0" and item["aria-label"] for item in scrolling)


def test_every_emulated_figure_carries_the_badge_and_no_other_does():
    emulated, real = Page(page_of(example_findings)), Page(page_of(before_after_findings))
    badges = [ancestors for tag, item, ancestors in emulated.elements if item.get("class") == "badge" and tag == "span"]
    assert sum("figure" in ancestors for ancestors in badges) == len(emulated.all("figure"))
    assert not [item for item in real.all("span") if item.get("class") == "badge"]


def test_published_figures_are_not_called_emulated():
    """The table of the study of 2000 is real hardware's, in whatever dossier it stands."""
    text = page_of(example_findings)
    heading = next(part for part in text.split("<h3>") if part.startswith("The study of 2000"))
    assert "badge" not in heading.partition("</h3>")[0]
    own = next(part for part in text.split("<h3>") if part.startswith("Times and figures of merit"))
    assert "badge" in own.partition("</h3>")[0]


def unpacked(page: Page) -> dict[str, Any]:
    """What the page's script draws."""
    content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(page.texts["script"][0])))
    return content


@pytest.mark.slow
def test_a_hostile_name_stays_a_name():
    text = page_of(hostile_findings)
    page = Page(text)
    assert not page.all("img")
    assert len(page.all("script")) == 3
    assert "".join(page.texts["title"]).startswith(hostile_findings().title)
    assert set(unpacked(page)) == {"specs", "switchable", "config"}


def test_the_page_holds_a_place_for_every_specification():
    page = Page(page_of(small_findings))
    specs = unpacked(page)["specs"]
    figures = present(small_findings(), is_interactive=True).values()
    assert len(specs) == sum(len(figure.panels) for figure in figures)
    assert set(specs) <= set(page.ids)


def test_a_value_that_the_page_lacks_is_an_error_and_not_a_gap():
    with pytest.raises(UndefinedError):
        environment().from_string("{{ page.nothing }}").render(page=object())


def test_a_standard_run_makes_a_small_file_quickly():
    findings = three_fabric_findings()
    start = time.process_time()
    size = len(render_html(findings).encode())
    assert time.process_time() - start < 10
    assert size < 2_500_000


def _luminance(colour: str) -> float:
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2.2, section 1.4.3."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _schemes() -> list[dict[str, str]]:
    style = _text("dossier.css")
    light, dark = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)) for block in style.split(":root {")[1:3]]
    return [light, dark]


@pytest.mark.parametrize("scheme", _schemes(), ids=["light", "dark"])
def test_text_and_marks_stand_out_from_their_ground(scheme: dict[str, str]):
    for ink, ground in [
        *((ink, ground) for ink in ("ink", "muted", "link", "alarm", "clear", "badge") for ground in ("paper", "tint")),
        ("ink", "alarm-tint"),
        ("alarm", "alarm-tint"),
        ("badge", "badge-tint"),
    ]:
        assert _contrast(scheme[ink], scheme[ground]) >= 4.5, (ink, ground)
    for mark in (*COLOURS, UNDECIDED):
        assert _contrast(mark, scheme["paper"]) >= 3, mark


def test_what_only_a_referee_reads_is_folded_and_every_fold_has_a_link():
    page = Page(page_of(example_findings))
    folded = [item for item in page.all("section") if item.get("class") == "folded"]
    assert {"ratios", "samples", "studies", "method", "inventory"} <= {str(item["id"]) for item in folded}
    links = {str(item.get("href")) for item in page.all("a")}
    assert {f"#{item['id']}" for item in folded} <= links
    assert not [item for item in page.all("details") if "open" in item]


def test_the_bar_of_choices_is_one_line_until_it_is_opened():
    page = Page(page_of(example_findings))
    (form,) = [ancestors for tag, item, ancestors in page.elements if tag == "form"]
    assert "details" in form


def test_tables_set_undecided_rows_in_grey():
    text = page_of(example_findings)
    table = text.partition('id="table-verdict"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr( class=.undecided.)?>(.*?)</tr>", table.partition("<tbody>")[2])
    assert {("faster" in row or "ahead" in row) for mark, row in rows if mark} == {False}
    assert {("faster" in row or "ahead" in row) for mark, row in rows if not mark} == {True}


def test_heads_of_tables_say_that_their_intervals_are_unadjusted():
    text = page_of(example_findings)
    for name in ("verdict", "round-trip-ratios", "workload-ratios", "collectives"):
        head = text.partition(f'id="table-{name}"')[2].partition("</thead>")[0]
        assert "interval, unadjusted" in head, name
