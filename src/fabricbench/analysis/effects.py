"""What a row of the first screen shows: absolute values, ratios with intervals that hold together, and a grade of its evidence.

The report's error is shared out once: to the leading rows, to all other comparisons (exceptions, folded rows), and to the one claim
of breadth. Layers below those that users meet have a family of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.comparing import Pairing, ranks, survivors, verdict_of, withheld
from fabricbench.analysis.findings import (
    CellKey,
    Comparison,
    Crossover,
    Effect,
    Grade,
    LadderStep,
    PairEffect,
    Reading,
    Verdict,
)
from fabricbench.analysis.measured import CellMeasured, Side, clock_deviation, log_of
from fabricbench.analysis.rows import Row
from fabricbench.analysis.wording import difference
from fabricbench.statistics.decision import DECISIONS, LogRatio
from fabricbench.statistics.ratios import paired_ratios, run_means, unpaired_ratios
from fabricbench.statistics.skew import guarded

Floats = NDArray[np.float64]

LEADING_SHARE, OTHER_SHARE, BREADTH_SHARE = 0.7, 0.2, 0.1
"""How 1 - confidence is shared out: leading rows, every other comparison, the claim that a fabric is slower nowhere."""

BREADTHS = 2
"""Claims of breadth for a pair: one over the layers that users meet, one over those below."""


@dataclass(frozen=True)
class Doubt:
    """Why a cell's numbers on one fabric may not be the network's; `is_void` where they cannot be right.

    With `is_beyond_wire` the level that is shown is better than the wire allows, by no more than buffers explain. By `delay_share`
    of its time, at most, the instrument delayed it: where the verdict would be the same without, that is told and no doubt.
    """

    text: str
    is_void: bool = False
    is_beyond_wire: bool = False
    delay_share: float | None = None


Judge = Callable[[Side, CellMeasured, bool, float | None], tuple[Doubt, ...]]
"""What speaks against a cell's numbers on a side: whether a tail of its samples is meant, and the level that is shown."""


@dataclass(frozen=True)
class Compared:
    """All that the first screen is made of. `confidence` is what its ratios share, of this look; that of each level is its own."""

    sides: Sequence[Side]
    pairings: Sequence[Pairing]
    cells: Sequence[Comparison]
    curves: Sequence[Comparison]
    crossovers: Sequence[Crossover]
    ladder: Sequence[LadderStep]
    margin: float
    confidence: float
    confidence_of_levels: float
    judge: Judge


@dataclass(frozen=True)
class ErrorRates:
    """The error that each comparison of a family may have, so that the families keep theirs."""

    leading: float
    other: float
    breadth: float
    leading_keys: frozenset[tuple[object, ...]] = frozenset()

    def of(self, row: Row) -> float:
        """Return the rate of a row."""
        return self.leading if row.is_leading else self.other

    def of_size(self, one: Comparison) -> float:
        """Return the rate of a single size: that of its row where it leads, so that counts and rows never contradict each other."""
        return self.leading if key_parts(one) in self.leading_keys else self.other


def error_rates(rows: Sequence[Row], pairs: int, comparisons: int, confidence: float) -> ErrorRates:
    """Share the report's error out; `comparisons` counts the cells and curves of all pairs."""
    error = 1.0 - confidence
    leading = pairs * sum(row.is_leading for row in rows)
    tails = pairs * sum(row.tail is not None for row in rows)
    return ErrorRates(
        leading=LEADING_SHARE * error / max(leading, 1),
        other=OTHER_SHARE * error / max(comparisons + tails, 1),
        breadth=BREADTH_SHARE * error / max(BREADTHS * pairs, 1),
        leading_keys=frozenset(key_parts(row.key) for row in rows if row.is_leading),
    )


def log_ratio_of(one: Comparison) -> LogRatio | None:
    """Return what a comparison knows of its log ratio; None where too few launches allow no statement."""
    if one.deviation is None or one.freedom is None or one.p_value is None:
        return None
    return LogRatio(log(one.ratio), one.deviation, one.launches, one.freedom, one.met)


def effect_of(
    row: Row,
    sides: Sequence[Side],
    pairings: Sequence[Pairing],
    cells: Mapping[tuple[str, str, CellKey], Comparison],
    rates: ErrorRates,
    compared: Compared,
) -> Effect:
    """Return a row with its readings, its pairs and its grade."""
    is_tail = row.tail is not None
    mine = [pairing for pairing in pairings if row.key in pairing.keys]
    levels = {
        side.name: _level(side, row, sides, mine, compared.confidence_of_levels)
        for side in sides
        if row.key in side.cells
    }
    doubts = {
        side.name: compared.judge(side, side.cells[row.key], is_tail, levels[side.name][0])
        if side.name in levels
        else (Doubt("gave nothing"),)
        for side in sides
    }
    of_cell = {(one.a.name, one.b.name): cells.get((one.a.name, one.b.name, row.key)) for one in mine}
    made = (_pair(row, one, of_cell[one.a.name, one.b.name], rates.of(row), compared.margin) for one in mine)
    pairs = tuple(one for one in made if one is not None)
    known = (one for one in of_cell.values() if one is not None and one.verdict is not Verdict.EQUIVALENT)
    delays = {
        name: doubt.delay_share for name, found in doubts.items() for doubt in found if doubt.delay_share is not None
    }
    stands = bool(pairs) and all(_stands(one, delays, compared.margin) for one in pairs)
    notes = [note for one in known for note in one.notes]
    against = [
        (f"{name}: {one.text}", stands and one.delay_share is not None)
        for name, found in doubts.items()
        for one in found
    ]
    told = [*(f"{text}{STANDS if is_harmless else ''}" for text, is_harmless in against), *notes]
    return Effect(
        what=row.what,
        workload=row.key.workload,
        layer=None if row.key.workload is not None else row.key.layer,
        metric=row.key.metric,
        is_typical=not is_tail,
        readings=tuple(_reading(side, row, levels.get(side.name), doubts[side.name]) for side in sides),
        pairs=pairs,
        ranks=_ranks([side.name for side in sides], pairs),
        grade=_grade(
            is_void=any(doubt.is_void for found in doubts.values() for doubt in found),
            is_decided=any(one.verdict.leader or one.verdict is Verdict.EQUIVALENT for one in pairs),
            is_doubted=bool(notes) or not all(is_harmless for _, is_harmless in against),
        ),
        doubts=tuple(dict.fromkeys(told)),
    )


def _ranks(names: Sequence[str], pairs: Sequence[PairEffect]) -> tuple[tuple[str, ...], ...]:
    """Return the tiers, from the pairs alone: who beats more stands first. Empty unless every two were compared."""
    if len(pairs) < len(names) * (len(names) - 1) // 2:
        return ()
    wins = {
        ends: True
        for one in pairs
        if one.verdict.is_decided
        for ends in [(one.fabric_a, one.fabric_b) if one.verdict.leader == "A" else (one.fabric_b, one.fabric_a)]
    }

    def standing(name: str) -> tuple[int, float]:
        beaten = sum(winner == name for winner, _ in wins) - sum(loser == name for _, loser in wins)
        ahead = sum(
            log(one.times) * (1 if one.fabric_b == name else -1)
            for one in pairs
            if name in (one.fabric_a, one.fabric_b)
        )
        return beaten, ahead

    return ranks(sorted(names, key=standing, reverse=True), wins)


STANDS = "; who is faster would be the same without"
"""Ends what is told of a delay that changes no verdict."""


def _stands(pair: PairEffect, delays: Mapping[str, float], margin: float) -> bool:
    """Whether the verdict would be the same if the slower one had lost all of its delay, and the faster one none."""
    if pair.verdict.leader is None or pair.low is None or pair.high is None:
        return False
    least, slower = (pair.low, pair.fabric_a) if pair.verdict.leader == "B" else (1 / pair.high, pair.fabric_b)
    return least * (1.0 - delays.get(slower, 0.0)) > (1.0 + margin if pair.verdict.is_decided else 1.0)


def _grade(*, is_void: bool, is_decided: bool, is_doubted: bool) -> Grade:
    if is_void:
        return Grade.VOID
    if not is_decided:
        return Grade.OPEN
    return Grade.DOUBTFUL if is_doubted else Grade.CLEAR


def _values(cell: CellMeasured, tail: float | None) -> Floats:
    return cell.launch_values if tail is None else cell.tails.get(tail, np.full_like(cell.launch_values, np.nan))


Level = tuple[float | None, float | None, float | None]
"""A geometric mean over launches with its interval; None where no launch, or too few, tell."""


def _level(side: Side, row: Row, sides: Sequence[Side], pairings: Sequence[Pairing], confidence: float) -> Level:
    """Return a fabric's level: the geometric mean over what all sides have, so that ratios of readings are the ratios shown."""
    logs = log_of(_values(side.cells[row.key], row.tail))
    if pairings and pairings[0].is_paired:
        common = _common_blocks(row, sides, pairings)
        shared = logs[[block in common for block in side.blocks]]
        logs = shared if shared.size else logs
    elif len(side.runs) > 1:
        logs = run_means(logs, side.run_of)
    level = paired_ratios(logs[np.newaxis, :], confidence)
    value, low, high = (None if np.isnan(one[0]) else float(one[0]) for one in (level.ratio, level.low, level.high))
    return value if level.launches[0] else None, low, high


def _reading(side: Side, row: Row, level: Level | None, doubts: Sequence[Doubt]) -> Reading:
    if level is None:
        return Reading(
            fabric=side.name, value=None, low=None, high=None, launches=(None,) * len(side.blocks), note="gave nothing"
        )
    values = _values(side.cells[row.key], row.tail)
    return Reading(
        fabric=side.name,
        value=level[0],
        low=level[1],
        high=level[2],
        launches=tuple(None if np.isnan(value) else float(value) for value in values),
        is_impossible=any(doubt.is_void for doubt in doubts),
        is_beyond_wire=any(doubt.is_beyond_wire for doubt in doubts),
        note="; ".join(doubt.text for doubt in doubts if doubt.is_void),
    )


def _common_blocks(row: Row, sides: Sequence[Side], pairings: Sequence[Pairing]) -> set[int]:
    """Return the blocks in which every side that has the row at all has a value of it, halves close in time."""
    common: set[int] | None = None
    for side in sides:
        if row.key in side.cells:
            logs = log_of(_values(side.cells[row.key], row.tail))
            mine = {block for block, value in zip(side.blocks, logs, strict=True) if not np.isnan(value)}
            common = mine if common is None else common & mine
    return {block for block in common or () if not any(_is_left_out(block, row.key, pairing) for pairing in pairings)}


def _is_left_out(block: int, key: CellKey, pairing: Pairing) -> bool:
    return key in pairing.a.cells and pairing.is_left_out(block, key)


def _pair(row: Row, pairing: Pairing, compared: Comparison | None, rate: float, margin: float) -> PairEffect | None:
    known = _tail_ratio(row, pairing) if row.tail is not None else None if compared is None else log_ratio_of(compared)
    if row.tail is None and compared is None:
        return None
    mean = known.mean if known is not None else log(compared.ratio) if compared is not None else None
    if mean is None:
        return None
    metric = row.key.metric
    low = high = None
    verdict = Verdict.NOT_ENOUGH_DATA
    if known is not None:
        low, high = known.bounds(rate)
        decision = known.decide(rate, margin)
        if compared is not None and compared.is_mixed:
            log_a, log_b = _compared_logs(row, pairing)
            code = np.array([DECISIONS.tolist().index(decision)])
            is_mixed = np.ones(1, dtype=np.bool_)
            decision = DECISIONS[guarded((log_b - log_a)[np.newaxis, :], code, is_mixed, margin, 1.0 - rate)[0]]
        thin = survivors((pairing.a, pairing.b), (row.key,))[0]
        verdict = withheld(verdict_of(decision, metric), thin, pairing, (row.key,))
    sign = -1.0 if metric.is_lower_better else 1.0
    ends = sorted(exp(sign * end) for end in (low, high)) if low is not None and high is not None else [None, None]
    values = _levels(row, pairing)
    return PairEffect(
        fabric_a=pairing.a.name,
        fabric_b=pairing.b.name,
        times=exp(sign * mean),
        low=ends[0],
        high=ends[1],
        verdict=verdict,
        words=difference(metric, verdict, *values, margin=margin),
        value_a=values[0],
        value_b=values[1],
        more_blocks_needed=None if compared is None or row.tail is not None else compared.more_blocks_needed,
    )


def _levels(row: Row, pairing: Pairing) -> tuple[float, float]:
    """Return the geometric means of both sides over what is compared."""
    logs = _compared_logs(row, pairing)
    return tuple(exp(float(np.nanmean(one))) for one in logs)  # type: ignore[return-value]


def _compared_logs(row: Row, pairing: Pairing) -> tuple[Floats, Floats]:
    if row.tail is None:
        log_a, log_b = pairing.log_values(row.key)
    else:
        log_a, log_b = pairing.replicates(
            row.key, *(log_of(_values(side.cells[row.key], row.tail)) for side in (pairing.a, pairing.b))
        )
    if not pairing.is_paired:
        return log_a, log_b
    both = ~(np.isnan(log_a) | np.isnan(log_b))
    return (log_a[both], log_b[both]) if both.any() else (log_a, log_b)


def _tail_ratio(row: Row, pairing: Pairing) -> LogRatio | None:
    log_a, log_b = _compared_logs(row, pairing)
    floor = clock_deviation(pairing.a.cells[row.key], pairing.b.cells[row.key])
    ratios = (
        paired_ratios((log_b - log_a)[np.newaxis, :], least_deviation=floor)
        if pairing.is_paired
        else unpaired_ratios(log_a, log_b, least_deviation=floor)
    )
    if np.isnan(ratios.p_value[0]):
        return None
    return LogRatio(
        float(np.log(ratios.ratio[0])),
        float(ratios.log_deviation[0]),
        int(ratios.launches[0]),
        float(ratios.degrees_of_freedom[0]),
    )


def key_parts(one: CellKey | Comparison) -> tuple[object, ...]:
    """Return what tells one cell from another, alike for a key and for a comparison."""
    return tuple(
        getattr(one, name) for name in ("layer", "pattern", "receive", "message_bytes", "metric", "variant", "workload")
    )
