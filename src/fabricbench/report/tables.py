"""The tables that every report has, as plain text cells, for HTML, Markdown and the terminal alike."""

from __future__ import annotations

from collections.abc import Sequence

from fabricbench.analysis.findings import (
    CellSummary,
    Comparison,
    Crossover,
    Distribution,
    Findings,
    LadderStep,
    Replication,
    is_basic,
)
from fabricbench.model import Layer, Metric
from fabricbench.published import PublishedFigure
from fabricbench.report.inventory_words import fact_words
from fabricbench.report.words import (
    NOTHING,
    RECEIVE_WORDS,
    bracket_words,
    cell_words,
    counted,
    effect_words,
    in_this_run,
    interval_words,
    kind_words,
    lost_words,
    p_words,
    place_words,
    probe_words,
    range_words,
    share_words,
    size_words,
    struck_words,
    value_words,
    verdict_words,
)
from fabricbench.table import Table, table


def undecided_rows(items: Sequence[Comparison]) -> list[int]:
    """Return the rows that name no leader."""
    return [index for index, item in enumerate(items) if item.leader is None]


LOST_COLUMN = "Line rate lost against the layer below"
"""At the largest size that both layers have, which stands with it: the shares beside it are of another one."""


def impossible_in(findings: Findings, step: LadderStep) -> tuple[bool, bool]:
    """Return whether the round trip and the throughput of a step of the ladder are impossible values."""
    struck = {
        (summary.key.metric, summary.key.message_bytes)
        for summary in findings.summaries
        if summary.is_impossible
        and is_basic(summary.key)
        and (summary.fabric, summary.key.layer, summary.key.receive) == (step.fabric, step.layer, step.receive)
    }
    return (
        (Metric.ROUND_TRIP_TIME, step.round_trip_message_bytes) in struck,
        (Metric.THROUGHPUT, step.throughput_message_bytes) in struck,
    )


def ladder_table(findings: Findings) -> Table:
    """Layer by layer from the top, fabrics under each other: round trip, what the layer adds, throughput, shares."""
    order = [fabric.name for fabric in findings.fabrics]
    from_top = list(reversed(Layer))
    steps = sorted(
        findings.ladder, key=lambda step: (from_top.index(step.layer), step.receive, order.index(step.fabric))
    )
    rows = []
    for step in steps:
        is_trip_struck, is_rate_struck = impossible_in(findings, step)
        rows.append(
            (
                step.layer.value,
                step.fabric,
                RECEIVE_WORDS[step.receive],
                struck_words(interval_words(Metric.ROUND_TRIP_TIME, step.round_trip), is_impossible=is_trip_struck),
                interval_words(Metric.ROUND_TRIP_TIME, step.added_round_trip),
                struck_words(interval_words(Metric.THROUGHPUT, step.throughput), is_impossible=is_rate_struck),
                NOTHING if step.throughput is None else size_words(step.throughput_message_bytes),
                struck_words(share_words(step.share_of_line_rate), is_impossible=is_rate_struck),
                struck_words(share_words(step.share_of_payload_rate), is_impossible=is_rate_struck),
                _lost(step),
            )
        )
    columns = (
        "Layer",
        "Fabric",
        "Receive",
        "Round trip, median of launches",
        "Added to the layer below",
        "Best throughput, median of launches",
        "At",
        "Of line rate",
        "Of possible payload rate",
        LOST_COLUMN,
    )
    return table(columns, rows, range(3, 10))


OF_TRIPS, OF_RATES = (0, 1, 2, 3, 4), (0, 1, 5, 6, 7, 8, 9)
"""Columns of the ladder that answer one question each, for where ten do not fit beside each other."""


def ladder_tables(findings: Findings) -> list[tuple[str, Table]]:
    """Return the ladder as two tables with their titles: what a message takes, and how much goes through."""
    whole = ladder_table(findings)
    return [("Round trip of a small message", whole.only(OF_TRIPS)), ("Best throughput", whole.only(OF_RATES))]


def _lost(step: LadderStep) -> str:
    """Return `15.5 % at 1472 B`."""
    words = lost_words(step.lost_share_of_line_rate)
    at = step.lost_at_message_bytes
    return words if at is None or step.lost_share_of_line_rate is None else f"{words} at {size_words(at)}"


def summary_table(summaries: Sequence[CellSummary]) -> Table:
    """A row for each test, size and fabric: median, interval, tails, counts."""
    rows = []
    for summary in summaries:
        metric = summary.key.metric
        rows.append(
            (
                cell_words(summary.key),
                summary.fabric,
                struck_words(
                    value_words(metric, summary.median.value),
                    is_impossible=summary.is_impossible,
                    is_beyond_wire=summary.is_beyond_wire,
                ),
                range_words(metric, summary.median.low, summary.median.high),
                value_words(metric, summary.quantiles.get("0.99")),
                struck_words(share_words(summary.share_of_line_rate), is_impossible=summary.is_impossible),
                str(summary.launches),
                f"{summary.samples:,}",
                f"{summary.lost:,} of {summary.sent:,}",
            )
        )
    columns = (
        "Test",
        "Fabric",
        "Median",
        "Interval",
        "99 % of samples below",
        "Share of line rate",
        "Launches",
        "Samples",
        "Lost",
    )
    return table(columns, rows, range(2, 9))


def comparison_table(findings: Findings, comparisons: Sequence[Comparison]) -> Table:
    """A row for each test and size: both geometric means, how many times faster, the verdict."""
    pairs = {(item.fabric_a, item.fabric_b) for item in comparisons}
    medians = ("A, geometric mean", "B, geometric mean")
    if len(pairs) == 1:
        (pair,) = pairs
        medians = (f"{pair[0]}, geometric mean", f"{pair[1]}, geometric mean")
    rows = [
        (
            probe_words(item),
            size_words(item.message_bytes),
            f"{item.fabric_b} : {item.fabric_a}",
            value_words(item.metric, item.value_a),
            value_words(item.metric, item.value_b),
            *_outcome(findings, item),
        )
        for item in comparisons
    ]
    columns = ("Test", "Message", "B : A", *medians, *outcome_columns(findings))
    made = table(columns, rows, (1, 3, 4, 5, 6, 7), undecided_rows(comparisons))
    return made.without(2) if len(pairs) == 1 else made


def curve_table(findings: Findings, curves: Sequence[Comparison]) -> Table:
    """A row for each curve: how many times faster over all its sizes, the verdict."""
    rows = [
        (
            probe_words(item),
            f"{item.fabric_b} : {item.fabric_a}",
            *_outcome(findings, item),
        )
        for item in curves
    ]
    made = table(("Test", "B : A", *outcome_columns(findings)), rows, (2, 3, 4), undecided_rows(curves))
    return made.without(1) if len({(item.fabric_a, item.fabric_b) for item in curves}) == 1 else made


def outcome_columns(findings: Findings) -> tuple[str, str, str, str]:
    """Return the heads of what a comparison came to; the interval is of its row alone, the p-value is corrected over all."""
    return f"Times faster ({findings.confidence * 100:g} % interval, unadjusted)", "p, corrected", "n", "Verdict"


N_WORDS = {
    Replication.BLOCKS: ("pair", "pairs"),
    Replication.RUNS: ("run", "runs"),
    Replication.LAUNCHES: ("launch", "launches"),
}


def n_words(item: Comparison) -> str:
    """Return what a comparison rests on: `10 pairs`, `3 runs`, `6 launches`."""
    return counted(item.launches, *N_WORDS[item.replication])


def _outcome(findings: Findings, item: Comparison) -> tuple[str, str, str, str]:
    return effect_words(item), p_words(item.p_adjusted), n_words(item), verdict_words(item, findings.margin)


def crossover_table(crossovers: Sequence[Crossover]) -> Table:
    """A row for each place where one fabric overtakes another, with the sizes that were measured beside it."""
    rows = [
        (
            probe_words(item),
            item.faster_below,
            place_words(item),
            bracket_words(item),
            item.faster_above,
        )
        for item in crossovers
    ]
    return table(("Test", "Faster below", "Crossover", "Measured at", "Faster above"), rows)


def distribution_table(distributions: Sequence[Distribution], summaries: Sequence[CellSummary]) -> Table:
    """The quantiles of the samples whose distributions are drawn."""
    of = {(summary.fabric, summary.key): summary for summary in summaries}
    names = ("0.01", "0.25", "0.5", "0.75", "0.99", "0.999")
    rows = []
    for item in distributions:
        summary = of.get((item.fabric, item.key))
        quantiles = summary.quantiles if summary else {}
        values = [value_words(item.key.metric, quantiles.get(name)) for name in names]
        rows.append((cell_words(item.key), item.fabric, *values, f"{sum(item.counts):,}"))
    columns = ("Test", "Fabric", *(f"{float(name) * 100:g} %" for name in names), "Samples")
    return table(columns, rows, range(2, 9))


def tail_table(summaries: Sequence[CellSummary]) -> Table:
    """The slowest samples of tests: the times that half, and all but few of them, took less than, and the slowest one."""
    names = ("0.5", "0.95", "0.99", "0.999")
    rows = [
        (
            cell_words(one.key),
            one.fabric,
            *(value_words(one.key.metric, one.quantiles.get(name)) for name in names),
            value_words(one.key.metric, one.maximum),
            f"{one.samples:,}",
        )
        for one in summaries
    ]
    columns = ("Test", "Fabric", *(f"{float(name) * 100:g} %" for name in names), "Slowest", "Samples")
    return table(columns, rows, range(2, 8))


def fabric_table(findings: Findings) -> Table:
    """The fabrics: line rate, MTU, price, what they are; where the testbed tells them apart, with which MPI and on which nodes."""
    told = {"MPI": [one.mpi for one in findings.fabrics], "Nodes": [one.nodes for one in findings.fabrics]}
    further = {name: values for name, values in told.items() if any(values)}
    rows = [
        (
            f"{fabric.name} ({fabric.letter})",
            fabric.description or NOTHING,
            *(values[index] or NOTHING for values in further.values()),
            kind_words(fabric),
            value_words(Metric.THROUGHPUT, fabric.line_rate_bit_s),
            NOTHING if fabric.origin or fabric.mtu is None else f"{fabric.mtu} B",
            NOTHING if fabric.price_per_node is None else f"{fabric.price_per_node:g} {fabric.currency} a node",
        )
        for index, fabric in enumerate(findings.fabrics)
    ]
    right = range(3 + len(further), 6 + len(further))
    return table(("Fabric", "Description", *further, "Kind", "Line rate", "MTU", "Price"), rows, right)


def inventory_table(findings: Findings) -> Table:
    """One row for each fact, in plain words; hosts that agree share it."""
    hosts_of: dict[tuple[str, str], list[str]] = {}
    for host, facts in findings.inventory.items():
        for what, value in facts.items():
            hosts_of.setdefault((what, value), []).append(host)
    everyone = len(findings.inventory)
    rows = [
        (*fact_words(what, value), f"all {everyone} hosts" if len(hosts) == everyone > 1 else ", ".join(hosts))
        for (what, value), hosts in sorted(hosts_of.items(), key=lambda item: item[0][0])
    ]
    return table(("What", "Value", "Where"), rows)


def built_from(findings: Findings, figure: PublishedFigure) -> list[str]:
    """Return the fabrics under test that were built from a published figure, which is then no agreement."""
    return [
        fabric.name
        for fabric in findings.fabrics
        if figure.fabric in (None, fabric.name)
        and (figure.study, figure.quantity) in [(one.study, one.quantity) for one in fabric.built_from]
    ]


def published_table(findings: Findings, figures: Sequence[PublishedFigure]) -> Table:
    """What was measured, then what was published, each with its condition and source."""
    rows = [
        (
            step.fabric,
            step.layer.value,
            "throughput",
            value_words(Metric.THROUGHPUT, step.throughput.value),
            f"best, messages of {size_words(step.throughput_message_bytes)}",
            in_this_run(findings, step.fabric),
        )
        for step in findings.ladder
        if step.throughput is not None and step.layer in {figure.layer for figure in figures}
    ]
    rows += [
        (
            figure.fabric or NOTHING,
            figure.layer.value if figure.layer else NOTHING,
            figure.quantity.value.replace("_", " "),
            figure.as_published.replace(" us", " µs"),
            figure.condition_words,
            "; ".join((figure.citation, *(f"{fabric} is built from it" for fabric in built_from(findings, figure)))),
        )
        for figure in figures
    ]
    return table(("Fabric", "Layer", "Quantity", "Value", "Condition", "Source"), rows, (3,))
