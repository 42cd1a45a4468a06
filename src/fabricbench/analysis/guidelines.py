"""Self-consistent guidelines of collectives: an operation takes no longer than other measured calls that do the same work.

Source: Traeff, Gropp, Thakur, "Self-consistent MPI performance guidelines", IEEE TPDS 21(5), 2010. Each guideline is an upper
bound of one operation: a sum of calls that leaves every rank with at least what the operation would have, so that a program could
make these calls in its place. The operations are those of `patterns`, and sizes mean the same bytes: of an operation that moves a
block for each rank `message_bytes` is the block, of one that moves a buffer it is the buffer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.model import Pattern
from fabricbench.patterns import PATTERNS
from fabricbench.statistics.correction import holm
from fabricbench.statistics.decision import FEWEST_PAIRS
from fabricbench.statistics.ratios import Rounding, exceeding

Floats = NDArray[np.float64]

MOST_PARTS = 16
"""Calls that one call may be split into: of more nobody would, and the sum of their start-ups is no bound that says anything."""


class Bytes(Enum):
    """How large a call of the replacement must be, by the `message_bytes` of the operation and the number of ranks."""

    SAME = "the same"
    ALL_BLOCKS = "a block of each rank in one buffer"
    ONE_BLOCK = "a rank's share of the buffer"
    ANY = "any size"

    def needed(self, message_bytes: int, ranks: int) -> int:
        """Return the least `message_bytes` of a call that moves what the operation moves."""
        if self is Bytes.ALL_BLOCKS:
            return message_bytes * ranks
        if self is Bytes.ONE_BLOCK:
            return -(-message_bytes // ranks)
        return 0 if self is Bytes.ANY else message_bytes


Term = tuple[Pattern, Bytes]

GUIDELINES: tuple[tuple[Pattern, tuple[Term, ...]], ...] = (
    (Pattern.GATHER, ((Pattern.ALLGATHER, Bytes.SAME),)),
    (Pattern.SCATTER, ((Pattern.BCAST, Bytes.ALL_BLOCKS),)),
    (Pattern.BCAST, ((Pattern.SCATTER, Bytes.ONE_BLOCK), (Pattern.ALLGATHER, Bytes.ONE_BLOCK))),
    (Pattern.ALLGATHER, ((Pattern.GATHER, Bytes.SAME), (Pattern.BCAST, Bytes.ALL_BLOCKS))),
    (Pattern.ALLGATHER, ((Pattern.ALLTOALL, Bytes.SAME),)),
    (Pattern.REDUCE, ((Pattern.ALLREDUCE, Bytes.SAME),)),
    (Pattern.REDUCE, ((Pattern.REDUCE_SCATTER_BLOCK, Bytes.ONE_BLOCK), (Pattern.GATHER, Bytes.ONE_BLOCK))),
    (Pattern.ALLREDUCE, ((Pattern.REDUCE, Bytes.SAME), (Pattern.BCAST, Bytes.SAME))),
    (Pattern.ALLREDUCE, ((Pattern.REDUCE_SCATTER_BLOCK, Bytes.ONE_BLOCK), (Pattern.ALLGATHER, Bytes.ONE_BLOCK))),
    (Pattern.REDUCE_SCATTER, ((Pattern.REDUCE, Bytes.ALL_BLOCKS), (Pattern.SCATTER, Bytes.SAME))),
    (Pattern.REDUCE_SCATTER, ((Pattern.ALLREDUCE, Bytes.ALL_BLOCKS),)),
    (Pattern.REDUCE_SCATTER_BLOCK, ((Pattern.REDUCE, Bytes.ALL_BLOCKS), (Pattern.SCATTER, Bytes.SAME))),
    (Pattern.REDUCE_SCATTER_BLOCK, ((Pattern.ALLREDUCE, Bytes.ALL_BLOCKS),)),
    (Pattern.REDUCE_SCATTER_BLOCK, ((Pattern.REDUCE_SCATTER, Bytes.SAME),)),
    (Pattern.GATHER, ((Pattern.GATHERV, Bytes.SAME),)),
    (Pattern.SCATTER, ((Pattern.SCATTERV, Bytes.SAME),)),
    (Pattern.ALLGATHER, ((Pattern.ALLGATHERV, Bytes.SAME),)),
    (Pattern.ALLTOALL, ((Pattern.ALLTOALLV, Bytes.SAME),)),
    (Pattern.BARRIER, ((Pattern.ALLREDUCE, Bytes.ANY),)),
)
"""An operation and what does its work in its place.

Reduce, gather and the like at rank 0 are part of what their all- forms do; a vector form with equal blocks does what the plain one
does; nobody leaves an allreduce before all have come. Gather by a reduce of blocks among zeros is left out: ours sums doubles.
"""

OF_ANY_SIZE = tuple(
    dict.fromkeys(
        [
            *(operation for operation, _ in GUIDELINES if PATTERNS[operation].has_size),
            Pattern.GATHERV,
            Pattern.SCATTERV,
            Pattern.ALLGATHERV,
            Pattern.ALLTOALLV,
            Pattern.SCAN,
            Pattern.EXSCAN,
        ]
    )
)
"""Operations that take no longer than themselves with a larger message, nor than their parts one after the other."""


@dataclass(frozen=True)
class Calls:
    """So many calls of an operation, one after the other, at a size that was measured."""

    cell: CellMeasured
    times: int = 1


@dataclass(frozen=True)
class Check:
    """A guideline at one size of one fabric: the operation and the calls that could be made in its place.

    `operation_ns` and `replacement_ns` have a value for each launch, `p_value` is adjusted for all checks of the run: that of "the
    operation takes no longer than its replacement, or by no more than the margin".
    """

    side: Side
    operation: CellMeasured
    replacement: tuple[Calls, ...]
    p_value: float = math.nan

    @property
    def operation_ns(self) -> Floats:
        """What the operation takes in each launch."""
        return self.operation.launch_values

    @property
    def replacement_ns(self) -> Floats:
        """What the calls in its place take together in each launch."""
        total: Floats = np.sum([calls.times * calls.cell.launch_values for calls in self.replacement], axis=0)
        return total

    @property
    def launches(self) -> int:
        """How many launches measured all of them."""
        return int(np.count_nonzero(~np.isnan(self.operation_ns + self.replacement_ns)))

    @property
    def rounding(self) -> Rounding:
        """What steps of values make of the log ratio; a sum is off by no more than the worst of its parts."""
        steps = max(calls.cell.step_share for calls in self.replacement)
        return self.operation.rounding.against(Rounding.of(steps))


def checks_of(sides: Sequence[Side], margin: float, is_usable: Mapping[str, frozenset[CellKey]]) -> list[Check]:
    """Return every guideline that the runs can tell of, each with its p-value, Holm's over all of them.

    `is_usable` has the cells of each side whose values count. Checks with fewer than FEWEST_PAIRS launches are left out.
    """
    found = [
        one
        for side in sides
        for group in _alike(side, is_usable[side.name]).values()
        for one in _checks(side, group)
        if one.launches >= FEWEST_PAIRS
    ]
    if not found:
        return []
    p_values = [
        float(exceeding(np.log(one.operation_ns / one.replacement_ns), margin, one.rounding)[0]) for one in found
    ]
    adjusted = holm(np.array(p_values))
    return [
        Check(one.side, one.operation, one.replacement, float(p_value))
        for one, p_value in zip(found, adjusted, strict=True)
    ]


BySize = Mapping[int, CellMeasured]


def _alike(side: Side, usable: frozenset[CellKey]) -> dict[CellKey, dict[Pattern, dict[int, CellMeasured]]]:
    """Return the cells of operations by all that must be alike, then by operation, then by size."""
    groups: dict[CellKey, dict[Pattern, dict[int, CellMeasured]]] = {}
    operations = {*OF_ANY_SIZE, *(operation for operation, _ in GUIDELINES)}
    for key, cell in side.cells.items():
        if key.pattern in operations and key in usable and key.congestor is None:
            alike = key.model_copy(update={"pattern": Pattern.BARRIER, "message_bytes": 0})
            groups.setdefault(alike, {}).setdefault(key.pattern, {})[key.message_bytes] = cell
    return groups


def _checks(side: Side, group: Mapping[Pattern, BySize]) -> Iterator[Check]:
    for operation, terms in GUIDELINES:
        for size, cell in group.get(operation, {}).items():
            ranks = len(cell.facts.ranks)
            found = [_smallest(group.get(pattern, {}), of.needed(size, ranks)) for pattern, of in terms]
            whole = tuple(Calls(one) for one in found if one is not None)
            if len(whole) == len(terms):
                yield Check(side, cell, whole)
    for operation in OF_ANY_SIZE:
        sizes = sorted(group.get(operation, {}).items())
        for (smaller, of_smaller), (larger, of_larger) in pairwise(sizes):
            yield Check(side, of_smaller, (Calls(of_larger),))
            parts = math.inf if smaller == 0 else -(-larger // smaller)
            if parts <= MOST_PARTS:
                yield Check(side, of_larger, (Calls(of_smaller, int(parts)),))


def _smallest(sizes: BySize, needed: int) -> CellMeasured | None:
    """Return the smallest measured call that moves as much as is needed: what it moves beyond is padding."""
    enough = min((size for size in sizes if size >= needed), default=None)
    return None if enough is None else sizes[enough]
