"""The dossier in a real browser: every figure is drawn, nothing is reported on the console, nothing sticks out."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from fabricbench.analysis.findings import Doubt, Evidence, Findings
from fabricbench.report.figures import present
from fabricbench.report.html import render_html
from support.browser import Browser, Seen, find_browser
from support.example_findings import (
    before_after_findings,
    busy_findings,
    example_findings,
    hostile_findings,
    small_findings,
    three_fabric_findings,
)
from support.example_rdma import rdma_cells, rdma_findings
from support.pages import page_of

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

NARROW = 400
"""Chromium's windows are 500 pixels wide at least, so narrow pages are looked at through a frame."""


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return find_browser(tmp_path / "profile")


def written(page: str, folder: Path, script: str = "") -> Path:
    """Write the dossier, with a script at its end that plays the reader."""
    path = folder / "dossier.html"
    head, end, tail = page.rpartition("</body>")
    path.write_text(f"{head}<script>{script}</script>{end}{tail}", encoding="utf-8")
    return path


def plots(findings: Findings) -> int:
    return sum(len(figure.panels) for figure in present(findings, is_interactive=True).values())


def drawn_marks(seen: Seen) -> list[int]:
    """For each drawn plot, how many marks it holds."""
    pieces = re.split(r'<div class="plot[^"]*"', seen.dom)[1:]
    return [len(re.findall(r'class="mark-(?:symbol|area|line|rule|rect) role-mark', piece)) for piece in pieces]


@pytest.mark.slow
def test_the_figures_of_rdma_are_drawn_and_none_is_empty(browser: Browser, tmp_path: Path):
    findings = rdma_findings(tmp_path / "run", rdma_cells(queue_pairs=(1, 4)))
    seen = browser.open(written(render_html(findings), tmp_path), width=1280)
    assert seen.console == []
    assert int(seen.attribute("plots")) == plots(findings)
    assert min(drawn_marks(seen)) > 0
    assert seen.attribute("overflow") == "0"


PLACES = """
const place = (name, selector, edge) => {
  const element = document.querySelector(selector);
  if (element) document.documentElement.dataset[name] = Math.round(element.getBoundingClientRect()[edge] + scrollY);
};
place("effects", "#effects tbody", "top");
place("effectsEnd", "#effects tbody", "bottom");
place("lines", ".lines", "bottom");
document.documentElement.dataset.tall = document.documentElement.scrollHeight;
"""


def full_findings() -> Findings:
    """The usual dossier with as much on its first screen as a busy demo has had."""
    findings = example_findings()
    headline = findings.headline
    late = (
        "myrinet: the emulated switch released frames up to 3.33 to {} us late (p99 of the worst launch), 5.1 to 26 % of a round "
        "trip; who is faster would be the same without it"
    )
    update = {
        "effects": tuple(
            one.model_copy(update={"doubts": (Doubt.of(late.format(number)),)} if number < 3 else {})
            for number, one in enumerate(headline.effects)
        ),
        "evidence": tuple(
            Evidence(words=line) for line in ("May change: one.", "Emulated: links.", "Clear: 3 of 4 rows.")
        ),
        "where": "tcp ping-pong, blocking, 64 B: a stamped round trip takes 67.7 us longer on fast-ethernet than on myrinet: "
        "48.3 us more between the hosts and 19.5 us more in them; the stage that differs most is wire, by 41.0 us.",
        "next_steps": tuple(f"step {number}: fabricbench run npb --nodes 4 -o RUNDIR" for number in range(4)),
    }
    return findings.model_copy(update={"headline": headline.model_copy(update=update)})


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [busy_findings, three_fabric_findings, example_findings, before_after_findings, full_findings]
)
def test_every_figure_is_drawn_and_the_first_screen_is_one_screen(
    make: Callable[[], Findings], browser: Browser, tmp_path: Path
):
    seen = browser.open(written(page_of(make), tmp_path, PLACES), width=1280, height=800)
    assert seen.console == []
    marks = drawn_marks(seen)
    assert len(marks) == int(seen.attribute("plots")) == plots(make())
    assert min(marks) > 0
    assert seen.attribute("overflow") == "0"
    assert int(seen.attribute("lines")) <= 800
    assert int(seen.attribute("tall")) <= 9_400  # of two fabrics, which had 19,000


@pytest.mark.slow
def test_figures_of_hostile_names_are_drawn_and_the_console_is_silent(browser: Browser, tmp_path: Path):
    seen = browser.open(written(page_of(hostile_findings), tmp_path), width=1280)
    assert seen.console == []
    assert int(seen.attribute("plots")) == plots(hostile_findings())
    assert seen.attribute("overflow") == "0"


@pytest.mark.slow
def test_no_doubt_is_torn_between_two_columns(browser: Browser, tmp_path: Path):
    page = page_of(busy_findings)
    lengthen = (
        "const doubts = [...document.querySelectorAll('.doubts li')]; for (const one of doubts.slice(1)) one.remove();"
    )
    count = "Object.assign(document.documentElement.dataset, {parts: doubts[0].getClientRects().length})"
    more = "doubts[0].textContent = 'who is faster would be the same '.repeat(5);"
    seen = browser.open(written(page, tmp_path, lengthen + more + count), width=1280, height=800)
    assert seen.attribute("parts") == "1"


def framed(page: str, folder: Path, script: str) -> Path:
    """Write the dossier into a frame as narrow as a telephone, which hands its data attributes on."""
    hand_on = "setInterval(() => parent.postMessage({...document.documentElement.dataset}, '*'), 50);"
    inner = written(page, folder, script + hand_on)
    frame = folder / "frame.html"
    listen = "addEventListener('message', (event) => Object.assign(document.documentElement.dataset, event.data))"
    frame.write_text(
        f'<!DOCTYPE html><html><body style="margin:0"><script>{listen}</script>'
        f'<iframe src="{inner.name}" style="width:{NARROW}px;height:800px;border:0"></iframe></body></html>'
    )
    return frame


@pytest.mark.slow
def test_on_a_telephone_the_effects_begin_high_up_and_end_within_little_more_than_a_screen(
    browser: Browser, tmp_path: Path
):
    seen = browser.open(framed(page_of(busy_findings), tmp_path, PLACES), width=600, height=1200)
    assert int(seen.attribute("effects")) < 400
    assert int(seen.attribute("effects-end")) < 900
    assert seen.attribute("overflow") == "0"


FOLLOWER = """
(async () => {
  const later = (ms) => new Promise((done) => setTimeout(done, ms));
  const root = document.documentElement.dataset;
  while (!root.plots) await later(50);
  const fold = document.querySelector("#samples details");
  root.before = fold.open;
  document.querySelector('.contents a[href="#samples"]').click();
  for (let tries = 0; tries < 400 && !fold.open; tries++) await later(25);
  root.after = fold.open;
  document.querySelector(".open-all").click();
  root.all = document.querySelectorAll("details.fold:not([open])").length === 0;
})();
"""


@pytest.mark.slow
def test_a_link_opens_the_fold_it_leads_to_and_a_button_opens_all(browser: Browser, tmp_path: Path):
    seen = browser.open(written(page_of(small_findings), tmp_path, FOLLOWER), width=1280)
    assert seen.console == []
    assert [seen.attribute(name) for name in ("before", "after", "all")] == ["false", "true", "true"]


@pytest.mark.slow
def test_it_fits_into_400_pixels(browser: Browser, tmp_path: Path):
    inner = written(
        page_of(example_findings),
        tmp_path,
        "setInterval(() => parent.postMessage({...document.documentElement.dataset}, '*'), 50);",
    )
    frame = tmp_path / "frame.html"
    listen = "addEventListener('message', (event) => Object.assign(document.documentElement.dataset, event.data))"
    frame.write_text(
        f'<!DOCTYPE html><html><body style="margin:0"><script>{listen}</script>'
        f'<iframe src="{inner.name}" style="width:{NARROW}px;height:9000px;border:0"></iframe></body></html>'
    )
    seen = browser.open(frame, width=600, height=1200)
    assert seen.console == []
    assert seen.attribute("overflow") == "0"
    assert int(seen.attribute("plots")) == plots(example_findings())


READER = """
const report = (name, value) => (document.documentElement.dataset[name] = value);
const count = (selector) => [...document.querySelectorAll(selector)].filter((element) => element.offsetParent).length;
const wait = () => new Promise((done) => {
  const look = () => (document.documentElement.dataset.plots ? done() : setTimeout(look, 50));
  look();
});
const later = (ms) => new Promise((done) => setTimeout(done, ms));
// Plots are drawn anew some time later, and on a busy machine much later.
const until = async (holds) => { for (let tries = 0; tries < 400 && !holds(); tries++) await later(25); };
const click = (name, value) => document.querySelector(`[name="${name}"][value="${value}"]`).click();
const lines = () => document.querySelectorAll('#panel-round-trip-1 .mark-line.role-mark path').length;
(async () => {
  await wait();
  for (const fold of document.querySelectorAll("details.fold")) fold.open = true;
  await until(() => document.querySelector("#panel-distributions-0").offsetWidth > 0);
  report("panelsBefore", count(".panel"));
  report("linesBefore", lines());
  click("fabrics", "myrinet");
  await until(() => lines() === 2 && count(".nothing") >= 2);
  report("linesAfter", lines());
  report("nothing", count(".nothing"));
  click("fabrics", "myrinet");
  await until(() => lines() === 4);
  click("layers", "tcp");
  await until(() => count(".panel") < document.documentElement.dataset.panelsBefore);
  report("panelsAfter", count(".panel"));
  const labels = () => document.querySelector("#panel-throughput-5").textContent;
  const logarithmic = labels();
  click("scale", "linear");
  click("layers", "mpi");
  click("layers", "mpi");
  const isLinear = () => labels() !== logarithmic && labels().includes("0 bit/s");
  await until(isLinear);
  report("linear", isLinear());
  const select = document.querySelector('select[name="size"]');
  const samples = () => document.querySelector("#panel-distributions-0").textContent;
  const small = samples();
  select.value = [...select.options].at(-1).value;
  select.dispatchEvent(new Event("change", { bubbles: true }));
  await until(() => samples() !== small);
  report("resized", samples() !== small);
  const panel = document.querySelector("#panel-round-trip-1");
  const axis = () => [...panel.querySelectorAll(".role-axis-label text")].map((text) => text.textContent).join();
  const before = axis();
  panel.scrollIntoView({ block: "center", behavior: "instant" });
  const { left, top, width, height } = panel.querySelector("svg").getBoundingClientRect();
  const at = { clientX: left + width / 2, clientY: top + height / 3 };
  const wheel = (keys) => new WheelEvent("wheel", { bubbles: true, cancelable: true, deltaY: -300, ...at, ...keys });
  const plain = wheel({});
  document.elementFromPoint(at.clientX, at.clientY).dispatchEvent(plain);
  await later(500);
  report("scrolls", !plain.defaultPrevented && axis() === before);
  document.elementFromPoint(at.clientX, at.clientY).dispatchEvent(wheel({ ctrlKey: true }));
  await until(() => axis() !== before);
  report("zooms", axis() !== before);
  click("layers", "tcp");
  document.querySelector("#figure-round-trip .enlarge").click();
  const isWide = () => document.querySelector("#figure-round-trip .panel").offsetWidth > 700;
  await until(isWide);
  report("wide", isWide());
  const copy = document.querySelector('[data-copy="table-ladder"]');
  let told = copy.textContent; // the button says it for a moment only, and the clipboard answers in real time, not in virtual
  new MutationObserver(() => (told = copy.textContent === "Copied" ? "Copied" : told)).observe(copy, { childList: true });
  copy.click();
  for (let tries = 0; tries < 1400 && told !== "Copied"; tries++) await later(25);
  report("copied", told);
  report("done", "yes");
})();
"""


@pytest.mark.slow
def test_a_reader_can_choose_zoom_and_copy(browser: Browser, tmp_path: Path):
    seen = browser.open(written(page_of(example_findings), tmp_path, READER), width=1280)
    assert seen.console == []
    assert seen.attribute("done") == "yes"
    assert int(seen.attribute("lines-before")) == 4
    assert int(seen.attribute("lines-after")) == 2
    assert int(seen.attribute("nothing")) >= 2
    assert int(seen.attribute("panels-after")) < int(seen.attribute("panels-before"))
    for what in ("linear", "resized", "scrolls", "zooms", "wide"):
        assert seen.attribute(what) == "true", what
    assert seen.attribute("copied") == "Copied"


@pytest.mark.slow
@pytest.mark.parametrize("is_dark", [False, True])
def test_a_screenshot_shows_a_page_of_the_chosen_scheme(is_dark: bool, browser: Browser, tmp_path: Path):
    picture = tmp_path / "dossier.png"
    seen = browser.open(
        written(page_of(small_findings), tmp_path), width=1280, height=2400, screenshot=picture, is_dark=is_dark
    )
    assert seen.console == []
    content = picture.read_bytes()
    assert struct.unpack(">II", content[16:24]) == (1280, 2400)
    assert len(content) > 60_000
