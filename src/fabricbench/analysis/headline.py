"""The answer: at most twenty words that claim no more than the intervals of the first screen, and how far it reaches.

How it is chosen (docs/dossier.md tells it to readers):

    1. rows are those of `effects`: applications, then the layers that programs talk through; layers below explain
    2. who wins four fifths of the leading rows takes the sentence, in absolute values; where rows speak for both, both are named
    3. "it depends on the size" leads only with a crossing in a layer that users meet, decided on both sides, measured closely
    4. exceptions follow, each decided within the error of all comparisons; breadth is claimed only where nothing is slower
    5. where the instrument is in doubt for what the sentence says, it says "seems"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, log1p
from statistics import median

from fabricbench.analysis.change import changes_of, is_change, name_of_change
from fabricbench.analysis.comparing import Pairing, verdict_of
from fabricbench.analysis.effects import (
    MET_BY_USERS,
    ErrorRates,
    Judge,
    Row,
    choose_rows,
    effect_of,
    error_rates,
    layer_name,
    log_ratio_of,
)
from fabricbench.analysis.findings import (
    Comparison,
    Crossover,
    Effect,
    Grade,
    Headline,
    LadderStep,
    PairEffect,
    Replication,
    Verdict,
    is_basic,
)
from fabricbench.analysis.measured import Side
from fabricbench.analysis.wording import count, enumeration, instead, percent, size_text, slower_by, value_text
from fabricbench.model import Layer
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES

MOST_WORDS = 20
SMALL_BYTES = 1024
"""Up to here a message is called small."""
WINNING_SHARE = 0.8
"""Of the leading rows: who wins so many takes the headline."""
MOST_EXCEPTIONS = 3


@dataclass(frozen=True)
class Compared:
    """All that the first screen is made of."""

    sides: Sequence[Side]
    pairings: Sequence[Pairing]
    cells: Sequence[Comparison]
    curves: Sequence[Comparison]
    crossovers: Sequence[Crossover]
    ladder: Sequence[LadderStep]
    margin: float
    confidence: float
    judge: Judge


@dataclass(frozen=True)
class Answer:
    """What a kind of question comes to: the sentence, the rows that it quotes, exceptions and reach."""

    sentence: str
    quoted: tuple[Effect, ...] = ()
    exceptions: tuple[str, ...] = ()
    detail: str = ""


def write_headline(compared: Compared) -> Headline:
    """Return the first screen but for what to do next and how to reproduce it, which only whoever knows the run can add."""
    rows = choose_rows(compared.sides, compared.ladder)
    found = len(compared.cells) + len(compared.curves)
    rates = error_rates(rows, len(compared.pairings), found, compared.confidence)
    effects = _effects(compared, rows, rates)
    leading = [effect for row, effect in zip(rows, effects, strict=True) if row.is_leading]
    mildest = min((row.tail for row in rows if row.tail is not None), default=None)
    tails = [effect for row, effect in zip(rows, effects, strict=True) if row.tail is not None and row.tail == mildest]
    shown = [*leading, *tails]
    answer = _answer(compared, leading, rates)
    in_doubt = any(one.grade in (Grade.DOUBTFUL, Grade.VOID) for one in answer.quoted)
    return Headline(
        sentence=answer.sentence,
        exceptions=answer.exceptions,
        detail=answer.detail,
        evidence=_evidence(effects),
        in_doubt=in_doubt,
        effects=tuple(shown),
        more_effects=tuple(one for one in effects if one not in shown),
        changes=changes_of(compared.pairings, compared.cells) if is_change(compared.pairings) else None,
    )


def _effects(compared: Compared, rows: Sequence[Row], rates: ErrorRates) -> list[Effect]:
    by_key = {(one.fabric_a, one.fabric_b, _key(one)): one for one in compared.cells}
    table = {
        (pairing.a.name, pairing.b.name, row.key): one
        for pairing in compared.pairings
        for row in rows
        if (one := by_key.get((pairing.a.name, pairing.b.name, _key(row.key)))) is not None
    }
    unrest = _unrest(compared.cells)
    made = (
        effect_of(row, compared.sides, compared.pairings, table, rates, compared.margin, compared.judge) for row in rows
    )
    return [_weighed(one, unrest) for one in made]


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


def _key(one: object) -> tuple[object, ...]:
    return tuple(getattr(one, name) for name in ("layer", "pattern", "receive", "message_bytes", "metric", "variant"))


def _answer(compared: Compared, leading: Sequence[Effect], rates: ErrorRates) -> Answer:
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


# Two fabrics


def _two(compared: Compared, leading: Sequence[Effect], rates: ErrorRates) -> Answer:
    a, b = (side.name for side in compared.sides)
    wins = {name: [one for one in leading if _winner(one) == name] for name in (a, b)}
    crossing = _crossing(compared, rates)
    if wins[a] and wins[b] and crossing is not None:
        return Answer(_depends(crossing), (*wins[a], *wins[b]), (), _reach(compared, None, rates))
    winner = max((a, b), key=lambda name: len(wins[name]))
    other = b if winner == a else a
    if not wins[winner]:
        return _unsettled(compared, leading, rates)
    quoted = _quotable(wins[winner])
    share = len(wins[winner]) / len(leading)
    if share < WINNING_SHARE and wins[other]:
        return _split(compared, (winner, wins[winner]), (other, wins[other]), rates)
    extent = "" if share >= WINNING_SHARE else f" in {len(wins[winner])} of {len(leading)} effects"
    against = [_exception(one, one.pairs[0]) for one in wins[other]]
    return Answer(
        _sentence(f"{winner} {_seems(quoted)} faster{extent}", quoted),
        tuple(quoted[:2]),
        _exceptions(compared, winner, rates, against),
        _reach(compared, winner, rates),
    )


def _winner(effect: Effect) -> str | None:
    """Return who a row of two fabrics is decided for, by more than the margin; nobody where its numbers cannot be right."""
    if effect.grade is Grade.VOID or not effect.pairs or not effect.pairs[0].verdict.is_decided:
        return None
    pair = effect.pairs[0]
    return pair.fabric_a if pair.verdict.leader == "A" else pair.fabric_b


def _quotable(effects: Sequence[Effect]) -> list[Effect]:
    """Return what a sentence quotes: of applications the one that gains most, then a time, then a rate; the undoubted first."""
    trusted = sorted(effects, key=lambda one: one.grade is not Grade.CLEAR)
    loads = [one for one in trusted if one.layer is None]
    times = [one for one in trusted if one.layer is not None and one.metric.is_time]
    rates = [one for one in trusted if one.layer is not None and not one.metric.is_time]
    most = [max(loads, key=lambda one: abs(_log_times(one)))] if loads else []
    least = [min(loads, key=lambda one: abs(_log_times(one)))] if len(loads) > 1 else []
    return [*most, *times[:1], *rates[:1], *least]


def _log_times(effect: Effect) -> float:
    return log(effect.pairs[0].times)


def _seems(quoted: Sequence[Effect]) -> str:
    return "seems" if any(one.grade is Grade.DOUBTFUL for one in quoted[:2]) else "is"


def _sentence(
    lead: str, quoted: Sequence[Effect], pairs: Callable[[Effect], PairEffect] = lambda one: one.pairs[0]
) -> str:
    """Return the lead with as many of the first two rows as twenty words hold, the fuller phrase first."""
    phrases = [_phrases(one, pairs(one)) for one in quoted[:2]]
    options = (
        [f"{lead}: {first}, {second}." for first in phrases[0] for second in phrases[1]] if len(phrases) > 1 else []
    )
    options += [f"{lead}: {first}." for first in phrases[0]] if phrases else []
    return next((text for text in options if len(text.split()) <= MOST_WORDS), f"{lead}.")


def _phrases(effect: Effect, pair: PairEffect) -> tuple[str, ...]:
    """Return a row in words, the fuller first: `small TCP messages take 64.0 instead of 130 µs`."""
    subject, verb = _subject(effect)
    values = {one.fabric: one.value for one in effect.readings}
    ends = [values[pair.fabric_a], values[pair.fabric_b]]
    if ends[0] is None or ends[1] is None:
        return ()
    better, worse = (ends[0], ends[1]) if pair.verdict.leader == "A" else (ends[1], ends[0])
    numbers = instead(effect.metric, better, worse)
    return f"{subject} {verb} {numbers}", f"{subject} {numbers}"


def _subject(effect: Effect) -> tuple[str, str]:
    """Return the row as the subject of a sentence, and its verb."""
    what, _, size = effect.what.partition(", ")
    if effect.layer is None:
        return effect.what.replace(" on ", ", ").split(",")[0], "takes"
    layer = layer_name(effect.layer)
    if what == f"{layer} round trip":
        is_small = size.endswith(" B") and int(size.removesuffix(" B")) <= SMALL_BYTES
        return (f"small {layer} messages" if is_small else f"{size} {layer} messages"), "take"
    if what == f"{layer} throughput":
        return f"{layer} streams", "reach"
    return effect.what.replace(", ", " of "), "takes" if effect.metric.is_time else "reaches"


def _split(
    compared: Compared, first: tuple[str, Sequence[Effect]], second: tuple[str, Sequence[Effect]], rates: ErrorRates
) -> Answer:
    """Return the answer where rows speak for both: who is faster at what."""
    quoted = [_quotable(effects)[0] for _, effects in (first, second)]
    parts = [(name, _subject(one)[0], _numbers(one)) for (name, _), one in zip((first, second), quoted, strict=True)]
    lead = "Faster" if _seems(quoted) == "is" else "Seemingly faster"
    full = ", ".join(f"{name} for {subject} ({numbers})" for name, subject, numbers in parts)
    plain = ", ".join(f"{name} for {subject}" for name, subject, _ in parts)
    text = full if len(full.split()) < MOST_WORDS else plain
    return Answer(f"{lead}: {text}.", tuple(quoted), (), _reach(compared, None, rates))


def _numbers(effect: Effect) -> str:
    """Return `64.0 instead of 130 µs` of a row that is decided."""
    return effect.pairs[0].words.rpartition(": ")[2]


def _unsettled(compared: Compared, leading: Sequence[Effect], rates: ErrorRates) -> Answer:
    """Return the answer where no row is decided by more than the margin."""
    a, b = (side.name for side in compared.sides)
    verdicts = [one.pairs[0].verdict for one in leading if one.pairs]
    reach = _reach(compared, None, rates)
    if verdicts and all(one is Verdict.EQUIVALENT for one in verdicts):
        return Answer(
            f"{b} and {a} are equivalent within {percent(compared.margin)} in what users meet.",
            tuple(leading),
            (),
            reach,
        )
    ahead = [one for one in leading if one.pairs and one.pairs[0].verdict.is_ahead]
    leaders = {"A": a, "B": b}
    names = {leaders[str(one.pairs[0].verdict.leader)] for one in ahead}
    if len(names) == 1 and len(ahead) >= WINNING_SHARE * len(leading):
        quoted = _quotable(ahead)
        lead = f"{names.pop()} {_seems(quoted)} ahead, perhaps by less than {percent(compared.margin)}"
        return Answer(_sentence(lead, quoted), tuple(quoted[:2]), (), reach)
    none = all(one.p_value is None for one in compared.cells)
    few = f": it takes {MINIMUM_LAUNCHES} blocks at least" if none else ""
    return Answer(
        f"Not enough data to say whether {b} or {a} is faster{few}.", (), (), f"{reach} {_missing(leading)}".strip()
    )


def _missing(leading: Sequence[Effect]) -> str:
    needed = [pair.more_blocks_needed for one in leading for pair in one.pairs if pair.more_blocks_needed is not None]
    return f"About {count(round(median(needed)), 'more block')} would settle half of what is open." if needed else ""


# Crossings, exceptions, reach: single sizes, within the error of all comparisons


def _crossing(compared: Compared, rates: ErrorRates) -> Crossover | None:
    """Return the crossing that may lead: in a layer that users meet, both neighbours decided, measured closely."""
    verdicts = {
        (*_key(one), one.fabric_a, one.fabric_b): _verdict(one, rates.other, compared.margin) for one in compared.cells
    }

    def is_decided(one: Crossover, size: float) -> bool:
        key = (one.layer, one.pattern, one.receive, int(size), one.metric, one.variant, one.fabric_a, one.fabric_b)
        found = verdicts.get(key)
        return found is not None and found.is_decided

    found = [
        one
        for one in compared.crossovers
        if one.layer in MET_BY_USERS
        and is_basic(one)
        and one.is_close
        and is_decided(one, one.lower_bytes)
        and is_decided(one, one.upper_bytes)
    ]
    return min(found, key=lambda one: MET_BY_USERS.index(one.layer), default=None)


def _depends(one: Crossover) -> str:
    thing = "messages" if one.metric.is_time else "streams"
    return (
        f"It depends on the size: {layer_name(one.layer)} {thing} are faster on {one.faster_below} up to "
        f"{size_text(one.lower_bytes)}, on {one.faster_above} from {size_text(one.upper_bytes)}."
    )


def _verdict(one: Comparison, rate: float, margin: float) -> Verdict:
    known = log_ratio_of(one)
    if known is None:
        return Verdict.NOT_ENOUGH_DATA
    found = verdict_of(known.decide(rate, margin), one.metric)
    leader = {"A": one.fabric_a, "B": one.fabric_b}.get(found.leader or "")
    is_withheld = leader in one.thin_sides or (one.is_mixed and one.verdict.leader != found.leader)
    return Verdict.NOT_ENOUGH_DATA if is_withheld else found


def _exceptions(compared: Compared, winner: str, rates: ErrorRates, told: Sequence[str]) -> tuple[str, ...]:
    """Return where the winner is slower by more than the margin: leading rows first, then sizes next to each other in one."""
    against: dict[tuple[object, ...], list[Comparison]] = {}
    for one in sorted(compared.cells, key=lambda one: one.message_bytes or 0):
        if winner not in (one.fabric_a, one.fabric_b) or one.layer is Layer.MEMORY or not is_basic(one):
            continue
        verdict = _verdict(one, rates.other, compared.margin)
        leader = {"A": one.fabric_a, "B": one.fabric_b}.get(verdict.leader or "")
        if verdict.is_decided and leader != winner:
            against.setdefault((one.layer, one.metric, one.receive, leader), []).append(one)
    order = [*MET_BY_USERS, *(layer for layer in reversed(Layer) if layer not in MET_BY_USERS)]
    groups = sorted(against.values(), key=lambda group: order.index(group[0].layer))
    texts = [*told, *(_group_text(group, rates.other, is_many=len(compared.sides) > 2) for group in groups)]
    texts = list(dict.fromkeys(texts))
    left = len(texts) - MOST_EXCEPTIONS
    return (*texts[:MOST_EXCEPTIONS], *((f"{left} more, see the table of ratios",) if left > 0 else ()))


def _group_text(group: Sequence[Comparison], rate: float, *, is_many: bool) -> str:
    """Return `raw frames of 64 to 256 B, 24 % slower (15 to 32 %)`: of several sizes the worst."""
    worst = max(group, key=lambda one: max(one.ratio, 1 / one.ratio))
    known = log_ratio_of(worst)
    assert known is not None  # noqa: S101 - only decided comparisons come here
    low, high = known.bounds(rate)
    ends = sorted(exp(abs(end)) for end in (low, high))
    by = slower_by(worst.metric, exp(abs(known.mean)), ends[0], ends[1])
    thing = "round trips" if worst.metric.is_time else "streams"
    layer = f"{layer_name(worst.layer)} {thing}"
    sizes = [size_text(one.message_bytes or 0) for one in group]
    which = sizes[0] if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    than = f" than {worst.fabric_a if _leads_a(worst) else worst.fabric_b}" if is_many else ""
    most = "up to " if len(sizes) > 1 else ""
    return f"{layer} of {which}, {most}{by}{than}"


def _leads_a(one: Comparison) -> bool:
    return (one.ratio > 1) == one.metric.is_lower_better


def _exception(effect: Effect, pair: PairEffect) -> str:
    """Return a leading row that speaks against the winner."""
    times = max(pair.times, 1 / pair.times)
    ends = sorted(max(end, 1 / end) for end in (pair.low, pair.high) if end is not None)
    return f"{effect.what}, {slower_by(effect.metric, times, ends[0], ends[-1])}"


def _reach(compared: Compared, winner: str | None, rates: ErrorRates) -> str:
    """Return how far the answer reaches over single sizes, the layers that users meet apart from those below."""
    parts = []
    for layers, words in ((MET_BY_USERS, "Over"), ([one for one in Layer if one not in MET_BY_USERS], "Below, over")):
        mine = [
            one for one in compared.cells if one.layer in layers and one.layer is not Layer.MEMORY and is_basic(one)
        ]
        names = enumeration([layer_name(layer) for layer in layers if any(one.layer is layer for one in mine)])
        for pairing in compared.pairings if mine else ():
            of_pair = [one for one in mine if (one.fabric_a, one.fabric_b) == (pairing.a.name, pairing.b.name)]
            tally = _tally(of_pair, pairing, winner, rates, compared.margin)
            parts.append(f"{words} {names}: {tally}.")
    return " ".join(parts)


def _tally(cells: Sequence[Comparison], pairing: Pairing, winner: str | None, rates: ErrorRates, margin: float) -> str:
    verdicts = [_verdict(one, rates.other, margin) for one in cells]
    texts = []
    for letter, name in (("A", pairing.a.name), ("B", pairing.b.name)):
        wins = sum(one.is_decided and one.leader == letter for one in verdicts)
        if wins:
            texts.append(f"{name} faster in {wins}")
    if not texts:  # then nothing else names the two
        texts.append(f"{pairing.b.name} against {pairing.a.name} decided in none")
    same = sum(one is Verdict.EQUIVALENT for one in verdicts)
    if same:
        texts.append(f"equivalent in {same}")
    rest = sum(not one.is_decided and one is not Verdict.EQUIVALENT for one in verdicts)
    if rest:
        texts.append(f"not settled in {rest}")
    text = f"{', '.join(texts)} of {count(len(cells), 'size')}"
    if winner in (pairing.a.name, pairing.b.name) and rest and _is_slower_nowhere(cells, str(winner), rates, margin):
        text += f", and {winner} slower by {percent(margin)} in none"
    return text


def _is_slower_nowhere(cells: Sequence[Comparison], winner: str, rates: ErrorRates, margin: float) -> bool:
    """Return whether each size shows that the winner is not slower by the margin: all must, so none is corrected for the others."""
    for one in cells:
        known = log_ratio_of(one)
        if known is None or winner in one.thin_sides or one.is_mixed:
            return False
        turned = (winner == one.fabric_b) == one.metric.is_lower_better
        upright = type(known)(-known.mean if turned else known.mean, known.deviation, known.launches, known.freedom)
        if not upright.is_at_least(-log1p(margin), rates.breadth):
            return False
    return True


# Three fabrics and more


def _many(compared: Compared, leading: Sequence[Effect], rates: ErrorRates) -> Answer:
    names = [side.name for side in compared.sides]
    firsts = [
        one.ranks[0] if one.ranks and len(one.ranks) > 1 and one.grade is not Grade.VOID else () for one in leading
    ]
    wins = {name: [one for one, first in zip(leading, firsts, strict=True) if first == (name,)] for name in names}
    champion = max(names, key=lambda name: len(wins[name]))
    reach = _orders(leading)
    if len(wins[champion]) >= WINNING_SHARE * len(leading):
        quoted = _quotable(wins[champion])
        lead = f"{champion} {_seems(quoted)} fastest of {len(names)}"
        sentence = _sentence(lead, quoted, lambda one: _next_pair(one, champion))
        return Answer(sentence, tuple(quoted[:2]), _exceptions(compared, champion, rates, ()), reach)
    if not any(len(one.ranks) > 1 for one in leading):
        few = (
            f": it takes {MINIMUM_LAUNCHES} blocks at least"
            if all(one.p_value is None for one in compared.cells)
            else ""
        )
        return Answer(f"Not enough data to rank {enumeration(names)}{few}.", (), (), _missing(leading))
    quoted = [one for one in leading if len(one.ranks) > 1 and one.grade is not Grade.VOID]
    texts = [f"{_subject(one)[0]} on {enumeration(one.ranks[0])}" for one in quoted]
    options = ("; ".join(texts[:number]) for number in (3, 2, 1))
    text = next((one for one in options if len(one.split()) <= MOST_WORDS - 2), texts[0])
    return Answer(f"No single fastest: {text} lead.", tuple(quoted[:2]), (), reach)


def _next_pair(effect: Effect, champion: str) -> PairEffect:
    """Return the champion's pair with the next best."""
    second = effect.ranks[1][0]
    return next(one for one in effect.pairs if {one.fabric_a, one.fabric_b} == {champion, second})


def _orders(leading: Sequence[Effect]) -> str:
    """Return each row's order, fabrics that cannot be told apart joined by `=`."""
    return " ".join(
        f"{one.what}: {' < '.join(' = '.join(tier) for tier in one.ranks)}." for one in leading if len(one.ranks) > 1
    )


# Before and after


def _change(compared: Compared, leading: Sequence[Effect], rates: ErrorRates) -> Answer:
    """Return what a change did: the largest effect on the worse side, else on the better one, and how far that can be said."""
    replication = compared.pairings[0].replication
    decided = [
        (one, pair) for one in leading for pair in one.pairs if pair.verdict.is_decided and one.grade is not Grade.VOID
    ]
    slower = [found for found in decided if found[1].verdict.leader == "A"]
    chosen = max(slower or decided, key=lambda found: abs(found[1].times - 1), default=None)
    tail = (
        "One run a side cannot tell a change from what else differed between the two sessions."
        if replication is Replication.LAUNCHES
        else ""
    )
    if chosen is None:
        verdicts = [pair.verdict for one in leading for pair in one.pairs]
        is_same = bool(verdicts) and all(one is Verdict.EQUIVALENT for one in verdicts)
        said = (
            f"No change beyond {percent(compared.margin)} in what users meet"
            if is_same
            else "No change is shown, and none is ruled out"
        )
        return Answer(f"{said}.", (), (), " ".join(filter(None, (tail, _missing(leading)))))
    effect, pair = chosen
    values = {one.fabric: one.value for one in effect.readings}
    subject, verb = _subject(effect)
    past = {"take": "took", "takes": "took", "reach": "reached", "reaches": "reached"}[verb]
    before, after = values[pair.fabric_a], values[pair.fabric_b]
    numbers = (
        ""
        if before is None or after is None
        else f"{value_text(effect.metric, before)} before, {value_text(effect.metric, after)} after"
    )
    which = "slower" if pair.verdict.leader == "A" else "faster"
    name = name_of_change(compared.pairings, pair)
    lead = f"{name} {'measured' if tail else 'became'} {which}"
    return Answer(
        f"{lead}: {subject} {past} {numbers}.",
        (effect,),
        (),
        " ".join(filter(None, (tail, _reach(compared, None, rates)))),
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


def _evidence(effects: Iterable[Effect]) -> tuple[str, ...]:
    """Return what is in doubt, effects with the same doubt together, the impossible first."""
    grouped: dict[tuple[bool, str], list[str]] = {}
    for one in effects:
        for doubt in one.doubts:
            grouped.setdefault((one.grade is not Grade.VOID, doubt), []).append(one.what)
    return tuple(
        f"{'doubtful' if is_doubt else 'void'}: {enumeration(names)}: {doubt}"
        for (is_doubt, doubt), names in sorted(grouped.items(), key=lambda item: item[0][0])
    )
