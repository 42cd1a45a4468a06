"""Congestion: how many times worse a test fares beside a congestor than alone, and what an incast carries over its flows.

The impact factor of a launch is taken of its own numbers, in full precision, before anything is averaged or rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.comparing import number
from fabricbench.analysis.findings import CellKey, Congestion, CongestorFacts, Findings, Interval, Topology
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Side, log_of
from fabricbench.analysis.summary import interval
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Rows, no_tables
from fabricbench.chapters.topologies import TOPOLOGIES
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.report.drawing.axes import (
    CHOSEN,
    colour_channel,
    connection,
    decade_ticks,
    nice_steps,
    reader_params,
    value_channel,
)
from fabricbench.report.drawing.figure import (
    UNDECIDED,
    Figure,
    Panel,
    Spec,
    interval_note,
    mark,
    origin_note,
    sentences,
    span_words,
    tooltip,
)
from fabricbench.report.drawing.intervals import interval_points
from fabricbench.report.palette import fabric_names
from fabricbench.report.words import (
    NOTHING,
    PATTERN_WORDS,
    RECEIVE_WORDS,
    counted,
    factor_words,
    group_words,
    in_report_order,
    interval_words,
    share_interval_words,
    share_words,
    size_words,
    value_words,
)
from fabricbench.statistics.order import median_interval
from fabricbench.statistics.ratios import paired_ratios
from fabricbench.table import Table, table

CONGESTIONS = Rows("congestions", Congestion)

Floats = NDArray[np.float64]
METHOD = """
A congestion impact factor is congested over isolated of times, isolated over congested of rates, within each launch and
in full precision; the number is the geometric mean over launches, with the t interval of the logarithms. An idle
congestor is the control.
"""
ROW_HEIGHT = 24
STATISTICS = ("median", "p99", "p99.9")
WIDE = 8.0
"""From this range on, impacts read better on a logarithmic axis."""


def find(material: Material) -> Found:
    """Return every cell that was measured beside a congestor and alone, side by side."""
    found: list[Congestion] = []
    for side in material.sides:
        alone = {_name(cell): cell for cell in side.cells.values() if cell.facts.congestor is None}
        found += [
            _congestion(side, alone[_name(cell)], cell, cell.facts.congestor, material.confidence)
            for cell in side.cells.values()
            if cell.facts.congestor is not None and _name(cell) in alone
        ]
    return {CONGESTIONS.name: tuple(found)}


def _name(cell: CellMeasured) -> tuple[object, ...]:
    """Return what a cell beside a congestor has in common with the same cell alone."""
    key, facts = cell.key, cell.facts
    parameters = tuple(sorted(facts.parameters.items()))
    return key.layer, key.pattern, key.receive, key.message_bytes, facts.ranks, parameters


def _congestion(
    side: Side, alone: CellMeasured, beside: CellMeasured, congestor: PlanCongestor, confidence: float
) -> Congestion:
    is_time = alone.key.metric.is_time

    def impact(isolated: Floats, congested: Floats) -> Interval | None:
        if not is_time and np.any(congested == 0):
            return None  # without end in that launch: the mean over the others would hide it
        times = log_of(congested) - log_of(isolated) if is_time else log_of(isolated) - log_of(congested)
        ratios = paired_ratios(times, confidence)
        if not ratios.launches[0]:
            return None
        return Interval(value=float(ratios.ratio[0]), low=number(ratios.low[0]), high=number(ratios.high[0]))

    both = ~np.isnan(alone.launch_values) & ~np.isnan(beside.launch_values)
    launches = max(len(side.launches), 1)
    return Congestion(
        fabric=side.name,
        key=alone.key,
        congestor=CongestorFacts(
            layer=congestor.layer,
            pattern=congestor.pattern,
            message_bytes=congestor.message_bytes,
            flows=int(congestor.parameters.get("flows", 1)),
            ranks=congestor.ranks,
            is_idle=congestor.is_idle,
        ),
        launches=int(np.count_nonzero(both)),
        samples_a_launch=min(alone.pooled.size, beside.pooled.size) // launches,
        isolated=interval(median_interval(alone.launch_values, confidence)),
        congested=interval(median_interval(beside.launch_values, confidence)),
        impact=impact(alone.launch_values, beside.launch_values),
        impact_p99=impact(alone.tails[0.99], beside.tails[0.99]),
        impact_p999=impact(alone.tails[0.999], beside.tails[0.999]),
    )


def tables(findings: Findings) -> NamedTables:
    """Return the tables of the chapter with their titles."""
    return [("What a congestor does", congestion_table(CONGESTIONS.of(findings))), ("Incast", incast_table(findings))]


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
    return table(columns, rows, range(3, 9), spare=("Launches × samples", "Alone", "Congested", "Impact, p99.9"))


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


def incasts(findings: Findings) -> list[Topology]:
    """Return the incasts, the fabrics side by side; those over RDMA have a chapter of their own."""
    found = [
        one for one in TOPOLOGIES.of(findings) if one.key.pattern is Pattern.INCAST and one.key.layer is not Layer.RDMA
    ]
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


def congestion(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the congestion impact factors: a panel for each victim and statistic, a row for each congestor."""
    groups: dict[CellKey, list[Congestion]] = {}
    for one in sorted(
        CONGESTIONS.of(findings), key=lambda one: (in_report_order(one.key), congestor_order(one.congestor))
    ):
        groups.setdefault(one.key, []).append(one)
    impacts = [
        (statistic, impact)
        for one in CONGESTIONS.of(findings)
        for statistic in STATISTICS
        if (impact := _impact_of(one, statistic))
    ]
    reach = {
        statistic: [end for of, one in impacts if of == statistic for end in (one.value, one.low, one.high) if end]
        for statistic in STATISTICS
    }
    panels = tuple(
        panel
        for key, group in groups.items()
        for statistic in STATISTICS
        if (panel := _impact_panel(findings, key, group, statistic, reach, is_interactive))
    )
    if not panels:
        return None
    pairs = span_words(one.launches for one in CONGESTIONS.of(findings))
    samples = span_words(one.samples_a_launch for one in CONGESTIONS.of(findings))
    level = f"{findings.confidence * 100:g} %"
    rests_on = f"Geometric mean over n = {pairs} launches, each against itself, {level} intervals (t on log ratios)."
    caption = sentences(
        "Congestion impact factor: beside the congestor over alone, the inverse of rates, so that right of 1 is worse. "
        f"{rests_on} Tails are each launch's, from {samples} samples: of fewer than 1,000, p99.9 is nearly the worst.",
        origin_note(findings),
    )
    behind = congestion_table(CONGESTIONS.of(findings))
    title, fold = "What a congestor does", "Tails: p99 and p99.9"
    return Figure("congestion", title, caption, panels, behind, fold_title=fold, rests_on=rests_on)


def _impact_of(one: Congestion, statistic: str) -> Interval | None:
    return {"median": one.impact, "p99": one.impact_p99, "p99.9": one.impact_p999}[statistic]


def _impact_panel(
    findings: Findings,
    key: CellKey,
    group: list[Congestion],
    statistic: str,
    reach: dict[str, list[float]],
    is_interactive: bool,
) -> Panel | None:
    """Return a panel; `reach` holds the impacts of all victims, whose panels share an axis for each statistic."""
    rows: list[dict[str, Any]] = []
    labels = list(dict.fromkeys(_congestor_label(one) for one in group))
    for one in group:
        impact = _impact_of(one, statistic)
        if impact is not None:
            rows.append(
                {
                    "label": _congestor_label(one),
                    "fabric": one.fabric,
                    "receive": RECEIVE_WORDS[key.receive],
                    "value": impact.value,
                    "low": impact.low,
                    "high": impact.high,
                    "victim": victim_words(key),
                    "beside": congestor_words(one.congestor),
                    "impact": factor_words(impact),
                    "alone": interval_words(key.metric, one.isolated),
                    "congested": interval_words(key.metric, one.congested),
                    "n": f"{counted(one.launches, 'pair')}, {one.samples_a_launch:,} samples a launch",
                }
            )
    if not rows:
        return None
    x = _impact_channel(reach[statistic])
    y: Spec = {
        "field": "label",
        "type": "nominal",
        "sort": labels,
        "title": None,
        "axis": {"grid": True, "labelLimit": 190, "minExtent": 110},
    }
    dodge: Spec = {"field": "fabric", "type": "nominal", "sort": fabric_names(findings)}
    shared = {"y": y, "yOffset": dodge, "color": colour_channel(findings, has_legend=not is_interactive)}
    hint = tooltip("victim", "beside", "fabric", "impact", "alone", "congested", "n")
    layers = [
        mark("rule", {"x": x}, rows=[{"value": 1}], color=UNDECIDED),
        *interval_points(findings, shared, "x", x, hint, has_legend=not is_interactive),
    ]
    spec: Spec = {"data": {"values": rows}, "params": reader_params(findings), "layer": layers}
    height = max(ROW_HEIGHT, 10 * len(findings.fabrics)) * len(labels) + 6
    return Panel(
        f"{victim_words(key)}: {statistic}",
        spec,
        {"layer": key.layer.value},
        height=height,
        is_folded=statistic != STATISTICS[0],
    )


def _congestor_label(one: Congestion) -> str:
    other = one.congestor
    layer = "" if other.layer is one.key.layer else f"{other.layer.value} "
    idle = "idle " if other.is_idle else ""
    return f"{idle}{layer}{other.pattern.value} {size_words(other.message_bytes)} × {other.flows}"


def _impact_channel(ends: list[float]) -> Spec:
    low, high = min([*ends, 0.98]), max([*ends, 1.1])
    air = (high / low) ** 0.05
    low, high = low / air, high * air
    axis: Spec = {"labelExpr": "format(datum.value, '.4~g') + ' ×'", "title": "times worse", "labelOverlap": "greedy"}
    if high / low < WIDE:
        step = next(size for size in nice_steps(high - low) if (high - low) / size < 5)
        axis["values"] = [round(step * index, 9) for index in range(int(low / step), int(high / step) + 2)]
        scale: Spec = {"domain": [low, high], "zero": False, "nice": False}
    else:
        axis["values"] = decade_ticks(low, high)
        scale = {"type": "log", "domain": [low, high], "nice": False}
    return {"field": "value", "type": "quantitative", "scale": scale, "axis": axis}


def incast(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the goodput at an incast's receiver over the number of flows: a panel for each layer and message size."""
    groups: dict[tuple[Layer, int], list[Topology]] = {}
    for one in incasts(findings):
        groups.setdefault((one.key.layer, one.key.message_bytes), []).append(one)
    if not groups:
        return None
    measured = [
        (one.throughput.value, one.throughput.low, one.throughput.high, _link(one)) for one in incasts(findings)
    ]
    ends = [end for four in measured for end in four if end]
    panels = tuple(_goodput_panel(findings, group, ends, is_interactive) for group in groups.values())
    senders = span_words(one.ranks - 1 for one in incasts(findings))
    caption = sentences(
        f"{senders} senders to one receiver: what arrives, over the flows from each sender. Dotted level: the payload "
        "rate of the receiver's link.",
        interval_note(findings, (one.launches for one in incasts(findings))),
        "What was lost and how evenly the channels shared: in the table, and under the pointer.",
        origin_note(findings),
    )
    title = "Incast: goodput at the receiver"
    return Figure("incast", title, caption, panels, incast_table(findings), is_switchable=True)


def _link(one: Topology) -> float | None:
    """Return the payload rate of the receiver's link."""
    return None if one.arithmetic is None else one.arithmetic * one.channels


def _goodput_panel(findings: Findings, group: list[Topology], ends: list[float], is_interactive: bool) -> Panel:
    """Return a panel; `ends` are those of all panels, which share their axis."""
    rows = [
        {
            "fabric": one.fabric,
            "receive": RECEIVE_WORDS[one.key.receive],
            "size": one.flows,
            "value": one.throughput.value,
            "low": one.throughput.low,
            "high": one.throughput.high,
            "link": _link(one),
            "flows": f"{one.flows} from each of {one.ranks - 1} senders",
            "goodput": interval_words(Metric.THROUGHPUT, one.throughput),
            "of the link": share_interval_words(one.share_of_arithmetic),
            "payload rate": value_words(Metric.THROUGHPUT, _link(one)),
            "lost": share_words(None if one.loss_share is None else one.loss_share.value),
            "fairness": NOTHING if one.fairness is None else f"{one.fairness.value:.3f}",
        }
        for one in group
    ]
    flows = sorted({one.flows for one in group})
    x: Spec = {
        "field": "size",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "nice": False, "domain": [flows[0] / 1.3, flows[-1] * 1.3]},
        "axis": {"values": flows, "grid": False, "title": "flows from each sender", "labelExpr": "datum.value"},
    }
    y = value_channel(Metric.THROUGHPUT, ends)
    y["axis"]["title"] = "goodput"
    shared = {"x": x, "color": colour_channel(findings, has_legend=not is_interactive)}
    hint = tooltip("fabric", "flows", "goodput", "of the link", "payload rate", "lost", "fairness")
    layers = [
        mark(
            "rule",
            {"y": {**y, "field": "link"}, "color": shared["color"]},
            keep=[CHOSEN, "isValid(datum.link)"],
            strokeDash=[1, 3],
            strokeWidth=1.25,
        ),
        mark("line", {**shared, "y": y}, keep=[CHOSEN], **connection(len(flows))),
        *interval_points(findings, shared, "y", y, hint, has_legend=not is_interactive),
    ]
    key = group[0].key
    spec: Spec = {"data": {"values": rows}, "params": reader_params(findings), "layer": layers}
    return Panel(f"{key.layer.value}, {size_words(key.message_bytes)}", spec, {"layer": key.layer.value}, height=180)


CHAPTER = Chapter(
    name="congestion",
    title="Congestion",
    needs="a test beside a congestor, or the pattern incast",
    find=find,
    about=CONGESTIONS.name,
    method=METHOD,
    tables=tables,
    figures={"congestion": congestion, "incast": incast},
    records=lambda findings: {"congestion": CONGESTIONS.of(findings)},
    on_page=OnPage(tables=no_tables),
)
