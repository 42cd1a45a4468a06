"""The first screen as words, ready to be set: what page, terminal and Markdown show, told once for all three.

Adds no number and draws no conclusion: `Findings.headline` holds both. What differs between the forms is only where things stand.
Warnings as a reader meets them are here too: the gravest first, and what several subjects share said once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import pairwise

from fabricbench.analysis.findings import (
    Caution,
    Changes,
    Doubt,
    Effect,
    Evidence,
    Findings,
    Grade,
    Interval,
    Letter,
    PairEffect,
    Reading,
    Replication,
    Severity,
    Strength,
    together,
)
from fabricbench.chapters.decision import decision_lines
from fabricbench.model import Metric
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.report.losses import losses_of
from fabricbench.report.reach import reach_words
from fabricbench.report.words import (
    NOTHING,
    counted,
    interval_parts,
    outcome_words,
    ratio_words,
    share_interval_parts,
    step_words,
    typographic,
    wire_remark,
)
from fabricbench.table import Table, table

GRADE_SIGNS = {Grade.CLEAR: "✓", Grade.DOUBTFUL: "▲", Grade.ALARM: "‼", Grade.OPEN: "○", Grade.VOID: "✕"}
"""A shape beside each grade's word, for print without colour."""
LEVEL, TAIL_LEVEL = "geometric mean", "median"
"""Of launches: what the values of a row are, as in the size tables, and those of a row of p99 or p99.9."""
DECISION_LINES = 3
"""Of a decision on the first screen; the rest stands in its section."""
BEFORE_AFTER = ("before", "after")
LOST = "LOST"
"""Heads what was lost, in every form."""
OF_LINE_RATE = "Of line rate"
"""Heads the shares of one fabric, in every form."""
MOST_ABREAST = 4
"""Fabrics that have a column each; of more each has a line."""
TIE, WORSE = "~", ">"
"""Between two fabrics in their order: not told apart by any test, and told apart."""


@dataclass(frozen=True)
class Value:
    """What one fabric showed in a row. A value that cannot be right `is_struck`; `remark` says why beside it."""

    fabric: str
    text: str
    interval: str
    is_struck: bool
    remark: str
    reading: Reading
    share: str = ""
    """Of the line rate, where nothing stands beside the fabric to be measured by: with the interval `share_interval`."""
    share_interval: str = ""

    @property
    def share_in_full(self) -> str:
        """The share with its interval."""
        return f"{self.share} ({self.share_interval})" if self.share_interval else self.share or NOTHING


@dataclass(frozen=True)
class Ratio:
    """Two fabrics in a row, seen from the one that leads: `times`, `interval`, and the verdict in words."""

    fabric_a: str
    fabric_b: str
    leader: str | None
    strength: Strength
    times: str
    interval: str
    verdict: str
    words: str

    @property
    def is_ahead(self) -> bool:
        """Whether who leads may do so by less than matters."""
        return self.strength is Strength.AHEAD


class Topic(Enum):
    """Which part of a report has more of an effect."""

    WORKLOADS = auto()
    OPERATIONS = auto()
    SIZES = auto()
    SAMPLES = auto()


@dataclass(frozen=True)
class ScreenRow:
    """One effect. `doubts` are numbers into `Screen.doubts`, of which what differs in figures only shares one.

    `ranks` tell the order where there are more than two fabrics.
    """

    what: str
    values: tuple[Value, ...]
    ratios: tuple[Ratio, ...]
    ranks: tuple[tuple[str, ...], ...]
    grade: Grade
    doubts: tuple[int, ...]
    is_undecided: bool
    """No fabric leads: grey wherever it is drawn."""
    topic: Topic

    @property
    def ranking(self) -> str:
        """The fabrics from the best on: `myrinet > atm ~ fast-ethernet`."""
        return " ".join(f"{name} {sign}".strip() for name, sign in self.order) or NOTHING

    @property
    def order(self) -> tuple[tuple[str, str], ...]:
        """Each fabric once, the best first, with what stands between it and the next: whether a test told the two apart."""
        names = list(dict.fromkeys(name for tier in self.ranks for name in tier))
        signs = [
            TIE if any({one, other} <= set(tier) for tier in self.ranks) else WORSE for one, other in pairwise(names)
        ]
        return tuple(zip(names, [*signs, ""][: len(names)], strict=True))

    def value_of(self, fabric: str) -> Value | None:
        """Return what a fabric showed; None where it has none of this row."""
        return next((value for value in self.values if value.fabric == fabric), None)

    def place_of(self, fabric: str) -> str:
        """Return the places that a fabric may have, by the pairs that a test told apart: `2`, or `2-4`; empty without pairs."""
        mine = [one for one in self.ratios if fabric in (one.fabric_a, one.fabric_b)]
        decided = [one.leader for one in mine if one.leader is not None and not one.is_ahead]
        first, last = 1 + sum(one != fabric for one in decided), 1 + len(mine) - decided.count(fabric)
        return "" if not mine else str(first) if first == last else f"{first}-{last}"

    @property
    def sign(self) -> str:
        """The grade's shape."""
        return GRADE_SIGNS[self.grade]

    @property
    def marks(self) -> str:
        """`[1, 2]`: which of the doubts below the table it has."""
        return f"[{', '.join(map(str, self.doubts))}]" if self.doubts else ""

    @property
    def grade_words(self) -> str:
        """`▲ doubtful [1, 2]`: the grade with its shape, and its marks."""
        return f"{self.sign} {self.grade.value} {self.marks}".rstrip()


@dataclass(frozen=True)
class Screen:
    """All of it, from the answer down to how to get the same numbers again."""

    lost: tuple[str, ...]
    """What of the runs was lost, the gravest first: above everything else, and empty where nothing was."""
    sentence: str
    exceptions: str
    evidence: tuple[str, ...]
    evidence_in_full: tuple[str, ...]
    """The same with the doubts behind it, for where no table has them below."""
    in_doubt: bool
    fabrics: tuple[tuple[str, str], ...]
    """The letter and the name of each."""
    level: str
    """What the values are, of tails as well where there are any: `geometric mean (p99: median)`."""
    ratio_head: str
    interval_head: str
    """Heads the intervals of the values where these stand in a column: `95 % interval`."""
    rows: tuple[ScreenRow, ...]
    more_rows: tuple[ScreenRow, ...]
    doubts: tuple[str, ...]
    changes: tuple[str, ...]
    """Before and after: what differs in the configurations, a line each; `counts` follows them."""
    counts: str
    detail: str
    decision: tuple[str, ...]
    """What the weights and prices come to, where the reader gave any: who is first, who is cheapest, what it would take."""
    where: str
    next_steps: tuple[str, ...]
    reproduce: tuple[str, ...]
    conditions: str
    reach: tuple[str, ...]
    """What was not measured, and the round trips as other programs tell them."""
    system: str
    """What it was measured on, in a line below the title."""

    @property
    def has_pairs(self) -> bool:
        """Whether there are two fabrics, whose ratio has room in the row; of more, a ranking stands there."""
        return len(self.fabrics) == 2

    @property
    def is_alone(self) -> bool:
        """Whether there is one fabric, which nothing is compared with: rows have no verdict, and no evidence for one."""
        return len(self.fabrics) == 1

    @property
    def is_turned(self) -> bool:
        """Whether there are so many fabrics that each has a line, with its place in every effect, and effects are columns."""
        return len(self.fabrics) > MOST_ABREAST

    def turned(self, rows: Sequence[ScreenRow], *, has_intervals: bool = False) -> Table:
        """Return rows as columns, a line for each fabric, and below them the evidence of each."""
        lines = [
            (f"{letter} {name}", *(_with_place(row, name, has_interval=has_intervals) for row in rows))
            for letter, name in self.fabrics
        ]
        evidence = ("Evidence", *(row.grade_words for row in rows))
        columns = (f"{self.level} [place]", *(row.what for row in rows))
        return table(columns, [*lines, evidence], range(1, len(columns)))

    def has_shares(self, rows: Sequence[ScreenRow]) -> bool:
        """Whether any of these rows has a share of the line rate, which then stands in a column of its own."""
        return any(value.share for row in rows for value in row.values)

    def doubts_of(self, rows: Sequence[ScreenRow], told: Sequence[ScreenRow] = ()) -> tuple[tuple[int, str], ...]:
        """Return the doubts that rows are marked with, each with its number, but for those of rows that stand above them."""
        numbers = {number for row in rows for number in row.doubts} - {number for row in told for number in row.doubts}
        return tuple((number, self.doubts[number - 1]) for number in sorted(numbers))


def _with_place(row: ScreenRow, name: str, *, has_interval: bool) -> str:
    """Return `83.9 µs [1]`, or `83.9 µs (80 to 88) [1-2]`."""
    value, place = row.value_of(name), row.place_of(name)
    if value is None:
        return NOTHING
    text = f"({value.text})" if value.is_struck else value.text
    interval = f"({value.interval})" if has_interval and value.interval else ""
    return " ".join(filter(None, (text, interval, f"[{place}]" if place else "", value.remark)))


def build_screen(findings: Findings) -> Screen:
    """Return the first screen in words."""
    headline = findings.headline
    effects = (*headline.effects, *headline.more_effects)
    kinds: dict[object, list[Doubt]] = {}
    for doubt in dict.fromkeys(doubt for effect in effects for doubt in _told(effect)):
        kinds.setdefault(doubt.group, []).append(doubt)
    numbers = {kind: number for number, kind in enumerate(kinds, 1)}
    shown, folded = (
        tuple(_row(effect, numbers, findings.margin) for effect in some)
        for some in (headline.effects, headline.more_effects)
    )
    changes = headline.changes
    fabrics = tuple((fabric.letter, fabric.name) for fabric in findings.fabrics)
    if changes is not None and len(fabrics) > 2:  # a row each for every fabric, in the same two columns
        fabrics = tuple(zip("AB", BEFORE_AFTER, strict=True))
        shown, folded = (tuple(map(_in_two_columns, some)) for some in (shown, folded))
    return Screen(
        lost=tuple(map(typographic, losses_of(findings))),
        sentence=typographic(headline.sentence),
        exceptions=typographic("; ".join(headline.exceptions)),
        evidence=tuple(_evidence(line, numbers) for line in headline.evidence),
        evidence_in_full=tuple(map(_evidence_in_full, headline.evidence)),
        in_doubt=headline.in_doubt,
        fabrics=fabrics,
        level=_level(effects),
        ratio_head=_ratio_head(findings),
        interval_head=f"{findings.confidence * 100:g} % interval",
        rows=shown,
        more_rows=folded,
        doubts=tuple(typographic(together(some)) for some in kinds.values()),
        changes=tuple(map(typographic, changes.configuration)) if changes else (),
        counts=_changed_words(changes, findings.margin) if changes else "",
        detail=typographic(headline.detail),
        decision=tuple(map(typographic, decision_lines(findings)[:DECISION_LINES])),
        where=typographic(headline.where),
        next_steps=tuple(map(typographic, headline.next_steps)),
        reproduce=headline.reproduce,
        conditions=typographic(" ".join(filter(None, (headline.conditions, _unseen_words(effects))))),
        reach=tuple(map(typographic, reach_words(findings))),
        system=headline.system,
    )


def _told(effect: Effect) -> list[Doubt]:
    """Return what a row is marked with: of one that is open not what delayed it, which changes no verdict of it."""
    told = [*effect.doubts, *effect.losses]
    if effect.grade is not Grade.OPEN:
        return told
    return [one for one in told if one.is_loss or (effect.is_typical and one.delay_share is None)]


def _evidence(line: Evidence, numbers: Mapping[object, int]) -> str:
    """Return a line of evidence with the numbers of the doubts behind it, which stand below the table."""
    behind = sorted({number for doubt in line.doubts if (number := numbers.get(doubt.group))})
    return typographic(f"{line.words} [{', '.join(map(str, behind))}]" if behind else line.words)


def _evidence_in_full(line: Evidence) -> str:
    alike: dict[object, list[Doubt]] = {}
    for doubt in line.doubts:
        alike.setdefault(doubt.group, []).append(doubt)
    return typographic(" ".join((line.words, *([f"{'; '.join(map(together, alike.values()))}."] if alike else []))))


def _level(effects: Sequence[Effect]) -> str:
    has_tails = any(not one.is_typical and not one.is_mean for one in effects)
    return f"{LEVEL} (p99: {TAIL_LEVEL})" if has_tails else LEVEL


def _unseen_words(effects: Sequence[Effect]) -> str:
    """Return what the launches of rows that are clear may have missed."""
    shares = [one.unseen_share for one in effects if one.unseen_share is not None]
    if not shares:
        return ""
    return f"So few launches may have missed a slow mode of up to {100.0 * max(shares):.0f} % of a fabric's launches."


def _in_two_columns(row: ScreenRow) -> ScreenRow:
    """Return a row whose two sides are called before and after, whichever fabric they are of."""
    columns = {value.fabric: name for value, name in zip(row.values, BEFORE_AFTER, strict=True)}
    values = tuple(
        replace(one, fabric=columns[one.fabric], reading=one.reading.model_copy(update={"fabric": columns[one.fabric]}))
        for one in row.values
    )
    ratios = tuple(replace(one, leader=None if one.leader is None else columns[one.leader]) for one in row.ratios)
    return replace(row, values=values, ratios=ratios)


def _changed_words(changes: Changes, margin: float) -> str:
    """Return `3 slower · 30 same · 1 faster · 4 other, perhaps by less than 2 % · 2 unknown`."""
    counts = (
        (changes.slower, "slower"),
        (changes.same, "same"),
        (changes.faster, "faster"),
        *([(changes.ahead, f"other, perhaps by less than {100 * margin:g} %")] if changes.ahead else []),
        (changes.unknown, "unknown"),
    )
    return " · ".join(f"{number} {word}" for number, word in counts)


def _row(effect: Effect, numbers: Mapping[object, int], margin: float) -> ScreenRow:
    ratios = tuple(_ratio(pair, effect.metric, margin) for pair in effect.pairs)
    return ScreenRow(
        what=typographic(effect.what),
        values=tuple(_value(effect, reading) for reading in effect.readings),
        ratios=ratios,
        ranks=effect.ranks,
        grade=effect.grade,
        doubts=tuple(dict.fromkeys(numbers[doubt.group] for doubt in _told(effect))),
        is_undecided=len(effect.readings) > 1
        and (effect.grade in (Grade.OPEN, Grade.VOID) or all(ratio.leader is None for ratio in ratios)),
        topic=_topic(effect),
    )


def _topic(effect: Effect) -> Topic:
    if effect.layer is None:
        return Topic.WORKLOADS
    if not effect.is_typical:
        return Topic.SAMPLES
    is_operation = effect.key is not None and PATTERNS[effect.key.pattern].family is Family.OPERATION
    return Topic.OPERATIONS if is_operation else Topic.SIZES


def _ratio_head(findings: Findings) -> str:
    """Return what the ratios' intervals promise: of one run a side nothing beyond these two sessions."""
    if any(one.replication is Replication.LAUNCHES for one in findings.cells):
        return f"Ratio (these {'two ' if findings.headline.changes or len(findings.fabrics) == 2 else ''}sessions)"
    return f"Ratio (joint {findings.confidence * 100:g} %)"


def _value(effect: Effect, reading: Reading) -> Value:
    remark = wire_remark(is_impossible=reading.is_impossible, is_beyond_wire=reading.is_beyond_wire)
    if reading.value is None:
        return Value(reading.fabric, NOTHING, "", is_struck=False, remark=remark, reading=reading)
    whole = interval_parts(effect.metric, Interval(value=reading.value, low=reading.low, high=reading.high))
    value = Value(reading.fabric, whole.value, whole.interval, reading.is_impossible, remark, reading)
    if reading.share_of_line_rate is None:
        return value
    share = share_interval_parts(reading.share_of_line_rate)
    return replace(value, share=share.value, share_interval=share.interval)


def _ratio(pair: PairEffect, metric: Metric, margin: float) -> Ratio:
    whole = ratio_words(pair.times, pair.low, pair.high, is_of_a=pair.verdict.leader is Letter.A)
    return Ratio(
        fabric_a=pair.fabric_a,
        fabric_b=pair.fabric_b,
        leader=pair.verdict.of_leader(pair.fabric_a, pair.fabric_b),
        strength=pair.verdict.strength,
        times=whole.value,
        interval=whole.interval,
        verdict=outcome_words(pair.verdict, pair.fabric_a, pair.fabric_b, margin, pair.more_blocks_needed)
        + step_words(pair.verdict, metric, pair.printed_step),
        words=typographic(pair.words),
    )


def plain_times(ratio: Ratio) -> str:
    """Return `1.97 × (1.72 to 2.26)`."""
    return f"{ratio.times} ({ratio.interval})"


def count_words(warnings: Sequence[Caution]) -> str:
    """Return `1 invalid, 2 warnings, 3 notes`."""
    numbers = {severity: sum(one.severity is severity for one in warnings) for severity in Severity}
    plurals = {Severity.INVALID: "invalid", Severity.WARNING: "warnings", Severity.NOTE: "notes"}
    return ", ".join(
        counted(number, severity.value, plurals[severity]) for severity, number in numbers.items() if number
    )
