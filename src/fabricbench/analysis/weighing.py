"""Which tests a decision weighs, by how much, and each fabric's values in the blocks that all of them have. Pure over sides.

A test that some fabric lacks is left out for all: a score over different tests compares nothing. What is left out is named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.comparing import survivors
from fabricbench.analysis.equal_work import unequal_work
from fabricbench.analysis.findings import CellKey, LeftOut, is_basic, on_all_nodes
from fabricbench.analysis.gaps import mispaired
from fabricbench.analysis.instrument import impossible
from fabricbench.analysis.kernels import kernel_of, on_most_ranks, work_of
from fabricbench.analysis.measured import Side, in_order
from fabricbench.analysis.node_sets import Blocks, blocks_of, on_leading_nodes
from fabricbench.analysis.rows import MET_BY_USERS, row_name
from fabricbench.analysis.wording import enumeration, named_cell
from fabricbench.model import Metric
from fabricbench.patterns import PATTERNS, Family
from fabricbench.quantity import count
from fabricbench.record.decision_table import DecisionTable, Weight
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Weighed:
    """The tests that count. `shares` sum to 1; `logs` are logarithms of performance, larger is better: (tests, fabrics, blocks).

    `clock_deviations`, shape (tests, fabrics), is what the clock's resolution alone makes of a logarithm's deviation.
    """

    keys: tuple[CellKey, ...]
    shares: Floats
    logs: Floats
    clock_deviations: Floats
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]

    @property
    def scores(self) -> Floats:
        """Logarithms of the weighted geometric mean relative to the first fabric, shape (blocks, fabrics)."""
        weighted = np.tensordot(self.shares, self.logs - self.logs[:, :1], axes=1)
        return np.asarray(weighted.T, dtype=np.float64)

    @property
    def is_work(self) -> NDArray[np.bool_]:
        """Which tests are whole work, kernels and applications; the others are of the network alone."""
        return np.array([PATTERNS[key.pattern].family is Family.WORKLOAD for key in self.keys], dtype=np.bool_)

    def work_scores(self, network_share: float | None) -> Floats | None:
        """Return logarithms of the work done in the same time, relative to the first fabric: (blocks, fabrics).

        Tests of whole work count as they are; the network tests together, by their geometric mean, make a share of a job's time
        shorter, and all else stays as long as it is (Amdahl, AFIPS 1967). None where network tests are weighed and nobody said
        what share they stand for.
        """
        if self.is_work.all():
            return self.scores
        if network_share is None:
            return None
        relative, of_network = self.logs - self.logs[:, :1], ~self.is_work
        weight = float(self.shares[of_network].sum())
        network = np.tensordot(self.shares[of_network], relative[of_network], axes=1) / weight
        job = -np.log(1.0 - network_share + network_share * np.exp(-network))
        work = np.tensordot(self.shares[self.is_work], relative[self.is_work], axes=1) + weight * job
        return np.asarray(work.T, dtype=np.float64)

    @property
    def score_deviations(self) -> Floats:
        """What the clocks' resolution alone makes of each fabric's deviation."""
        return np.asarray(np.sqrt((self.shares[:, None] ** 2 * self.clock_deviations**2).sum(axis=0)), dtype=np.float64)


def name_of(key: CellKey) -> str:
    """Return a test as a reader calls it: `IS.W on 4 ranks`, `tcp round trip of 64 B`."""
    work = work_of(key)
    return named_cell(key, key.message_bytes) if work is None else row_name(key)


def usual_tests(sides: Sequence[Side]) -> list[CellKey]:
    """Return what counts where nobody gave weights and no rows of a first screen are known.

    Every kernel on its most ranks; of mpi and tcp the round trip of the smallest message and the throughput of the largest one that
    all fabrics have.
    """
    blocks = blocks_of(sides)
    both = set.intersection(*(set(side.cells) for side in sides)) if sides else set()
    shared = on_leading_nodes(sorted(both, key=in_order), blocks)
    chosen = on_most_ranks(shared, blocks)
    for layer in MET_BY_USERS:
        for metric, pick in ((Metric.ROUND_TRIP_TIME, min), (Metric.THROUGHPUT, max)):
            fitting = [key for key in shared if is_basic(key) and (key.layer, key.metric) == (layer, metric)]
            if fitting:
                size = pick(key.message_bytes for key in fitting)
                chosen += [key for key in fitting if key.message_bytes == size]
    return chosen


def weigh(sides: Sequence[Side], table: DecisionTable, rows: Sequence[CellKey] | None = None) -> Weighed:
    """Return the tests that the table weighs, with their values. Without weights `rows` count equally, else `usual_tests`."""
    if table.weight:
        weights, left_out = _given(sides, table.weight)
    else:
        weights, left_out = dict.fromkeys(usual_tests(sides) if rows is None else rows, 1.0), []
    blocks = sorted(set.intersection(*(set(side.blocks) for side in sides)))
    apart = frozenset(gap for one, other in combinations(sides, 2) for gap in mispaired(one, other))
    values = {key: _performance(key, sides, blocks, apart) for key in weights}
    notes = [note for key in weights for note in _gave_nothing(key, sides)]
    for key in list(values):
        lacking = [side.name for side, row in zip(sides, values[key], strict=True) if np.isnan(row).all()]
        if lacking:
            del values[key]
            left_out.append(LeftOut(what=name_of(key), why=f"no data on {enumeration(lacking)}"))
        elif why := _unfit(key, sides):
            del values[key]
            left_out.append(LeftOut(what=name_of(key), why=why))
    left_out += _drop_the_sparsest(values, min(MINIMUM_LAUNCHES, len(blocks)), len(blocks))
    keys = tuple(sorted(values, key=in_order))
    logs = np.array([values[key] for key in keys]).reshape(len(keys), len(sides), len(blocks))
    is_whole = ~np.isnan(logs).any(axis=(0, 1))
    if keys and not is_whole.all():
        notes.append(f"only {count(int(is_whole.sum()), 'block')} of {len(blocks)} have every test on every fabric")
    total = sum(weights[key] for key in keys)
    return Weighed(
        keys=keys,
        shares=np.array([weights[key] / total for key in keys]),
        logs=logs[:, :, is_whole],
        clock_deviations=np.array(
            [[side.cells[key].clock_share / np.sqrt(12.0) for side in sides] for key in keys]
        ).reshape(len(keys), len(sides)),
        left_out=tuple(left_out),
        notes=tuple(dict.fromkeys(notes)),
    )


def _unfit(key: CellKey, sides: Sequence[Side]) -> str | None:
    """Return why a test that all sides have is not weighed: what no verdict is given of, no decision rests on; None where it is."""
    if unequal := unequal_work(sides, (key,)):
        return unequal[0]
    for side in sides:
        cell = side.cells[key]
        if words := impossible(side, cell):
            return f"on {side.name} {words}"
        if cell.counts["corrupted"]:
            return f"on {side.name} {count(cell.counts['corrupted'], 'payload')} arrived changed"
    thin, notes = survivors(sides, (key,))
    return "; ".join(notes) if thin else None


def _given(sides: Sequence[Side], weights: Sequence[Weight]) -> tuple[dict[CellKey, float], list[LeftOut]]:
    """Return the cells of each weight, which share it, and those weights that fit none."""
    blocks = blocks_of(sides)
    measured = sorted({key for side in sides for key in side.cells}, key=in_order)
    leading = on_leading_nodes(measured, blocks)
    found: dict[CellKey, float] = {}
    left_out = []
    for one in weights:
        names_nodes = one.variant is not None and on_all_nodes(one.variant) != one.variant
        keys = _matching(one, measured if names_nodes else leading, blocks)
        if not keys:
            left_out.append(LeftOut(what=one.what, why="not measured"))
        for key in keys:
            found[key] = found.get(key, 0.0) + one.weight / len(keys)
    return found, left_out


def _matching(one: Weight, measured: Sequence[CellKey], blocks: Blocks) -> list[CellKey]:
    if one.kernel is not None:
        benchmark, problem_class, ranks = one.kernel
        named = [(key, kernel) for key in measured if (kernel := kernel_of(key)) is not None]
        of_name = [key for key, it in named if (it.benchmark, it.problem_class) == (benchmark, problem_class)]
        return (
            on_most_ranks(of_name, blocks)
            if ranks is None
            else [key for key, it in named if key in of_name and it.ranks == ranks]
        )
    if one.workload is not None:
        return on_most_ranks(
            (key for key in measured if key.workload is not None and key.workload.name == one.workload), blocks
        )
    fitting = [
        key
        for key in measured
        if (key.layer, key.pattern) == (one.layer, one.pattern)
        and one.message_bytes in (None, key.message_bytes)
        and one.receive in (None, key.receive)
        and one.variant in (None, key.variant, on_all_nodes(key.variant))
    ]
    plain = [key for key in fitting if not on_all_nodes(key.variant)]
    return plain or fitting


def _performance(
    key: CellKey, sides: Sequence[Side], blocks: Sequence[int], apart: Collection[tuple[int, str]]
) -> Floats:
    """Return logarithms, larger is better, shape (fabrics, blocks); NaN where there is none, or halves are too far `apart`."""
    rows = np.full((len(sides), len(blocks)), np.nan)
    for row, side in zip(rows, sides, strict=True):
        if key in side.cells:
            of_block = dict(zip(side.blocks, side.cells[key].log_values, strict=True))
            subject = side.cells[key].subject
            row[:] = [np.nan if (block, subject) in apart else of_block[block] for block in blocks]
    return -rows if key.metric.is_lower_better else rows


def _gave_nothing(key: CellKey, sides: Sequence[Side]) -> Iterable[str]:
    """Yield where launches delivered nothing at all: infinitely bad, which no mean of logarithms can hold, so it has to be said."""
    for side in sides:
        nothing = 0 if key not in side.cells else int(np.count_nonzero(side.cells[key].launch_values <= 0))
        if nothing:
            yield f"{name_of(key)}: {count(nothing, 'launch')} on {side.name} delivered nothing, and those blocks are left out"


def _drop_the_sparsest(values: dict[CellKey, Floats], needed: int, blocks: int) -> list[LeftOut]:
    """Take out tests, those with the fewest whole blocks first, until the rest have `needed` blocks in common."""
    dropped = []
    while values and np.count_nonzero(~np.isnan(np.array(list(values.values()))).any(axis=(0, 1))) < needed:
        whole = {key: int(np.count_nonzero(~np.isnan(rows).any(axis=0))) for key, rows in values.items()}
        key = min(whole, key=lambda one: whole[one])
        del values[key]
        why = f"measured on every fabric in only {whole[key]} of {count(blocks, 'block')}"
        dropped.append(LeftOut(what=name_of(key), why=why))
    return dropped
