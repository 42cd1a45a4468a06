"""The dossier's content, ready for the templates: figures with their tables, downloads, what a reader can choose. Pure."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from markupsafe import Markup

from fabricbench import chapters
from fabricbench.analysis.findings import Caution, Findings, Grade, Severity
from fabricbench.chapters.chapter import Chapter, NamedTables
from fabricbench.model import Layer, Receive
from fabricbench.printable import printable
from fabricbench.report.comma_separated import DIGITS, comparisons_csv
from fabricbench.report.drawing.engine import can_draw
from fabricbench.report.drawing.figure import DARK, LIGHT, Ink, Spec, vega_config
from fabricbench.report.figures import Figure, each_present
from fabricbench.report.first_screen import (
    GRADE_SIGNS,
    Screen,
    build_screen,
    count_words,
    plain_times,
)
from fabricbench.report.html.still import still
from fabricbench.report.html.strips import has_blocks, strips_of
from fabricbench.report.palette import SHAPE_PATHS, colour_range, column_of, shape_range
from fabricbench.report.tables import crossover_table, fabric_table, inventory_table
from fabricbench.report.words import RECEIVE_WORDS, badge_words, facts_words, size_words
from fabricbench.table import Table, table

STILLS = 6
"""Panels of a figure that are there as still pictures: three fabrics have thirty of some, and a page half as large again."""


@dataclass(frozen=True)
class Choice:
    """One fabric in the controls: its name, colour and shape."""

    name: str
    letter: str
    colour: str
    shape: str


@dataclass(frozen=True)
class PlacedPanel:
    """A panel with the id of its place in the page."""

    id: str
    title: str
    height: int
    tags: dict[str, str]
    sides: tuple[Choice, ...]
    picture: Markup
    widest: int | None


@dataclass(frozen=True)
class PlacedFigure:
    """A figure as the template needs it."""

    figure: Figure
    panels: tuple[PlacedPanel, ...]
    folded: tuple[PlacedPanel, ...]
    sizes: tuple[tuple[int, str], ...]
    key: tuple[Choice, ...]
    """What its colours mean; nothing where each panel says it above its sides."""
    files: tuple[tuple[str, Markup], ...] = ()
    """Files to save, compressed."""


@dataclass(frozen=True)
class Section:
    """A chapter as the page shows it: figures by their names, and tables that belong to no figure."""

    id: str
    entry: str
    title: str
    figures: tuple[str, ...]
    lines: tuple[str, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    is_open: bool = False
    """Whether it shows what was found; else it folds away."""
    leads: bool = False
    """Whether it stands right after the first screen."""


@dataclass(frozen=True)
class Page:
    """All that the template shows."""

    figures: dict[str, PlacedFigure]
    fabrics: tuple[Choice, ...]
    columns: tuple[Choice, ...]
    """Of the first screen's table: the fabrics, or before and after of several."""
    layers: tuple[str, ...]
    receives: tuple[str, ...]
    screen: Screen
    level: str
    """What the values of the first screen's rows are."""
    plots: dict[str, Markup]
    """The launches of each effect, by what it is."""
    plot_head: str
    plot_words: str
    """What a strip of launches shows."""
    plot_extent: str
    """From which factor to which such a strip goes."""
    reading: tuple[tuple[str, str], ...]
    """What the words and signs of the first screen mean."""
    method: Sequence[tuple[str, Sequence[str]]]
    """The method in parts, each under its heading."""
    pairs: Table
    facts: tuple[tuple[str, str], ...]
    date: str
    badges: tuple[str, ...]
    warnings: tuple[Caution, ...]
    notes: tuple[Caution, ...]
    warning_words: str
    tables: dict[str, Table]
    packed_csv: Markup
    """Every comparison, compressed: the script unpacks it."""
    data: str
    """What the script draws, compressed."""
    sections: tuple[Section, ...]


def build_page(findings: Findings) -> Page:
    """Decide what the dossier shows."""
    figures: dict[str, Figure] = {}
    stills: Stills = {}
    for name, figure in each_present(findings, is_interactive=True):
        figures[name] = figure
        stills |= _ordered_stills(figure)
    layers = {summary.key.layer for summary in findings.summaries}
    receives = {summary.key.receive for summary in findings.summaries}
    screen = build_screen(findings)
    plots, axis = strips_of(findings, screen)
    return Page(
        fabrics=_choices(findings),
        columns=tuple(_column(findings, letter, name) for letter, name in screen.fabrics),
        layers=tuple(layer.value for layer in Layer if layer in layers),
        receives=tuple(RECEIVE_WORDS[receive] for receive in Receive if receive in receives),
        screen=screen,
        level=screen.level,
        plots=plots,
        plot_head="Blocks," if has_blocks(findings) else "Launches,",
        plot_words=f"times better than {screen.fabrics[0][1]}" if screen.fabrics else "",
        plot_extent=axis.words,
        reading=_reading(findings, is_alone=screen.is_alone),
        method=chapters.method_parts(findings),
        pairs=_pairs(screen),
        facts=tuple(fact for fact in facts_words(findings) if fact[0] != "Started"),
        date=_date(findings.started),
        badges=tuple(badge_words(findings)),
        warnings=tuple(one for one in findings.warnings if one.severity is not Severity.NOTE),
        notes=tuple(one for one in findings.warnings if one.severity is Severity.NOTE),
        warning_words=count_words(findings.warnings),
        tables={
            "crossovers": crossover_table(findings.crossovers),
            "fabrics": fabric_table(findings),
            "inventory": inventory_table(findings),
        },
        packed_csv=packed(comparisons_csv(findings)),
        data=packed_json(
            {
                "specs": {
                    panel_id(figure.name, index): {
                        "spec": _with_rows_once(panel.spec),
                        "height": panel.height,
                        "figure": figure.name,
                    }
                    for figure in figures.values()
                    for index, panel in enumerate(figure.panels)
                },
                "switchable": [figure.name for figure in figures.values() if figure.is_switchable],
                "config": {"light": live_config(LIGHT), "dark": live_config(DARK)},
            }
        ),
        sections=_sections(findings, figures),
        # Last: their stills are drawn meanwhile.
        figures={name: _placed(figure, _choices(findings), stills) for name, figure in figures.items()},
    )


GRADE_MEANINGS = {
    "clear": "decided, and nothing that is known would change it",
    "doubtful": "decided by the numbers, but the instrument or the hosts speak against them: see the number beside it",
    "alarm": "decided by the numbers, but what speaks against them would leave nothing of it",
    "open": "not decided: more blocks are needed, or there is nothing to decide",
    "void": "the numbers cannot be right, or hardly any launch gave one",
}


READING_OF_ONE = (
    (
        "Level",
        "the geometric mean over launches, of p99 and p99.9 their median; ladder, curves and tables have medians",
    ),
    ("Interval", "of its row alone: how far the scatter of launches leaves the level open"),
    (
        "Round trip",
        "a message there and its answer back; half of it is no latency of one way unless both ways are alike",
    ),
    ("Of line rate", "the payload that arrived, in bits, of all bits that the wire carries in that time"),
)
"""What the words of a first screen mean where nothing is compared."""


def _reading(findings: Findings, *, is_alone: bool) -> tuple[tuple[str, str], ...]:
    level = f"{findings.confidence * 100:g} %"
    launch = (
        "Launch",
        "one start of the measuring program on all nodes of a fabric: what is repeated, and what n counts",
    )
    if is_alone:
        return (launch, *READING_OF_ONE)
    levels = (
        "on the first screen the geometric mean over launches (of p99 and p99.9 their median), so that levels divide to the "
        "ratio; in ladder, curves and "
        "operations the median over launches. The two differ a little."
    )
    ratio = (
        "how many times better the named fabric is, with an interval; all intervals of the first screen hold together with "
        f"{level} confidence, those of figures and tables each alone"
    )
    return (
        launch,
        ("Block", "one launch of everything on every fabric, in a balanced order: fabrics are compared block by block"),
        ("Level", levels),
        ("Ratio", ratio),
        (
            "Margin",
            f"{findings.margin * 100:g} %: a smaller difference does not matter; the grey band in strips and plots",
        ),
        ("Strip", "each point a block (before and after: a launch); right is better; the upright line is the whole"),
        *((f"{GRADE_SIGNS[grade]} {grade.value}", GRADE_MEANINGS[grade.value]) for grade in Grade),
    )


def _sections(findings: Findings, figures: dict[str, Figure]) -> tuple[Section, ...]:
    """Return the chapters that the findings hold something of."""
    found = (_section(chapter, findings, figures) for chapter in chapters.CHAPTERS)
    return tuple(section for section in found if section is not None)


def _section(chapter: Chapter, findings: Findings, figures: dict[str, Figure]) -> Section | None:
    own = chapter.on_page
    lines = chapter.lines(findings)
    tables = _behind_no_figure(chapter, findings, figures) if own.tables is None else own.tables(findings)
    if not (lines or any(name in figures for name in chapter.figures) or any(content.rows for _, content in tables)):
        return None
    return Section(
        id=chapter.name.replace("-", ""),
        entry=own.entry or chapter.title,
        title=chapter.title,
        figures=tuple(chapter.figures),
        lines=(*lines, *own.lines(findings)),
        tables=tuple(tables),
        is_open=own.is_open,
        leads=chapter.leads,
    )


def _behind_no_figure(chapter: Chapter, findings: Findings, figures: dict[str, Figure]) -> NamedTables:
    """Return the tables of a chapter that none of its figures has behind it."""
    behind = [figures[name].table for name in chapter.figures if name in figures]
    tables = [(name or chapter.title, content) for name, content in chapter.tables(findings)]
    return [(name, content) for name, content in tables if content not in behind]


def live_config(ink: Ink) -> dict[str, Any]:
    """Return the configuration of what the script draws: its marks say nothing themselves, the page says it of their panel."""
    return {**vega_config(ink), "aria": False}


def panel_id(figure: str, index: int) -> str:
    """Return the id of a panel's element."""
    return f"panel-{figure}-{index}"


Stills = dict[str, Callable[[], Markup]]
"""What waits for the still picture of a panel, by its id."""


def _ordered_stills(figure: Figure) -> Stills:
    """Have the first panels of a figure drawn."""
    first = sorted(range(len(figure.panels)), key=lambda index: figure.panels[index].is_folded)
    return {
        panel_id(figure.name, index): still(
            figure.panels[index], panel_id(figure.name, index), is_alone=len(figure.panels) == 1
        )
        for index in (first[:STILLS] if can_draw() else ())
    }


def _placed(figure: Figure, fabrics: tuple[Choice, ...], stills: Stills) -> PlacedFigure:
    of = {fabric.name: fabric for fabric in fabrics}
    panels = tuple(
        PlacedPanel(
            panel_id(figure.name, index),
            panel.title,
            panel.height,
            panel.tags,
            tuple(of[name] for name in panel.sides or ()),
            stills.get(panel_id(figure.name, index), Markup)(),
            panel.widest,
        )
        for index, panel in enumerate(figure.panels)
    )
    shown = tuple(placed for placed, panel in zip(panels, figure.panels, strict=True) if not panel.is_folded) or panels
    folded = tuple(panel for panel in panels if panel not in shown)
    sizes = tuple((size, size_words(size)) for size in figure.sizes)
    files = tuple((name, packed(text)) for name, text in figure.files)
    return PlacedFigure(figure, shown, folded, sizes, _key(figure, fabrics), files)


def _key(figure: Figure, fabrics: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """Return what stands under a figure's title: a sign in each colour, with what it means."""
    if figure.key is not None:
        return tuple(Choice(entry.words, "", entry.colour, SHAPE_PATHS["square"]) for entry in figure.key)
    return () if all(panel.sides for panel in figure.panels) else fabrics


def _choices(findings: Findings) -> tuple[Choice, ...]:
    looks = zip(findings.fabrics, colour_range(findings), shape_range(findings), strict=True)
    return tuple(Choice(fabric.name, fabric.letter, colour, SHAPE_PATHS[shape]) for fabric, colour, shape in looks)


def _column(findings: Findings, letter: str, name: str) -> Choice:
    return replace(_choices(findings)[column_of(findings, name)], name=name, letter=letter)


def _pairs(screen: Screen) -> Table:
    """Return every pair of more than two fabrics, whose rows on the first screen hold a ranking."""
    if screen.has_pairs:
        return table((), ())
    pairs = [(row.what, ratio) for row in (*screen.rows, *screen.more_rows) for ratio in row.ratios]
    rows = [(what, f"{ratio.fabric_b} : {ratio.fabric_a}", plain_times(ratio), ratio.verdict) for what, ratio in pairs]
    undecided = [index for index, (_, ratio) in enumerate(pairs) if ratio.leader is None]
    return table(("", "B : A", screen.ratio_head, "Verdict"), rows, (2,), undecided)


def _date(started: str) -> str:
    """Return the day in words; what cannot be read as a time stays as it is."""
    try:
        moment = datetime.fromisoformat(started)
    except ValueError:
        return started
    return f"{moment.day} {moment:%B %Y}"


def packed_json(value: Any) -> Markup:
    """Return a value as compressed JSON, in letters that can stand in any element, its numbers with DIGITS digits."""
    return packed(printable(json.dumps(_rounded(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)))


def _with_rows_once(spec: Spec) -> Spec:
    """Return a view of which several layers name the rows that they share."""
    shared: dict[str, Any] = {}

    def named(layer: Spec) -> Spec:
        rows = layer.get("data", {}).get("values")
        if rows is None:
            return layer
        name = next((name for name, other in shared.items() if other == rows), f"rows-{len(shared)}")
        shared[name] = rows
        return {**layer, "data": {"name": name}}

    layers = [named(layer) for layer in spec.get("layer", ())]
    return {**spec, "layer": layers, "datasets": shared} if shared else spec


def _rounded(value: Any) -> Any:
    """Return what is drawn with as many digits as can be seen; all of them would be half of what it takes.

    A list of numbers is left as it is: those of a histogram are short already, and the most of a page.
    """
    kind = type(value)
    if kind is float:
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value
    if kind is dict:
        return {name: one if type(one) is str else _rounded(one) for name, one in value.items()}
    if kind is list and value and type(value[0]) in (dict, list):
        return [_rounded(one) for one in value]
    return value


LEVEL = 7
"""Of compression: the matrix of a thousand nodes took 5.3 s with the highest, 9, and was a twentieth smaller than in 0.7 s."""


def packed(text: str) -> Markup:
    """Return a text compressed, a third of its size; the page's script unpacks it. The same text gives the same letters."""
    return Markup(base64.b64encode(gzip.compress(text.encode(), LEVEL, mtime=0)).decode())  # noqa: S704 - letters, digits, +, / and =
