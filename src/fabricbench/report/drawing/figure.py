"""What a figure is: panels that stand side by side, a caption, and the table behind it; and how every figure looks.

Panels hold Vega-Lite as plain values, because a page needs nothing else and building sixty of them through altair takes seconds.
`compose` puts them together for papers and notebooks. Quiet axes, no frame, text in the page's own sans-serif; light for paper,
dark for the dark page.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fabricbench.analysis.findings import Findings
from fabricbench.model import Receive
from fabricbench.report.words import RECEIVE_WORDS, Shown, mark_sentences
from fabricbench.table import Table

SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
PAPER_SANS = "Arimo, Liberation Sans, Arial, Helvetica, sans-serif"
"""For files: vl-convert carries Liberation Sans' metrics on every machine, and SVGs carry Arimo, which has the same
(`embedded_fonts`), so that a figure looks the same everywhere."""

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
            "labelSeparation": 8,
        },
        "legend": {
            "labelColor": ink.text,
            "titleColor": ink.muted,
            "titleFontWeight": "normal",
            "labelFontSize": 11,
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


Spec = dict[str, Any]
"""A Vega-Lite view, layer, channel or scale."""

PAPER_PANEL_WIDTH, ALONE_WIDTH = 250, 560
"""Pixels: three panels side by side fill the width of a two-column page, and one alone most of a screen's column."""
PANEL_LABELS = 45
"""Pixels beside a panel that the labels of its axis take at least."""


@dataclass(frozen=True)
class Panel:
    """One plot. `tags` say what it shows (layer, receive, left and right fabric, sizes): a page hides what was not chosen.

    `spec` has neither width nor title: the page gives it its column, `compose` a fixed width.
    """

    title: str
    spec: Spec
    tags: dict[str, str]
    height: int = 220
    sides: tuple[str, str] | None = None
    """The fabrics that are faster to the left and to the right, where a panel has such sides."""
    is_folded: bool = False
    """Whether a page folds it away, under the figure's `fold_title`."""
    widest: int | None = None
    """Pixels beyond which it is not stretched; None: as wide as its column."""


@dataclass(frozen=True)
class KeyEntry:
    """What one colour of a figure means."""

    words: str
    colour: str


@dataclass(frozen=True)
class Figure:
    """Panels with one caption. `is_switchable` offers log/linear; `sizes` are offered where one message size shows at a time."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    table: Table
    is_switchable: bool = False
    sizes: tuple[int, ...] = ()
    fold_title: str = ""
    rests_on: str | None = None
    """What its marks are of launches, as its paper form says below the title (None: medians with their intervals)."""
    key: tuple[KeyEntry, ...] | None = None
    """What the colours mean where they are not the fabrics'."""
    files: tuple[tuple[str, str], ...] = ()
    """What it shows and its table has no room for, as CSV: the file's name, and its text."""


MEDIAN = "median"
OF_LAUNCHES = "The geometric means of the first screen and of the tables of ratios differ a little from these medians."
"""With every figure of levels: one quantity stands in a report as both."""


class Builder(Protocol):
    """What draws a figure: the figure, or None where the findings hold nothing for it."""

    def __call__(self, findings: Findings, *, is_interactive: bool = False) -> Figure | None:
        """Build the figure; interactive ones follow the page's controls, and the page says beside them what their colours mean."""


def origin_note(findings: Shown) -> str:
    """Return what goes with every figure of numbers that were not measured on hardware: emulated, imported, ..."""
    return " ".join(mark_sentences(findings))


def interval_note(findings: Findings, launches: Iterable[int] | None = None) -> str:
    """Return how the intervals came to be, with n: of `launches`, or of all cells."""
    counted = [summary.launches for summary in findings.summaries] if launches is None else launches
    return median_note(counted, findings.confidence, any(one.median.low is not None for one in findings.summaries))


def median_note(launches: Iterable[int], confidence: float, has_intervals: bool) -> str:
    """Return what medians are of, and how their intervals came to be."""
    n, level = span_of_launches(launches), f"{confidence * 100:g} %"
    if not has_intervals:
        return f"Medians of n = {n}: too few for {level} intervals."
    return f"Medians of n = {n}, with {level} nonparametric intervals."


def ratio_note(findings: Findings, launches: Iterable[int], what: str = "pairs of launches") -> str:
    """Return what ratios rest on: n of what was compared, and the kind of their intervals."""
    level = f"{findings.confidence * 100:g} %"
    return (
        f"Geometric means of ratios, n = {span_words(launches)} {what}, with {level} intervals, each of its row alone."
    )


def receive_note(findings: Findings, receive: Receive) -> str:
    """Return how a probe receives where the findings hold more than one way, else nothing: it goes without saying."""
    return RECEIVE_WORDS[receive] if len(findings.receives) > 1 and receive is not Receive.LIBRARY else ""


def span_words(counts: Iterable[int]) -> str:
    """Return `10`, or `3 to 10`."""
    ordered = sorted(set(counts)) or [0]
    return str(ordered[0]) if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def span_of_launches(counts: Iterable[int]) -> str:
    """Return `10 launches`, `3 to 10 launches`, `1 launch`."""
    span = span_words(counts)
    return "1 launch" if span == "1" else f"{span} launches"


def sentences(*parts: str) -> str:
    """Return a caption from its parts, the empty ones left out."""
    return " ".join(filter(None, parts))


def mark(
    kind: str,
    encoding: Mapping[str, Any],
    *,
    rows: Sequence[Mapping[str, Any]] | None = None,
    keep: Sequence[str] = (),
    **look: Any,
) -> Spec:
    """Return one layer: a mark with its look, what it encodes, its own rows where it has some, and filters."""
    spec: Spec = {"mark": {"type": kind, **look}, "encoding": dict(encoding)}
    if rows is not None:
        spec["data"] = {"values": list(rows)}
    if keep:
        spec["transform"] = [{"filter": test} for test in keep]
    return spec


def tooltip(*fields: str) -> list[Spec]:
    """Return a tooltip that shows fields of text, each under its own name."""
    return [{"field": field, "type": "nominal"} for field in fields]


LETTER = 0.56
"""Width of a letter, in font sizes: a little more than the mean of a sans-serif."""
TITLE_SIZE, SUBTITLE_SIZE = 16, 11


def _lines(text: str, size: int, width: float, columns: int = 1) -> list[str]:
    """Return the lines into which a text breaks in a column of a figure."""
    return textwrap.wrap(text, max(12, int(width / columns / (LETTER * size))))


def compose(
    figure: Figure,
    shown: Shown,
    *,
    columns: int = 3,
    panel_width: float = PAPER_PANEL_WIDTH,
    width: float | None = None,
) -> Spec:
    """Put the panels of a figure side by side for paper, under a title that says where numbers come from.

    Titles break into lines that fit `width`, the whole figure's in pixels (default: what the panels take at least).
    """
    columns = min(columns, len(figure.panels))
    width = columns * (panel_width + PANEL_LABELS) if width is None else width
    panels = [
        {
            **panel.spec,
            "width": min(panel_width, panel.widest or panel_width),
            "height": panel.height,
            "title": _lines(panel.title, 13, width, columns),
        }
        for panel in figure.panels
    ]
    params = list({param["name"]: param for panel in panels for param in panel.pop("params", [])}.values())
    subtitle = [line for line in (figure.rests_on, origin_note(shown)) if line]
    return {
        "title": {
            "text": _lines(figure.title, TITLE_SIZE, width),
            "subtitle": [part for line in subtitle for part in _lines(line, SUBTITLE_SIZE, width)],
            "fontSize": TITLE_SIZE,
            "offset": 16,
        },
        "params": params,
        "concat": panels,
        "columns": columns,
        "spacing": 28,
        "config": {**vega_config(LIGHT, PAPER_SANS), "background": LIGHT.background},
    }
