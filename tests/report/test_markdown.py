"""The report as Markdown: what a reader on GitHub or GitLab finds in it, and the files beside it."""

from __future__ import annotations

import re
from pathlib import PurePath

import pytest

from fabricbench.chapters import CHAPTERS, METHOD_OF_ALL, method_parts
from fabricbench.report import formats, markdown
from fabricbench.report.formats import FORMATS, Format
from support.example_findings import small_findings

PICTURE = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The report and what stands beside it; its figures are not drawn, which takes ten seconds."""
    monkeypatch.setattr(formats, "_svg", lambda _: b"<svg/>")
    written = FORMATS["markdown"]
    assert isinstance(written, Format)
    assert written.render_files is not None
    return written.render_files(small_findings(), "my report.md")


def test_its_figures_are_files_beside_it_and_every_one_is_shown(files: dict[str, bytes]):
    text = files["my report.md"].decode()
    shown = [path.replace("%20", " ") for path in PICTURE.findall(text)]
    assert "my report.figures/ladder.svg" in shown
    assert sorted([*shown, "my report.md"]) == sorted(files)
    assert {PurePath(path).parent.name for path in shown} == {"my report.figures"}
    assert all(files[path] == b"<svg/>" for path in shown)


def test_without_files_beside_it_there_are_no_pictures():
    assert not PICTURE.search(markdown.render(small_findings()).decode())


def test_the_rows_of_the_first_screen_lead_to_sections_that_are_there(files: dict[str, bytes]):
    text = files["my report.md"].decode()
    headings = {
        re.sub(r"[^\w\- ]", "", line.removeprefix("## ").lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("## ")
    }
    led = re.findall(r"^\| \[[^]]+\]\(#([^)]+)\)", text, re.MULTILINE)
    assert len(led) == len((*small_findings().headline.effects, *small_findings().headline.more_effects))
    assert set(led) == {"how-many-times-faster-size-by-size", "launches-and-samples"} <= headings


def test_what_is_long_is_folded_and_the_ladder_is_no_wider_than_a_page():
    text = markdown.render(small_findings()).decode()
    ladder = text.partition("## The ladder of layers")[2].partition("\n## ")[0]
    rows = [line.count(" | ") + 1 for line in ladder.splitlines() if line.startswith("|")]
    assert 3 <= max(rows) <= markdown.MOST_COLUMNS
    outside = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    tables = [block.count("\n") - 1 for block in outside.split("\n\n") if block.startswith("|")]
    assert max(tables) <= markdown.UNFOLDED_ROWS


def test_the_method_of_a_chapter_stands_under_its_title_whatever_numbers_it_names():
    facts = {"level": "95 %", "error": "5 %", "margin": "2 %"}
    own = {one.title: " ".join(one.method.split()).format(**facts) for one in CHAPTERS if one.method}
    findings = small_findings().model_copy(update={"method": ("All is measured.", *own.values())})
    assert dict(method_parts(findings)) == {
        METHOD_OF_ALL: ["All is measured."],
        **{title: [text] for title, text in own.items()},
    }
