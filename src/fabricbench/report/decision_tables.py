"""The decision in words and tables: who is first over all that was weighed, what it costs, where it pays, how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fabricbench.analysis.findings import (
    BreakEven,
    BreakEvenKind,
    DecisionFindings,
    FabricScore,
    Findings,
    Interval,
)
from fabricbench.report.tables import Table, table
from fabricbench.report.words import NOTHING, factor_words, share_words

NEARLY_SURE = 0.99
"""Beyond this a probability is told as "above": the model of the scatter is not known any better."""

TESTS_NAMED = 2

WHAT_IT_IS_OF = "under the scatter of these blocks alone; that says nothing about other nodes or loads"


def decision_tables(findings: Findings) -> list[tuple[str, Table]]:
    """Return all tables of the section with their titles."""
    found = findings.decision
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
    found = findings.decision
    if found is None:
        return ()
    if not found.fabrics:
        left = "".join(f"; {one.what}: {one.why}" for one in found.left_out)
        return (f"Nothing can be decided: no test that is to be weighed has data on every fabric{left}.",)
    return (
        _first(found),
        *_cheapest(found),
        *(f"{_break_even(one, found)}." for one in found.break_evens),
        *(f"Left out for all fabrics: {one.what} ({one.why})." for one in found.left_out),
        *(f"{note[0].upper()}{note[1:]}." for note in found.notes),
    )


def _score_table(found: DecisionFindings) -> Table:
    reference = found.fabrics[0].fabric if found.fabrics else ""
    rows = [
        (
            one.fabric,
            _times(one.score, is_reference=one.fabric == reference),
            _places(one.places),
            _chance(one.probability_first),
            NOTHING if one.cost is None else _money(one.cost.total, found.currency),
            _times(one.cost_per_score, is_reference=one.fabric == reference),
            NOTHING if one.cost_places is None else _places(one.cost_places),
            _chance(one.probability_cheapest),
        )
        for one in found.fabrics
    ]
    columns = (
        "Fabric",
        f"Times {reference} (interval)",
        "Place",
        "First with probability",
        f"{_nodes(found)}",
        "Cost for the same work (interval)",
        "Place by cost",
        "Cheapest with probability",
    )
    made = table(columns, rows, range(1, 8))
    if any(one.cost is not None for one in found.fabrics):
        return made
    for column in (7, 6, 5, 4):
        made = made.without(column)
    return made


def _weight_table(found: DecisionFindings) -> Table:
    names = [one.fabric for one in found.fabrics]
    rows = [
        (one.what, share_words(one.share), *(factor_words(times) for times in one.times[1:])) for one in found.tests
    ]
    columns = ("Test", "Share of the weight", *(f"{name}, times {names[0]}" for name in names[1:]))
    return table(columns, rows, range(1, len(columns)))


def _break_even_table(found: DecisionFindings) -> Table:
    rows = [
        (one.fabric, one.against, _condition(one, found), _bounds(one, found), _now(one, found))
        for one in found.break_evens
    ]
    return table(
        ("Fabric", "Against", "Pays if" if _has_costs(found) else "Condition", "Interval", "Now"), rows, (3, 4)
    )


def _first(found: DecisionFindings) -> str:
    """Return who is first and how sure that is; those that no test separates are named together."""
    what = f"Over the {_count(len(found.tests), 'test')} weighed{'' if found.has_weights else ' (equally)'}"
    top = found.ranks[0]
    best = next(one for one in found.fabrics if one.fabric == top[0])
    if len(top) == 1:
        return f"{what} {best.fabric} is first{_by(best, found)}{_probably(best.probability_first)}."
    confidence = f"{found.confidence * 100:g} %"
    shown = f"; {best.fabric} is first{_probably(best.probability_first)}" if best.probability_first is not None else ""
    return f"{what} {_list(top)} share the first place: no test separates them at {confidence}{shown}."


def _by(best: FabricScore, found: DecisionFindings) -> str:
    """Return by how much, relative to the first fabric or, where that leads, by its lead on the next one."""
    reference = found.fabrics[0].fabric
    return "" if best.fabric == reference else f", {_times(best.score)} as good as {reference}"


def _cheapest(found: DecisionFindings) -> Iterable[str]:
    if not found.cost_ranks:
        return
    top = found.cost_ranks[0]
    best = next(one for one in found.fabrics if one.fabric == top[0])
    years = "" if found.years is None else f" over {found.years:g} years"
    work = f"For the same work {_nodes(found)[0].lower()}{_nodes(found)[1:]}{years}"
    if len(top) > 1:
        yield f"{work}: {_list(top)} cost the same as far as the data tell."
        return
    reference = found.fabrics[0].fabric
    beside = "" if best.fabric == reference else f" ({_times(best.cost_per_score)} the cost with {reference})"
    yield f"{work}: cheapest with {best.fabric}{beside}{_probably(best.probability_cheapest)}."


def _probably(probability: float | None) -> str:
    return "" if probability is None else f", with probability {_chance(probability)} {WHAT_IT_IS_OF}"


def _break_even(one: BreakEven, found: DecisionFindings) -> str:
    verb = "pays" if _has_costs(found) or one.kind is not BreakEvenKind.WEIGHT else "is ahead"
    bounds, now = _bounds(one, found), _now(one, found)
    inside = "; ".join(filter(lambda text: text != NOTHING, (bounds, f"now {now}" if now != NOTHING else NOTHING)))
    return f"{one.fabric} {verb} against {one.against} {_condition(one, found)}{f' ({inside})' if inside else ''}"


def _condition(one: BreakEven, found: DecisionFindings) -> str:
    match one.kind:
        case BreakEvenKind.NODE_PRICE if one.value.value == 0:
            return "whatever a node costs"
        case BreakEvenKind.NODE_PRICE:
            return f"if a node without it costs more than {_money(one.value.value, found.currency)}"
        case BreakEvenKind.FABRIC_PRICE:
            return f"if its price per node stays below {_money(one.value.value, found.currency)}"
        case BreakEvenKind.WEIGHT:
            named = [*one.tests[:TESTS_NAMED]]
            if len(one.tests) > TESTS_NAMED:
                named.append(f"{len(one.tests) - TESTS_NAMED} more")
            return f"if {_list(named)} have more than {share_words(one.value.value)} of the weight"


def _bounds(one: BreakEven, found: DecisionFindings) -> str:
    low, high = one.value.low, one.value.high
    if one.kind is BreakEvenKind.NODE_PRICE and high is None:
        return NOTHING if low is None else "the data do not exclude that it never does"
    if low is None or high is None:
        return NOTHING
    if one.kind is BreakEvenKind.WEIGHT:
        return f"{share_words(low)} to {share_words(high)}"
    if high == 0:
        return NOTHING
    return f"{_money(low, '')} to {_money(high, found.currency)}"


def _now(one: BreakEven, found: DecisionFindings) -> str:
    if one.now is None:
        return NOTHING
    return share_words(one.now) if one.kind is BreakEvenKind.WEIGHT else _money(one.now, found.currency)


def _has_costs(found: DecisionFindings) -> bool:
    return any(one.cost is not None for one in found.fabrics)


def _nodes(found: DecisionFindings) -> str:
    return f"Cost of {_count(found.nodes, 'node')}"


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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _list(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
