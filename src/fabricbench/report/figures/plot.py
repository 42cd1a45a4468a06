"""One pair of axes with any series: curves, points or bars, and beside them published values of the same kind.

What stands where is the `Plot`'s; here it gets scales and looks. Where fabrics differ each has the colour of its report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fabricbench.analysis.findings.plot import (
    DATE,
    FABRIC,
    LAYER,
    LOAD,
    NODES,
    PATTERN,
    RANKS,
    RUN,
    SIZE,
    Plot,
    PlotPoint,
    PlotY,
)
from fabricbench.errors import UsageError
from fabricbench.model import Pattern
from fabricbench.report.drawing.axes import (
    FEW_POINTS,
    HAS_INTERVAL,
    NUMBER_LABELS,
    SIZE_LABELS,
    decade_ticks,
    even_channel,
    even_ticks,
    logarithmic_channel,
    look_channel,
    plotted_size,
    size_channel,
)
from fabricbench.report.drawing.course import LAUNCH_LOOK, CourseChannels, course_layers
from fabricbench.report.drawing.figure import (
    LIGHT,
    UNDECIDED,
    Figure,
    Panel,
    Spec,
    mark,
    median_note,
    sentences,
    span_words,
    tooltip,
)
from fabricbench.report.figures.beside import Beside, beside_note
from fabricbench.report.palette import colour_at, shape_at
from fabricbench.report.plot_words import (
    COUNTED,
    QUANTITY_WORDS,
    common_words,
    field_of,
    place_words,
    series_names,
    title_of,
    x_title,
)
from fabricbench.report.words import size_words
from fabricbench.table import table

DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 1, 1, 1])
DOUBLINGS = 8.0
"""From so many times the smallest on a row of numbers (nodes, flows) reads better by its doublings."""
MOST_TICKS = 8
HEIGHT, NARROW_HEIGHT, NARROW = 300, 220, 400.0
"""Pixels: how high a plot is, and one as narrow as a column."""
LETTER_PIXELS = 7.0
LEGEND_ROOM = 95.0
"""Pixels that the labels of the axis and the sign beside a name take: a longer name is cut, as the panel would be squeezed else."""
EDGE, EDGE_ROOM = 0.5, 1.1
"""Powers of two right of all sizes: where published values of no size stand, and where the axis ends."""
X_AIR = 0.04
DATE_AIR = 12
"""Pixels left and right of all dates."""
SHOWN = (RUN, FABRIC, LAYER, PATTERN, LOAD, SIZE, RANKS, NODES)
"""Traits that stand beside the pointer and among the numbers that are drawn, whatever tells series apart."""
OTHER_COUNTS = "Of ping-ping 1, send-receive 2, exchange 4 messages in the time of an operation."
BETWEEN, FROM, TO, RIGHT = "between sizes", "from size", "to size", "right of all sizes"
"""Columns of where published values stand that are of no single size."""
PUBLISHED_LOOK: dict[str, Any] = {"filled": False, "shape": "diamond", "size": 90, "strokeWidth": 1.75, "opacity": 1}


def plot_figure(
    plot: Plot,
    *,
    width: float,
    has_bars: bool = False,
    log: tuple[bool, bool] | None = None,
    published: Sequence[Beside] = (),
) -> Figure:
    """Return the figure of a plot about `width` pixels wide: curves, points where places are names, or bars.

    `log` says which of x and y are logarithmic (default: as suits them). UsageError where they cannot be.
    """
    drawing = _Drawing(plot, has_bars, log, width, tuple(published))
    words = QUANTITY_WORDS[plot.y]
    rows = [
        (name, place_words(plot.x, point.x), words.written(point.y), str(point.launches))
        for name, point in drawing.points
    ]
    alone = drawing.names[0] if len(drawing.names) == 1 else ""
    return Figure(
        name="figure",
        title=title_of(plot, is_of_names=drawing.is_of_names),
        caption=drawing.note,
        panels=(
            Panel(
                ", ".join(filter(None, (common_words(plot), alone))),
                drawing.spec(),
                {},
                height=HEIGHT if width > NARROW else NARROW_HEIGHT,
            ),
        ),
        table=table(("Series", x_title(plot.x), words.title, "Launches"), rows, (2, 3)),
        rests_on=drawing.note,
    )


@dataclass(frozen=True)
class _Drawing:
    """A plot as rows, channels and layers."""

    plot: Plot
    has_bars: bool
    log: tuple[bool, bool] | None
    width: float
    published: tuple[Beside, ...]

    def __post_init__(self) -> None:
        is_log_x, is_log_y = self.log or (False, False)
        if self.has_bars and (is_log_x or is_log_y):
            raise UsageError("bars begin at 0, which no logarithmic axis has", hint="leave out --log, or --kind bars")
        if self.plot.y is PlotY.COEFFICIENT and is_log_y:
            raise UsageError(
                "a coefficient may be negative, and then has no logarithm", hint="leave out --log, or say --log x"
            )
        if self.is_of_names and is_log_x:
            raise UsageError(f"names have no logarithm, and {self.plot.x} has names", hint="say --log y, or --log none")

    @cached_property
    def names(self) -> list[str]:
        """The names of the series."""
        return series_names(self.plot)

    @property
    def is_of_names(self) -> bool:
        """Whether places are names side by side."""
        has_names = any(isinstance(point.x, str) for point in self.plot.points)
        return self.has_bars or (has_names and self.plot.x != DATE)

    @property
    def is_log_y(self) -> bool:
        """Whether values stand on a logarithmic axis: as was asked for, or as suits them."""
        if self.log is not None:
            return self.log[1]
        return QUANTITY_WORDS[self.plot.y].is_logarithmic and not self.has_bars

    def is_log_x(self, numbers: Sequence[float]) -> bool:
        """Tell whether places do."""
        if self.log is not None:
            return self.log[0]
        return self.plot.x == SIZE or 0 < min(numbers) * DOUBLINGS <= max(numbers)

    @property
    def note(self) -> str:
        """What points are of launches, and what else a reader has to know."""
        plot, points = self.plot, self.plot.points
        told = [point.y.low is not None for point in points]
        launches = [point.launches for point in points]
        level = f"{plot.confidence * 100:g} %"
        means = f"Geometric means of n = {span_words(launches)} pairs of launches, with {level} intervals."
        patterns = {point.traits[PATTERN] for point in points} if plot.y is PlotY.THROUGHPUT else set()
        others = {Pattern.PINGPING.value, Pattern.SENDRECV.value, Pattern.EXCHANGE.value}
        return sentences(
            means if plot.y.is_paired else median_note(launches, plot.confidence, any(told)),
            f"(t_B - t_A) / t_A, A being {plot.baseline}: below 0, B takes less time." if plot.baseline else "",
            "Throughput of a ping-pong: bytes over half the round trip." if Pattern.PINGPONG.value in patterns else "",
            OTHER_COUNTS if patterns & others else "",
            "Hollow: too few launches for an interval." if any(told) and not all(told) else "",
            "Grey line: as many times as there are more ranks." if self._ideal() else "",
            beside_note(self.published),
            "Right of all sizes: what is published without one." if self._has_edge else "",
            f"Left out, as it cannot be true: {', '.join(plot.left_out)}." if plot.left_out else "",
        )

    @property
    def _has_edge(self) -> bool:
        return any(one.x is None and one.figure.message_bytes is None for one in self.published)

    def spec(self) -> Spec:
        """Return the Vega-Lite view."""
        rows = [self._row(name, point) for name, point in self.points]
        layers = self._of_names() if self.is_of_names else self._curves()
        return {
            "data": {"values": self._with_course(rows)},
            "layer": [*self._references(), *layers, *self._published()],
        }

    @property
    def points(self) -> list[tuple[str, PlotPoint]]:
        """Each point with the name of its series."""
        named = zip(self.names, self.plot.series, strict=True)
        return [(name, point) for name, series in named for point in series.points]

    def _row(self, name: str, point: PlotPoint) -> dict[str, Any]:
        shown = {field_of(trait): point.traits[trait] for trait in self._shown if trait in point.traits}
        if self.plot.x == SIZE:
            shown["message"] = size_words(float(point.x))
        return shown | {
            "series": name,
            field_of(self.plot.x): self._place(point.x),
            "value": point.y.value,
            "low": point.y.low,
            "high": point.y.high,
            "interval": QUANTITY_WORDS[self.plot.y].written(point.y),
            "launches": point.launches,
            "unit": self.plot.unit,
        }

    @property
    def _shown(self) -> list[str]:
        names = dict.fromkeys((*self.plot.told_apart_by, *SHOWN))
        return [name for name in names if name != self.plot.x]

    def _place(self, x: Any) -> Any:
        if self.is_of_names:
            return place_words(self.plot.x, x)
        is_log = self.log is None or self.log[0]
        return plotted_size(x) if self.plot.x == SIZE and is_log else x

    def _with_course(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        points = {name: len(series.points) for name, series in zip(self.names, self.plot.series, strict=True)}
        dashes = dict(zip(self.names, (str(DASHES.index(look[2])) for look in self._looks), strict=True))
        return [row | {"is course": points[row["series"]] > FEW_POINTS, "dash": dashes[row["series"]]} for row in rows]

    @cached_property
    def x(self) -> Spec:
        """The channel of places."""
        field, title = field_of(self.plot.x), x_title(self.plot.x)
        places = list(dict.fromkeys(self._place(point.x) for point in self.plot.points))
        places += [one.x for one in self.published if one.x is not None and not self.is_of_names]
        if self.is_of_names:
            longest = max(len(str(place)) for place in places) + 2
            angle = 0 if longest * LETTER_PIXELS * len(places) < self.width else -35
            axis = {
                "title": "" if self.plot.x in (LOAD, *COUNTED) else title,
                "labelAngle": angle,
                "grid": False,
                "labelLimit": 0,
            }
            scale = {"paddingInner": 0.3, "paddingOuter": 0.15}
            return {"field": field, "type": "nominal", "sort": places, "axis": axis, "scale": scale}
        if self.plot.x == DATE:
            axis = {"title": f"{title} (UTC)", "grid": False, "labelOverlap": "greedy"}
            dates = {"type": "utc", "nice": False, "padding": DATE_AIR}
            return {"field": field, "type": "temporal", "scale": dates, "axis": axis}
        return self._numbers(sorted(map(float, places)), title) | {"field": field}

    def _numbers(self, places: Sequence[float], title: str) -> Spec:
        low, high = places[0], places[-1]
        is_log = self.is_log_x(places) and low > 0
        if self.plot.x == SIZE and is_log:
            channel = size_channel(places)
            if self._has_edge:
                channel["scale"]["domain"][1] *= 2**EDGE_ROOM
            return channel
        air = 2**X_AIR * (high / low) ** X_AIR if is_log else X_AIR * ((high - low) or 1.0)
        domain = [low / air, high * air] if is_log else [low - air, high + air]
        ticks = places if len(set(places)) <= MOST_TICKS else decade_ticks(*domain) if is_log else even_ticks(*domain)
        labels = SIZE_LABELS if self.plot.x == SIZE else NUMBER_LABELS
        axis = {
            "title": title,
            "values": sorted(set(ticks)),
            "grid": False,
            "labelExpr": labels,
            "labelOverlap": "greedy",
        }
        scale = {"domain": domain, "nice": False, "zero": False} | ({"type": "log", "base": 2} if is_log else {})
        return {"type": "quantitative", "scale": scale, "axis": axis}

    @cached_property
    def y(self) -> Spec:
        """The channel of values."""
        words = QUANTITY_WORDS[self.plot.y]
        values = [
            end for point in self.plot.points for end in (point.y.value, point.y.low, point.y.high) if end is not None
        ]
        values += [one.figure.value for one in self.published] + [row["value"] for row in self._ideal()]
        title = f"{words.title}, {self.plot.unit}" if self.plot.unit else words.title
        channel = logarithmic_channel if self.is_log_y else even_channel
        return channel(values, words.axis_labels, title)

    @property
    def _factors(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The fabric of each series, and what else tells it apart."""
        others = [name for name in self.plot.told_apart_by if name != FABRIC]
        fabrics = [str(series.traits.get(FABRIC, "")) for series in self.plot.series]
        return fabrics, [tuple(series.traits.get(name) for name in others) for series in self.plot.series]

    @cached_property
    def _looks(self) -> list[tuple[str, str, list[int]]]:
        """The colour, shape and dash of each series: of its fabric where fabrics differ, and of what else tells it apart."""
        fabrics, others = self._factors
        kinds = list(dict.fromkeys(others))
        if FABRIC not in self.plot.told_apart_by:
            return [(colour_at(index), shape_at(index), DASHES[0]) for index in range(len(others))]
        places = [self.plot.places.index(fabric) for fabric in fabrics]
        if len(kinds) == 1:
            return [(colour_at(place), shape_at(place), DASHES[0]) for place in places]
        if self.has_bars or len(set(fabrics)) == 1:
            return [(colour_at(index), shape_at(index), DASHES[0]) for index in range(len(others))]
        numbers = [kinds.index(one) for one in others]
        return [
            (colour_at(place), shape_at(number), DASHES[number % len(DASHES)])
            for place, number in zip(places, numbers, strict=True)
        ]

    def _look(self, index: int) -> Spec:
        letters = int(self.width / LETTER_PIXELS) if len(self.names) > 1 else 0
        channel = look_channel("series", self.names, [look[index] for look in self._looks], letters)
        if letters:
            channel["legend"]["labelLimit"] = self.width - LEGEND_ROOM
        return channel

    @property
    def _hint(self) -> list[Spec]:
        unit = ["unit"] if self.plot.unit else []
        place = "message" if self.plot.x == SIZE else field_of(self.plot.x)
        return tooltip("series", place, "interval", *unit, "launches", *map(field_of, self._shown))

    @property
    def _launches(self) -> list[dict[str, Any]]:
        return [
            {"series": name, field_of(self.plot.x): self._place(point.x), "value": float(f"{value:.6g}")}
            for name, point in self.points
            for value in point.values
        ]

    @property
    def _dash(self) -> Spec:
        """The channel of dashes, of a field of its own: with that of the series the legend's symbols would be dashed too."""
        return look_channel("dash", [str(number) for number in range(len(DASHES))], DASHES, 0)

    def _curves(self) -> list[Spec]:
        longest = max(len(series.points) for series in self.plot.series)
        channels = CourseChannels(
            self.x,
            self.y,
            self._look(0),
            self._look(1),
            self._dash,
            {"field": "series"},
            self._hint,
        )
        return course_layers(channels, self._launches, longest)

    def _of_names(self) -> list[Spec]:
        """Return bars or points side by side, each with its interval and its launches."""
        beside = {"x": self.x, "xOffset": self._offset, "y": self.y}
        ends = {**beside, "y": {**self.y, "field": "low"}, "y2": {"field": "high"}}
        if self.has_bars:
            return [
                mark("bar", {**beside, "color": self._look(0), "tooltip": self._hint}),
                mark("point", beside, rows=self._launches, filled=True, color=LIGHT.text, **LAUNCH_LOOK),
                mark("rule", ends, keep=[HAS_INTERVAL], color=LIGHT.text, strokeWidth=1.5),
            ]
        point = {**beside, "color": self._look(0), "shape": self._look(1), "tooltip": self._hint}
        return [
            mark("rule", {**ends, "color": self._look(0)}, keep=[HAS_INTERVAL], strokeWidth=1.5),
            mark("point", {**beside, "color": self._look(0)}, rows=self._launches, filled=True, **LAUNCH_LOOK),
            mark("point", point, keep=[HAS_INTERVAL], filled=True, size=40, opacity=1),
            mark("point", point, keep=[f"!{HAS_INTERVAL}"], filled=False, size=40, strokeWidth=1.5, opacity=1),
        ]

    @property
    def _offset(self) -> Spec:
        return {"field": "series", "type": "nominal", "sort": self.names}

    def _ideal(self) -> list[dict[str, Any]]:
        """Return the ends of the line on which ranks lose nothing, where all series begin at as many ranks."""
        if (self.plot.y, self.plot.x) != (PlotY.SPEED_UP, RANKS) or self.is_of_names:
            return []
        fewest = {int(series.points[0].x) for series in self.plot.series}
        most = max(int(point.x) for point in self.plot.points)
        first = min(fewest)
        return [{RANKS: ranks, "value": ranks / first} for ranks in (first, most)] if len(fewest) == 1 else []

    def _references(self) -> list[Spec]:
        """Return the lines that values are read against."""
        level = {PlotY.COEFFICIENT: 0.0, PlotY.EFFICIENCY: 1.0, PlotY.SPEED_UP: None}.get(self.plot.y)
        layers = [] if level is None else [mark("rule", {"y": self.y}, rows=[{"value": level}], color=UNDECIDED)]
        ideal = self._ideal()
        if ideal:
            layers.append(mark("line", {"x": self.x, "y": self.y}, rows=ideal, color=UNDECIDED, strokeDash=[4, 4]))
        return layers

    def _published(self) -> list[Spec]:
        """Return the published values, each where its study puts it: at a place, over a range of sizes, right of all sizes."""
        groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for one in self.published:
            # In the colour of the series of their kind, in none of these where several are.
            colour = self._looks[one.series[0]][0] if len(one.series) == 1 else UNDECIDED
            row = self._published_row(one)
            place = next(name for name in (BETWEEN, RIGHT, field_of(self.plot.x)) if name in row)
            groups.setdefault((place, colour), []).append(row)
        layers: list[Spec] = []
        for (place, colour), rows in groups.items():
            point: Spec = {"x": {**self.x, "field": place}, "y": self.y, "tooltip": tooltip("series", "source")}
            if place == BETWEEN:
                span = {**point, "x": {**self.x, "field": FROM}, "x2": {"field": TO}}
                layers.append(mark("rule", span, rows=rows, color=colour, strokeWidth=1.25, strokeDash=[2, 2]))
            if self.is_of_names:
                point["xOffset"] = self._offset
            layers.append(mark("point", point, rows=rows, color=colour, **PUBLISHED_LOOK))
        return layers

    def _published_row(self, one: Beside) -> dict[str, Any]:
        figure = one.figure
        row: dict[str, Any] = {
            "series": "; ".join(self.names[index] for index in one.series),
            "value": figure.value,
            "source": f"{figure.as_published}: {figure.condition_words}; {figure.citation}",
        }
        if one.x is not None:
            return row | {field_of(self.plot.x): self._place(one.x)}
        if figure.message_bytes is not None:
            low, high = map(plotted_size, figure.message_bytes)
            return row | {BETWEEN: (low * high) ** 0.5, FROM: low, TO: high}
        return row | {RIGHT: self.x["scale"]["domain"][1] / 2 ** (EDGE_ROOM - EDGE)}
