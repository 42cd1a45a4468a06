"""What single sizes add to the answer: a crossing that may lead it, exceptions to it, how far it reaches.

Each size is decided within the error of all comparisons (`ErrorRates.other`), whatever the tables say of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import exp, log1p

from fabricbench.analysis.comparing import Pairing, verdict_of
from fabricbench.analysis.crossovers import cell_key
from fabricbench.analysis.effects import Compared, ErrorRates, log_ratio_of
from fabricbench.analysis.findings import Comparison, Crossover, Effect, PairEffect, Verdict, is_basic
from fabricbench.analysis.node_sets import blocks_of, on_leading_nodes
from fabricbench.analysis.rows import MET_BY_USERS, layer_name
from fabricbench.analysis.wording import enumeration, percent, size_text, slower_by
from fabricbench.model import Layer
from fabricbench.quantity import count

MOST_EXCEPTIONS = 3


def usable_sizes(compared: Compared) -> list[Comparison]:
    """Return the sizes of ping-pongs and streams over the network whose numbers can be right."""
    sides = {side.name: side for side in compared.sides}
    keys = dict.fromkeys(key for side in compared.sides for key in side.cells)
    leading = set(on_leading_nodes(keys, blocks_of(compared.sides)))

    def is_void(one: Comparison, fabric: str) -> bool:
        cell = sides[fabric].cells.get(cell_key(one))
        return cell is None or any(doubt.is_void for doubt in compared.judge(sides[fabric], cell, False, None))

    return [
        one
        for one in compared.cells
        if one.layer is not Layer.MEMORY
        and is_basic(one)
        and cell_key(one) in leading
        and not is_void(one, one.fabric_a)
        and not is_void(one, one.fabric_b)
    ]


def leading_crossing(compared: Compared, rates: ErrorRates) -> Crossover | None:
    """Return the crossing that may lead: in a layer that users meet, its neighbours decided and close, no other size against it."""
    curves: dict[tuple[object, ...], dict[int, Verdict]] = {}
    for one in usable_sizes(compared):
        verdict = size_verdict(one, rates, compared.margin)
        curves.setdefault(_curve(one), {})[one.message_bytes or 0] = verdict

    def holds(one: Crossover) -> bool:
        verdicts = curves.get(_curve(one), {})
        below, above = ("A", "B") if one.faster_below == one.fabric_a else ("B", "A")
        ends = [verdicts.get(size) for size in (one.lower_bytes, one.upper_bytes)]
        return all(end is not None and end.is_decided for end in ends) and all(
            verdict.leader in (None, below if size <= one.lower_bytes else above) for size, verdict in verdicts.items()
        )

    found = [one for one in compared.crossovers if one.layer in MET_BY_USERS and is_basic(one) and one.is_close]
    return min(filter(holds, found), key=lambda one: MET_BY_USERS.index(one.layer), default=None)


def _curve(one: Comparison | Crossover) -> tuple[object, ...]:
    return one.layer, one.pattern, one.receive, one.variant, one.metric, one.fabric_a, one.fabric_b


def depends_text(one: Crossover) -> str:
    """Return the sentence of a crossing."""
    thing = "messages" if one.metric.is_time else "streams"
    return (
        f"It depends on the size: {layer_name(one.layer)} {thing} are faster on {one.faster_below} up to "
        f"{size_text(one.lower_bytes)}, on {one.faster_above} from {size_text(one.upper_bytes)}."
    )


def size_verdict(one: Comparison, rates: ErrorRates, margin: float) -> Verdict:
    """Return what a size shows within the error that the first screen has for it."""
    known = log_ratio_of(one)
    if known is None:
        return Verdict.NOT_ENOUGH_DATA
    found = verdict_of(known.decide(rates.of_size(one), margin), one.metric)
    leader = {"A": one.fabric_a, "B": one.fabric_b}.get(found.leader or "")
    if found is Verdict.EQUIVALENT and (one.thin_sides or one.is_mixed):
        return Verdict.NOT_ENOUGH_DATA
    if leader in one.thin_sides or (one.is_mixed and one.verdict.leader != found.leader):
        return Verdict.NOT_ENOUGH_DATA
    return one.verdict if one.is_mixed and one.verdict.is_ahead else found  # the median pair shows no more than that


def exceptions(compared: Compared, winner: str, rates: ErrorRates, told: Sequence[str]) -> tuple[str, ...]:
    """Return where the winner is slower by more than the margin: leading rows first, then sizes next to each other in one."""
    curves: dict[tuple[object, ...], list[Comparison]] = {}
    for one in sorted(usable_sizes(compared), key=lambda one: one.message_bytes or 0):
        if winner in (one.fabric_a, one.fabric_b):
            curves.setdefault(_curve(one), []).append(one)
    groups = [group for curve in curves.values() for group in _runs_against(curve, winner, rates, compared.margin)]
    order = [*MET_BY_USERS, *(layer for layer in reversed(Layer) if layer not in MET_BY_USERS)]
    groups.sort(key=lambda group: order.index(group[0].layer))
    texts = [*told, *(_group_text(group, rates, is_many=len(compared.sides) > 2) for group in groups)]
    texts = list(dict.fromkeys(texts))
    left = len(texts) - MOST_EXCEPTIONS
    return (*texts[:MOST_EXCEPTIONS], *((f"{left} more, see the table of ratios",) if left > 0 else ()))


def _runs_against(
    curve: Sequence[Comparison], winner: str, rates: ErrorRates, margin: float
) -> Iterable[list[Comparison]]:
    """Yield the measured sizes next to each other at which the winner is slower by more than the margin."""
    for is_against, group in groupby(
        curve,
        lambda one: (verdict := size_verdict(one, rates, margin)).is_decided and _leader(one, verdict) != winner,
    ):
        if is_against:
            yield list(group)


def _leader(one: Comparison, verdict: Verdict) -> str | None:
    return {"A": one.fabric_a, "B": one.fabric_b}.get(verdict.leader or "")


def _group_text(group: Sequence[Comparison], rates: ErrorRates, *, is_many: bool) -> str:
    """Return `raw frames of 64 to 256 B, 24 % slower (15 to 32 %)`: of several sizes the worst."""
    worst = max(group, key=lambda one: max(one.ratio, 1 / one.ratio))
    known = log_ratio_of(worst)
    assert known is not None  # noqa: S101 - only decided comparisons come here
    low, high = known.bounds(rates.of_size(worst))
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


def exception_of(effect: Effect, pair: PairEffect) -> str:
    """Return a leading row that speaks against the winner."""
    times = max(pair.times, 1 / pair.times)
    ends = sorted(max(end, 1 / end) for end in (pair.low, pair.high) if end is not None)
    return f"{effect.what}, {slower_by(effect.metric, times, ends[0], ends[-1])}"


def reach(compared: Compared, winner: str | None, rates: ErrorRates) -> str:
    """Return how far the answer reaches over single sizes, the layers that users meet apart from those below."""
    parts = []
    usable = usable_sizes(compared)
    for layers, words in ((MET_BY_USERS, "Over"), ([one for one in Layer if one not in MET_BY_USERS], "Below, over")):
        mine = [one for one in usable if one.layer in layers]
        names = enumeration([layer_name(layer) for layer in layers if any(one.layer is layer for one in mine)])
        for pairing in compared.pairings if mine else ():
            of_pair = [one for one in mine if (one.fabric_a, one.fabric_b) == (pairing.a.name, pairing.b.name)]
            tally = _tally(of_pair, pairing, winner, rates, compared.margin)
            parts.append(f"{words} {names}: {tally}.")
    return " ".join(parts)


def _tally(cells: Sequence[Comparison], pairing: Pairing, winner: str | None, rates: ErrorRates, margin: float) -> str:
    verdicts = [size_verdict(one, rates, margin) for one in cells]
    texts = []
    for letter, name in (("A", pairing.a.name), ("B", pairing.b.name)):
        wins = sum(one.is_decided and one.leader == letter for one in verdicts)
        leads = sum(one.is_ahead and one.leader == letter for one in verdicts)
        texts += [f"{name} faster in {wins}"] if wins else []
        texts += [f"{name} ahead in {leads}"] if leads else []
    if not texts:  # then nothing else names the two
        texts.append(f"neither {pairing.a.name} nor {pairing.b.name} faster")
    same = sum(one is Verdict.EQUIVALENT for one in verdicts)
    if same:
        texts.append(f"equivalent in {same}")
    rest = verdicts.count(Verdict.NOT_ENOUGH_DATA)
    if rest:
        texts.append(f"not settled in {rest}")
    text = f"{', '.join(texts)} of {count(len(cells), 'size')}"
    is_open = any(not one.is_decided and one is not Verdict.EQUIVALENT for one in verdicts)
    if winner in (pairing.a.name, pairing.b.name) and is_open and _is_slower_nowhere(cells, str(winner), rates, margin):
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
