"""All launches of a row as points, drawn as SVG without a script: a line for each fabric, one logarithmic axis for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from fabricbench.analysis.findings import Reading
from fabricbench.report.drawing.theme import UNDECIDED
from fabricbench.report.palette import SHAPE_PATHS

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


def launch_plot(readings: Sequence[Reading], looks: Mapping[str, tuple[str, str]], *, is_undecided: bool) -> Markup:
    """Return the plot; `looks` gives each fabric's colour and shape. Undecided rows are grey."""
    logs = [
        math.log(value)
        for reading in readings
        for value in (reading.value, *reading.launches)
        if value is not None and value > 0
    ]
    if not logs:
        return Markup()
    low, high = min(logs), max(logs)
    if high - low < LEAST_SPAN:
        middle = (low + high) / 2
        low, high = middle - LEAST_SPAN / 2, middle + LEAST_SPAN / 2
    height = LINE_HEIGHT * len(readings) + 2

    def place(value: float) -> float:
        return EDGE + (math.log(value) - low) / (high - low) * (WIDTH - 2 * EDGE)

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
