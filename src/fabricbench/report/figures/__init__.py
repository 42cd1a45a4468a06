"""Figures from findings, for the dossier, for papers and for notebooks: those of every report, and those of its chapters.

In a notebook: `figures.draw("round-trip", findings)` is an `altair` chart that shows itself; `figures.builders()` names them all.
What a figure is, and what it is made of, is in `report.drawing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fabricbench import chapters
from fabricbench.analysis.findings import Findings
from fabricbench.errors import UsageError
from fabricbench.report.drawing.engine import drawn_width
from fabricbench.report.drawing.figure import PAPER_PANEL_WIDTH, Builder, Figure, Panel, Spec, compose, interval_note
from fabricbench.report.figures.curves import round_trip_curves, throughput_curves
from fabricbench.report.figures.distributions import distributions, tails
from fabricbench.report.figures.forest import round_trip_forest, throughput_forest, verdict_forest
from fabricbench.report.figures.ladder import ladder
from fabricbench.report.figures.order import order
from fabricbench.report.figures.published import published
from fabricbench.report.words import Shown

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Figure", "Panel", "build", "builders", "draw", "paper_spec", "present", "spec_of"]

FIRST: dict[str, Builder] = {
    "verdict": verdict_forest,
    "ladder": ladder,
    "round-trip": round_trip_curves,
    "throughput": throughput_curves,
    "round-trip-ratios": round_trip_forest,
    "throughput-ratios": throughput_forest,
}
LAST: dict[str, Builder] = {"order": order, "distributions": distributions, "tails": tails, "published": published}
"""Every report has these, before and after the figures of the chapters."""


def builders() -> dict[str, Builder]:
    """Return what draws each figure, by its name, in the order of the report."""
    of_chapters = {name: builder for chapter in chapters.CHAPTERS for name, builder in chapter.figures.items()}
    return FIRST | of_chapters | LAST


def build(name: str, findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the named figure, None where the findings hold nothing for it. UsageError names the figures there are."""
    known = builders()
    if name not in known:
        raise UsageError(f"there is no figure {name!r}", hint=f"choose one of {', '.join(known)}")
    figure = known[name](findings, is_interactive=is_interactive)
    if figure is None or figure.rests_on is not None:
        return figure
    return replace(figure, rests_on=interval_note(findings))


def present(findings: Findings, *, is_interactive: bool = False) -> dict[str, Figure]:
    """Return every figure that the findings hold something for, in the order of the report."""
    return dict(each_present(findings, is_interactive=is_interactive))


def each_present(findings: Findings, *, is_interactive: bool = False) -> Iterator[tuple[str, Figure]]:
    """Yield them one after the other, each with its name."""
    for name in builders():
        figure = build(name, findings, is_interactive=is_interactive)
        if figure is not None:
            yield name, figure


def draw(name: str, findings: Findings) -> alt.ConcatChart:
    """Return the named figure as an altair chart, for a notebook. UsageError where there is nothing to draw."""
    import altair as alt  # noqa: PLC0415 - a second of loading that only notebooks need

    return alt.ConcatChart.from_dict(paper_spec(name, findings))


PIXELS_PER_MM = 96 / 25.4
NARROW_MM = 120.0
"""Below this width panels stand one above the other."""
LEAST_PANEL = 60.0
TOO_WIDE = 4.0
"""Pixels beyond the width asked for, a millimetre: panels that cannot be narrower stand in fewer columns."""
TRIES = 4
"""Of finding the panels' width that gives the figure its own: names and numbers beside them take what they need."""


def paper_spec(name: str, findings: Findings, width_mm: float | None = None) -> Spec:
    """Return the named figure as one Vega-Lite specification, for a paper. UsageError where there is nothing to draw.

    With `width_mm` it is as wide as that, its text still 8 points and more (11 pixels of 1/96 inch).
    """
    figure = build(name, findings)
    if figure is None:
        held = ", ".join(present(findings)) or "none"
        needs = next((f"it needs {one.needs}; " for one in chapters.CHAPTERS if name in one.figures), "")
        hint = f"{needs}figures with data: {held}"
        raise UsageError(f"these findings hold nothing for the figure {name!r}", hint=hint)
    return spec_of(figure, findings, width_mm)


def spec_of(figure: Figure, shown: Shown, width_mm: float | None, panel_width: float = PAPER_PANEL_WIDTH) -> Spec:
    """Return a figure as one Vega-Lite specification, `width_mm` wide, or its panels as wide as they are by themselves."""
    if width_mm is None:
        return compose(figure, shown, panel_width=panel_width)
    return _as_wide(figure, shown, width_mm * PIXELS_PER_MM, 1 if width_mm < NARROW_MM else 3)


def _as_wide(figure: Figure, shown: Shown, width: float, columns: int) -> Spec:
    """Return the figure with panels as wide as the whole needs, in fewer columns where as many do not fit in."""
    spec: Spec = {}
    for number in range(min(columns, len(figure.panels)), 0, -1):
        spec, surplus = _in_columns(figure, shown, width, number)
        if surplus < TOO_WIDE:
            break
    return spec


def _in_columns(figure: Figure, shown: Shown, width: float, columns: int) -> tuple[Spec, float]:
    """Return the figure in so many columns, and how much wider it is: what stands beside panels is known once it is drawn."""
    panel_width = width / columns - 60
    spec: Spec = {}
    surplus = 0.0
    for _ in range(TRIES):
        spec = compose(figure, shown, columns=columns, panel_width=panel_width, width=width)
        surplus = drawn_width(spec) - width
        if abs(surplus) < 1:
            break
        panel_width = max(LEAST_PANEL, panel_width - surplus / columns)
    return spec, surplus
