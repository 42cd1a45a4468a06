"""The report for a terminal: the verdict first, then tables with small plots made of characters; in brief, on one screen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from fabricbench import chapters
from fabricbench.analysis.findings import CellSummary, Comparison, Findings, LadderStep, Severity, Verdict
from fabricbench.model import Layer, Metric
from fabricbench.report.first_screen import count_words
from fabricbench.report.fitting import fitted
from fabricbench.report.palette import terminal_colour
from fabricbench.report.tables import impossible_in
from fabricbench.report.terminal_screen import (
    AHEAD,
    EVEN,
    LEADS,
    UNKNOWN,
    Extent,
    screen_parts,
    warning_heading,
    warning_part,
)
from fabricbench.report.terminal_table import NARROWEST, as_rich, console_of, lines_on, rich_table
from fabricbench.report.words import (
    METRIC_WORDS,
    NOTHING,
    advantage,
    crossover_words,
    effect_words,
    facts_words,
    probe_words,
    share_words,
    size_words,
    struck_words,
    times_words,
    value_words,
    verdict_words,
)

BARS = "▁▂▃▄▅▆▇█"
SIGNS = {
    Verdict.EQUIVALENT: EVEN,
    Verdict.NOT_ENOUGH_DATA: UNKNOWN,
    Verdict.NOT_RESOLVABLE: UNKNOWN,
    Verdict.A_AHEAD: AHEAD,
    Verdict.B_AHEAD: AHEAD,
}
UNADJUSTED = "Times faster (interval, unadjusted)"
WIDEST_PLOT, NARROWEST_PLOT, WIDTH_BESIDE_PLOT = 33, 12, 72
SCREEN_LINES = 36
"""What the brief report may take: a terminal of 40 lines shows it with the command above and the paths below."""
LEAST_FOR_WARNINGS = 1
"""Lines kept for how many warnings there are more."""


def render_terminal(findings: Findings, console_width: int, color: bool, *, is_brief: bool = False) -> str:
    """Return the report as text for a terminal of that width, with ANSI colours or without; the whole of it, or one screen."""
    width = max(console_width, NARROWEST)
    console = console_of(width, color=color)
    if is_brief:
        return "".join(f"{line}\n" for line in _brief(findings, console, width))
    return "".join(f"{line}\n" for line in lines_on(console, _report(findings, width)))


def _report(findings: Findings, width: int) -> list[RenderableType]:
    facts = Text(" · ".join(f"{what} {value}" for what, value in facts_words(findings)[:6]), style="dim")
    parts: list[RenderableType] = [*screen_parts(findings, width, Extent.WHOLE), facts]
    if findings.warnings:
        parts += [warning_heading(findings), *map(warning_part, findings.warnings)]
    parts += _chapters(findings, width, leading=True)
    parts += [*_curves(findings, width), *_ladder(findings), *_sparklines(findings)]
    parts += _chapters(findings, width, leading=False)
    if findings.crossovers:
        parts.append(_heading("Crossovers"))
        parts += [_indented(Text(crossover_words(item))) for item in findings.crossovers]
    return parts


def _brief(findings: Findings, console: Console, width: int) -> list[str]:
    """Return one screen: the first screen of every report, the gravest warnings, and the ladder where it has room.

    What invalidates numbers is shown before the ladder, the conditions and how far the answer reaches.
    """
    warnings = [lines_on(console, [warning_part(one)]) for one in findings.warnings]
    grave = sum(one.severity is Severity.INVALID for one in findings.warnings)
    needed = sum(map(len, warnings[:grave])) + LEAST_FOR_WARNINGS
    for extent in (Extent.SCREEN, Extent.ANSWER, Extent.LEAST):
        lines = lines_on(console, screen_parts(findings, width, extent))
        if len(lines) + needed <= SCREEN_LINES:
            break
    rungs = lines_on(console, _rungs(findings, Metric.ROUND_TRIP_TIME))
    if len(lines) + len(rungs) + needed <= SCREEN_LINES:
        lines += rungs
    shown = 0
    for shown, text in enumerate(warnings):
        if len(lines) + len(text) > SCREEN_LINES - (shown + 1 < len(warnings)):
            break
        lines += text
    else:
        shown = len(warnings)
    left = findings.warnings[shown:]
    return [*lines, f"{count_words(left)} more, none graver than these: in the dossier"] if left else lines


def _rungs(findings: Findings, metric: Metric) -> list[RenderableType]:
    """Return the ladder of one metric, a row for each layer from the top, a column for each fabric."""
    is_time = metric is Metric.ROUND_TRIP_TIME
    cells: dict[Layer, dict[str, str]] = {}
    for step in findings.ladder:
        measured = step.round_trip if is_time else step.throughput
        if measured is not None:
            share = "" if is_time or step.share_of_line_rate is None else f", {share_words(step.share_of_line_rate)}"
            text = f"{value_words(metric, measured.value)}{share}"
            is_impossible = impossible_in(findings, step)[0 if is_time else 1]
            cells.setdefault(step.layer, {})[step.fabric] = struck_words(text, is_impossible=is_impossible)
    if not cells:
        return []
    names = [fabric.name for fabric in findings.fabrics]
    table = rich_table("", *names)
    for column, name in zip(table.columns[1:], names, strict=True):
        column.justify, column.header_style = "right", terminal_colour(findings, name)
    for layer in (layer for layer in reversed(Layer) if layer in cells):
        table.add_row(layer.value, *(cells[layer].get(name, NOTHING) for name in names))
    sizes = {step.round_trip_message_bytes for step in findings.ladder}
    size = size_words(sizes.pop()) if len(sizes) == 1 else "the smallest message"
    return [
        _heading(f"Round trip of {size}, medians" if is_time else "Best throughput, median, share of the line rate"),
        _indented(table),
    ]


def _indented(what: RenderableType) -> Padding:
    return Padding(what, (0, 0, 0, 2))


def _heading(title: str) -> Text:
    return Text(f"\n{title}", style="bold")


def _curves(findings: Findings, width: int) -> list[RenderableType]:
    sides = [advantage(item) for item in findings.curves]
    ends = [end for side in sides for end in (side.value, side.low, side.high) if end]
    bounds = (min([*ends, 1 / 1.1]), max([*ends, 1.1]))
    plot_width = min(WIDEST_PLOT, width - WIDTH_BESIDE_PLOT)
    parts: list[RenderableType] = []
    for a, b in dict.fromkeys((item.fabric_a, item.fabric_b) for item in findings.curves):
        mine = [item for item in findings.curves if (item.fabric_a, item.fabric_b) == (a, b)]
        rows = sorted(mine, key=lambda item: list(Metric).index(item.metric))
        table = rich_table("Test", UNADJUSTED, "Verdict")
        table.columns[1].no_wrap = True
        if plot_width >= NARROWEST_PLOT:
            plot = _forest_heading(bounds, plot_width)
            table = rich_table("Test", UNADJUSTED, plot, "Verdict")
        for item in rows:
            probe = escape(probe_words(item))
            plots = [_forest(item, bounds, plot_width, findings)] if plot_width >= NARROWEST_PLOT else []
            table.add_row(probe, effect_words(item), *plots, _verdict_text(findings, item))
        parts += [_heading(f"{b} against {a}: how many times faster, over all message sizes"), table]
    return parts


def _column(ratio: float, bounds: tuple[float, float], width: int) -> int:
    low, high = (math.log(bound) for bound in bounds)
    return round((math.log(ratio) - low) / (high - low) * (width - 1))


def _forest_heading(bounds: tuple[float, float], width: int) -> str:
    """Return a scale for the plot below it: 1 at its place, the end at the right."""
    end = f"{times_words(bounds[1])} ×"
    place = _column(1.0, bounds, width)
    return f"{' ' * place}1{end:>{width - place - 1}}"


def _forest(item: Comparison, bounds: tuple[float, float], width: int, findings: Findings) -> Text:
    """Return a line with the interval, the point in the verdict's sign, and a bar at 1."""
    cells = [" "] * width
    cells[_column(1.0, bounds, width)] = "│"
    side = advantage(item)
    if side.low is not None and side.high is not None:
        for index in range(_column(side.low, bounds, width), _column(side.high, bounds, width) + 1):
            cells[index] = "─"
    cells[_column(side.value, bounds, width)] = SIGNS.get(item.verdict, LEADS)
    return Text("".join(cells), style=_style(findings, item), no_wrap=True)


def _verdict_text(findings: Findings, item: Comparison) -> Text:
    return Text(verdict_words(item, findings.margin), style=_style(findings, item))


def _style(findings: Findings, item: Comparison) -> str:
    """Return the leader's colour, fainter where it is ahead by perhaps less than matters; grey where nobody leads."""
    if item.leader is None:
        return "dim"
    colour = terminal_colour(findings, item.leader)
    return f"dim {colour}" if item.verdict.is_ahead else colour


def _ladder(findings: Findings) -> list[RenderableType]:
    if not findings.ladder:
        return []
    table = rich_table("Layer", "Fabric", "Round trip", "Added", "Best throughput", "At", "Of line rate")
    for column in table.columns[2:]:
        column.justify = "right"
    order = {layer: index for index, layer in enumerate(Layer)}
    last: Layer | None = None
    for step in sorted(findings.ladder, key=lambda step: (-order[step.layer], step.receive)):
        table.add_row("" if step.layer is last else step.layer.value, *_ladder_row(findings, step))
        last = step.layer
    return [_heading("The ladder of layers"), table]


def _ladder_row(findings: Findings, step: LadderStep) -> Sequence[Text | str]:
    is_trip_struck, is_rate_struck = impossible_in(findings, step)
    trip = value_words(Metric.ROUND_TRIP_TIME, step.round_trip.value if step.round_trip else None)
    rate = value_words(Metric.THROUGHPUT, step.throughput.value if step.throughput else None)
    return (
        Text(step.fabric, style=terminal_colour(findings, step.fabric)),
        struck_words(trip, is_impossible=is_trip_struck),
        value_words(Metric.ROUND_TRIP_TIME, step.added_round_trip.value if step.added_round_trip else None),
        struck_words(rate, is_impossible=is_rate_struck),
        NOTHING if step.throughput is None else size_words(step.throughput_message_bytes),
        struck_words(share_words(step.share_of_line_rate), is_impossible=is_rate_struck),
    )


def _sparklines(findings: Findings) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for metric in Metric:
        curves: dict[tuple[str, str], list[CellSummary]] = {}
        for summary in findings.summaries:
            key = summary.key
            if key.metric is metric and key.receive != "polling":
                probe = probe_words(key)
                curves.setdefault((probe, summary.fabric), []).append(summary)
        if curves:
            parts += [
                _heading(f"{METRIC_WORDS[metric].capitalize()} over message size"),
                _spark_table(findings, curves),
            ]
    return parts


def _spark_table(findings: Findings, curves: dict[tuple[str, str], list[CellSummary]]) -> RichTable:
    table = rich_table("Test", "Fabric", "Sizes", "Curve", "From", "To")
    for column in table.columns[4:]:
        column.justify = "right"
    last = ""
    for (probe, fabric), summaries in curves.items():
        ordered = sorted(summaries, key=lambda summary: summary.key.message_bytes)
        together = [item.median.value for (name, _), mine in curves.items() if name == probe for item in mine]
        values = [summary.median.value for summary in ordered]
        first, end = ordered[0].key, ordered[-1].key
        table.add_row(
            "" if probe == last else escape(probe),
            Text(fabric, style=terminal_colour(findings, fabric)),
            f"{size_words(first.message_bytes)} to {size_words(end.message_bytes)}",
            Text(_spark(values, min(together), max(together)), style=terminal_colour(findings, fabric), no_wrap=True),
            value_words(first.metric, values[0]),
            value_words(first.metric, values[-1]),
        )
        last = probe
    return table


def _chapters(findings: Findings, width: int, *, leading: bool) -> list[RenderableType]:
    """Return what each chapter says in lines and tables: those that lead, or the others."""
    parts: list[RenderableType] = []
    for chapter in (one for one in chapters.CHAPTERS if one.leads is leading):
        shown = chapter.tables_with_rows(findings)
        lines = chapter.lines(findings)
        if lines:
            parts += [_heading(chapter.title), *(_indented(Text(line)) for line in lines)]
        for name, content in shown:
            title = f"{chapter.title}: {name}" if name else chapter.title
            parts += [Text() if lines and not name else _heading(title), as_rich(fitted(content, width), width)]
    return parts


def _spark(values: Sequence[float], low: float, high: float) -> str:
    """Return a bar for each value on a logarithmic scale that the fabrics of a probe share."""
    if low <= 0 or high <= low:
        return BARS[0] * len(values)
    steps = len(BARS) - 1
    return "".join(BARS[round(math.log(value / low) / math.log(high / low) * steps)] for value in values)
