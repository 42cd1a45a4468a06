"""The first screen for a terminal: the answer, its exceptions, what is in doubt, the effects, what to do next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum

from rich.console import RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from fabricbench.analysis.findings import MARKS, Caution, Findings, Grade, Proof, Severity, Strength
from fabricbench.quantity import listed
from fabricbench.report.first_screen import (
    LOST,
    OF_LINE_RATE,
    Screen,
    ScreenRow,
    Value,
    build_screen,
    count_words,
    plain_times,
)
from fabricbench.report.palette import terminal_colour
from fabricbench.report.words import NOTHING, typographic, unproven_fabrics

GRADE_STYLES = {
    Grade.CLEAR: "green",
    Grade.DOUBTFUL: "bold yellow",
    Grade.ALARM: "bold red",
    Grade.OPEN: "dim",
    Grade.VOID: "bold red",
}
SEVERITY_STYLES = {Severity.INVALID: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
LEADS, AHEAD, EVEN, UNKNOWN = "●", "◐", "◇", "?"
"""The signs of the verdicts, as in the tables further down: faster, ahead, equivalent, not enough data."""
LAUNCH = "·"
WIDEST_PLOT, NARROWEST_PLOT = 24, 12
GAP = 2
LEAST_NAME = 10
"""Columns of text that the names of rows need at least."""


FIRST_STEPS = 2
"""Of what to do next, where there is room for no more."""


class Extent(IntEnum):
    """How much of the first screen there is room for."""

    LEAST = 0
    """Nor where it was measured, nor how to get the same again; the first of the next steps alone."""
    ANSWER = 1
    """Without how far the answer reaches, and under which conditions: where graver things need the lines."""
    SCREEN = 2
    WHOLE = 3
    """With the effects that explain, and every pair of three fabrics."""


REPRODUCED = {Extent.LEAST: 0, Extent.ANSWER: 1, Extent.SCREEN: 1, Extent.WHOLE: None}
"""Lines of how to get the same again: the command first, then versions and hashes."""


def screen_parts(findings: Findings, width: int, extent: Extent) -> list[RenderableType]:
    """Return the first screen."""
    screen = build_screen(findings)
    parts: list[RenderableType] = [_kicker(findings)]
    if screen.system and extent > Extent.LEAST:
        is_whole = extent is Extent.WHOLE
        parts.append(
            Text(screen.system, style="dim", no_wrap=not is_whole, overflow="fold" if is_whole else "ellipsis")
        )
    parts += [Text.assemble((f"{LOST}: ", "bold red"), line) for line in screen.lost]
    parts.append(Text(screen.sentence, style="bold"))
    if screen.exceptions:
        parts.append(Text.assemble(("Except: ", "bold"), screen.exceptions))
    parts += _evidence(screen)
    parts += _changes(screen)
    if screen.rows:
        parts += [Text(""), _effects(findings, screen, screen.rows, width)]
    parts += _doubts(screen.doubts_of(screen.rows))
    if extent is Extent.WHOLE and screen.more_rows:
        parts += [Text("\nLayers that explain", style="bold"), _effects(findings, screen, screen.more_rows, width)]
        parts += _doubts(screen.doubts_of(screen.more_rows, screen.rows))
    if extent is Extent.WHOLE and not screen.has_pairs and not screen.is_alone and not screen.is_turned:
        parts += [Text(f"\nEvery pair: {screen.ratio_head.lower()}", style="bold"), _pairs(screen)]
    if screen.detail and extent > Extent.ANSWER:
        parts += [Text(""), Text(screen.detail)]
    parts += _labelled("DECIDE", screen.decision)
    if extent > Extent.LEAST:
        parts += _labelled("WHERE", [screen.where] if screen.where else [])
    parts += _labelled("NEXT", screen.next_steps[:FIRST_STEPS] if extent is Extent.LEAST else screen.next_steps)
    parts += _labelled("REPRODUCE", screen.reproduce[: REPRODUCED[extent]])
    if screen.conditions and extent > Extent.ANSWER:
        parts.append(Text(screen.conditions, style="dim"))
    if extent is Extent.WHOLE:
        parts += [Text(text, style="dim") for text in screen.reach]
    return parts


def warning_heading(findings: Findings) -> Text:
    """Return the section's heading with how many there are of each severity."""
    return Text(f"\nWarnings: {count_words(findings.warnings)}", style="bold")


def warning_part(one: Caution) -> RenderableType:
    """Return a warning on lines of its own, its severity first."""
    text = Text(f"{one.severity.value}  ", style=SEVERITY_STYLES[one.severity])
    return Padding(text.append(f"{one.subject}: {typographic(one.text)}", style="default"), (0, 0, 0, 2))


def _kicker(findings: Findings) -> Text:
    text = Text(f"{findings.title} · {findings.started[:10]}", style="dim")
    for mark, names in findings.marks.items():
        which = f" {MARKS[mark].noun}" if len(names) == len(findings.fabrics) else f" {listed(names)}"
        text.append("  ").append(mark.value.upper(), style="not dim reverse").append(which)
    if unproven := unproven_fabrics(findings):
        which = "" if len(unproven) == len(findings.fabrics) else f" {listed(unproven)}"
        text.append("  ").append(Proof.UNKNOWN.doubt.upper(), style="not dim reverse").append(which)
    return text


def _doubts(doubts: Sequence[tuple[int, str]]) -> list[Text]:
    return [Text(f"[{number}] {doubt}", style="yellow") for number, doubt in doubts]


def _evidence(screen: Screen) -> list[RenderableType]:
    if not screen.evidence:
        return []
    return _labelled("EVIDENCE", screen.evidence, "bold yellow" if screen.in_doubt else "bold")


def _changes(screen: Screen) -> list[RenderableType]:
    if not screen.counts:
        return []
    lines = [Text(f"  {line}") for line in screen.changes] or [Text("  nothing that the runs recorded")]
    return [Text("CHANGED between the two", style="bold"), *lines, Text(screen.counts, style="bold")]


def _labelled(label: str, lines: Sequence[str], style: str = "bold") -> list[RenderableType]:
    """Return lines under one label; they hang below each other."""
    if not lines:
        return []
    table = RichTable(box=None, padding=(0, GAP, 0, 0), show_header=False, pad_edge=False)
    for index, line in enumerate(lines):
        table.add_row(Text(label if index == 0 else "", style=style, no_wrap=True), Text(line))
    return [table]


def _effects(findings: Findings, screen: Screen, rows: Sequence[ScreenRow], width: int) -> RichTable:
    """Return a row for each effect. What has no room goes: the evidence's words first, then the launches."""
    if screen.is_turned:
        return _turned(findings, screen, rows)
    body = _body(findings, screen, rows, is_narrow=False)
    long = [Text(row.marks if screen.is_alone else row.grade_words, style=GRADE_STYLES[row.grade]) for row in rows]
    short = [Text(row.grade_words.replace(f" {row.grade.value}", ""), style=GRADE_STYLES[row.grade]) for row in rows]
    short = long if screen.is_alone else short
    if _wanted(body) + max(map(_width, short)) > width:
        body = _body(findings, screen, rows, is_narrow=True)
    lasts = long if _wanted(body) + max(map(_width, long)) <= width else short
    plot_width = min(WIDEST_PLOT, width - _wanted(body) - max(map(_width, lasts)) - GAP)
    heads = [f"{letter} {name}" for letter, name in screen.fabrics]
    outcome = screen.ratio_head if screen.has_pairs else screen.interval_head if screen.is_alone else "Best first"
    shares = [OF_LINE_RATE] if screen.has_shares(rows) else []
    columns = (screen.level, *map(escape, heads), outcome, *shares)
    table = RichTable(*columns, box=None, padding=(0, GAP, 0, 0), header_style="dim", pad_edge=False)
    for column, (_, name) in zip(table.columns[1:], screen.fabrics, strict=False):
        column.justify, column.header_style, column.overflow = "right", terminal_colour(findings, name), "fold"
    if plot_width >= NARROWEST_PLOT:
        table.add_column("Launches", no_wrap=True)
        body = [[*cells, _launches(findings, row, plot_width)] for cells, row in zip(body, rows, strict=True)]
    table.add_column("Evidence" if lasts is long and not screen.is_alone else "")
    for cells, last in zip(body, lasts, strict=True):
        table.add_row(*cells, last)
    _set_widths(table, width)
    return table


def _turned(findings: Findings, screen: Screen, rows: Sequence[ScreenRow]) -> RichTable:
    """Return a line for each fabric, in its colour, and the evidence below them."""
    content = screen.turned(rows)
    table = RichTable(box=None, padding=(0, GAP, 0, 0), header_style="dim", pad_edge=False)
    table.add_column(escape(content.columns[0]))
    for name in content.columns[1:]:
        table.add_column(escape(name), justify="right")
    for (_, name), cells in zip(screen.fabrics, content.rows[:-1], strict=True):
        first, *others = map(Text, cells)
        first.stylize(terminal_colour(findings, name))
        table.add_row(first, *others)
    words, *grades = content.rows[-1]
    table.add_row(
        Text(words, style="dim"), *(Text(one, GRADE_STYLES[row.grade]) for one, row in zip(grades, rows, strict=True))
    )
    return table


def _set_widths(table: RichTable, width: int) -> None:
    """Let the names of rows wrap and not numbers, nor the words of heads, where the terminal is wide enough for that."""
    names, *others = table.columns
    for column in others:
        words = max(map(len, str(column.header).split()), default=0)
        column.width = max(words, *(_width(cell) for cell in column.cells if isinstance(cell, Text)))
    left = width - sum((column.width or 0) + GAP for column in others)
    if left < LEAST_NAME:
        for column in others:
            column.width = None
    else:
        names.width = min(left, max(_width(cell) for cell in names.cells if isinstance(cell, Text)))


def _body(findings: Findings, screen: Screen, rows: Sequence[ScreenRow], *, is_narrow: bool) -> list[list[Text]]:
    """Return what each row says but for its launches and its evidence."""
    has_shares = screen.has_shares(rows)
    return [
        [
            Text(row.what),
            *(_value(row, name) for _, name in screen.fabrics),
            _outcome(findings, screen, row, is_narrow=is_narrow),
            *([Text(row.values[0].share or NOTHING, style="dim")] if has_shares else []),
        ]
        for row in rows
    ]


def _wanted(body: Sequence[Sequence[Text]]) -> int:
    """Return the columns of text that rows take if none of their cells breaks."""
    return sum(max(map(_width, column)) + GAP for column in zip(*body, strict=True))


def _width(cell: Text) -> int:
    return max(map(len, cell.plain.split("\n")))


def _value(row: ScreenRow, name: str) -> Text:
    found: Value | None = next((value for value in row.values if value.fabric == name), None)
    if found is None:
        return Text(NOTHING, style="dim")
    text = Text(found.text, style="strike" if found.is_struck else "dim" if row.is_undecided else "")
    return text.append(f"\n{found.remark}", style="not strike red") if found.remark else text


def _outcome(findings: Findings, screen: Screen, row: ScreenRow, *, is_narrow: bool) -> Text:
    """Return `● B 1.97 × (1.72 to 2.26)`: the verdict's sign, the letter of who leads, how many times better.

    The interval stands on a line of its own where it is narrow. Of more than two fabrics `B > A = C`, of one its interval.
    """
    if screen.is_alone:
        return Text(row.values[0].interval or NOTHING, style="dim")
    if not screen.has_pairs:
        return Text(_order(screen, row), style="dim" if row.is_undecided else "")
    if not row.ratios:
        return Text(NOTHING, style="dim")
    ratio = row.ratios[0]
    told = f"{ratio.times}\n  ({ratio.interval})" if is_narrow else plain_times(ratio)
    if ratio.leader is None:
        sign = EVEN if ratio.strength is Strength.EQUIVALENT else UNKNOWN
        return Text(f"{sign}   {told}", style="dim")
    letter = next(letter for letter, name in screen.fabrics if name == ratio.leader)
    sign = AHEAD if ratio.is_ahead else LEADS
    style = "dim" if row.is_undecided else terminal_colour(findings, ratio.leader)
    return Text(f"{sign} {letter} {told}", style=style)


def _order(screen: Screen, row: ScreenRow) -> str:
    letters = {name: letter for letter, name in screen.fabrics}
    return " ".join(f"{letters[name]} {sign}".strip() for name, sign in row.order) or NOTHING


def _launches(findings: Findings, row: ScreenRow, width: int) -> Text:
    """Return all launches as dots on one logarithmic line, each fabric's geometric mean as its letter."""
    values = [one for value in row.values for one in (*value.reading.launches, value.reading.value) if one]
    text = Text(" " * width, no_wrap=True)
    if not values:
        return text
    low, high = math.log(min(values)), math.log(max(values))
    cells, styles = [" "] * width, ["dim"] * width

    def place(value: float) -> int:
        return round((math.log(value) - low) / (high - low) * (width - 1)) if high > low else width // 2

    letters = {fabric.name: fabric.letter for fabric in findings.fabrics} | {"before": "A", "after": "B"}
    for is_level in (False, True):
        for value in row.values:
            reading = value.reading
            for one in (reading.value,) if is_level else reading.launches:
                if one:
                    cells[place(one)] = letters[value.fabric] if is_level else LAUNCH
                    styles[place(one)] = "dim" if row.is_undecided else terminal_colour(findings, value.fabric)
    return Text.assemble(*zip(cells, styles, strict=True), no_wrap=True)


def _pairs(screen: Screen) -> RichTable:
    table = RichTable(box=None, padding=(0, GAP, 0, 0), show_header=False, pad_edge=False)
    for row in screen.rows:
        for index, ratio in enumerate(row.ratios):
            pair = f"{ratio.fabric_b} : {ratio.fabric_a}"
            cells = ("" if index else row.what, pair, plain_times(ratio), ratio.verdict)
            table.add_row(*map(escape, cells), style="dim" if ratio.leader is None else "")
    return table
