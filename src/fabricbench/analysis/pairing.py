"""Which sides and cells are set against each other, and what is repeated: blocks that both share, runs, or launches of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey, Replication
from fabricbench.analysis.findings.plot import BOARD, KERNEL, PROCESSOR
from fabricbench.analysis.gaps import BlockSessions, mispaired, sessions_of_side
from fabricbench.analysis.measured import Side, fitted_to, in_order
from fabricbench.record.provenance import Origin
from fabricbench.statistics.ratios import Fitted, run_means

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

OF_MACHINES = (PROCESSOR, BOARD, KERNEL)
"""The traits that make a machine another one."""


@dataclass(frozen=True)
class CellCurve:
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
    sessions: BlockSessions = field(default_factory=dict)
    """In which session of its run each block of each subject was measured, where that is known."""
    _log_values: dict[CellKey, tuple[Floats, Floats]] = field(default_factory=dict, init=False, repr=False)
    _log_ratios: dict[CellKey, Floats] = field(default_factory=dict, init=False, repr=False)
    """What was asked for once, as each part of the analysis asks again."""

    @property
    def is_paired(self) -> bool:
        """Whether both sides were measured in the same blocks."""
        return self.replication is Replication.BLOCKS

    @property
    def are_runs(self) -> bool:
        """Whether a value is the mean of a run."""
        return self.replication is Replication.RUNS

    @property
    def is_change(self) -> bool:
        """Whether B is what A was before a change: runs after it, or another condition of the same fabric in one run."""
        if self.is_paired:
            return bool(self.a.fabric.condition_of) and self.a.fabric.condition_of == self.b.fabric.condition_of
        return not self.a.factors

    @property
    def is_one_machine(self) -> bool:
        """Whether nothing is known by which the machines differ, so that memory is a control."""
        return all(self.a.traits.get(name) == self.b.traits.get(name) for name in OF_MACHINES)

    @property
    def single_runs(self) -> tuple[str, ...]:
        """The sides of which there is one run alone, in words (`before`): how far others of it would differ, it does not tell."""
        if self.is_paired:
            return ()
        called = ("before", "after") if self.is_change else (f"of {self.a.name}", f"of {self.b.name}")
        return tuple(words for side, words in zip((self.a, self.b), called, strict=True) if len(side.runs) == 1)

    @property
    def is_of_one_occasion(self) -> bool:
        """Whether nothing was repeated of what differs from one session to the next, or nobody knows: no interval holds it."""
        if self.is_paired:
            return len(self.a.runs) == 1 and any(one.origin is Origin.IMPORTED for one in self.a.launches)
        return len(self.single_runs) == len((self.a, self.b))

    @cached_property
    def shared_blocks(self) -> list[int]:
        """The blocks that both sides have."""
        return sorted(set(self.a.blocks) & set(self.b.blocks))

    @cached_property
    def _places(self) -> tuple[Places, Places]:
        """Where the shared blocks stand among those of either side."""
        of_a, of_b = ({block: place for place, block in enumerate(side.blocks)} for side in (self.a, self.b))
        found = ([place[block] for block in self.shared_blocks] for place in (of_a, of_b))
        mine, other = (np.array(places, dtype=np.int64) for places in found)
        return mine, other

    def blocks_left_out(self, key: CellKey) -> set[int]:
        """Return the blocks in which the halves of a cell lie too far apart in time to be a pair."""
        return self._left_out.get(self.a.cells[key].subject, set())

    @cached_property
    def _left_out(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = defaultdict(set)
        for block, subject in self.left_out:
            found[subject].add(block)
        return found

    def session_means(self, key: CellKey, log_ratios: Floats) -> Floats:
        """Return the mean of each session's log ratios, which follow the shared blocks; a single one where no other is known.

        NaN where a session has none.
        """
        return run_means(log_ratios, self.sessions_of(key))

    def sessions_of(self, key: CellKey) -> list[int]:
        """Return the session of each shared block of a cell; a single one where no other is known."""
        subject = self.a.cells[key].subject
        return [self.sessions.get((block, subject), 0) for block in self.shared_blocks]

    def fitted(self, key: CellKey) -> Fitted:
        """Return what was fitted to the log ratios of a cell."""
        return fitted_to((self.a.cells[key], -1.0), (self.b.cells[key], 1.0))

    @property
    def has_sessions(self) -> bool:
        """Whether blocks of several sessions are paired."""
        return self.is_paired and len(set(self.sessions.values())) > 1

    def unit_values(self, key: CellKey) -> tuple[Floats, Floats]:
        """Return the log values of both sides for each of what is independent: of the same several runs each one's mean."""
        if not self.is_paired or len(self.a.runs) == 1:
            return self.log_values(key)
        of_a, of_b = (run_means(side.cells[key].log_values, side.run_of) for side in (self.a, self.b))
        return of_a, of_b

    def log_values(self, key: CellKey) -> tuple[Floats, Floats]:
        """Return the logarithms of both sides' values: aligned by block where paired, of each run, or of each launch."""
        found = self._log_values.get(key)
        if found is None:
            found = self.replicates(key, self.a.cells[key].log_values, self.b.cells[key].log_values)
            self._log_values[key] = found
        return found

    def replicates(self, key: CellKey, log_a: Floats, log_b: Floats) -> tuple[Floats, Floats]:
        """Return a value for each replicate, of two arrays of a cell that follow the sides' blocks; NaN for halves of no pair."""
        if self.replication is Replication.LAUNCHES:
            return log_a, log_b
        if self.replication is Replication.RUNS:
            return run_means(log_a, self.a.run_of), run_means(log_b, self.b.run_of)
        kept_a, kept_b = log_a[self._places[0]], log_b[self._places[1]]
        if apart := self.blocks_left_out(key):
            is_no_pair = np.isin(self.shared_blocks, list(apart))
            kept_a[is_no_pair] = kept_b[is_no_pair] = np.nan
        return kept_a, kept_b

    def log_ratios(self, key: CellKey) -> Floats:
        """Return a log ratio for each block; unpaired values are independent, so any pairing of them is as good."""
        found = self._log_ratios.get(key)
        if found is None:
            log_a, log_b = self.log_values(key)
            shorter = min(log_a.size, log_b.size)
            found = self._log_ratios[key] = np.asarray(log_b[:shorter] - log_a[:shorter], dtype=np.float64)
        return found


def pair(a: Side, b: Side) -> Pairing:
    """Return the pairing of two sides: by block if they come from the same runs, by run where either side has several.

    Of several runs each is a session.
    """
    keys = tuple(key for key in a.cells if key in b.cells)  # which are in order
    if a.is_beside(b):
        return Pairing(a, b, Replication.BLOCKS, keys, mispaired(a, b), sessions_of_side(a))
    return Pairing(a, b, replication_of(len(a.runs), len(b.runs)), keys)


def replication_of(before: int, after: int) -> Replication:
    """Return what is repeated where so many runs are compared with so many: launches only where neither side has another run.

    Launches of several sessions are no repetitions of one another: a side of one run is one value against those of the other.
    """
    return Replication.RUNS if max(before, after) > 1 else Replication.LAUNCHES


def all_pairs(sides: Sequence[Side]) -> list[Pairing]:
    """Return every two sides, the earlier one as A."""
    return [pair(a, b) for a, b in combinations(sides, 2)]


@lru_cache(maxsize=256)  # the pairs of a run have the same cells
def curves_of(keys: tuple[CellKey, ...]) -> tuple[CellCurve, ...]:
    """Return the curves of at least two sizes."""
    groups: dict[CellKey, list[CellKey]] = defaultdict(list)
    for key in keys:
        groups[key.model_copy(update={"message_bytes": 0})].append(key)
    return tuple(CellCurve(tuple(sorted(group, key=in_order))) for group in groups.values() if len(group) > 1)
