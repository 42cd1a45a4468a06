"""Kernels: what each took on each fabric, what the network is worth to it, speed-up, beside the study of 2000."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from fabricbench.analysis.findings import Findings, Interval, KernelFindings, KernelOnFabric, Sensitivity
from fabricbench.analysis.kernels import find_kernels
from fabricbench.analysis.material import Material
from fabricbench.chapters.chapter import Chapter, Found, OnPage, Records
from fabricbench.chapters.orders import Gain, order_line
from fabricbench.published import PublishedKernel, published_kernels
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
from fabricbench.report.words import NOTHING, counted, outcome_words, share_words, with_bounds
from fabricbench.table import Table, table

METHOD = """
Kernels of the NAS Parallel Benchmarks time what their specification times, verify against its values, and count its
operations (NAS-95-020 and the official programs' counts). A kernel's gain is the paired ratio of its times on the
slower and the faster network. By how much one gains more than the next is the ratio of their gains, paired by block
too; these intervals hold together, and where one holds 1, the order of the two is not settled.
"""
CALLS_SHOWN = 2
RATE_NOTE = "Mop/s are official counts over the time, whatever work a program does: compare times"
ROW_HEIGHT = 22
LABEL_EXTENT = 64
"""Pixels for the names of kernels, the same in every panel."""
PLOT_HEIGHT = 220


def find(material: Material) -> Found:
    """Return everything about kernels; nothing where none was run."""
    sides, pairings, cells = material.sides, material.pairings, material.cells
    return {"kernels": find_kernels(sides, pairings, cells, material.confidence, material.reference)}


def kernel_table(findings: Findings) -> Table:
    """A row for each kernel on each fabric: time, communication, then rates."""
    kernels = findings.kernels
    if kernels is None:
        return table((), ())
    rows = [
        (
            f"{one.kernel}",
            one.fabric,
            seconds_words(one.seconds),
            share_words(one.communication_share),
            ", ".join(f"{call} {share_words(share)}" for call, share in list(one.calls.items())[:CALLS_SHOWN])
            or NOTHING,
            number_words(one.mops_total),
            number_words(one.mops_per_process),
            NOTHING if one.of_reference is None else f"{one.of_reference:.3g}",
            str(one.launches),
        )
        for one in kernels.results
    ]
    reference = "Of the reference" if kernels.reference is None else f"Times {kernels.reference.name}"
    columns = (
        "Kernel",
        "Fabric",
        "Time",
        "Communication",
        "Most time in",
        "Mop/s total",
        "Mop/s a process",
        reference,
        "Launches",
    )
    made = table(columns, rows, (2, 3, 5, 6, 7, 8), spare=("Launches",))
    return made if kernels.reference is not None else made.without(7)


def sensitivity_table(findings: Findings) -> Table:
    """A row for each kernel, the one that gains most by the faster network first."""
    kernels = findings.kernels
    if kernels is None:
        return table((), ())
    published = {one.benchmark: one for one in published_kernels()} if _is_of_the_study(kernels) else {}
    rows = [
        (
            f"{one.kernel}",
            f"{one.slower} / {one.faster}",
            ratio_words(one),
            NOTHING if one.lead is None else interval_text(one.lead),
            verdict_of(one, findings.margin),
            counted(one.launches, "pair"),
            _published_ratio(published.get(one.kernel.benchmark)),
        )
        for one in kernels.sensitivities
    ]
    ratio = f"Ratio ({findings.confidence * 100:g} % interval, unadjusted)"
    columns = ("Kernel", "Of times", ratio, "Over the next", "Verdict", "n", "Study of 2000, class A")
    undecided = [index for index, one in enumerate(kernels.sensitivities) if one.verdict.leader is None]
    made = table(columns, rows, (2, 3, 5, 6), undecided, spare=("n",))
    return made if published else made.without(6)


def speed_up_table(findings: Findings) -> Table:
    """A row for each kernel on more ranks than its fewest."""
    kernels = findings.kernels
    rows = [
        (
            f"{one.kernel}",
            one.fabric,
            interval_text(one.speed_up),
            f"{one.kernel.ranks / one.fewest:g}",
            share_words(one.speed_up.value * one.fewest / one.kernel.ranks),
        )
        for one in (kernels.speed_ups if kernels is not None else ())
    ]
    return table(("Kernel", "Fabric", "Speed-up (interval)", "Of", "Efficiency"), rows, (2, 3, 4))


def study_table(findings: Findings) -> Table:
    """The table of the Fast Ethernet and Myrinet study, as it gives it."""
    if findings.kernels is None:
        return table((), ())
    rows = [
        (
            f"{one.benchmark}.A on 4 ranks",
            *(number for fabric in one.seconds for number in _study_numbers(one, fabric)),
            f"{one.ratio:.2f}",
        )
        for one in published_kernels()
    ]
    fabrics = list(published_kernels()[0].seconds)
    each = [f"{what}, {fabric}" for fabric in fabrics for what in ("Time", "Mop/s total", "Mop/s a process")]
    return replace(table(("Kernel", *each, "Ratio of times"), rows, range(1, 8)), is_published=True)


def seconds_words(interval: Interval) -> str:
    """Return `12.3 s (12.1 to 12.6)`."""
    return with_bounds(f"{interval.value:.4g} s", interval.low, interval.high, "{:.4g}".format)


def number_words(value: float | None) -> str:
    """Return a rate in Mop/s, or the sign for nothing."""
    return NOTHING if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def interval_text(interval: Interval) -> str:
    """Return `3.14 (3.05 to 3.20)`."""
    return with_bounds(f"{interval.value:.2f}", interval.low, interval.high, "{:.2f}".format)


def ratio_words(one: Sensitivity) -> str:
    """Return a ratio with its interval."""
    return with_bounds(f"{one.ratio:.3f}", one.low, one.high, "{:.3f}".format)


def leader_of(one: Sensitivity) -> str | None:
    """Return the fabric that is faster or ahead, None where neither is."""
    if one.verdict.leader is None:
        return None
    return one.faster if one.ratio >= 1 else one.slower


def verdict_of(one: Sensitivity, margin: float) -> str:
    """Return the verdict in words that name the leading fabric; `A` and `B` of it are not those of the pair here."""
    leader = leader_of(one) or ""
    return outcome_words(one.verdict, leader, leader, margin)


def kernel_tables(findings: Findings) -> list[tuple[str, Table]]:
    """Return all tables of the section with their titles."""
    return [
        ("What the network is worth to each", sensitivity_table(findings)),
        (f"Times ({RATE_NOTE})", kernel_table(findings)),
        ("Speed-up", speed_up_table(findings)),
        ("The study of 2000: four nodes with 450 MHz processors, class A", study_table(findings)),
    ]


def kernel_lines(findings: Findings) -> tuple[str, ...]:
    """Return what the section says in words: which kernels gain most and least, which reference the rates are beside."""
    kernels = findings.kernels
    if kernels is None:
        return ()
    lines = [_order_line(list(group)) for _, group in groupby(kernels.sensitivities, _compared_together)]
    if kernels.reference is not None:
        lines.append(f"Rates are normalised to {kernels.reference.name}: {kernels.reference.source}.")
    return tuple(filter(None, lines))


def _compared_together(one: Sensitivity) -> tuple[str, ...]:
    return one.slower, one.faster, one.kernel.program, one.kernel.problem_class


def _order_line(group: Sequence[Sensitivity]) -> str:
    """Return who gains most by the faster network and who least; those whose order is not settled together."""
    gains = [
        Gain(one.kernel.name, one.ratio, leader_of(one) if one.is_decided else None, one.is_settled) for one in group
    ]
    return order_line(gains, group[0].faster, group[0].slower)


def _is_of_the_study(kernels: KernelFindings) -> bool:
    fabrics: Sequence[str] = tuple(published_kernels()[0].seconds)
    return any((one.slower, one.faster) == tuple(fabrics) for one in kernels.sensitivities)


def _published_ratio(one: PublishedKernel | None) -> str:
    return NOTHING if one is None else f"{one.ratio:.2f}"


def _study_numbers(one: PublishedKernel, fabric: str) -> tuple[str, str, str]:
    return f"{one.seconds[fabric]:g} s", f"{one.mops_total[fabric]:g}", f"{one.mops_per_process[fabric]:g}"


def _records(findings: Findings) -> Records:
    found = findings.kernels
    if found is None:
        return {}
    return {
        "kernels": [one.model_dump(mode="json", exclude={"calls"}) for one in found.results],
        "kernel-ratios": found.sensitivities,
        "speed-up": found.speed_ups,
    }


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
    rests_on = ratio_note(findings, (one.launches for group in groups.values() for one in group))
    caption = sentences(
        "Time on the slower fabric over time on the faster one; 1: the network makes no difference. Filled: faster; paler: ahead, "
        "perhaps by less than matters; hollow and grey: equivalent, or not enough data.",
        rests_on,
        origin_note(findings),
    )
    title = "What the network is worth to each kernel"
    return Figure("kernel-ratios", title, caption, panels, sensitivity_table(findings), rests_on=rests_on)


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
        "Shares of all ranks' time in the timed part, by the profile of each run.", origin_note(findings)
    )
    return Figure(
        "kernel-split", "Computing and communication", caption, panels, kernel_table(findings), key=(), rests_on=""
    )


def speed_up(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the speed-up of each kernel over its fewest ranks, a panel for each kernel."""
    kernels = findings.kernels
    if kernels is None or not kernels.speed_ups:
        return None
    titles = dict.fromkeys(_title(one.kernel.benchmark, one.kernel.problem_class) for one in kernels.speed_ups)
    panels = tuple(_speed_up_panel(findings, kernels, title, is_interactive) for title in titles)
    rests_on = f"{findings.confidence * 100:g} % intervals, paired by block."
    caption = sentences(
        "Time on the fewest ranks over time on so many; the grey line is as many times as there are more ranks.",
        rests_on,
        origin_note(findings),
    )
    return Figure("speed-up", "Speed-up", caption, panels, speed_up_table(findings), rests_on=rests_on)


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
    domain = min(0.95, *ends) / 1.03, max(1.05, *ends) * 1.03
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log", "domain": list(domain), "nice": False},
        "axis": {
            "title": f"time on {slower} / time on {faster}",
            "values": ratio_ticks(*domain),
            "labelOverlap": "greedy",
            "format": ".4~g",
        },
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
    shape: Spec = {"condition": {**shape_channel(findings), "test": "datum.fabric !== ''"}, "value": "diamond"}
    span = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": look}
    point = {"y": y, "x": x, "tooltip": hint, "fill": look, "stroke": look, "shape": shape, "fillOpacity": strength}
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


def _speed_up_panel(findings: Findings, kernels: KernelFindings, title: str, is_interactive: bool) -> Panel:
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
    return Panel(title, {"data": {"values": rows}, "layer": layers}, {}, height=PLOT_HEIGHT)


CHAPTER = Chapter(
    name="kernels",
    title="Kernels: the NAS Parallel Benchmarks",
    needs="kernels: a campaign with [[npb]]",
    find=find,
    method=METHOD,
    tables=kernel_tables,
    figures={"kernel-ratios": kernel_ratios, "kernel-split": kernel_split, "speed-up": speed_up},
    records=_records,
    # The figure has what the network is worth to each behind it.
    on_page=OnPage(
        entry="Kernels",
        lines=kernel_lines,
        tables=lambda findings: kernel_tables(findings)[1:],
        is_open=False,  # what is worth to whom stands among all workloads
    ),
)
