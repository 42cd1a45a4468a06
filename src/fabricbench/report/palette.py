"""One colour for each fabric, the same in every figure, table and terminal. Layers are told apart by facet, never by colour.

The first two colours are Okabe and Ito's (2008); the others were chosen by a search for the greatest distance from those before
and from the grey of what is undecided, as seen with and without red or green cones (Machado and others, 2009). All keep a contrast
of 3:1 or more on white paper.
"""

from __future__ import annotations

from fabricbench.analysis.findings import Findings
from fabricbench.report.words import Shown

COLOURS = ("#0072B2", "#D55E00", "#8B5CF6", "#188040", "#A86048", "#CC79A7", "#B8860B")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
"""Each fabric has a shape as well, for print without colour."""
SHAPE_PATHS = {
    "circle": "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12z",
    "square": "M2.5 2.5h11v11h-11z",
    "triangle-up": "M8 2l6.5 11.5h-13z",
    "diamond": "M8 1l7 7l-7 7l-7-7z",
    "cross": "M6 2h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    "triangle-down": "M8 14l6.5-11.5h-13z",
    "triangle-right": "M14 8l-11.5 6.5v-13z",
}
"""Vega's point shapes once more, in a square of 16 units, for what stands in the page without Vega."""
TERMINAL_COLOURS = ("blue", "red", "magenta", "green", "yellow", "cyan", "white")


def fabric_names(findings: Shown) -> list[str]:
    """Return the fabrics in their order, which gives each its colour."""
    return [fabric.name for fabric in findings.fabrics]


def colour_range(findings: Shown) -> list[str]:
    """Return a colour for each fabric."""
    return [colour_at(index) for index in range(len(findings.fabrics))]


def shape_range(findings: Shown) -> list[str]:
    """Return a shape for each fabric."""
    return [shape_at(index) for index in range(len(findings.fabrics))]


def colour_at(index: int) -> str:
    """Return the colour of what is the index-th of its kind; beyond the last they come round again, with another shape."""
    return COLOURS[index % len(COLOURS)]


def shape_at(index: int) -> str:
    """Return its shape, out of step with the colours from the eighth on."""
    return SHAPES[(index + index // len(COLOURS)) % len(SHAPES)]


def column_of(findings: Findings, name: str) -> int:
    """Return the place of a fabric; of the columns before and after, which stand for several fabrics, the first and the second."""
    names = fabric_names(findings)
    return list(names).index(name) if name in names else int(name == "after")


def terminal_colour(findings: Findings, name: str) -> str:
    """Return the terminal's name for a fabric's colour."""
    return TERMINAL_COLOURS[column_of(findings, name) % len(TERMINAL_COLOURS)]
