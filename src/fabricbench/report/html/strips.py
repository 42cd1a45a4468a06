"""The launches of each effect as a strip: how many times better than the first fabric, a point for each block.

Drawn as SVG without a script. Right is better, for times and for rates alike; the axis, a logarithm, is the same in every row, so
that a factor is as long wherever it stands; the grey band is the margin within which a difference does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fabricbench.analysis.findings import Findings, Reading
from fabricbench.report.drawing.figure import UNDECIDED
from fabricbench.report.first_screen import Screen
from fabricbench.report.palette import SHAPE_PATHS, colour_range, column_of, fabric_names, shape_range
from fabricbench.report.words import times_words, typographic

WIDTH, LINE_HEIGHT, EDGE = 168.0, 13.0, 11.0
POINT = 0.42
"""Scale of a shape, which is drawn 16 units wide."""
MOST_SHOWN = 200
"""Launches of which each has its point; of more, one for each half of a pixel."""
MARGINS = 3
"""Of the axis to both sides of 1: differences of a percent must not fill the row as factors do."""
AIR = 0.12
"""Of the axis beyond the outermost mean, for the launches around it; one farther off is an arrow at the edge."""

LAUNCH = Markup(
    '<path d="{shape}" transform="translate({x:.1f} {y:.1f}) scale({scale})" fill="{fill}" stroke="{colour}" stroke-width="2" '
    'fill-opacity=".4"/>'
)
BEYOND = Markup('<path d="M{tip:.1f} {y:.1f}l{back:.1f}-4v8z" fill="{colour}" class="launch-beyond"/>')
NOTHING = Markup('<path d="M-2-2L2 2M-2 2L2-2" transform="translate({x:.1f} {y:.1f})" class="launch-nothing"/>')
UPRIGHT = Markup('<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" class="{name}"{colour}/>')


@dataclass(frozen=True)
class StripLine:
    """One fabric against the first: how many times better in each block (None: one of the two gave nothing), and on the whole."""

    fabric: str
    blocks: tuple[float | None, ...]
    whole: float
    is_impossible: bool


@dataclass(frozen=True)
class Axis:
    """Where on every strip a factor stands; `low` and `high` are logarithms, and so is the margin."""

    low: float
    high: float
    margin: float

    def place(self, times: float) -> float:
        """Return the place of a factor in pixels."""
        return EDGE + (math.log(times) - self.low) / (self.high - self.low) * (WIDTH - 2 * EDGE)

    def holds(self, times: float) -> bool:
        """Whether a factor is on the axis."""
        return self.low <= math.log(times) <= self.high

    @property
    def words(self) -> str:
        """`0.8 to 13.5 ×`: from end to end."""
        return f"{times_words(math.exp(self.low))} to {times_words(math.exp(self.high))} ×"


def lines_of(readings: Sequence[Reading], *, is_lower_better: bool, is_paired: bool) -> tuple[StripLine, ...]:
    """Return each fabric against the first one, block by block; where nothing is paired, each launch against its mean.

    Unpaired, the first fabric has a line too: how its own launches lie around their mean is what the others are seen against.
    """
    first = readings[0] if readings else None
    if first is None or not first.value or first.value <= 0:
        return ()
    found = []
    for reading in readings if not is_paired else readings[1:]:
        against = first.launches if is_paired else (first.value,) * len(reading.launches)
        if reading.value and reading.value > 0:
            blocks = [_times(one, of, is_lower_better) for one, of in zip(reading.launches, against, strict=False)]
            whole = _times(reading.value, first.value, is_lower_better) or 1.0
            found.append(StripLine(reading.fabric, tuple(blocks), whole, reading.is_impossible))
    return tuple(found)


def _times(value: float | None, reference: float | None, is_lower_better: bool) -> float | None:
    """Return how many times better a value is, None where one of the two is missing."""
    if not value or not reference or min(value, reference) <= 0:
        return None
    return reference / value if is_lower_better else value / reference


def common_axis(strips: Iterable[Sequence[StripLine]], margin: float) -> Axis:
    """Return the axis of every row: all means, 1 and its margin, with air for the launches."""
    edge = math.log1p(margin)
    means = [math.log(line.whole) for lines in strips for line in lines]
    low, high = min([-MARGINS * edge, *means]), max([MARGINS * edge, *means])
    air = AIR * (high - low)
    return Axis(low - air, high + air, edge)


def strip(
    lines: Sequence[StripLine], looks: Mapping[str, tuple[str, str]], axis: Axis, *, is_undecided: bool
) -> Markup:
    """Return the strip of one effect; `looks` gives each fabric's colour and shape. Undecided rows are grey."""
    if not lines:
        return Markup()
    height = LINE_HEIGHT * len(lines) + 4
    left, right = (axis.place(math.exp(side * axis.margin)) for side in (-1, 1))
    marks = [
        Markup(
            '<rect x="{x:.1f}" width="{width:.1f}" y="0" height="{height:g}" class="launch-margin"/>'
            '<line x1="{one:.1f}" x2="{one:.1f}" y1="0" y2="{height:g}" class="launch-one"/>'
        ).format(x=left, width=right - left, height=height, one=axis.place(1.0))
    ]
    for index, line in enumerate(lines):
        colour, shape = looks[line.fabric]
        marks.append(_line(line, UNDECIDED if is_undecided else colour, shape, LINE_HEIGHT * (index + 0.5) + 2, axis))
    told = "; ".join(f"{line.fabric}: {_count_words(line)}" for line in lines)
    return Markup(
        '<svg class="launches" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
        'aria-label="{told}"><title>{told}</title>{marks}</svg>'
    ).format(width=WIDTH, height=height, told=told, marks=Markup().join(marks))


def looks_of(findings: Findings, screen: Screen) -> dict[str, tuple[str, str]]:
    """Return the colour and the shape of each fabric, and of each column of the first screen: before and after are such."""
    names = fabric_names(findings)
    looks = dict(zip(names, zip(colour_range(findings), shape_range(findings), strict=True), strict=True))
    return looks | {name: looks[names[column_of(findings, name)]] for _, name in screen.fabrics}


def has_blocks(findings: Findings) -> bool:
    """Whether the points of a strip are blocks, which all fabrics share, and not the launches of each."""
    return findings.headline.changes is None and all(one.is_paired for one in findings.cells)


def strips_of(findings: Findings, screen: Screen) -> tuple[dict[str, Markup], Axis]:
    """Return the strip of each row of the first screen, by what it is, and the axis that all share.

    Runs before and after, or of several configurations, have no blocks in common.
    """
    effects = (*findings.headline.effects, *findings.headline.more_effects)
    is_lower_better = {typographic(effect.what): effect.metric.is_lower_better for effect in effects}
    rows, is_paired = (*screen.rows, *screen.more_rows), has_blocks(findings)
    lines = {
        row.what: lines_of(
            [value.reading for value in row.values], is_lower_better=is_lower_better[row.what], is_paired=is_paired
        )
        for row in rows
    }
    axis, looks = common_axis(lines.values(), findings.margin), looks_of(findings, screen)
    return {row.what: strip(lines[row.what], looks, axis, is_undecided=row.is_undecided) for row in rows}, axis


def _count_words(line: StripLine) -> str:
    silent = sum(one is None for one in line.blocks)
    shown = f"{len(line.blocks) - silent} launches as points, {times_words(line.whole)} times better on the whole (upright line)"
    return f"{shown}, {silent} gave nothing (×)" if silent else shown


def _apart(blocks: Sequence[float], axis: Axis) -> Sequence[float]:
    """Return the launches, of many those alone that stand apart: the others would lie under them."""
    if len(blocks) <= MOST_SHOWN:
        return blocks
    return list(
        {round(2 * axis.place(min(max(one, math.exp(axis.low)), math.exp(axis.high)))): one for one in blocks}.values()
    )


def _line(line: StripLine, colour: str, shape: str, middle: float, axis: Axis) -> Markup:
    marks = [
        Markup('<line x1="0" x2="{width:g}" y1="{y:.1f}" y2="{y:.1f}" class="launch-axis"/>').format(
            width=WIDTH, y=middle
        )
    ]
    silent = sum(one is None for one in line.blocks)
    marks += [NOTHING.format(x=3 + 2.2 * number, y=middle) for number in range(silent)]
    for times in _apart([one for one in line.blocks if one], axis):
        if axis.holds(times):
            marks.append(
                LAUNCH.format(
                    shape=SHAPE_PATHS[shape],
                    x=axis.place(times) - 8 * POINT,
                    y=middle - 8 * POINT,
                    scale=POINT,
                    fill="none" if line.is_impossible else colour,
                    colour=colour,
                )
            )
        else:
            is_right = math.log(times) > axis.high
            tip, back = (WIDTH, -6.0) if is_right else (0.0, 6.0)
            marks.append(BEYOND.format(tip=tip, back=back, y=middle, colour=colour))
    upright = Markup(' stroke="{colour}" stroke-width="2"').format(colour=colour)
    marks.append(
        UPRIGHT.format(x=axis.place(line.whole), top=middle - 6, bottom=middle + 6, name="launch-whole", colour=upright)
    )
    return Markup().join(marks)
