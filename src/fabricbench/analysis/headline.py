"""The first screen: the rows, the answer that they give, what is in doubt.

How the answer is chosen (docs/dossier.md tells it to readers):

    1. rows are those of `effects`: applications, then the layers that programs talk through; layers below explain
    2. who wins four fifths of the leading rows takes the sentence, in absolute values; where rows speak for both, both are named
    3. "it depends on the size" leads only with a crossing in a layer that users meet, decided on both sides, measured closely
    4. exceptions follow, each decided within the error of all comparisons; breadth is claimed only where nothing is slower
    5. where the instrument is in doubt for what the sentence says, it says "seems"

1 is `effects`, 2 and 5 are `answer`, 3 and 4 are `single_sizes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import exp, log

import numpy as np

from fabricbench.analysis.answer import answer_of
from fabricbench.analysis.change import changed_name, changes_of, is_change
from fabricbench.analysis.comparing import Pairing
from fabricbench.analysis.effects import Compared, ErrorRates, Row, choose_rows, effect_of, error_rates, key_parts
from fabricbench.analysis.findings import Comparison, Effect, Grade, Headline
from fabricbench.analysis.measured import Side
from fabricbench.analysis.single_sizes import size_verdict
from fabricbench.analysis.wording import enumeration, percent
from fabricbench.model import Layer
from fabricbench.statistics.dependence import pooled_lag_one

MOST_NAMED = 2
"""Rows that a line of evidence names; each row carries its own mark as well."""
DEPENDENCE_LEVEL = 0.01
"""Chance of doubting blocks that do not depend on each other."""


def write_headline(compared: Compared) -> Headline:
    """Return the first screen but for what to do next and how to reproduce it, which only whoever knows the run can add."""
    rows = choose_rows(compared.sides, compared.ladder)
    found = len(compared.cells) + len(compared.curves)
    rates = error_rates(rows, len(compared.pairings), found, compared.confidence)
    effects = _effects(compared, rows, rates)
    rows = rows * (len(effects) // max(len(rows), 1))
    leading = [effect for row, effect in zip(rows, effects, strict=True) if row.is_leading]
    mildest = min((row.tail for row in rows if row.tail is not None), default=None)
    tails = [effect for row, effect in zip(rows, effects, strict=True) if row.tail is not None and row.tail == mildest]
    shown = [*leading, *tails]
    answer = answer_of(compared, leading, rates)
    in_doubt = any(one.grade in (Grade.DOUBTFUL, Grade.VOID) for one in answer.quoted)
    return Headline(
        sentence=answer.sentence,
        exceptions=answer.exceptions,
        detail=answer.detail,
        evidence=_evidence(shown),
        in_doubt=in_doubt,
        effects=tuple(shown),
        more_effects=tuple(one for one in effects if one not in shown),
        changes=changes_of(compared.pairings, compared.cells, lambda one: size_verdict(one, rates, compared.margin))
        if is_change(compared.pairings)
        else None,
    )


def _effects(compared: Compared, rows: Sequence[Row], rates: ErrorRates) -> list[Effect]:
    by_key = {(one.fabric_a, one.fabric_b, key_parts(one)): one for one in compared.cells}
    table = {
        (pairing.a.name, pairing.b.name, row.key): one
        for pairing in compared.pairings
        for row in rows
        if (one := by_key.get((pairing.a.name, pairing.b.name, key_parts(row.key)))) is not None
    }
    unrest, dependence = _unrest(compared.cells), dependence_of(compared)
    groups: list[tuple[Sequence[Side], Sequence[Pairing]]] = [(compared.sides, compared.pairings)]
    if is_change(compared.pairings):
        groups = [((pairing.a, pairing.b), (pairing,)) for pairing in compared.pairings]
    made = [
        _named(effect_of(row, sides, pairings, table, rates, compared.margin, compared.judge), pairings, len(groups))
        for sides, pairings in groups
        for row in rows
    ]
    return [_in_doubt(_weighed(one, unrest), dependence) for one in made]


def _named(effect: Effect, pairings: Sequence[Pairing], groups: int) -> Effect:
    """Return a row with the fabric that was changed, where several were."""
    if groups == 1:
        return effect
    return effect.model_copy(update={"what": f"{changed_name(pairings[0])}: {effect.what}"})


def dependence_of(compared: Compared) -> str:
    """Return in words that the ratios of neighbouring blocks resemble each other; empty where they do not, or nobody can tell.

    Then there are fewer independent blocks than intervals reckon with. Network cells are pooled, the order of blocks is exchanged.
    """
    found = []
    for pairing in compared.pairings:
        keys = [key for key in pairing.keys if key.layer is not Layer.MEMORY]
        if not pairing.is_paired or not keys:
            continue
        lag = pooled_lag_one(np.stack([pairing.log_ratios(key) for key in keys]), np.random.default_rng(1))
        if lag is not None and lag.p_value < DEPENDENCE_LEVEL / len(compared.pairings):
            found.append(lag.autocorrelation)
    if not found:
        return ""
    return (
        f"ratios of neighbouring blocks resemble each other (lag-1 correlation {max(found):.2f}): intervals are too narrow, "
        "measure again, or longer"
    )


def _in_doubt(effect: Effect, text: str) -> Effect:
    if not text or effect.grade in (Grade.OPEN, Grade.VOID):
        return effect
    return effect.model_copy(update={"grade": Grade.DOUBTFUL, "doubts": (*effect.doubts, text)})


def _unrest(cells: Sequence[Comparison]) -> float:
    """Return by how much memory, which no fabric changes, differs between the sides (log); 0 where it does not."""
    control = [one for one in cells if one.layer is Layer.MEMORY and one.verdict.leader]
    return max((abs(log(one.ratio)) for one in control), default=0.0)


def _weighed(effect: Effect, unrest: float) -> Effect:
    """Return an effect in doubt where it is no larger than what the machine itself changed by."""
    if effect.grade is not Grade.CLEAR or all(
        abs(log(pair.times)) > unrest for pair in effect.pairs if pair.verdict.leader
    ):
        return effect
    text = (
        f"the memory control differs by as much ({percent(exp(unrest) - 1)}): the machine changed between the launches"
    )
    return effect.model_copy(update={"grade": Grade.DOUBTFUL, "doubts": (*effect.doubts, text)})


def _evidence(effects: Iterable[Effect]) -> tuple[str, ...]:
    """Return what is in doubt, effects with the same doubt together, the impossible first."""
    grouped: dict[tuple[bool, str], list[tuple[str, str]]] = {}
    for one in effects:
        for doubt in one.doubts if one.grade in (Grade.DOUBTFUL, Grade.VOID) else ():
            grouped.setdefault((one.grade is not Grade.VOID, _kind(doubt)), []).append((one.what, doubt))
    return tuple(
        f"{'doubtful' if is_doubt else 'void'}: {_few(list(dict.fromkeys(what for what, _ in told)))}: {told[0][1]}"
        for (is_doubt, _), told in sorted(grouped.items(), key=lambda item: item[0][0])
    )


def _kind(doubt: str) -> str:
    """Return a doubt up to its first figure: what differs in figures only is said once, in those of the first row."""
    return re.split(r"\d", doubt, maxsplit=1)[0]


def _few(names: Sequence[str]) -> str:
    return (
        enumeration(names)
        if len(names) <= MOST_NAMED
        else f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
    )
