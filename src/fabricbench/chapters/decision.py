"""The decision: who is first over all that was weighed, what it costs, where it pays, how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fabricbench.analysis.change import is_change
from fabricbench.analysis.decide import find_decision
from fabricbench.analysis.findings import (
    Basis,
    BreakEven,
    BreakEvenKind,
    Counting,
    DecisionFindings,
    Findings,
    Interval,
    LeftOut,
)
from fabricbench.analysis.lost_launches import unequal_starts
from fabricbench.analysis.material import Material
from fabricbench.analysis.rows import choose_rows
from fabricbench.chapters.chapter import Chapter, Found, Records, Rows
from fabricbench.quantity import count, enumeration
from fabricbench.record.account import account_of
from fabricbench.report.words import NOTHING, factor_words, share_words
from fabricbench.table import Table, table

DECISION = Rows("decision", DecisionFindings)

NEARLY_SURE = 0.99
"""Beyond this a probability is told as "above": the model of the scatter is not known any better."""
TESTS_NAMED = 2
SHARES = (BreakEvenKind.TIME, BreakEvenKind.WEIGHT, BreakEvenKind.LEAD)
WHAT_IT_IS_OF = (
    "Intervals and probabilities are under the scatter of these {what} alone: they say nothing about other nodes or loads, and "
    "prices count as exact."
)


def find(material: Material) -> Found:
    """Weigh the leading rows of the first screen; before and after a change there is nothing to choose."""
    if is_change(material.pairings):
        return {}
    rows = [row.key for row in choose_rows(material.sides, material.ladder) if row.is_leading]
    found = find_decision(material.sides, material.decision, material.level, rows=rows)
    if found is not None:
        found = found.model_copy(update={"notes": (*_unequal(material), *found.notes)})
    return {DECISION.name: found}


def _unequal(material: Material) -> Iterable[str]:
    """Yield where starts were lost more often on one fabric than chance makes, which no score counts."""
    runs = {run.path: run for side in material.sides for run in side.runs}.values()
    for one in unequal_starts([account_of(run) for run in runs], material.confidence):
        worse, better = one.worse, one.better
        yield (
            f"{worse.lost} of {count(worse.starts, 'start')} on {worse.fabric} gave nothing, {better.lost} of {better.starts} on "
            f"{better.fabric}: more than chance makes, and scores and costs are of the others alone"
        )


def decision_tables(findings: Findings) -> list[tuple[str, Table]]:
    """Return all tables of the section with their titles."""
    found = DECISION.first_of(findings)
    if found is None:
        return []
    return [
        ("Score and cost", _score_table(found)),
        ("What was weighed", _weight_table(found)),
        ("Where it pays", _break_even_table(found)),
        ("Left out for all fabrics", table(("Test", "Why"), [(one.what, one.why) for one in found.left_out])),
    ]


def decision_lines(findings: Findings) -> tuple[str, ...]:
    """Return what the section says in sentences: who is first, who is cheapest, where it pays, what is missing."""
    found = DECISION.first_of(findings)
    if found is None:
        return ()
    if not found.fabrics:
        left = "".join(f"; {one.what}: {one.why}" for one in found.left_out)
        return (f"Nothing can be decided: no test that is to be weighed has data on every fabric{left}.",)
    return (
        _first(found),
        *_cheapest(found),
        *(f"{_break_even(one, found)}." for one in _told_break_evens(found)),
        *(f"Left out for all fabrics: {one.what} ({one.why})." for one in found.left_out if one not in _missing(found)),
        *(f"{note[0].upper()}{note[1:]}." for note in found.notes),
        WHAT_IT_IS_OF.format(what="runs" if found.are_runs else "blocks"),
    )


MOST_TOLD = 4
"""Fabrics of which every pair's break-even is told in a sentence; of more those of the first one, and the table has all."""


def _told_break_evens(found: DecisionFindings) -> list[BreakEven]:
    if found.missing_share:
        return []
    first = found.ranks[0][0] if len(found.fabrics) > MOST_TOLD else None
    return [one for one in found.break_evens if first in (None, one.fabric, one.against)]


def _score_table(found: DecisionFindings) -> Table:
    reference = found.fabrics[0].fabric if found.fabrics else ""
    rows = [
        (
            one.fabric,
            _times(one.score, is_reference=one.fabric == reference),
            _times(one.geometric, is_reference=one.fabric == reference),
            _places(one.places),
            _chance(one.probability_first),
            NOTHING if one.cost is None else _money(one.cost.total, found.currency),
            _times(one.cost_of_work, is_reference=one.fabric == reference),
            NOTHING if one.cost_places is None else _places(one.cost_places),
            _chance(one.probability_cheapest),
        )
        for one in found.fabrics
    ]
    columns = (
        "Fabric",
        f"{'Work in the same time' if found.basis is Basis.WORK else 'Geometric score'}, times {reference} (interval)",
        f"Geometric score, times {reference} (interval)",
        "Place",
        "First with probability",
        f"{_nodes(found)}",
        "Cost for the same work (interval)",
        "Place by cost",
        "Cheapest with probability",
    )
    made = table(columns, rows, range(1, 9))
    if not found.cost_ranks:
        for column in (8, 7, 6):
            made = made.without(column)
    if all(one.cost is None for one in found.fabrics):
        made = made.without(5)
    return made.without(2) if found.basis is Basis.GEOMETRIC or len(found.tests) == 1 else made


def _weight_table(found: DecisionFindings) -> Table:
    names = [one.fabric for one in found.fabrics]
    rows = [
        (one.what, share_words(one.share), *(factor_words(times) for times in one.times[1:])) for one in found.tests
    ]
    share = f"Share of {_whole(found)}"
    columns = ("Test", share[0].upper() + share[1:], *(f"{name}, times {names[0]}" for name in names[1:]))
    return table(columns, rows, range(1, len(columns)))


def _break_even_table(found: DecisionFindings) -> Table:
    rows = [
        (one.fabric, one.against, _condition(one, found), _bounds(one, found), _now(one, found))
        for one in found.break_evens
    ]
    return table(("Fabric", "Against", "Condition", "Interval", "Now"), rows, (3, 4))


def _first(found: DecisionFindings) -> str:
    """Return who is first and how sure that is; those that no test separates are named together."""
    what = _what_counts(found)
    unbeaten = {one.fabric for one in found.fabrics if one.places[0] == 1}
    top = tuple(dict.fromkeys(name for tier in found.ranks for name in tier if name in unbeaten)) or found.ranks[0]
    reference = found.fabrics[0].fabric
    best = next(one for one in found.fabrics if one.fabric == top[0])
    probably = _probably(best.probability_first)
    if found.missing_share:
        return _over_the_rest(found, top)
    if len(top) == 1:
        beside = "" if best.fabric == reference else f", {factor_words(best.score)} {_as_good(found)} {reference}"
        return f"{what} {best.fabric} is first{probably}{beside}."
    also = f"; {best.fabric} is first{probably}" if probably else ""
    return f"{what} {enumeration(top)} share the first place, no test separates them at {found.confidence * 100:g} %{also}."


def _what_counts(found: DecisionFindings) -> str:
    """Return over what a fabric is first: how the tests count, which is of time or of a geometric score."""
    tests, first = count(len(found.tests), "test"), found.fabrics[0].fabric
    if len(found.tests) == 1:
        return f"In {found.tests[0].what}"
    if found.basis is Basis.GEOMETRIC:
        return f"By the geometric score of the {tests} weighed{'' if found.has_weights else ' equally'}"
    match found.counting:
        case Counting.RUNS:
            return f"Over the runs of the {tests} weighed"
        case Counting.SHARE_OF_TIME:
            return f"Over the {tests}, by their shares of the time on {first},"
        case Counting.EQUAL_TIME | Counting.SCORE:
            return f"Over the {tests}, each the same share of the time on {first},"


def _as_good(found: DecisionFindings) -> str:
    return "as much work in the same time as" if found.basis is Basis.WORK else "as good as"


def _whole(found: DecisionFindings) -> str:
    """Return what shares are of."""
    if found.basis is Basis.GEOMETRIC or not found.fabrics:
        return "the weight"
    return f"the time on {found.fabrics[0].fabric}"


def _missing(found: DecisionFindings) -> list[LeftOut]:
    """Return the first tests whose weight has no data, which the first line names."""
    missing = [one for one in found.left_out if one.share is not None or not found.has_weights]
    return missing[:TESTS_NAMED] if found.missing_share else []


def _over_the_rest(found: DecisionFindings, top: Sequence[str]) -> str:
    """Return what the scores come to where a part of the weight has no data: nobody is first over all."""
    named = "; ".join(f"{one.what} ({one.why})" for one in _missing(found))
    more = len([one for one in found.left_out if one.share is not None or not found.has_weights]) - TESTS_NAMED
    others = f" and {more} more" if more > 0 else ""
    ahead = f"{enumeration(top)} {'is' if len(top) == 1 else 'are'} ahead"
    return (
        f"No fabric is first: {share_words(found.missing_share)} of the weight has no data, {named}{others}. Over the other "
        f"{share_words(1.0 - found.missing_share)} alone, in {count(len(found.tests), 'test')}, {ahead}."
    )


def _cheapest(found: DecisionFindings) -> Iterable[str]:
    if not found.cost_ranks:
        return
    if found.missing_share:
        yield "Nor is it known with which fabric the same work is cheapest: that rests on the whole weight."
        return
    top, reference = found.cost_ranks[0], found.fabrics[0].fabric
    best = next(one for one in found.fabrics if one.fabric == top[0])
    probably = _probably(best.probability_cheapest)
    years = "" if found.years is None else f" and {found.years:g} years of power"
    if len(top) > 1:
        also = f"; {best.fabric} is cheapest{probably}" if probably else ""
        yield f"No test separates what the same work costs with {enumeration(top)}{also}."
        return
    beside = f", {factor_words(best.cost_of_work)} what it costs with {reference}"
    if best.fabric == reference:
        faster = next(one for one in found.fabrics if one.fabric == _leading(found, reference))
        beside = f"; with {faster.fabric} it costs {factor_words(faster.cost_of_work)} as much"
    yield f"The same work is cheapest with {best.fabric}{probably}{beside} ({count(found.nodes, 'node')}{years})."


def _leading(found: DecisionFindings, reference: str) -> str:
    """Return the best fabric by its score beside the first one."""
    return next(name for rank in found.ranks for name in rank if name != reference)


def _probably(probability: float | None) -> str:
    return "" if probability is None else f" with probability {_chance(probability)}"


def _break_even(one: BreakEven, found: DecisionFindings) -> str:
    bounds, now = _bounds(one, found), _now(one, found)
    inside = "; ".join(filter(None, ("" if bounds == NOTHING else bounds, "" if now == NOTHING else f"now {now}")))
    return f"{one.fabric} against {one.against} {_condition(one, found)}{f' ({inside})' if inside else ''}"


def _condition(one: BreakEven, found: DecisionFindings) -> str:
    value = one.value.value
    match one.kind:
        case BreakEvenKind.NODE_PRICE:
            above = _money(value, found.currency)
            return "pays whatever a node costs" if value == 0 else f"pays if a node without it costs more than {above}"
        case BreakEvenKind.FABRIC_PRICE:
            return f"pays if its price per node stays below {_money(value, found.currency)}"
        case BreakEvenKind.TIME:
            share = share_words(value)
            return f"pays if more than {share} of a job's time on {one.against} goes as the network tests do"
        case BreakEvenKind.WEIGHT | BreakEvenKind.LEAD:
            named = [*one.tests[:TESTS_NAMED]]
            if len(one.tests) > TESTS_NAMED:
                named.append(f"{len(one.tests) - TESTS_NAMED} more")
            verb, have = (
                "pays" if one.kind is BreakEvenKind.WEIGHT else "is ahead",
                "has" if len(named) == 1 else "have",
            )
            of_what = "the weight" if found.basis is Basis.GEOMETRIC else f"the time on {one.against}"
            return f"{verb} if {enumeration(named)} {have} more than {share_words(value)} of {of_what}"


def _bounds(one: BreakEven, found: DecisionFindings) -> str:
    low, high = one.value.low, one.value.high
    if one.kind in (BreakEvenKind.NODE_PRICE, BreakEvenKind.TIME) and high is None:
        return NOTHING if low is None else "the data do not exclude that it never does"
    if low is None or high is None:
        return NOTHING
    if one.kind in SHARES:
        return f"{share_words(low)} to {share_words(high)}"
    if high == 0:
        return NOTHING
    return f"{_money(low, '')} to {_money(high, found.currency)}"


def _now(one: BreakEven, found: DecisionFindings) -> str:
    if one.now is None:
        return NOTHING
    return share_words(one.now) if one.kind in SHARES else _money(one.now, found.currency)


def _nodes(found: DecisionFindings) -> str:
    return f"Cost of {count(found.nodes, 'node')}"


def _times(times: Interval | None, *, is_reference: bool = False) -> str:
    return "1 (reference)" if is_reference and times is not None else factor_words(times)


def _places(range_: tuple[int, int]) -> str:
    best, worst = range_
    return str(best) if best == worst else f"{best} to {worst}"


def _chance(probability: float | None) -> str:
    if probability is None:
        return NOTHING
    if probability > NEARLY_SURE:
        return f"above {NEARLY_SURE}"
    return f"below {1 - NEARLY_SURE:.2f}" if probability < 1 - NEARLY_SURE else f"{probability:.2f}"


def _money(amount: float, currency: str) -> str:
    """Return an amount as prices are written: no cents beyond a hundred."""
    text = f"{amount:,.0f}" if amount >= 100 else f"{amount:.2f}"
    return f"{text} {currency}".strip()


def _no_records(findings: Findings) -> Records:
    """Return none: its parts are of too many kinds for a file of rows, and JSON has them."""
    del findings
    return {}


CHAPTER = Chapter(
    name="decision",
    title="Decision",
    needs="two fabrics or more that were measured alike; weights and prices by [decision] of the campaign",
    find=find,
    tables=decision_tables,
    records=_no_records,
    lines=decision_lines,
)
