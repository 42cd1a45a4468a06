"""The report as Markdown, for issues, wikis and pull requests: the verdict first, then the tables, no figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fabricbench import chapters
from fabricbench.analysis.findings import MARKS, Findings, Grade, Proof
from fabricbench.printable import printable
from fabricbench.report.first_screen import (
    GRADE_SIGNS,
    LEVEL,
    Row,
    Screen,
    Value,
    build_screen,
    count_words,
    grouped,
    plain_times,
)
from fabricbench.report.tables import (
    comparison_table,
    crossover_table,
    curve_table,
    fabric_table,
    inventory_table,
    ladder_table,
)
from fabricbench.report.words import NOTHING, facts_words, typographic, unproven_fabrics
from fabricbench.table import Table, markdown_lines, markdown_text, table


def render(findings: Findings) -> bytes:
    """Return the report as GitHub-flavoured Markdown."""
    return printable("\n".join(_lines(findings)).rstrip() + "\n").encode()


def _lines(findings: Findings) -> Iterable[str]:
    yield f"# {_text(findings.title)}"
    yield ""
    for mark, names in findings.marks.items():
        which = "" if len(names) == len(findings.fabrics) else f", {_text(', '.join(names))}"
        yield f"**{mark.value.capitalize()}**{which}: these {MARKS[mark].noun} are {MARKS[mark].remark}."
        yield ""
    if unproven := unproven_fabrics(findings):
        named = _text(", ".join(unproven))
        yield f"**{Proof.UNKNOWN.doubt.capitalize()}**, {named}: no counter shows that the traffic took the fabric."
        yield ""
    yield from _first_screen(build_screen(findings))
    yield "; ".join(f"{what}: {_text(value)}" for what, value in facts_words(findings))
    yield ""
    groups = grouped(findings.warnings)
    if groups:
        yield from ("## Warnings", "", count_words(groups), "")
        yield from (f"- **{item.severity}**, {_text(item.subject)}: {_text(item.text)}" for item in groups)
        yield ""
    yield from _chapters(findings, leading=True)
    for title, content in (
        ("Fabrics", fabric_table(findings)),
        ("The ladder of layers", ladder_table(findings)),
        ("How many times faster, layer by layer", curve_table(findings, findings.curves)),
        ("Crossovers", crossover_table(findings.crossovers)),
        ("How many times faster, size by size", comparison_table(findings, findings.cells)),
    ):
        if content.rows:
            yield from (f"## {title}", "", *_table(content), "")
    yield from _chapters(findings, leading=False)
    inventory = inventory_table(findings)
    if inventory.rows:
        yield from ("## Inventory", "", *_table(inventory), "")
    yield from ("## Method", "")
    for paragraph in findings.method:
        yield from (_text(paragraph), "")


def _first_screen(screen: Screen) -> Iterable[str]:
    """Yield the answer, what is in doubt, the effects, what to do next: the same as page and terminal show."""
    yield from (f"**{_text(screen.sentence)}**", "")
    if screen.exceptions:
        yield from (f"Except: {_text(screen.exceptions)}", "")
    if screen.evidence:
        word = f"**{GRADE_SIGNS[Grade.DOUBTFUL]} Evidence**" if screen.in_doubt else "Evidence"
        yield from (f"{word}: {_text(' · '.join(screen.evidence))}", "")
    if screen.counts:
        yield from ("What differs between the two:", "", *(f"- {_text(line)}" for line in screen.changes), "")
        yield from (f"**{screen.counts}**", "")
    if screen.rows:
        yield from (*_effects(screen, screen.rows), "")
    yield from (f"{number}. {_text(doubt)}" for number, doubt in enumerate(screen.doubts, 1))
    yield ""
    if screen.more_rows:
        yield from ("What explains it:", "", *_effects(screen, screen.more_rows), "")
    if not screen.has_pairs:
        yield from _pairs(screen)
    for label, lines in (("Decide", screen.decision), ("Next", screen.next_steps), ("Reproduce", screen.reproduce)):
        yield from (f"- {label}: {_text(line)}" for line in lines)
    yield ""
    yield from (line for text in (screen.detail, screen.conditions) if text for line in (_text(text), ""))


def _effects(screen: Screen, rows: Sequence[Row]) -> Iterable[str]:
    outcome = [screen.ratio_head, "Verdict"] if screen.has_pairs else ["Best first"]
    columns = ("", *(f"{letter}: {name}, {LEVEL}" for letter, name in screen.fabrics), *outcome, "Evidence")
    yield "| " + " | ".join(map(_text, columns)) + " |"
    yield "| --- |" + " ---: |" * len(screen.fabrics) + " --- |" * (len(outcome) + 1)
    for row in rows:
        values = [
            next((_value(one) for one in row.values if one.fabric == name), NOTHING) for _, name in screen.fabrics
        ]
        yield f"| {_text(row.what)} | {' | '.join((*values, *_outcome(screen, row)))} | {_text(row.grade_words)} |"


def _value(value: Value) -> str:
    interval = f" ({_text(value.interval)})" if value.interval else ""
    text = f"{_text(value.text)}{interval}"
    return f"{f'~~{text}~~' if value.is_struck else text} {value.remark}".rstrip()


def _outcome(screen: Screen, row: Row) -> list[str]:
    if not screen.has_pairs:
        return [_text(row.ranking)]
    return (
        [_text(part) for part in (plain_times(row.ratios[0]), row.ratios[0].verdict)] if row.ratios else [NOTHING] * 2
    )


def _pairs(screen: Screen) -> Iterable[str]:
    pairs = [
        (row.what, f"{one.fabric_b} : {one.fabric_a}", plain_times(one), one.verdict)
        for row in screen.rows
        for one in row.ratios
    ]
    if pairs:
        yield from ("Every pair:", "", *_table(table(("", "B : A", screen.ratio_head, "Verdict"), pairs, (2,))), "")


def _chapters(findings: Findings, *, leading: bool) -> Iterable[str]:
    """Yield each chapter that has anything to show, those that lead or the others: its sentences, then its tables."""
    for chapter in (one for one in chapters.CHAPTERS if one.leads is leading):
        lines, shown = chapter.lines(findings), chapter.tables_with_rows(findings)
        if lines or shown:
            yield from (f"## {chapter.title}", "")
        for line in lines:
            yield from (_text(line), "")
        for name, content in shown:
            yield from ((f"### {_text(name)}", "") if name else ())
            yield from (*_table(content), "")


def _table(content: Table) -> Iterable[str]:
    yield from markdown_lines(content.with_cells(typographic))


def _text(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return markdown_text(typographic(text))
