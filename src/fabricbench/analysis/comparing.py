"""Sets sides against each other: every cell and every curve of every pair in one family of tests, then a verdict for each.

From verdicts on pairs to a ranking, without claiming more than the pairs do: "not separated" is not transitive, A may be told from
C while B can be told from neither. A list of places, each fabric in one, would have to part B from A or from C, which no test did,
or put A beside C, which a test parted. So tiers may overlap, as in the compact letter display of multiple comparisons (Piepho, J.
Comput. Graph. Stat. 13 (2004)): every two fabrics that no test separated share a tier, and no tier holds two that were separated.
Where "not separated" happens to be transitive, that is the usual list.

The place of a single fabric is then a range: one worse than all that beat it, one better than all that it beats. If the pairwise
verdicts are family-wise, all the ranges hold together with the same confidence (Mogstad, Romano, Shaikh and Wilhelm, "Inference
for ranks", Review of Economic Studies 91 (2024)).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.equal_work import unequal_work
from fabricbench.analysis.findings import CellKey, Comparison, Replication, Verdict
from fabricbench.analysis.gaps import mispaired
from fabricbench.analysis.measured import Side, clock_deviation, in_order
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Metric
from fabricbench.quantity import count
from fabricbench.record.store import Run
from fabricbench.statistics.correction import benjamini_hochberg, level_of_look
from fabricbench.statistics.decision import (
    DECISIONS,
    Decision,
    PValues,
    blocks_to_settle,
    corrected,
    decision_codes,
    p_values_of,
)
from fabricbench.statistics.ratios import Ratios, paired_ratios, run_means, unpaired_ratios
from fabricbench.statistics.skew import find_slow_modes, guarded, pooled, unseen_share

Floats = NDArray[np.float64]

SURVIVORS_SHARE = 0.1
"""Of a side's launches: where more gave nothing, those that are left are no sample of what a user gets, and it wins nothing."""


def check_levels(margin: float, confidence: float) -> None:
    """Raise UsageError unless both are shares that the statistics can use."""
    if not 0.0 < margin < 1.0:
        raise UsageError(f"the margin is {margin:g}", hint="give a share between 0 and 1, `--margin 2%` say")
    if not 0.5 <= confidence < 1.0:
        raise UsageError(
            f"the confidence is {confidence:g}", hint="give a share from 0.5 to below 1, `--confidence 0.95` say"
        )


def error_of_look(runs: Sequence[Run], error: float, *, ahead: int = 0) -> float:
    """Return what this look at the runs may spend of the error, or one `ahead` of it: blocks that were added made a look each."""
    earlier = sum(max(len(run.looks) - 1, 0) for run in runs)
    is_final = all(run.is_final for run in runs)
    return level_of_look(range(1, earlier + 2 + (0 if is_final else ahead)), error, is_final=is_final)


@dataclass(frozen=True)
class Curve:
    """Cells that differ in their message size only, in ascending order of it."""

    keys: tuple[CellKey, ...]


@dataclass(frozen=True)
class Pairing:
    """Two sides and the cells that both have, and what is repeated: shared blocks, runs of each side, or launches of each."""

    a: Side
    b: Side
    replication: Replication
    keys: tuple[CellKey, ...]
    left_out: frozenset[tuple[int, str]] = frozenset()
    """Block and subject of halves that were measured too far apart in time to be a pair."""

    @property
    def is_paired(self) -> bool:
        """Whether both sides were measured in the same blocks."""
        return self.replication is Replication.BLOCKS

    @property
    def shared_blocks(self) -> list[int]:
        """The blocks that both sides have."""
        return sorted(set(self.a.blocks) & set(self.b.blocks))

    def is_left_out(self, block: int, key: CellKey) -> bool:
        """Whether the halves of a cell in a block lie too far apart in time to be a pair."""
        return (block, self.a.cells[key].subject) in self.left_out

    def log_values(self, key: CellKey) -> tuple[Floats, Floats]:
        """Return the logarithms of both sides' values: aligned by block where paired, of each run, or of each launch."""
        return self.replicates(key, self.a.cells[key].log_values, self.b.cells[key].log_values)

    def replicates(self, key: CellKey, log_a: Floats, log_b: Floats) -> tuple[Floats, Floats]:
        """Return a value for each replicate, of two arrays of a cell that follow the sides' blocks; NaN for halves of no pair."""
        if self.replication is Replication.LAUNCHES:
            return log_a, log_b
        if self.replication is Replication.RUNS:
            return run_means(log_a, self.a.run_of), run_means(log_b, self.b.run_of)
        by_block_a = dict(zip(self.a.blocks, log_a, strict=True))
        by_block_b = dict(zip(self.b.blocks, log_b, strict=True))
        pairs = [
            (np.nan, np.nan) if self.is_left_out(block, key) else (by_block_a[block], by_block_b[block])
            for block in self.shared_blocks
        ]
        return np.array([one for one, _ in pairs]), np.array([other for _, other in pairs])

    def log_ratios(self, key: CellKey) -> Floats:
        """Return a log ratio for each block; unpaired values are independent, so any pairing of them is as good."""
        log_a, log_b = self.log_values(key)
        shorter = min(log_a.size, log_b.size)
        return np.asarray(log_b[:shorter] - log_a[:shorter], dtype=np.float64)


def pair(a: Side, b: Side) -> Pairing:
    """Return the pairing of two sides: by block if they come from one run, by run where each side has several."""
    keys = tuple(sorted(set(a.cells) & set(b.cells), key=in_order))
    if a.run is b.run:
        return Pairing(a, b, Replication.BLOCKS, keys, mispaired(a, b))
    runs = min(len(a.runs), len(b.runs))
    return Pairing(a, b, Replication.RUNS if runs > 1 else Replication.LAUNCHES, keys)


def all_pairs(sides: Sequence[Side]) -> list[Pairing]:
    """Return every two sides of one run, the earlier one as A."""
    return [pair(a, b) for a, b in combinations(sides, 2)]


def curves_of(keys: Sequence[CellKey]) -> list[Curve]:
    """Return the curves of at least two sizes."""
    groups: dict[CellKey, list[CellKey]] = defaultdict(list)
    for key in keys:
        groups[key.model_copy(update={"message_bytes": 0})].append(key)
    return [Curve(tuple(sorted(group, key=in_order))) for group in groups.values() if len(group) > 1]


def compare_all(
    pairings: Sequence[Pairing],
    margin: float,
    confidence: float,
    level: float | None = None,
    next_level: float | None = None,
) -> tuple[list[Comparison], list[Comparison]]:
    """Return the comparisons of cells and of curves; one correction spans them all, whatever the number of fabrics.

    Intervals are at `confidence`; what verdicts may err is 1 - `level` (default: the same), less where this is not the last look;
    more blocks are another look, at `next_level`.
    """
    level = confidence if level is None else level
    subjects: list[tuple[Pairing, CellKey | Curve]] = []
    for pairing in pairings:
        subjects += [(pairing, key) for key in pairing.keys]
        subjects += [(pairing, curve) for curve in curves_of(pairing.keys)]
    if not subjects:
        return [], []
    ratios = _joined([_ratios(pairing, subject, confidence) for pairing, subject in subjects])
    met = np.array([_met(pairing, subject) for pairing, subject in subjects])
    raw = p_values_of(ratios, margin)
    adjusted = adjusted_with_control(raw, np.array([_layer(subject) is Layer.MEMORY for _, subject in subjects]))
    codes, modes = _guarded(pairings, subjects, decision_codes(ratios, adjusted, margin, level, met), margin, level)
    more = blocks_to_settle(ratios, raw, adjusted, margin, level if next_level is None else next_level)
    made = [
        _comparison(
            pairing,
            subject,
            _Row(ratios, raw, adjusted, index),
            DECISIONS[codes[index]],
            float(more[index]),
            modes.get(index),
            confidence,
        )
        for index, (pairing, subject) in enumerate(subjects)
        if ratios.launches[index] > 0  # else no block has both sides, and there is nothing to say
    ]
    return [one for one in made if one.kind == "cell"], [one for one in made if one.kind == "curve"]


def adjusted_with_control(tests: PValues, is_control: NDArray[np.bool_]) -> PValues:
    """Return p-values adjusted over all comparisons, those of the control also among themselves (the larger counts).

    Where most network cells truly differ, the false discovery rate allows a few false ones among them: the memory cells, none of
    which should differ, would be those, and raise a false alarm of a changed machine every fourth time.
    """

    def with_control(all_adjusted: Floats, p_values: Floats) -> Floats:
        of_control = benjamini_hochberg(np.where(is_control, p_values, np.nan))
        return np.where(is_control, np.maximum(all_adjusted, of_control), all_adjusted)

    whole = corrected(tests)
    return PValues(
        with_control(whole.zero, tests.zero), with_control(whole.margin, tests.margin), equivalence=whole.equivalence
    )


def _layer(subject: CellKey | Curve) -> Layer:
    return subject.keys[0].layer if isinstance(subject, Curve) else subject.layer


def _ratios(pairing: Pairing, subject: CellKey | Curve, confidence: float) -> Ratios:
    keys = subject.keys if isinstance(subject, Curve) else (subject,)
    floor = min(clock_deviation(pairing.a.cells[key], pairing.b.cells[key]) for key in keys)
    if pairing.is_paired:
        return paired_ratios(_log_ratios(pairing, subject), confidence, least_deviation=floor)
    sides = [pairing.log_values(key) for key in keys]
    log_a, log_b = _mean_over_sizes([a for a, _ in sides]), _mean_over_sizes([b for _, b in sides])
    return unpaired_ratios(log_a, log_b, confidence, least_deviation=floor)


def _log_ratios(pairing: Pairing, subject: CellKey | Curve) -> Floats:
    keys = subject.keys if isinstance(subject, Curve) else (subject,)
    return _mean_over_sizes([pairing.log_ratios(key) for key in keys])


def _met(pairing: Pairing, subject: CellKey | Curve) -> int:
    """Return how many launches a side a rare slow mode had to escape: of all its runs, whatever is what is repeated."""
    keys = subject.keys if isinstance(subject, Curve) else (subject,)
    if pairing.is_paired:
        return min(int(np.count_nonzero(~np.isnan(pairing.log_ratios(key)))) for key in keys)
    return min(
        int(np.count_nonzero(~np.isnan(side.cells[key].log_values))) for side in (pairing.a, pairing.b) for key in keys
    )


def _mean_over_sizes(rows: Sequence[Floats]) -> Floats:
    """Return each launch's mean over the sizes of a curve; a launch that lacks a size has none, for a mean over others misleads."""
    return np.asarray(np.mean(np.stack(rows), axis=0), dtype=np.float64)


def _joined(parts: Sequence[Ratios]) -> Ratios:
    names = Ratios.__dataclass_fields__
    return Ratios(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _guarded(
    pairings: Sequence[Pairing],
    subjects: Sequence[tuple[Pairing, CellKey | Curve]],
    codes: NDArray[np.int64],
    margin: float,
    confidence: float,
) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Return the decisions, where launches fall into two groups as far as the median pair bears them out; and the groups in words.

    A launch is slow in all of its cells, so they are looked at together, once for each pair of fabrics.
    """
    modes: dict[int, str] = {}
    for pairing in pairings:
        words = slow_mode(pairing)
        mine = [
            index
            for index, (whose, subject) in enumerate(subjects)
            if whose is pairing and _layer(subject) is not Layer.MEMORY
        ]
        if words is None or not mine:
            continue
        rows = np.stack([_log_ratios(pairing, subjects[index][1]) for index in mine])
        codes[mine] = guarded(rows, codes[mine], np.ones(len(mine), dtype=np.bool_), margin, confidence)
        modes |= dict.fromkeys(mine, words)
    return codes, modes


def slow_mode(pairing: Pairing) -> str | None:
    """Return in words that the launches of one side fall into two groups; None where they do not, or nothing pairs."""
    keys = [key for key in pairing.keys if key.layer is not Layer.MEMORY]
    if not pairing.is_paired or not keys:
        return None
    sides = [
        np.stack([values[index] if key.metric.is_lower_better else -values[index] for key, values in of_cells])
        for index in (0, 1)
        for of_cells in [[(key, pairing.log_values(key)) for key in keys]]
    ]
    found = find_slow_modes(pooled(sides[0]), pooled(sides[1]))
    for side, is_mixed, share, slower in zip(
        (pairing.a, pairing.b), found.is_mixed[:, 0], found.share[:, 0], found.slower[:, 0], strict=True
    ):
        if is_mixed:
            return f"{round(100 * share)} % of the launches on {side.name} are about {round(100 * slower)} % slower than its others"
    return None


def _unseen(verdict: Verdict, launches: int) -> tuple[str, ...]:
    """Return what an equivalence leaves open: a slow mode too rare to have been met."""
    if verdict is not Verdict.EQUIVALENT:
        return ()
    return (f"a slow mode of up to {100 * unseen_share(launches):.1f} % of the launches would have been missed",)


@dataclass(frozen=True)
class _Row:
    """One comparison among the arrays of all of them."""

    ratios: Ratios
    raw: PValues
    adjusted: PValues
    index: int

    def of(self, values: Floats) -> float | None:
        """Return this comparison's entry, None for NaN."""
        return number(float(values[self.index]))


def _comparison(
    pairing: Pairing,
    subject: CellKey | Curve,
    row: _Row,
    decision: Decision,
    more_blocks: float,
    mode: str | None,
    confidence: float,
) -> Comparison:
    is_curve = isinstance(subject, Curve)
    keys = subject.keys if isinstance(subject, Curve) else (subject,)
    key = keys[0]
    launches = int(row.ratios.launches[row.index])
    thin, notes = survivors((pairing.a, pairing.b), keys)
    unequal = unequal_work((pairing.a, pairing.b), keys)
    verdict = withheld(verdict_of(decision, key.metric), thin, pairing, keys)
    is_open = not verdict.is_decided and verdict is not Verdict.EQUIVALENT
    can_be_settled = is_open and pairing.is_paired and not thin and not unequal and mode is None
    return Comparison(
        kind="curve" if is_curve else "cell",
        layer=key.layer,
        pattern=key.pattern,
        receive=key.receive,
        variant=key.variant,
        message_bytes=None if is_curve else key.message_bytes,
        metric=key.metric,
        unit=(key.workload.unit if key.workload is not None else "") or key.metric.unit,
        workload=key.workload,
        fabric_a=pairing.a.name,
        fabric_b=pairing.b.name,
        **({} if is_curve else _levels(pairing, key, confidence)),
        ratio=float(row.ratios.ratio[row.index]),
        ratio_low=row.of(row.ratios.low),
        ratio_high=row.of(row.ratios.high),
        p_value=row.of(row.raw.zero),
        p_adjusted=row.of(row.adjusted.zero),
        p_margin=row.of(row.raw.margin),
        p_margin_adjusted=row.of(row.adjusted.margin),
        verdict=verdict,
        launches=launches,
        replication=pairing.replication,
        more_blocks_needed=int(more_blocks) if can_be_settled and not isnan(more_blocks) else None,
        met=_met(pairing, subject),
        deviation=row.of(row.ratios.log_deviation),
        freedom=row.of(row.ratios.degrees_of_freedom),
        thin_sides=thin,
        is_mixed=mode is not None,
        notes=(*notes, *unequal, *((mode,) if mode is not None else ()), *_unseen(verdict, _met(pairing, subject))),
    )


def _levels(pairing: Pairing, key: CellKey, confidence: float) -> dict[str, float | None]:
    """Return the level of each side: the geometric mean of the very values that the ratio is made of, so that they agree."""
    levels: dict[str, float | None] = {}
    log_a, log_b = pairing.log_values(key)
    if pairing.is_paired:
        is_pair = ~(np.isnan(log_a) | np.isnan(log_b))
        log_a, log_b = log_a[is_pair], log_b[is_pair]
    for letter, logs in (("a", log_a), ("b", log_b)):
        level = paired_ratios(logs[np.newaxis, :], confidence)
        for name, values in (("value", level.ratio), ("low", level.low), ("high", level.high)):
            levels[f"{name}_{letter}"] = number(float(values[0]))
    return levels


def survivors(sides: Sequence[Side], keys: Sequence[CellKey]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sides of which too many launches gave nothing, and in words how many did."""
    thin, notes = [], []
    for side in sides:
        nothing = max(side.cells[key].gave_nothing for key in keys)
        expected = max(side.cells[key].expected for key in keys)
        if nothing:
            notes.append(f"{nothing} of {count(expected, 'launch')} on {side.name} gave nothing")
        if nothing > SURVIVORS_SHARE * expected:
            thin.append(side.name)
    return tuple(thin), tuple(notes)


def withheld(verdict: Verdict, thin: Sequence[str], pairing: Pairing, keys: Sequence[CellKey]) -> Verdict:
    """Return the verdict unless a side would win, or equal the other, by the few launches that gave anything, or by other work."""
    if unequal_work((pairing.a, pairing.b), keys):
        return Verdict.NOT_ENOUGH_DATA
    leader = {"A": pairing.a.name, "B": pairing.b.name}.get(verdict.leader or "")
    is_void = bool(thin) and (verdict is Verdict.EQUIVALENT or leader in thin)
    return Verdict.NOT_ENOUGH_DATA if is_void else verdict


def verdict_of(decision: Decision, metric: Metric) -> Verdict:
    """Return a decision about `b / a` as a verdict: a lower time is faster, a lower rate is slower."""
    if decision is Decision.EQUIVALENT:
        return Verdict.EQUIVALENT
    if decision is Decision.UNDECIDED:
        return Verdict.NOT_ENOUGH_DATA
    is_b_better = (decision in (Decision.LOWER, Decision.LOWER_AHEAD)) == metric.is_lower_better
    if decision in (Decision.LOWER, Decision.HIGHER):
        return Verdict.B_FASTER if is_b_better else Verdict.A_FASTER
    return Verdict.B_AHEAD if is_b_better else Verdict.A_AHEAD


def number(value: float) -> float | None:
    """Return a number, or None for NaN: findings carry no NaN."""
    return None if isnan(value) else float(value)


def ranks(names: Sequence[str], better: Mapping[tuple[str, str], bool]) -> tuple[tuple[str, ...], ...]:
    """Return the tiers from the best on. `names` are ordered by point estimate, the best first.

    `better[a, b]` says that a is better than b by a test over the whole family; pairs that are not there are not separated. A
    fabric stands in every tier whose others it was not told apart from, in the order of `names`.
    """
    place = {name: index for index, name in enumerate(names)}
    tiers: list[tuple[str, ...]] = [tuple(names)] if names else []
    for one, other in combinations(names, 2):
        if _is_separated(one, other, better):
            halves = [
                tuple(name for name in tier if name != left) for tier in tiers for left in _left_out(tier, one, other)
            ]
            tiers = _absorbed(halves)
    return tuple(sorted(tiers, key=lambda tier: [place[name] for name in tier]))


def places(names: Sequence[str], better: Mapping[tuple[str, str], bool]) -> dict[str, tuple[int, int]]:
    """Return the best and the worst place, counted from 1, that the tests leave each fabric."""
    return {
        name: (
            1 + sum(better.get((other, name), False) for other in names),
            len(names) - sum(better.get((name, other), False) for other in names),
        )
        for name in names
    }


def _is_separated(one: str, other: str, better: Mapping[tuple[str, str], bool]) -> bool:
    return better.get((one, other), False) or better.get((other, one), False)


def _left_out(tier: tuple[str, ...], one: str, other: str) -> tuple[str | None, ...]:
    """Return whom the copies of a tier go without: a tier that holds both splits into one without each."""
    return (other, one) if one in tier and other in tier else (None,)


def _absorbed(tiers: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Drop every tier that another one holds whole."""
    distinct = list(dict.fromkeys(tiers))
    return [one for one in distinct if not any(set(one) < set(other) for other in distinct)]
