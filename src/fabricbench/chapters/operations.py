"""MPI operations: time, bandwidth as collective users know it, overlap, start-up, and the coefficient between two fabrics."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fabricbench.analysis.findings import (
    CellKey,
    Coefficient,
    Comparison,
    Findings,
    Interval,
    Operation,
    Origin,
    StartUp,
    Verdict,
)
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.summary import interval, over_launches, scaled
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Rows
from fabricbench.model import Metric
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS, bus_factor
from fabricbench.report.drawing.figure import (
    AHEAD_OPACITY,
    Figure,
    KeyEntry,
    Panel,
    origin_note,
    ratio_note,
    sentences,
    tooltip,
)
from fabricbench.report.drawing.heat import LEAST_REACH, NEUTRAL, ROW_HEIGHT, heat_spec, widest
from fabricbench.report.palette import colour_range, fabric_names
from fabricbench.report.words import (
    MINUS,
    NOTHING,
    PATTERN_WORDS,
    counted,
    in_report_order,
    interval_words,
    outcome_words,
    share_interval_words,
    share_words,
    size_words,
    value_words,
)
from fabricbench.statistics.order import median_interval
from fabricbench.table import Table, table

OPERATIONS = Rows("operations", Operation)
COEFFICIENTS = Rows("coefficients", Coefficient)
START_UPS = Rows("start_ups", StartUp)

METHOD = """
A call of an MPI operation begins on all ranks at a time that their clocks agree on, no barrier before it, and lasts as
long as on the slowest rank (Hoefler and Belli, SC'15; Hunold and Carpen-Amarie, IEEE TPDS, 2016); calls in which some
rank came later than is usual, or than a call takes, are kept, marked and not counted. Barrier start is the time after a
barrier before each call, averaged over ranks, as OSU prints it; back to back that of a call in a plain loop, as IMB
prints it. Bus bandwidth is as the NCCL tests define it, overlap as IMB-NBC does.
"""
FARTHEST = math.log(4)
SIGNS = {Verdict.EQUIVALENT: "=", Verdict.NOT_ENOUGH_DATA: "?", Verdict.NOT_RESOLVABLE: "?"}


def find(material: Material) -> Found:
    """Return every MPI operation, side by side, the coefficients of those that were compared, and what starting MPI took."""
    operations = [
        _operation(side, cell, material.confidence)
        for side in material.sides
        for key, cell in side.cells.items()
        if PATTERNS[key.pattern].family is Family.OPERATION and cell.facts.congestor is None
    ]
    return {
        OPERATIONS.name: tuple(operations),
        COEFFICIENTS.name: tuple(_coefficients(material.cells)),
        START_UPS.name: tuple(_start_ups(material.sides, material.confidence)),
    }


def _operation(side: Side, cell: CellMeasured, confidence: float) -> Operation:
    facts, values = cell.facts, cell.launch_values
    moved = facts.operation_bytes if PATTERNS[cell.key.pattern].has_size else 0.0
    algorithm = interval(median_interval(moved * 8e9 / values, confidence, cell.rounding)) if moved else None
    factor = bus_factor(cell.key.pattern, len(facts.ranks))

    def told(name: str) -> Interval | None:
        values = cell.values.get(name)
        return None if values is None else over_launches(values, confidence)

    missed = cell.counts["missed"]
    return Operation(
        fabric=side.name,
        key=cell.key,
        ranks=len(facts.ranks),
        launches=int(np.count_nonzero(~np.isnan(values))),
        samples=cell.pooled.size,
        time=interval(median_interval(values, confidence, cell.rounding)),
        algorithm_bandwidth=algorithm,
        bus_factor=factor,
        bus_bandwidth=None if algorithm is None or factor is None else scaled(algorithm, factor),
        back_to_back=told("back_to_back_ns"),
        overlap=told("overlap"),
        missed_share=missed / max(missed + cell.pooled.size, 1),
        barrier_start=told("barrier_start_ns"),
        start_tolerance_ns=cell.greatest("start_tolerance_ns"),
        clock_error_ns=cell.greatest("clock_error_ns"),
    )


def _coefficients(cells: Sequence[Comparison]) -> list[Coefficient]:
    """Return (t_B - t_A) / t_A of each operation that was compared, with the comparison's verdict."""
    return [
        Coefficient(
            key=one.key,
            fabric_a=one.fabric_a,
            fabric_b=one.fabric_b,
            coefficient=one.coefficient,
            verdict=one.verdict,
            launches=one.launches,
        )
        for one in cells
        if PATTERNS[one.pattern].family is Family.OPERATION
    ]


def _start_ups(sides: Sequence[Side], confidence: float) -> list[StartUp]:
    """Return what starting MPI took on the slowest rank of each launch; nothing where no launch tells."""
    found = []
    for side in sides:
        headers = [launch.summary.header for launch in side.launches if launch.summary.header is not None]
        told = [[rank.start_up_ns for rank in header.ranks if rank.start_up_ns is not None] for header in headers]
        slowest = np.array([max(times) for times in told if times], dtype=np.float64)
        if slowest.size:
            found.append(
                StartUp(
                    fabric=side.name,
                    ranks=max(len(header.ranks) for header in headers),
                    launches=slowest.size,
                    time=interval(median_interval(slowest, confidence)),
                )
            )
    return found


def tables(findings: Findings) -> NamedTables:
    """Return the tables of the chapter with their titles."""
    return [
        ("How the fabrics compare", coefficient_table(findings)),
        ("Times and bandwidths, medians", operation_table(findings)),
        ("Starting MPI", start_up_table(findings) if OPERATIONS.of(findings) else table((), ())),
    ]


def _page_tables(findings: Findings) -> NamedTables:
    """Return those that no figure of the page has behind it."""
    if not OPERATIONS.of(findings):
        return []
    return [
        ("Times and bandwidths of the operations, medians over launches", operation_table(findings)),
        ("Starting MPI", start_up_table(findings)),
    ]


def operation_words(key: CellKey) -> str:
    """Return `allreduce, 4 ranks, mode=nonblocking`."""
    return ", ".join((PATTERN_WORDS[key.pattern], *key.variant_words))


def operation_size_words(key: CellKey) -> str:
    """Return the size of an operation; nothing where it has none."""
    return size_words(key.message_bytes) if PATTERNS[key.pattern].has_size else NOTHING


def operation_table(findings: Findings) -> Table:
    """A row for each operation, size and fabric: its times from each kind of start, bandwidths, overlap, how well starts agreed.

    Of imported operations nobody told how their calls began.
    """
    imported = findings.marks.get(Origin.IMPORTED, ())
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
            NOTHING if one.fabric in imported else share_words(one.missed_share),
            NOTHING if one.clock_error_ns is None else value_words(one.key.metric, one.clock_error_ns),
            f"{one.launches}",
        )
        for one in sorted(OPERATIONS.of(findings), key=lambda one: in_report_order(one.key))
    ]
    columns = (
        "Operation",
        "Message",
        "Fabric",
        "Time" if imported else "Agreed start",
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
    spare = ("Launches", "Late starts", "Back to back", "Barrier start", "Algorithm bandwidth", "Starts within")
    made = table(columns, rows, (1, *range(3, 13)), spare=spare)
    told = {
        6: any(one.barrier_start for one in OPERATIONS.of(findings)),
        7: any(one.back_to_back for one in OPERATIONS.of(findings)),
        8: any(one.overlap for one in OPERATIONS.of(findings)),
        9: any(one.start_tolerance_ns is not None for one in OPERATIONS.of(findings)),
        10: any(one.fabric not in imported for one in OPERATIONS.of(findings)),
        11: any(one.clock_error_ns for one in OPERATIONS.of(findings)),
    }
    for column in sorted((column for column, is_told in told.items() if not is_told), reverse=True):
        made = made.without(column)
    return made


def coefficient_table(findings: Findings) -> Table:
    """A row for each operation and size: the coefficient of B against A, and the verdict."""
    ordered = sorted(COEFFICIENTS.of(findings), key=lambda one: in_report_order(one.key))
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
    columns = ("Operation", "Message", "B : A", head, "Verdict", "n")
    made = table(columns, rows, (1, 3, 5), undecided, spare=("n",))
    return made.without(2) if len({(one.fabric_a, one.fabric_b) for one in ordered}) == 1 else made


def coefficient_verdict(one: Coefficient, margin: float) -> str:
    """Return `myrinet faster`, `myrinet ahead, perhaps by less than 2 %`, `equivalent` or `not enough data`."""
    return outcome_words(one.verdict, one.fabric_a, one.fabric_b, margin)


def start_up_table(findings: Findings) -> Table:
    """A row for each fabric: what starting MPI took on the slowest rank."""
    rows = [
        (one.fabric, str(one.ranks), interval_words(Metric.OPERATION_TIME, one.time), str(one.launches))
        for one in START_UPS.of(findings)
    ]
    columns = ("Fabric", "Ranks", "MPI_Init on the slowest rank", "Launches")
    return table(columns, rows, (1, 2, 3), spare=("Launches",))


def collectives(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the coefficient (t_B - t_A) / t_A of every operation and size, a panel for each pair of fabrics."""
    del is_interactive  # the page needs no other figure than paper
    groups: dict[tuple[str, str], list[Coefficient]] = {}
    for one in sorted(COEFFICIENTS.of(findings), key=lambda one: in_report_order(one.key)):
        groups.setdefault((one.fabric_a, one.fabric_b), []).append(one)
    if not groups:
        return None
    panels = tuple(_coefficient_panel(findings, *pair, group) for pair, group in groups.items())
    rests_on = ratio_note(findings, (one.launches for one in COEFFICIENTS.of(findings)))
    caption = sentences(
        "(t_B − t_A) / t_A: below 0 the second fabric takes less time, and the square has its colour; above 0 the first one. "
        "Without colour: = is equivalent within the margin, ? is not enough data; paler: ahead, perhaps by less than the margin. "
        "Intervals and verdicts: under the pointer, in the table.",
        rests_on,
        origin_note(findings),
    )
    title = "MPI operations: how much longer they take"
    colours = zip(fabric_names(findings), colour_range(findings), strict=True)
    key = (
        *(KeyEntry(f"{name} takes less time", colour) for name, colour in colours),
        KeyEntry("equivalent (=), or not enough data (?)", NEUTRAL),
    )
    return Figure("collectives", title, caption, panels, coefficient_table(findings), key=key, rests_on=rests_on)


def _strength(one: Coefficient) -> float:
    """Return how much of a fabric's colour a verdict earns: none where neither leads, a paler one where it may not matter."""
    return 1.0 if one.verdict.is_decided else AHEAD_OPACITY if one.verdict.is_ahead else 0.0


def _signed_percent(share: float) -> str:
    """Return `+18 %` or `−5 %`; what rounds to nothing has no sign."""
    percent = round(share * 100)
    return f"{percent:+d} %".replace("-", MINUS) if percent else "0 %"


def _coefficient_panel(findings: Findings, a: str, b: str, group: list[Coefficient]) -> Panel:
    logs = [math.log1p(one.coefficient.value) for one in group if one.coefficient.value > -1]
    reach = min(max([LEAST_REACH, *map(abs, logs)]), FARTHEST)
    ranks = {one.key.ranks for one in group if one.key.ranks is not None}
    rows = [
        {
            "label": _label(one, ranks),
            "column": operation_size_words(one.key),
            "heat": _strength(one) * max(-1.0, min(1.0, math.log1p(one.coefficient.value) / reach)),
            "shown": _signed_percent(one.coefficient.value) + SIGNS.get(one.verdict, ""),
            "operation": operation_words(one.key),
            "message": operation_size_words(one.key),
            "(t_B − t_A) / t_A": share_interval_words(one.coefficient, is_signed=True),
            "verdict": coefficient_verdict(one, findings.margin),
            "n": counted(one.launches, "pair of launches", "pairs of launches"),
        }
        for one in group
    ]
    labels = list(dict.fromkeys(_label(one, ranks) for one in group))
    sizes = sorted({(one.key.message_bytes, operation_size_words(one.key)) for one in group})
    columns = list(dict.fromkeys(words for _, words in sizes))
    colours = dict(zip(fabric_names(findings), colour_range(findings), strict=True))
    hint = tooltip("operation", "message", "(t_B − t_A) / t_A", "verdict", "n")
    spec = heat_spec(rows, labels, columns, (colours[b], colours[a]), hint, "message size")
    tags = {"left": a, "right": b, "layer": "mpi"}
    return Panel(f"{b} against {a}", spec, tags, height=ROW_HEIGHT * len(labels), widest=widest(labels, columns))


MODE = "mode"
"""The parameter whose words need no name beside them."""


def _label(one: Coefficient, ranks: set[int]) -> str:
    """Return the operation with its setup as short as a row can tell it: the number of ranks only where it differs."""
    mode = dict(one.key.parameters).get(MODE)
    rest = one.key.model_copy(
        update={
            "ranks": None if len(ranks) == 1 else one.key.ranks,
            "parameters": tuple(pair for pair in one.key.parameters if pair[0] != MODE),
        }
    )
    return ", ".join(filter(None, (PATTERN_WORDS[one.key.pattern], *rest.variant_words, str(mode or ""))))


CHAPTER = Chapter(
    name="operations",
    title="MPI operations",
    needs="operations of MPI: the campaign collectives has them",
    find=find,
    method=METHOD,
    is_of_measuring=True,
    tables=tables,
    figures={"collectives": collectives},
    records=lambda findings: {
        "operations": OPERATIONS.of(findings),
        "coefficients": COEFFICIENTS.of(findings),
        "start-up": START_UPS.of(findings),
    },
    on_page=OnPage(tables=_page_tables),
)
