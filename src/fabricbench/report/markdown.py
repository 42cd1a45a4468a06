"""The report as Markdown, for issues, wikis and pull requests: the verdict first, then figures and tables.

Figures are pictures in files of their own; where there are none, as on stdout, the tables say all that they show.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import quote

from fabricbench import chapters
from fabricbench.analysis.findings import MARKS, Findings, Grade, Proof
from fabricbench.chapters import by_size, operations, workloads
from fabricbench.printable import printable
from fabricbench.quantity import listed
from fabricbench.report.figures import Figure
from fabricbench.report.first_screen import (
    GRADE_SIGNS,
    LOST,
    OF_LINE_RATE,
    Screen,
    ScreenRow,
    Topic,
    Value,
    build_screen,
    count_words,
    plain_times,
)
from fabricbench.report.tables import (
    comparison_table,
    crossover_table,
    curve_table,
    fabric_table,
    inventory_table,
    ladder_tables,
)
from fabricbench.report.words import NOTHING, facts_words, typographic, unproven_fabrics
from fabricbench.table import Table, markdown_lines, markdown_text, table

UNFOLDED_ROWS = 20
MOST_COLUMNS = 7

LADDER, CURVES, BY_LAYER = (
    "The ladder of layers",
    "From small messages to large ones",
    "How many times faster, layer by layer",
)
BY_SIZE, SAMPLES, STUDIES = (
    "How many times faster, size by size",
    "Launches and samples",
    "Beside the published studies",
)
FIGURES = {
    LADDER: ("ladder",),
    CURVES: ("round-trip", "throughput"),
    BY_LAYER: ("verdict",),
    BY_SIZE: ("round-trip-ratios", "throughput-ratios"),
    SAMPLES: ("order", "distributions", "tails"),
    STUDIES: ("published",),
}
"""Those of every report, by the section that they stand in; a chapter has its own."""
TOPICS = {
    Topic.WORKLOADS: workloads.CHAPTER.title,
    Topic.OPERATIONS: operations.CHAPTER.title,
    Topic.SIZES: BY_SIZE,
    Topic.SAMPLES: SAMPLES,
}
OF_ONE = {**TOPICS, Topic.SIZES: by_size.CHAPTER.title}
"""The same where one fabric is compared with nothing."""

Tables = Sequence[tuple[str, Table]]
Pictures = Mapping[str, tuple[str, Figure]]
"""Where the picture of a figure is, as seen from the report, and the figure, by its name."""


def render(findings: Findings, pictures: Pictures | None = None) -> bytes:
    """Return the report as GitHub-flavoured Markdown, which shows the pictures that there are."""
    return printable("\n".join(_lines(findings, pictures or {})).rstrip() + "\n").encode()


def _lines(findings: Findings, pictures: Pictures) -> Iterable[str]:
    sections = dict(_sections(findings, pictures))
    yield from _head(findings, sections)
    for title, lines in sections.items():
        yield from (f"## {title}", "", *lines)
    yield from ("## Method", "")
    for title, paragraphs in chapters.method_parts(findings):
        yield from (f"### {title}", "")
        for paragraph in paragraphs:
            yield from (_text(paragraph), "")


def _head(findings: Findings, sections: Collection[str]) -> Iterable[str]:
    """Yield what the numbers are, then the first screen."""
    yield f"# {_text(findings.title)}"
    yield ""
    for mark, names in findings.marks.items():
        which = "" if len(names) == len(findings.fabrics) else f", {_text(listed(names))}"
        yield f"**{mark.value.capitalize()}**{which}: these {MARKS[mark].noun} are {MARKS[mark].remark}."
        yield ""
    if unproven := unproven_fabrics(findings):
        named = _text(listed(unproven))
        yield f"**{Proof.UNKNOWN.doubt.capitalize()}**, {named}: no counter shows that the traffic took the fabric."
        yield ""
    screen = build_screen(findings)
    if screen.system:
        yield from (_text(screen.system), "")
    yield from _first_screen(screen, sections)
    yield "; ".join(f"{what}: {_text(value)}" for what, value in facts_words(findings))
    yield ""


def _sections(findings: Findings, pictures: Pictures) -> Iterable[tuple[str, list[str]]]:
    """Yield the title and the lines of each section that has any, in the order of the report."""
    if findings.warnings:
        warnings = table(
            ("How grave", "Where", "What"), [(one.severity, one.subject, one.text) for one in findings.warnings]
        )
        yield "Warnings", [count_words(findings.warnings), "", *_folded("Warnings", warnings), ""]
    yield from _chapters(findings, pictures, leading=True)
    everywhere: tuple[tuple[str, Tables], ...] = (
        ("Fabrics", [("", fabric_table(findings))]),
        (LADDER, ladder_tables(findings)),
        (CURVES, ()),
        (BY_LAYER, [("", curve_table(findings, findings.curves))]),
        ("Crossovers", [("", crossover_table(findings.crossovers))]),
        (BY_SIZE, [("", comparison_table(findings, findings.cells))]),
    )
    at_the_end: tuple[tuple[str, Tables], ...] = (
        (SAMPLES, ()),
        (STUDIES, ()),
        ("Inventory", [("", inventory_table(findings))]),
    )
    yield from _of_every_report(everywhere, pictures)
    yield from _chapters(findings, pictures, leading=False)
    yield from _of_every_report(at_the_end, pictures)


def _of_every_report(parts: Iterable[tuple[str, Tables]], pictures: Pictures) -> Iterable[tuple[str, list[str]]]:
    for title, tables in parts:
        lines = _section(title, (), tables, _shown(FIGURES.get(title, ()), pictures))
        if lines:
            yield title, lines


def _first_screen(screen: Screen, sections: Collection[str]) -> Iterable[str]:
    """Yield the answer, what is in doubt, the effects, what to do next: the same as page and terminal show."""
    if screen.lost:
        yield from (*(f"- **{LOST}**: {_text(line)}" for line in screen.lost), "")
    yield from (f"**{_text(screen.sentence)}**", "")
    if screen.exceptions:
        yield from (f"Except: {_text(screen.exceptions)}", "")
    if screen.evidence:
        word = f"**{GRADE_SIGNS[Grade.DOUBTFUL]} Evidence**" if screen.in_doubt else "**Evidence**"
        yield from (f"{word}:", "", *(f"- {_text(line)}" for line in screen.evidence), "")
    if screen.counts:
        yield from ("What differs between the two:", "", *(f"- {_text(line)}" for line in screen.changes), "")
        yield from (f"**{screen.counts}**", "")
    if screen.rows:
        yield from (*_effects(screen, screen.rows, sections), "")
    yield from _doubts(screen.doubts_of(screen.rows))
    if screen.more_rows:
        yield from ("What explains it:", "", *_effects(screen, screen.more_rows, sections), "")
        yield from _doubts(screen.doubts_of(screen.more_rows, screen.rows))
    if not screen.has_pairs:
        yield from _pairs(screen)
    labelled = (
        ("Decide", screen.decision),
        ("Where", (screen.where,) if screen.where else ()),
        ("Next", screen.next_steps),
        ("Reproduce", screen.reproduce),
    )
    for label, lines in labelled:
        yield from (f"- {label}: {_text(line)}" for line in lines)
    yield ""
    yield from (
        line for text in (screen.detail, screen.conditions, *screen.reach) if text for line in (_text(text), "")
    )


def _doubts(doubts: Sequence[tuple[int, str]]) -> Iterable[str]:
    if doubts:
        yield from (*(f"{number}. {_text(doubt)}" for number, doubt in doubts), "")


def _effects(screen: Screen, rows: Sequence[ScreenRow], sections: Collection[str]) -> Iterable[str]:
    """Yield the table of effects, each of which leads to the section that has more of it."""
    if screen.is_turned:
        yield from markdown_lines(screen.turned(rows, has_intervals=True).with_cells(typographic))
        return
    shares = [OF_LINE_RATE] if screen.has_shares(rows) else []
    outcome = [screen.ratio_head, "Verdict"] if screen.has_pairs else shares if screen.is_alone else ["Best first"]
    evidence = "" if screen.is_alone else "Evidence"
    columns = ("", *(f"{letter}: {name}, {screen.level}" for letter, name in screen.fabrics), *outcome, evidence)
    yield "| " + " | ".join(map(_text, columns)) + " |"
    yield "| --- |" + " ---: |" * (len(screen.fabrics) + len(shares)) + " --- |" * (len(outcome) - len(shares) + 1)
    for row in rows:
        values = [
            next((_value(one) for one in row.values if one.fabric == name), NOTHING) for _, name in screen.fabrics
        ]
        last = row.marks if screen.is_alone else row.grade_words
        title = (OF_ONE if screen.is_alone else TOPICS)[row.topic]
        what = f"[{_text(row.what)}](#{_anchor(title)})" if title in sections else _text(row.what)
        yield f"| {what} | {' | '.join((*values, *_outcome(screen, row, has_shares=bool(shares))))} | {_text(last)} |"


def _value(value: Value) -> str:
    interval = f" ({_text(value.interval)})" if value.interval else ""
    text = f"{_text(value.text)}{interval}"
    return f"{f'~~{text}~~' if value.is_struck else text} {value.remark}".rstrip()


def _outcome(screen: Screen, row: ScreenRow, *, has_shares: bool) -> list[str]:
    if screen.is_alone:
        return [_text(row.values[0].share_in_full)] if has_shares else []
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
        content = table(("", "B : A", screen.ratio_head, "Verdict"), pairs, (2,))
        written = _folded("Every pair", content) if screen.is_turned else _table(content)
        yield from ("Every pair:", "", *written, "")


def _chapters(findings: Findings, pictures: Pictures, *, leading: bool) -> Iterable[tuple[str, list[str]]]:
    """Yield each chapter that has anything to show, those that lead or the others."""
    for chapter in (one for one in chapters.CHAPTERS if one.leads is leading):
        lines = _section(
            chapter.title, chapter.lines(findings), chapter.tables(findings), _shown(chapter.figures, pictures)
        )
        if lines:
            yield chapter.title, lines


def _section(title: str, sentences: Sequence[str], tables: Tables, pictures: Sequence[tuple[str, Figure]]) -> list[str]:
    """Return the lines of a section: its sentences, its pictures, its tables that have rows; none where it has nothing."""
    lines = [part for sentence in sentences for part in (_text(sentence), "")]
    for path, figure in pictures:
        lines += [f"![{_text(figure.title)}]({quote(path)})", "", _text(figure.caption), ""]
    for name, content in tables:
        if content.rows:
            lines += [*([f"### {_text(name)}", ""] if name else []), *_folded(name or title, content), ""]
    return lines


def _shown(names: Iterable[str], pictures: Pictures) -> list[tuple[str, Figure]]:
    return [pictures[name] for name in names if name in pictures]


def _anchor(title: str) -> str:
    """Return what GitHub and GitLab call the place of a heading."""
    return "".join(sign for sign in title.lower().replace(" ", "-") if sign.isalnum() or sign in "-_")


def _folded(title: str, content: Table) -> Iterable[str]:
    """Yield a table, folded away where it is long: an issue is read from top to bottom."""
    if len(content.rows) <= UNFOLDED_ROWS:
        yield from _table(content)
        return
    yield from (f"<details><summary>{_text(title)}: {len(content.rows)} rows</summary>", "")
    yield from (*_table(content), "", "</details>")


def _table(content: Table) -> Iterable[str]:
    yield from markdown_lines(_narrow(content).with_cells(typographic))


def _narrow(content: Table) -> Table:
    """Return a table without as many of its spare columns as it takes to be read without scrolling aside."""
    for title in content.spare:
        if len(content.columns) > MOST_COLUMNS and title in content.columns:
            content = content.without(content.columns.index(title))
    return content


def _text(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return markdown_text(typographic(text))
