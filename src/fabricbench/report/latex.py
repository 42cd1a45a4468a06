"""The effects of the first screen as a LaTeX table, for papers: values with intervals, how many times, verdict, evidence.

It spans both columns of a page that has two; its rules are those of the package booktabs. All that marks the numbers is in the
caption: where they come from, paths that nobody proved, what was lost, what speaks against a row. Its text is plain: a sign that a
paper's fonts may lack becomes `?`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from fabricbench.analysis.findings import MARKS, Findings, Proof
from fabricbench.quantity import listed
from fabricbench.report.first_screen import LOST, OF_LINE_RATE, Screen, ScreenRow, Value, build_screen, plain_times
from fabricbench.report.words import NOTHING, unproven_fabrics

SPECIAL = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "µ": r"\textmu{}",
    "μ": r"\textmu{}",
    "\N{NO-BREAK SPACE}": "~",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
    "\N{THIN SPACE}": r"\,",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "\N{MINUS SIGN}": "$-$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{ALMOST EQUAL TO}": r"$\approx$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\le$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\ge$",
    "\N{HORIZONTAL ELLIPSIS}": r"\dots{}",
    "\N{RIGHTWARDS ARROW}": r"$\to$",
    "\N{LEFT DOUBLE QUOTATION MARK}": "``",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "''",
    "\N{LEFT SINGLE QUOTATION MARK}": "`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{MIDDLE DOT}": r"\textperiodcentered{}",
}
"""What LaTeX takes for a sign, or has no letter for in every font."""
UNKNOWN = "?"

Lines = list[str]
"""What stands in a cell of the table, one below the other."""


def render(findings: Findings) -> bytes:
    """Return the table, in a float with its caption and label."""
    screen = build_screen(findings)
    if screen.is_turned:
        return _written(findings, screen, _turned(screen))
    rows = (*screen.rows, *screen.more_rows)
    shares = [OF_LINE_RATE] if screen.has_shares(rows) else []
    outcome = [screen.ratio_head, "verdict"] if screen.has_pairs else shares if screen.is_alone else ["Best first"]
    evidence = (["Doubts"] if any(row.doubts for row in rows) else []) if screen.is_alone else ["Evidence"]
    heads: list[Lines] = [
        [""],
        *([letter, name] for letter, name in screen.fabrics),
        *([outcome] if outcome else []),
        *([evidence] if evidence else []),
    ]
    columns = f"l{'r' * len(screen.fabrics)}{'p{39mm}' if outcome else ''}{'l' if evidence else ''}"
    return _written(
        findings,
        screen,
        [
            f"  \\begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            *_lines(heads),
            r"    \midrule",
            *_rows(screen, screen.rows, has_shares=bool(shares), has_evidence=bool(evidence)),
            *([r"    \midrule"] if screen.more_rows else []),
            *_rows(screen, screen.more_rows, has_shares=bool(shares), has_evidence=bool(evidence)),
        ],
    )


def _written(findings: Findings, screen: Screen, lines: Iterable[str]) -> bytes:
    """Return the float around the lines of a table that has begun."""
    whole = [
        r"\begin{table*}",
        r"  \centering",
        f"  \\caption{{{' '.join(map(latex_text, _caption(findings, screen)))}}}",
        r"  \label{tab:fabricbench-effects}",
        r"  \footnotesize",
        r"  \setlength{\tabcolsep}{4pt}",
        *lines,
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table*}",
    ]
    return ("\n".join(whole) + "\n").encode()


def _turned(screen: Screen) -> Iterator[str]:
    """Yield a line for each of many fabrics, with its place in every effect of the first screen; the others explain."""
    yield f"  \\begin{{tabular}}{{l{'r' * len(screen.rows)}}}"
    yield r"    \toprule"
    yield from _lines([[""], *([row.what] for row in screen.rows)])
    yield r"    \midrule"
    for letter, name in screen.fabrics:
        yield from _lines([[f"{letter} {name}"], *(_placed(row, name) for row in screen.rows)])
    yield r"    \midrule"
    yield from _lines([["Evidence"], *([_evidence(row)] for row in screen.rows)])


def latex_text(text: str) -> str:
    """Return text that LaTeX sets as it is; a sign that papers' fonts may lack becomes `?`."""
    return "".join(map(_letter, text))


def _letter(character: str) -> str:
    if character in SPECIAL:
        return SPECIAL[character]
    if character.isascii():
        return character if character.isprintable() else " "
    return character if character.isalpha() else UNKNOWN


def _caption(findings: Findings, screen: Screen) -> Iterator[str]:
    """Yield the answer and everything that marks the numbers, a sentence each."""
    yield screen.sentence
    yield f"Each level is the {screen.level}, its {screen.interval_head} below it."
    for mark, names in findings.marks.items():
        which = "" if len(names) == len(findings.fabrics) else f" ({listed(names)})"
        yield f"{mark.value.capitalize()}{which}: these {MARKS[mark].noun} are {MARKS[mark].remark}."
    if unproven := unproven_fabrics(findings):
        yield f"{Proof.UNKNOWN.doubt.capitalize()}: {listed(unproven)}."
    yield from (f"{LOST}: {line}." for line in screen.lost)
    if any(value.is_struck for row in (*screen.rows, *screen.more_rows) for value in row.values):
        yield "What stands in brackets cannot be right."
    yield from (f"({number}) {doubt}." for number, doubt in screen.doubts_of((*screen.rows, *screen.more_rows)))


def _rows(screen: Screen, rows: Sequence[ScreenRow], *, has_shares: bool, has_evidence: bool) -> Iterator[str]:
    for number, row in enumerate(rows):
        if number:
            yield r"    \addlinespace[2pt]"
        evidence = [[_marks(row) if screen.is_alone else _evidence(row)]] if has_evidence else []
        yield from _lines([*_cells(screen, row, has_shares=has_shares), *evidence])


def _cells(screen: Screen, row: ScreenRow, *, has_shares: bool) -> list[Lines]:
    """Return what a row says before its evidence."""
    values = [next((_value(one) for one in row.values if one.fabric == name), [NOTHING]) for _, name in screen.fabrics]
    if screen.is_alone:
        return [[row.what], *values, *([[row.values[0].share_in_full]] if has_shares else [])]
    if not screen.has_pairs:
        outcome = [row.ranking]
    else:
        outcome = [plain_times(row.ratios[0]), row.ratios[0].verdict] if row.ratios else [NOTHING]
    return [[row.what], *values, outcome]


def _placed(row: ScreenRow, name: str) -> Lines:
    """Return a fabric's level with its place, its interval below it."""
    value, place = row.value_of(name), row.place_of(name)
    level, *others = [NOTHING] if value is None else _value(value)
    return [f"{level} [{place}]" if place else level, *others]


def _value(value: Value) -> Lines:
    """Return a level, its interval below it, and below that what is to be said of it."""
    lines = [value.text, *([f"({value.interval})"] if value.interval else [])]
    return [*(f"[{line}]" if value.is_struck else line for line in lines), *([value.remark] if value.remark else [])]


def _evidence(row: ScreenRow) -> str:
    """Return the grade in a word, and the numbers of what speaks against the row."""
    return f"{row.grade.value} {_marks(row)}".rstrip()


def _marks(row: ScreenRow) -> str:
    """Return the numbers of what speaks against the row."""
    return " ".join(f"({number})" for number in row.doubts)


def _lines(cells: Sequence[Lines]) -> Iterator[str]:
    """Yield the lines of a row: intervals stand below what they are of, so that the table fits a page."""
    for texts in zip_longest(*cells, fillvalue=""):
        yield f"    {' & '.join(map(latex_text, texts))} \\\\"
