"""How a plot reads: what its quantities, traits and series are called, and how its axes and values are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fabricbench.analysis.findings import Interval
from fabricbench.analysis.findings.plot import (
    BESIDE,
    DATE,
    FABRIC,
    FLOWS,
    LAYER,
    LOAD,
    MEMBERS,
    NODES,
    PATTERN,
    RANKS,
    RECEIVE,
    RUN,
    SIZE,
    WITHOUT,
    Plot,
    PlotY,
    Trait,
)
from fabricbench.model import Metric, Pattern, Receive
from fabricbench.report.drawing.axes import (
    GAIN_LABELS,
    MESSAGE_LABELS,
    NUMBER_LABELS,
    PERCENT_LABELS,
    SECONDS_LABELS,
    TIME_LABELS,
    rate_labels,
)
from fabricbench.report.words import (
    PATTERN_WORDS,
    RECEIVE_WORDS,
    counted,
    factor_words,
    interval_words,
    share_interval_words,
    size_words,
)


@dataclass(frozen=True)
class QuantityWords:
    """How a quantity is named, how an axis writes it (empty: as throughputs), how a value with its interval reads."""

    title: str
    labels: str
    written: Callable[[Interval], str]
    is_logarithmic: bool = False
    """Whether its axis is, where nobody asks for another."""

    @property
    def axis_labels(self) -> str:
        """The expression that writes it; that of throughputs goes by the units that were asked for."""
        return self.labels or rate_labels()


def _of(metric: Metric, factor: float = 1.0) -> Callable[[Interval], str]:
    def written(one: Interval) -> str:
        low, high = (None if end is None else end * factor for end in (one.low, one.high))
        return interval_words(metric, Interval(value=one.value * factor, low=low, high=high))

    return written


NS_IN_A_SECOND = 1e9
QUANTITY_WORDS = {
    PlotY.ROUND_TRIP: QuantityWords("round-trip time", TIME_LABELS, _of(Metric.ROUND_TRIP_TIME), is_logarithmic=True),
    PlotY.HALF_ROUND_TRIP: QuantityWords(
        "half the round-trip time", TIME_LABELS, _of(Metric.ROUND_TRIP_TIME), is_logarithmic=True
    ),
    PlotY.OPERATION_TIME: QuantityWords(
        "time of an operation", TIME_LABELS, _of(Metric.OPERATION_TIME), is_logarithmic=True
    ),
    PlotY.THROUGHPUT: QuantityWords("throughput", "", _of(Metric.THROUGHPUT), is_logarithmic=True),
    PlotY.MESSAGE_RATE: QuantityWords("message rate", MESSAGE_LABELS, _of(Metric.MESSAGE_RATE), is_logarithmic=True),
    PlotY.SECONDS: QuantityWords("time of a run", SECONDS_LABELS, _of(Metric.OPERATION_TIME, NS_IN_A_SECOND)),
    PlotY.RATE: QuantityWords("rate", NUMBER_LABELS, _of(Metric.WORK_RATE)),
    PlotY.SPEED_UP: QuantityWords("speed-up", GAIN_LABELS, factor_words),
    PlotY.EFFICIENCY: QuantityWords("efficiency", PERCENT_LABELS, share_interval_words),
    PlotY.COEFFICIENT: QuantityWords(
        "comparison coefficient", PERCENT_LABELS, lambda one: share_interval_words(one, is_signed=True)
    ),
}
X_TITLES = {SIZE: "message size", FLOWS: "flows in each channel"}
NAMED_BY_VALUE = (RUN, FABRIC, LAYER, LOAD, BESIDE, WITHOUT, DATE, "kernel", "benchmark")
"""Traits whose value says by itself what it is; of all others the name stands before it."""
COUNTED = {RANKS: "rank", NODES: "node", FLOWS: "flow"}
RESERVED = ("series", "message", "value", "low", "high", "interval", "launches", "is course", "dash", "source", "unit")
"""Columns of what is drawn that no trait may have."""


def x_title(x: str) -> str:
    """Return what the axis of a trait is called."""
    return X_TITLES.get(x, x)


def trait_words(name: str, value: Trait | None) -> str:
    """Return a trait as it stands in the name of a series."""
    if value is None:
        return f"no {name}"
    if name == SIZE:
        return size_words(float(value))
    if name in COUNTED:
        return counted(int(value), COUNTED[name])
    if name == PATTERN:
        return PATTERN_WORDS[Pattern(str(value))]
    if name == RECEIVE:
        return RECEIVE_WORDS[Receive(str(value))]
    return str(value) if name in NAMED_BY_VALUE else f"{'ranks' if name == MEMBERS else name} {value}"


def place_words(name: str, value: Trait) -> str:
    """Return a trait as it stands on its axis, which has its name."""
    return trait_words(name, value) if name in (SIZE, PATTERN, RECEIVE, *COUNTED) else str(value)


def series_names(plot: Plot) -> list[str]:
    """Return the names of the series, by what tells them apart."""
    told = _telling(plot)
    return [", ".join(trait_words(name, one.traits.get(name)) for name in told) for one in plot.series]


def _telling(plot: Plot) -> list[str]:
    """Return the traits that are not the same in all series, the first where all are."""
    differ = [name for name in plot.told_apart_by if len({one.traits.get(name) for one in plot.series}) > 1]
    return differ or list(plot.told_apart_by[:1])


def common_words(plot: Plot) -> str:
    """Return what all points have in common, as far as it tells what was measured: `tcp ping-pong, 64 B on myrinet`."""
    told = {name: value for name, value in plot.common.items() if name not in (plot.x, *_telling(plot))}
    is_of_loads = any(LOAD in point.traits for point in plot.points)
    what = " ".join(trait_words(name, told[name]) for name in (LAYER, PATTERN) if name in told and not is_of_loads)
    is_pair = told.get(RANKS, 0) == len("ab") and not is_of_loads
    parts = [
        trait_words(name, told[name])
        for name in (LOAD, SIZE, RANKS)
        if name in told and (name, is_pair) != (RANKS, True)
    ]
    where = f"on {told[FABRIC]}" if FABRIC in told else ""
    return " ".join(filter(None, (", ".join(filter(None, (what, *parts))), where)))


def title_of(plot: Plot, *, is_of_names: bool) -> str:
    """Return what a plot shows: `Throughput over message size`."""
    words = QUANTITY_WORDS[plot.y].title
    unit = f" ({plot.unit})" if plot.unit else ""
    title = f"{words}{unit} {'by' if is_of_names else 'over'} {x_title(plot.x)}"
    return title[0].upper() + title[1:]


def field_of(name: str) -> str:
    """Return the column that has a trait: its name, without the signs by which Vega reaches into values."""
    plain = "".join("_" if sign in ".[]\\'\"" else sign for sign in name)
    return f"{plain} of the test" if plain in RESERVED else plain
