"""Kernels: what the network is worth to each, how their time splits into computing and MPI, and their speed-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fabricbench.analysis.findings import Findings, KernelFindings, KernelOnFabric, Sensitivity
from fabricbench.report.figures.encodings import HAS_INTERVAL, colour_channel, connection
from fabricbench.report.figures.figure import Figure, Panel, Spec, emulated_note, mark, sentences, span_words, tooltip
from fabricbench.report.figures.theme import AHEAD_OPACITY, UNDECIDED
from fabricbench.report.kernel_tables import (
    interval_text,
    kernel_table,
    leader_of,
    ratio_words,
    seconds_words,
    sensitivity_table,
    speed_up_table,
    verdict_of,
)
from fabricbench.report.words import share_words

ROW_HEIGHT = 22
LABEL_EXTENT = 64
"""Pixels for the names of kernels, the same in every panel."""
PLOT_HEIGHT = 220


def kernel_ratios(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the ratio of the fabrics for each kernel, the one that gains most by the faster network on top."""
    del is_interactive
    kernels = findings.kernels
    groups: dict[tuple[str, str, str], list[Sensitivity]] = {}
    for one in kernels.sensitivities if kernels is not None else ():
        groups.setdefault((one.slower, one.faster, one.kernel.problem_class), []).append(one)
    if not groups:
        return None
    ends = [end for group in groups.values() for one in group for end in (one.ratio, one.low, one.high) if end]
    panels = tuple(_ratio_panel(findings, *names, group, ends) for names, group in groups.items())
    n = span_words(one.launches for group in groups.values() for one in group)
    caption = sentences(
        "Time on the slower fabric over time on the faster one; 1: the network makes no difference. Filled: faster; paler: ahead, "
        "perhaps by less than matters; hollow and grey: equivalent, or not enough data.",
        f"n = {n} pairs of launches, {findings.confidence * 100:g} % intervals, each of its row alone.",
        emulated_note(findings),
    )
    return Figure(
        "kernel-ratios", "What the network is worth to each kernel", caption, panels, sensitivity_table(findings)
    )


def kernel_split(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return how the time of each kernel splits on each fabric: computing, and each kind of MPI call."""
    del is_interactive
    kernels = findings.kernels
    told = [one for one in (kernels.results if kernels is not None else ()) if one.communication_share is not None]
    if not told:
        return None
    names = [fabric.name for fabric in findings.fabrics if any(one.fabric == fabric.name for one in told)]
    panels = tuple(_split_panel(name, [one for one in told if one.fabric == name]) for name in names)
    caption = sentences(
        "Shares of all ranks' time in the timed part, by the profile of each run.", emulated_note(findings)
    )
    return Figure("kernel-split", "Computing and communication", caption, panels, kernel_table(findings))


def speed_up(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the speed-up of each kernel over its fewest ranks, a panel for each kernel."""
    del is_interactive
    kernels = findings.kernels
    if kernels is None or not kernels.speed_ups:
        return None
    titles = dict.fromkeys(_title(one.kernel.benchmark, one.kernel.problem_class) for one in kernels.speed_ups)
    panels = tuple(_speed_up_panel(findings, kernels, title) for title in titles)
    caption = sentences(
        "Time on the fewest ranks over time on so many; the grey line is as many times as there are more ranks.",
        f"{findings.confidence * 100:g} % intervals, paired by block.",
        emulated_note(findings),
    )
    return Figure("speed-up", "Speed-up", caption, panels, speed_up_table(findings))


def _title(benchmark: str, problem_class: str) -> str:
    return f"{benchmark}.{problem_class}"


def _ratio_panel(
    findings: Findings,
    slower: str,
    faster: str,
    problem_class: str,
    group: Sequence[Sensitivity],
    ends: Sequence[float],
) -> Panel:
    rows = [
        {
            "kernel": f"{one.kernel.benchmark}, {one.kernel.ranks} ranks",
            "value": one.ratio,
            "low": one.low,
            "high": one.high,
            "ratio": ratio_words(one),
            "verdict": verdict_of(one, findings.margin),
            "fabric": leader_of(one) or "",
            "strength": 1.0 if one.verdict.is_decided else AHEAD_OPACITY if one.verdict.is_ahead else 0.0,
        }
        for one in group
    ]
    domain = [min(0.95, *ends) / 1.03, max(1.05, *ends) * 1.03]
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False},
        "axis": {"title": f"time on {slower} / time on {faster}", "tickCount": 5, "labelOverlap": True, "format": "~g"},
    }
    y: Spec = {
        "field": "kernel",
        "type": "nominal",
        "sort": [row["kernel"] for row in rows],
        "title": None,
        "axis": {"grid": False, "minExtent": LABEL_EXTENT},
    }
    hint = tooltip("kernel", "ratio", "verdict")
    strength: Spec = {"field": "strength", "type": "quantitative", "scale": None, "legend": None}
    fabric = colour_channel(findings)
    look: Spec = {"condition": {**fabric, "test": "datum.fabric !== ''"}, "value": UNDECIDED}
    span = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": look}
    point = {"y": y, "x": x, "tooltip": hint, "fill": look, "stroke": look, "fillOpacity": strength}
    one_line = {"x": {"datum": 1.0, "type": "quantitative", "scale": x["scale"]}}
    layers = [
        mark("rule", one_line, rows=[{}], strokeDash=[3, 3], opacity=0.6),
        mark("rule", span, keep=[HAS_INTERVAL], strokeWidth=1.5),
        mark("point", point, size=55, strokeWidth=1.5, opacity=1),
    ]
    spec: Spec = {"data": {"values": rows}, "layer": layers}
    return Panel(f"Class {problem_class}, {slower} / {faster}", spec, {}, height=ROW_HEIGHT * len(rows) + 6)


def _split_panel(fabric: str, group: Sequence[KernelOnFabric]) -> Panel:
    rows: list[dict[str, Any]] = []
    for one in group:
        name = f"{one.kernel.benchmark}.{one.kernel.problem_class}, {one.kernel.ranks}"
        share = one.communication_share or 0.0
        parts = {"computing": 1.0 - share, "MPI": share}
        calls = ", ".join(f"{call} {share_words(spent)}" for call, spent in list(one.calls.items())[:4])
        rows += [
            {
                "kernel": name,
                "part": part,
                "value": value,
                "share": share_words(value),
                "time": seconds_words(one.seconds),
                "calls": calls,
            }
            for part, value in parts.items()
        ]
    labels = list(dict.fromkeys(row["kernel"] for row in rows))
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "stack": "zero",
        "scale": {"domain": [0, 1]},
        "axis": {"title": "share of the ranks' time", "format": "%", "tickCount": 5},
    }
    y: Spec = {"field": "kernel", "type": "nominal", "sort": labels, "title": None, "axis": {"grid": False}}
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
        "tooltip": tooltip("kernel", "part", "share", "time", "calls"),
    }
    spec: Spec = {"data": {"values": rows}, "layer": [mark("bar", encoding, height={"band": 0.7})]}
    return Panel(fabric, spec, {"left": fabric, "right": fabric}, height=ROW_HEIGHT * len(labels) + 6)


def _speed_up_panel(findings: Findings, kernels: KernelFindings, title: str) -> Panel:
    mine = [one for one in kernels.speed_ups if _title(one.kernel.benchmark, one.kernel.problem_class) == title]
    fewest = mine[0].fewest
    fabrics = list(dict.fromkeys(one.fabric for one in mine))
    rows = [
        {"fabric": fabric, "ranks": fewest, "value": 1.0, "low": None, "high": None, "speed-up": "1"}
        for fabric in fabrics
    ]
    rows += [
        {
            "fabric": one.fabric,
            "ranks": one.kernel.ranks,
            "value": one.speed_up.value,
            "low": one.speed_up.low,
            "high": one.speed_up.high,
            "speed-up": interval_text(one.speed_up),
        }
        for one in mine
    ]
    most = max(one.kernel.ranks for one in mine)
    x: Spec = {"field": "ranks", "type": "quantitative", "axis": {"title": "ranks", "tickMinStep": 1}}
    ends = [end for one in kernels.speed_ups for end in (one.speed_up.value, one.speed_up.high) if end]
    highest = max([*ends, *(one.kernel.ranks / one.fewest for one in kernels.speed_ups)])
    scale: Spec = {"domain": [0, 1.05 * highest], "nice": False}
    y: Spec = {"field": "value", "type": "quantitative", "axis": {"title": "times faster"}, "scale": scale}
    colour = colour_channel(findings)
    ideal = [{"ranks": fewest, "value": 1.0}, {"ranks": most, "value": most / fewest}]
    layers = [
        mark("line", {"x": x, "y": y}, rows=ideal, color="#999999", strokeDash=[4, 4]),
        mark("line", {"x": x, "y": y, "color": colour}, **connection(len({row["ranks"] for row in rows}))),
        mark(
            "rule", {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}, keep=[HAS_INTERVAL]
        ),
        mark(
            "point", {"x": x, "y": y, "color": colour, "tooltip": tooltip("fabric", "ranks", "speed-up")}, filled=True
        ),
    ]
    return Panel(title, {"data": {"values": rows}, "layer": layers}, {}, height=PLOT_HEIGHT)
