"""Which few causes explain that some values of a matrix are worse than the others?

Values of ordered pairs (i, j) are modelled as a level, plus for each *culprit* an effect on all values that it touches, plus
noise: a member in all its values, a member as source or as destination only, two members both ways, or one direction between
two. Culprits are added one by one, each the one that explains most (orthogonal matching pursuit; Pati, Rezaiifar and
Krishnaprasad 1993); how many is decided by the extended Bayesian information criterion (Chen and Chen, Biometrika 95, 2008),
which counts how many candidates there were; then each has to pass a t test of its own, corrected for the number of candidates
(Bonferroni), that its effect is beyond the margin that matters. Noise is estimated between pairs, so that persistent small
differences of healthy pairs accuse nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

FEWEST_MEMBERS = 4
"""Of three members each pair is the complement of the third member's pairs: cause and effect cannot be told apart."""

MOST_CULPRITS = 8

INTERVAL = 0.95
"""Confidence of the intervals of effects."""

NO_NOISE = 1e-9
"""Of the relative spread: below it values are the same number, and a test would divide by zero."""


class Touch(Enum):
    """What a culprit touches; `second` is -1 for a single member."""

    MEMBER = "member"
    SENDING = "sending"
    RECEIVING = "receiving"
    PAIR = "pair"
    DIRECTION = "direction"


@dataclass(frozen=True)
class Candidate:
    """A possible cause: what it touches, and the members."""

    touch: Touch
    first: int
    second: int = -1

    def touches(self, source: Integers, destination: Integers) -> Booleans:
        """Return which of the ordered pairs this touches."""
        forth = np.equal(source, self.first) & np.equal(destination, self.second)
        back = np.equal(source, self.second) & np.equal(destination, self.first)
        sends, receives = np.equal(source, self.first), np.equal(destination, self.first)
        touched: dict[Touch, Booleans] = {
            Touch.MEMBER: sends | receives,
            Touch.SENDING: sends,
            Touch.RECEIVING: receives,
            Touch.PAIR: forth | back,
            Touch.DIRECTION: forth,
        }
        return touched[self.touch]


@dataclass(frozen=True)
class Culprit:
    """A cause that passed its test.

    `effect` is the mean difference of what it touches (below 0: worse), with its interval at 95 % confidence.

    `p_value` is of the one-sided test that the effect is no worse than the margin, before the correction.
    """

    candidate: Candidate
    effect: float
    low: float
    high: float
    p_value: float


def find_culprits(
    values: Floats, source: Integers, destination: Integers, *, margin: float, level: float = 0.01
) -> list[Culprit]:
    """Return what makes some values worse than the level by more than `margin`, the worst first.

    `values` has a row for each repetition and a column for each ordered pair (source, destination); more is better, and effects add
    up (logarithms of rates, say). Columns of NaN alone are left out. `level` bounds the probability that any culprit is named where
    nothing differs. An empty list if fewer than FEWEST_MEMBERS take part.
    """
    typical, source, destination = _typical(values, source, destination)
    members = int(max(source.max(initial=-1), destination.max(initial=-1))) + 1
    if np.union1d(source, destination).size < FEWEST_MEMBERS:
        return []
    is_directed = _is_directed(source, destination)
    chosen = _pursue(typical, source, destination, members, is_directed=is_directed)
    corrected = level / _candidates(members, is_directed=is_directed)
    while chosen:
        tested = _test(typical, source, destination, chosen, margin)
        worst = max(tested, key=lambda one: one.p_value)
        if worst.p_value < corrected:
            return sorted(tested, key=lambda one: one.effect)
        chosen.remove(worst.candidate)
    return []


def confirm_culprits(
    values: Floats,
    source: Integers,
    destination: Integers,
    suspects: list[Candidate],
    *,
    margin: float,
    level: float = 0.01,
) -> list[Culprit]:
    """Return those of the suspects that pass the test on new data, corrected for the number of suspects."""
    typical, source, destination = _typical(values, source, destination)
    chosen = [one for one in suspects if one.touches(source, destination).any()]
    while chosen:
        tested = _test(typical, source, destination, chosen, margin)
        worst = max(tested, key=lambda one: one.p_value)
        if worst.p_value < level / len(suspects):
            return sorted(tested, key=lambda one: one.effect)
        chosen.remove(worst.candidate)
    return []


def _typical(values: Floats, source: Integers, destination: Integers) -> tuple[Floats, Integers, Integers]:
    """Return the median of each pair over the repetitions: one disturbed repetition accuses nobody."""
    is_there = ~np.isnan(values).all(axis=0)
    return np.nanmedian(values[:, is_there], axis=0), source[is_there], destination[is_there]


def _is_directed(source: Integers, destination: Integers) -> bool:
    """Whether both directions of pairs were measured apart."""
    return bool((source > destination).any() and (source < destination).any())


def _candidates(members: int, *, is_directed: bool) -> int:
    pairs = members * (members - 1) // 2
    return 3 * members + 3 * pairs if is_directed else members + pairs


def _pursue(
    values: Floats, source: Integers, destination: Integers, members: int, *, is_directed: bool
) -> list[Candidate]:
    """Return the candidates that the criterion keeps, in the order in which they explain."""
    count = values.size
    penalty = np.log(count) + 2 * np.log(_candidates(members, is_directed=is_directed))
    chosen: list[Candidate] = []
    best: list[Candidate] = []
    residual = values - np.mean(values)
    best_score = _score(residual, 0, penalty)
    for _ in range(min(MOST_CULPRITS, count // 4)):
        candidate = _steepest(residual, source, destination, members, is_directed=is_directed)
        if candidate is None or candidate in chosen:
            break
        chosen.append(candidate)
        residual = values - _design(source, destination, chosen) @ _solve(values, source, destination, chosen)
        score = _score(residual, len(chosen), penalty)
        if score < best_score:
            best, best_score = list(chosen), score
    return best


def _score(residual: Floats, parameters: int, penalty: float) -> float:
    mean_square = max(float(np.mean(residual**2)), NO_NOISE**2)
    return float(residual.size * np.log(mean_square) + parameters * penalty)


def _steepest(
    residual: Floats, source: Integers, destination: Integers, members: int, *, is_directed: bool
) -> Candidate | None:
    """Return the candidate whose effect, to the worse only, lowers the squares of the residual most."""
    low, high = np.minimum(source, destination), np.maximum(source, destination)
    options: list[tuple[Touch, Integers]] = [(Touch.PAIR, low * members + high)]
    if is_directed:
        options += [
            (Touch.SENDING, source),
            (Touch.RECEIVING, destination),
            (Touch.DIRECTION, source * members + destination),
        ]
    found: list[tuple[float, Candidate]] = []
    for touch, group in options:
        gain, index = _best_group(_sums(group, residual), _sums(group, np.ones(group.size)), residual.size)
        pair = divmod(index, members) if touch in {Touch.PAIR, Touch.DIRECTION} else (index, -1)
        found.append((gain, Candidate(touch, int(pair[0]), int(pair[1]))))
    ones = np.ones(residual.size)
    ends = _sums(source, residual, members) + _sums(destination, residual, members)
    counts = _sums(source, ones, members) + _sums(destination, ones, members)
    gain, index = _best_group(ends, counts, residual.size)
    found.append((gain, Candidate(Touch.MEMBER, index)))
    # Of two that explain alike the simpler story is told: the one that touches more.
    gain, candidate = max(found, key=lambda one: (round(one[0], 12), one[1].touch is Touch.MEMBER))
    return candidate if gain > 0 else None


def _sums(group: Integers, values: Floats, groups: int = 0) -> Floats:
    return np.bincount(group, values, groups).astype(np.float64)


def _best_group(sums: Floats, counts: Floats, size: int) -> tuple[float, int]:
    share = np.where((counts > 0) & (counts < size), counts * (1 - counts / size), np.inf)
    gains = np.where(sums < 0, sums**2 / share, 0.0)
    index = int(np.argmax(gains))
    return float(gains[index]), index


def _design(source: Integers, destination: Integers, chosen: list[Candidate]) -> Floats:
    columns = [np.ones(source.size), *(one.touches(source, destination).astype(np.float64) for one in chosen)]
    return np.stack(columns, axis=1)


def _solve(values: Floats, source: Integers, destination: Integers, chosen: list[Candidate]) -> Floats:
    return np.asarray(np.linalg.lstsq(_design(source, destination, chosen), values, rcond=None)[0], dtype=np.float64)


def _test(
    values: Floats,
    source: Integers,
    destination: Integers,
    chosen: list[Candidate],
    margin: float,
) -> list[Culprit]:
    """Return each candidate with its effect and the p-value of its being no worse than the margin."""
    design = _design(source, destination, chosen)
    solution, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    freedom = values.size - int(rank)
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
        for one, effect, error in zip(chosen, solution[1:], errors[1:], strict=True)
    ]
