"""Patterns of many ranks: what their channels carry, beside what arithmetic gives them, and how they share it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fabricbench.analysis.channels import Sharing, channel_rate, read_sharing
from fabricbench.analysis.findings import Findings, Topology
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.summary import interval, over_launches, scaled
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Rows, no_tables
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.report.drawing.axes import rate_labels
from fabricbench.report.drawing.figure import (
    Figure,
    Panel,
    interval_note,
    origin_note,
    sentences,
    tooltip,
)
from fabricbench.report.drawing.intervals import bar_panel
from fabricbench.report.words import (
    NOTHING,
    PATTERN_WORDS,
    counted,
    effect_words,
    group_words,
    in_report_order,
    interval_words,
    share_interval_words,
    size_words,
    value_words,
    verdict_words,
)
from fabricbench.statistics.order import median_interval
from fabricbench.table import Table, table

TOPOLOGIES = Rows("topologies", Topology)

GROUPS = (Family.LOCKSTEP, Family.FLOOD)
METHOD = """
Where many ranks take part, a sample is what all of them did: a turn with neighbours lasts from when the last rank was
done with the one before until the last is done with it; of a flood, it is a window of time with what arrived at all
receivers. What a logical channel should get is the payload rate of a full-duplex link, headers, preamble, gap and
padding counted, over the channels in the busiest direction of the busiest link; acknowledgements are left out. Fairness
is Jain's index.
"""
AGAINST_COLUMN = "Times faster (unadjusted interval), verdict"
ROW_HEIGHT = 19
TICK_SIZE = 15
LABEL_EXTENT = 110
"""Pixels for the names of patterns, the same in every panel, so that bars can be compared across."""


def find(material: Material) -> Found:
    """Return every flood and every pattern of turns that was measured alone, side by side."""
    found: list[Topology] = []
    for side in material.sides:
        sharing = read_sharing(side)
        found += [
            _topology(side, cell, sharing.get(key), material.confidence)
            for key, cell in side.cells.items()
            if PATTERNS[key.pattern].family in GROUPS and cell.facts.congestor is None
        ]
    return {TOPOLOGIES.name: tuple(found)}


def _topology(side: Side, cell: CellMeasured, sharing: Sharing | None, confidence: float) -> Topology:
    key, facts = cell.key, cell.facts
    is_turn = key.metric.is_time
    values = cell.launch_values
    whole = interval(median_interval(facts.operation_bytes * 8e9 / values if is_turn else values, confidence))
    each = scaled(whole, 1.0 / facts.channels)
    wire = side.fabric.wire
    arithmetic = None
    if wire is not None:
        arithmetic = channel_rate(
            wire,
            side.fabric.mtu,
            key.layer,
            key.pattern,
            key.message_bytes,
            ranks=len(facts.ranks),
            flows=facts.flows,
        )
    return Topology(
        fabric=side.name,
        key=key,
        ranks=len(facts.ranks),
        flows=facts.flows,
        channels=facts.channels,
        launches=int(np.count_nonzero(~np.isnan(values))),
        throughput=whole,
        channel_throughput=each,
        arithmetic=arithmetic,
        share_of_arithmetic=None if arithmetic is None else scaled(each, 1.0 / arithmetic),
        time=interval(median_interval(values, confidence)) if is_turn else None,
        fairness=None if sharing is None else over_launches(sharing.fairness, confidence),
        loss_share=None if sharing is None else over_launches(sharing.loss_share, confidence),
    )


def tables(findings: Findings) -> NamedTables:
    """Return the one table of the chapter."""
    return [("", topology_table(findings))]


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
        for one in sorted(TOPOLOGIES.of(findings), key=lambda one: in_report_order(one.key))
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
    spare = (AGAINST_COLUMN, "All channels", "Time of a turn", "By arithmetic", "Channels")
    made = table(columns, rows, (1, 3, 4, 5, 6, 7, 8), spare=spare)
    return made if any(one.time for one in TOPOLOGIES.of(findings)) else made.without(3)


def _rate(one: Topology) -> Metric:
    return Metric.MESSAGE_RATE if one.key.metric is Metric.MESSAGE_RATE else Metric.THROUGHPUT


def _against(findings: Findings, one: Topology) -> str:
    """Return the comparison with the baseline, on the row of the fabric that is compared with it."""
    found = [cell for cell in findings.cells if (cell.fabric_b, cell.key) == (one.fabric, one.key)]
    return f"{effect_words(found[0])}, {verdict_words(found[0], findings.margin)}" if found else NOTHING


def topologies(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the mean throughput of a logical channel, beside what a full-duplex switch would give it."""
    del is_interactive  # the page needs no other figure than paper
    groups: dict[tuple[Layer, str], list[Topology]] = {}
    order = [fabric.name for fabric in findings.fabrics]
    shown = [one for one in TOPOLOGIES.of(findings) if is_shown(one)]
    for one in sorted(shown, key=lambda one: (in_report_order(one.key)[0], order.index(one.fabric), *_place(one))):
        groups.setdefault((one.key.layer, one.fabric), []).append(one)
    if not groups:
        return None
    ends = [
        end
        for one in shown
        for end in (one.channel_throughput.value, one.channel_throughput.high, one.arithmetic)
        if end
    ]
    longest = max(ends, default=1.0)
    panels = tuple(_panel(findings, layer, fabric, group, longest) for (layer, fabric), group in groups.items())
    caption = sentences(
        "Bar: throughput of all channels over the channels in use; upright mark: the share of a link's payload rate that "
        "arithmetic gives each channel behind a full-duplex switch.",
        interval_note(findings, (one.launches for one in shown)),
        "More flows, message rates and the ratio of the fabrics: in the table.",
        origin_note(findings),
    )
    title = "What a channel carries in patterns of many ranks"
    return Figure("topologies", title, caption, panels, topology_table(findings))


def is_shown(one: Topology) -> bool:
    """Whether a pattern stands in the figure: rates in messages and sweeps over flows have another scale or figure."""
    return one.key.metric is not Metric.MESSAGE_RATE and one.flows == 1


def _place(one: Topology) -> tuple[int, int, tuple[Any, ...]]:
    return list(Pattern).index(one.key.pattern), one.key.message_bytes, one.key.order


def _row(one: Topology) -> dict[str, Any]:
    each = one.channel_throughput
    label = f"{PATTERN_WORDS[one.key.pattern]} {size_words(one.key.message_bytes)}"
    rest = one.key.model_copy(update={"ranks": None})
    return {
        "label": ", ".join((label, *rest.variant_words)),
        "fabric": one.fabric,
        "value": each.value,
        "low": each.low,
        "high": each.high,
        "predicted": one.arithmetic,
        "pattern": f"{label}, {one.ranks} ranks, {counted(one.channels, 'channel')}",
        "a channel": interval_words(Metric.THROUGHPUT, each),
        "all channels": interval_words(Metric.THROUGHPUT, one.throughput),
        "arithmetic": value_words(Metric.THROUGHPUT, one.arithmetic),
        "of arithmetic": share_interval_words(one.share_of_arithmetic),
        "fairness": NOTHING if one.fairness is None else f"{one.fairness.value:.3f}",
    }


def _panel(findings: Findings, layer: Layer, fabric: str, group: list[Topology], longest: float) -> Panel:
    return bar_panel(
        findings,
        layer,
        fabric,
        [_row(one) for one in group],
        tooltip("pattern", "fabric", "a channel", "all channels", "arithmetic", "of arithmetic", "fairness"),
        x={
            "scale": {"domain": [0, 1.04 * longest]},
            "axis": {"labelExpr": rate_labels(), "title": "throughput of a channel"},
        },
        y_axis={"labelLimit": 190, "minExtent": LABEL_EXTENT},
        expected="predicted",
        row_height=ROW_HEIGHT,
        tick_size=TICK_SIZE,
        keep=["isValid(datum.predicted)"],
    )


CHAPTER = Chapter(
    name="topologies",
    title="Patterns of many ranks",
    needs="a pattern in which more than two ranks take part at once: ring, chaos, incast and the like",
    find=find,
    method=METHOD,
    tables=tables,
    figures={"topologies": topologies},
    records=lambda findings: {"topologies": TOPOLOGIES.of(findings)},
    on_page=OnPage(entry="Many ranks", tables=no_tables, is_open=False),
)
