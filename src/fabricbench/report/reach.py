"""How far a report reaches: what was not measured, with the campaign that measures it, and its numbers as OSU prints them."""

from __future__ import annotations

from collections.abc import Iterator

from fabricbench.analysis.findings import Findings, Interval, Origin, Reading
from fabricbench.analysis.findings.loads import WORKLOADS
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import enumeration
from fabricbench.report.words import interval_parts, size_words


def reach_words(findings: Findings) -> tuple[str, ...]:
    """Return what was not measured, then the round trips as OSU tells them; nothing where there is nothing to say."""
    return tuple(filter(None, (_unmeasured_words(findings), _osu_words(findings))))


def _unmeasured_words(findings: Findings) -> str:
    if all(fabric.origin is Origin.IMPORTED for fabric in findings.fabrics):
        return ""
    lacking = [f"{what} (campaign {campaign})" for what, campaign in _lacking(findings)]
    sizes = [summary.key.message_bytes for summary in findings.summaries if summary.key.layer is not Layer.MEMORY]
    largest = max(sizes, default=0)
    if lacking and largest:
        lacking.append(f"messages of more than {size_words(largest)}")
    return f"Not measured: {enumeration(lacking)}." if lacking else ""


def _lacking(findings: Findings) -> Iterator[tuple[str, str]]:
    """Yield what a network is asked for besides two ranks at a time and was not, with the built-in campaign that asks."""
    of_programs = [one for one in findings.summaries if PATTERNS[one.key.pattern].family is Family.WORKLOAD]
    asked: tuple[tuple[object, str, str], ...] = (
        (findings.chapters.get("topologies"), "many ranks at once", "patterns"),
        (findings.chapters.get("operations"), "MPI operations", "collectives"),
        (findings.chapters.get("congestions"), "a fabric beside other traffic", "congestion"),
        (findings.chapters.get("one_ways"), "one-way latency", "oneway"),
        (findings.chapters.get("maps"), "every pair of nodes", "map"),
        (findings.chapters.get(WORKLOADS) or of_programs, "kernels and applications", "npb"),
    )
    yield from ((what, campaign) for found, what, campaign in asked if not found)
    has_verbs = any(Layer.RDMA in fabric.layers for fabric in findings.fabrics)
    if has_verbs and all(summary.key.layer is not Layer.RDMA for summary in findings.summaries):
        yield "RDMA verbs", "rdma"


def _osu_words(findings: Findings) -> str:
    """Return the first screen's round trip over MPI as one-way latency, which is half of it."""
    rows = (*findings.headline.effects, *findings.headline.more_effects)
    found = (one for one in rows if one.layer is Layer.MPI and one.metric is Metric.ROUND_TRIP_TIME and one.is_typical)
    row = next((one for one in found if one.key is None or one.key.pattern is Pattern.PINGPONG), None)
    if row is None:
        return ""
    halves = [
        f"{interval_parts(row.metric, half).value} on {one.fabric}"
        for one in row.readings
        if (half := _half(one)) is not None
    ]
    return (
        f"As osu_latency prints one-way latency, half of {row.what}: {enumeration(halves)}; it prints the mean of one start's "
        "messages, where these are of the medians of all starts."
    )


def _half(one: Reading) -> Interval | None:
    low, high = (None if end is None else end / 2 for end in (one.low, one.high))
    return None if one.value is None else Interval(value=one.value / 2, low=low, high=high)
