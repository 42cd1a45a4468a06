"""The answer in at most twenty words, for two fabrics, for more, for before and after: no more than the rows' intervals say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log

from fabricbench.analysis.change import is_change, name_of_change
from fabricbench.analysis.effects import Compared, ErrorRates
from fabricbench.analysis.findings import Effect, Grade, PairEffect, Replication, Verdict, WorkloadName
from fabricbench.analysis.rows import layer_name
from fabricbench.analysis.single_sizes import depends_text, exception_of, exceptions, leading_crossing, reach
from fabricbench.analysis.wording import enumeration, instead, percent, value_text
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES

REPLICATES = {
    Replication.BLOCKS: "whole pairs",
    Replication.RUNS: "runs on each side",
    Replication.LAUNCHES: "launches on each side",
}
"""What an interval between two fabrics, or of before and after, counts."""

MOST_WORDS = 20
SMALL_BYTES = 1024
"""Up to here a message is called small."""
WINNING_SHARE = 0.8
"""Of the leading rows: who wins so many takes the headline."""


@dataclass(frozen=True)
class Answer:
    """What a kind of question comes to: the sentence, the rows that it quotes, exceptions and reach."""

    sentence: str
    quoted: tuple[Effect, ...] = ()
    exceptions: tuple[str, ...] = ()
    detail: str = ""


def answer_of(compared: Compared, leading: Sequence[Effect], rates: ErrorRates) -> Answer:
    """Return what the leading rows come to."""
    if not compared.pairings:
        return _alone(leading)
    if not leading:
        names = enumeration([side.name for side in compared.sides])
        return Answer(f"Nothing that users meet was measured on all of {names}; what was is compared below.")
    if is_change(compared.pairings):
        return _change(compared, leading, rates)
    if len(compared.sides) == 2:
        return _two(compared, leading, rates)
    return _many(compared, leading, rates)


def _two(compared: Compared, leading: Sequence[Effect], rates: ErrorRates) -> Answer:
    a, b = (side.name for side in compared.sides)
    wins = {name: [one for one in leading if _winner(one) == name] for name in (a, b)}
    crossing = leading_crossing(compared, rates)
    if wins[a] and wins[b] and crossing is not None:
        return Answer(depends_text(crossing), (*wins[a], *wins[b]), (), reach(compared, None, rates))
    winner = max((a, b), key=lambda name: len(wins[name]))
    other = b if winner == a else a
    if not wins[winner]:
        return _unsettled(compared, leading, rates)
    quoted = _quotable(wins[winner])
    share = len(wins[winner]) / len(leading)
    if share < WINNING_SHARE and wins[other]:
        return _split(compared, leading, (winner, wins[winner]), (other, wins[other]), rates)
    extent = "" if share >= WINNING_SHARE else f" in {len(wins[winner])} of {len(leading)} effects"
    against = [exception_of(one, one.pairs[0]) for one in wins[other]]
    return Answer(
        _sentence(f"{winner} {_seems(quoted, wins[winner])} faster{extent}", leading, quoted),
        tuple(quoted[:2]),
        exceptions(compared, winner, rates, against),
        reach(compared, winner, rates),
    )


def _winner(effect: Effect) -> str | None:
    """Return who a row of two fabrics is decided for, by more than the margin; nobody where its numbers cannot be right."""
    if effect.grade is Grade.VOID or not effect.pairs or not effect.pairs[0].verdict.is_decided:
        return None
    pair = effect.pairs[0]
    return pair.fabric_a if pair.verdict.leader == "A" else pair.fabric_b


def _quotable(effects: Sequence[Effect]) -> list[Effect]:
    """Return what a sentence quotes: of applications the one that gains most, then a time, then a rate; of each the undoubted."""
    loads = _undoubted([one for one in effects if one.layer is None])
    times = _undoubted([one for one in effects if one.layer is not None and one.metric.is_time])
    rates = _undoubted([one for one in effects if one.layer is not None and not one.metric.is_time])
    most = [max(loads, key=lambda one: abs(_log_times(one)))] if loads else []
    least = [min(loads, key=lambda one: abs(_log_times(one)))] if len(loads) > 1 else []
    return [*most, *times[:1], *rates[:1], *least]


def _undoubted(effects: Sequence[Effect]) -> Sequence[Effect]:
    """Return those that are clear; all where none is."""
    return [one for one in effects if one.grade is Grade.CLEAR] or effects


def _log_times(effect: Effect) -> float:
    return log(effect.pairs[0].times)


def _seems(quoted: Sequence[Effect], winning: Sequence[Effect]) -> str:
    """Return `seems` where what is quoted is in doubt, or most of what the statement rests on."""
    doubtful = [one for one in winning if one.grade is Grade.DOUBTFUL]
    is_shaken = 2 * len(doubtful) > len(winning) or any(one.grade is Grade.DOUBTFUL for one in quoted[:2])
    return "seems" if is_shaken else "is"


def _sentence(
    lead: str,
    leading: Sequence[Effect],
    quoted: Sequence[Effect],
    pairs: Callable[[Effect], PairEffect] = lambda one: one.pairs[0],
) -> str:
    """Return the lead with as many of the first two quoted rows as twenty words hold, the fuller phrase first."""
    phrases = [_phrases(one, pairs(one), leading) for one in quoted[:2]]
    options = (
        [f"{lead}: {first}, {second}." for first in phrases[0] for second in phrases[1]] if len(phrases) > 1 else []
    )
    options += [f"{lead}: {first}." for first in phrases[0]] if phrases else []
    return next((text for text in options if len(text.split()) <= MOST_WORDS), f"{lead}.")


def _phrases(effect: Effect, pair: PairEffect, leading: Sequence[Effect]) -> tuple[str, ...]:
    """Return a row in words, the fuller first: `small TCP messages take 64.0 instead of 130 µs`."""
    subject, verb = _subject(effect, leading)
    numbers = _numbers(effect, pair)
    return (f"{subject} {verb} {numbers}", f"{subject} {numbers}") if numbers else ()


def _subject(effect: Effect, leading: Sequence[Effect]) -> tuple[str, str]:
    """Return the row as the subject of a sentence, and its verb; an application with what tells it from other leading rows."""
    name = effect.what.rpartition(": ")[2]  # without the fabric that was changed, which the sentence names
    what, _, size = name.partition(", ")
    if effect.workload is not None and effect.workload.name:
        return _application(effect.workload, leading), "takes" if effect.metric.is_time else "reaches"
    if effect.layer is None:
        return name.replace(" on ", ", ").split(",")[0], "takes"
    layer = layer_name(effect.layer)
    if what == f"{layer} round trip":
        is_small = size.endswith(" B") and int(size.removesuffix(" B")) <= SMALL_BYTES
        return (f"small {layer} messages" if is_small else f"{size} {layer} messages"), "take"
    if what == f"{layer} throughput":
        return f"{layer} streams", "reach"
    return name.replace(", ", " of "), "takes" if effect.metric.is_time else "reaches"


def _application(one: WorkloadName, leading: Sequence[Effect]) -> str:
    """Return `app`, or `app n=100` where another leading row is of the same program with another `n`."""
    others = [row.workload.own for row in leading if row.workload is not None and row.workload.name == one.name]
    differing = [f"{name}={value}" for name, value in one.own.items() if any(own.get(name) != value for own in others)]
    return " ".join([one.name, *differing])


def _split(
    compared: Compared,
    leading: Sequence[Effect],
    first: tuple[str, Sequence[Effect]],
    second: tuple[str, Sequence[Effect]],
    rates: ErrorRates,
) -> Answer:
    """Return the answer where rows speak for both: who is faster at what."""
    quoted = [_quotable(effects)[0] for _, effects in (first, second)]
    parts = [
        (name, _subject(one, leading)[0], _numbers(one, one.pairs[0]))
        for (name, _), one in zip((first, second), quoted, strict=True)
    ]
    lead = "Faster" if _seems(quoted, (*first[1], *second[1])) == "is" else "Seemingly faster"
    full = ", ".join(f"{name} for {subject} ({numbers})" for name, subject, numbers in parts)
    plain = ", ".join(f"{name} for {subject}" for name, subject, _ in parts)
    text = full if len(full.split()) < MOST_WORDS else plain
    return Answer(f"{lead}: {text}.", tuple(quoted), (), reach(compared, None, rates))


def _numbers(effect: Effect, pair: PairEffect) -> str:
    """Return `64.0 instead of 130 µs` of a pair that is decided; nothing where its values are not known."""
    if pair.value_a is None or pair.value_b is None:
        return ""
    leads_a = pair.verdict.leader == "A"
    better, worse = (pair.value_a, pair.value_b) if leads_a else (pair.value_b, pair.value_a)
    return instead(effect.metric, better, worse, unit=_unit(effect))


def _unit(effect: Effect) -> str:
    """Return the unit of a rate that an application is judged by; empty of everything else."""
    return effect.workload.unit if effect.workload is not None else ""


def _unsettled(compared: Compared, leading: Sequence[Effect], rates: ErrorRates) -> Answer:
    """Return the answer where no row is decided by more than the margin."""
    a, b = (side.name for side in compared.sides)
    usable = [one for one in leading if one.pairs and one.grade is not Grade.VOID]
    far = reach(compared, None, rates)
    if len(usable) == len(leading) and all(one.pairs[0].verdict is Verdict.EQUIVALENT for one in usable):
        return Answer(
            f"{b} and {a} are equivalent within {percent(compared.margin)} in what users meet.",
            tuple(leading),
            (),
            far,
        )
    ahead = [one for one in usable if one.pairs[0].verdict.is_ahead]
    leaders = {"A": a, "B": b}
    names = {leaders[str(one.pairs[0].verdict.leader)] for one in ahead}
    if len(names) == 1 and len(ahead) >= WINNING_SHARE * len(leading):
        quoted = _quotable(ahead)
        lead = f"{names.pop()} {_seems(quoted, ahead)} ahead, perhaps by less than {percent(compared.margin)}"
        return Answer(_sentence(lead, leading, quoted), tuple(quoted[:2]), (), far)
    none = all(one.p_value is None for one in compared.cells)
    few = _least(compared) if none else ""
    return Answer(f"Not enough data to say whether {b} or {a} is faster{few}.", (), (), far)


def _least(compared: Compared) -> str:
    """Return how many of what is compared any statement takes."""
    replication = compared.pairings[0].replication if compared.pairings else Replication.BLOCKS
    return f": it takes {MINIMUM_LAUNCHES} {REPLICATES[replication]} at least"


def _many(compared: Compared, leading: Sequence[Effect], rates: ErrorRates) -> Answer:
    names = [side.name for side in compared.sides]
    wins = {name: [one for one in leading if _beats_all(one, name)] for name in names}
    champion = max(names, key=lambda name: len(wins[name]))
    ranked = [one for one in leading if len(one.ranks) > 1 and one.grade is not Grade.VOID]
    orders = _orders(ranked)
    if len(wins[champion]) >= WINNING_SHARE * len(leading):
        quoted = _quotable(wins[champion])
        lead = f"{champion} {_seems(quoted, wins[champion])} fastest of {len(names)}"
        sentence = _sentence(lead, leading, quoted, lambda one: _next_pair(one, champion))
        return Answer(sentence, tuple(quoted[:2]), exceptions(compared, champion, rates, ()), orders)
    if not ranked:
        few = _least(compared) if all(one.p_value is None for one in compared.cells) else ""
        return Answer(f"Not enough data to rank {enumeration(names)}{few}.", (), (), "")
    texts = [f"{_subject(one, leading)[0]} on {enumeration(one.ranks[0])}" for one in ranked]
    options = ("; ".join(texts[:number]) for number in (3, 2, 1))
    text = next((one for one in options if len(one.split()) <= MOST_WORDS - 2), texts[0])
    return Answer(f"No single fastest: {text} lead.", tuple(ranked[:2]), (), orders)


def _beats_all(effect: Effect, name: str) -> bool:
    """Return whether a fabric won every one of its pairs in a row, by more than the margin."""
    mine = [one for one in effect.pairs if name in (one.fabric_a, one.fabric_b)]
    won = [
        one.verdict.is_decided and (one.fabric_a if one.verdict.leader == "A" else one.fabric_b) == name for one in mine
    ]
    return effect.grade is not Grade.VOID and len(mine) == len(effect.readings) - 1 and all(won)


def _next_pair(effect: Effect, champion: str) -> PairEffect:
    """Return the champion's pair with the next best."""
    second = effect.ranks[1][0]
    return next(one for one in effect.pairs if {one.fabric_a, one.fabric_b} == {champion, second})


def _orders(ranked: Sequence[Effect]) -> str:
    """Return each row's order from the best on, and which pairs no test told apart."""
    return " ".join(f"{one.what}: {order_text(one)}." for one in ranked)


def order_text(effect: Effect) -> str:
    """Return `b, then c, then a`, or `b, c, a; not told apart: b and c`."""
    order = list(dict.fromkeys(name for tier in effect.ranks for name in tier))
    alike = [f"{one.fabric_a} and {one.fabric_b}" for one in effect.pairs if not one.verdict.is_decided]
    return ", then ".join(order) if not alike else f"{', '.join(order)}; not told apart: {', '.join(alike)}"


def _change(compared: Compared, leading: Sequence[Effect], rates: ErrorRates) -> Answer:
    """Return what a change did: the largest effect on the worse side, else on the better one, and how far that can be said."""
    replication = compared.pairings[0].replication
    decided = [
        (one, pair) for one in leading for pair in one.pairs if pair.verdict.is_decided and one.grade is not Grade.VOID
    ]
    slower = [found for found in decided if found[1].verdict.leader == "A"]
    chosen = max(slower or decided, key=lambda found: abs(log(found[1].times)), default=None)
    tail = (
        "One run a side cannot tell a change from what else differed between the two sessions."
        if replication is Replication.LAUNCHES
        else ""
    )
    if chosen is None:
        is_same = all(
            one.pairs and one.grade is not Grade.VOID and all(pair.verdict is Verdict.EQUIVALENT for pair in one.pairs)
            for one in leading
        )
        said = (
            f"No change beyond {percent(compared.margin)} in what users meet"
            if is_same
            else "No change is shown, and none is ruled out"
        )
        return Answer(f"{said}.", (), (), tail)
    effect, pair = chosen
    subject, verb = _subject(effect, leading)
    past = {"take": "took", "takes": "took", "reach": "reached", "reaches": "reached"}[verb]
    before, after, unit = pair.value_a, pair.value_b, _unit(effect)
    numbers = (
        ""
        if before is None or after is None
        else f"{value_text(effect.metric, before, unit=unit)} before, {value_text(effect.metric, after, unit=unit)} after"
    )
    which = "slower" if pair.verdict.leader == "A" else "faster"
    name = name_of_change(compared.pairings, pair)
    ends = (pair.fabric_a, pair.fabric_b)
    alike = [
        found
        for found in decided
        if (found[1].fabric_a, found[1].fabric_b) == ends and found[1].verdict.leader == pair.verdict.leader
    ]
    of = sum({*ends} <= {reading.fabric for reading in one.readings} for one in leading)  # one of them may have none
    extent = "" if len(alike) >= WINNING_SHARE * of else f" in {len(alike)} of {of} effects"
    is_sure = _seems([effect], [one for one, _ in alike]) == "is"
    verb = ("measured" if tail else "became") if is_sure else "seems to have become"
    lead = f"{name} {verb} {which}{extent}"
    return Answer(
        f"{lead}: {subject} {past} {numbers}.",
        (effect,),
        (),
        " ".join(filter(None, (tail, reach(compared, None, rates)))),
    )


def _alone(leading: Sequence[Effect]) -> Answer:
    texts = [
        f"{one.what} {value_text(one.metric, reading.value)}"
        for one in leading
        for reading in one.readings
        if reading.value is not None
    ]
    return Answer(
        "One fabric was measured, and there is nothing to compare it with.",
        (),
        (),
        f"{'; '.join(texts[:4])}." if texts else "",
    )
