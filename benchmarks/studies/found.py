"""What a study found, beside what was found here, and which plots it drew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from fabricbench.analysis.findings import Comparison, Findings, Interval
from fabricbench.chapters.workload_tables import RATIOS
from fabricbench.model import Layer, Pattern
from fabricbench.published.studies import Study as Published


class Agreement(StrEnum):
    """Whether what was found here is what the study found. What an emulation was built from agrees by itself, which is nothing."""

    YES = "yes"
    NO = "no"
    BUILT_FROM_IT = "built from it"
    OPEN = "not told apart here"
    DIFFERENT_WORK = "smaller work"
    OTHER_MACHINE = "this machine's"
    NOT_TOLD = "not told by number"


@dataclass(frozen=True)
class Found:
    """One finding of a study, as published and as measured here."""

    what: str
    published: str
    here: str
    agreement: Agreement


@dataclass(frozen=True)
class Plot:
    """One plot of a study: what `fabricbench figure` is told to draw it, and a caption."""

    name: str
    caption: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Study:
    """How a study is measured in the lab, what it found, and its plots. `key` is that of its facts and of its campaign file."""

    key: str
    testbed: str
    nodes: int
    find: Callable[[Published, Findings], Iterator[Found]]
    plots: tuple[Plot, ...]


def interval_words(interval: Interval, digits: int = 3) -> str:
    """Return `1.43 (1.35 to 1.52)`."""
    value, low, high = (
        None if one is None else f"{one:,.0f}" if one >= 10 ** (digits - 1) else f"{one:#.{digits}g}"
        for one in (interval.value, interval.low, interval.high)
    )
    return f"{value}" if low is None or high is None else f"{value} ({low} to {high})"


def ratio_of(comparison: Comparison) -> Interval:
    """Return how many times the value on fabric A is that on fabric B."""
    return inverse(Interval(value=comparison.ratio, low=comparison.ratio_low, high=comparison.ratio_high))


def load_ratios(findings: Findings, name: str, ranks: int) -> list[Interval]:
    """Return how many times as long a load takes on fabric A as on fabric B, in each of its sizes that both have."""
    found = []
    for one in findings.cells:
        load = one.workload
        if load is not None and load.ranks == ranks and load.name == name:
            ratio = ratio_of(one)
            found.append(ratio if one.metric.is_time else inverse(ratio))
    return found


def load_ratio(findings: Findings, name: str, ranks: int) -> Interval:
    """Return that of a load of one size; LookupError where it was not measured on both."""
    (ratio,) = load_ratios(findings, name, ranks) or (None,)
    if ratio is None:
        raise LookupError(f"no load {name} on {ranks} ranks was measured on both fabrics")
    return ratio


def kernel_ratio(findings: Findings, benchmark: str, fast: str) -> Interval:
    """Return how many times as long a kernel of NPB takes off the fabric `fast`; LookupError where it was not measured on both."""
    for one in RATIOS.of(findings):
        if one.workload.own.get("benchmark") == benchmark and fast in (one.slower, one.faster):
            gain = Interval(value=one.ratio, low=one.low, high=one.high)
            return gain if one.faster == fast else inverse(gain)
    raise LookupError(f"NPB {benchmark} was not measured on both fabrics")


def inverse(ratio: Interval) -> Interval:
    """Return the ratio of the other two."""
    low, high = (None if end is None else 1 / end for end in (ratio.high, ratio.low))
    return Interval(value=1 / ratio.value, low=low, high=high)


def median(findings: Findings, fabric: str, layer: Layer, pattern: Pattern, message_bytes: int) -> Interval:
    """Return what a test came to on a fabric, in SI units; LookupError where it was not measured."""
    for one in findings.summaries:
        key = one.key
        if (one.fabric, key.layer, key.pattern, key.message_bytes) == (fabric, layer, pattern, message_bytes):
            return one.median
    raise LookupError(f"no {layer} {pattern} of {message_bytes} B was measured on {fabric}")


def largest(findings: Findings, fabric: str, layer: Layer, pattern: Pattern) -> Interval:
    """Return the highest value of a pattern over its sizes."""
    found = [
        one.median
        for one in findings.summaries
        if (one.fabric, one.key.layer, one.key.pattern) == (fabric, layer, pattern)
    ]
    if not found:
        raise LookupError(f"no {layer} {pattern} was measured on {fabric}")
    return max(found, key=lambda one: one.value)


def holds(published: float, here: Interval) -> Agreement:
    """Tell whether a published number lies in the interval found here."""
    if here.low is None or here.high is None:
        return Agreement.OPEN
    return Agreement.YES if here.low <= published <= here.high else Agreement.NO


def spanned(ratios: Sequence[Interval]) -> Interval:
    """Return from where to where several ratios reach, with their intervals, and the middle one."""
    lows, highs = ([one.low if end else one.high for one in ratios] for end in (True, False))
    told = None not in lows and None not in highs
    middle = sorted(one.value for one in ratios)[len(ratios) // 2]
    return Interval(value=middle, low=min(lows) if told else None, high=max(highs) if told else None)


def within(here: Interval, low: float, high: float) -> Agreement:
    """Tell whether an interval lies between two numbers: all of it, none of it, or nobody can say."""
    if here.low is None or here.high is None:
        return Agreement.OPEN
    if low <= here.low and here.high <= high:
        return Agreement.YES
    return Agreement.NO if here.high < low or high < here.low else Agreement.OPEN


def above(more: Interval, less: Interval) -> Agreement:
    """Tell whether one interval lies above another one."""
    if more.low is None or less.high is None:
        return Agreement.OPEN
    return Agreement.YES if more.low > less.high else Agreement.NO


def pairs_in_order(published: Sequence[float], here: Sequence[float]) -> tuple[int, int]:
    """Return how many pairs stand in the same order in both, and how many pairs there are."""
    pairs = list(combinations(range(len(published)), 2))
    alike = sum((published[i] - published[j]) * (here[i] - here[j]) > 0 for i, j in pairs)
    return alike, len(pairs)
