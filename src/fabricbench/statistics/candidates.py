"""What may be slow in a matrix of pairs: a member, a pair, a direction; and which of them explains most of what levels leave.

What is the same in every step of a pursuit (`culprits`) is found once for it: which pairs each candidate touches, and how much of
them is no level's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from fabricbench.statistics.groups import Split

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

FEWEST_MEMBERS = 4
"""Of three members each pair is the complement of the third member's pairs: cause and effect cannot be told apart."""

FEWEST_COMPARED = 3
"""Members of a group from which one of them may be called slow: of two, the other one may be fast."""

NO_NOISE = 1e-9
"""Of the relative spread: below it values are the same number, and a test would divide by zero."""


class Touch(Enum):
    """What a culprit touches; `second` is -1 for a single member."""

    MEMBER = "member"
    NEAR = "near"
    """A member in its group alone: a slow node whose rates with other groups the way to them limits anyhow."""
    SENDING = "sending"
    RECEIVING = "receiving"
    PAIR = "pair"
    DIRECTION = "direction"


OF_A_PAIR = (Touch.PAIR, Touch.DIRECTION)


@dataclass(frozen=True)
class Candidate:
    """A possible cause: what it touches, and the members; `group` has those of the first one's group where that matters."""

    touch: Touch
    first: int
    second: int = -1
    group: tuple[int, ...] = ()

    def touches(self, source: Integers, destination: Integers) -> Booleans:
        """Return which of the ordered pairs this touches."""
        forth = np.equal(source, self.first) & np.equal(destination, self.second)
        back = np.equal(source, self.second) & np.equal(destination, self.first)
        sends, receives = np.equal(source, self.first), np.equal(destination, self.first)
        touched: dict[Touch, Booleans] = {
            Touch.MEMBER: sends | receives,
            Touch.NEAR: (sends & np.isin(destination, self.group)) | (receives & np.isin(source, self.group)),
            Touch.SENDING: sends,
            Touch.RECEIVING: receives,
            Touch.PAIR: forth | back,
            Touch.DIRECTION: forth,
        }
        return touched[self.touch]


@dataclass(frozen=True)
class Pairs:
    """One value for each ordered pair."""

    values: Floats
    source: Integers
    destination: Integers

    @property
    def members(self) -> int:
        """How many members there are."""
        return int(max(self.source.max(initial=-1), self.destination.max(initial=-1))) + 1

    @property
    def is_directed(self) -> bool:
        """Whether both directions of pairs were measured apart."""
        return bool((self.source > self.destination).any() and (self.source < self.destination).any())

    def candidates(self, split: Split) -> int:
        """Return how many candidates there are beside the levels of a split."""
        pairs = self.members * (self.members - 1) // 2
        near = self.members if max(split) else 0
        return near + (3 * self.members + 3 * pairs if self.is_directed else self.members + pairs)

    def columns(self, chosen: list[Candidate]) -> Floats:
        """Return a column for each candidate: 1 where it touches."""
        touched = [one.touches(self.source, self.destination).astype(np.float64) for one in chosen]
        return np.stack(touched, axis=1) if touched else np.empty((self.values.size, 0))


@dataclass(frozen=True)
class Option:
    """A way of being slow: of each candidate the values that it touches, and how much of them is no level's."""

    touch: Touch
    ends: tuple[Integers, ...]
    """The numbers of the candidates that each of the values `among` all belongs to."""
    among: Booleans | None
    """None: all values."""
    weights: Floats
    """1 over what the levels leave of a candidate's column; 0 where that is nothing, or it is not judged."""
    group: Integers

    def gains(self, residual: Floats) -> Floats:
        """Return by how much each candidate lowers the squares, beside the levels; 0 where its effect is to the better."""
        values = residual if self.among is None else residual[self.among]
        sums = np.asarray(np.bincount(self.ends[0], values, self.weights.size), dtype=np.float64)
        for end in self.ends[1:]:
            sums += np.bincount(end, values, sums.size)
        np.minimum(sums, 0.0, out=sums)
        sums *= sums
        sums *= self.weights
        return sums

    def candidate(self, number: int) -> Candidate:
        """Return a candidate by its number."""
        is_pair = self.touch in OF_A_PAIR
        first, second = divmod(number, self.group.size) if is_pair else (number, -1)
        is_near = self.touch is Touch.NEAR
        own = tuple(np.flatnonzero(np.equal(self.group, self.group[first])).tolist()) if is_near else ()
        return Candidate(self.touch, first, second, own)


def options_of(pairs: Pairs, split: Split, blocks: Integers) -> list[Option]:
    """Return the ways in which something may be slow beside the levels of a split, for all steps of a pursuit."""
    source, destination, members = pairs.source, pairs.destination, pairs.members
    low, high = np.minimum(source, destination), np.maximum(source, destination)
    group = np.asarray(split, dtype=np.int64)
    sizes = np.bincount(group)[group]
    ways: list[tuple[Touch, tuple[Integers, ...], Booleans | None]] = [
        (Touch.MEMBER, (source, destination), None),
        (Touch.PAIR, (low * members + high,), None),
    ]
    if pairs.is_directed:
        ways += [
            (Touch.SENDING, (source,), None),
            (Touch.RECEIVING, (destination,), None),
            (Touch.DIRECTION, (source * members + destination,), None),
        ]
    if group.any():
        ways.append((Touch.NEAR, (source, destination), np.equal(group[source], group[destination])))
    found = []
    for touch, all_ends, among in ways:
        ends = all_ends if among is None else tuple(end[among] for end in all_ends)
        if touch in OF_A_PAIR:
            left = _left_of_pairs(ends[0], blocks, group)
        else:
            left = _left(ends, blocks if among is None else blocks[among], np.bincount(blocks), members)
            left = np.where(sizes >= (FEWEST_MEMBERS if touch is Touch.NEAR else FEWEST_COMPARED), left, 0.0)
        found.append(Option(touch, ends, among, _inverse(left), group))
    return found


def _inverse(left: Floats) -> Floats:
    return np.divide(1.0, left, out=np.zeros_like(left), where=left > NO_NOISE)


def _left(ends: Sequence[Integers], blocks: Integers, sizes: Integers, candidates: int) -> Floats:
    """Return the squares of each candidate's column that levels leave; `blocks` are of what it touches, `sizes` of all blocks."""
    counts = np.zeros(candidates * sizes.size)
    for end in ends:
        counts += np.bincount(end * sizes.size + blocks, minlength=counts.size)
    touched = counts.reshape(candidates, sizes.size)
    return np.asarray(np.sum(touched * (1 - touched / sizes), axis=1), dtype=np.float64)


def _left_of_pairs(end: Integers, blocks: Integers, group: Integers) -> Floats:
    """Return the squares that levels leave of each pair's column: within a group its values are of one block, across of two."""
    counts = np.bincount(end, minlength=group.size**2).astype(np.float64)
    shares = np.bincount(end, (1.0 / np.bincount(blocks))[blocks], counts.size)
    is_within = np.equal.outer(group, group).ravel()
    return np.asarray(counts - np.where(is_within, counts, 1.0) * shares, dtype=np.float64)


def steepest(residual: Floats, options: Sequence[Option]) -> Candidate | None:
    """Return the candidate whose effect, to the worse only, lowers the squares of the residual most."""
    found: list[tuple[float, Candidate]] = []
    for option in options:
        gains = option.gains(residual)
        best = int(np.argmax(gains))
        found.append((float(gains[best]), option.candidate(best)))
    # Of two that explain alike the simpler story is told: the one that touches more.
    gain, candidate = max(found, key=lambda one: (round(one[0], 12), one[1].touch is Touch.MEMBER))
    return candidate if gain > 0 else None


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
