"""Sets sides against each other: every cell and every curve of every pair in one family of tests, then a verdict for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isnan

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.equal_work import unequal_work
from fabricbench.analysis.findings import CellKey, Comparison, Doubt, LaunchGroups, Letter, Verdict
from fabricbench.analysis.findings.doubts import Number, percentage, whole
from fabricbench.analysis.lost_launches import survivors
from fabricbench.analysis.measured import ratio_rounding
from fabricbench.analysis.pairing import CellCurve, Pairing, curves_of
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Metric
from fabricbench.record.store import Run
from fabricbench.statistics.correction import benjamini_hochberg, level_of_look
from fabricbench.statistics.decision import (
    DECISIONS,
    FEWEST_PAIRS,
    UNDECIDED,
    Decision,
    PValues,
    blocks_to_settle,
    corrected,
    decision_codes,
    is_unresolved,
    larger,
    p_values_of,
)
from fabricbench.statistics.ratios import (
    FEWEST_SESSIONS,
    NOTHING_FITTED,
    Fitted,
    Ratios,
    Rounding,
    paired_ratios,
    unpaired_ratios,
    wider,
)
from fabricbench.statistics.skew import find_slow_modes, p_values_of_both, pooled, split_ratio, unseen_share

Floats = NDArray[np.float64]


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
    pairings = [one for one in pairings if one.keys]
    subjects = [(pairing, subject) for pairing in pairings for subject in _subjects(pairing)]
    if not subjects:
        return [], []
    ratios = joined_ratios([_ratios(pairing, _subjects(pairing), confidence) for pairing in pairings])
    met = np.array([met_by(pairing, _keys(subject)) for pairing, subject in subjects])
    of_sessions = joined_ratios([_ratios_of_sessions(pairing, _subjects(pairing), confidence) for pairing in pairings])
    in_groups, groups = _in_both_groups(subjects, p_values_of(ratios, margin), margin)
    raw, ratios = larger(in_groups, p_values_of(of_sessions, margin)), wider(ratios, of_sessions)
    adjusted = adjusted_with_control(raw, np.array([_layer(subject) is Layer.MEMORY for _, subject in subjects]))
    codes = decision_codes(ratios, adjusted, margin, level, met)
    unresolved = is_unresolved(ratios, margin)
    is_open = (codes == UNDECIDED) | (met < FEWEST_PAIRS)
    more = blocks_to_settle(ratios, raw, adjusted, margin, level if next_level is None else next_level, of=is_open)
    levels = {id(pairing): _levels(pairing, confidence) for pairing in pairings}
    made = [
        _comparison(
            pairing,
            subject,
            _Row(ratios, raw, adjusted, index),
            DECISIONS[codes[index]],
            float(more[index]),
            groups.get(index),
            {} if isinstance(subject, CellCurve) else levels[id(pairing)][subject],
            int(met[index]),
            is_unresolved=bool(unresolved[index]),
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


def _keys(subject: CellKey | CellCurve) -> tuple[CellKey, ...]:
    return subject.keys if isinstance(subject, CellCurve) else (subject,)


def _layer(subject: CellKey | CellCurve) -> Layer:
    return subject.keys[0].layer if isinstance(subject, CellCurve) else subject.layer


def _subjects(pairing: Pairing) -> list[CellKey | CellCurve]:
    """Return what two sides are compared in: every cell, then every curve."""
    return [*pairing.keys, *curves_of(pairing.keys)]


def _ratios(pairing: Pairing, subjects: Sequence[CellKey | CellCurve], confidence: float) -> Ratios:
    """Return the ratios of all that two sides are compared in, an entry for each."""
    keys = [_keys(subject) for subject in subjects]
    rounding = Rounding.joined([rounding_over(pairing, those) for those in keys])
    if not subjects or pairing.is_paired:
        rows = np.array([_log_ratios(pairing, subject) for subject in subjects]).reshape(len(subjects), -1)
        fitted = Fitted.joined([pairing.fitted(those[0]) for those in keys])
        return paired_ratios(rows, confidence, rounding=rounding, fitted=fitted)
    log_a, log_b = (
        np.stack([_mean_over_sizes([pairing.log_values(key)[side] for key in those]) for those in keys])
        for side in (0, 1)
    )
    return unpaired_ratios(log_a, log_b, confidence, rounding=rounding, is_alike=pairing.are_runs)


def _ratios_of_sessions(pairing: Pairing, subjects: Sequence[CellKey | CellCurve], confidence: float) -> Ratios:
    """Return the ratios by the means of sessions, each one value of what sessions differ by; NaN where blocks are of one session.

    Few means agree by chance: they are taken to scatter at least as those of the median comparison do.
    """
    if not pairing.has_sessions or not subjects:
        return paired_ratios(np.full((len(subjects), 1), np.nan), confidence)
    keys = [_keys(subject) for subject in subjects]
    means = np.stack(
        [
            pairing.session_means(those[0], _log_ratios(pairing, subject))
            for those, subject in zip(keys, subjects, strict=True)
        ]
    )
    bound = Rounding.joined([rounding_over(pairing, those) for those in keys]).bound
    found = paired_ratios(means, confidence, rounding=Rounding(0.0, bound), fewest=FEWEST_SESSIONS)
    if np.isnan(found.log_deviation).all():
        return found
    usual = float(np.nanmedian(found.log_deviation))
    return paired_ratios(means, confidence, rounding=Rounding(usual, bound), fewest=FEWEST_SESSIONS)


def rounding_over(pairing: Pairing, keys: Sequence[CellKey]) -> Rounding:
    """Return what the steps of values make of the mean log ratio over some cells, which all may be off the same way."""
    found = [ratio_rounding(pairing.a.cells[key], pairing.b.cells[key]) for key in keys]
    return Rounding(min(float(one.deviation) for one in found), float(np.mean([one.bound for one in found])))


def _log_ratios(pairing: Pairing, subject: CellKey | CellCurve) -> Floats:
    keys = _keys(subject)
    return _mean_over_sizes([pairing.log_ratios(key) for key in keys])


def met_by(pairing: Pairing, keys: Sequence[CellKey]) -> int:
    """Return how many launches a side a rare slow mode had to escape: of all its runs, whatever is what is repeated."""
    if pairing.is_paired:
        return min(int(np.count_nonzero(~np.isnan(pairing.log_ratios(key)))) for key in keys)
    return min(
        int(np.count_nonzero(~np.isnan(side.cells[key].log_values))) for side in (pairing.a, pairing.b) for key in keys
    )


def _mean_over_sizes(rows: Sequence[Floats]) -> Floats:
    """Return each launch's mean over the sizes of a curve; a launch that lacks a size has none, for a mean over others misleads."""
    return np.asarray(np.mean(np.stack(rows), axis=0), dtype=np.float64)


def joined_ratios(parts: Sequence[Ratios], order: NDArray[np.int64] | None = None) -> Ratios:
    """Return the ratios of several parts as one, in an order of their entries."""
    names = Ratios.__dataclass_fields__
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Ratios(**(whole if order is None else {name: values[order] for name, values in whole.items()}))


def _in_both_groups(
    subjects: Sequence[tuple[Pairing, CellKey | CellCurve]], raw: PValues, margin: float
) -> tuple[PValues, dict[int, LaunchGroups]]:
    """Return the p-values, of comparisons whose launches fall into two groups those that both show; and these groups."""
    modes: dict[tuple[str, str], dict[str, SlowMode]] = {}
    groups: dict[int, LaunchGroups] = {}
    zero, beyond, within = (one.copy() for one in (raw.zero, raw.margin, raw.equivalence))
    for index, (pairing, subject) in enumerate(subjects):
        ends = pairing.a.name, pairing.b.name
        if ends not in modes:
            modes[ends] = slow_modes(pairing)
        keys = _keys(subject)
        mode = modes[ends].get(pairing.a.cells[keys[0]].subject)
        if mode is None or _layer(subject) is Layer.MEMORY:
            continue
        row, rounding = _log_ratios(pairing, subject), rounding_over(pairing, keys)
        fitted = pairing.fitted(keys[0])
        found = mode.groups(pairing, row, rounding, fitted)
        both = p_values_of_both(row, mode.is_slow, margin, rounding, fitted)
        if found is not None and both is not None:
            groups[index] = found
            zero[index], beyond[index], within[index] = both.zero[0], both.margin[0], both.equivalence[0]
    return PValues(zero, beyond, within), groups


@dataclass(frozen=True)
class SlowMode:
    """That the launches of one fabric fall into two groups: which blocks' are slow, and by how much, over all tests they hold."""

    fabric: str
    is_slow: NDArray[np.bool_]
    slower: float

    def groups(
        self, pairing: Pairing, row: Floats, rounding: Rounding, fitted: Fitted = NOTHING_FITTED
    ) -> LaunchGroups | None:
        """Return what a comparison shows in both groups, of its log ratios by block; None where one of them has no value."""
        found = split_ratio(row, self.is_slow, rounding, fitted)
        if found is None:
            return None
        slow, others = found
        blocks = [block for block, chosen in zip(pairing.shared_blocks, self.is_slow, strict=True) if chosen]
        return LaunchGroups(
            fabric=self.fabric,
            slower=self.slower,
            slow_blocks=tuple(blocks),
            launches=slow.launches + others.launches,
            slow_launches=slow.launches,
            log_ratio_of_slow=slow.mean,
            log_ratio_of_others=others.mean,
            deviation=slow.deviation,
            freedom=slow.freedom,
        )


def subjects_of(pairing: Pairing) -> dict[str, list[CellKey]]:
    """Return the cells over the network of each subject: what the same launches measured, and what they are slow in together."""
    found: dict[str, list[CellKey]] = defaultdict(list)
    for key in pairing.keys:
        if key.layer is not Layer.MEMORY:
            found[pairing.a.cells[key].subject].append(key)
    return found


def slow_modes(pairing: Pairing) -> dict[str, SlowMode]:
    """Return the subjects of which one fabric's launches fall into two groups; none where nothing pairs.

    A launch is slow in all of its cells, so they are looked at together; the launches of another subject are other launches.
    """
    found = ((subject, _slow_mode(pairing, keys)) for subject, keys in subjects_of(pairing).items())
    return {subject: mode for subject, mode in found if mode is not None} if pairing.is_paired else {}


def _slow_mode(pairing: Pairing, keys: Sequence[CellKey]) -> SlowMode | None:
    sides = [
        np.stack([values[index] if key.metric.is_lower_better else -values[index] for key, values in of_cells])
        for index in (0, 1)
        for of_cells in [[(key, pairing.log_values(key)) for key in keys]]
    ]
    found = find_slow_modes(pooled(sides[0]), pooled(sides[1]))
    for side, is_mixed, slower in zip((pairing.a, pairing.b), found.is_mixed[:, 0], found.slower[:, 0], strict=True):
        if is_mixed:
            return SlowMode(side.name, found.is_slow[0], float(slower))
    return None


def groups_doubt(
    groups: LaunchGroups, leader: Letter | None, *, is_lower_better: bool, worse: tuple[float, float] | None = None
) -> Doubt:
    """Return the groups in a row's own numbers: how many times better the leader (else B) is in each of them.

    `worse` has how many times worse the slow launches are, the least and the most, where those are far apart.
    """
    sign = (-1.0 if is_lower_better else 1.0) * (-1.0 if leader is Letter.A else 1.0)
    slow, others = (exp(sign * mean) for mean in (groups.log_ratio_of_slow, groups.log_ratio_of_others))
    launches = whole(groups.slow_launches), " of ", whole(groups.launches), f" launches on {groups.fabric}"
    much: tuple[str | Number, ...] = " are about ", percentage(groups.slower, ".0f"), " slower than its others: "
    if worse is not None:
        much = " are ", times_number(worse[0]).to(times_number(worse[1])), " times worse than its others: "
    return Doubt.of(
        *launches,
        *much,
        *(times_number(slow), " times in them, ", times_number(others), " in the others"),
        is_group=True,
    )


def times_number(times: float) -> Number:
    """Return how many times better something is, as a number of a doubt."""
    return Number(value=times, written=f"{times:#.3g}")


def _unseen(verdict: Verdict, launches: int) -> tuple[Doubt, ...]:
    """Return what an equivalence leaves open: a slow mode too rare to have been met."""
    if verdict is not Verdict.EQUIVALENT:
        return ()
    share = percentage(unseen_share(launches), ".1f")
    return (Doubt.of("a slow mode of up to ", share, " of the launches would have been missed"),)


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
    subject: CellKey | CellCurve,
    row: _Row,
    decision: Decision,
    more_blocks: float,
    groups: LaunchGroups | None,
    levels: Mapping[str, float | None],
    met: int,
    *,
    is_unresolved: bool,
) -> Comparison:
    is_curve = isinstance(subject, CellCurve)
    keys = _keys(subject)
    key = keys[0]
    launches = int(row.ratios.launches[row.index])
    thin, notes = survivors((pairing.a, pairing.b), keys)
    unequal = unequal_work((pairing.a, pairing.b), keys)
    found = verdict_of(decision, key.metric, is_unresolved=is_unresolved)
    verdict = withheld(found, thin, pairing, keys)
    is_open = not verdict.is_decided and verdict is not Verdict.EQUIVALENT
    can_be_settled = (
        is_open and pairing.is_paired and not pairing.has_sessions and not thin and not unequal and groups is None
    )
    return Comparison(
        kind="curve" if is_curve else "cell",
        **key.of_any_size,
        message_bytes=None if is_curve else key.message_bytes,
        unit=(key.workload.unit if key.workload is not None else "") or key.metric.unit,
        fabric_a=pairing.a.name,
        fabric_b=pairing.b.name,
        **levels,
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
        met=met,
        deviation=row.of(row.ratios.log_deviation),
        freedom=row.of(row.ratios.degrees_of_freedom),
        rounding_bound=row.of(row.ratios.rounding_bound),
        printed_step=printed_step(pairing, keys),
        thin_sides=thin,
        is_mixed=groups is not None,
        groups=groups,
        notes=(
            *notes,
            *map(Doubt.of, unequal),
            *(
                (groups_doubt(groups, verdict.leader, is_lower_better=key.metric.is_lower_better),)
                if groups is not None
                else ()
            ),
            *_unseen(verdict, met),
        ),
    )


def printed_step(pairing: Pairing, keys: Sequence[CellKey]) -> float | None:
    """Return the coarsest step in which values of some cells were printed on either side; None where none was."""
    steps = (side.cells[key].printed_step for side in (pairing.a, pairing.b) for key in keys)
    return max((step for step in steps if step is not None), default=None)


def _levels(pairing: Pairing, confidence: float) -> dict[CellKey, dict[str, float | None]]:
    """Return the level of each side in each cell: the geometric mean of the values that the ratio is made of, so they agree."""
    levels: dict[CellKey, dict[str, float | None]] = {key: {} for key in pairing.keys}
    whole: list[CellKey] = []
    for key in pairing.keys:
        is_pair = ~np.isnan(pairing.log_ratios(key)) if pairing.is_paired else None
        if is_pair is None or is_pair.all():
            whole.append(key)
        else:
            _add_levels(pairing, [key], confidence, is_pair, levels)
    if whole:
        _add_levels(pairing, whole, confidence, slice(None), levels)
    return levels


def _add_levels(
    pairing: Pairing,
    keys: Sequence[CellKey],
    confidence: float,
    chosen: NDArray[np.bool_] | slice,
    levels: dict[CellKey, dict[str, float | None]],
) -> None:
    """Add the levels of cells in the blocks that were chosen."""
    for side, letter, of in ((0, "a", pairing.a), (1, "b", pairing.b)):
        logs = np.stack([pairing.log_values(key)[side][chosen] for key in keys])
        found = paired_ratios(logs, confidence, rounding=Rounding.joined([of.cells[key].rounding for key in keys]))
        for name, values in (("value", found.ratio), ("low", found.low), ("high", found.high)):
            for key, value in zip(keys, values, strict=True):
                levels[key][f"{name}_{letter}"] = number(float(value))


def withheld(verdict: Verdict, thin: Sequence[str], pairing: Pairing, keys: Sequence[CellKey]) -> Verdict:
    """Return the verdict unless too few pairs bear it, or a side would win, or equal the other, by survivors or by other work."""
    is_too_few = pairing.is_paired and verdict is not Verdict.NOT_RESOLVABLE and met_by(pairing, keys) < FEWEST_PAIRS
    if is_too_few or unequal_work((pairing.a, pairing.b), keys):
        return Verdict.NOT_ENOUGH_DATA
    leader = verdict.of_leader(pairing.a.name, pairing.b.name)
    is_void = bool(thin) and (verdict is Verdict.EQUIVALENT or leader in thin)
    return Verdict.NOT_ENOUGH_DATA if is_void else verdict


def verdict_of(decision: Decision, metric: Metric, *, is_unresolved: bool = False) -> Verdict:
    """Return a decision about `b / a` as a verdict: a lower time is faster, a lower rate is slower.

    `is_unresolved` says of one that is open that rounding alone keeps it so.
    """
    if decision is Decision.EQUIVALENT:
        return Verdict.EQUIVALENT
    if decision is Decision.UNDECIDED:
        return Verdict.NOT_RESOLVABLE if is_unresolved else Verdict.NOT_ENOUGH_DATA
    is_b_better = (decision in (Decision.LOWER, Decision.LOWER_AHEAD)) == metric.is_lower_better
    if decision in (Decision.LOWER, Decision.HIGHER):
        return Verdict.B_FASTER if is_b_better else Verdict.A_FASTER
    return Verdict.B_AHEAD if is_b_better else Verdict.A_AHEAD


def number(value: float) -> float | None:
    """Return a number, or None for NaN: findings carry no NaN."""
    return None if isnan(value) else float(value)
