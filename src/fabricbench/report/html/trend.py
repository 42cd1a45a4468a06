"""The trend of tests over runs as one HTML file: sentences, still figures and tables; it holds no script and loads nothing."""

from __future__ import annotations

from fabricbench.analysis.findings.trend import Trend
from fabricbench.report import trend as words
from fabricbench.report.drawing.engine import can_draw
from fabricbench.report.html import environment, own_style
from fabricbench.report.html.still import still

MOST_DRAWN = 40
"""Series that have a figure, those that changed first: each takes a tenth of a second and 15 KiB; every one has its table."""


def render_trend(trend: Trend) -> str:
    """Return the page."""
    order = sorted(range(len(trend.series)), key=lambda index: not trend.series[index].changes)
    drawn = order[:MOST_DRAWN] if can_draw() else []
    stills = {
        index: still(words.panel(trend.series[index]), f"trend-{index}", is_alone=True)
        for index in drawn
        if trend.series[index].points
    }
    return (
        environment()
        .get_template("trend.html.j2")
        .render(
            trend=trend,
            words=words,
            figures={index: draw() for index, draw in stills.items()},
            order=order,
            style=own_style(),
        )
    )
