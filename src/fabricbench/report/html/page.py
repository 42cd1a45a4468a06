"""The dossier's content, ready for the templates: figures with their tables, downloads, what a reader can choose. Pure.

Beside each row of the first screen all its launches stand as points, drawn as SVG without a script: a line for each fabric on one
logarithmic axis, which is as long in every row: a factor looks alike wherever it stands.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from fabricbench import chapters
from fabricbench.analysis.findings import Findings, Reading, Severity
from fabricbench.chapters.chapter import Chapter, NamedTables
from fabricbench.model import Layer, Receive
from fabricbench.printable import printable
from fabricbench.report.comma_separated import comparisons_csv
from fabricbench.report.drawing.figure import DARK, LIGHT, UNDECIDED, vega_config
from fabricbench.report.figures import Figure, present
from fabricbench.report.first_screen import LEVEL, Screen, WarningGroup, build_screen, count_words, grouped, plain_times
from fabricbench.report.palette import SHAPE_PATHS, colour_range, column_of, fabric_names, shape_range
from fabricbench.report.tables import comparison_table, crossover_table, fabric_table, inventory_table
from fabricbench.report.words import RECEIVE_WORDS, badge_words, facts_words, size_words, times_words
from fabricbench.table import Table, table


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


@dataclass(frozen=True)
class PlacedFigure:
    """A figure as the template needs it."""

    figure: Figure
    panels: tuple[PlacedPanel, ...]
    folded: tuple[PlacedPanel, ...]
    sizes: tuple[tuple[int, str], ...]


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
    plot_extent: str
    """How many times the value at its left end such a plot's right end is."""
    pairs: Table
    facts: tuple[tuple[str, str], ...]
    date: str
    badges: tuple[str, ...]
    warnings: tuple[WarningGroup, ...]
    notes: tuple[WarningGroup, ...]
    warning_words: str
    tables: dict[str, Table]
    csv_address: str
    data: Markup
    sections: tuple[Section, ...]


def build_page(findings: Findings) -> Page:
    """Decide what the dossier shows."""
    figures = present(findings, is_interactive=True)
    layers = {summary.key.layer for summary in findings.summaries}
    receives = {summary.key.receive for summary in findings.summaries}
    groups = grouped(findings.warnings)
    screen = build_screen(findings)
    looks = dict(
        zip(fabric_names(findings), zip(colour_range(findings), shape_range(findings), strict=True), strict=True)
    )
    looks |= {name: looks[fabric_names(findings)[column_of(findings, name)]] for _, name in screen.fabrics}
    extent = common_extent([value.reading for value in row.values] for row in (*screen.rows, *screen.more_rows))
    return Page(
        figures={name: _placed(figure, _choices(findings)) for name, figure in figures.items()},
        fabrics=_choices(findings),
        columns=tuple(_column(findings, letter, name) for letter, name in screen.fabrics),
        layers=tuple(layer.value for layer in Layer if layer in layers),
        receives=tuple(RECEIVE_WORDS[receive] for receive in Receive if receive in receives),
        screen=screen,
        level=LEVEL,
        plots={
            row.what: launch_plot([value.reading for value in row.values], looks, extent, is_undecided=row.is_undecided)
            for row in (*screen.rows, *screen.more_rows)
        },
        plot_extent=f"× {times_words(math.exp(extent))}",
        pairs=_pairs(screen),
        facts=tuple(fact for fact in facts_words(findings) if fact[0] != "Started"),
        date=_date(findings.started),
        badges=tuple(badge_words(findings)),
        warnings=tuple(group for group in groups if group.severity is not Severity.NOTE),
        notes=tuple(group for group in groups if group.severity is Severity.NOTE),
        warning_words=count_words(groups),
        tables={
            "cells": comparison_table(findings, findings.cells),
            "crossovers": crossover_table(findings.crossovers),
            "fabrics": fabric_table(findings),
            "inventory": inventory_table(findings),
        },
        csv_address=data_address(comparisons_csv(findings)),
        data=_script_json(
            {
                "specs": {
                    panel_id(figure.name, index): {"spec": panel.spec, "height": panel.height, "figure": figure.name}
                    for figure in figures.values()
                    for index, panel in enumerate(figure.panels)
                },
                "switchable": [figure.name for figure in figures.values() if figure.is_switchable],
                "config": {"light": vega_config(LIGHT), "dark": vega_config(DARK)},
            }
        ),
        sections=_sections(findings, figures),
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


def panel_id(figure: str, index: int) -> str:
    """Return the id of a panel's element."""
    return f"panel-{figure}-{index}"


def data_address(text: str) -> str:
    """Return an address that holds the text itself, so that a file opened from disk can offer it for download."""
    return f"data:text/csv;charset=utf-8,{quote(text)}"


def _placed(figure: Figure, fabrics: tuple[Choice, ...]) -> PlacedFigure:
    of = {fabric.name: fabric for fabric in fabrics}
    panels = tuple(
        PlacedPanel(
            panel_id(figure.name, index),
            panel.title,
            panel.height,
            panel.tags,
            tuple(of[name] for name in panel.sides or ()),
        )
        for index, panel in enumerate(figure.panels)
    )
    shown = tuple(placed for placed, panel in zip(panels, figure.panels, strict=True) if not panel.is_folded) or panels
    folded = tuple(panel for panel in panels if panel not in shown)
    return PlacedFigure(figure, shown, folded, tuple((size, size_words(size)) for size in figure.sizes))


def _choices(findings: Findings) -> tuple[Choice, ...]:
    looks = zip(findings.fabrics, colour_range(findings), shape_range(findings), strict=True)
    return tuple(Choice(fabric.name, fabric.letter, colour, SHAPE_PATHS[shape]) for fabric, colour, shape in looks)


def _column(findings: Findings, letter: str, name: str) -> Choice:
    return replace(_choices(findings)[column_of(findings, name)], name=name, letter=letter)


def _pairs(screen: Screen) -> Table:
    """Return every pair of more than two fabrics, whose rows on the first screen hold a ranking."""
    if screen.has_pairs:
        return table((), ())
    rows = [
        (row.what, f"{ratio.fabric_b} : {ratio.fabric_a}", plain_times(ratio), ratio.verdict)
        for row in (*screen.rows, *screen.more_rows)
        for ratio in row.ratios
    ]
    undecided = [index for index, row in enumerate(rows) if not row[3].endswith(("faster", "%"))]
    return table(("", "B : A", screen.ratio_head, "Verdict"), rows, (2,), undecided)


def _date(started: str) -> str:
    """Return the day in words; what cannot be read as a time stays as it is."""
    try:
        moment = datetime.fromisoformat(started)
    except ValueError:
        return started
    return f"{moment.day} {moment:%B %Y}"


def _script_json(value: Any) -> Markup:
    """Return JSON that can stand in a script element whatever the names in it are."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    escaped = printable(text).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(escaped)  # noqa: S704 - every sign that could end the element is escaped


WIDTH, LINE_HEIGHT, EDGE = 168.0, 13.0, 8.0
POINT = 0.42
"""Scale of a shape, which is drawn 16 units wide."""
LEAST_SPAN = math.log(1.06)
"""Of the axis: differences of a percent must not fill the row as factors do."""
NOTHING_AT = 3.0
"""Where a launch that gave nothing is marked, left of the axis."""

LAUNCH = Markup(
    '<path d="{shape}" transform="translate({x:.1f} {y:.1f}) scale({scale})" fill="{fill}" stroke="{colour}" stroke-width="2" '
    'fill-opacity=".4" stroke-opacity=".9"/>'
)
NOTHING = Markup('<path d="M-2-2L2 2M-2 2L2-2" transform="translate({x:.1f} {y:.1f})" class="launch-nothing"/>')


def span_of(readings: Sequence[Reading]) -> tuple[float, float] | None:
    """Return the logarithms of the least and the greatest of what is drawn of an effect; None where nothing is."""
    values = [value for reading in readings for value in (reading.value, *reading.launches)]
    logs = [math.log(value) for value in values if value is not None and value > 0]
    return (min(logs), max(logs)) if logs else None


def common_extent(effects: Iterable[Sequence[Reading]]) -> float:
    """Return the extent of every effect's axis, a difference of logarithms: in all rows a length is the same factor."""
    spans = (span_of(readings) for readings in effects)
    return max([LEAST_SPAN, *(high - low for low, high in filter(None, spans))])


def launch_plot(
    readings: Sequence[Reading], looks: Mapping[str, tuple[str, str]], extent: float, *, is_undecided: bool
) -> Markup:
    """Return the plot, with what is drawn in the middle of its axis; `looks` gives each fabric's colour and shape.

    Undecided rows are grey.
    """
    span = span_of(readings)
    if span is None:
        return Markup()
    low = (span[0] + span[1] - extent) / 2
    height = LINE_HEIGHT * len(readings) + 2

    def place(value: float) -> float:
        return EDGE + (math.log(value) - low) / extent * (WIDTH - 2 * EDGE)

    lines = []
    for index, reading in enumerate(readings):
        colour, shape = looks[reading.fabric]
        middle = LINE_HEIGHT * (index + 0.5) + 1
        lines.append(_line(reading, UNDECIDED if is_undecided else colour, shape, middle, place))
    told = "; ".join(f"{reading.fabric}: {_count_words(reading)}" for reading in readings)
    return Markup(
        '<svg class="launches" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
        'aria-label="{told}"><title>{told}</title>{lines}</svg>'
    ).format(width=WIDTH, height=height, told=told, lines=Markup().join(lines))


def _count_words(reading: Reading) -> str:
    silent = sum(launch is None for launch in reading.launches)
    drawn = f"{len(reading.launches) - silent} launches as points, the upright line is their geometric mean"
    return f"{drawn}, {silent} gave nothing (×)" if silent else drawn


def _line(reading: Reading, colour: str, shape: str, middle: float, place: Callable[[float], float]) -> Markup:
    marks = [
        Markup('<line x1="0" x2="{width:g}" y1="{y:.1f}" y2="{y:.1f}" class="launch-axis"/>').format(
            width=WIDTH, y=middle
        )
    ]
    silent = sum(launch is None for launch in reading.launches)
    marks += [NOTHING.format(x=NOTHING_AT + 2.2 * number, y=middle) for number in range(silent)]
    fill = "none" if reading.is_impossible else colour
    marks += [
        LAUNCH.format(
            shape=SHAPE_PATHS[shape],
            x=place(launch) - 8 * POINT,
            y=middle - 8 * POINT,
            scale=POINT,
            fill=fill,
            colour=colour,
        )
        for launch in reading.launches
        if launch is not None and launch > 0
    ]
    if reading.value is not None and reading.value > 0:
        marks.append(
            Markup(
                '<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" stroke="{colour}" stroke-width="2"/>'
            ).format(x=place(reading.value), top=middle - 6, bottom=middle + 6, colour=colour)
        )
    return Markup().join(marks)
