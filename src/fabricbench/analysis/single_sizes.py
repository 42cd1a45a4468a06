"""What single sizes add to the answer: whether they bear out a row, a crossing that leads it, exceptions to it, how far it reaches.

A row of the first screen is one size of a curve, the smallest message or the largest stream. So it speaks for its fabric only where
the other sizes do not speak for the other one. Each size, and each mean over sizes, is decided within the error of all comparisons
(`ErrorRates.other`), whatever the tables say of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, pairwise
from math import exp, log1p

from fabricbench.analysis.comparing import verdict_of
from fabricbench.analysis.effects import Compared, ErrorRates
from fabricbench.analysis.findings import CellKey, Comparison, Effect, Letter, PairEffect, Verdict, is_basic
from fabricbench.analysis.node_sets import blocks_of, on_leading_nodes
from fabricbench.analysis.pairing import Pairing
from fabricbench.analysis.row_values import log_ratio_of, log_ratio_over
from fabricbench.analysis.rows import MET_BY_USERS, layer_name
from fabricbench.analysis.wording import percent, size_text, slower_by
from fabricbench.model import Layer, Metric
from fabricbench.quantity import count, enumeration
from fabricbench.statistics.decision import FEWEST_PAIRS, shared_by, stronger

MOST_EXCEPTIONS = 3
BEARING_SHARE = 0.8
"""Of the sizes of a curve that are decided: in so many its row's fabric is faster, else the row does not speak for the curve.
As in the headline (`answer.WINNING_SHARE`): four sizes of five."""


def usable_sizes(compared: Compared) -> list[Comparison]:
    """Return the sizes of ping-pongs and streams over the network whose numbers can be right."""
    sides = {side.name: side for side in compared.sides}
    keys = dict.fromkeys(key for side in compared.sides for key in side.cells)
    leading = set(on_leading_nodes(keys, blocks_of(compared.sides)))

    @cache
    def is_void(key: CellKey, fabric: str) -> bool:
        cell = sides[fabric].cells.get(key)
        return cell is None or any(doubt.is_void for doubt in compared.judge(sides[fabric], cell, False, None))

    return [
        one
        for one in compared.cells
        if one.layer is not Layer.MEMORY
        and is_basic(one)
        and (key := one.key) in leading
        and not is_void(key, one.fabric_a)
        and not is_void(key, one.fabric_b)
    ]


@dataclass(frozen=True)
class SizesOfCrossing:
    """Two measured sizes: up to the one `below` is faster, from the other on `above` is, and no size says otherwise."""

    below: str
    last_bytes: int
    above: str
    first_bytes: int


@dataclass(frozen=True)
class SizesOfCurve:
    """Who is faster, by more than the margin, at which size of a curve of two fabrics, in ascending order, and who leads its mean.

    None where it is not decided; `mean` is the geometric mean over the sizes.
    """

    layer: Layer
    metric: Metric
    pair: tuple[str, str]
    leaders: Mapping[int, str | None]
    mean: str | None

    def wins(self, name: str) -> int:
        """Return the number of sizes at which a fabric is faster."""
        return sum(leader == name for leader in self.leaders.values())

    def bears_out(self, name: str) -> bool:
        """Whether the curve speaks for a fabric as its row does: by the count of decided sizes, and not against it by the mean."""
        decided = sum(leader is not None for leader in self.leaders.values())
        return self.wins(name) >= BEARING_SHARE * decided and self.mean in (None, name)

    @property
    def crossing(self) -> SizesOfCrossing | None:
        """Where the faster fabric changes, where it does so once."""
        decided = [(size, leader) for size, leader in self.leaders.items() if leader is not None]
        changes = [(one, other) for one, other in pairwise(decided) if one[1] != other[1]]
        if len(changes) != 1:
            return None
        ((last, below), (first, above)) = changes[0]
        return SizesOfCrossing(below, last, above, first)


def curves_met(compared: Compared, rates: ErrorRates) -> dict[tuple[object, ...], SizesOfCurve]:
    """Return the curves of the layers that users meet, of each pair, in the order of these layers."""
    cells: dict[tuple[object, ...], list[Comparison]] = {}
    for one in sorted(usable_sizes(compared), key=lambda one: (_rank(one), one.message_bytes or 0)):
        if one.layer in MET_BY_USERS:
            cells.setdefault(_curve(one), []).append(one)
    means = {_curve(one): size_verdict(one, rates, compared) for one in compared.curves}
    measured = Counter(_curve(one) for one in compared.cells)

    def mean_of(curve: tuple[object, ...], one: Comparison) -> str | None:
        is_whole = len(cells[curve]) == measured[curve]  # a mean over sizes of which some cannot be right says nothing
        found = means.get(curve) if is_whole else None
        return None if found is None else found.of_leader(one.fabric_a, one.fabric_b)

    def leader(one: Comparison) -> str | None:
        verdict = size_verdict(one, rates, compared)
        return verdict.of_leader(one.fabric_a, one.fabric_b) if verdict.is_decided else None

    return {
        curve: SizesOfCurve(
            layer=those[0].layer,
            metric=those[0].metric,
            pair=(those[0].fabric_a, those[0].fabric_b),
            leaders={one.message_bytes or 0: leader(one) for one in those},
            mean=mean_of(curve, those[0]),
        )
        for curve, those in cells.items()
    }


def curve_of(
    effect: Effect, pair: PairEffect, curves: Mapping[tuple[object, ...], SizesOfCurve]
) -> SizesOfCurve | None:
    """Return the curve that a row is one size of; None of an application, and of what is told no curve of."""
    if effect.key is None or not is_basic(effect.key):
        return None
    key = effect.key
    return curves.get((key.layer, key.pattern, key.receive, key.setup, key.metric, pair.fabric_a, pair.fabric_b))


def is_contested(effect: Effect, pair: PairEffect, curves: Mapping[tuple[object, ...], SizesOfCurve]) -> bool:
    """Return whether a row is decided for a fabric, and the other sizes of its curve do not bear that out."""
    leader = pair.verdict.of_leader(pair.fabric_a, pair.fabric_b)
    curve = curve_of(effect, pair, curves)
    return pair.verdict.is_decided and leader is not None and curve is not None and not curve.bears_out(leader)


def _rank(one: Comparison) -> int:
    return MET_BY_USERS.index(one.layer) if one.layer in MET_BY_USERS else len(MET_BY_USERS)


def _curve(one: Comparison) -> tuple[object, ...]:
    return one.layer, one.pattern, one.receive, one.setup, one.metric, one.fabric_a, one.fabric_b


def depends_texts(found: Sequence[SizesOfCurve], curves: Iterable[SizesOfCurve]) -> tuple[str, ...]:
    """Return the sentence where sizes of `found` speak for both fabrics, the fuller first: where that changes, who leads in more.

    The counts are over all sizes of `curves`.
    """
    every = [leader for one in curves for leader in one.leaders.values()]
    (first, most), *rest = Counter(leader for leader in every if leader is not None).most_common()
    leads = f"{first} leads in {most} of {count(len(every), 'size')}"
    is_tie = bool(rest) and rest[0][1] == most
    crossed = [(one, one.crossing) for one in found]
    texts = [
        f"It depends on the size: {layer_name(one.layer)} {_thing(one.metric)} are faster on {crossing.below} up to "
        f"{size_text(crossing.last_bytes)}, on {crossing.above} from {size_text(crossing.first_bytes)}"
        for one, crossing in crossed
        if crossing is not None
    ][:1]
    counts = ", ".join([f"{first} is faster in {most} of {len(every)}", *(f"{name} in {wins}" for name, wins in rest)])
    fuller = [f"{text}; {leads}." for text in texts if not is_tie]
    return (*fuller, *(f"{text}." for text in texts), f"It depends on the size: {counts}.", "It depends on the size.")


def _thing(metric: Metric) -> str:
    return "messages" if metric.is_time else "streams"


def size_verdict(one: Comparison, rates: ErrorRates, compared: Compared) -> Verdict:
    """Return what a size shows within the error that the first screen has for it.

    Where blocks are of several sessions, which scatter more than blocks do, no more than its table shows, which holds that.
    """
    known = log_ratio_of(one)
    if known is None or (one.is_paired and one.launches < FEWEST_PAIRS):
        return Verdict.NOT_ENOUGH_DATA
    rate, margin = rates.of_size(one), compared.margin
    decision = known.decide(rate, margin)
    if one.groups is not None:
        decision = stronger(decision, shared_by(one.groups.parts(known.rounding_bound), rate, margin))
    found = verdict_of(decision, one.metric, is_unresolved=known.is_unresolved(margin))
    if compared.has_sessions(one) and found is not one.verdict:
        if found.leader is None or one.verdict.leader is not found.leader:
            return Verdict.NOT_ENOUGH_DATA
        found = one.verdict if one.verdict.is_ahead else found
    is_thin = found.of_leader(one.fabric_a, one.fabric_b) in one.thin_sides
    return Verdict.NOT_ENOUGH_DATA if is_thin or (found is Verdict.EQUIVALENT and one.thin_sides) else found


def exceptions(compared: Compared, winner: str, rates: ErrorRates, told: Sequence[str]) -> tuple[str, ...]:
    """Return where the winner is slower by more than the margin: leading rows first, then sizes next to each other in one."""
    curves: dict[tuple[object, ...], list[Comparison]] = {}
    for one in sorted(usable_sizes(compared), key=lambda one: one.message_bytes or 0):
        if winner in (one.fabric_a, one.fabric_b):
            curves.setdefault(_curve(one), []).append(one)
    groups = [group for curve in curves.values() for group in _runs_against(curve, winner, rates, compared)]
    order = [*MET_BY_USERS, *(layer for layer in reversed(Layer) if layer not in MET_BY_USERS)]
    groups.sort(key=lambda group: order.index(group[0].layer))
    texts = [*told, *(_group_text(group, rates, is_many=len(compared.sides) > 2) for group in groups)]
    return shortened(texts)


def shortened(exceptions: Sequence[str]) -> tuple[str, ...]:
    """Return the first exceptions, and how many more there are."""
    texts = list(dict.fromkeys(exceptions))
    left = len(texts) - MOST_EXCEPTIONS
    return (*texts[:MOST_EXCEPTIONS], *((f"{left} more, see the table of ratios",) if left > 0 else ()))


def _runs_against(
    curve: Sequence[Comparison], winner: str, rates: ErrorRates, compared: Compared
) -> Iterable[list[Comparison]]:
    """Yield the measured sizes next to each other at which the winner is slower by more than the margin."""

    def is_against(one: Comparison) -> bool:
        verdict = size_verdict(one, rates, compared)
        return verdict.is_decided and verdict.of_leader(one.fabric_a, one.fabric_b) != winner

    yield from (list(group) for is_slower, group in groupby(curve, is_against) if is_slower)


def _group_text(group: Sequence[Comparison], rates: ErrorRates, *, is_many: bool) -> str:
    """Return `raw frames of 64 to 256 B, 24 % slower (15 to 32 %)`: of several sizes the worst."""
    worst = max(group, key=lambda one: max(one.ratio, 1 / one.ratio))
    known = log_ratio_of(worst)
    assert known is not None  # noqa: S101 - only decided comparisons come here
    low, high = known.bounds(rates.of_size(worst))
    by = slower_by(worst.metric, *_seen_from_worse(exp(known.mean), exp(low), exp(high)))
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
    if pair.low is None or pair.high is None:
        return f"{effect.what}, {slower_by(effect.metric, max(pair.times, 1 / pair.times), None, None)}"
    return f"{effect.what}, {slower_by(effect.metric, *_seen_from_worse(pair.times, pair.low, pair.high))}"


def _seen_from_worse(times: float, low: float, high: float) -> tuple[float, float | None, float | None]:
    """Return a ratio above 1 and its interval; none where that holds 1, as it may of launches in two groups or of sessions."""
    times, low, high = (times, low, high) if times >= 1 else (1 / times, 1 / high, 1 / low)
    return (times, low, high) if low >= 1 else (times, None, None)


def reach(compared: Compared, winner: str | None, rates: ErrorRates) -> str:
    """Return how far the answer reaches over single sizes, the layers that users meet apart from those below."""
    parts = []
    usable = usable_sizes(compared)
    for layers, words in ((MET_BY_USERS, "Over"), ([one for one in Layer if one not in MET_BY_USERS], "Below, over")):
        mine = [one for one in usable if one.layer in layers]
        for pairing in compared.pairings:
            of_pair = [one for one in mine if (one.fabric_a, one.fabric_b) == (pairing.a.name, pairing.b.name)]
            if not of_pair:
                continue
            names = enumeration([layer_name(layer) for layer in layers if any(one.layer is layer for one in of_pair)])
            tally = _tally(of_pair, pairing, winner, rates, compared)
            mean = _mean_text(of_pair, pairing, rates) if MET_BY_USERS[0] in layers and len(of_pair) > 1 else ""
            parts.append(f"{words} {names}: {tally}{mean}.")
    return " ".join(parts)


def _mean_text(cells: Sequence[Comparison], pairing: Pairing, rates: ErrorRates) -> str:
    """Return who is better over all sizes together, in the geometric mean, and how many times; nothing where nobody is."""
    known = log_ratio_over(pairing, [one.key for one in cells])
    if known is None or pairing.has_sessions:  # these scatter more than the blocks that it is made of
        return ""
    low, high = sorted(known.bounds(rates.other))
    if low <= 0.0 <= high:
        return ""
    name = pairing.b.name if low > 0.0 else pairing.a.name
    mean, *ends = (exp(abs(one)) for one in (known.mean, low, high))
    return f"; in their geometric mean {name} is {mean:#.3g} times as good ({min(ends):#.3g} to {max(ends):#.3g})"


def _tally(
    cells: Sequence[Comparison], pairing: Pairing, winner: str | None, rates: ErrorRates, compared: Compared
) -> str:
    verdicts = [size_verdict(one, rates, compared) for one in cells]
    texts = []
    for letter, name in ((Letter.A, pairing.a.name), (Letter.B, pairing.b.name)):
        wins = sum(one.is_decided and one.leader is letter for one in verdicts)
        leads = sum(one.is_ahead and one.leader is letter for one in verdicts)
        texts += [f"{name} faster in {wins}"] if wins else []
        texts += [f"{name} ahead in {leads}"] if leads else []
    names = "" if texts else f"{pairing.a.name} and {pairing.b.name} "  # then nothing else names the two
    same = sum(one is Verdict.EQUIVALENT for one in verdicts)
    if same:
        texts.append(f"equivalent in {same}")
    rest = verdicts.count(Verdict.NOT_ENOUGH_DATA)
    if rest:
        texts.append(f"not settled in {rest}")
    coarse = verdicts.count(Verdict.NOT_RESOLVABLE)
    if coarse:
        texts.append(f"not resolvable in {coarse}")
    text = f"{names}{', '.join(texts)} of {count(len(cells), 'size')}"
    is_open = any(not one.is_decided and one is not Verdict.EQUIVALENT for one in verdicts)
    is_either = winner in (pairing.a.name, pairing.b.name) and not pairing.has_sessions
    if is_either and is_open and _is_slower_nowhere(cells, str(winner), rates, compared.margin):
        text += f", and {winner} slower by {percent(compared.margin)} in none"
    return text


def _is_slower_nowhere(cells: Sequence[Comparison], winner: str, rates: ErrorRates, margin: float) -> bool:
    """Return whether each size shows that the winner is not slower by the margin: all must, so none is corrected for the others."""
    for one in cells:
        known = log_ratio_of(one)
        is_few = one.is_paired and one.launches < FEWEST_PAIRS
        if known is None or is_few or winner in one.thin_sides or one.is_mixed:
            return False
        turned = (winner == one.fabric_b) == one.metric.is_lower_better
        upright = replace(known, mean=-known.mean if turned else known.mean)
        if not upright.is_at_least(-log1p(margin), rates.breadth):
            return False
    return True
