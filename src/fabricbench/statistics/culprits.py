"""Which few causes explain that some values of a matrix are worse than the others?

Values of ordered pairs (i, j) are modelled as the level of the groups that i and j are in, plus for each *culprit* an effect on all
values that it touches, plus noise: a member in all its values, a member as source or as destination only, two members both ways, or
one direction between two.

1. Groups (members behind different switches, say): `groups` proposes ways to split the members, and each is tried beside none,
   where chance does not explain it.
2. Culprits are added one by one, each the one that explains most (orthogonal matching pursuit; Pati, Rezaiifar and Krishnaprasad
   1993); how many, and which split, is decided by the extended Bayesian information criterion (Chen and Chen, Biometrika 95, 2008),
   which counts how many candidates and splits there were.
3. Each culprit has to pass a t test of its own, the levels of the groups being nuisance parameters, corrected for the number of
   candidates (Bonferroni), that its effect is beyond the margin that matters. Noise is estimated between pairs, so that persistent
   small differences of healthy pairs accuse nobody.

What values of pairs cannot tell apart, whatever the method:

* A member slow with all others, and one alone behind another switch: all its pairs are worse either way. It is found, as both. The
  same holds of a member that is slow in its group alone.
* Members slow with all others *and with each other*, and a group behind a slow switch. They are named as slow members, which is
  what was seen. Where their pairs with each other are as good as others' pairs, they are a group, and healthy. In between, by a
  t test at GROUP_LEVEL, nobody among them is named: `CulpritsAndGroups.is_unclear`. Nor is anybody where they are so many that none
  stands out by itself, a third of all say, while two levels explain the pairs better: then too the groups are told as unclear.
* Which of a group of two is slow, or the other one fast: members of groups below FEWEST_COMPARED are not judged as members.
* A whole group being slow across, and the way to it being long: the level across groups is whatever it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.candidates import (
    FEWEST_MEMBERS,
    NO_NOISE,
    Candidate,
    Culprit,
    Pairs,
    Touch,
    options_of,
    steepest,
)
from fabricbench.statistics.groups import (
    Groups,
    Split,
    blocks_of,
    centred,
    group_blocks,
    log_splits,
    propose_splits,
    typical_values,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


GROUP_LEVEL = 0.01
"""Probability of taking a group for slow members, where its pairs with each other are only just good enough."""

MOST_CULPRITS = 8

PATIENCE = 3
"""Culprits in a row that explain too little before no more are tried: two may be needed before a third explains much."""

INTERVAL = 0.95
"""Confidence of the intervals of effects."""

POWER = 0.95
"""Chance that one cause of the size that `smallest_found` returns passes its test: two of three are found by name then, as
another may explain the same pairs as well (four of five from six members on). Simulation: tests/statistics/test_judgement.py."""

LARGEST_SCATTER = 0.1
"""Of logarithms: pairs that differ for good by 10 % (standard deviation) and more are no healthy scatter, unless launches do so."""

COLLINEAR = 1e-10
"""Squares of a combination of columns, relative to the largest, from which down the others have it already."""

VERY_STRONG = 10.0
"""Difference of the criterion from which one fit is not better than another by chance (Kass and Raftery, JASA 90, 1995)."""


@dataclass(frozen=True)
class CulpritsAndGroups:
    """The culprits, the worst first, and the groups of members, two or more or none."""

    culprits: list[Culprit]
    groups: Groups = ()
    is_unclear: bool = False
    """Whether the groups may as well be slow members: then they are only kept from being accused."""


def find_culprits_and_groups(
    values: Floats, source: Integers, destination: Integers, *, margin: float, level: float = 0.01, accuses: bool = True
) -> CulpritsAndGroups:
    """Return the groups of members, and what makes some values worse by more than `margin` than the level of their groups.

    `values` has a row for each repetition and a column for each ordered pair (source, destination); more is better, and effects add
    up (logarithms of rates, say). Columns of NaN alone are left out. `level` bounds the probability that any culprit is named where
    nothing differs. Nobody is judged where fewer than FEWEST_MEMBERS take part. Without `accuses` groups alone are looked for.
    """
    pairs, names = _compact(*typical_values(values, source, destination))
    if names.size < FEWEST_MEMBERS:
        return CulpritsAndGroups([])
    fit, of_slow = _best_fits(pairs, margin, level)
    culprits = [
        replace(one, candidate=_renamed(one.candidate, names))
        for one in _passing(
            pairs, fit.blocks, fit.chosen if accuses else [], margin, level / pairs.candidates(fit.split)
        )
    ]
    if not culprits and of_slow is not None:
        fit = of_slow
    groups = tuple(tuple(int(name) for name in names[np.equal(fit.split, one)]) for one in range(max(fit.split) + 1))
    return CulpritsAndGroups(culprits, groups if len(groups) > 1 else (), fit.standing is not _Standing.TOGETHER)


def confirm_culprits(
    values: Floats,
    source: Integers,
    destination: Integers,
    suspects: list[Candidate],
    *,
    margin: float,
    level: float = 0.01,
    groups: Groups = (),
) -> list[Culprit]:
    """Return those of the suspects that pass the test on new data, corrected for the number of suspects.

    `groups` are those that the first data showed; a member in none is in a group with all such members.
    """
    typical, source, destination = typical_values(values, source, destination)
    pairs = Pairs(typical, source, destination)
    known = [one for one in suspects if one.touches(source, destination).any()]
    blocks = group_blocks(groups, source, destination)
    return _passing(pairs, blocks, known, margin, level / max(len(suspects), 1))


def smallest_found(
    values: Floats, source: Integers, destination: Integers, *, margin: float, level: float = 0.01, groups: Groups = ()
) -> dict[Touch, float]:
    """Return from which effect on (below 0) one culprit of each kind that touches these values would be found, in two of three.

    By the noise of these values: it has to pass its test with POWER, and the criterion has to take it for more than that noise.
    Empty where there is too little to tell noise by.
    """
    pairs, names = _compact(*typical_values(values, source, destination))
    if names.size < FEWEST_MEMBERS:
        return {}
    group = {int(member): number for number, one in enumerate(groups, start=1) for member in one}
    split = tuple(group.get(int(name), 0) for name in names)
    blocks = blocks_of(split, pairs.source, pairs.destination)
    count = pairs.values.size
    freedom = count - int(blocks.max()) - 2
    if freedom < 1:
        return {}
    residual = centred(pairs.values, blocks)
    variance = max(float(residual @ residual) / (freedom + 1), NO_NOISE**2)
    candidates = pairs.candidates(split)
    penalty = (np.log(count) + 2 * np.log(candidates)) / count
    luck = float(special.stdtrit(freedom, POWER))
    tested = float(special.stdtrit(freedom, 1.0 - level / candidates)) + luck
    chosen = float(np.sqrt(freedom * np.expm1(penalty))) + luck
    found: dict[Touch, float] = {}
    for touch in (Touch.MEMBER, Touch.PAIR, *((Touch.DIRECTION,) if pairs.is_directed else ())):
        one, other = int(pairs.source[0]), int(pairs.destination[0])
        candidate = Candidate(touch, one) if touch is Touch.MEMBER else Candidate(touch, one, other)
        squares = float((centred(pairs.columns([candidate])[:, 0], blocks) ** 2).sum())
        if squares > 0.0:
            error = float(np.sqrt(variance / squares))
            found[touch] = min(float(np.log1p(-margin)) - tested * error, -chosen * error)
    return found


class _Standing(Enum):
    """Whether a split is of groups that are good within, or rather of slow members."""

    TOGETHER = "together"
    UNCLEAR = "unclear"
    REFUTED = "refuted"


@dataclass(frozen=True)
class _Fit:
    """A split, what explains the rest, the criterion (less is better), and whether the split may be taken for groups."""

    split: Split
    blocks: Integers
    chosen: list[Candidate]
    score: float
    standing: _Standing


def _compact(values: Floats, source: Integers, destination: Integers) -> tuple[Pairs, Integers]:
    """Return the pairs with members numbered without gaps, and the number that each had."""
    names, ends = np.unique(np.concatenate([source, destination]), return_inverse=True)
    ends = ends.astype(np.int64)
    return Pairs(values, ends[: source.size], ends[source.size :]), names.astype(np.int64)


def _renamed(candidate: Candidate, names: Integers) -> Candidate:
    second = int(names[candidate.second]) if candidate.second >= 0 else -1
    group = tuple(int(names[member]) for member in candidate.group)
    return Candidate(candidate.touch, int(names[candidate.first]), second, group)


def _best_fits(pairs: Pairs, margin: float, level: float) -> tuple[_Fit, _Fit | None]:
    """Return the fit that the criterion prefers among no split and the splits that are not refuted, and a refuted one if better.

    That is of members that are slow each, perhaps too many to stand out one by one: by its levels alone the pairs are as near to
    each other as healthy ones are. If it is far better, the other one is without groups.
    """
    members = pairs.members
    none = _pursue(pairs, (0,) * members, margin)
    splits = propose_splits(pairs.values, pairs.source, pairs.destination, members)
    fits = _without_chance(pairs, [none, *(_pursue(pairs, split, margin) for split in splits)], level)
    best = min((fit for fit in fits if fit.standing is not _Standing.REFUTED), key=lambda fit: fit.score)
    refuted = min(
        (fit for fit in fits if fit.standing is _Standing.REFUTED and _is_even(pairs, fit.blocks)),
        key=lambda fit: fit.score,
        default=None,
    )
    if refuted is None or refuted.score >= best.score:
        return best, None
    return (none if refuted.score < best.score - VERY_STRONG else best), refuted


def _without_chance(pairs: Pairs, fits: list[_Fit], level: float) -> list[_Fit]:
    """Return the fits whose levels chance does not explain: no groups, and what explains more than each coarser one of these.

    The criterion is made for many values: it takes the scatter of the six pairs of four members for groups.
    """
    kept: list[_Fit] = []
    for fit in sorted(fits, key=lambda fit: max(fit.split)):
        coarser = (one for one in kept if len(set(zip(one.split, fit.split, strict=True))) == max(fit.split) + 1)
        if all(_explains_more(pairs, fit, one.blocks, level) for one in coarser):
            kept.append(fit)
    return kept


def _explains_more(pairs: Pairs, fit: _Fit, coarser: Integers, level: float) -> bool:
    """Return whether the levels of a split explain more beside its culprits than coarser blocks, and than chance in any split.

    F test, corrected for the number of splits (Bonferroni).
    """
    levels = int(fit.blocks.max() - coarser.max())
    freedom = pairs.values.size - int(fit.blocks.max()) - 1 - len(fit.chosen)
    if freedom < 1 or levels < 1:
        return False
    values, design = pairs.values, pairs.columns(fit.chosen)
    before, after = (
        float(np.sum(_unexplained(centred(values, blocks), centred(design, blocks)) ** 2))
        for blocks in (coarser, fit.blocks)
    )
    explained = (before - after) / levels / max(after / freedom, NO_NOISE**2)
    chance = float(special.fdtrc(levels, freedom, max(explained, 0.0)))
    return chance < level * float(np.exp(-log_splits(pairs.members, max(fit.split) + 1)))


def _unexplained(values: Floats, design: Floats) -> Floats:
    """Return what columns do not explain, by the normal equations: few columns, of zeros and ones less means, and many values."""
    effects = np.linalg.lstsq(design.T @ design, design.T @ values, rcond=COLLINEAR)[0]
    return np.asarray(values - design @ effects, dtype=np.float64)


def _is_even(pairs: Pairs, blocks: Integers) -> bool:
    """Return whether no pair is far from the level of its block."""
    return float(np.max(np.abs(centred(pairs.values, blocks)))) < 3.0 * LARGEST_SCATTER


def _pursue(pairs: Pairs, split: Split, margin: float) -> _Fit:
    """Return the candidates that the criterion keeps beside the levels of a split, in the order in which they explain."""
    count, members, groups = pairs.values.size, pairs.members, max(split) + 1
    blocks = blocks_of(split, pairs.source, pairs.destination)
    levels = int(blocks.max()) + 1
    penalty = np.log(count) + 2 * np.log(pairs.candidates(split))
    of_split = (levels - 1) * np.log(count) + 2 * log_splits(members, groups)
    values = centred(pairs.values, blocks)
    design = np.empty((count, 0))
    chosen: list[Candidate] = []
    best: list[Candidate] = []
    residual, best_residual = values, values
    options = options_of(pairs, split, blocks)
    best_score = _score(values, of_split)
    for _ in range(min(MOST_CULPRITS, (count - levels) // 4)):
        candidate = steepest(residual, options)
        if candidate is None or candidate in chosen or len(chosen) - len(best) >= PATIENCE:
            break
        chosen.append(candidate)
        design = np.append(design, centred(pairs.columns([candidate]), blocks), axis=1)
        residual = _unexplained(values, design)
        score = _score(residual, of_split + len(chosen) * penalty)
        if score < best_score:
            best, best_score, best_residual = list(chosen), score, residual
    standing = _standing(pairs, split, blocks, best, best_residual, margin) if groups > 1 else _Standing.TOGETHER
    return _Fit(split, blocks, best, best_score, standing)


def _score(residual: Floats, penalty: float) -> float:
    mean_square = max(float(np.mean(residual**2)), NO_NOISE**2)
    return float(residual.size * np.log(mean_square) + penalty)


def _standing(
    pairs: Pairs, split: Split, blocks: Integers, chosen: list[Candidate], residual: Floats, margin: float
) -> _Standing:
    """Tell whether each group's pairs are as good as the largest group's, or slow like its pairs with that group.

    A group stands if its level within is nearer to the largest group's than to the level across, or better. Half the cost of
    crossing is the least that a slow member takes from its group's pairs, so that those of two slow members lie below: where a pair
    is as slow as its slower end, they are as slow as the pairs across, and slower where slowness adds up.
    """
    design = pairs.columns(chosen)
    effects = np.linalg.lstsq(centred(design, blocks), centred(pairs.values, blocks), rcond=None)[0]
    values = pairs.values - design @ effects
    freedom = values.size - int(blocks.max()) - 1 - len(chosen)
    if freedom < 1:
        return _Standing.UNCLEAR
    variance = max(float(residual @ residual) / freedom, NO_NOISE**2)
    group = np.asarray(split, dtype=np.int64)
    ends = group[pairs.source], group[pairs.destination]

    def level(one: int, other: int) -> tuple[float, int]:
        among = (np.equal(ends[0], one) & np.equal(ends[1], other)) | (
            np.equal(ends[0], other) & np.equal(ends[1], one)
        )
        return (float(np.mean(values[among])) if among.any() else np.nan), int(np.count_nonzero(among))

    sizes = np.bincount(group)
    within = [level(one, one) for one in range(sizes.size)]
    largest = max(range(sizes.size), key=lambda one: (sizes[one], np.nan_to_num(within[one][0], nan=-np.inf)))
    reference, count = within[largest]
    found = _Standing.TOGETHER
    for one in range(sizes.size):
        if one == largest:
            continue
        inside, inside_count = within[one]
        across, across_count = level(largest, one)
        if not (count and inside_count and across_count):
            found = _Standing.UNCLEAR
            continue
        share = 0.5 if across < reference else 0.0
        distance = inside - reference + share * (reference - across)
        error = np.sqrt(variance * (1 / inside_count + (1 - share) ** 2 / count + share**2 / across_count))
        if distance < 0:
            if special.stdtr(freedom, distance / error) < GROUP_LEVEL:
                return _Standing.REFUTED
            # Where pairs across are not worse by what matters nobody of a group is slow with all others.
            found = _Standing.UNCLEAR if across < reference + np.log1p(-margin) else found
    return found


def _passing(pairs: Pairs, blocks: Integers, chosen: list[Candidate], margin: float, level: float) -> list[Culprit]:
    """Return the candidates that pass together at this level, after the least certain were left out one by one; the worst first."""
    chosen = list(chosen)
    while chosen:
        tested = _test(pairs, blocks, chosen, margin)
        worst = max(tested, key=lambda one: one.p_value)
        if worst.p_value < level:
            return sorted(tested, key=lambda one: one.effect)
        chosen.remove(worst.candidate)
    return []


def _test(pairs: Pairs, blocks: Integers, chosen: list[Candidate], margin: float) -> list[Culprit]:
    """Return each candidate with its effect and the p-value of its being no worse than the margin."""
    values, design = centred(pairs.values, blocks), centred(pairs.columns(chosen), blocks)
    solution, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    freedom = values.size - int(blocks.max()) - 1 - int(rank)
    if freedom < 1 or rank < design.shape[1]:
        return [Culprit(one, 0.0, -np.inf, np.inf, 1.0) for one in chosen]
    residual = values - design @ solution
    variance = max(float(residual @ residual) / freedom, NO_NOISE**2)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    limit = np.log1p(-margin)
    half = special.stdtrit(freedom, 1 - (1 - INTERVAL) / 2)
    return [
        Culprit(
            one,
            float(effect),
            float(effect - half * error),
            float(effect + half * error),
            float(special.stdtr(freedom, (effect - limit) / error)),
        )
        for one, effect, error in zip(chosen, solution, errors, strict=True)
    ]
