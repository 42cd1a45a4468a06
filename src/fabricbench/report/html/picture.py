"""The first screen as one picture to share: the answer, what is in doubt, each effect with its launches, how to get it again.

An SVG that stands alone. Its text is set here, in lines of a font whose letters are as wide as those of Arial; what stands in it is
`Screen`'s, as on the page.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from fabricbench.analysis.findings import Findings, Grade
from fabricbench.report.drawing.figure import LIGHT, PAPER_SANS
from fabricbench.report.first_screen import LOST, Screen, ScreenRow, Value, build_screen
from fabricbench.report.html.strips import WIDTH as STRIP_WIDTH
from fabricbench.report.html.strips import looks_of, strips_of
from fabricbench.report.palette import SHAPE_PATHS
from fabricbench.report.words import NOTHING, badge_words, set_for_page

WIDTH, EDGE, GAP = 1120.0, 32.0, 16.0
TEXT, SMALL, ANSWER = 14.0, 12.0, 24.0
LEADING = 1.35
LETTER, BOLD_LETTER = 0.52, 0.56
"""Width of a letter, in font sizes: a little more than the mean."""
WIDE_LETTER = 0.65
"""Of a bold one in other fonts, where the first of `PAPER_SANS` is not there."""
WHAT_WIDTH, OUTCOME_WIDTH, GRADE_WIDTH = 176.0, 216.0, 104.0
LEAST_VALUE_WIDTH = 144.0
"""Of a fabric's column, or of an effect's where each fabric has a line: with many of them the picture is wider."""
NAME_WIDTH = 240.0
"""Of fabrics that have a line each."""
LABEL_WIDTH, SWATCH_WIDTH = 96.0, 18.0
ALARM, CLEAR, BADGE, BADGE_TINT = "#a33a00", "#00795a", "#6b4e00", "#fbf1d5"
RULE = "#dedbd3"
SIGNS = {Grade.CLEAR: CLEAR, Grade.OPEN: LIGHT.muted}
SIGN_PATHS = {
    Grade.CLEAR: "M1 6l3.5 3.5L11 2",
    Grade.DOUBTFUL: "M6 1l5.5 10h-11z",
    Grade.ALARM: "M3.5 1v6M3.5 9v2M8.5 1v6M8.5 9v2",
    Grade.OPEN: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z",
    Grade.VOID: "M2 2l8 8M10 2l-8 8",
}
"""The shapes of `GRADE_SIGNS` as strokes: fonts lack some of them."""
STYLE = f"""
text {{ font-family: {PAPER_SANS}; fill: {LIGHT.text}; }}
.launch-axis {{ stroke: {RULE}; }} .launch-margin {{ fill: #808790; fill-opacity: 0.25; }} .launch-one {{ stroke: #808790; }}
.launch-nothing {{ stroke: {ALARM}; stroke-width: 1.5; fill: none; }}
"""


Line = tuple[str, float, str]
"""A text, its size, and what else an SVG may say of it."""


@dataclass
class _Sheet:
    """What is drawn so far, and how far down that reaches."""

    width: float
    parts: list[Markup] = field(default_factory=list)
    y: float = EDGE

    @property
    def text_width(self) -> float:
        """How long a line from edge to edge is."""
        return self.width - 2 * EDGE

    def words(
        self, text: str, x: float, y: float, size: float = TEXT, *, colour: str = LIGHT.text, look: str = ""
    ) -> None:
        """Set one line; `look` is what else an SVG may say of a text."""
        self.parts.append(
            Markup('<text x="{x:g}" y="{y:g}" font-size="{size:g}" style="fill:{colour}"{look}>{text}</text>').format(
                x=x,
                y=y,
                size=size,
                colour=colour,
                look=Markup(look),  # noqa: S704 - one of the constants below
                text=text,
            )
        )

    def lines(self, lines: Sequence[str], x: float, size: float = TEXT, **look: str) -> None:
        """Set lines one below the other, and go on below them."""
        for line in lines:
            self.words(line, x, self.y + size, size, **look)
            self.y += size * LEADING

    def column(self, lines: Iterable[Line], x: float, top: float, colour: str = LIGHT.text) -> float:
        """Set lines of their own sizes one below the other, the small ones muted, and return where they end."""
        for text, size, look in lines:
            self.words(text, x, top + size, size, colour=colour if size == TEXT else LIGHT.muted, look=look)
            top += size * LEADING
        return top

    def rule(self, colour: str = RULE) -> None:
        """Draw a line across."""
        self.parts.append(
            Markup('<path d="M{x:g} {y:g}H{end:g}" stroke="{colour}"/>').format(
                x=EDGE, y=self.y, end=self.width - EDGE, colour=colour
            )
        )


BOLD = ' font-weight="bold"'
RIGHT = ' text-anchor="end"'


def picture(findings: Findings) -> str:
    """Return the first screen as SVG."""
    screen = build_screen(findings)
    columns = _columns(screen)
    is_turned = screen.is_turned and bool(screen.rows)
    sheet = _Sheet(_turned_width(screen) if is_turned else columns.width)
    _head(sheet, findings, screen)
    if is_turned:
        _turned_table(sheet, findings, screen)
    elif screen.rows:
        _table(sheet, findings, screen, columns)
    for number, doubt in screen.doubts_of(screen.rows):
        sheet.lines(wrapped(f"[{number}] {doubt}", sheet.text_width, SMALL), EDGE, SMALL, colour=LIGHT.muted)
    sheet.y += GAP / 2
    for label, lines in (("DECIDE", screen.decision), ("NEXT", screen.next_steps), ("REPRODUCE", screen.reproduce)):
        _labelled(sheet, label, lines)
    height = sheet.y + EDGE / 2
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}">'
            '<title>{title}</title><style>{style}</style><rect width="100%" height="100%" fill="#ffffff"/>{parts}</svg>'
        ).format(
            width=sheet.width,
            height=height,
            title=screen.sentence,
            style=STYLE,
            parts=Markup().join(sheet.parts),
        )
    )


def wrapped(text: str, width: float, size: float, *, is_bold: bool = False, is_name: bool = False) -> list[str]:
    """Return the lines into which a text breaks in a width, in pixels; a number stays with its unit. Names may part at a hyphen."""
    letters = int(width / (size * (BOLD_LETTER if is_bold else LETTER)))
    return textwrap.wrap(set_for_page(text), max(8, letters), break_on_hyphens=is_name)


def _head(sheet: _Sheet, findings: Findings, screen: Screen) -> None:
    width = sheet.text_width
    title = f"{findings.title} · {findings.started[:10]}"
    sheet.words(title, EDGE, sheet.y + TEXT, colour=LIGHT.muted)
    _badges(sheet, badge_words(findings))
    sheet.y += TEXT * LEADING + 4
    sheet.lines(wrapped(screen.system, width, SMALL), EDGE, SMALL, colour=LIGHT.muted)
    for line in screen.lost:
        sheet.lines(wrapped(f"{LOST}: {line}", width, TEXT), EDGE, colour=ALARM, look=BOLD)
    sheet.y += 6
    sheet.lines(wrapped(screen.sentence, width, ANSWER, is_bold=True), EDGE, ANSWER, look=BOLD)
    sheet.y += 4
    if screen.exceptions:
        sheet.lines(wrapped(f"Except: {screen.exceptions}", width, TEXT), EDGE)
    for line in screen.evidence:
        colour = ALARM if screen.in_doubt else LIGHT.muted
        sheet.lines(wrapped(f"Evidence: {line}", width, TEXT), EDGE, colour=colour)
    for line in (*screen.changes, screen.counts):
        sheet.lines(wrapped(line, width, TEXT), EDGE)
    sheet.y += GAP / 2


def _badges(sheet: _Sheet, badges: Sequence[str]) -> None:
    """Draw what the numbers are in pills at the right edge, the last one outermost."""
    right = sheet.width - EDGE
    for words in reversed(badges):
        width = len(words) * SMALL * BOLD_LETTER + 20
        sheet.parts.append(
            Markup('<rect x="{x:g}" y="{y:g}" width="{width:g}" height="20" rx="10" fill="{fill}"/>').format(
                x=right - width, y=sheet.y - 2, width=width, fill=BADGE_TINT
            )
        )
        middle = ' text-anchor="middle"' + BOLD
        sheet.words(words, right - width / 2, sheet.y + 12.5, SMALL, colour=BADGE, look=middle)
        right -= width + 8


@dataclass(frozen=True)
class _Columns:
    """Where the columns of the table stand: the right edges of the values, the left ones of what follows them."""

    width: float
    values: tuple[float, ...]
    strip: float
    outcome: float
    grade: float

    @property
    def value_width(self) -> float:
        """How wide the column of a fabric is."""
        return (self.values[-1] - EDGE - WHAT_WIDTH) / len(self.values) - GAP


def _columns(screen: Screen) -> _Columns:
    number = len(screen.fabrics)
    left = EDGE + WHAT_WIDTH
    rest = GAP + (0.0 if screen.is_alone else STRIP_WIDTH + GAP + OUTCOME_WIDTH) + GRADE_WIDTH + EDGE
    width = max(WIDTH, left + number * LEAST_VALUE_WIDTH + rest)
    step = (width - rest - left) / max(number, 1)
    grade = width - EDGE - GRADE_WIDTH
    outcome = grade - OUTCOME_WIDTH
    values = tuple(left + step * (place + 1) for place in range(number))
    return _Columns(width, values, outcome - STRIP_WIDTH - GAP, outcome, grade)


def _table(sheet: _Sheet, findings: Findings, screen: Screen, columns: _Columns) -> None:
    looks, (strips, axis) = looks_of(findings, screen), strips_of(findings, screen)
    heads = [
        wrapped(name, columns.value_width - SWATCH_WIDTH, TEXT, is_bold=True, is_name=True)
        for _, name in screen.fabrics
    ]
    plot = [] if screen.is_alone else [(columns.strip, ["times better than", f"{screen.fabrics[0][1]} →", axis.words])]
    outcome = screen.ratio_head if screen.has_pairs else "Best first"
    plot += [] if screen.is_alone else [(columns.outcome + SWATCH_WIDTH, wrapped(outcome, OUTCOME_WIDTH, SMALL))]
    top = sheet.y
    for (_, name), lines, x in zip(screen.fabrics, heads, columns.values, strict=True):
        widest = max(len(line) for line in lines) * TEXT * WIDE_LETTER
        sheet.parts.append(_swatch(*looks[name], x - widest - 16, top + 2))
        for number, line in enumerate(lines):
            sheet.words(line, x, top + TEXT * (1 + LEADING * number), look=BOLD + RIGHT)
    level = wrapped(screen.level, WHAT_WIDTH - GAP, SMALL)
    for x, lines in ((EDGE, level), *plot, *([] if screen.is_alone else [(columns.grade, ["Evidence"])])):
        for number, line in enumerate(lines):
            sheet.words(line, x, top + SMALL * (1 + LEADING * number), SMALL, colour=LIGHT.muted)
    sheet.y = top + max(len(lines) for lines in (*heads, level, *(lines for _, lines in plot))) * TEXT * LEADING + 2
    sheet.rule(LIGHT.text)
    for row in screen.rows:
        _row(sheet, screen, row, columns, looks, strips[row.what])


def _row(
    sheet: _Sheet,
    screen: Screen,
    row: ScreenRow,
    columns: _Columns,
    looks: dict[str, tuple[str, str]],
    strip: Markup,
) -> None:
    top = sheet.y + 6
    colour = LIGHT.muted if row.is_undecided else LIGHT.text
    bottoms = [top]

    what = wrapped(row.what, WHAT_WIDTH - GAP, TEXT, is_bold=True)
    bottoms.append(sheet.column([(line, TEXT, BOLD) for line in what], EDGE, top))
    for (_, name), x in zip(screen.fabrics, columns.values, strict=True):
        found = next((value for value in row.values if value.fabric == name), None)
        bottoms.append(sheet.column(_value(found, columns.value_width), x, top, colour))
    if screen.is_alone:
        sheet.words(row.marks, columns.grade, top + TEXT - 1, SMALL, colour=LIGHT.muted)
    else:
        bottoms.append(sheet.column(_outcome(screen, row), columns.outcome + SWATCH_WIDTH, top, colour))
        sheet.parts.append(
            Markup('<g transform="translate({x:g} {y:g})">{strip}</g>').format(x=columns.strip, y=top, strip=strip)
        )
        bottoms.append(top + 13.0 * max(len(screen.fabrics) - 1, 1) + 4)
        _grade(sheet, row, columns.grade, top)
        leader = row.ratios[0].leader if screen.has_pairs and row.ratios else None
        if leader is not None and row.grade is not Grade.VOID:
            sheet.parts.append(_swatch(*looks[leader], columns.outcome, top + 1))
    sheet.y = max(bottoms) + 4
    sheet.rule()


def _turned_width(screen: Screen) -> float:
    return max(WIDTH, EDGE + NAME_WIDTH + len(screen.rows) * LEAST_VALUE_WIDTH + EDGE)


def _turned_table(sheet: _Sheet, findings: Findings, screen: Screen) -> None:
    """Draw a line for each fabric and a column for each effect, as the page does of many fabrics; below them the evidence."""
    looks, step = looks_of(findings, screen), (sheet.text_width - NAME_WIDTH) / len(screen.rows)
    ends = [EDGE + NAME_WIDTH + step * (place + 1) for place in range(len(screen.rows))]
    heads = [
        [(line, TEXT, BOLD + RIGHT) for line in wrapped(row.what, step - GAP, TEXT, is_bold=True)]
        for row in screen.rows
    ]
    level = [(line, SMALL, "") for line in wrapped(f"{screen.level} [place]", NAME_WIDTH - GAP, SMALL)]
    columns = zip((level, *heads), (EDGE, *ends), strict=True)
    sheet.y = max(sheet.column(lines, x, sheet.y) for lines, x in columns) + 4
    sheet.rule(LIGHT.text)
    for letter, name in screen.fabrics:
        top = sheet.y + 6
        sheet.parts.append(_swatch(*looks[name], EDGE, top + 1))
        words = wrapped(f"{letter} {name}", NAME_WIDTH - SWATCH_WIDTH - GAP, TEXT, is_bold=True, is_name=True)
        bottoms = [sheet.column([(line, TEXT, BOLD) for line in words], EDGE + SWATCH_WIDTH, top)]
        for row, x in zip(screen.rows, ends, strict=True):
            colour = LIGHT.muted if row.is_undecided else LIGHT.text
            bottoms.append(sheet.column(_value(row.value_of(name), step - GAP, row.place_of(name)), x, top, colour))
        sheet.y = max(bottoms) + 4
        sheet.rule()
    sheet.words("Evidence", EDGE, sheet.y + 6 + TEXT, look=BOLD)
    for row, x in zip(screen.rows, ends, strict=True):
        _grade(sheet, row, x - GRADE_WIDTH, sheet.y + 6)
    sheet.y += 6 + TEXT * LEADING + 4
    sheet.rule()


def _value(value: Value | None, width: float, place: str = "") -> Iterator[Line]:
    """Yield a value, which place it has, and what stands below it: its interval, and why it cannot be right."""
    if value is None:
        yield NOTHING, TEXT, RIGHT
        return
    struck = ' text-decoration="line-through"' if value.is_struck else ""
    yield set_for_page(f"{value.text} [{place}]" if place else value.text), TEXT, BOLD + RIGHT + struck
    share = f"{value.share_in_full} of the line rate" if value.share else ""
    for text in filter(None, (value.interval, share, value.remark)):
        yield from ((line, SMALL, RIGHT) for line in wrapped(text, width, SMALL))


def _outcome(screen: Screen, row: ScreenRow) -> Iterator[Line]:
    if not screen.has_pairs:
        yield from ((line, SMALL, "") for line in wrapped(row.ranking, OUTCOME_WIDTH - SWATCH_WIDTH - GAP, SMALL))
    elif not row.ratios:
        yield NOTHING, TEXT, ""
    else:
        ratio = row.ratios[0]
        yield set_for_page(ratio.times), TEXT, BOLD
        for text in (f"({ratio.interval})", "not to be used" if row.grade is Grade.VOID else ratio.verdict):
            yield from ((line, SMALL, "") for line in wrapped(text, OUTCOME_WIDTH - SWATCH_WIDTH - GAP, SMALL))


def _grade(sheet: _Sheet, row: ScreenRow, x: float, top: float) -> None:
    colour = SIGNS.get(row.grade, ALARM)
    sheet.parts.append(
        Markup(
            '<path d="{path}" transform="translate({x:g} {y:g})" fill="none" stroke="{colour}" stroke-width="1.8"/>'
        ).format(path=SIGN_PATHS[row.grade], x=x, y=top + 2, colour=colour)
    )
    sheet.words(f"{row.grade.value} {row.marks}".rstrip(), x + 18, top + TEXT - 1, SMALL, colour=colour)


def _swatch(colour: str, shape: str, x: float, y: float) -> Markup:
    return Markup('<path d="{path}" transform="translate({x:g} {y:g}) scale(0.75)" fill="{colour}"/>').format(
        path=SHAPE_PATHS[shape], x=x, y=y, colour=colour
    )


def _labelled(sheet: _Sheet, label: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    sheet.words(label, EDGE, sheet.y + SMALL, SMALL, colour=LIGHT.muted, look=BOLD)
    for line in lines:
        sheet.lines(wrapped(line, sheet.text_width - LABEL_WIDTH, SMALL), EDGE + LABEL_WIDTH, SMALL)
    sheet.y += 4
