"""What `fabricbench compare` writes: cells and curves as tables, a layer each, or every field for programs.

Text is as wide as the terminal. Ratios face the way of every report: how many times better the side is that leads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fabricbench.analysis.findings import BASIC_PATTERNS, Comparison, Findings, Interval, Verdict
from fabricbench.chapters import by_size, pacing
from fabricbench.cli.output import OutputFormat, as_json, prose
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.quantity import format_bytes
from fabricbench.report.comma_separated import comparisons_csv, findings_csv, origin_columns, origins_of
from fabricbench.report.first_screen import LOST, build_screen
from fabricbench.report.terminal_table import table_text
from fabricbench.report.words import (
    NOTHING,
    effect_words,
    interval_parts,
    outcome_words,
    p_words,
    place_words,
    step_words,
    typographic,
)
from fabricbench.table import Table, as_markdown, markdown_text, table

TIMES, CORRECTED, MORE_BLOCKS = "times better, interval unadjusted", "p adj.", "more blocks"


UNBOUNDED = 400
"""Columns of text that no terminal cuts."""


def render(findings: Findings, form: OutputFormat, width: int = UNBOUNDED) -> str:
    """Return the comparisons in a format; JSON and CSV hold every field of `Comparison`, cells first, then curves.

    Of one fabric, which is compared with nothing, they hold what it does with messages of each size. Text is no wider than `width`
    columns.
    """
    if len(findings.fabrics) == 1:
        return _of_one(findings, form, width)
    if form is OutputFormat.CSV:
        return comparisons_csv(findings).rstrip("\n")
    comparisons, origins = [*findings.cells, *findings.curves], origins_of(findings)
    if form is OutputFormat.JSON:
        return as_json(
            [row | origin_columns(row, origins) for row in (one.model_dump(mode="json") for one in comparisons)]
        )
    writer = _writer(form, width)
    notes: dict[str, int] = {}
    tables = [
        writer(_table(findings, layer, pair, rows, notes))
        for pair in dict.fromkeys((one.fabric_a, one.fabric_b) for one in comparisons)
        for layer in Layer
        if (rows := [one for one in comparisons if one.layer is layer and (one.fabric_a, one.fabric_b) == pair])
    ]
    numbered = [_said(_numbered(notes), form, width)] if notes else []
    return "\n\n".join([_head(findings, form, width), *tables, *numbered, *_crossovers(findings, form, width)])


def _writer(form: OutputFormat, width: int) -> Callable[[Table], str]:
    """Return how tables are written in a format for people."""
    return as_markdown if form is OutputFormat.MARKDOWN else lambda content: table_text(content, width)


def _said(lines: Sequence[str], form: OutputFormat, width: int) -> str:
    """Return sentences in a format for people."""
    return prose(lines, form, width, hanging=0)


def _heading(title: str, level: int, form: OutputFormat) -> str:
    return f"{'#' * level} {markdown_text(title)}" if form is OutputFormat.MARKDOWN else title


def _of_one(findings: Findings, form: OutputFormat, width: int) -> str:
    """Return what one fabric does with messages of each size, and what single ones take beside streamed ones."""
    if form is OutputFormat.CSV:
        return findings_csv(findings).get(by_size.NAME, "").rstrip("\n")
    if form is OutputFormat.JSON:
        origins = origins_of(findings)
        rows = (row.model_dump(mode="json") for row in by_size.ROWS.of(findings))
        return as_json([row | origin_columns(row, origins) for row in rows])
    parts = [_head(findings, form, width)]
    mark = "" if form is OutputFormat.MARKDOWN else "- "
    for chapter in (by_size.CHAPTER, pacing.CHAPTER):
        lines = [f"{mark}{line}" for line in chapter.lines(findings)]
        tables = [replace(content, title=title) for title, content in chapter.tables_with_rows(findings)]
        if lines or tables:
            parts += [_heading(chapter.title, 2, form), *([_said(lines, form, width)] if lines else [])]
            parts += map(_writer(form, width), tables)
    return "\n\n".join(parts)


def _numbered(notes: dict[str, int]) -> list[str]:
    return [f"[{number}] {typographic(note)}" for note, number in notes.items()]


def _head(findings: Findings, form: OutputFormat, width: int) -> str:
    """Return the answer as every report gives it: exceptions, evidence, what changed, how far it reaches."""
    screen = build_screen(findings)
    lost = [f"{LOST}: {line}" for line in screen.lost]
    lines = [screen.sentence]
    lines += [f"Except: {screen.exceptions}"] if screen.exceptions else []
    lines += [f"Evidence: {' '.join(screen.evidence_in_full)}"] if screen.evidence else []
    lines += [*screen.changes, screen.counts] if screen.counts else []
    lines += filter(None, (screen.detail, screen.conditions))
    parts = (
        _heading(findings.title, 1, form),
        *([_said(lost, form, width)] if lost else []),
        _said(lines, form, width),
    )
    return "\n\n".join(parts)


def _table(
    findings: Findings, layer: Layer, pair: tuple[str, str], comparisons: Sequence[Comparison], notes: dict[str, int]
) -> Table:
    control = "control: no fabric changes it; " if layer is Layer.MEMORY else ""
    a, b = pair
    order = sorted(
        comparisons,
        key=lambda one: (
            list(Metric).index(one.metric),
            one.receive,
            one.order,
            one.kind == "curve",
            one.message_bytes or 0,
        ),
    )
    has_ways = len({one.receive for one in comparisons}) > 1
    return table(
        ("what", f"A: {a}", f"B: {b}", TIMES, CORRECTED, "verdict", MORE_BLOCKS),
        [_row(one, findings.margin, notes, has_ways=has_ways) for one in order],
        title=f"{layer.value} ({control}geometric means of launches)",
        spare=(CORRECTED, MORE_BLOCKS),
        result=TIMES,
    )


def _row(one: Comparison, margin: float, notes: dict[str, int], *, has_ways: bool) -> tuple[str, ...]:
    size = "all sizes" if one.message_bytes is None else format_bytes(one.message_bytes)
    words = [
        _pattern(one.pattern),
        one.metric.value.replace("_time", "").replace("_", " "),
        one.variant,
        one.receive.value if has_ways else "",
        size,
    ]
    return (
        " ".join(word for word in words if word),
        _level(one, one.value_a, one.low_a, one.high_a),
        _level(one, one.value_b, one.low_b, one.high_b),
        effect_words(one),
        p_words(one.p_adjusted),
        _verdict(one, margin, notes),
        "" if one.verdict.is_decided or one.more_blocks_needed is None else f"about {one.more_blocks_needed}",
    )


def _pattern(pattern: Pattern) -> str:
    """Return a pattern's name; that a round trip is a ping-pong's and a throughput a stream's goes without saying."""
    return "" if pattern in BASIC_PATTERNS else pattern.value


def _level(one: Comparison, value: float | None, low: float | None, high: float | None) -> str:
    """Return the geometric mean that the ratio is made of; of a rate of work with its unit, which its name does not have here."""
    if value is None:
        return NOTHING
    unit = one.unit if one.metric is Metric.WORK_RATE else ""
    return interval_parts(one.metric, Interval(value=value, low=low, high=high), unit)


def _verdict(one: Comparison, margin: float, notes: dict[str, int]) -> str:
    """Return the verdict with the fabric's name and the numbers of what qualifies it."""
    said = outcome_words(one.verdict, one.fabric_a, one.fabric_b, margin)
    said += step_words(one.verdict, one.metric, one.printed_step)
    numbers = [str(notes.setdefault(str(note), len(notes) + 1)) for note in one.notes]
    sign = {Verdict.EQUIVALENT: "= ", Verdict.NOT_ENOUGH_DATA: "? ", Verdict.NOT_RESOLVABLE: "? "}.get(one.verdict, "")
    marks = f" [{', '.join(numbers)}]" if numbers else ""
    return f"{sign}{said}{marks}"


def _crossovers(findings: Findings, form: OutputFormat, width: int) -> list[str]:
    mark = "" if form is OutputFormat.MARKDOWN else "- "
    lines = [
        f"{mark}{' '.join(filter(None, (one.layer.value, _pattern(one.pattern))))} "
        f"{one.metric.value.replace('_', ' ')}: {one.faster_above} overtakes {one.faster_below} {place_words(one)}"
        for one in findings.crossovers
    ]
    return [_heading("Crossovers", 2, form), _said(lines, form, width)] if lines else []
