"""Axes, scales and encodings that the figures share.

Message sizes in powers of two, times and rates with their units, ratios in times; colours, shapes and dashes of fabrics; and what
lets a reader choose: filters, zoom.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from fabricbench.analysis.findings import Findings
from fabricbench.model import Metric, Receive
from fabricbench.quantity import RateUnit, rate_unit, rate_units
from fabricbench.report.palette import colour_range, fabric_names, shape_range
from fabricbench.report.words import METRIC_WORDS, RECEIVE_WORDS

LINEAR_AIR = 0.05
"""Of the width of an axis from 0, left free above the highest value."""
SIZE_AIR = 0.4
"""Powers of two left free at both ends, so that the outermost points are whole."""
EVEN_BELOW = 0.4
"""Decades: over a range as narrow as this even steps read better than those of a logarithm."""
SIZE_LABELS = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '~g') + ' GiB'"
    " : datum.value >= 1048576 ? format(datum.value / 1048576, '~g') + ' MiB'"
    " : datum.value >= 1024 ? format(datum.value / 1024, '~g') + ' KiB' : datum.value < 1 ? '0 B' : datum.value + ' B'"
)
TIME_LABELS = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' s'"
    " : datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' ms'"
    " : datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' µs' : format(datum.value, '~g') + ' ns'"
)
BIT_LABELS = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' Gbit/s'"
    " : datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' Mbit/s'"
    " : datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' kbit/s' : format(datum.value, '~g') + ' bit/s'"
)


def rate_labels() -> str:
    """Return the expression that writes throughputs in their units."""
    if rate_unit() is RateUnit.BITS:
        return BIT_LABELS
    *larger, (last, least) = rate_units()
    cases = [
        f"datum.value >= {scale:.0f} ? format(datum.value / {scale:.0f}, '~g') + ' {unit}'" for unit, scale in larger
    ]
    return " : ".join([*cases, f"format(datum.value / {least:.0f}, '~g') + ' {last}'"])


TIMES_LABELS = "format(datum.value < 1 ? 1 / datum.value : datum.value, '.4~g') + ' ×'"
"""How many times faster, to either side: the left half tells it of the fabric on the left."""


MESSAGE_LABELS = BIT_LABELS.replace("bit/s", "message/s")
SECONDS_LABELS = (
    "datum.value >= 1 ? format(datum.value, ',~g') + ' s' : datum.value >= 1e-3 ? format(1e3 * datum.value, '~g') + ' ms'"
    " : format(1e6 * datum.value, '~g') + ' µs'"
)
GAIN_LABELS = "format(datum.value, '~g') + ' ×'"
PERCENT_LABELS = "format(100 * datum.value, '.3~g') + ' %'"
NUMBER_LABELS = "format(datum.value, ',~g')"
OR_ZERO = "datum.value === 0 ? '0' : "
"""Before the expression of an axis with a zero, which needs no unit."""
OF_SIZES = "B"
UNITS = {
    SIZE_LABELS: OF_SIZES,
    TIME_LABELS: "ns",
    MESSAGE_LABELS: "message/s",
    TIMES_LABELS: "times",
    SECONDS_LABELS: "s",
    GAIN_LABELS: "times",
    PERCENT_LABELS: "share",
}


def unit_of(labels: str) -> str | None:
    """Return what the numbers of an axis are in whose labels are written so."""
    units = UNITS | {rate_labels(): "bit/s"}
    return (units | {f"{OR_ZERO}{one}": unit for one, unit in units.items()}).get(labels)


def labels_of(metric: Metric) -> str:
    """Return the expression that writes an axis label with its unit."""
    if metric.is_time:
        return TIME_LABELS
    if metric is Metric.WORK_RATE:
        return "format(datum.value, '.4~g')"
    return MESSAGE_LABELS if metric is Metric.MESSAGE_RATE else rate_labels()


EMPTY_PLACE = 0.5
"""Where an empty message stands on a logarithmic axis: a step before 1 byte."""


def plotted_size(message_bytes: float) -> float:
    """Return where a message size stands on a logarithmic axis."""
    return float(message_bytes) or EMPTY_PLACE


def size_at(place: float) -> float:
    """Return the message size that stands there."""
    return 0.0 if place == EMPTY_PLACE else place


def size_channel(sizes: Iterable[float]) -> dict[str, Any]:
    """Return the channel of message sizes: log2, at most six labels, always the same ones for the same range."""
    exponents = [math.log2(plotted_size(size)) for size in sizes]
    low, high = math.floor(min(exponents)), max(math.ceil(max(exponents)), math.floor(min(exponents)) + 1)
    step = max(1, math.ceil((high - low) / 5))
    return {
        "field": "size",
        "type": "quantitative",
        "scale": {
            "type": "log",
            "base": 2,
            "nice": False,
            "domain": [2.0 ** (low - SIZE_AIR), 2.0 ** (high + SIZE_AIR)],
        },
        "axis": {
            "values": [2.0**exponent for exponent in range(low, high + 1, step)],
            "labelExpr": SIZE_LABELS,
            "grid": False,
            "title": "message size",
            "labelOverlap": "greedy",
        },
    }


def value_channel(metric: Metric, values: Sequence[float], statistic: str = "") -> dict[str, Any]:
    """Return the channel of times or rates: logarithmic with a little air, which a page can switch to linear.

    `statistic` says what of the launches is drawn, where another one of the same name stands elsewhere in a report.
    """
    return logarithmic_channel(values, labels_of(metric), " ".join(filter(None, (statistic, METRIC_WORDS[metric]))))


def logarithmic_channel(values: Sequence[float], labels: str, title: str) -> dict[str, Any]:
    """Return the channel of positive values, with a little air; `labels` is the expression that writes them."""
    positive = [value for value in values if value > 0] or [1.0, 10.0]
    low, high = min(positive), max(positive)
    air = max((high / low) ** 0.06, 1.03)
    step = _step(labels, high)
    return {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [low / air, high * air], "nice": False},
        "axis": {
            "values": [step * tick for tick in decade_ticks(low / air / step, high * air / step)],
            "labelExpr": labels,
            "title": title,
            "labelOverlap": "greedy",
        },
    }


def even_channel(values: Sequence[float], labels: str, title: str) -> dict[str, Any]:
    """Return the channel of values on even steps from 0, which is in sight."""
    low, high = min(0.0, *values), max(0.0, *values)
    width = (high - low) or 1.0
    low, high = low - LINEAR_AIR * width * (low < 0), high + LINEAR_AIR * width * (high > 0 or low == high)
    step = _step(labels, high)
    return {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [low, high], "nice": False, "zero": False},
        "axis": {
            "values": [step * tick for tick in even_ticks(low / step, high / step)],
            "labelExpr": f"{OR_ZERO}{labels}",
            "title": title,
            "labelOverlap": "greedy",
        },
    }


def _step(labels: str, high: float) -> float:
    """Return what ticks are multiples of, so that labels are round: of throughputs the unit that the highest is written in."""
    if labels != rate_labels() or rate_unit() is RateUnit.BITS:
        return 1.0
    return next((scale for _, scale in rate_units() if high >= scale), rate_units()[-1][1])


def decade_ticks(low: float, high: float) -> list[float]:
    """Return tick values of a logarithmic axis: decades over a very wide range, finer steps over less, even ones within half."""
    span = math.log10(high / low)
    if span < EVEN_BELOW:
        return even_ticks(low, high)
    wide: Iterable[int] = (1,) if span > 5 else (1, 3) if span > 1.5 else (1, 2, 5)
    steps = wide if span > 1.0 else (1, 2, 3, 5, 7) if span > 0.6 else range(1, 10)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for power in powers for step in steps if low <= (tick := float(f"{step}e{power}")) <= high]


def even_ticks(low: float, high: float) -> list[float]:
    """Return multiples of a step of 1, 2 or 5, less than six of them."""
    step = next(size for size in nice_steps(high - low) if (high - low) / size < 5)
    return [step * index for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


def nice_steps(width: float) -> list[float]:
    """Return steps of 1, 2 and 5 from a hundredth of a width up."""
    power = math.floor(math.log10(width))
    return [float(f"{step}e{exponent}") for exponent in (power - 2, power - 1, power) for step in (1, 2, 5)]


def ratio_domain(ends: Iterable[float], margin: float) -> tuple[float, float]:
    """Return bounds that hold every ratio, 1 and the margin, with air."""
    values = [*ends, 1 / (1 + 3 * margin), 1 + 3 * margin]
    low, high = min(values), max(values)
    air = (high / low) ** 0.05
    return low / air, high * air


def ratio_ticks(low: float, high: float) -> list[float]:
    """Return tick values for ratios, the same to both sides of 1: 1-2-5 steps over a wide range, even steps over a narrow one."""
    reach = max(high, 1 / low)
    if reach > 3:
        steps = (1, 2, 3, 5, 7) if reach < 10 else (1, 2, 5) if reach < 60 else (1,)
        right = [float(f"{step}e{power}") for power in range(math.ceil(math.log10(reach)) + 1) for step in steps]
    else:
        step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if step > (high - low) / 3.5)
        right = [round(1 + index * step, 6) for index in range(400)]
    both = sorted({*(1 / tick for tick in right), *right})
    return [tick for tick in both if low <= tick <= high]


CHOSEN = "indexof(fabrics, datum.fabric) >= 0 && indexof(receives, datum.receive) >= 0"
"""Keeps what the reader chose; the page sets the two parameters, on paper everything is chosen."""
HAS_INTERVAL = "isValid(datum.low)"

DASHES = {"waits": [1, 0], "spins": [5, 3]}
"""Solid where the receiver sleeps or does as its library does, dashed where it spins."""
FEW_POINTS = 2
"""A straight line through no more than these would look like a measured course."""
LEGEND_LETTERS, LEGEND_SIGN = 38, 4
"""Letters that a line of a legend has room for in 85 mm, and those that the sign beside a name takes."""
ZOOM_EVENT = "wheel![event.ctrlKey || event.shiftKey]"
"""A plain wheel scrolls the page, as everywhere else."""
PAN_EVENT = "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!"
"""A finger scrolls the page; a mouse drags the plot."""


def colour_channel(findings: Findings, *, has_legend: bool = False) -> dict[str, Any]:
    """Return the colour channel: the fabric, the same colour everywhere."""
    return look_channel("fabric", fabric_names(findings), colour_range(findings), LEGEND_LETTERS * has_legend)


def shape_channel(findings: Findings, *, has_legend: bool = False) -> dict[str, Any]:
    """Return the shape channel: the fabric once more, for print without colour."""
    return look_channel("fabric", fabric_names(findings), shape_range(findings), LEGEND_LETTERS * has_legend)


def look_channel(field: str, names: Sequence[str], looks: Sequence[Any], legend_letters: int) -> dict[str, Any]:
    """Return the channel of colours, shapes or dashes that tell names apart; with a legend that has room for so many letters."""
    columns = _legend_columns(names, legend_letters)
    legend = {"title": None, "orient": "bottom", "columns": columns} if legend_letters else None
    scale = {"domain": list(names), "range": list(looks)}
    return {"field": field, "type": "nominal", "legend": legend, "scale": scale}


def _legend_columns(names: Sequence[str], letters: int) -> int:
    """Return in how many columns a legend names what is drawn: on one line if that is no wider than it has room for."""
    longest = max(map(len, names), default=0) + LEGEND_SIGN
    is_short = sum(len(name) + LEGEND_SIGN for name in names) <= letters
    return len(names) if is_short else max(1, letters // longest)


def dash_channel() -> dict[str, Any]:
    """Return the dash channel: how the receiver waits."""
    scale = {"domain": list(DASHES), "range": list(DASHES.values())}
    return {"field": "dash", "type": "nominal", "legend": None, "scale": scale}


def dash_key(receive: Receive) -> str:
    """Return the dash channel's value for a way to receive."""
    return "spins" if receive is Receive.POLLING else "waits"


def reader_params(findings: Findings) -> list[dict[str, Any]]:
    """Return the parameters that a page sets when the reader chooses; at first, everything."""
    return [
        {"name": "fabrics", "value": fabric_names(findings)},
        {"name": "receives", "value": list(RECEIVE_WORDS.values())},
    ]


def zoom(*channels: str) -> list[dict[str, Any]]:
    """Return a zoom over the named channels: Ctrl or Shift and the wheel zooms, dragging pans, a double click resets."""
    select = {"type": "interval", "encodings": list(channels), "zoom": ZOOM_EVENT, "translate": PAN_EVENT}
    return [{"name": "zoom", "select": select, "bind": "scales"}]


def connection(points: int) -> dict[str, Any]:
    """Return how points are joined: two of them say nothing of what lies between, so that they are hardly joined at all."""
    if points > FEW_POINTS:
        return {"strokeWidth": 1.75}
    return {"strokeWidth": 1.25, "strokeDash": [1, 4], "opacity": 0.6}
