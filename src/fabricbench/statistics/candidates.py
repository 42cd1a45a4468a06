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
    among: Booleans
    left: Floats
    """What is left of a candidate's column once the levels have explained their part; 0 where it is a level, or not judged."""
    group: Integers

    def gains(self, residual: Floats) -> Floats:
        """Return by how much each candidate lowers the squares, beside the levels; 0 where its effect is to the better."""
        sums = np.zeros(self.left.size)
        for end in self.ends:
            sums += np.bincount(end, residual[self.among], sums.size)
        return np.where((sums < 0) & (self.left > 0), sums**2 / np.where(self.left > 0, self.left, 1.0), 0.0)

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
    every = np.ones(source.size, dtype=bool)
    ways: list[tuple[Touch, tuple[Integers, ...], Booleans]] = [
        (Touch.MEMBER, (source, destination), every),
        (Touch.PAIR, (low * members + high,), every),
    ]
    if pairs.is_directed:
        ways += [
            (Touch.SENDING, (source,), every),
            (Touch.RECEIVING, (destination,), every),
            (Touch.DIRECTION, (source * members + destination,), every),
        ]
    if group.any():
        ways.append((Touch.NEAR, (source, destination), np.equal(group[source], group[destination])))
    found = []
    for touch, ends, among in ways:
        mine = tuple(end[among] for end in ends)
        left = _left(mine, blocks, among, members**2 if touch in OF_A_PAIR else members)
        if touch not in OF_A_PAIR:
            left = np.where(sizes >= (FEWEST_MEMBERS if touch is Touch.NEAR else FEWEST_COMPARED), left, 0.0)
        found.append(Option(touch, mine, among, left, group))
    return found


def _left(ends: Sequence[Integers], blocks: Integers, among: Booleans, candidates: int) -> Floats:
    levels = int(blocks.max()) + 1
    counts = np.zeros(candidates * levels)
    for end in ends:
        counts += np.bincount(end * levels + blocks[among], minlength=counts.size)
    touched = counts.reshape(candidates, levels)
    left = np.sum(touched * (1 - touched / np.bincount(blocks)), axis=1)
    return np.where(left > NO_NOISE, left, 0.0)


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
