"""The figures of workloads: what the network is worth to each, where their time goes, their speed-up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from fabricbench.analysis.findings import Findings
from fabricbench.analysis.findings.loads import LoadOnFabric, LoadRatio, LoadSpeedUp
from fabricbench.chapters.workload_tables import (
    LOADS,
    RATIOS,
    SPEED_UPS,
    expected_text,
    interval_text,
    leader_of,
    ratio_table,
    seconds_words,
    short_name,
    speed_up_table,
    time_table,
    times_text,
)
from fabricbench.report.drawing.axes import HAS_INTERVAL, colour_channel, connection, ratio_ticks, shape_channel
from fabricbench.report.drawing.figure import (
    AHEAD_OPACITY,
    UNDECIDED,
    Figure,
    Panel,
    Spec,
    mark,
    origin_note,
    ratio_note,
    sentences,
    tooltip,
)
from fabricbench.report.words import NOTHING, counted, outcome_words, share_words

ROW_HEIGHT, LABEL_EXTENT, LABEL_LIMIT = 24, 64, 190
PLOT_HEIGHT = 220


def workload_ratios(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return how many times better each workload is, measured and predicted, the one that gains most on top."""
    del is_interactive
    ratios = [one for one in RATIOS.of(findings) if not one.void]
    if not ratios:
        return None
    groups = [(pair, list(group)) for pair, group in groupby(ratios, lambda one: (one.slower, one.faster))]
    panels = tuple(_panel(findings, pair, group, _ends(ratios)) for pair, group in groups)
    has_expected = any(one.expectation is not None for one in ratios)
    rests_on = ratio_note(findings, (one.launches for one in ratios))
    caption = sentences(
        "How many times better on the faster fabric; 1: the network makes no difference. Filled: faster; paler: ahead, perhaps by "
        "less than matters; hollow and grey: equivalent, or not enough data.",
        "Upright strokes: PREDICTED from bytes and messages as if nothing were overlapped." if has_expected else "",
        rests_on,
        origin_note(findings),
    )
    title = "What the network is worth to each workload"
    return Figure(RATIOS.name, title, caption, panels, ratio_table(findings), rests_on=rests_on)


def _ends(ratios: Sequence[LoadRatio]) -> list[float]:
    measured = [end for one in ratios for end in (one.ratio, one.low, one.high) if end]
    return measured + [one.expectation.ratio.value for one in ratios if one.expectation is not None]


def _panel(findings: Findings, pair: tuple[str, str], group: Sequence[LoadRatio], ends: Sequence[float]) -> Panel:
    slower, faster = pair
    rows = [
        {
            "workload": one.load
            if (short := short_name(one, group)) == one.load
            else f"{short}, {counted(one.workload.ranks, 'rank')}",
            "load": one.load,
            "value": one.ratio,
            "low": one.low,
            "high": one.high,
            "ratio": times_text(one),
            "verdict": outcome_words(one.verdict, leader, leader, findings.margin),
            "fabric": leader,
            "strength": 1.0 if one.verdict.is_decided else AHEAD_OPACITY if one.verdict.is_ahead else 0.0,
            "expected": None if one.expectation is None else one.expectation.ratio.value,
            "predicted": expected_text(one.expectation),
            "bounded by": "; ".join(each.words for each in one.limits) or NOTHING,
        }
        for one in group
        for leader in (leader_of(one) or "",)
    ]
    domain = min(0.95, *ends) / 1.03, max(1.05, *ends) * 1.03
    scale: Spec = {"type": "log", "domain": list(domain), "nice": False}
    axis: Spec = {"title": "times better", "values": ratio_ticks(*domain), "labelOverlap": "greedy", "format": ".4~g"}
    x: Spec = {"field": "value", "type": "quantitative", "scale": scale, "axis": axis}
    labels: Spec = {"grid": False, "minExtent": LABEL_EXTENT, "labelLimit": LABEL_LIMIT}
    names = list(dict.fromkeys(str(row["workload"]) for row in rows))
    y: Spec = {"field": "workload", "type": "nominal", "sort": names, "title": None, "axis": labels}
    strength: Spec = {"field": "strength", "type": "quantitative", "scale": None, "legend": None}
    look: Spec = {"condition": {**colour_channel(findings), "test": "datum.fabric !== ''"}, "value": UNDECIDED}
    shape: Spec = {"condition": {**shape_channel(findings), "test": "datum.fabric !== ''"}, "value": "diamond"}
    hint = tooltip("load", "ratio", "predicted", "verdict", "bounded by")
    one_line = {"x": {"datum": 1.0, "type": "quantitative", "scale": scale}}
    layers = [
        mark("rule", one_line, rows=[{}], strokeDash=[3, 3], opacity=0.6),
        mark(
            "tick",
            {"y": y, "x": {**x, "field": "expected"}, "tooltip": hint},
            keep=["isValid(datum.expected)"],
            thickness=2,
        ),
        mark(
            "rule",
            {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": look},
            keep=[HAS_INTERVAL],
            strokeWidth=1.5,
        ),
        mark(
            "point",
            {"y": y, "x": x, "tooltip": hint, "fill": look, "stroke": look, "shape": shape, "fillOpacity": strength},
            size=55,
            strokeWidth=1.5,
            opacity=1,
        ),
    ]
    spec: Spec = {"data": {"values": rows}, "layer": layers}
    return Panel(f"{faster} over {slower}", spec, {}, height=ROW_HEIGHT * len(names) + 6)


def time_split(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return how the time of each workload splits on each fabric: computing, and MPI."""
    del is_interactive
    told = [one for one in LOADS.of(findings) if one.communication_share is not None]
    if not told:
        return None
    names = [fabric.name for fabric in findings.fabrics if any(one.fabric == fabric.name for one in told)]
    panels = tuple(_split_panel(name, [one for one in told if one.fabric == name]) for name in names)
    caption = sentences(
        "Shares of all ranks' time in the timed part, as each program or its profile tells them.", origin_note(findings)
    )
    behind = time_table(findings)
    return Figure("kernel-split", "Computing and communication", caption, panels, behind, key=(), rests_on="")


def _split_panel(fabric: str, group: Sequence[LoadOnFabric]) -> Panel:
    rows: list[dict[str, Any]] = []
    for one in group:
        share = one.communication_share or 0.0
        parts = {"computing": 1.0 - share, "MPI": share}
        calls = ", ".join(f"{call} {share_words(spent)}" for call, spent in list(one.calls.items())[:4])
        rows += [
            {
                "workload": one.load,
                "part": part,
                "value": value,
                "share": share_words(value),
                "time": NOTHING if one.seconds is None else seconds_words(one.seconds),
                "calls": calls,
            }
            for part, value in parts.items()
        ]
    labels = list(dict.fromkeys(row["workload"] for row in rows))
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "stack": "zero",
        "scale": {"domain": [0, 1]},
        "axis": {"title": "share of the ranks' time", "format": "%", "tickCount": 5},
    }
    y: Spec = {
        "field": "workload",
        "type": "nominal",
        "sort": labels,
        "title": None,
        "axis": {"grid": False, "labelLimit": LABEL_LIMIT},
    }
    look: Spec = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": ["computing", "MPI"], "range": ["#9aa5b1", "#b5533c"]},
        "legend": {"title": None, "orient": "top"},
    }
    encoding = {
        "y": y,
        "x": x,
        "color": look,
        "order": {"field": "part", "sort": "descending"},
        "tooltip": tooltip("workload", "part", "share", "time", "calls"),
    }
    spec: Spec = {"data": {"values": rows}, "layer": [mark("bar", encoding, height={"band": 0.7})]}
    return Panel(fabric, spec, {"left": fabric, "right": fabric}, height=ROW_HEIGHT * len(labels) + 6)


def speed_up(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the speed-up of each workload over its fewest ranks, a panel for each."""
    found = SPEED_UPS.of(findings)
    if not found:
        return None
    panels = tuple(
        _speed_up_panel(findings, found, subject, is_interactive)
        for subject in dict.fromkeys(one.subject or one.load for one in found)
    )
    rests_on = f"{findings.confidence * 100:g} % intervals, paired by block."
    caption = sentences(
        "How many times the work of the fewest ranks is done in the same time; the grey line: as many times as ranks.",
        rests_on,
        origin_note(findings),
    )
    return Figure("speed-up", "Speed-up", caption, panels, speed_up_table(findings), rests_on=rests_on)


def _speed_up_panel(findings: Findings, found: Sequence[LoadSpeedUp], subject: str, is_interactive: bool) -> Panel:
    mine = [one for one in found if (one.subject or one.load) == subject]
    fewest = mine[0].fewest
    fabrics = list(dict.fromkeys(one.fabric for one in mine))
    rows = [
        {"fabric": fabric, "ranks": fewest, "value": 1.0, "low": None, "high": None, "speed-up": "1"}
        for fabric in fabrics
    ]
    rows += [
        {
            "fabric": one.fabric,
            "ranks": one.ranks,
            "value": one.times.value,
            "low": one.times.low,
            "high": one.times.high,
            "speed-up": interval_text(one.times),
        }
        for one in mine
    ]
    most = max(one.ranks for one in mine)
    x: Spec = {"field": "ranks", "type": "quantitative", "axis": {"title": "ranks", "tickMinStep": 1}}
    ends = [end for one in found for end in (one.times.value, one.times.high) if end]
    highest = max([*ends, *(one.ranks / one.fewest for one in found)])
    scale: Spec = {"domain": [0, 1.05 * highest], "nice": False}
    y: Spec = {"field": "value", "type": "quantitative", "axis": {"title": "times faster"}, "scale": scale}
    colour = colour_channel(findings, has_legend=not is_interactive)
    point: Spec = {"x": x, "y": y, "color": colour, "shape": shape_channel(findings, has_legend=not is_interactive)}
    point["tooltip"] = tooltip("fabric", "ranks", "speed-up")
    ideal = [{"ranks": fewest, "value": 1.0}, {"ranks": most, "value": most / fewest}]
    layers = [
        mark("line", {"x": x, "y": y}, rows=ideal, color="#999999", strokeDash=[4, 4]),
        mark("line", {"x": x, "y": y, "color": colour}, **connection(len({row["ranks"] for row in rows}))),
        mark(
            "rule", {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}, keep=[HAS_INTERVAL]
        ),
        mark("point", point, filled=True, opacity=1),
    ]
    return Panel(subject, {"data": {"values": rows}, "layer": layers}, {}, height=PLOT_HEIGHT)
