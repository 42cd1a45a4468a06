"""Crossed factors: what each of them does by itself, then whether it does the same at every level of the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from fabricbench.analysis.factors import Asked, factor_interactions_of, main_effects_of
from fabricbench.analysis.findings import CellKey, Findings, Interaction, InteractionVerdict, MainEffect, Replication
from fabricbench.analysis.material import Material
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, Records, Rows
from fabricbench.chapters.conditions import interaction_table
from fabricbench.quantity import count, enumeration
from fabricbench.report.words import factor_words, group_words, in_report_order, size_words
from fabricbench.table import Table, table

EFFECTS, INTERACTIONS = "factors", "factor-interactions"
METHOD = """
Crossed factors: the main effect of a level is its ratio to the first level of the same factor, in the geometric mean over the
settings of the other factors that were measured with both, each of which counts alike (a factorial design, Montgomery, Design and
Analysis of Experiments): {level} interval by Student's t on logarithms, of sides that were not measured together by Welch's, with
the run as the unit where sides have several; uncorrected. Verdicts are corrected over all main effects of this report (Benjamini
and Hochberg), with the margin of {margin}. Whether two factors do the same together is asked of the ratio of two effects, likewise.
"""
COLUMNS = (
    "Test",
    "Message",
    "Level over the first",
    "Of the other factor",
    "Effect at its first",
    "At the second",
    "Ratio of these",
    "Verdict",
)
COUNTED = {Replication.BLOCKS: "block", Replication.RUNS: "run", Replication.LAUNCHES: "launch"}


EFFECT_ROWS = Rows(EFFECTS, MainEffect)
INTERACTION_ROWS = Rows(INTERACTIONS, Interaction)


def find(material: Material) -> Found:
    """Return the main effects and the interactions of configurations that are crossed."""
    asked = Asked(material.sides, material.pairings, material.margin, material.confidence, material.level)
    return {EFFECTS: main_effects_of(asked), INTERACTIONS: factor_interactions_of(asked)}


def tables(findings: Findings) -> NamedTables:
    """Return the main effects, then the interactions."""
    return [
        ("What each factor does by itself", effect_table(findings)),
        (
            "Does a factor do the same at every level of the other?",
            interaction_table(findings, INTERACTION_ROWS, COLUMNS),
        ),
    ]


def effect_table(findings: Findings) -> Table:
    """A row for each level of each factor and each test."""
    effects = EFFECT_ROWS.of(findings)
    order = list(dict.fromkeys(one.factor for one in effects))
    rows = [
        (
            one.factor,
            f"{one.level} over {one.first}",
            group_words(one.key),
            size_words(one.key.message_bytes),
            factor_words(one.effect),
            verdict_words(one, findings.margin),
            count(one.launches, COUNTED[one.replication]),
        )
        for one in sorted(effects, key=lambda one: (order.index(one.factor), in_report_order(one.key)))
    ]
    return table(("Factor", "Level", "Test", "Message", "Times better", "Verdict", "Of"), rows, (3, 4, 6))


def verdict_words(one: MainEffect, margin: float) -> str:
    """Return what is shown of a main effect, and no more."""
    by = f"{100.0 * margin:g} %"
    match one.verdict:
        case InteractionVerdict.MORE:
            words = f"{one.level} faster, by over {by}"
        case InteractionVerdict.PERHAPS_MORE:
            words = f"{one.level} ahead, perhaps by less than {by}"
        case InteractionVerdict.LESS:
            words = f"{one.first} faster, by over {by}"
        case InteractionVerdict.PERHAPS_LESS:
            words = f"{one.first} ahead, perhaps by less than {by}"
        case InteractionVerdict.SAME:
            words = f"the same within {by}"
        case InteractionVerdict.OPEN:
            words = "not shown either way"
        case _:
            assert_never(one.verdict)
    return words + (f"; {one.doubt}" if one.doubt else "")


def lines(findings: Findings) -> Sequence[str]:
    """Return what each level does in the first screen's tests and in how many of all, and what the interactions come to."""
    effects = EFFECT_ROWS.of(findings)
    levels: dict[tuple[str, str], list[MainEffect]] = {}
    for one in effects:
        levels.setdefault((one.factor, one.level), []).append(one)
    leading = {one.key: one.what for one in findings.headline.effects if one.is_typical}
    told = [f"{factor[0].upper()}{factor[1:]}: {_level_words(mine, leading)}." for (factor, _), mine in levels.items()]
    if any(one.replication is Replication.LAUNCHES for one in effects):
        told.append("Where a side has one run, what else differed between the sessions is in these effects too.")
    found = INTERACTION_ROWS.of(findings)
    if found:
        differ = sum(one.verdict in (InteractionVerdict.MORE, InteractionVerdict.LESS) for one in found)
        same = sum(one.verdict is InteractionVerdict.SAME for one in found)
        told.append(
            f"Of {count(len(found), 'interaction')} {differ} are shown beyond the margin, {same} to be within it: where one is "
            "shown, the factor's own effect is a mean of unlike ones."
        )
    return told


def _level_words(effects: Sequence[MainEffect], leading: Mapping[CellKey | None, str]) -> str:
    """Return `gige against myrinet, with A and B: MPI round trip, 64 B: 0.5 × (0.49 to 0.51); slower in 24 of 24 tests`."""
    one = effects[0]
    by_key = {each.key: each for each in effects}
    quoted = [f"{what}: {factor_words(by_key[key].effect)}" for key, what in leading.items() if key in by_key]
    faster = sum(each.verdict is InteractionVerdict.MORE for each in effects)
    slower = sum(each.verdict is InteractionVerdict.LESS for each in effects)
    same = sum(each.verdict is InteractionVerdict.SAME for each in effects)
    kinds = {"faster": faster, "slower": slower, "the same": same}
    told = [f"{words} in {number}" for words, number in kinds.items() if number] or ["nothing shown in any"]
    counted = f"{enumeration(told)} of {count(len(effects), 'test')}"
    return f"{one.level} against {one.first}, with {enumeration(list(one.among))}: {'; '.join([*quoted, counted])}"


def records(findings: Findings) -> Records:
    """Return the rows for CSV files."""
    return {name: findings.chapters.get(name, ()) for name in (EFFECTS, INTERACTIONS)}


CHAPTER = Chapter(
    name=EFFECTS,
    title="Crossed factors",
    needs="configurations that differ in two traits or more, each level of one measured with the levels of another",
    find=find,
    method=METHOD,
    tables=tables,
    lines=lines,
    records=records,
    leads=True,
)
