"""The dossier's content, ready for the templates: figures with their tables, downloads, what a reader can choose. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from fabricbench.analysis.findings import Findings, Severity
from fabricbench.analysis.findings import Warning as FindingsWarning
from fabricbench.model import Layer, Receive
from fabricbench.report.comma_separated import comparisons_csv
from fabricbench.report.decision_tables import decision_lines, decision_tables
from fabricbench.report.figures import Figure, present
from fabricbench.report.figures.theme import DARK, LIGHT, vega_config
from fabricbench.report.kernel_tables import kernel_lines, kernel_tables
from fabricbench.report.palette import colour_range, shape_range
from fabricbench.report.pattern_tables import groups_table, map_verdict, operation_table, slow_table, start_up_table
from fabricbench.report.tables import Table, comparison_table, crossover_table, fabric_table, inventory_table
from fabricbench.report.words import RECEIVE_WORDS, facts_words, size_words, typographic

SHAPE_PATHS = {
    "circle": "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12z",
    "square": "M2.5 2.5h11v11h-11z",
    "triangle-up": "M8 2l6.5 11.5h-13z",
    "diamond": "M8 1l7 7l-7 7l-7-7z",
    "cross": "M6 2h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    "triangle-down": "M8 14l6.5-11.5h-13z",
    "triangle-right": "M14 8l-11.5 6.5v-13z",
}
"""Vega's point shapes once more, for the legend that stands in the page."""


INTERVAL_AT_END = re.compile(r" (\([^()]+ to [^()]+\))$")
EFFECTS_SHOWN = 5
"""On the first screen; the rest folds away. With six the figure beside them would no longer reach their end."""


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
    sizes: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Effect:
    """One line of the first screen, taken apart at its first colon."""

    of: str
    text: str
    interval: str
    """In brackets, where the text ends with one: it is set more quietly."""
    fabric: Choice | None
    """The fabric that the text begins with, the faster one."""


@dataclass(frozen=True)
class Section:
    """A part of the page about one family of patterns: figures by their names, and tables that belong to no figure."""

    id: str
    entry: str
    title: str
    figures: tuple[str, ...]
    lines: tuple[str, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()


@dataclass(frozen=True)
class Page:
    """All that the template shows."""

    figures: dict[str, PlacedFigure]
    fabrics: tuple[Choice, ...]
    layers: tuple[str, ...]
    receives: tuple[str, ...]
    effects: tuple[Effect, ...]
    more_effects: tuple[Effect, ...]
    more_words: str
    facts: tuple[tuple[str, str], ...]
    date: str
    worst: tuple[FindingsWarning, ...]
    tables: dict[str, Table]
    csv_address: str
    data: Markup
    sections: tuple[Section, ...]


def build_page(findings: Findings) -> Page:
    """Decide what the dossier shows."""
    figures = present(findings, is_interactive=True)
    layers = {summary.key.layer for summary in findings.summaries}
    receives = {summary.key.receive for summary in findings.summaries}
    effects = tuple(_effect(text, _choices(findings)) for text in findings.headline.effects)
    shown = len(effects) if len(effects) == EFFECTS_SHOWN + 1 else EFFECTS_SHOWN
    invalid = [warning for warning in findings.warnings if warning.severity is Severity.INVALID]
    return Page(
        figures={name: _placed(figure, _choices(findings)) for name, figure in figures.items()},
        fabrics=_choices(findings),
        layers=tuple(layer.value for layer in Layer if layer in layers),
        receives=tuple(RECEIVE_WORDS[receive] for receive in Receive if receive in receives),
        effects=effects[:shown],
        more_effects=effects[shown:],
        more_words=_more_words(effects[shown:]),
        facts=tuple(fact for fact in facts_words(findings) if fact[0] != "Started"),
        date=_date(findings.started),
        worst=tuple(invalid),
        tables={
            "cells": comparison_table(findings.cells),
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
        ("Times and bandwidths of the operations", operation_table(findings)),
        ("Starting MPI", start_up_table(findings)),
    )
    found = (
        Section("decision", "Decision", "Decision", (), decision_lines(findings), tuple(decision_tables(findings))),
        Section("topologies", "Many ranks", "Patterns of many ranks", ("topologies",)),
        Section("congestion", "Congestion", "Congestion", ("congestion", "incast")),
        Section(
            "operations",
            "MPI operations",
            "MPI operations",
            ("collectives",),
            tables=operations if findings.operations else (),
        ),
        Section(
            "kernels",
            "Kernels",
            "Kernels: the NAS Parallel Benchmarks",
            ("kernel-ratios", "kernel-split", "speed-up"),
            lines=kernel_lines(findings),
            tables=tuple(kernel_tables(findings)[1:]),
        ),
        Section("oneway", "One-way", "One-way latency", ("one-way",)),
        Section(
            "map",
            "Network map",
            "The map of the network",
            ("matrix",),
            lines=(map_verdict(findings.maps),) if findings.maps else (),
            tables=(("Who is slow", slow_table(findings.maps)), ("Groups of nodes", groups_table(findings.maps))),
        ),
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
    return PlacedFigure(figure, panels, tuple((size, size_words(size)) for size in figure.sizes))


def _choices(findings: Findings) -> tuple[Choice, ...]:
    looks = zip(findings.fabrics, colour_range(findings), shape_range(findings), strict=True)
    return tuple(
        Choice(fabric.name, fabric.letter, colour, SHAPE_PATHS[shape], fabric.is_emulated)
        for fabric, colour, shape in looks
    )


def _effect(text: str, fabrics: tuple[Choice, ...]) -> Effect:
    what, colon, effect = typographic(text).partition(": ")
    if not colon:
        return Effect("", what, "", None)
    named = [fabric for fabric in fabrics if effect.startswith(f"{fabric.name} ")]
    interval = INTERVAL_AT_END.search(effect)
    text = effect[: interval.start()] if interval else effect
    return Effect(
        what, text, interval[1] if interval else "", max(named, key=lambda fabric: len(fabric.name), default=None)
    )


def _more_words(folded: tuple[Effect, ...]) -> str:
    """Return what is folded away: `5 more effects, 2 without a faster fabric`."""
    if not folded:
        return ""
    open_ones = sum(effect.fabric is None for effect in folded)
    without = (
        f", {open_ones if open_ones < len(folded) else 'all'} of them without a faster fabric" if open_ones else ""
    )
    return f"{len(folded)} more effects{without}"


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
    escaped = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(escaped)  # noqa: S704 - every sign that could end the element is escaped
