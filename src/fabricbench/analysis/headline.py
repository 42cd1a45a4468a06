"""The answer in a sentence that a director can act on, and no more than the data allow.

Rules. A fabric is called faster at every network layer only if each curve there (each layer, metric and way of
receiving) is decided for it and no single cell against it. `Equivalent` needs every curve equivalent and no cell decided otherwise.
Anything mixed says in how many curves, and who wins where. What is undecided is said to be so. Memory is no network layer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import Enum
from statistics import median

from fabricbench.analysis.findings import Comparison, Crossover, Headline, LadderStep, Verdict
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
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES

EFFECTS_IN_SENTENCE = 2


class Outcome(Enum):
    """What a curve with its cells comes to."""

    A = "a"
    B = "b"
    MIXED = "mixed"
    EQUIVALENT = "equivalent"
    OPEN = "open"


def write_headline(
    cells: Sequence[Comparison],
    curves: Sequence[Comparison],
    crossovers: Sequence[Crossover],
    ladder: Sequence[LadderStep],
    margin: float,
    conditions: str,
) -> Headline:
    """Return sentence, effects and conditions; one sentence for each pair of fabrics."""
    pairs = list(dict.fromkeys((one.fabric_a, one.fabric_b) for one in cells))
    if not pairs:
        return Headline(sentence=_alone(ladder), effects=(), conditions=conditions)
    sentences, effects = [], []
    for pair in pairs:
        of_cells = [one for one in cells if _is_of(one, pair)]
        of_curves = [one for one in curves if _is_of(one, pair)]
        key_cells = _key_cells(of_cells, ladder)
        of_crossovers = [one for one in crossovers if (one.fabric_a, one.fabric_b) == pair]
        sentences.append(_sentence(pair, of_cells, of_curves, key_cells, of_crossovers, margin))
        effects += [effect(one, margin) for one in key_cells]
    return Headline(sentence=" ".join(sentences), effects=tuple(effects), conditions=conditions)


def effect(comparison: Comparison, margin: float) -> str:
    """Return one line: `tcp round trip of 64 B: myrinet 3.10 times shorter (3.05 to 3.14)`."""
    winner = faster(comparison)
    if winner is not None:
        return f"{what(comparison)}: {winner} {how_much(comparison)}"
    names = f"{comparison.fabric_b} / {comparison.fabric_a}"
    if comparison.verdict is Verdict.EQUIVALENT:
        return f"{what(comparison)}: equivalent within {percent(margin)}, {names} {ratio(comparison)}"
    more = comparison.more_blocks_needed
    needed = "" if more is None else f"; about {count(more, 'more block')} would settle it"
    return f"{what(comparison)}: not enough data, {names} {ratio(comparison)}{needed}"


def _is_of(comparison: Comparison, pair: tuple[str, str]) -> bool:
    return comparison.layer is not Layer.MEMORY and (comparison.fabric_a, comparison.fabric_b) == pair


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


def _outcomes(cells: Sequence[Comparison], curves: Sequence[Comparison]) -> dict[tuple[Layer, Metric], Outcome]:
    """Return what each layer and metric comes to, over all ways of receiving and variants."""
    groups: dict[tuple[Layer, Metric], list[Outcome]] = defaultdict(list)
    by_curve = {_curve_name(one): one for one in curves}
    members: dict[tuple[object, ...], list[Comparison]] = defaultdict(list)
    for cell in cells:
        members[_curve_name(cell)].append(cell)
    for name, of_curve in members.items():
        whole = by_curve.get(name, of_curve[0])
        groups[whole.layer, whole.metric].append(_outcome(whole.verdict, {one.verdict for one in of_curve}))
    return {key: _merged(found) for key, found in sorted(groups.items(), key=lambda item: _place(item[0]))}


def _place(key: tuple[Layer, Metric]) -> tuple[int, int]:
    return list(Metric).index(key[1]), list(Layer).index(key[0])


def _curve_name(one: Comparison) -> tuple[object, ...]:
    return one.layer, one.pattern, one.receive, one.variant, one.metric


def _outcome(whole: Verdict, of_cells: set[Verdict]) -> Outcome:
    seen = of_cells | {whole}
    if {Verdict.A_FASTER, Verdict.B_FASTER} <= seen:
        return Outcome.MIXED
    if whole is Verdict.A_FASTER:
        return Outcome.A
    if whole is Verdict.B_FASTER:
        return Outcome.B
    if whole is Verdict.EQUIVALENT and not seen & {Verdict.A_FASTER, Verdict.B_FASTER}:
        return Outcome.EQUIVALENT
    return Outcome.OPEN


def _merged(outcomes: Sequence[Outcome]) -> Outcome:
    seen = set(outcomes)
    if len(seen) == 1:
        return outcomes[0]
    return Outcome.MIXED if Outcome.MIXED in seen or {Outcome.A, Outcome.B} <= seen else Outcome.OPEN


def _sentence(
    pair: tuple[str, str],
    cells: Sequence[Comparison],
    curves: Sequence[Comparison],
    key_cells: Sequence[Comparison],
    crossovers: Sequence[Crossover],
    margin: float,
) -> str:
    outcomes = _outcomes(cells, curves)
    if not outcomes:
        return f"{pair[1]} and {pair[0]} share no measured network layer."
    seen = set(outcomes.values())
    names = {Outcome.A: pair[0], Outcome.B: pair[1]}
    for winner, loser in ((Outcome.A, Outcome.B), (Outcome.B, Outcome.A)):
        if seen == {winner}:
            sizes = _open_sizes(sum(faster(one) is None for one in cells), len(cells))
            return (
                f"{names[winner]} is faster than {names[loser]} at {_layers(outcomes)}{sizes}: {_effects(key_cells)}."
            )
    if seen == {Outcome.EQUIVALENT}:
        sizes = _open_sizes(sum(one.verdict is not Verdict.EQUIVALENT for one in cells), len(cells))
        return f"{pair[1]} and {pair[0]} are equivalent within {percent(margin)} at {_layers(outcomes)}{sizes}."
    if seen <= {Outcome.OPEN, Outcome.EQUIVALENT}:
        return _undecided(pair, cells, outcomes, margin)
    return _mixed(pair, outcomes, key_cells, crossovers)


def _open_sizes(others: int, cells: int) -> str:
    """Return what a statement about curves leaves out: the single sizes whose own verdict does not bear it out."""
    if not others:
        return ""
    return f", taken over message sizes ({others} of {cells} single sizes {'does' if others == 1 else 'do'} not show it alone)"


def _layers(outcomes: dict[tuple[Layer, Metric], Outcome]) -> str:
    layers = list(dict.fromkeys(layer.value for layer, _ in outcomes))
    metrics = {metric for _, metric in outcomes}
    only = f" in {METRIC_WORDS[next(iter(metrics))]}" if len(metrics) == 1 else ""
    return (f"every network layer ({', '.join(layers)})" if len(layers) > 1 else f"the {layers[0]} layer") + only


def _effects(key_cells: Sequence[Comparison]) -> str:
    """Return the effects that a user of the fabric meets: the topmost socket layer first, one of each metric."""
    preferred = [Layer.TCP, Layer.MPI, Layer.UDP, Layer.IP, Layer.FRAME]
    decided = [one for one in key_cells if faster(one) is not None]
    decided.sort(key=lambda one: (preferred.index(one.layer), list(Metric).index(one.metric)))
    first_of_metric = {one.metric: one for one in reversed(decided)}
    chosen = [one for one in decided if one in first_of_metric.values()][:EFFECTS_IN_SENTENCE]
    return ", ".join(f"{what(one)} is {how_much(one)}" for one in chosen)


def _places(outcomes: dict[tuple[Layer, Metric], Outcome], wanted: Outcome) -> str:
    parts = []
    for metric in Metric:
        layers = [layer.value for (layer, of), outcome in outcomes.items() if of is metric and outcome is wanted]
        if layers:
            everywhere = len(layers) == sum(of is metric for _, of in outcomes) > 1
            parts.append(f"{METRIC_WORDS[metric]} at {'every network layer' if everywhere else enumeration(layers)}")
    return enumeration(parts)


def _mixed(
    pair: tuple[str, str],
    outcomes: dict[tuple[Layer, Metric], Outcome],
    key_cells: Sequence[Comparison],
    crossovers: Sequence[Crossover],
) -> str:
    seen = set(outcomes.values())
    is_one_sided = not {Outcome.A, Outcome.B} <= seen and Outcome.MIXED not in seen
    parts = []
    for outcome, name, other in ((Outcome.A, pair[0], pair[1]), (Outcome.B, pair[1], pair[0])):
        if outcome in seen:
            parts.append(f"{name} is faster than {other} in {_places(outcomes, outcome)}")
    if Outcome.MIXED in seen:
        parts.append(f"it depends on the message size in {_places(outcomes, Outcome.MIXED)}")
    if Outcome.EQUIVALENT in seen:
        parts.append(f"they are equivalent in {_places(outcomes, Outcome.EQUIVALENT)}")
    if Outcome.OPEN in seen:
        parts.append(f"the data do not settle {_places(outcomes, Outcome.OPEN)}")
    start = "" if is_one_sided else f"{pair[1]} against {pair[0]}: it depends. "
    body = "; ".join(parts)
    return f"{start}{body}{_crossing(crossovers)}.{_winners(key_cells)}"


def _crossing(crossovers: Sequence[Crossover]) -> str:
    if not crossovers:
        return ""
    one = crossovers[0]
    return (
        f" ({one.layer.value} {METRIC_WORDS[one.metric]}: {one.faster_below} below about "
        f"{_about(one.message_bytes)}, {one.faster_above} above)"
    )


def _about(message_bytes: float) -> str:
    """Return a size with the two digits that a crossover deserves."""
    scaled, unit = (message_bytes / 1024.0, "KiB") if message_bytes >= 1024 else (message_bytes, "B")
    return f"{float(f'{scaled:.2g}'):g} {unit}"


def _winners(key_cells: Sequence[Comparison]) -> str:
    """Return the largest effect on each side, each with the name of who it favours."""
    decided = [one for one in key_cells if faster(one) is not None]
    chosen: dict[str | None, Comparison] = {}
    for one in sorted(decided, key=lambda one: one.layer is not Layer.TCP):
        chosen.setdefault(faster(one), one)
    texts = [f"{what(one)} is {how_much(one)} on {winner} than on {slower(one)}" for winner, one in chosen.items()]
    return f" {enumeration(texts)}." if texts else ""


def _undecided(
    pair: tuple[str, str],
    cells: Sequence[Comparison],
    outcomes: dict[tuple[Layer, Metric], Outcome],
    margin: float,
) -> str:
    if all(one.p_value is None for one in cells):
        return f"Not enough data to say whether {pair[1]} or {pair[0]} is faster: it takes {MINIMUM_LAUNCHES} blocks at least."
    needed = [one.more_blocks_needed for one in cells if one.more_blocks_needed is not None]
    more = f" About {count(round(median(needed)), 'more block')} would settle half of what is open." if needed else ""
    settled = _places(outcomes, Outcome.EQUIVALENT)
    also = f" They are equivalent within {percent(margin)} in {settled}." if settled else ""
    decided = sum(faster(one) is not None for one in cells)
    some = f" Single sizes differ ({decided} of {len(cells)}), see the table." if decided else ""
    return f"Not enough data to say whether {pair[1]} or {pair[0]} is faster.{also}{some}{more}"


def _alone(ladder: Sequence[LadderStep]) -> str:
    texts = []
    for step in ladder:
        if (
            step.layer in (Layer.TCP, Layer.MPI)
            and step.round_trip is not None
            and step.round_trip_message_bytes is not None
        ):
            trip = format_seconds(step.round_trip.value * 1e-9)
            texts.append(
                f"{step.fabric}: {step.layer.value} round trip of "
                f"{format_bytes(step.round_trip_message_bytes)} takes {trip}"
            )
        if step.layer is Layer.TCP and step.throughput is not None:
            texts.append(f"{step.layer.value} throughput reaches {format_bit_s(step.throughput.value)}")
    body = ", ".join(texts)
    return (
        f"{body}; one fabric was measured, so there is nothing to compare it with."
        if body
        else "One fabric was measured, so there is nothing to compare it with."
    )
