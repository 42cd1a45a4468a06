"""The answer in a sentence, for two fabrics, for more, for before and after: no more than the rows' intervals say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

from fabricbench.analysis.alone import sentence_of_one
from fabricbench.analysis.change import is_change, name_of_change
from fabricbench.analysis.effects import Compared, ErrorRates
from fabricbench.analysis.factors import contrasts_of
from fabricbench.analysis.findings import Effect, Grade, Letter, PairEffect, Replication, Verdict
from fabricbench.analysis.interaction import networks_of
from fabricbench.analysis.measured import Side
from fabricbench.analysis.pairing import Pairing
from fabricbench.analysis.phrases import (
    fitting,
    is_or_seems,
    numbers_of,
    quotable,
    sentence_of,
    subject_of,
    times_of,
    unit_of,
)
from fabricbench.analysis.single_sizes import (
    SizesOfCurve,
    curve_of,
    curves_met,
    depends_texts,
    exception_of,
    exceptions,
    is_contested,
    reach,
    shortened,
)
from fabricbench.analysis.wording import FACTOR_FROM, factor_text, in_one_unit, percent, slower_text, times_better
from fabricbench.quantity import enumeration, listed
from fabricbench.statistics.decision import FEWEST_PAIRS
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES

REPLICATES = {
    Replication.BLOCKS: "whole pairs",
    Replication.RUNS: "runs on each side",
    Replication.LAUNCHES: "launches on each side",
}
"""What an interval between two fabrics, or of before and after, counts."""

WINNING_SHARE = 0.8
"""Of the leading rows: who wins so many takes the headline. All of the usual four, and four of five. What a quarter
more or less moves: docs/statistics.md, "Constants of the grades"."""


@dataclass(frozen=True)
class Answer:
    """What a kind of question comes to: the sentence, the rows that it quotes, exceptions and reach."""

    sentence: str
    quoted: tuple[Effect, ...] = ()
    exceptions: tuple[str, ...] = ()
    detail: str = ""


def answer_of(compared: Compared, leading: Sequence[Effect], of_samples: Sequence[Effect], rates: ErrorRates) -> Answer:
    """Return what the leading rows come to; `of_samples` are the tails and the means of their samples."""
    if not compared.pairings:
        return Answer(*sentence_of_one(compared.sides[0].name, leading))
    if not leading:
        names = enumeration([side.name for side in compared.sides])
        if not compared.cells:
            return Answer(f"Nothing can be compared: no test was measured in the same way on all of {names}.")
        return Answer(f"Nothing that users meet was measured on all of {names}; what was is compared below.")
    if is_change(compared.pairings):
        return _change(compared, leading, of_samples, rates)
    answer = (_two if len(compared.sides) == 2 else _many)(compared, leading, of_samples, rates)
    crossed = crossed_answer(compared, leading)
    if crossed is not None:
        answer = replace(crossed, detail=" ".join(filter(None, (answer.sentence, answer.detail))))
    return replace(answer, detail=" ".join(filter(None, (_of_single_runs(compared.pairings), answer.detail))))


def _two(compared: Compared, leading: Sequence[Effect], of_samples: Sequence[Effect], rates: ErrorRates) -> Answer:
    a, b = (side.name for side in compared.sides)
    curves = curves_met(compared, rates)
    won = {name: [one for one in leading if _winner(one) == name] for name in (a, b)}
    contested = [one for one in leading if _winner(one) and is_contested(one, one.pairs[0], curves)]
    wins = {name: [one for one in won[name] if one not in contested] for name in (a, b)}
    winner = max((a, b), key=lambda name: len(wins[name]))
    other = b if winner == a else a
    if contested and len(contested) >= len(wins[winner]):
        return _depends(compared, contested, curves, rates)
    if wins[a] and wins[b] and any(one.crossing for one in curves.values()):
        return _depends(compared, [one for one in leading if one in (*wins[a], *wins[b])], curves, rates)
    if not wins[winner]:
        return _unsettled(compared, leading, rates)
    quoted = quotable(wins[winner])
    share = len(wins[winner]) / len(leading)
    if share < WINNING_SHARE and wins[other]:
        return _split(compared, leading, (winner, wins[winner]), (other, wins[other]), rates)
    extent = "" if share >= WINNING_SHARE else f" in {len(wins[winner])} of {len(leading)} effects"
    felt = felt_against(of_samples, winner)
    against = [exception_of(one, pair) for one, pair in (*felt, *((one, one.pairs[0]) for one in won[other]))]
    return Answer(
        sentence_of(f"{winner} {is_or_seems(quoted)} faster{extent}{_but(felt)}", leading, quoted),
        tuple(quoted[:2]),
        exceptions(compared, winner, rates, against),
        reach(compared, winner, rates),
    )


def _depends(
    compared: Compared, rows: Sequence[Effect], curves: Mapping[tuple[object, ...], SizesOfCurve], rates: ErrorRates
) -> Answer:
    """Return the answer where sizes speak for both fabrics: which is faster up to which size, from which on the other is."""
    of_rows = [found for one in rows if (found := curve_of(one, one.pairs[0], curves)) is not None]
    sentence = fitting(*depends_texts([*of_rows, *curves.values()], curves.values()))
    return Answer(sentence, tuple(rows), (), reach(compared, None, rates))


def felt_against(of_samples: Sequence[Effect], winner: str) -> list[tuple[Effect, PairEffect]]:
    """Return the tails and means that are decided against who is faster in the median: of a test its mean, then its worst tail.

    A median shows no stalls: a fabric may be faster in 199 of 200 messages, and slower to wait for.
    """
    found: dict[tuple[object, ...], list[tuple[Effect, PairEffect]]] = {}
    for one in of_samples:
        for pair in one.pairs:
            leader = pair.verdict.of_leader(pair.fabric_a, pair.fabric_b)
            is_against = pair.verdict.is_decided and winner in (pair.fabric_a, pair.fabric_b) and leader != winner
            if is_against and one.grade is not Grade.VOID:
                found.setdefault((one.key, one.is_mean, _other(pair, winner)), []).append((one, pair))
    worst = [max(those, key=lambda row: times_of(row[1])) for those in found.values()]
    order = list(dict.fromkeys(one.key for one in of_samples))
    return sorted(worst, key=lambda row: (order.index(row[0].key), not row[0].is_mean))


def _other(pair: PairEffect, name: str) -> str:
    return pair.fabric_a if pair.fabric_b == name else pair.fabric_b


def _but(felt: Sequence[tuple[Effect, PairEffect]]) -> str:
    """Return what a user would feel of that: waiting longer on average, or now and then much longer."""
    if any(one.is_mean for one, _ in felt):
        return " in the median alone"
    return ", but less steady" if any(times_of(pair) >= FACTOR_FROM for _, pair in felt) else ""


def _winner(effect: Effect) -> str | None:
    """Return who a row of two fabrics is decided for, by more than the margin; nobody where its numbers cannot be right."""
    if effect.grade is Grade.VOID or not effect.pairs or not effect.pairs[0].verdict.is_decided:
        return None
    pair = effect.pairs[0]
    return pair.verdict.of_leader(pair.fabric_a, pair.fabric_b)


def _split(
    compared: Compared,
    leading: Sequence[Effect],
    first: tuple[str, Sequence[Effect]],
    second: tuple[str, Sequence[Effect]],
    rates: ErrorRates,
) -> Answer:
    """Return the answer where rows speak for both: who is faster at what."""
    quoted = [quotable(effects)[0] for _, effects in (first, second)]
    parts = [
        (
            name,
            subject_of(one, leading),
            times_better(one.metric, times_of(one.pairs[0])),
            numbers_of(one, one.pairs[0]),
        )
        for (name, _), one in zip((first, second), quoted, strict=True)
    ]
    lead = "Faster" if is_or_seems(quoted) == "is" else "Seemingly faster"
    full = ", ".join(f"{name} for {subject}, {times} ({numbers})" for name, subject, times, numbers in parts)
    values = ", ".join(f"{name} for {subject} ({numbers})" for name, subject, _, numbers in parts)
    plain = ", ".join(f"{name} for {subject}" for name, subject, _, _ in parts)
    counts = ", ".join(f"{name} in {len(some)} of {len(leading)} effects" for name, some in (first, second))
    sentence = fitting(*(f"{lead}: {text}." for text in (full, values, plain, counts)))
    return Answer(sentence, tuple(quoted), (), reach(compared, None, rates))


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
    names = [name for name in {one.pairs[0].verdict.of_leader(a, b) for one in ahead} if name is not None]
    if len(names) == 1 and len(ahead) >= WINNING_SHARE * len(leading):
        quoted = quotable(ahead)
        lead = f"{names.pop()} {is_or_seems(quoted)} ahead, perhaps by less than {percent(compared.margin)}"
        return Answer(sentence_of(lead, leading, quoted), tuple(quoted[:2]), (), far)
    if usable and all(one.pairs[0].verdict is Verdict.NOT_RESOLVABLE for one in usable):
        return Answer(f"Too few digits to say whether {b} or {a} is faster.", (), (), far)
    few = _least(compared) if _has_too_few(compared) else ""
    return Answer(f"Not enough data to say whether {b} or {a} is faster{few}.", (), (), far)


def _has_too_few(compared: Compared) -> bool:
    """Return whether nothing could be stated, whatever was measured: there are too few of what is compared."""
    return all(one.p_value is None or (one.is_paired and one.launches < FEWEST_PAIRS) for one in compared.cells)


def _least(compared: Compared) -> str:
    """Return how many of what is compared any statement takes."""
    replication = compared.pairings[0].replication if compared.pairings else Replication.BLOCKS
    least = FEWEST_PAIRS if replication is Replication.BLOCKS else MINIMUM_LAUNCHES
    return f": it takes {least} {REPLICATES[replication]} at least"


def _many(compared: Compared, leading: Sequence[Effect], of_samples: Sequence[Effect], rates: ErrorRates) -> Answer:
    names = [side.name for side in compared.sides]
    curves = curves_met(compared, rates)
    wins = {name: [one for one in leading if _beats_all(one, name, curves)] for name in names}
    champion = max(names, key=lambda name: len(wins[name]))
    ranked = [one for one in leading if len(one.ranks) > 1 and one.grade is not Grade.VOID]
    orders = _orders(ranked)
    factors = factors_answer(compared, leading)
    if factors is not None:
        return replace(factors, detail=orders)
    if len(wins[champion]) >= WINNING_SHARE * len(leading):
        quoted = quotable(wins[champion])
        felt = felt_against(of_samples, champion)
        against = [f"{exception_of(one, pair)} than {_other(pair, champion)}" for one, pair in felt]
        lead = f"{champion} {is_or_seems(quoted)} fastest of {len(names)}{_but(felt)}, against the next best"
        sentence = sentence_of(lead, leading, quoted, lambda one: _next_pair(one, champion))
        return Answer(sentence, tuple(quoted[:2]), exceptions(compared, champion, rates, against), orders)
    if not ranked:
        few = _least(compared) if _has_too_few(compared) else ""
        heads = (f"Not enough data to rank {which}" for which in (enumeration(names), f"the {len(names)} fabrics"))
        return Answer(fitting(*(f"{head}{few}." for head in heads)), (), (), "")
    leads = f"No single fastest of {len(names)}: which one leads depends on what is measured."
    return Answer(fitting(*_who_lead(ranked, leading), leads), tuple(ranked[:2]), (), orders)


def _who_lead(ranked: Sequence[Effect], leading: Sequence[Effect]) -> Iterator[str]:
    """Yield sentences of who is first in which row, the longest first."""
    first = [_unbeaten(one) for one in ranked]
    if len(ranked) == len(leading) and all(one == first[0][:1] for one in first):
        (name,) = first[0]
        mine = [pair for one in ranked for pair in one.pairs if name in (pair.fabric_a, pair.fabric_b)]
        alike = list(dict.fromkeys(_other(pair, name) for pair in mine if not pair.verdict.is_decided))
        yield from (f"No single fastest: {name} leads, not told apart from {enumeration(alike)}." for _ in alike[:1])
    texts = [f"{subject_of(one, leading)} on {enumeration(some)}" for one, some in zip(ranked, first, strict=True)]
    yield from (f"No single fastest: {'; '.join(texts[:number])} lead." for number in (3, 2, 1))


def _unbeaten(effect: Effect) -> list[str]:
    """Return who may be first in a row: the fabrics that no test put behind another, which some of the first tier may be."""
    losers = {one.verdict.of_other(one.fabric_a, one.fabric_b) for one in effect.pairs if one.verdict.is_decided}
    names = dict.fromkeys(name for tier in effect.ranks for name in tier)
    return [name for name in names if name not in losers] or list(effect.ranks[0])


def factors_answer(compared: Compared, leading: Sequence[Effect]) -> Answer | None:
    """Return the answer where two networks were measured in several conditions: which network, then what each condition adds.

    Networks are compared in their first condition, conditions with the first of the same network. None where no network takes
    the sentence.
    """
    networks = networks_of(compared.sides)
    if len(networks) != 2:
        return None
    firsts = {network: sides[0].name for network, sides in networks.items()}
    rows = [(one, pair) for one in leading if (pair := _pair_of(one, *firsts.values())) is not None]
    wins = {
        network: [one for one, pair in rows if one.grade is not Grade.VOID and _is_won_by(pair, name)]
        for network, name in firsts.items()
    }
    winner = max(wins, key=lambda network: len(wins[network]))
    if not rows or len(wins[winner]) < WINNING_SHARE * len(leading):
        return None
    quoted = quotable(wins[winner])
    pairs = {one.what: pair for one, pair in rows}
    phrases = [
        f"{subject_of(one, leading)} {times_better(one.metric, times_of(pairs[one.what]))}"
        for one in quoted[:MOST_QUOTED]
    ]
    adding = [
        _condition_words(leading, sides[0].name, side.name, side.fabric.condition, compared.margin)
        for sides in [networks[winner]]
        for side in sides[1:]
    ]
    lead = f"{winner} {is_or_seems(quoted)} faster: {', '.join(phrases)}"
    options = ("; ".join((lead, *adding[:number])) for number in range(len(adding), -1, -1))
    return Answer(fitting(*(f"{text}." for text in options)), tuple(quoted[:MOST_QUOTED]))


@dataclass(frozen=True)
class _FirstLevel:
    """The level of a crossed factor that is first: of how many, in which rows, and how many times better than the next in each."""

    factor: str
    level: str
    levels: int
    rows: Sequence[Effect]
    times: Mapping[str, float]


def crossed_answer(compared: Compared, leading: Sequence[Effect]) -> Answer | None:
    """Return the answer where factors are crossed: which level of each is first, whatever the others are; None where none is.

    A level is first in a row where each of its pairs with another level at the same setting is decided for it, so that all hold
    together as these pairs do.
    """
    contrasts = contrasts_of(compared.sides, compared.pairings)
    factors = list(dict.fromkeys(one.factor for one in contrasts))
    found = [first for factor in factors if (first := _first_level(compared.sides, factor, leading)) is not None]
    if not found:
        return None
    quoted = [quotable(one.rows)[0] for one in found]
    parts = []
    for first, row in zip(found, quoted, strict=True):
        rank = "faster" if first.levels == len("ab") else f"fastest of {first.levels}"
        much = times_better(row.metric, first.times[row.what])
        parts.append(
            (f"by {first.factor} {first.level} {is_or_seems([row])} {rank}", f"{subject_of(row, leading)} {much}")
        )
    options = ("; ".join(f"{who} ({much})" for who, much in parts), "; ".join(who for who, _ in parts))
    return Answer(fitting(*(f"{text[0].upper()}{text[1:]}." for text in options)), tuple(quoted))


def _first_level(sides: Sequence[Side], factor: str, leading: Sequence[Effect]) -> _FirstLevel | None:
    levels: dict[str, dict[tuple[str, ...], str]] = {}
    for side in sides:
        setting = tuple(value for name, value in side.factors.items() if name != factor)
        levels.setdefault(side.factors[factor], {})[setting] = side.name
    for level, mine in levels.items():
        times: dict[str, float] = {}
        rows = []
        for row in leading:
            beside = [
                [_pair_of(row, mine[setting], name) for setting, name in other.items() if setting in mine]
                for one, other in levels.items()
                if one != level
            ]
            won = [
                [log(times_of(pair)) for pair in pairs if pair is not None and _winner_of(pair) in mine.values()]
                for pairs in beside
            ]
            if row.grade is not Grade.VOID and all(
                wins and len(wins) == len(pairs) for wins, pairs in zip(won, beside, strict=True)
            ):
                rows.append(row)
                times[row.what] = exp(min(sum(wins) / len(wins) for wins in won))
        if leading and len(rows) >= WINNING_SHARE * len(leading):
            return _FirstLevel(factor, level, len(levels), rows, times)
    return None


def _winner_of(pair: PairEffect) -> str | None:
    return pair.verdict.of_leader(pair.fabric_a, pair.fabric_b) if pair.verdict.is_decided else None


MOST_ORDERED = 4
"""Fabrics whose order a sentence can hold: of five there are ten pairs."""
MOST_QUOTED = 2
"""Rows that a sentence quotes."""


def _pair_of(effect: Effect, one: str, other: str) -> PairEffect | None:
    return next((pair for pair in effect.pairs if {pair.fabric_a, pair.fabric_b} == {one, other}), None)


def _is_won_by(pair: PairEffect, name: str) -> bool:
    return pair.verdict.is_decided and pair.verdict.of_leader(pair.fabric_a, pair.fabric_b) == name


def _condition_words(leading: Sequence[Effect], first: str, side: str, condition: str, margin: float) -> str:
    """Return `jumbo adds 4.0 % to MPI streams`: the largest of what a condition is shown to change."""
    found = [(one, pair) for one in leading if (pair := _pair_of(one, first, side)) is not None]
    decided = [(one, pair) for one, pair in found if pair.verdict.is_decided and one.grade is not Grade.VOID]
    if decided:
        effect, pair = max(decided, key=lambda row: abs(log(row[1].times)))
        share = percent(times_of(pair) - 1.0)
        how = f"{factor_text(times_of(pair))} better" if times_of(pair) >= FACTOR_FROM else f"{share} better"
        worse = slower_text(effect.metric, times_of(pair))
        return f"{condition} makes {subject_of(effect, leading)} {how if _is_won_by(pair, side) else worse}"
    if found and all(pair.verdict is Verdict.EQUIVALENT for _, pair in found):
        return f"{condition} changes nothing beyond {percent(margin)}"
    return f"what {condition} adds is open"


def _beats_all(effect: Effect, name: str, curves: Mapping[tuple[object, ...], SizesOfCurve]) -> bool:
    """Return whether a fabric won every one of its pairs in a row, by more than the margin, and other sizes bear that out."""
    mine = [one for one in effect.pairs if name in (one.fabric_a, one.fabric_b)]
    won = [
        one.verdict.is_decided
        and one.verdict.of_leader(one.fabric_a, one.fabric_b) == name
        and not is_contested(effect, one, curves)
        for one in mine
    ]
    return effect.grade is not Grade.VOID and len(mine) == len(effect.readings) - 1 and all(won)


def _next_pair(effect: Effect, champion: str) -> PairEffect:
    """Return the champion's pair with the next best: the one that it beats by least. The others need not have been compared."""
    mine = [one for one in effect.pairs if champion in (one.fabric_a, one.fabric_b)]
    return min(mine, key=lambda one: abs(log(one.times)))


def _orders(ranked: Sequence[Effect]) -> str:
    """Return each row's order from the best on, and which pairs no test told apart; of many fabrics the table has places."""
    if any(len(one.readings) > MOST_ORDERED for one in ranked):
        return ""
    return " ".join(f"{one.what}: {order_text(one)}." for one in ranked)


def order_text(effect: Effect) -> str:
    """Return `b, then c, then a`, or `b, c, a; not told apart: b and c`."""
    order = list(dict.fromkeys(name for tier in effect.ranks for name in tier))
    alike = [f"{one.fabric_a} and {one.fabric_b}" for one in effect.pairs if not one.verdict.is_decided]
    return ", then ".join(order) if not alike else f"{listed(order)}; not told apart: {listed(alike)}"


def _of_single_runs(pairings: Sequence[Pairing]) -> str:
    """Return what one run alone cannot tell, of both sides or of some; empty where each has several."""
    found = [pairing.single_runs for pairing in pairings]
    if any(len(single) > 1 for single in found):
        return "One run a side cannot tell a change from what else differed between the sessions."
    single = list(dict.fromkeys(words for of_pair in found for words in of_pair))
    return f"One run {single[0]} cannot tell how far another would differ from it." if single else ""


def _change(compared: Compared, leading: Sequence[Effect], of_samples: Sequence[Effect], rates: ErrorRates) -> Answer:
    """Return what a change did: the largest effect on the worse side, else on the better one, and how far that can be said."""
    decided = [
        (one, pair) for one in leading for pair in one.pairs if pair.verdict.is_decided and one.grade is not Grade.VOID
    ]
    slower = [found for found in decided if found[1].verdict.leader is Letter.A]
    chosen = max(slower or decided, key=lambda found: abs(log(found[1].times)), default=None)
    tail = _of_single_runs(compared.pairings[:1])
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
    subject = subject_of(effect, leading)
    numbers = ""
    if pair.value_a is not None and pair.value_b is not None:
        before, after = in_one_unit(effect.metric, (pair.value_a, pair.value_b), unit=unit_of(effect))
        numbers = f" ({before.number if before.unit == after.unit else before} before, {after} after)"
    is_slower = pair.verdict.leader is Letter.A
    which = "slower" if is_slower else "faster"
    times = times_of(pair)
    how_much = slower_text(effect.metric, times) if is_slower else times_better(effect.metric, times)
    name = name_of_change(compared.pairings, pair)
    ends = (pair.fabric_a, pair.fabric_b)
    alike = [
        found
        for found in decided
        if (found[1].fabric_a, found[1].fabric_b) == ends and found[1].verdict.leader == pair.verdict.leader
    ]
    of = sum({*ends} <= {reading.fabric for reading in one.readings} for one in leading)  # one of them may have none
    extent = "" if len(alike) >= WINNING_SHARE * of else f" in {len(alike)} of {of} effects"
    verb = "became" if is_or_seems([effect]) == "is" else "seems to have become"
    if is_contested(effect, pair, curves_met(compared, rates)):
        extent = f" in some sizes, {'faster' if is_slower else 'slower'} in others"
    felt = [] if is_slower else felt_against(of_samples, pair.fabric_b)
    lead = f"{name} {verb} {which}{extent}{_but(felt)}"
    return Answer(
        fitting(f"{lead}: {subject} {how_much}{numbers}.", f"{lead}: {subject} {how_much}.", f"{lead}."),
        (effect,),
        shortened([exception_of(*found) for found in felt]),
        " ".join(filter(None, (tail, reach(compared, None, rates)))),
    )
