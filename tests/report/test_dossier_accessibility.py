"""The dossier for every reader: nothing leaves the screen, axe-core and the HTML checker find nothing, keys reach the points."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.configurations import configurations_of
from fabricbench.analysis.findings import Findings
from fabricbench.report.html import render_html
from support.browser import Browser, find_browser
from support.configured_runs import write_system
from support.example_findings import (
    busy_findings,
    example_findings,
    small_before_after_findings,
    small_findings,
    three_fabric_findings,
)
from support.pages import page_of

WIDTHS = (320, 360, 641, 768, 1000, 1024, 1150, 1280)
LARGEST = 2_500_000


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return find_browser(tmp_path / "profile")


def with_script(text: str, script: str, path: Path) -> Path:
    """Write a page with a script at its end."""
    head, end, tail = text.rpartition("</body>")
    path.write_text(f"{head}<script>{script}</script>{end}{tail}", encoding="utf-8")
    return path


def without_scripts(text: str) -> str:
    """The page as a browser without JavaScript shows it."""
    return re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


MEASURE = """
const cells = [...document.querySelectorAll("#effects td, #effects tbody th")];
const most = Math.max(...cells.map((cell) => cell.getBoundingClientRect().right));
const root = document.documentElement;
const wider = cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length;
const told = [Math.round(most - innerWidth), root.scrollWidth - root.clientWidth, wider];
parent.postMessage({ [`w${innerWidth}`]: told.join(" ") }, "*");
"""


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(240)
@pytest.mark.parametrize("make", [busy_findings, three_fabric_findings])
def test_the_evidence_never_leaves_the_screen(make: Callable[[], Findings], browser: Browser, tmp_path: Path):
    page = re.sub(r">[\d.]+(?=\u00a0[MG]bit/s)", ">94.169", page_of(make))  # as long as a quiet machine makes them
    for width, (beyond, overflow, wider) in measured(page, browser, tmp_path).items():
        assert beyond <= 0, width
        assert overflow == 0, width
        assert wider == 0, width  # a value that is wider than its cell touches the next one


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(240)
def test_a_page_of_twelve_configurations_is_no_wider_than_its_screen(browser: Browser, tmp_path: Path):
    """On a wide one nothing of their table is beyond its edge; on a narrow one it scrolls within the page."""
    names = [f"Xeon Platinum {8450 + number}" for number in range(12)]
    runs = [write_system(tmp_path / name, {"ib": 1 + at / 9}, seed=at, processor=name) for at, name in enumerate(names)]
    page = render_html(analyse(configurations=configurations_of(runs)))
    found = measured(page, browser, tmp_path)
    assert {overflow for _, overflow, _ in found.values()} == {0}
    assert found[1280][0] <= 0
    assert found[1280][2] == 0


def measured(page: str, browser: Browser, folder: Path) -> dict[int, tuple[int, int, int]]:
    """By the width of the screen: how far cells are beyond its edge, the page is wider, and how many cells touch the next."""
    inner = with_script(without_scripts(page), MEASURE, folder / "dossier.html")
    frames = "".join(
        f'<iframe src="{inner.name}" style="width:{width}px;height:900px;border:0;display:block"></iframe>'
        for width in WIDTHS
    )
    listen = "addEventListener('message', (event) => Object.assign(document.documentElement.dataset, event.data))"
    outer = folder / "frames.html"
    outer.write_text(f'<!DOCTYPE html><html><body style="margin:0"><script>{listen}</script>{frames}</body></html>')
    seen = browser.open(outer, width=1400)
    told = {width: tuple(map(int, seen.attribute(f"w{width}").split())) for width in WIDTHS}
    return {width: (beyond, overflow, wider) for width, (beyond, overflow, wider) in told.items()}


AXE = """
(async () => {
  const root = document.documentElement.dataset;
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  root.axe = JSON.stringify(violations.map(({ id, nodes }) => [id, nodes.length, nodes[0].html.slice(0, 200)]));
})();
"""


def axe_core() -> str:
    """The text of axe-core; skips where it is not installed."""
    try:
        import_module("axe_core_python")
    except ImportError:
        pytest.skip("axe-core is not installed here: pip install axe-core-python (a development dependency)")
    return files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("make", [small_findings, small_before_after_findings])
def test_axe_core_finds_no_fault(make: Callable[[], Findings], browser: Browser, tmp_path: Path):
    page = with_script(without_scripts(page_of(make)), f"{axe_core()}\n{AXE}", tmp_path / "dossier.html")
    seen = browser.open(page, width=1280)
    assert json.loads(html.unescape(seen.attribute("axe"))) == []


def nu_checker() -> list[str]:
    """The command of the Nu HTML checker; skips where there is none."""
    if jar := os.environ.get("VNU_JAR"):
        return ["java", "-Xss8m", "-jar", jar]
    if program := shutil.which("vnu"):
        return [program]
    pytest.skip("no Nu HTML checker here: put vnu on PATH, or name the jar of npm's vnu-jar in VNU_JAR (needs Java)")


@pytest.mark.timeout(240)
def test_the_nu_html_checker_finds_no_error(tmp_path: Path):
    command = nu_checker()
    pages = []
    for make in (example_findings, busy_findings, three_fabric_findings):
        pages.append(tmp_path / f"{make.__name__}.html")
        pages[-1].write_text(page_of(make), encoding="utf-8")
    found = subprocess.run(
        [*command, "--errors-only", *pages], capture_output=True, text=True, check=False, timeout=220
    )
    assert (found.returncode, found.stderr) == (0, "")


class Tree(HTMLParser):
    """Each element's children by name, in order, for what may stand in what."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.children: list[tuple[str, list[str]]] = []
        self._open: list[tuple[str, list[str]]] = [("", [])]
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._open[-1][1].append(tag)
        if tag not in ("meta", "link", "br", "input"):
            self._open.append((tag, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._open[-1][1].append(tag)

    def handle_endtag(self, tag: str) -> None:
        del tag
        self.children.append(self._open.pop())


@pytest.mark.slow
@pytest.mark.parametrize("make", [small_findings, busy_findings])
def test_elements_stand_only_where_html_allows_them(make: Callable[[], Findings]):
    text = page_of(make)
    for tag, children in Tree(text).children:
        if tag == "dl":
            assert set(children) <= {"div"}, children
        if "dt" in children:
            assert children == ["dt", "dd"], children
        if "figcaption" in children:
            assert "figcaption" in (children[0], children[-1])
        if tag == "table":
            assert children[0] == "caption"
        if tag == "tr":
            assert "th" in children, children


@pytest.mark.slow
def test_without_a_script_the_first_panels_of_every_figure_are_there():
    text = page_of(three_fabric_findings)
    for figure in re.findall(r"<figure.*?</figure>", text, flags=re.DOTALL):
        plots = re.findall(r'<div class="plot"[^>]*>(.*?)</div>', figure, flags=re.DOTALL)
        assert all(plot.startswith("<svg") for plot in plots[:6])
        named = re.findall(r'<div class="plot"[^>]* aria-label="([^"]+)"', figure)
        assert len(named) == len(plots)
    assert len(text.encode()) < LARGEST


KEYS = """
(async () => {
  const root = document.documentElement.dataset;
  const later = (ms) => new Promise((done) => setTimeout(done, ms));
  while (!root.plots) await later(50);
  const plot = document.querySelector("#panel-round-trip-1, #panel-round-trip-0");
  const press = (key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const tooltip = () => document.getElementById("vg-tooltip-element");
  plot.focus();
  root.focused = document.activeElement === plot;
  press("ArrowRight");
  await later(50);
  root.told = document.getElementById("point-words").textContent;
  root.shown = tooltip().classList.contains("visible");
  press("ArrowRight");
  root.next = document.getElementById("point-words").textContent !== root.told;
  press("Escape");
  root.closed = !tooltip().classList.contains("visible");
  const links = [...document.querySelectorAll("main a, main button, main summary")].filter((link) => link.offsetParent);
  const bar = document.querySelector(".choose");
  let hidden = 0;
  scrollTo(0, document.body.scrollHeight);
  for (const link of links.reverse()) {
    link.focus();
    const { top, bottom } = link.getBoundingClientRect();
    const edge = bar.getBoundingClientRect();
    if (!bar.contains(link) && edge.top <= 0 && top < edge.bottom && bottom > edge.top) hidden += 1;
  }
  root.hidden = hidden;
  root.done = "yes";
})();
"""


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(240)
def test_keys_reach_the_points_escape_closes_and_no_focus_is_hidden(browser: Browser, tmp_path: Path):
    seen = browser.open(with_script(page_of(small_findings), KEYS, tmp_path / "dossier.html"), width=1280)
    assert seen.console == []
    assert [seen.attribute(name) for name in ("focused", "shown", "next", "closed", "done")] == [
        "true",
        "true",
        "true",
        "true",
        "yes",
    ]
    assert "median: " in seen.attribute("told")
    assert "µs" in seen.attribute("told")
    assert seen.attribute("hidden") == "0"
