"""Which tests a decision weighs, by how much, and each fabric's values in the blocks that all of them have. Pure over sides.

A test that some fabric lacks is left out for all: a score over different tests compares nothing. What is left out is named.

What is bought is a fabric, whatever its settings: of one that was measured in several conditions the mean over them counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.equal_work import unequal_work
from fabricbench.analysis.findings import CellKey, LeftOut, is_basic, is_plain
from fabricbench.analysis.gaps import mispaired, sessions_of_side
from fabricbench.analysis.instrument import impossible
from fabricbench.analysis.load_subjects import on_most_ranks
from fabricbench.analysis.lost_launches import survivors
from fabricbench.analysis.measured import Side, fitted_to, in_order
from fabricbench.analysis.node_sets import Blocks, blocks_of, on_leading_nodes
from fabricbench.analysis.rows import MET_BY_USERS, row_name
from fabricbench.analysis.wording import named_cell
from fabricbench.model import Metric
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import count, enumeration
from fabricbench.record.decision_table import Counting, DecisionTable, Weight
from fabricbench.record.manifest import workload_names
from fabricbench.record.run_account import SubjectAccount
from fabricbench.record.setup import variant_of
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES, NOTHING_FITTED, Fitted, Rounding, run_means
from fabricbench.units import parse_unit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Times:
    """The time of a mix of work on each fabric, as a multiple of that on the first: `parts` of tests, and what is `fixed`.

    `parts` has the shape (tests, fabrics). `is_of_runs`: the shares of the time are measured, not given.
    """

    parts: Floats
    fixed: Floats
    is_of_runs: bool = False

    @property
    def total(self) -> Floats:
        """The time of all."""
        return np.asarray(self.parts.sum(axis=0) + self.fixed, dtype=np.float64)

    @property
    def own(self) -> Floats:
        """By how much of a test's own logarithm the work of a fabric changes, shape (tests, fabrics)."""
        return np.asarray(self.parts / self.total, dtype=np.float64)

    @property
    def of_first(self) -> Floats:
        """By how much of a test's logarithm on the first fabric it does: where runs are given their times there make the shares."""
        return np.broadcast_to(self.own[:, :1], self.own.shape) if self.is_of_runs else self.own


@dataclass(frozen=True)
class Weighed:
    """The tests that count. `shares` sum to 1; `logs` are logarithms of performance, larger is better: (tests, fabrics, blocks).

    `shares` are of the time on the first fabric, or of the weight: as `counting` says. `rounding` has an entry for
    each test and fabric, shape (tests, fabrics): what the steps of values make of their logarithms.
    """

    fabrics: tuple[str, ...]
    keys: tuple[CellKey, ...]
    counting: Counting
    shares: Floats
    logs: Floats
    rounding: Rounding
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    missing_share: float = 0.0
    """Of the whole weight, what is on tests that are left out."""
    sessions: tuple[int, ...] = ()
    """The session that each block was measured in."""
    paid: Mapping[tuple[int, int], Fitted] = field(default_factory=dict)
    """For every pair of fabrics, what was fitted to the difference of their logarithms: the largest cost over the tests."""
    are_runs: bool = False
    """Whether the blocks are runs: the sides are of other runs each, and a run is one value."""

    def fitted(self, one: int, other: int) -> Fitted:
        """Return what was fitted to the difference of two fabrics."""
        return self.paid.get((min(one, other), max(one, other)), NOTHING_FITTED)

    @property
    def scores(self) -> Floats:
        """Logarithms of the weighted geometric mean relative to the first fabric, shape (blocks, fabrics)."""
        weighted = np.tensordot(self.shares, self.logs - self.logs[:, :1], axes=1)
        return np.asarray(weighted.T, dtype=np.float64)

    @property
    def is_work(self) -> NDArray[np.bool_]:
        """Which tests are whole work, kernels and applications; the others are of the network alone, whoever tells of them."""
        of_work = [PATTERNS[key.pattern].family is Family.WORKLOAD and _tells_work(key) for key in self.keys]
        return np.array(of_work, dtype=np.bool_)

    @property
    def is_of_time(self) -> bool:
        """Whether `shares` are of the time; of a single job any share is."""
        return self.counting is not Counting.SCORE or int(self.is_work.sum()) + bool((~self.is_work).any()) == 1

    def times(self, network_share: float | None) -> Times | None:
        """Return the time that the same mix of work takes; None where shares are not of the time, or a test's share is not known.

        A share of the time goes as a test of whole work does. Network tests stand for jobs of which `network_share` goes as their
        geometric mean does, and all else stays as long as it is (Amdahl, AFIPS 1967).
        """
        of_network = ~self.is_work
        if not self.is_of_time or (of_network.any() and network_share is None):
            return None
        typical = (self.logs - self.logs[:, :1]).mean(axis=2)
        parts = self.shares[:, None] * np.exp(-typical)
        fixed = np.zeros(typical.shape[1])
        if of_network.any() and network_share is not None:
            jobs = float(self.shares[of_network].sum())
            network = np.exp(-(self.shares[of_network] @ typical[of_network]) / jobs)
            parts[of_network] = self.shares[of_network, None] * network_share * network
            fixed += jobs * (1.0 - network_share)
        return Times(parts, fixed, is_of_runs=self.counting is Counting.RUNS)

    def work_scores(self, times: Times) -> Floats:
        """Return logarithms of the work done in the same time, relative to the first fabric: (blocks, fabrics).

        Their means are those of the typical ratios of the tests exactly; a block is off by what it is off in each test, by the part
        of the time that the test takes (delta method): time is a sum, and no mean of logarithms.
        """
        off = self.logs - self.logs.mean(axis=2, keepdims=True)
        scatter = np.einsum("tf,tfb->bf", times.own, off) - np.einsum("tf,tb->bf", times.of_first, off[:, 0])
        return np.asarray(scatter - np.log(times.total), dtype=np.float64)

    def work_rounding(self, times: Times) -> Rounding:
        """Return what the steps of values make of the work of each fabric relative to the first, which has it all."""
        found = []
        for fabric in range(len(self.fabrics)):
            own, first = (
                self.rounding.part((slice(None), column)).mean(weights[:, fabric])
                for column, weights in ((fabric, times.own), (0, times.of_first))
            )
            found.append(own.against(first) if fabric else Rounding(0.0, 0.0))
        return Rounding.joined(found)

    @property
    def score_rounding(self) -> Rounding:
        """What the steps of values make of each fabric's score."""
        return self.rounding.mean(self.shares)


def _tells_work(key: CellKey) -> bool:
    return key.workload is None or not key.workload.is_network_test


def name_of(key: CellKey) -> str:
    """Return a test as a reader calls it: `IS.W on 4 ranks`, `tcp round trip of 64 B`."""
    return named_cell(key, key.message_bytes) if key.workload is None else row_name(key)


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
        weights = dict.fromkeys(usual_tests(sides) if rows is None else rows, 1.0)
        left_out = _lost_workloads(sides, weights)
    fabrics = _fabrics_of(sides)
    whole = sum(weights.values()) + sum(one.share or 0.0 for one in left_out)
    is_by_block = all(side.is_beside(sides[0]) for side in sides)
    what = "block" if is_by_block else "run"
    blocks, values = _values(sides, weights, is_by_block=is_by_block)
    notes = [note for key in weights for note in _gave_nothing(key, sides)]
    unusable = dict(_unusable(values, sides))
    if table.counting is Counting.RUNS:
        usable = {key: rows for key, rows in values.items() if key not in unusable}
        unusable |= dict.fromkeys(_no_run_times(usable), NO_RUN_TIME)
    left_out += [LeftOut(what=name_of(key), why=why, share=weights[key]) for key, why in unusable.items()]
    values = {key: rows for key, rows in values.items() if key not in unusable}
    left_out += _drop_the_sparsest(values, weights, min(MINIMUM_LAUNCHES, len(blocks)), count(len(blocks), what))
    keys = tuple(sorted(values, key=in_order))
    logs = np.array([values[key] for key in keys]).reshape(len(keys), len(sides), len(blocks))
    is_whole = ~np.isnan(logs).any(axis=(0, 1))
    if keys and not is_whole.all():
        notes.append(f"only {count(int(is_whole.sum()), what)} of {len(blocks)} have every test on every fabric")
    logs = np.stack([logs[:, columns][:, :, is_whole].mean(axis=1) for columns in fabrics.values()], axis=1)
    notes += _runs_left_out(sides, len(blocks)) if not is_by_block else []
    amounts = np.array([weights[key] for key in keys])
    if table.counting is Counting.RUNS and logs.size:
        amounts = amounts * np.exp(-logs[:, 0].mean(axis=1))
    return Weighed(
        fabrics=tuple(fabrics),
        keys=keys,
        counting=table.counting,
        shares=amounts / amounts.sum() if keys else amounts,
        logs=logs,
        rounding=_rounding(keys, sides, fabrics),
        left_out=tuple(
            one.model_copy(update={"share": None if one.share is None or not table.weight else one.share / whole})
            for one in left_out
        ),
        notes=tuple(dict.fromkeys(notes)),
        missing_share=sum(one.share or 0.0 for one in left_out) / whole if whole else 0.0,
        sessions=_sessions(sides[0], np.array(blocks)[is_whole]) if is_by_block else (),
        paid=_paid(keys, sides, tuple(fabrics.values())),
        are_runs=not is_by_block,
    )


def _sessions(side: Side, blocks: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the session that each block of a side began in."""
    begun: dict[int, int] = {}
    for (block, _subject), session in sessions_of_side(side).items():
        begun[block] = min(session, begun.get(block, session))
    return tuple(begun.get(int(block), 0) for block in blocks)


def _values(
    sides: Sequence[Side], keys: Iterable[CellKey], *, is_by_block: bool
) -> tuple[list[int], dict[CellKey, Floats]]:
    """Return the blocks that all sides have, or the runs, and the values of each test in them as `_performance` has them."""
    blocks = sorted(set.intersection(*(set(side.blocks if is_by_block else range(len(side.runs))) for side in sides)))
    apart = frozenset(gap for one, other in combinations(sides, 2) for gap in mispaired(one, other))
    return blocks, {key: _performance(key, sides, blocks, apart if is_by_block else None) for key in keys}


NO_RUN_TIME = "it tells no time of a run, so `runs` of it have no share of the time: give share_of_time in every table"


def _unusable(values: Mapping[CellKey, Floats], sides: Sequence[Side]) -> Iterator[tuple[CellKey, str]]:
    """Yield each test that cannot be weighed, and why."""
    for key, rows in values.items():
        lacking = [side.name for side, row in zip(sides, rows, strict=True) if np.isnan(row).all()]
        why = _unfit(key, sides) if not lacking else lost_in_words(sides, key) or f"no data on {enumeration(lacking)}"
        if why:
            yield key, why


def _fabrics_of(sides: Sequence[Side]) -> dict[str, list[int]]:
    """Return what can be bought: each fabric with the numbers of the sides that it is in its conditions."""
    found: dict[str, list[int]] = {}
    for index, side in enumerate(sides):
        found.setdefault(side.bought_as, []).append(index)
    return found


def _rounding(keys: Sequence[CellKey], sides: Sequence[Side], fabrics: Mapping[str, Sequence[int]]) -> Rounding:
    """Return what the steps of values make of their logarithms, by test and fabric: of the mean over a fabric's conditions."""
    steps = np.array([[side.cells[key].step_share for key in keys] for side in sides]).reshape(len(sides), len(keys))
    of_sides = Rounding.of(steps)
    means = [of_sides.part(columns).mean(np.full(len(columns), 1.0 / len(columns))) for columns in fabrics.values()]
    joined = Rounding.joined(means)
    return Rounding(np.asarray(joined.deviation).T, np.asarray(joined.bound).T)


def _paid(
    keys: Sequence[CellKey], sides: Sequence[Side], fabrics: Sequence[Sequence[int]]
) -> dict[tuple[int, int], Fitted]:
    """Return what was fitted to the difference of every two fabrics, each the mean over its conditions."""
    weights = [{place: 1.0 / len(places) for place in places} for places in fabrics]
    return {
        (one, other): Fitted.largest(
            fitted_to(
                *((sides[place].cells[key], -share) for place, share in weights[one].items()),
                *((sides[place].cells[key], share) for place, share in weights[other].items()),
            )
            for key in keys
        )
        for one, other in combinations(range(len(fabrics)), 2)
    }


def _no_run_times(keys: Iterable[CellKey]) -> list[CellKey]:
    """Return the tests that tell no time of a run: of a rate, or a time for each step, nobody knows how long a run is."""
    return [
        key for key in keys if not key.metric.is_time or (key.workload is not None and _is_per_work(key.workload.unit))
    ]


def _is_per_work(unit: str) -> bool:
    found = parse_unit(unit)
    return found is not None and found.is_time_per_work


def _lost_workloads(sides: Sequence[Side], weights: Mapping[CellKey, float]) -> list[LeftOut]:
    """Return the workloads that gave nothing on some fabric and have no row, each as much of the whole as one test."""
    there = {side.cells[key].subject for side in sides for key in weights if key in side.cells}
    subjects = dict.fromkeys(one.subject for side in sides for one in side.accounts if one.subject not in ("", *there))
    found = ((subject, _lost(sides, subject)) for subject in subjects)
    return [LeftOut(what=subject, why=why, share=1.0) for subject, why in found if why]


def lost_in_words(sides: Sequence[Side], key: CellKey) -> str:
    """Return why a test has no data on some side though it was measured there; empty where it was not, or is there."""
    subject = next((side.cells[key].subject for side in sides if key in side.cells), None)
    return "" if subject is None else _lost(sides, subject)


def _lost(sides: Sequence[Side], subject: str) -> str:
    """Return on which sides the launches of a subject gave nothing, and why; empty where they gave something everywhere."""
    told: dict[str, list[str]] = {}
    for side in sides:
        account = side.account_of(subject)
        if account is not None and account.gave_nothing:
            told.setdefault(_kinds_of(account), []).append(side.name)
    lost = [f"{words} on {enumeration(names)}{' each' if len(names) > 1 else ''}" for words, names in told.items()]
    return f"measured and lost: {'; '.join(lost)}" if lost else ""


def _kinds_of(account: SubjectAccount) -> str:
    """Return `all 20 launches invalid (why)`, of each kind of loss."""
    return enumeration(
        [
            f"{one.launches} of {count(account.planned, 'launch')} {one.kind}"
            + (f" ({one.reason})" if one.reason else "")
            for one in account.lost
        ]
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
    return "; ".join(map(str, notes)) if thin else None


def _given(sides: Sequence[Side], weights: Sequence[Weight]) -> tuple[dict[CellKey, float], list[LeftOut]]:
    """Return the cells of each weight, which share it, and those weights that fit none."""
    blocks = blocks_of(sides)
    measured = sorted({key for side in sides for key in side.cells}, key=in_order)
    leading = on_leading_nodes(measured, blocks)
    found: dict[CellKey, float] = {}
    left_out = []
    for one in weights:
        names_nodes = any(key.lost_nodes and key.variant == one.variant for key in measured)
        keys = _matching(one, measured if names_nodes else leading, blocks)
        if not keys:
            left_out.append(LeftOut(what=one.what, why=_why_unmatched(one, sides), share=one.amount))
        for key in keys:
            found[key] = found.get(key, 0.0) + one.amount / len(keys)
    return found, left_out


def _why_unmatched(one: Weight, sides: Sequence[Side]) -> str:
    """Return why no test that was measured is what a weight is given to: its launches were lost, or there were none of it."""
    accounts = [account for side in sides for account in side.accounts]
    workloads = {name for side in sides for run in side.runs for name in workload_names(run.manifest)}
    subjects = dict.fromkeys(each.subject for each in accounts if one.is_of(each.subject, workloads))
    return "; ".join(filter(None, (_lost(sides, subject) for subject in subjects))) or "not measured"


def _matching(one: Weight, measured: Sequence[CellKey], blocks: Blocks) -> list[CellKey]:
    if one.kernel is not None:
        benchmark, problem_class, ranks = one.kernel
        kernels = [(key, it) for key in measured if (it := key.workload) is not None and not it.name]
        of_name = [(key, it) for key, it in kernels if it.short == f"{benchmark}.{problem_class}"]
        if ranks is None:
            return on_most_ranks((key for key, _ in of_name), blocks)
        return [key for key, it in of_name if it.ranks == ranks]
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
        and one.variant in (None, key.variant, variant_of(key.pattern, key.on_any_nodes))
    ]
    plain = [key for key in fitting if is_plain(key)]
    return plain or fitting


def _performance(
    key: CellKey, sides: Sequence[Side], blocks: Sequence[int], apart: Collection[tuple[int, str]] | None
) -> Floats:
    """Return logarithms, larger is better, shape (fabrics, blocks); NaN where there is none, or halves are too far `apart`.

    `apart` None: blocks are runs, whose means count.
    """
    rows = np.full((len(sides), len(blocks)), np.nan)
    for row, side in zip(rows, sides, strict=True):
        if key in side.cells and apart is None:
            row[:] = run_means(side.cells[key].log_values, side.run_of)[: len(blocks)]
        elif key in side.cells and apart is not None:
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


def _runs_left_out(sides: Sequence[Side], runs: int) -> list[str]:
    """Return that the further runs of some configurations do not count, where others have fewer."""
    more = [side.name for side in sides if len(side.runs) > runs]
    return [f"of {enumeration(more)} the first {count(runs, 'run')} count, as others have no more"] if more else []


def _drop_the_sparsest(
    values: dict[CellKey, Floats], weights: Mapping[CellKey, float], needed: int, of_all: str
) -> list[LeftOut]:
    """Take out tests, those with the fewest whole blocks first, until the rest have `needed` blocks in common."""
    dropped = []
    while values and np.count_nonzero(~np.isnan(np.array(list(values.values()))).any(axis=(0, 1))) < needed:
        whole = {key: int(np.count_nonzero(~np.isnan(rows).any(axis=0))) for key, rows in values.items()}
        key = min(whole, key=lambda one: whole[one])
        del values[key]
        why = f"measured on every fabric in only {whole[key]} of {of_all}"
        dropped.append(LeftOut(what=name_of(key), why=why, share=weights[key]))
    return dropped
