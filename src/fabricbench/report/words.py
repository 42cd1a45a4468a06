"""How a report writes values, intervals, cells and verdicts: the same words in every format. Scaling happens here only."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from fabricbench.analysis.findings import (
    MARKS,
    CellKey,
    Comparison,
    Crossover,
    FabricFacts,
    Findings,
    Interval,
    Letter,
    Marks,
    OfCell,
    Proof,
    Verdict,
)
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.patterns import PATTERNS, title_of
from fabricbench.quantity import (
    Scaled,
    format_bytes,
    format_duration,
    listed,
    rate_units,
    scale_bit_s,
    scale_message_s,
    scale_seconds,
    scale_work,
)

MINUS = "\N{MINUS SIGN}"
NOTHING = "–"
"""Stands where there is no value; never an empty cell, which reads like a mistake."""

PATTERN_WORDS = {pattern: title_of(pattern) for pattern in Pattern}
METRIC_WORDS = {
    Metric.ROUND_TRIP_TIME: "round-trip time",
    Metric.OPERATION_TIME: "time of an operation",
    Metric.THROUGHPUT: "throughput",
    Metric.MESSAGE_RATE: "message rate",
    Metric.WORK_RATE: "rate of work",
}
RECEIVE_WORDS = {Receive.BLOCKING: "blocking", Receive.POLLING: "polling", Receive.LIBRARY: "library"}
LAYER_WORDS = {
    Layer.MEMORY: "copies within a node",
    Layer.FRAME: "raw Ethernet frames",
    Layer.IP: "raw IP datagrams",
    Layer.UDP: "UDP datagrams",
    Layer.TCP: "a TCP connection",
    Layer.RDMA: "RDMA verbs",
    Layer.MPI: "MPI messages",
}


TIME_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
MESSAGE_UNITS = (("Gmessage/s", 1e9), ("Mmessage/s", 1e6), ("kmessage/s", 1e3), ("message/s", 1.0))
LEAST_DIGITS, MOST_DIGITS = 3, 5
"""Significant digits of an interval's bounds."""
SAME_DIGITS = 1.5
"""Ends of an interval that are no further apart are written with the same decimals."""
MOST_OF_A_WIRE = 1.005
"""Shares above say that the clock, the wire's description or the counting is wrong; half a percent is left to rounding."""
NO_LOSS = 0.0005
"""Below a tenth of a percent of the line rate a layer loses nothing that the measurement could show."""


def typographic(text: str) -> str:
    """Return prose with `71 us` and `3.1 x` set as a printer would: micro sign, multiplication sign."""
    return re.sub(r"(?<=\d) x\b", " ×", re.sub(r"(?<=\d) us\b", " µs", text))


NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:[kMG]?bit/s|(?:[kM]|[KM]i)?B/s|[KMG]iB|B|[nµm]?s|%|×|times)(?![\w/]))")


def set_for_page(text: str) -> str:
    """Return prose set for a page: a number and its unit stay on one line."""
    return NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", typographic(text))


def value_words(metric: Metric, value: float | None) -> str:
    """Return `71.2 µs` or `94.1 Mbit/s`."""
    if value is None:
        return NOTHING
    return str(value_parts(metric, value))


def value_parts(metric: Metric, value: float) -> Scaled:
    """Return the number and the unit of a value: `71.2` and `µs`; the unit of a rate of work stands in the name of its row."""
    if metric is Metric.WORK_RATE:
        parts = scale_work(value)
    elif metric.is_time:
        parts = scale_seconds(value * 1e-9)
    else:
        parts = (scale_message_s if metric is Metric.MESSAGE_RATE else scale_bit_s)(value)
    return Scaled(parts.number.replace("-", MINUS), parts.unit) if "-" in parts.number else parts


class WithInterval(str):
    """A value with its interval, `71.2 µs (70.9 to 74.6 µs)`: one text that has both apart, for where one of them has room."""

    __slots__ = ("interval", "value")
    value: str
    interval: str

    def __new__(cls, value: str, interval: str) -> Self:
        """Join a value and its interval, or what stands for it."""
        made = super().__new__(cls, f"{value} ({interval})")
        made.value, made.interval = value, interval
        return made

    def after(self, words: str) -> WithInterval:
        """Return both behind words that say what they are of."""
        return WithInterval(f"{words}{self.value}", self.interval)


NO_INTERVAL = "no interval"
USELESS, NO_USE = 100.0, "no useful interval"
"""An interval whose ends are so many times apart tells nothing that is worth its digits."""


def is_useless(low: float, high: float) -> bool:
    """Whether an interval of a positive quantity spans so much that it says nothing."""
    return low > 0 and high >= USELESS * low


def with_bounds(value: str, low: float | None, high: float | None, written: Callable[[float], str]) -> WithInterval:
    """Return a value and its bounds as they are `written`; that there are none where one is missing."""
    return WithInterval(value, NO_INTERVAL if low is None or high is None else f"{written(low)} to {written(high)}")


def range_words(metric: Metric, low: float | None, high: float | None, work_unit: str = "") -> str:
    """Return `70.90 to 71.62 µs`: one unit, and the digits that the width of the interval deserves.

    `work_unit` is that of a rate of work, where it does not stand in the name of its row.
    """
    if low is None or high is None:
        return "no interval: too few launches"
    if is_useless(low, high):
        return NO_USE
    unit, scale = _unit(metric, max(abs(low), abs(high)), work_unit)
    decimals = _decimals(low / scale, high / scale)
    return f"{_number(low / scale, decimals)} to {_number(high / scale, decimals)} {unit}".rstrip()


def interval_words(metric: Metric, interval: Interval | None) -> str:
    """Return a value and its interval with the same digits: `71.2 µs (70.9 to 74.6 µs)`."""
    return NOTHING if interval is None else interval_parts(metric, interval)


def interval_parts(metric: Metric, interval: Interval, work_unit: str = "") -> WithInterval:
    """Return the value and the range of an interval, each in words."""
    if interval.low is None or interval.high is None or is_useless(interval.low, interval.high):
        value = f"{value_words(metric, interval.value)} {work_unit}".rstrip()
        return WithInterval(value, NO_INTERVAL if interval.low is None or interval.high is None else NO_USE)
    unit, scale = _unit(metric, max(abs(interval.low), abs(interval.high)), work_unit)
    value = _number(interval.value / scale, _decimals(interval.low / scale, interval.high / scale))
    return WithInterval(f"{value} {unit}".rstrip(), range_words(metric, interval.low, interval.high, work_unit))


def _unit(metric: Metric, value: float, work_unit: str) -> tuple[str, float]:
    """Return the unit in which a value is written, and how many ns, bit/s or message/s it is."""
    rates = {Metric.MESSAGE_RATE: MESSAGE_UNITS, Metric.WORK_RATE: ((work_unit, 1.0),)}
    units = TIME_UNITS if metric.is_time else rates.get(metric, rate_units())
    return next(((unit, scale) for unit, scale in units if value >= scale), units[-1])


NOTHING_AT_ALL = 1e-9
"""Of any unit: an interval from 0 to 0 is written as `0.00`."""


def _decimals(low: float, high: float) -> int:
    """Return the decimals that tell two significant digits of the width, within what a reader can take in."""
    size = max(abs(low), abs(high))
    if size < NOTHING_AT_ALL:
        return LEAST_DIGITS - 1
    most = max(0, MOST_DIGITS - 1 - math.floor(math.log10(size)))
    least = max(0, LEAST_DIGITS - 1 - math.floor(math.log10(size)))
    width = high - low
    wanted = most if width <= 0 else 1 - math.floor(math.log10(width))
    return min(max(wanted, least), most)


def _number(value: float, decimals: int) -> str:
    """Return a number with a true minus sign."""
    return f"{value:.{decimals}f}".replace("-", MINUS)


def size_words(message_bytes: float | None) -> str:
    """Return `64 KiB`; a size between two bytes is rounded to a tenth of its unit."""
    if message_bytes is None:
        return "all sizes"
    if message_bytes == int(message_bytes):
        return format_bytes(int(message_bytes))
    for unit, scale in (("MiB", 2**20), ("KiB", 2**10)):
        if message_bytes >= scale:
            return f"{message_bytes / scale:.1f} {unit}"
    return f"{message_bytes:.0f} B"


def share_words(share: float | None) -> str:
    """Return `94.1 %`."""
    return NOTHING if share is None else f"{share * 100:.1f} %".replace("-", MINUS)


def wire_remark(*, is_impossible: bool, is_beyond_wire: bool) -> str:
    """Return what stands beside a value that is better than the wire allows; empty beside all others."""
    return "impossible" if is_impossible else "beyond the wire" if is_beyond_wire else ""


def struck_words(text: str, *, is_impossible: bool, is_beyond_wire: bool = False) -> str:
    """Return a value as it stands in a table: one that cannot be true says so itself, `949.5 % (impossible)`."""
    remark = wire_remark(is_impossible=is_impossible, is_beyond_wire=is_beyond_wire)
    return f"{text} ({remark})" if remark and text != NOTHING else text


def rate_share_words(share: float | None) -> str:
    """Return a share of what a wire can carry, flagged where it stands if no wire could: `949.5 %, impossible`."""
    is_impossible = share is not None and share > MOST_OF_A_WIRE
    return f"{share_words(share)}, impossible" if is_impossible else share_words(share)


def share_interval_words(share: Interval | None, *, is_signed: bool = False) -> str:
    """Return a share and its interval with the same digits: `97.3 % (96.9 to 97.6 %)`, `+12.0 % (+10.1 to +13.9 %)` of a change."""
    return NOTHING if share is None else share_interval_parts(share, is_signed=is_signed)


def share_interval_parts(share: Interval, *, is_signed: bool = False) -> WithInterval:
    """Return a share and its interval, each in words."""
    if share.low is None or share.high is None:
        return WithInterval(f"{_percent(share.value, 1, is_signed)} %", NO_INTERVAL)
    decimals = max(0, min(_decimals(100 * share.low, 100 * share.high), 2))
    value, low, high = (_percent(one, decimals, is_signed) for one in (share.value, share.low, share.high))
    return WithInterval(f"{value} %", f"{low} to {high} %")


def _percent(share: float, decimals: int, is_signed: bool) -> str:
    return _number(100.0 * share, decimals) if not is_signed or share < 0 else f"+{_number(100.0 * share, decimals)}"


def factor_words(factor: Interval | None) -> str:
    """Return a factor with its interval: `3.10 × (3.05 to 3.14)`."""
    if factor is None:
        return NOTHING
    times = f"{times_words(factor.value)} ×"
    if factor.low is None or factor.high is None:
        return WithInterval(times, NO_INTERVAL)
    return WithInterval(times, f"{times_words(factor.low)} to {times_words(factor.high)}")


def lost_words(share: float | None) -> str:
    """Return what a layer loses of the line rate: `2.3 %`, or `none` where it is as fast as the layer below, or faster."""
    return "none" if share is not None and share < NO_LOSS else share_words(share)


def probe_words(one: OfCell, unsaid: Collection[Receive] = (Receive.LIBRARY,)) -> str:
    """Return `tcp ping-pong, blocking`; ways of waiting that go without saying are `unsaid`: that a library waits as it does."""
    how = () if one.receive in unsaid else (RECEIVE_WORDS[one.receive],)
    return ", ".join((f"{one.layer} {PATTERN_WORDS[one.pattern]}", *how, *one.variant_words))


def layer_words(layer: Layer, receive: Receive, lost_nodes: Sequence[str] = ()) -> str:
    """Return `tcp, blocking`, `mpi, without c3`: how a library waits goes without saying."""
    how = () if receive is Receive.LIBRARY else (RECEIVE_WORDS[receive],)
    return ", ".join((layer.value, *how, *((f"without {' '.join(lost_nodes)}",) if lost_nodes else ())))


def cell_words(key: CellKey) -> str:
    """Return `tcp ping-pong, blocking, 64 B`."""
    return ", ".join((probe_words(key), *([size_words(key.message_bytes)] if PATTERNS[key.pattern].has_size else [])))


def group_words(key: CellKey) -> str:
    """Return `tcp incast, 4 ranks, flows=16`; how a socket waits is told where it spins."""
    return probe_words(key, (Receive.LIBRARY, Receive.BLOCKING))


def in_report_order(key: CellKey) -> tuple[Any, ...]:
    """Sort cells as tables and figures of patterns show them: up the layers, then by pattern, setup and size."""
    order = list(Layer).index(key.layer), list(Pattern).index(key.pattern)
    return (*order, key.receive, key.order, key.message_bytes)


@dataclass(frozen=True)
class Advantage:
    """How many times faster fabric B is than A: above 1 B is faster, whatever the metric. The ratio, turned to face one way."""

    value: float
    low: float | None
    high: float | None


def advantage(comparison: Comparison) -> Advantage:
    """Turn `b / a` of the metric into how many times faster B is."""
    ends = [end for end in (comparison.ratio_low, comparison.ratio_high) if end is not None and end > 0]
    value = comparison.ratio
    if comparison.metric.is_lower_better:
        value, ends = 1 / value, [1 / end for end in ends]
    if len(ends) < 2:
        return Advantage(value, None, None)
    return Advantage(value, min(ends), max(ends))


def times_words(ratio: float) -> str:
    """Return a ratio with three significant digits, or three decimals near 1, where they decide: `1.006`, `9.78`, `132`."""
    return f"{ratio:.{times_decimals(ratio)}f}"


def times_decimals(ratio: float) -> int:
    """Return the decimals that a ratio is written with."""
    return 3 if 0.9 <= ratio < 1.1 else max(0, 2 - math.floor(math.log10(ratio)))


def effect_words(comparison: Comparison) -> WithInterval:
    """Return the effect seen from the leading fabric: `3.10 × (3.05 to 3.14)`; from B where neither leads."""
    effect = advantage(comparison)
    return ratio_words(effect.value, effect.low, effect.high, is_of_a=comparison.verdict.leader is Letter.A)


MOST_DECIMALS = 5
"""Of a ratio, whose interval else would look as if it had no width: `13.482 × (13.480 to 13.484)`."""


def ratio_words(times: float, low: float | None, high: float | None, *, is_of_a: bool) -> WithInterval:
    """Return how many times better B is, or A where it leads, with the interval."""
    if is_of_a:
        times, low, high = 1 / times, 1 / high if high else None, 1 / low if low else None
    if low is None or high is None:
        return WithInterval(f"{times_words(times)} ×", NO_INTERVAL)
    if is_useless(low, high):
        return WithInterval(f"{times_words(times)} ×", NO_USE)
    if high < SAME_DIGITS * low:
        decimals = max(map(times_decimals, (times, low, high)))
        while low < high and decimals < MOST_DECIMALS and f"{low:.{decimals}f}" == f"{high:.{decimals}f}":
            decimals += 1
        return WithInterval(f"{times:.{decimals}f} ×", f"{low:.{decimals}f} to {high:.{decimals}f}")
    return WithInterval(f"{times_words(times)} ×", f"{times_words(low)} to {times_words(high)}")


def verdict_words(comparison: Comparison, margin: float) -> str:
    """Return the verdict with what qualifies it: `myrinet faster; 3 of 6 launches on myrinet gave nothing`."""
    said = outcome_words(
        comparison.verdict, comparison.fabric_a, comparison.fabric_b, margin, comparison.more_blocks_needed
    )
    said += step_words(comparison.verdict, comparison.metric, comparison.printed_step)
    return "; ".join((said, *map(str, comparison.notes)))


def outcome_words(verdict: Verdict, fabric_a: str, fabric_b: str, margin: float, more_blocks: int | None = None) -> str:
    """Return `myrinet faster`, `myrinet ahead, perhaps by less than 2 %`, `equivalent`, or what is missing."""
    leader = verdict.of_leader(fabric_a, fabric_b)
    if verdict.is_decided:
        return f"{leader} faster"
    if verdict.is_ahead:
        return f"{leader} ahead, perhaps by less than {margin * 100:g} %"
    if verdict is Verdict.NOT_ENOUGH_DATA and more_blocks is not None:
        return f"not enough data: about {counted(more_blocks, 'more block')}"
    return verdict.value


def step_words(verdict: Verdict, metric: Metric, printed_step: float | None) -> str:
    """Return what is behind a verdict of `not resolvable`: `: printed in steps of 20 ns`; empty of any other."""
    if verdict is not Verdict.NOT_RESOLVABLE:
        return ""
    return (
        ": its clock is too coarse"
        if printed_step is None
        else f": printed in steps of {value_words(metric, printed_step)}"
    )


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 more block`, `6 more blocks`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def p_words(p_value: float | None) -> str:
    """Return a p-value as journals print it."""
    if p_value is None:
        return NOTHING
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def crossover_words(crossover: Crossover) -> str:
    """Return the crossover as a sentence."""
    return (
        f"{probe_words(crossover)}: "
        f"{crossover.faster_above} overtakes {crossover.faster_below} {place_words(crossover)}"
    )


def place_words(crossover: Crossover) -> str:
    """Return `between 64 B and 512 B`; with a model `at about 210 B (180 B to 250 B; Hockney's model, within 1.3 %)`."""
    if crossover.message_bytes is None or crossover.low is None or crossover.high is None:
        return f"between {bracket_words(crossover, 'and')}"
    misfit = "" if crossover.worst_misfit is None else f", within {share_words(crossover.worst_misfit)}"
    interval = f"{rounded_size_words(crossover.low)} to {rounded_size_words(crossover.high)}"
    return f"at about {rounded_size_words(crossover.message_bytes)} ({interval}; {crossover.model}'s model{misfit})"


def bracket_words(crossover: Crossover, joined: str = "to") -> str:
    """Return `64 B to 512 B`: the measured sizes between which the lead changes."""
    return f"{size_words(crossover.lower_bytes)} {joined} {size_words(crossover.upper_bytes)}"


def rounded_size_words(message_bytes: float) -> str:
    """Return an estimated size with two digits: `210 B`, `15 KiB`, of which a reader sees that nobody measured it."""
    for unit, scale in (("MiB", 2**20), ("KiB", 2**10), ("B", 1)):
        if message_bytes >= scale:
            return f"{float(f'{message_bytes / scale:.2g}'):g} {unit}"
    return f"{message_bytes:.2g} B"


def kind_words(fabric: FabricFacts) -> str:
    """Return what a fabric's numbers are: `hardware`, `emulated`, `imported, path unproven`."""
    return ", ".join(filter(None, (fabric.mark.value if fabric.mark else "hardware", fabric.proof.doubt)))


class Shown(Protocol):
    """What is shown of fabrics, all findings or one plot: which fabrics, and what their numbers are marked as."""

    @property
    def fabrics(self) -> tuple[FabricFacts, ...]:
        """The fabrics, in the order that gives each its colour."""

    @property
    def marks(self) -> Marks:
        """What numbers are marked as, each mark with its fabrics."""


def badge_words(findings: Shown) -> list[str]:
    """Return the badges that numbers carry: `emulated`, or `imported: b` and `path unproven: b` where not all fabrics are."""
    marks = [f"{mark.value}{_of(findings, names)}" for mark, names in findings.marks.items()]
    scales = [f"scaled 1:{scale}{_of(findings, names)}" for scale, names in scaled_fabrics(findings).items()]
    unproven = unproven_fabrics(findings)
    return [*marks, *scales, *([f"{Proof.UNKNOWN.doubt}{_of(findings, unproven)}"] if unproven else [])]


def unproven_fabrics(findings: Shown) -> list[str]:
    """Return the fabrics of which no counter shows that the traffic took them."""
    return [fabric.name for fabric in findings.fabrics if fabric.proof is Proof.UNKNOWN]


def scaled_fabrics(findings: Shown) -> dict[int, list[str]]:
    """Return the scales of fabrics that are slower than what they are named after, each with its fabrics."""
    scales: dict[int, list[str]] = {}
    for fabric in findings.fabrics:
        if fabric.scale > 1:
            scales.setdefault(fabric.scale, []).append(fabric.name)
    return scales


def mark_sentences(findings: Shown) -> list[str]:
    """Return a sentence for each kind of numbers that are not those of the hardware; it goes with every figure."""
    marks = [
        f"{mark.value.capitalize()}{_of(findings, names)}."
        if len(names) < len(findings.fabrics)
        else f"{mark.value.capitalize()} {MARKS[mark].noun}: {MARKS[mark].remark}."
        for mark, names in findings.marks.items()
    ]
    return [*marks, *(f"Scaled 1:{scale}: {listed(names)}." for scale, names in scaled_fabrics(findings).items())]


def in_this_run(findings: Findings, fabric: str) -> str:
    """Return what a fabric's numbers were in this run: measured, or what they are marked as where they come from elsewhere."""
    origin = next((one.origin for one in findings.fabrics if one.name == fabric), None)
    return f"{origin.value if origin else 'measured'} in this run"


def _of(findings: Shown, names: Sequence[str]) -> str:
    return f": {listed(names)}" if len(names) < len(findings.fabrics) else ""


def facts_words(findings: Findings) -> list[tuple[str, str]]:
    """Return how much was measured, in the order of the report's first screen."""
    invalid = f", {findings.launches_invalid} left out" if findings.launches_invalid else ""
    return [
        ("Blocks", f"{findings.blocks}"),
        ("Launches", f"{findings.launches}{invalid}"),
        ("Samples", f"{findings.samples:,}"),
        ("Measured for", format_duration(findings.seconds_measured)),
        ("Confidence", f"{findings.confidence * 100:g} %"),
        ("Margin", f"{findings.margin * 100:g} %"),
        ("Testbed", findings.testbed),
        ("Campaign", findings.campaign),
        ("Imported" if findings.is_dated_by_import else "Started", findings.started),
        *(("Data, SHA-256", data) for data in findings.headline.data_sha256),
    ]
