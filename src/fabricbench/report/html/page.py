"""The dossier's content, ready for the templates: figures with their tables, downloads, what a reader can choose. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from fabricbench.analysis.findings import Findings, Severity
from fabricbench.model import Layer, Receive
from fabricbench.printable import printable
from fabricbench.report.application_tables import application_tables
from fabricbench.report.comma_separated import comparisons_csv
from fabricbench.report.decision_tables import decision_lines, decision_tables
from fabricbench.report.figures import Figure, present
from fabricbench.report.figures.curves import MET_BY_USERS
from fabricbench.report.figures.theme import DARK, LIGHT, vega_config
from fabricbench.report.first_screen import LEVEL, Screen, build_screen, plain_times
from fabricbench.report.html.launch_plot import launch_plot
from fabricbench.report.kernel_tables import kernel_lines, kernel_tables
from fabricbench.report.palette import SHAPE_PATHS, colour_range, column_of, fabric_names, shape_range
from fabricbench.report.pattern_tables import groups_table, map_verdict, operation_table, slow_table, start_up_table
from fabricbench.report.tables import Table, comparison_table, crossover_table, fabric_table, inventory_table, table
from fabricbench.report.warning_groups import WarningGroup, count_words, grouped
from fabricbench.report.words import RECEIVE_WORDS, facts_words, size_words

OPEN_STATISTIC = ": median"
"""Of congestion: tails fold away."""


@dataclass(frozen=True)
class Choice:
    """One fabric in the controls: its name, colour and shape."""

    name: str
    letter: str
    colour: str
    shape: str
    is_emulated: bool


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
    fold_title: str
    sizes: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Section:
    """A part of the page about one family of patterns: figures by their names, and tables that belong to no figure."""

    id: str
    entry: str
    title: str
    figures: tuple[str, ...]
    lines: tuple[str, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    is_open: bool = False
    """Whether it shows what was found; else it folds away."""


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
    pairs: Table
    facts: tuple[tuple[str, str], ...]
    date: str
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
    return Page(
        figures={name: _placed(figure, _choices(findings)) for name, figure in figures.items()},
        fabrics=_choices(findings),
        columns=tuple(_column(findings, letter, name) for letter, name in screen.fabrics),
        layers=tuple(layer.value for layer in Layer if layer in layers),
        receives=tuple(RECEIVE_WORDS[receive] for receive in Receive if receive in receives),
        screen=screen,
        level=LEVEL,
        plots={
            row.what: launch_plot([value.reading for value in row.values], looks, is_undecided=row.is_undecided)
            for row in (*screen.rows, *screen.more_rows)
        },
        pairs=_pairs(screen),
        facts=tuple(fact for fact in facts_words(findings) if fact[0] != "Started"),
        date=_date(findings.started),
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
    """Return the sections of patterns that the findings hold something of."""
    operations = (
        ("Times and bandwidths of the operations, medians over launches", operation_table(findings)),
        ("Starting MPI", start_up_table(findings)),
    )
    found = (
        Section(
            "decision",
            "Decision",
            "Decision",
            (),
            decision_lines(findings),
            tuple(decision_tables(findings)),
            is_open=True,
        ),
        Section(
            "kernels",
            "Kernels",
            "Kernels: the NAS Parallel Benchmarks",
            ("kernel-ratios", "kernel-split", "speed-up"),
            lines=kernel_lines(findings),
            tables=tuple(kernel_tables(findings)[1:]),
            is_open=True,
        ),
        Section(
            "applications",
            "Applications",
            "Applications",
            (),
            tables=tuple(application_tables(findings)),
            is_open=True,
        ),
        Section("congestion", "Congestion", "Congestion", ("congestion", "incast"), is_open=True),
        Section(
            "operations",
            "MPI operations",
            "MPI operations",
            ("collectives",),
            tables=operations if findings.operations else (),
            is_open=True,
        ),
        Section(
            "map",
            "Network map",
            "The map of the network",
            ("matrix",),
            lines=(map_verdict(findings.maps),) if findings.maps else (),
            tables=(("Who is slow", slow_table(findings.maps)), ("Groups of nodes", groups_table(findings.maps))),
            is_open=True,
        ),
        Section("topologies", "Many ranks", "Patterns of many ranks", ("topologies",)),
        Section("oneway", "One-way", "One-way latency", ("one-way",)),
    )
    return tuple(
        section
        for section in found
        if any(name in figures for name in section.figures) or any(table.rows for _, table in section.tables)
    )


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
    is_open, fold_title = FOLDED_PANELS.get(figure.name, (None, ""))
    shown = tuple(panel for panel in panels if is_open is None or is_open(panel)) or panels
    folded = tuple(panel for panel in panels if panel not in shown)
    return PlacedFigure(figure, shown, folded, fold_title, tuple((size, size_words(size)) for size in figure.sizes))


def _is_met_by_users(panel: PlacedPanel) -> bool:
    return panel.tags.get("layer") in MET_BY_USERS


FOLDED_PANELS: dict[str, tuple[Callable[[PlacedPanel], bool], str]] = {
    "round-trip": (_is_met_by_users, "Lower layers"),
    "throughput": (_is_met_by_users, "Lower layers"),
    "congestion": (lambda panel: panel.title.endswith(OPEN_STATISTIC), "Tails: p99 and p99.9"),
}
"""Of these figures only some panels stand open: which, and what the fold of the others is called."""


def _choices(findings: Findings) -> tuple[Choice, ...]:
    looks = zip(findings.fabrics, colour_range(findings), shape_range(findings), strict=True)
    return tuple(
        Choice(fabric.name, fabric.letter, colour, SHAPE_PATHS[shape], fabric.is_emulated)
        for fabric, colour, shape in looks
    )


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
