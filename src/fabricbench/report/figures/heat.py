"""Heat maps: MPI operations of one fabric against another, pairs of hosts. Each cell has its number, colour only helps."""

from __future__ import annotations

import math
from typing import Any

from fabricbench.analysis.findings import Coefficient, Findings, NetworkMap, Verdict
from fabricbench.report.figures.figure import Figure, Panel, Spec, emulated_note, mark, sentences, span_words, tooltip
from fabricbench.report.figures.theme import AHEAD_OPACITY
from fabricbench.report.palette import OKABE_ITO, colour_range, fabric_names
from fabricbench.report.pattern_tables import (
    coefficient_table,
    coefficient_verdict,
    in_report_order,
    map_verdict,
    map_words,
    operation_size_words,
    operation_words,
    pairs_table,
)
from fabricbench.report.words import MINUS, PATTERN_WORDS, share_interval_words, value_words

ROW_HEIGHT = 24
NEUTRAL = "#f1efe9"
"""No difference. Each cell's text is dark or light, whichever stands out from its colour, on the dark page too."""
DARK_TEXT, LIGHT_TEXT = "#1d2126", "#ffffff"
MIDDLE_LIGHT = 0.2
"""Relative luminance (WCAG 2.2) at which dark and light text stand out alike."""
LEAST_REACH = math.log(1.25)
"""Of a logarithm: small differences must not look like large ones for want of others."""
FARTHEST = math.log(4)
SIGNS = {Verdict.EQUIVALENT: "=", Verdict.NOT_ENOUGH_DATA: "?"}
SLOW_COLOUR, FAST_COLOUR = OKABE_ITO[1], OKABE_ITO[0]
NAMES_INSIDE = 10
"""Hosts up to which the cells of a matrix have room for their numbers."""


def collectives(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the coefficient (t_B - t_A) / t_A of every operation and size, a panel for each pair of fabrics."""
    del is_interactive  # the page needs no other figure than paper
    groups: dict[tuple[str, str], list[Coefficient]] = {}
    for one in sorted(findings.coefficients, key=lambda one: in_report_order(one.key)):
        groups.setdefault((one.fabric_a, one.fabric_b), []).append(one)
    if not groups:
        return None
    panels = tuple(_coefficient_panel(findings, *pair, group) for pair, group in groups.items())
    n = span_words(one.launches for one in findings.coefficients)
    caption = sentences(
        "(t_B − t_A) / t_A: below 0 the second fabric takes less time, and the square has its colour; above 0 the first one. "
        "Without colour: = is equivalent within the margin, ? is not enough data; paler: ahead, perhaps by less than the margin. "
        "Intervals and verdicts: under the pointer, in the table.",
        f"n = {n} pairs of launches, {findings.confidence * 100:g} % intervals, each of its row alone.",
        emulated_note(findings),
    )
    title = "MPI operations: how much longer they take"
    return Figure("collectives", title, caption, panels, coefficient_table(findings))


def _strength(one: Coefficient) -> float:
    """Return how much of a fabric's colour a verdict earns: none where neither leads, a paler one where it may not matter."""
    return 1.0 if one.verdict.is_decided else AHEAD_OPACITY if one.verdict.is_ahead else 0.0


def _coefficient_panel(findings: Findings, a: str, b: str, group: list[Coefficient]) -> Panel:
    logs = [math.log1p(one.coefficient.value) for one in group if one.coefficient.value > -1]
    reach = min(max([LEAST_REACH, *map(abs, logs)]), FARTHEST)
    ranks = {part for one in group for part in one.key.variant.split(", ") if part.endswith(" ranks")}
    rows = [
        {
            "label": _label(one, ranks),
            "column": operation_size_words(one.key),
            "heat": _strength(one) * max(-1.0, min(1.0, math.log1p(one.coefficient.value) / reach)),
            "shown": f"{one.coefficient.value * 100:+.0f} %".replace("-", MINUS) + SIGNS.get(one.verdict, ""),
            "operation": operation_words(one.key),
            "message": operation_size_words(one.key),
            "(t_B − t_A) / t_A": share_interval_words(one.coefficient, is_signed=True),
            "verdict": coefficient_verdict(one, findings.margin),
            "n": f"{one.launches} pairs of launches",
        }
        for one in group
    ]
    labels = list(dict.fromkeys(_label(one, ranks) for one in group))
    sizes = sorted({(one.key.message_bytes, operation_size_words(one.key)) for one in group})
    columns = list(dict.fromkeys(words for _, words in sizes))
    colours = dict(zip(fabric_names(findings), colour_range(findings), strict=True))
    hint = tooltip("operation", "message", "(t_B − t_A) / t_A", "verdict", "n")
    spec = _heat(rows, labels, columns, (colours[b], colours[a]), hint, "message size")
    tags = {"left": a, "right": b, "layer": "mpi"}
    return Panel(f"{b} against {a}", spec, tags, height=ROW_HEIGHT * len(labels))


def _label(one: Coefficient, ranks: set[str]) -> str:
    """Return the operation with its variant as short as a row can tell it: the number of ranks only where it differs."""
    parts = [part.removeprefix("mode=") for part in one.key.variant.split(", ") if len(ranks) > 1 or part not in ranks]
    return ", ".join(filter(None, (PATTERN_WORDS[one.key.pattern], *parts)))


def matrix(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the matrix of every pair, a panel for each fabric and cell; whoever is slow is framed."""
    del is_interactive  # the page needs no other figure than paper
    if not findings.maps:
        return None
    panels = tuple(_matrix_panel(one) for one in findings.maps)
    n = span_words(one.launches for one in findings.maps)
    caption = sentences(
        "From the host on the left to the one below, medians over launches. Orange is slower than the matrix's middle, "
        "blue is faster; framed is what belongs to a node, pair or direction found slow (dashed: suspected).",
        "Dotted frames: slower than the others explain, and nobody could be named."
        if any(one.unexplained for one in findings.maps)
        else "",
        f"n = {n} launches.",
        map_verdict(findings.maps),
        emulated_note(findings),
    )
    return Figure("matrix", "Every pair of hosts", caption, panels, pairs_table(findings.maps))


def _matrix_panel(one: NetworkMap) -> Panel:
    values = sorted(value for row in one.matrix for value in row if value is not None)
    middle = values[len(values) // 2]
    sign = -1.0 if one.metric.is_lower_better else 1.0
    reach = max([LEAST_REACH, *(abs(math.log(value / middle)) for value in values)])
    rows = [
        {
            "label": source,
            "column": destination,
            "heat": sign * -math.log(value / middle) / reach,
            "shown": value_words(one.metric, value).split(" ")[0] if len(one.hosts) <= NAMES_INSIDE else "",
            "from": source,
            "to": destination,
            "median": value_words(one.metric, value),
            "found": _found(one, source, destination),
            "framed": _frame(one, source, destination),
        }
        for source, row in zip(one.hosts, one.matrix, strict=True)
        for destination, value in zip(one.hosts, row, strict=True)
        if value is not None
    ]
    hint = tooltip("from", "to", "median", "found")
    unit = value_words(one.metric, middle).split(" ")[1]
    spec = _heat(rows, list(one.hosts), list(one.hosts), (FAST_COLOUR, SLOW_COLOUR), hint, f"to (numbers: {unit})")
    tags = {"left": one.fabric, "right": one.fabric, "layer": one.layer.value}
    return Panel(map_words(one), spec, tags, height=max(ROW_HEIGHT * len(one.hosts), 90))


def _found(one: NetworkMap, source: str, destination: str) -> str:
    causes = [slow.words for slow in one.slow if slow.touches(source, destination)]
    return "; ".join(causes) or ("cannot be named yet" if _is_unexplained(one, source, destination) else "–")


def _frame(one: NetworkMap, source: str, destination: str) -> str:
    """Return a cell's frame: `whole` if a second run confirmed its cause, `dashed` for a suspect, `dotted` without a cause."""
    grades = {slow.is_confirmed for slow in one.slow if slow.touches(source, destination)}
    if not grades:
        return "dotted" if _is_unexplained(one, source, destination) else ""
    return "whole" if True in grades else "dashed"


def _is_unexplained(one: NetworkMap, source: str, destination: str) -> bool:
    found = {(pair.source, pair.destination) for pair in one.unexplained}
    return (source, destination) in found or (one.metric.is_lower_better and (destination, source) in found)


def _text_on(heat: float, colours: tuple[str, str]) -> str:
    """Return the text colour that stands out more from a cell's colour."""
    full = colours[0] if heat < 0 else colours[1]
    mixed = [
        abs(heat) * int(full[place : place + 2], 16) + (1 - abs(heat)) * int(NEUTRAL[place : place + 2], 16)
        for place in (1, 3, 5)
    ]
    light = 0.2126 * mixed[0] ** 2.2 + 0.7152 * mixed[1] ** 2.2 + 0.0722 * mixed[2] ** 2.2
    return DARK_TEXT if light / 255**2.2 > MIDDLE_LIGHT else LIGHT_TEXT


def _heat(
    rows: list[dict[str, Any]],
    labels: list[str],
    columns: list[str],
    colours: tuple[str, str],
    hint: list[Spec],
    x_title: str,
) -> Spec:
    """Return cells coloured by `heat` from -1 (first colour) over 0 to 1, with the text of `shown`."""
    x: Spec = {
        "field": "column",
        "type": "nominal",
        "sort": columns,
        "axis": {"title": x_title, "labelAngle": 0, "orient": "bottom", "labelOverlap": True, "grid": False},
    }
    y: Spec = {
        "field": "label",
        "type": "nominal",
        "sort": labels,
        "title": None,
        "axis": {"grid": False, "labelLimit": 190},
    }
    colour: Spec = {
        "field": "heat",
        "type": "quantitative",
        "legend": None,
        "scale": {
            "domain": [-1, 0, 1],
            "range": [colours[0], NEUTRAL, colours[1]],
            "clamp": True,
            "interpolate": "lab",
        },
    }
    rows = [row | {"ink": _text_on(row["heat"], colours)} for row in rows]
    text_colour: Spec = {
        "condition": {"test": f"datum.ink === '{LIGHT_TEXT}'", "value": LIGHT_TEXT},
        "value": DARK_TEXT,
    }
    layers = [
        mark("rect", {"x": x, "y": y, "color": colour, "tooltip": hint}, stroke="#ffffff", strokeWidth=1),
        mark("text", {"x": x, "y": y, "text": {"field": "shown"}, "color": text_colour, "tooltip": hint}),
    ]
    for kind, dash in (("whole", [1, 0]), ("dashed", [4, 3]), ("dotted", [1, 2])):
        if any(row.get("framed") == kind for row in rows):
            keep = [f"datum.framed === '{kind}'"]
            look: dict[str, Any] = {"fillOpacity": 0, "style": "frame", "strokeWidth": 2.5, "strokeDash": dash}
            layers.insert(1, mark("rect", {"x": x, "y": y, "tooltip": hint}, keep=keep, **look))
    return {"data": {"values": rows}, "layer": layers}
