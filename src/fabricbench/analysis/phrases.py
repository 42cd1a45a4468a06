"""Rows as phrases of a sentence: which are quoted, as what, how many times better, and how much of that there is room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log

from fabricbench.analysis.findings import Effect, Grade, Letter, PairEffect, WorkloadName
from fabricbench.analysis.rows import layer_name, probe_name
from fabricbench.analysis.wording import (
    FACTOR_FROM,
    factor_text,
    instead,
    size_text,
    times_better,
)
from fabricbench.model import Pattern
from fabricbench.patterns import PATTERNS

MOST_WORDS = 28
"""Of a sentence, whatever is quoted in it: who, in what, how many times, and the values behind two such ratios."""
SMALL_BYTES = 1024
"""Up to here a message is called small."""


def quotable(effects: Sequence[Effect]) -> list[Effect]:
    """Return what a sentence quotes: of applications the one that gains most, then a time, then a rate; of each the undoubted."""
    loads = _undoubted([one for one in effects if one.layer is None])
    times = _undoubted([one for one in effects if one.layer is not None and one.metric.is_time])
    rates = _undoubted([one for one in effects if one.layer is not None and not one.metric.is_time])
    most = [max(loads, key=lambda one: abs(_log_times(one)))] if loads else []
    least = [min(loads, key=lambda one: abs(_log_times(one)))] if len(loads) > 1 else []
    return [*most, *times[:1], *rates[:1], *least]


def _undoubted(effects: Sequence[Effect]) -> Sequence[Effect]:
    """Return those that are clear; where none is, those that are doubtful; all where none is even that."""
    by_grade = ([one for one in effects if one.grade is grade] for grade in (Grade.CLEAR, Grade.DOUBTFUL))
    return next(filter(None, by_grade), effects)


def _log_times(effect: Effect) -> float:
    return log(effect.pairs[0].times)


def is_or_seems(quoted: Sequence[Effect]) -> str:
    """Return `seems` where a row that the sentence quotes is in doubt: what it does not say shakes nothing of it."""
    return "seems" if any(one.grade in (Grade.DOUBTFUL, Grade.ALARM) for one in quoted[:2]) else "is"


def sentence_of(
    lead: str,
    leading: Sequence[Effect],
    quoted: Sequence[Effect],
    pairs: Callable[[Effect], PairEffect] = lambda one: one.pairs[0],
) -> str:
    """Return the lead with as many of the first two quoted rows as MOST_WORDS hold, the fuller phrase first."""
    phrases: list[tuple[str, ...]] = []
    for one, before in zip(quoted[:2], (None, *quoted), strict=False):
        phrases.append(_phrases(one, pairs(one), leading, None if before is None else (before, pairs(before))))
    options = (
        [f"{lead}: {first}, {second}." for first in phrases[0] for second in phrases[1]] if len(phrases) > 1 else []
    )
    options += [f"{lead}: {first}." for first in phrases[0]] if phrases else []
    return fitting(*options, f"{lead}.")


def fitting(*options: str) -> str:
    """Return the first sentence of no more than MOST_WORDS, the fullest comes first; the last one where none is."""
    return next((text for text in options if len(text.split()) <= MOST_WORDS), options[-1])


def _phrases(
    effect: Effect, pair: PairEffect, leading: Sequence[Effect], before: tuple[Effect, PairEffect] | None
) -> tuple[str, ...]:
    """Return a row in words, the fuller first: `small TCP messages 2.0 times quicker (64 instead of 130 µs)`.

    `before` is the row that was told before it in the same sentence: what both share goes without saying.
    """
    subject = subject_of(effect, leading)
    times = times_of(pair)
    how_much = times_better(effect.metric, times)
    if before is not None:
        subject = _subject_after(effect, before[0], subject)
        is_elliptic = min(times, times_of(before[1])) >= FACTOR_FROM
        how_much = factor_text(times) if is_elliptic else how_much
    numbers = numbers_of(effect, pair)
    return (f"{subject} {how_much} ({numbers})", f"{subject} {how_much}") if numbers else (f"{subject} {how_much}",)


def times_of(pair: PairEffect) -> float:
    """Return how many times better the side is that leads."""
    return exp(abs(log(pair.times)))


def _subject_after(effect: Effect, before: Effect, subject: str) -> str:
    """Return `streams` behind a row of the same layer."""
    if effect.key is None or before.layer is not effect.layer or effect.workload is not None:
        return subject
    return "streams" if subject == f"{layer_name(effect.key.layer)} streams" else subject


def subject_of(effect: Effect, leading: Sequence[Effect]) -> str:
    """Return the row as the subject of a phrase; an application with what tells it from other leading rows."""
    if effect.workload is not None and effect.workload.name:
        return _application(effect.workload, leading)
    key = effect.key
    if key is None:
        return effect.what
    if key.workload is not None:
        return key.workload.short
    layer, size = layer_name(key.layer), size_text(key.message_bytes)
    if key.pattern is Pattern.PINGPONG and not key.variant_words:
        return f"{'small' if key.message_bytes <= SMALL_BYTES else size} {layer} messages"
    if key.pattern is Pattern.STREAM and not key.variant_words:
        return f"{layer} streams"
    return f"{probe_name(key)} of {size}" if PATTERNS[key.pattern].has_size else probe_name(key)


def _application(one: WorkloadName, leading: Sequence[Effect]) -> str:
    """Return `app`, or `app n=100` where another leading row is of the same program with another `n`."""
    others = [row.workload.own for row in leading if row.workload is not None and row.workload.name == one.name]
    differing = [f"{name}={value}" for name, value in one.own.items() if any(own.get(name) != value for own in others)]
    return " ".join([one.name, *differing])


def numbers_of(effect: Effect, pair: PairEffect) -> str:
    """Return `64 instead of 130 µs` of a pair that is decided; nothing where its values are not known."""
    if pair.value_a is None or pair.value_b is None:
        return ""
    values = (pair.value_a, pair.value_b)
    better, worse = values if pair.verdict.leader is Letter.A else values[::-1]
    return instead(effect.metric, better, worse, unit=unit_of(effect))


def unit_of(effect: Effect) -> str:
    """Return the unit of a rate that an application is judged by; empty of everything else."""
    return effect.workload.unit if effect.workload is not None else ""
