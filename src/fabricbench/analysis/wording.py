"""How numbers and comparisons read in a sentence, the same in headline, effects and warnings."""

from __future__ import annotations

from collections.abc import Sequence

from fabricbench.analysis.findings import BASIC_PATTERNS, CellKey, Comparison, Letter, Verdict
from fabricbench.model import Metric, Pattern
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import (
    MESSAGE_RATE_UNITS,
    SECOND_UNITS,
    WIDEST_NUMBER,
    Scaled,
    enumeration,
    format_bytes,
    rate_units,
    scale_bit_s,
    scale_message_s,
    scale_seconds,
    scale_together,
    scale_work,
)

FACTOR_FROM = 1.5
"""From here up a difference reads as `3.1 times`, below as a percentage."""

TWICE = (1.9, 2.1)
"""Factors that people call twice, or half."""

MOST_DECIMALS = 3
"""Finer than a thousandth no interval of a ratio needs to be told."""
WIDE = 10.0
"""An interval whose ends differ this many times gets digits that suit each end."""

MOST_NAMED = 4
"""Cells or launches that a warning names before it says how many more there are."""

METRIC_WORDS = {
    Metric.ROUND_TRIP_TIME: "round trip",
    Metric.OPERATION_TIME: "time",
    Metric.THROUGHPUT: "throughput",
    Metric.MESSAGE_RATE: "message rate",
    Metric.WORK_RATE: "rate",
}


def what(comparison: Comparison) -> str:
    """Return what is compared: `tcp round trip of 64 B`, `mpi ring throughput at 16 KiB`, `udp throughput over all sizes`."""
    return named_cell(comparison, comparison.message_bytes)


def named_cell(one: CellKey | Comparison, message_bytes: int | None) -> str:
    """Return a cell or a curve in words. A plain round trip or throughput is that of a ping-pong or a stream."""
    variant = f"({', '.join(one.variant_words)})" if one.variant_words else ""
    goes_without_saying = one.pattern in (*BASIC_PATTERNS, Pattern.MESSAGE_RATE)
    pattern = "" if goes_without_saying else one.pattern.value
    words = " ".join(filter(None, (one.layer.value, variant, pattern, METRIC_WORDS[one.metric])))
    if message_bytes is None:
        return f"{words} over all sizes"
    if not PATTERNS[one.pattern].has_size:
        return words
    return f"{words} {'of' if one.metric.is_lower_better else 'at'} {format_bytes(message_bytes)}"


def size_text(message_bytes: int) -> str:
    """Return `64 B`, `256 KiB`."""
    return format_bytes(message_bytes)


def value_text(metric: Metric, value: float, digits: int = 3, *, unit: str = "") -> str:
    """Return a value in the unit that suits it: `71.2 µs`, `94.1 Mbit/s`. `unit` is that of a rate of work."""
    return str(scaled(metric, value, digits, unit=unit))


def scaled(metric: Metric, value: float, digits: int = 3, *, unit: str = "") -> Scaled:
    """Return the value with number and unit apart."""
    if metric is Metric.WORK_RATE:
        return scale_work(value, digits, unit=unit)
    if metric.is_time:
        return scale_seconds(value * 1e-9, digits)
    return (scale_message_s if metric is Metric.MESSAGE_RATE else scale_bit_s)(value, digits)


def instead(metric: Metric, better: float, worse: float, *, unit: str = "") -> str:
    """Return `64 instead of 130 µs`, `1,270 instead of 94 Mbit/s`: one unit, and digits enough to tell them apart.

    `unit` is that of a rate of work, where it does not stand in the name of its row.
    """
    first, second = in_one_unit(metric, (better, worse), unit=unit)
    return f"{first.number if first.unit == second.unit else first} instead of {second}"


def in_one_unit(metric: Metric, values: Sequence[float], *, unit: str = "") -> tuple[Scaled, ...]:
    """Return values that stand beside each other: of one unit, each with the digits that it takes to tell them apart."""
    if metric is Metric.WORK_RATE:
        is_plain = all(1e-3 <= abs(value) < WIDEST_NUMBER for value in values)
        return (
            scale_together(values, ((unit, 1.0),)) if is_plain else tuple(scale_work(one, unit=unit) for one in values)
        )
    if metric.is_time:
        return scale_together([value * 1e-9 for value in values], SECOND_UNITS)
    return scale_together(values, MESSAGE_RATE_UNITS if metric is Metric.MESSAGE_RATE else rate_units())


def times_better(metric: Metric, times: float) -> str:
    """Return how much better the better side is, for a headline: `2.9 times quicker`, `13.5 times the rate`, `8.9 % less time`."""
    if times < FACTOR_FROM:
        return times_text(metric, times)
    return f"{factor_text(times)} {'quicker' if metric.is_time else 'the rate'}"


def factor_text(times: float) -> str:
    """Return `2.9 times`, `132 times`."""
    return f"{times:.{1 if times < 100 else 0}f} times"


def times_text(metric: Metric, times: float) -> str:
    """Return how much better the better side is: `half the time`, `13.5 times as fast`, `8.9 % less time`, `9.5 % more`."""
    if TWICE[0] <= times < TWICE[1]:
        return "half the time" if metric.is_time else "twice the rate"
    if times >= FACTOR_FROM:
        return f"{times:.{_decimals(times)}f} times as fast"
    share = _percent(times, metric)
    return f"{share:.{1 if share < 10 else 0}f} % {'less time' if metric.is_time else 'more'}"


def difference(metric: Metric, verdict: Verdict, value_a: float, value_b: float, *, margin: float) -> str:
    """Return a row in words: `half the time: 64.0 instead of 130 µs`; what is not decided is said to be so."""
    if verdict.leader is None:
        texts = f"{value_text(metric, value_a)} and {value_text(metric, value_b)}"
        return f"{'equivalent' if verdict is Verdict.EQUIVALENT else 'not decided'}: {texts}"
    better, worse = (value_a, value_b) if verdict.leader is Letter.A else (value_b, value_a)
    times = worse / better if metric.is_lower_better else better / worse
    perhaps = f", perhaps by less than {percent(margin)}" if verdict.is_ahead else ""
    return f"{times_text(metric, times)}{perhaps}: {instead(metric, better, worse)}"


def faster(comparison: Comparison) -> str | None:
    """Return the name of the side that is faster by more than the margin, where the verdict names one."""
    return comparison.leader if comparison.verdict.is_decided else None


def slower(comparison: Comparison) -> str | None:
    """Return the name of the other side."""
    return comparison.verdict.of_other(comparison.fabric_a, comparison.fabric_b)


def how_much(comparison: Comparison) -> str:
    """Return by how much the leading side is better, with the interval: `3.10 times shorter (3.05 to 3.14)`."""
    factor, low, high = _seen_from_leader(comparison)
    unit, bounds = _unit(factor), ""
    digits = _decimals(factor)
    if low is not None and high is not None:
        digits, texts = _bounds(factor, low, high, comparison.metric)
        bounds = f" ({' to '.join(texts)})"
    return f"{_shown(factor, comparison.metric):.{digits}f} {unit} {_adjective(comparison)}{bounds}"


def slower_text(metric: Metric, times: float) -> str:
    """Return how much worse the worse side is, seen from the better one: `24 % slower`, `3.1 times slower`."""
    if times >= FACTOR_FROM:
        return f"{factor_text(times)} slower"
    share = 100.0 * (times - 1.0 if metric.is_time else 1.0 - 1.0 / times)
    return f"{share:.{0 if share >= 10 else 1}f} % slower"


def slower_by(metric: Metric, times: float, low: float | None, high: float | None) -> str:
    """Return how much slower the worse side is, seen from it: `24 % slower (15 to 32 %)`, `3.1 times slower (2.9 to 3.4)`.

    Without an interval where there is none.
    """
    ends = [] if low is None or high is None else [low, high]
    if times >= FACTOR_FROM:
        interval = " to ".join(f"{end:.{_decimals(end)}f}" for end in ends)
        return f"{times:.{_decimals(times)}f} times slower" + (f" ({interval})" if ends else "")
    shown = [100.0 * (one - 1.0) if metric.is_time else 100.0 * (1.0 - 1.0 / one) for one in (times, *ends)]
    digits = 0 if min(shown) >= 10 else 1
    interval = " to ".join(f"{end:.{digits}f}" for end in shown[1:])
    return f"{shown[0]:.{digits}f} % slower" + (f" ({interval} %)" if ends else "")


def _adjective(comparison: Comparison) -> str:
    return "shorter" if comparison.metric.is_lower_better else "higher"


def _seen_from_leader(comparison: Comparison) -> tuple[float, float | None, float | None]:
    """Return how many times better the leading side is, with its bounds."""
    values = (comparison.ratio, comparison.ratio_low, comparison.ratio_high)
    if (comparison.verdict.leader is Letter.B) != comparison.metric.is_lower_better:
        return values
    value, low, high = values
    return 1.0 / value, None if high is None else 1.0 / high, None if low is None else 1.0 / low


def _unit(factor: float) -> str:
    return "times" if factor >= FACTOR_FROM else "%"


def _bounds(factor: float, low: float, high: float, metric: Metric) -> tuple[int, tuple[str, str]]:
    """Return the decimals for the point and both bounds as text: enough to see a narrow interval, no idle ones in a wide one."""
    is_factor = factor >= FACTOR_FROM
    shown = [one if is_factor else _percent(one, metric) for one in (factor, low, high)]
    digits = _decimals(factor)
    while digits < MOST_DECIMALS and len({f"{one:.{digits}f}" for one in shown}) < 3:
        digits += 1
    wide = [_decimals(max(one, FACTOR_FROM)) if is_factor and high > WIDE * low else digits for one in (low, high)]
    return digits, (f"{shown[1]:.{wide[0]}f}", f"{shown[2]:.{wide[1]}f}")


def _shown(factor: float, metric: Metric) -> float:
    return factor if factor >= FACTOR_FROM else _percent(factor, metric)


def _percent(factor: float, metric: Metric) -> float:
    return 100.0 * (1.0 - 1.0 / factor if metric.is_lower_better else factor - 1.0)


def _decimals(factor: float) -> int:
    if factor < FACTOR_FROM:
        return 1
    return 2 if factor < 10 else 1 if factor < 100 else 0


def ratio(comparison: Comparison) -> str:
    """Return the ratio b / a with its interval."""
    if comparison.ratio_low is None or comparison.ratio_high is None:
        return f"ratio {comparison.ratio:.3f}"
    return f"ratio {comparison.ratio:.3f} ({comparison.ratio_low:.3f} to {comparison.ratio_high:.3f})"


def percent(share: float) -> str:
    """Return a share as a percentage with three significant digits: `2 %`, `0.346 %`."""
    return f"{100.0 * share:.3g} %"


def named(names: Sequence[str]) -> str:
    """Return the first few names and how many more there are."""
    few = list(dict.fromkeys(names))
    if len(few) <= MOST_NAMED:
        return enumeration(few)
    return enumeration([*few[:MOST_NAMED], f"{len(few) - MOST_NAMED} more"])
