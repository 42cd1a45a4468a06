"""How every figure looks: quiet axes, no frame, text in the page's own sans-serif. Light for paper, dark for the dark page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
PAPER_SANS = "Liberation Sans, Arial, Helvetica, sans-serif"
"""For files: vl-convert carries Liberation Sans' metrics on every machine, so that a figure looks the same everywhere."""

UNDECIDED = "#808790"
"""Neither fabric's colour: for `equivalent` and `not enough data`; 3:1 on white and on the dark page."""

AHEAD_OPACITY = 0.4
"""Of the fabric's colour where it is ahead, perhaps by less than matters."""


@dataclass(frozen=True)
class Ink:
    """The greys of one colour scheme."""

    text: str
    muted: str
    grid: str
    background: str


LIGHT = Ink(text="#1d2126", muted="#565d66", grid="#e6e4df", background="#ffffff")
DARK = Ink(text="#e8e6e1", muted="#a9b0b9", grid="#31363c", background="#1b1e22")


def vega_config(ink: Ink, font: str = SANS) -> dict[str, Any]:
    """Return the Vega-Lite configuration of a colour scheme."""
    return {
        "background": "transparent",
        "font": font,
        "view": {"stroke": None},
        "axis": {
            "labelColor": ink.muted,
            "titleColor": ink.muted,
            "gridColor": ink.grid,
            "domain": False,
            "ticks": False,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "labelPadding": 6,
            "titlePadding": 8,
            "labelLimit": 220,
        },
        "legend": {
            "labelColor": ink.text,
            "titleColor": ink.muted,
            "titleFontWeight": "normal",
            "symbolSize": 70,
            "symbolOpacity": 1,
        },
        "title": {
            "color": ink.text,
            "subtitleColor": ink.muted,
            "anchor": "start",
            "fontSize": 13,
            "fontWeight": 600,
            "subtitleFontSize": 11,
            "offset": 10,
        },
        "text": {"color": ink.muted, "fontSize": 11},
        "rule": {"color": ink.muted},
        "tick": {"color": ink.text},
        "style": {"frame": {"stroke": ink.text}},
    }
