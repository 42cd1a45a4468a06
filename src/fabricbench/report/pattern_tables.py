"""The tables of patterns of many ranks, congestion, MPI operations, one-way latencies and pairs, as plain text cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fabricbench.analysis.findings import (
    CellKey,
    Coefficient,
    Comparison,
    Congestion,
    CongestorFacts,
    Findings,
    NetworkMap,
    Topology,
    slowness_words,
)
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.patterns import PATTERNS
from fabricbench.report.application_tables import application_tables
from fabricbench.report.decision_tables import decision_tables
from fabricbench.report.kernel_tables import kernel_tables
from fabricbench.report.tables import Table, table
from fabricbench.report.words import (
    NOTHING,
    PATTERN_WORDS,
    counted,
    effect_words,
    factor_words,
    interval_words,
    outcome_words,
    probe_words,
    share_interval_words,
    share_words,
    size_words,
    value_words,
    verdict_words,
)

AGAINST_COLUMN = "Times faster (unadjusted interval), verdict"
NOT_AGAIN = "suspected: one run, not measured again"
UNNAMED = "cannot be named yet: no cause explains it"

MOST_UNEXPLAINED = 10
"""Rows of pairs without a cause in a table: the worst; every pair is in the matrix."""


def in_report_order(key: CellKey) -> tuple[int, int, str, str, int]:
    """Sort cells as tables and figures of patterns show them: up the layers, then by pattern, variant and size."""
    order = list(Layer).index(key.layer), list(Pattern).index(key.pattern)
    return (*order, key.receive, key.variant, key.message_bytes)


def topology_table(findings: Findings) -> Table:
    """A row for each pattern on each layer and fabric: what all and each of its channels carry, beside arithmetic."""
    rows = [
        (
            group_words(one.key),
            size_words(one.key.message_bytes),
            one.fabric,
            interval_words(Metric.OPERATION_TIME, one.time),
            interval_words(_rate(one), one.throughput),
            str(one.channels),
            interval_words(_rate(one), one.channel_throughput),
            value_words(_rate(one), one.arithmetic),
            share_interval_words(one.share_of_arithmetic),
            _against(findings, one),
        )
        for one in sorted(findings.topologies, key=lambda one: in_report_order(one.key))
    ]
    columns = (
        "Pattern",
        "Message",
        "Fabric",
        "Time of a turn",
        "All channels",
        "Channels",
        "Mean of a channel",
        "By arithmetic",
        "Of arithmetic",
        AGAINST_COLUMN,
    )
    made = table(columns, rows, (1, 3, 4, 5, 6, 7, 8))
    return made if any(one.time for one in findings.topologies) else made.without(3)


def group_words(key: CellKey) -> str:
    """Return `tcp incast, 4 ranks, flows=16`; how a socket waits is told where it spins."""
    return probe_words(key.layer, key.pattern, key.receive, key.variant).replace(", blocking", "")


def _rate(one: Topology) -> Metric:
    return Metric.MESSAGE_RATE if one.key.metric is Metric.MESSAGE_RATE else Metric.THROUGHPUT


def _against(findings: Findings, one: Topology) -> str:
    """Return the comparison with the baseline, on the row of the fabric that is compared with it."""
    found = [cell for cell in findings.cells if cell.fabric_b == one.fabric and _is_of(cell, one.key)]
    return f"{effect_words(found[0])}, {verdict_words(found[0], findings.margin)}" if found else NOTHING


def _is_of(cell: Comparison, key: CellKey) -> bool:
    same = (cell.layer, cell.pattern, cell.receive, cell.variant, cell.message_bytes)
    return same == (key.layer, key.pattern, key.receive, key.variant, key.message_bytes)


def incasts(findings: Findings) -> list[Topology]:
    """Return the incasts, the fabrics side by side."""
    found = [one for one in findings.topologies if one.key.pattern is Pattern.INCAST]
    return sorted(
        found, key=lambda one: (list(Layer).index(one.key.layer), one.key.receive, one.key.message_bytes, one.flows)
    )


def incast_table(findings: Findings) -> Table:
    """A row for each size, number of flows and fabric: goodput at the receiver, what was lost, how even the channels were."""
    rows = [
        (
            f"{one.key.layer.value}, {one.ranks - 1} to 1",
            size_words(one.key.message_bytes),
            str(one.flows),
            one.fabric,
            interval_words(Metric.THROUGHPUT, one.throughput),
            share_interval_words(one.share_of_arithmetic),
            share_words(None if one.loss_share is None else one.loss_share.value),
            NOTHING if one.fairness is None else f"{one.fairness.value:.3f}",
        )
        for one in incasts(findings)
    ]
    columns = (
        "Incast",
        "Message",
        "Flows",
        "Fabric",
        "Goodput at the receiver",
        "Of its link's payload rate",
        "Lost",
        "Fairness (Jain)",
    )
    return table(columns, rows, (1, 2, 4, 5, 6, 7))


def congestion_table(congestions: Sequence[Congestion]) -> Table:
    """A row for each congested test: alone, beside the congestor, and how many times worse its median and tails are."""
    rows = [
        (
            victim_words(one.key),
            congestor_words(one.congestor),
            one.fabric,
            interval_words(one.key.metric, one.isolated),
            interval_words(one.key.metric, one.congested),
            factor_words(one.impact),
            factor_words(one.impact_p99),
            factor_words(one.impact_p999),
            f"{one.launches} × {one.samples_a_launch:,}",
        )
        for one in sorted(congestions, key=lambda one: (in_report_order(one.key), congestor_order(one.congestor)))
    ]
    columns = (
        "Victim",
        "Beside",
        "Fabric",
        "Alone",
        "Congested",
        "Impact, median",
        "Impact, p99",
        "Impact, p99.9",
        "Launches × samples",
    )
    return table(columns, rows, range(3, 9))


def congestor_order(congestor: CongestorFacts) -> tuple[bool, str, str, int, int]:
    """Sort congestors by what they send; the fabrics of each stay side by side."""
    return not congestor.is_idle, congestor.layer, congestor.pattern, congestor.message_bytes, congestor.flows


def victim_words(key: CellKey) -> str:
    """Return `tcp ping-pong, 64 B`."""
    return f"{group_words(key)}, {size_words(key.message_bytes)}"


def congestor_words(congestor: CongestorFacts) -> str:
    """Return `tcp incast of 64 KiB, 16 flows`."""
    flows = f", {counted(congestor.flows, 'flow')}"
    idle = "idle " if congestor.is_idle else ""
    return f"{idle}{congestor.layer.value} {PATTERN_WORDS[congestor.pattern]} of {size_words(congestor.message_bytes)}{flows}"


def operation_words(key: CellKey) -> str:
    """Return `allreduce, 4 ranks, mode=nonblocking`."""
    return ", ".join(filter(None, (PATTERN_WORDS[key.pattern], key.variant)))


def operation_size_words(key: CellKey) -> str:
    """Return the size of an operation; nothing where it has none."""
    return size_words(key.message_bytes) if PATTERNS[key.pattern].has_size else NOTHING


def operation_table(findings: Findings) -> Table:
    """A row for each operation, size and fabric: its times from each kind of start, bandwidths, overlap, how well starts agreed."""
    rows = [
        (
            operation_words(one.key),
            operation_size_words(one.key),
            one.fabric,
            interval_words(one.key.metric, one.time),
            interval_words(Metric.THROUGHPUT, one.algorithm_bandwidth),
            NOTHING if one.bus_bandwidth is None else value_words(Metric.THROUGHPUT, one.bus_bandwidth.value),
            interval_words(one.key.metric, one.barrier_start),
            interval_words(one.key.metric, one.back_to_back),
            share_interval_words(one.overlap),
            NOTHING if one.start_tolerance_ns is None else value_words(one.key.metric, one.start_tolerance_ns),
            share_words(one.missed_share),
            NOTHING if one.clock_error_ns is None else value_words(one.key.metric, one.clock_error_ns),
            f"{one.launches}",
        )
        for one in sorted(findings.operations, key=lambda one: in_report_order(one.key))
    ]
    columns = (
        "Operation",
        "Message",
        "Fabric",
        "Agreed start",
        "Algorithm bandwidth",
        "Bus bandwidth",
        "Barrier start",
        "Back to back",
        "Overlap",
        "Starts within",
        "Late starts",
        "Clocks within",
        "Launches",
    )
    made = table(columns, rows, (1, *range(3, 13)))
    told = {
        6: any(one.barrier_start for one in findings.operations),
        7: any(one.back_to_back for one in findings.operations),
        8: any(one.overlap for one in findings.operations),
        9: any(one.start_tolerance_ns is not None for one in findings.operations),
        11: any(one.clock_error_ns for one in findings.operations),
    }
    for column in sorted((column for column, is_told in told.items() if not is_told), reverse=True):
        made = made.without(column)
    return made


def coefficient_table(findings: Findings) -> Table:
    """A row for each operation and size: the coefficient of B against A, and the verdict."""
    ordered = sorted(findings.coefficients, key=lambda one: in_report_order(one.key))
    rows = [
        (
            operation_words(one.key),
            operation_size_words(one.key),
            f"{one.fabric_b} : {one.fabric_a}",
            share_interval_words(one.coefficient, is_signed=True),
            coefficient_verdict(one, findings.margin),
            f"{one.launches}",
        )
        for one in ordered
    ]
    head = f"(t_B − t_A) / t_A ({findings.confidence * 100:g} % interval, unadjusted)"
    undecided = [index for index, one in enumerate(ordered) if one.verdict.leader is None]
    made = table(("Operation", "Message", "B : A", head, "Verdict", "n"), rows, (1, 3, 5), undecided)
    return made.without(2) if len({(one.fabric_a, one.fabric_b) for one in ordered}) == 1 else made


def coefficient_verdict(one: Coefficient, margin: float) -> str:
    """Return `myrinet faster`, `myrinet ahead, perhaps by less than 2 %`, `equivalent` or `not enough data`."""
    return outcome_words(one.verdict, one.fabric_a, one.fabric_b, margin)


def start_up_table(findings: Findings) -> Table:
    """A row for each fabric: what starting MPI took on the slowest rank."""
    rows = [
        (one.fabric, str(one.ranks), interval_words(Metric.OPERATION_TIME, one.time), str(one.launches))
        for one in findings.start_ups
    ]
    return table(("Fabric", "Ranks", "MPI_Init on the slowest rank", "Launches"), rows, (1, 2, 3))


def one_way_table(findings: Findings) -> Table:
    """A row for each layer, size and fabric: both directions, their sum beside the round trip, the bound of the clocks."""
    trip = Metric.ROUND_TRIP_TIME
    rows = [
        (
            f"{group_words(one.key).replace(' one-way', '')}",
            size_words(one.key.message_bytes),
            one.fabric,
            interval_words(trip, one.forth),
            interval_words(trip, one.back),
            bound_words(one.clock_bound_ns, is_shared=one.is_shared_clock),
            interval_words(trip, one.asymmetry),
            value_words(trip, one.total.value),
            interval_words(trip, one.round_trip),
            value_words(trip, one.round_trip.value / 2),
        )
        for one in sorted(findings.one_ways, key=lambda one: in_report_order(one.key))
    ]
    columns = (
        "Layer",
        "Message",
        "Fabric",
        "Forth",
        "Back",
        "Clocks within",
        "Forth − back",
        "Forth + back",
        "Round trip",
        "Half of it",
    )
    return table(columns, rows, (1, *range(3, 10)))


def bound_words(bound_ns: float | None, *, is_shared: bool) -> str:
    """Return how far the clocks of two ranks may be apart."""
    if is_shared:
        return "one clock"
    return "unknown" if bound_ns is None else f"± {value_words(Metric.ROUND_TRIP_TIME, bound_ns)}"


def map_words(one: NetworkMap) -> str:
    """Return what a matrix is of: `myrinet, tcp pairs, 64 B`."""
    rounds = ", disjoint pairs at once" if one.schedule == "rounds" else ""
    return f"{one.fabric}, {one.layer.value} {PATTERN_WORDS[one.pattern]}, {size_words(one.message_bytes)}{rounds}"


def slow_table(maps: Sequence[NetworkMap]) -> Table:
    """A row for each cause of slow pairs and each pair without one: who, by how much, and whether a second run confirmed it."""
    named = [
        (
            map_words(one),
            slow.words,
            f"{slow.slower:.0%} ({slow.slower_low:.0%} to {slow.slower_high:.0%})".replace("%", " %"),
            "confirmed by a second run" if slow.is_confirmed else NOT_AGAIN,
        )
        for one in maps
        for slow in one.slow
    ]
    unnamed = [
        (
            map_words(one),
            f"{one.pair_words(pair)}: {value_words(one.metric, pair.value)}",
            by_words(pair.slower),
            UNNAMED,
        )
        for one in maps
        for pair in one.unexplained[:MOST_UNEXPLAINED]
    ]
    apart = [(map_words(one), one.apart_words, NOTHING, UNNAMED) for one in maps if one.apart]
    return table(("Matrix", "Finding", "Slower by", "Grade"), [*named, *apart, *unnamed], (2,))


def groups_table(maps: Sequence[NetworkMap]) -> Table:
    """A row for each group of hosts of each matrix, and what crossing from one group to another costs."""
    rows = [
        (map_words(one), ", ".join(group), by_words(one.crossing, is_signed=True))
        for one in maps
        for group in one.groups
        if one.crossing is not None
    ]
    return table(("Matrix", "Group of nodes", "Pairs across groups, against within"), rows, ())


def by_words(slower: float, *, is_signed: bool = False) -> str:
    """Return by how much something is slower: `20 %` or `4.6 times`, and `20 % slower` or `20 % faster` where signed."""
    words = slowness_words(abs(slower))
    return f"{words} {'slower' if slower >= 0 else 'faster'}" if is_signed else words


def map_verdict(maps: Sequence[NetworkMap]) -> str:
    """Return what the matrices come to, in a sentence."""
    causes = [slow for one in maps for slow in one.slow]
    if not any(one.is_judged for one in maps):
        return "Fewer than four hosts: causes cannot be told apart, so nobody is judged."
    unnamed = [f"{map_words(one)}: {one.unnamed_words}" for one in maps if one.unnamed_words]
    groups = [f"{map_words(one)}: {one.groups_words}" for one in maps if one.groups_words]
    if not causes:
        return " ".join([*(unnamed or ["No node, pair or direction is slow."]), *groups])
    return " ".join([_grade_words({slow.is_confirmed for slow in causes}), *unnamed, *groups])


def _grade_words(grades: set[bool]) -> str:
    if grades == {True}:
        return "Named here is what a second run of the same pairs found again."
    again = "fabricbench map measures the pairs again before it accuses anybody."
    return f"Suspects only: {again}" if grades == {False} else f"Some are confirmed, others suspects only: {again}"


def matrix_table(one: NetworkMap) -> Table:
    """The matrix: a row for each host that sends, a column for each that receives."""
    rows = [
        (host, *(value_words(one.metric, value) for value in row))
        for host, row in zip(one.hosts, one.matrix, strict=True)
    ]
    return table(("from \\ to", *one.hosts), rows, range(1, len(one.hosts) + 1))


def pairs_table(maps: Sequence[NetworkMap]) -> Table:
    """A row for each pair and direction of every matrix."""
    rows = [
        (map_words(one), source, destination, value_words(one.metric, value))
        for one in maps
        for source, row in zip(one.hosts, one.matrix, strict=True)
        for destination, value in zip(one.hosts, row, strict=True)
        if value is not None
    ]
    return table(("Matrix", "From", "To", "Median over launches"), rows, (3,))


SECTIONS: tuple[tuple[str, Callable[[Findings], list[tuple[str, Table]]]], ...] = (
    ("Decision", decision_tables),
    ("Patterns of many ranks", lambda findings: [("", topology_table(findings))]),
    (
        "Congestion",
        lambda findings: [
            ("What a congestor does", congestion_table(findings.congestions)),
            ("Incast", incast_table(findings)),
        ],
    ),
    (
        "MPI operations",
        lambda findings: [
            ("How the fabrics compare", coefficient_table(findings)),
            ("Times and bandwidths, medians", operation_table(findings)),
            ("Starting MPI", start_up_table(findings) if findings.operations else table((), ())),
        ],
    ),
    ("One-way latency", lambda findings: [("", one_way_table(findings))]),
    ("Kernels: the NAS Parallel Benchmarks", kernel_tables),
    ("Applications", application_tables),
    (
        "The map of the network",
        lambda findings: [
            ("Who is slow", slow_table(findings.maps)),
            ("Groups of nodes", groups_table(findings.maps)),
            *((map_words(one), matrix_table(one)) for one in findings.maps),
        ],
    ),
)
"""The sections of a report in text: a title, and the tables in it with theirs. One without rows is left out."""
