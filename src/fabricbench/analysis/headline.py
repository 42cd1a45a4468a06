"""The first screen in words: the answer, what bears it out, the effects with their intervals. Never more than the data allow.

Rules. A fabric is called faster at every network layer only if each curve there (each layer, metric and way of
receiving) is decided for it and no single cell against it. Curves are those of ping-pong and stream: other patterns have tables
of their own. `Equivalent` needs every curve equivalent and no cell decided otherwise.
Anything mixed says in how many curves, and who wins where. What is undecided is said to be so. Memory is no network layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from fabricbench.analysis.claims import PREFERRED, claim, main_crossover, main_effects
from fabricbench.analysis.findings import Comparison, Crossover, Headline, LadderStep, Verdict, is_basic
from fabricbench.analysis.measured import AFTER, BEFORE
from fabricbench.analysis.outcomes import Match, Outcome, outcomes_of
from fabricbench.analysis.wording import (
    METRIC_WORDS,
    count,
    enumeration,
    faster,
    how_much,
    percent,
    ratio,
    slower,
    what,
)
from fabricbench.model import Layer, Metric
from fabricbench.quantity import format_bit_s, format_bytes, format_seconds


def write_headline(
    cells: Sequence[Comparison],
    curves: Sequence[Comparison],
    crossovers: Sequence[Crossover],
    ladder: Sequence[LadderStep],
    margin: float,
    conditions: str,
) -> Headline:
    """Return the answer, its details for each pair of fabrics, the effects with the decided ones first, the conditions."""
    pairs = list(dict.fromkeys((one.fabric_a, one.fabric_b) for one in cells))
    if not pairs:
        return Headline(sentence="One fabric was measured.", detail=_alone(ladder), effects=(), conditions=conditions)
    matches = [_match(pair, cells, curves, crossovers, ladder) for pair in pairs]
    effects = sorted((one for match in matches for one in match.key_cells), key=_weight)
    return Headline(
        sentence=claim(matches, margin),
        detail=" ".join(filter(None, (_detail(match, margin, is_alone=len(matches) == 1) for match in matches))),
        effects=tuple(effect(one, margin, is_alone=len(matches) == 1) for one in effects),
        conditions=conditions,
    )


def effect(comparison: Comparison, margin: float, *, is_alone: bool = True) -> str:
    """Return one line: `tcp round trip of 64 B: myrinet 3.10 times shorter (3.05 to 3.14)`.

    With more than two fabrics the slower one is the baseline, and named where it is not.
    """
    winner = faster(comparison)
    if winner is not None:
        than = "" if is_alone or winner == comparison.fabric_b else f" than {slower(comparison)}"
        return f"{what(comparison)}: {winner} {how_much(comparison)}{than}"
    names = _sides(comparison)
    if comparison.verdict is Verdict.EQUIVALENT:
        return f"{what(comparison)}: equivalent within {percent(margin)}, {names} {ratio(comparison)}"
    more = comparison.more_blocks_needed
    needed = "" if more is None else f"; about {count(more, 'more block')} would settle it"
    return f"{what(comparison)}: not enough data, {names} {ratio(comparison)}{needed}"


def _sides(comparison: Comparison) -> str:
    """Return what the ratio is of: `myrinet / sci`, and `after / before` for two runs of one fabric."""
    a, b = comparison.fabric_a, comparison.fabric_b
    is_same = b.endswith(AFTER) and a == f"{b.removesuffix(AFTER)}{BEFORE}"
    return "after / before" if is_same else f"{b} / {a}"


def _weight(one: Comparison) -> tuple[bool, int, int]:
    return faster(one) is None, PREFERRED.index(one.layer), list(Metric).index(one.metric)


def _match(
    pair: tuple[str, str],
    cells: Sequence[Comparison],
    curves: Sequence[Comparison],
    crossovers: Sequence[Crossover],
    ladder: Sequence[LadderStep],
) -> Match:
    def is_mine(one: Comparison | Crossover) -> bool:
        return one.layer is not Layer.MEMORY and is_basic(one) and (one.fabric_a, one.fabric_b) == pair

    of_cells = tuple(filter(is_mine, cells))
    return Match(
        *pair,
        cells=of_cells,
        key_cells=tuple(_key_cells(of_cells, ladder)),
        crossovers=tuple(filter(is_mine, crossovers)),
        outcomes=outcomes_of(of_cells, list(filter(is_mine, curves))),
    )


def _key_cells(cells: Sequence[Comparison], ladder: Sequence[LadderStep]) -> list[Comparison]:
    """Return for each layer the round trip of the ladder's message and the throughput of the largest size, as on the ladder."""
    found = []
    for metric in Metric:
        for layer in Layer:
            receives = {step.receive for step in ladder if step.layer is layer}
            mine = [one for one in cells if one.layer is layer and one.metric is metric and one.receive in receives]
            sizes = [one.message_bytes or 0 for one in mine]
            steps = {step.round_trip_message_bytes or 0 for step in ladder if step.layer is layer}
            chosen = (
                max(sizes, default=0)
                if metric is Metric.THROUGHPUT
                else min(steps & set(sizes), default=min(sizes, default=0))
            )
            found += [one for one in mine if one.message_bytes == chosen][:1]
    return found


def _detail(match: Match, margin: float, *, is_alone: bool) -> str:
    """Return what bears the answer out: who wins where and by how much, and what does not fit in."""
    seen = match.seen
    if match.winner is not None:
        basis = _basis(match, sum(faster(one) is None for one in match.cells), is_alone=is_alone)
        main = main_effects(match)
        if not is_alone and match.winner == match.b:
            return f"{match.b}: {', '.join(f'{what(one)} {how_much(one)}' for one in main)}. {basis}"
        effects = [f"{what(one)} is {how_much(one)}" for one in main]
        loser = match.a if match.winner == match.b else match.b
        than = f" on {match.winner} than on {loser}"
        return f"{enumeration(effects)}{than}. {basis}" if effects else basis
    if not seen:
        return ""
    if seen == {Outcome.EQUIVALENT}:
        return _basis(match, sum(one.verdict is not Verdict.EQUIVALENT for one in match.cells), is_alone=is_alone)
    if seen <= {Outcome.OPEN, Outcome.EQUIVALENT}:
        return _undecided(match, margin)
    return _mixed(match)


def _basis(match: Match, others: int, *, is_alone: bool) -> str:
    """Return what was taken together, and the single sizes whose own verdict does not bear it out."""
    layers = enumeration(list(dict.fromkeys(layer.value for layer, _ in match.outcomes)))
    cells = len(match.cells)
    whose = f" of {layers}" if is_alone else ""
    if not others:
        return f"Each of the {cells} single sizes{whose} agrees."
    verb = "does" if others == 1 else "do"
    return f"Taken over the message sizes{whose}; {others} of {cells} single sizes {verb} not show it alone."


def _places(match: Match, wanted: Outcome) -> str:
    parts = []
    for metric in Metric:
        layers = match.layers(metric, wanted)
        if layers:
            everywhere = len(layers) == len(match.layers(metric)) > 1
            parts.append(f"{METRIC_WORDS[metric]} at {'every network layer' if everywhere else enumeration(layers)}")
    return enumeration(parts)


def _mixed(match: Match) -> str:
    parts = []
    for outcome, name, other in ((Outcome.A, match.a, match.b), (Outcome.B, match.b, match.a)):
        if outcome in match.seen:
            parts.append(f"{name} is faster than {other} in {_places(match, outcome)}")
    if Outcome.MIXED in match.seen:
        parts.append(f"it depends on the message size in {_places(match, Outcome.MIXED)}{_crossing(match.crossovers)}")
    if Outcome.EQUIVALENT in match.seen:
        parts.append(f"they are equivalent in {_places(match, Outcome.EQUIVALENT)}")
    if Outcome.OPEN in match.seen:
        parts.append(f"the data do not settle {_places(match, Outcome.OPEN)}")
    body = "; ".join(parts)
    return f"{body}.{_winners(match.key_cells)}"


def _crossing(crossovers: Sequence[Crossover]) -> str:
    if not crossovers:
        return ""
    one = main_crossover(crossovers)
    between = f"between {format_bytes(one.lower_bytes)} and {format_bytes(one.upper_bytes)}"
    return f" ({one.layer.value} {METRIC_WORDS[one.metric]}: {one.faster_above} overtakes {one.faster_below} {between})"


def _winners(key_cells: Sequence[Comparison]) -> str:
    """Return the largest effect on each side, each with the name of who it favours."""
    decided = [one for one in key_cells if faster(one) is not None]
    chosen: dict[str | None, Comparison] = {}
    for one in sorted(decided, key=lambda one: one.layer is not Layer.TCP):
        chosen.setdefault(faster(one), one)
    texts = [f"{what(one)} is {how_much(one)} on {winner} than on {slower(one)}" for winner, one in chosen.items()]
    return f" {enumeration(texts)}." if texts else ""


def _undecided(match: Match, margin: float) -> str:
    cells = match.cells
    needed = [one.more_blocks_needed for one in cells if one.more_blocks_needed is not None]
    more = f"About {count(round(median(needed)), 'more block')} would settle half of what is open." if needed else ""
    settled = _places(match, Outcome.EQUIVALENT)
    also = f"They are equivalent within {percent(margin)} in {settled}." if settled else ""
    decided = sum(faster(one) is not None for one in cells)
    some = f"Single sizes differ ({decided} of {len(cells)}), see the table." if decided else ""
    return " ".join(filter(None, (also, some, more)))


def _alone(ladder: Sequence[LadderStep]) -> str:
    texts = []
    for step in ladder:
        if step.layer not in (Layer.TCP, Layer.MPI):
            continue
        if step.round_trip is not None and step.round_trip_message_bytes is not None:
            size, trip = format_bytes(step.round_trip_message_bytes), format_seconds(step.round_trip.value * 1e-9)
            texts.append(f"{step.fabric}: {step.layer.value} round trip of {size} takes {trip}")
        if step.layer is Layer.TCP and step.throughput is not None:
            texts.append(f"{step.layer.value} throughput reaches {format_bit_s(step.throughput.value)}")
    return (
        f"{'; '.join(texts)}. There is nothing to compare it with." if texts else "There is nothing to compare it with."
    )
