"""The first screen as words, ready to be set: what page, terminal and Markdown show, told once for all three.

Adds no number and draws no conclusion: `Findings.headline` holds both. What differs between the forms is only where things stand.
Warnings as a reader meets them are here too: the gravest first, and what several subjects share said once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fabricbench.analysis.findings import (
    Caution,
    Changes,
    Effect,
    Findings,
    Grade,
    Interval,
    PairEffect,
    Reading,
    Replication,
    Severity,
)
from fabricbench.chapters.decision import decision_lines
from fabricbench.quantity import with_ranges, without_numbers
from fabricbench.report.words import (
    NOTHING,
    counted,
    interval_words,
    outcome_words,
    ratio_words,
    spoken,
    typographic,
    value_words,
    wire_remark,
)

GRADE_SIGNS = {Grade.CLEAR: "✓", Grade.DOUBTFUL: "▲", Grade.OPEN: "○", Grade.VOID: "✕"}
"""A shape beside each grade's word, for print without colour."""
LEVEL = "geometric mean"
"""Of launches: what the values of a row are, as in the size tables; medians stand where their heads say so."""
DECISION_LINES = 3
"""Of a decision on the first screen; the rest stands in its section."""
BEFORE_AFTER = ("before", "after")
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


@dataclass(frozen=True)
class Ratio:
    """Two fabrics in a row, seen from the one that leads: `times`, `interval`, and the verdict in words."""

    fabric_a: str
    fabric_b: str
    leader: str | None
    is_ahead: bool
    times: str
    interval: str
    verdict: str
    words: str


@dataclass(frozen=True)
class Row:
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

    @property
    def sign(self) -> str:
        """The grade's shape."""
        return GRADE_SIGNS[self.grade]

    @property
    def grade_words(self) -> str:
        """`▲ doubtful [1, 2]`: the grade with its shape, and which of the doubts below the table it has."""
        numbers = f" [{', '.join(map(str, self.doubts))}]" if self.doubts else ""
        return f"{self.sign} {self.grade.value}{numbers}"


@dataclass(frozen=True)
class Screen:
    """All of it, from the answer down to how to get the same numbers again."""

    sentence: str
    exceptions: str
    evidence: tuple[str, ...]
    in_doubt: bool
    fabrics: tuple[tuple[str, str], ...]
    """The letter and the name of each."""
    ratio_head: str
    rows: tuple[Row, ...]
    more_rows: tuple[Row, ...]
    doubts: tuple[str, ...]
    changes: tuple[str, ...]
    """Before and after: what differs in the configurations, a line each; `counts` follows them."""
    counts: str
    detail: str
    decision: tuple[str, ...]
    """What the weights and prices come to, where the reader gave any: who is first, who is cheapest, what it would take."""
    next_steps: tuple[str, ...]
    reproduce: tuple[str, ...]
    conditions: str

    @property
    def has_pairs(self) -> bool:
        """Whether there are two fabrics, whose ratio has room in the row; of more, a ranking stands there."""
        return len(self.fabrics) == 2


def build_screen(findings: Findings) -> Screen:
    """Return the first screen in words."""
    headline = findings.headline
    effects = (*headline.effects, *headline.more_effects)
    kinds: dict[str, list[str]] = {}
    for doubt in dict.fromkeys(doubt for effect in effects for doubt in _doubts_of(effect)):
        kinds.setdefault(without_numbers(doubt), []).append(doubt)
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
        sentence=typographic(headline.sentence),
        exceptions=typographic("; ".join(headline.exceptions)),
        evidence=tuple(map(typographic, headline.evidence)),
        in_doubt=headline.in_doubt,
        fabrics=fabrics,
        ratio_head=_ratio_head(findings),
        rows=shown,
        more_rows=folded,
        doubts=tuple(map(with_ranges, kinds.values())),
        changes=tuple(map(typographic, changes.configuration)) if changes else (),
        counts=_changed_words(changes) if changes else "",
        detail=typographic(headline.detail),
        decision=tuple(map(typographic, decision_lines(findings)[:DECISION_LINES])),
        next_steps=tuple(map(typographic, headline.next_steps)),
        reproduce=headline.reproduce,
        conditions=typographic(headline.conditions),
    )


def _in_two_columns(row: Row) -> Row:
    """Return a row whose two sides are called before and after, whichever fabric they are of."""
    columns = {value.fabric: name for value, name in zip(row.values, BEFORE_AFTER, strict=True)}
    values = tuple(
        replace(one, fabric=columns[one.fabric], reading=one.reading.model_copy(update={"fabric": columns[one.fabric]}))
        for one in row.values
    )
    ratios = tuple(replace(one, leader=None if one.leader is None else columns[one.leader]) for one in row.ratios)
    return replace(row, values=values, ratios=ratios)


def _changed_words(changes: Changes) -> str:
    """Return `3 slower · 30 same · 1 faster · 2 unknown`."""
    counts = (
        (changes.slower, "slower"),
        (changes.same, "same"),
        (changes.faster, "faster"),
        (changes.unknown, "unknown"),
    )
    return " · ".join(f"{number} {word}" for number, word in counts)


def _row(effect: Effect, numbers: Mapping[str, int], margin: float) -> Row:
    ratios = tuple(_ratio(pair, margin) for pair in effect.pairs)
    return Row(
        what=typographic(effect.what),
        values=tuple(_value(effect, reading) for reading in effect.readings),
        ratios=ratios,
        ranks=effect.ranks,
        grade=effect.grade,
        doubts=tuple(dict.fromkeys(numbers[without_numbers(doubt)] for doubt in _doubts_of(effect))),
        is_undecided=effect.grade in (Grade.OPEN, Grade.VOID) or all(ratio.leader is None for ratio in ratios),
    )


def _ratio_head(findings: Findings) -> str:
    """Return what the ratios' intervals promise: of one run a side nothing beyond these two sessions."""
    if any(one.replication is Replication.LAUNCHES for one in findings.cells):
        return "Ratio (these two sessions)"
    return f"Ratio (joint {findings.confidence * 100:g} %)"


def _doubts_of(effect: Effect) -> list[str]:
    """Return what speaks against a row: the doubts of the effect, and what is noted of single fabrics."""
    notes = (f"{reading.fabric}: {reading.note}" for reading in effect.readings if reading.note)
    return list(dict.fromkeys(map(typographic, (*effect.doubts, *notes))))


def _value(effect: Effect, reading: Reading) -> Value:
    remark = wire_remark(is_impossible=reading.is_impossible, is_beyond_wire=reading.is_beyond_wire)
    if reading.value is None:
        return Value(reading.fabric, NOTHING, "", is_struck=False, remark=remark, reading=reading)
    whole = interval_words(effect.metric, Interval(value=reading.value, low=reading.low, high=reading.high))
    exact, _, interval = whole.partition(" (")
    text = value_words(effect.metric, reading.value)
    short = [value_words(effect.metric, one.value) for one in effect.readings if one.value is not None]
    if reading.low is not None and short.count(text) > 1:  # fewer digits would make different values look alike
        text = exact
    return Value(reading.fabric, text, interval.removesuffix(")"), reading.is_impossible, remark, reading)


def _ratio(pair: PairEffect, margin: float) -> Ratio:
    letter = pair.verdict.leader
    whole = ratio_words(pair.times, pair.low, pair.high, is_of_a=letter == "A")
    times, _, interval = whole.partition(" (")
    return Ratio(
        fabric_a=pair.fabric_a,
        fabric_b=pair.fabric_b,
        leader={"A": pair.fabric_a, "B": pair.fabric_b}.get(letter or ""),
        is_ahead=pair.verdict.is_ahead,
        times=times,
        interval=interval.removesuffix(")"),
        verdict=outcome_words(pair.verdict, pair.fabric_a, pair.fabric_b, margin, pair.more_blocks_needed),
        words=typographic(pair.words),
    )


def pair_rows(rows: Sequence[Row]) -> list[tuple[str, Ratio]]:
    """Return every pair of every row, where a ranking stands in its place on the first screen."""
    return [(row.what, ratio) for row in rows for ratio in row.ratios]


def plain_times(ratio: Ratio) -> str:
    """Return `1.97 × (1.72 to 2.26)`."""
    return f"{ratio.times} ({ratio.interval})"


@dataclass(frozen=True)
class WarningGroup:
    """One text, and all that it is about."""

    severity: Severity
    subjects: tuple[str, ...]
    text: str

    @property
    def subject(self) -> str:
        """The subjects in words; what they share after their first colon is said once."""
        heads, _, tails = zip(*(subject.partition(": ") for subject in self.subjects), strict=True)
        if len(set(tails)) == 1 and tails[0]:
            return f"{spoken(heads)}: {tails[0]}"
        if len(set(heads)) == 1 and all(tails):
            return f"{heads[0]}: {spoken(tails)}"
        return spoken(self.subjects)


def grouped(warnings: Sequence[Caution]) -> list[WarningGroup]:
    """Return the warnings by severity, the gravest first, equal texts together in the order of their first mention."""
    subjects: dict[tuple[Severity, str], dict[str, None]] = {}
    for warning in sorted(warnings, key=lambda warning: list(Severity).index(warning.severity)):
        subjects.setdefault((warning.severity, warning.text), {})[warning.subject] = None
    return [WarningGroup(severity, tuple(named), text) for (severity, text), named in subjects.items()]


def count_words(groups: Sequence[WarningGroup]) -> str:
    """Return `1 invalid, 2 warnings, 3 notes`."""
    numbers = {severity: sum(group.severity is severity for group in groups) for severity in Severity}
    plurals = {Severity.INVALID: "invalid", Severity.WARNING: "warnings", Severity.NOTE: "notes"}
    return ", ".join(
        counted(number, severity.value, plurals[severity]) for severity, number in numbers.items() if number
    )
