"""One-way latencies by clocks that agree: each direction, their sum beside the round trip, and the bound of the clocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.channels import Directions, read_directions
from fabricbench.analysis.findings import CellKey, Findings, Interval, OneWay
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.summary import interval
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Rows, no_tables
from fabricbench.model import Layer, Metric, Receive
from fabricbench.report.drawing.axes import TIME_LABELS
from fabricbench.report.drawing.figure import (
    Figure,
    Panel,
    interval_note,
    origin_note,
    sentences,
    tooltip,
)
from fabricbench.report.drawing.intervals import bar_panel
from fabricbench.report.words import RECEIVE_WORDS, in_report_order, interval_words, size_words, value_words
from fabricbench.statistics.order import median_interval
from fabricbench.table import Table, table

ONE_WAYS = Rows("one_ways", OneWay)

Floats = NDArray[np.float64]
METHOD = """
One-way latencies are read from clocks that the ranks share, where that can be proven, or that were synchronised with a
linear model of drift (Hunold and Carpen-Amarie, CLUSTER 2018): then each is known to half the shortest round trip of
the synchronisation, summed over its hierarchy, and no better.
"""
ROW_HEIGHT = 20
TRIP = Metric.ROUND_TRIP_TIME


def find(material: Material) -> Found:
    """Return both directions of each one-way cell, side by side."""
    found = [
        _one_way(side, side.cells[key], directions, material.confidence)
        for side in material.sides
        for key, directions in read_directions(side).items()
    ]
    return {ONE_WAYS.name: tuple(found)}


def _one_way(side: Side, cell: CellMeasured, directions: Directions, confidence: float) -> OneWay:
    def told(values: Floats) -> Interval:
        return interval(median_interval(values, confidence))

    of_cell = cell.greatest("clock_error_ns")
    begin, end = (_worst(side, directions, phase) for phase in ("begin", "end"))
    begin = begin if of_cell is None else of_cell
    return OneWay(
        fabric=side.name,
        key=cell.key,
        source=directions.source,
        destination=directions.destination,
        launches=int(np.count_nonzero(~np.isnan(directions.forth))),
        forth=told(directions.forth),
        back=told(directions.back),
        total=told(directions.forth + directions.back),
        round_trip=told(cell.launch_values),
        asymmetry=told(directions.forth - directions.back),
        clock_bound_ns=max((bound for bound in (begin, end) if bound is not None), default=None),
        clock_bound_begin_ns=begin,
        clock_bound_end_ns=end,
        is_shared_clock=_is_shared(side, directions),
    )


def _worst(side: Side, directions: Directions, phase: str) -> float | None:
    """Return the greatest bound over launches of the difference of the two ranks' clocks; None where no launch tells."""
    sums = []
    for launch in side.launches:
        bounds = {clock.rank: clock.error_ns for clock in launch.summary.clocks if clock.phase == phase}
        if bounds.keys() >= {directions.source, directions.destination}:
            sums.append(bounds[directions.source] + bounds[directions.destination])
    return max(sums, default=None)


def _is_shared(side: Side, directions: Directions) -> bool:
    ranks = {directions.source, directions.destination}
    clocks = [clock for launch in side.launches for clock in launch.summary.clocks if clock.rank in ranks]
    return bool(clocks) and all(clock.is_shared for clock in clocks)


def tables(findings: Findings) -> NamedTables:
    """Return the one table of the chapter."""
    return [("", one_way_table(findings))]


def _setup_words(key: CellKey) -> str:
    """Return a test but for its pattern and size: `tcp, 4 ranks`; how a socket waits is told where it spins."""
    how = (RECEIVE_WORDS[key.receive],) if key.receive is Receive.POLLING else ()
    return ", ".join((key.layer.value, *how, *key.variant_words))


def one_way_table(findings: Findings) -> Table:
    """A row for each layer, size and fabric: both directions, their sum beside the round trip, the bound of the clocks."""
    rows = [
        (
            _setup_words(one.key),
            size_words(one.key.message_bytes),
            one.fabric,
            interval_words(TRIP, one.forth),
            interval_words(TRIP, one.back),
            bound_words(one.clock_bound_ns, is_shared=one.is_shared_clock),
            interval_words(TRIP, one.asymmetry),
            value_words(TRIP, one.total.value),
            interval_words(TRIP, one.round_trip),
            value_words(TRIP, one.round_trip.value / 2),
        )
        for one in sorted(ONE_WAYS.of(findings), key=lambda one: in_report_order(one.key))
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
    return table(columns, rows, (1, *range(3, 10)), spare=("Forth + back", "Half of it"))


def bound_words(bound_ns: float | None, *, is_shared: bool) -> str:
    """Return how far the clocks of two ranks may be apart."""
    if is_shared:
        return "one clock"
    return "unknown" if bound_ns is None else f"± {value_words(TRIP, bound_ns)}"


def one_way(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return both directions of every size, a panel for each layer and fabric."""
    del is_interactive  # the page needs no other figure than paper
    order = [fabric.name for fabric in findings.fabrics]
    groups: dict[tuple[Layer, str], list[OneWay]] = {}
    for one in sorted(ONE_WAYS.of(findings), key=lambda one: (in_report_order(one.key)[0], order.index(one.fabric))):
        groups.setdefault((one.key.layer, one.fabric), []).append(one)
    if not groups:
        return None
    rows = [row for group in groups.values() for one in group for row in _rows(one)]
    ends = [end for row in rows for end in (row["value"], row["high"], row["low"], row["half"]) if end is not None]
    panels = tuple(
        _panel(findings, layer, fabric, sorted(group, key=lambda one: one.key.message_bytes), ends)
        for (layer, fabric), group in groups.items()
    )
    caption = sentences(
        "Bars: the latency of each direction by clocks that agree; upright mark: half the round trip of them. How "
        "far the clocks may be apart is under the pointer and in the table.",
        interval_note(findings, (one.launches for one in ONE_WAYS.of(findings))),
        origin_note(findings),
    )
    return Figure("one-way", "The latency of each direction", caption, panels, one_way_table(findings))


def _rows(one: OneWay) -> list[dict[str, Any]]:
    rows = []
    for arrow, one_direction, ends in (
        ("→", one.forth, (one.source, one.destination)),
        ("←", one.back, (one.destination, one.source)),
    ):
        rows.append(
            {
                "label": f"{size_words(one.key.message_bytes)} {arrow}",
                "fabric": one.fabric,
                "value": one_direction.value,
                "low": one_direction.low,
                "high": one_direction.high,
                "half": one.round_trip.value / 2,
                "direction": f"rank {ends[0]} to rank {ends[1]}",
                "latency": interval_words(TRIP, one_direction),
                "clocks within": bound_words(one.clock_bound_ns, is_shared=one.is_shared_clock),
                "half the round trip": value_words(TRIP, one.round_trip.value / 2),
                "forth + back": value_words(TRIP, one.total.value),
                "round trip": interval_words(TRIP, one.round_trip),
            }
        )
    return rows


def _panel(findings: Findings, layer: Layer, fabric: str, group: list[OneWay], ends: list[float]) -> Panel:
    """Return a panel; `ends` are those of all panels, which share their axis."""
    return bar_panel(
        findings,
        layer,
        fabric,
        [row for one in group for row in _rows(one)],
        tooltip("direction", "fabric", "latency", "clocks within", "half the round trip", "forth + back", "round trip"),
        x={
            "scale": {"domain": [min(0.0, *ends), 1.05 * max(ends)]},
            "axis": {"labelExpr": TIME_LABELS, "title": "one-way latency"},
        },
        y_axis={},
        expected="half",
        row_height=ROW_HEIGHT,
        tick_size=16,
    )


CHAPTER = Chapter(
    name="one-way",
    title="One-way latency",
    needs="the pattern oneway: the campaign oneway has it",
    find=find,
    about=ONE_WAYS.name,
    method=METHOD,
    tables=tables,
    figures={"one-way": one_way},
    records=lambda findings: {"one-way": ONE_WAYS.of(findings)},
    on_page=OnPage(entry="One-way", tables=no_tables, is_open=False),
)
