"""The report as Markdown, for issues, wikis and pull requests: the verdict first, then the tables, no figures."""

from __future__ import annotations

from collections.abc import Iterable

from fabricbench.analysis.findings import Findings
from fabricbench.report.pattern_tables import SECTIONS
from fabricbench.report.tables import (
    Table,
    comparison_table,
    crossover_table,
    curve_table,
    fabric_table,
    inventory_table,
    ladder_table,
)
from fabricbench.report.words import facts_words, typographic

SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|"})
"""What Markdown, or the HTML inside it, would take for a sign: names come from people's files."""


def render(findings: Findings) -> bytes:
    """Return the report as GitHub-flavoured Markdown."""
    return ("\n".join(_lines(findings)).rstrip() + "\n").encode()


def _lines(findings: Findings) -> Iterable[str]:
    yield f"# {_text(findings.title)}"
    yield ""
    if findings.is_emulated:
        yield "**Emulated**: these fabrics are the lab's switches, not hardware."
        yield ""
    yield f"**{_text(findings.headline.sentence)}**"
    yield ""
    if findings.headline.detail:
        yield _text(findings.headline.detail)
        yield ""
    yield from (f"- {_text(effect)}" for effect in findings.headline.effects)
    yield ""
    yield _text(findings.headline.conditions)
    yield ""
    yield "; ".join(f"{what}: {_text(value)}" for what, value in facts_words(findings))
    yield ""
    if findings.warnings:
        yield "## Warnings"
        yield ""
        yield from (f"- **{item.severity}**, {_text(item.subject)}: {_text(item.text)}" for item in findings.warnings)
        yield ""
    for title, table in (
        ("Fabrics", fabric_table(findings)),
        ("The ladder of layers", ladder_table(findings)),
        ("How many times faster, layer by layer", curve_table(findings.curves)),
        ("Crossovers", crossover_table(findings.crossovers)),
        ("How many times faster, size by size", comparison_table(findings.cells)),
    ):
        if table.rows:
            yield from (f"## {title}", "", *_table(table), "")
    yield from _sections(findings)
    inventory = inventory_table(findings)
    if inventory.rows:
        yield from ("## Inventory", "", *_table(inventory), "")
    yield from ("## Method", "")
    for paragraph in findings.method:
        yield from (_text(paragraph), "")


def _sections(findings: Findings) -> Iterable[str]:
    """Yield the sections about patterns of many ranks, congestion, operations and pairs that have anything to show."""
    for title, tables_of in SECTIONS:
        shown = [(name, table) for name, table in tables_of(findings) if table.rows]
        if shown:
            yield from (f"## {title}", "")
        for name, table in shown:
            yield from ((f"### {_text(name)}", "") if name else ())
            yield from (*_table(table), "")


def _table(table: Table) -> Iterable[str]:
    yield "| " + " | ".join(map(_text, table.columns)) + " |"
    yield "| " + " | ".join("---:" if index in table.numeric else "---" for index in range(len(table.columns))) + " |"
    yield from ("| " + " | ".join(map(_text, row)) + " |" for row in table.rows)


def _text(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return " ".join(typographic(text).split()).translate(SPECIAL)
