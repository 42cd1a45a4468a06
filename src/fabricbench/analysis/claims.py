"""The answer in one short sentence, for a reader who reads no further: about twenty words, and no more than the data allow."""

from __future__ import annotations

from collections.abc import Sequence

from fabricbench.analysis.findings import Comparison, Crossover
from fabricbench.analysis.outcomes import Match, Outcome
from fabricbench.analysis.wording import METRIC_WORDS, enumeration, faster, how_much_briefly, percent
from fabricbench.model import Layer, Metric
from fabricbench.quantity import format_bytes
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES

PREFERRED = (Layer.TCP, Layer.MPI, Layer.UDP, Layer.IP, Layer.FRAME)
"""What users of a network meet, first things first."""

UNTOLD = "cannot be told from {a} by these data"


def claim(matches: Sequence[Match], margin: float) -> str:
    """Return the answer: one sentence for two fabrics, one for each group of fabrics that fare alike with more."""
    if len(matches) == 1:
        (match,) = matches
        return f"{_claim(match, margin)}{_numbers(match)}."
    together: list[str] = []
    rest = list(matches)
    for is_like, words in ((_is_won_by_b, "are faster than {a} at every network layer"), (_is_open, UNTOLD)):
        alike = [match for match in rest if is_like(match)]
        if len(alike) > 1:
            names = enumeration([match.b for match in alike])
            together.append(f"{names} {words.format(a=alike[0].a)}{_too_few(alike)}.")
            rest = [match for match in rest if match not in alike]
    return " ".join([*together, *(f"{_claim(match, margin)}." for match in rest)])


def _is_won_by_b(match: Match) -> bool:
    return match.winner == match.b


def _is_open(match: Match) -> bool:
    return Outcome.OPEN in match.seen and match.seen <= {Outcome.OPEN, Outcome.EQUIVALENT}


def _too_few(matches: Sequence[Match]) -> str:
    """Return how many blocks it takes where no comparison could be made at all."""
    is_none = all(one.p_value is None for match in matches for one in match.cells)
    return f": it takes {MINIMUM_LAUNCHES} blocks at least" if is_none else ""


def main_effects(match: Match) -> list[Comparison]:
    """Return the decided effects that a user of the fabric meets: of each metric the one at the most preferred layer."""
    decided = [one for one in match.key_cells if faster(one) is not None]
    decided.sort(key=lambda one: (PREFERRED.index(one.layer), list(Metric).index(one.metric)))
    first_of_metric = {one.metric: one for one in reversed(decided)}
    return [one for one in decided if one is first_of_metric[one.metric]]


def _claim(match: Match, margin: float) -> str:
    seen = match.seen
    if not seen:
        return f"No ping-pong or stream was measured on both {match.b} and {match.a}: what was is compared below"
    if match.winner is not None:
        loser = match.a if match.winner == match.b else match.b
        return f"{match.winner} is faster than {loser} at {_everywhere(match)}"
    if seen == {Outcome.EQUIVALENT}:
        return f"{match.b} and {match.a} are equivalent within {percent(margin)} at {_everywhere(match)}"
    if seen <= {Outcome.OPEN, Outcome.EQUIVALENT}:
        return _undecided(match)
    if Outcome.MIXED not in seen and not {Outcome.A, Outcome.B} <= seen:
        return _one_sided(match)
    return _two_sided(match)


def _everywhere(match: Match) -> str:
    layers = {layer for layer, _ in match.outcomes}
    metrics = {metric for _, metric in match.outcomes}
    only = f" in {METRIC_WORDS[next(iter(metrics))]}" if len(metrics) == 1 else ""
    return ("every network layer" if len(layers) > 1 else f"the {next(iter(layers)).value} layer") + only


def _numbers(match: Match) -> str:
    """Return the main effects in a few words, where one fabric wins everywhere."""
    if match.winner is None:
        return ""
    texts: list[str] = []
    last: Layer | None = None
    for one in main_effects(match):
        layer = "" if one.layer is last else f"{one.layer.value} "
        texts.append(f"{layer}{METRIC_WORDS[one.metric]} {how_much_briefly(one)}")
        last = one.layer
    return f": {', '.join(texts)}" if texts else ""


def _undecided(match: Match) -> str:
    return f"Not enough data to say whether {match.b} or {match.a} is faster{_too_few([match])}"


def _one_sided(match: Match) -> str:
    side = Outcome.A if Outcome.A in match.seen else Outcome.B
    name, other = (match.a, match.b) if side is Outcome.A else (match.b, match.a)
    rest = {Outcome.OPEN: "undecided", Outcome.EQUIVALENT: "equivalent"}
    words = " or ".join(word for outcome, word in rest.items() if outcome in match.seen)
    return f"{name} is faster than {other} in {_extent(match, side)}, {words} elsewhere"


def _extent(match: Match, outcome: Outcome) -> str:
    """Return `round trip at every network layer and throughput at 4 of 5`."""
    parts = []
    for metric in Metric:
        layers, all_layers = match.layers(metric, outcome), match.layers(metric)
        if layers:
            where = layers[0] if len(layers) == 1 else f"{len(layers)} of {len(all_layers)} layers"
            parts.append(f"{METRIC_WORDS[metric]} at {'every layer' if len(layers) == len(all_layers) > 1 else where}")
    return enumeration(parts)


def _two_sided(match: Match) -> str:
    if Outcome.MIXED in match.seen and match.crossovers:
        one = main_crossover(match.crossovers)
        return (
            f"It depends on the message size: in {one.layer.value} {METRIC_WORDS[one.metric]}, {one.faster_below} is faster "
            f"up to {format_bytes(one.lower_bytes)}, {one.faster_above} from {format_bytes(one.upper_bytes)}"
        )
    sides = [
        f"{name} is faster in {_extent(match, outcome)}"
        for outcome, name in ((Outcome.A, match.a), (Outcome.B, match.b))
        if outcome in match.seen
    ]
    if sides:
        return f"It depends: {', '.join(sides)}"
    return f"Whether {match.b} or {match.a} is faster depends on the message size"


def main_crossover(crossovers: Sequence[Crossover]) -> Crossover:
    """Return the crossover that most users meet: at the most preferred layer, the one known best."""
    return min(crossovers, key=lambda one: (PREFERRED.index(one.layer), one.upper_bytes / one.lower_bytes))
