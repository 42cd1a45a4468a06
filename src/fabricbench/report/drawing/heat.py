"""Heat maps: cells with a number each, in the colour of who leads or of how slow they are; colour only helps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fabricbench.report.drawing.figure import Spec, mark

ROW_HEIGHT = 24
LETTER_WIDTH, LABELS_WIDTH, CELL_WIDTH = 7, 200, 110
"""Pixels of a letter, of the names of rows at most, and of a cell at most: one as wide as a page looks like a bar with a length."""
NEUTRAL = "#f1efe9"
"""No difference. Each cell's text is dark or light, whichever stands out from its colour, on the dark page too."""
DARK_TEXT, LIGHT_TEXT = "#1d2126", "#ffffff"
MIDDLE_LIGHT = 0.2
"""Relative luminance (WCAG 2.2) at which dark and light text stand out alike."""
LEAST_REACH = math.log(1.25)
"""Of a logarithm: small differences must not look like large ones for want of others."""


def widest(labels: Sequence[str], columns: Sequence[str]) -> int:
    """Return how wide cells in so many columns, with the names of their rows, get."""
    return min(LABELS_WIDTH, LETTER_WIDTH * max(map(len, labels))) + CELL_WIDTH * len(columns)


def heat_spec(
    rows: list[dict[str, Any]],
    labels: list[str],
    columns: list[str],
    colours: tuple[str, str],
    hint: list[Spec],
    x_title: str,
) -> Spec:
    """Return cells coloured by `heat` from -1 (first colour) over 0 to 1, with the text of `shown`."""
    x: Spec = {
        "field": "column",
        "type": "nominal",
        "sort": columns,
        "axis": {"title": x_title, "labelAngle": 0, "orient": "bottom", "labelOverlap": "greedy", "grid": False},
    }
    y: Spec = {
        "field": "label",
        "type": "nominal",
        "sort": labels,
        "title": None,
        "axis": {"grid": False, "labelLimit": 190},
    }
    colour: Spec = {
        "field": "heat",
        "type": "quantitative",
        "legend": None,
        "scale": {
            "domain": [-1, 0, 1],
            "range": [colours[0], NEUTRAL, colours[1]],
            "clamp": True,
            "interpolate": "lab",
        },
    }
    rows = [row | {"ink": _text_on(row["heat"], colours)} for row in rows]
    text_colour: Spec = {
        "condition": {"test": f"datum.ink === '{LIGHT_TEXT}'", "value": LIGHT_TEXT},
        "value": DARK_TEXT,
    }
    layers = [
        mark("rect", {"x": x, "y": y, "color": colour, "tooltip": hint}, stroke="#ffffff", strokeWidth=1),
        mark("text", {"x": x, "y": y, "text": {"field": "shown"}, "color": text_colour, "tooltip": hint}),
    ]
    for kind, dash in (("whole", [1, 0]), ("dashed", [4, 3]), ("dotted", [1, 2])):
        if any(row.get("framed") == kind for row in rows):
            keep = [f"datum.framed === '{kind}'"]
            look: dict[str, Any] = {"fillOpacity": 0, "style": "frame", "strokeWidth": 2.5, "strokeDash": dash}
            layers.insert(1, mark("rect", {"x": x, "y": y, "tooltip": hint}, keep=keep, **look))
    return {"data": {"values": rows}, "layer": layers}


def _text_on(heat: float, colours: tuple[str, str]) -> str:
    """Return the text colour that stands out more from a cell's colour."""
    full = colours[0] if heat < 0 else colours[1]
    mixed = [
        abs(heat) * int(full[place : place + 2], 16) + (1 - abs(heat)) * int(NEUTRAL[place : place + 2], 16)
        for place in (1, 3, 5)
    ]
    light = 0.2126 * mixed[0] ** 2.2 + 0.7152 * mixed[1] ** 2.2 + 0.0722 * mixed[2] ** 2.2
    return DARK_TEXT if light / 255**2.2 > MIDDLE_LIGHT else LIGHT_TEXT
