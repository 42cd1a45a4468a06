"""What a row of the first screen shows: absolute values, ratios with intervals that hold together, and a grade of its evidence.

The report's error is shared out once: to the leading rows, to all other comparisons (exceptions, folded rows), and to the one claim
of breadth. Layers below those that users meet have a family of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.alone import doubts_of_losses, share_of_line_rate
from fabricbench.analysis.comparing import times_number, verdict_of, withheld
from fabricbench.analysis.findings import (
    CellKey,
    Comparison,
    Doubt,
    Effect,
    Grade,
    LadderStep,
    Letter,
    PairEffect,
    Reading,
    Verdict,
)
from fabricbench.analysis.grading import Judged, SharedDoubts, doubts_of_pairs, grade_of, weighed
from fabricbench.analysis.lost_launches import survivors
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.pairing import Pairing
from fabricbench.analysis.ranking import ranks
from fabricbench.analysis.row_values import (
    groups_of_samples,
    known_values,
    levels_of,
    log_ratio_of,
    log_values_of,
    ratio_of_samples,
    session_means_of,
    span_of,
    values_of,
)
from fabricbench.analysis.rows import Row
from fabricbench.analysis.wording import difference
from fabricbench.patterns import PATTERNS
from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES, Consequence, Decision, LogRatio
from fabricbench.statistics.order import median_interval
from fabricbench.statistics.ratios import paired_ratios, run_means
from fabricbench.statistics.skew import splits_median, unseen_share

Floats = NDArray[np.float64]

LEADING_SHARE, OTHER_SHARE, BREADTH_SHARE = 0.7, 0.2, 0.1
"""How 1 - confidence is shared out: leading rows, every other comparison, the claim that a fabric is slower nowhere."""

BREADTHS = 2
"""Claims of breadth for a pair: one over the layers that users meet, one over those below."""


Judge = Callable[[Side, CellMeasured, bool, float | None], tuple[Doubt, ...]]
"""What speaks against a cell's numbers on a side: whether a tail of its samples is meant, and the level that is shown."""


@dataclass(frozen=True)
class Compared:
    """All that the first screen is made of. `confidence` is what its ratios share, of this look; that of each level is its own."""

    sides: Sequence[Side]
    pairings: Sequence[Pairing]
    cells: Sequence[Comparison]
    curves: Sequence[Comparison]
    ladder: Sequence[LadderStep]
    margin: float
    confidence: float
    confidence_of_levels: float
    judge: Judge

    def has_sessions(self, one: Comparison) -> bool:
        """Return whether the blocks of a comparison are of several sessions."""
        return (one.fabric_a, one.fabric_b) in self._of_sessions

    @cached_property
    def _of_sessions(self) -> frozenset[tuple[str, str]]:
        return frozenset((one.a.name, one.b.name) for one in self.pairings if one.has_sessions)


@dataclass(frozen=True)
class ErrorRates:
    """The error that each comparison of a family may have, so that the families keep theirs."""

    leading: float
    other: float
    breadth: float
    sessions: float
    """Of each pair of sides, not of each row: what a day does to one row it does to others."""
    leading_keys: frozenset[CellKey] = frozenset()

    def of(self, row: Row) -> float:
        """Return the rate of a row."""
        return self.leading if row.is_leading else self.other

    def of_size(self, one: Comparison) -> float:
        """Return the rate of a single size: that of its row where it leads, so that counts and rows never contradict each other."""
        return self.leading if one.key in self.leading_keys else self.other


def error_rates(rows: Sequence[Row], pairs: int, comparisons: int, confidence: float) -> ErrorRates:
    """Share the report's error out; `comparisons` counts the cells and curves of all pairs, each of which has a mean over sizes."""
    error = 1.0 - confidence
    leading = pairs * sum(row.is_leading for row in rows)
    tails = pairs * sum(not row.is_typical for row in rows)
    return ErrorRates(
        leading=LEADING_SHARE * error / max(leading, 1),
        other=OTHER_SHARE * error / max(comparisons + tails + pairs, 1),
        breadth=BREADTH_SHARE * error / max(BREADTHS * pairs, 1),
        sessions=error / max(pairs, 1),
        leading_keys=frozenset(row.key for row in rows if row.is_leading),
    )


def effect_of(
    row: Row,
    sides: Sequence[Side],
    pairings: Sequence[Pairing],
    cells: Mapping[tuple[str, str, CellKey], Comparison],
    rates: ErrorRates,
    compared: Compared,
    shared_doubts: SharedDoubts,
) -> Effect:
    """Return a row with its readings, its pairs and its grade."""
    is_tail = not row.is_typical
    mine = [pairing for pairing in pairings if row.key in pairing.keys]
    levels = {
        side.name: _level(side, row, sides, mine, compared.confidence_of_levels)
        for side in sides
        if row.key in side.cells
    }
    doubts = {
        side.name: compared.judge(side, side.cells[row.key], is_tail, levels[side.name][0])
        if side.name in levels
        else (Doubt.of("gave nothing"),)
        for side in sides
    }
    of_cell = {(one.a.name, one.b.name): cells.get((one.a.name, one.b.name, row.key)) for one in mine}
    made = (_judged(row, one, of_cell[one.a.name, one.b.name], rates, compared.margin, shared_doubts) for one in mine)
    judged = [one for one in made if one is not None]
    pairs = tuple(one.pair for one in judged)
    of_sides = [
        weighed(one.model_copy(update={"subject": name}), judged) for name, found in doubts.items() for one in found
    ]
    losses = tuple(one for one in of_sides if one.is_loss)
    notes = [weighed(note, judged) for one in of_cell.values() for note in _notes(one)]
    is_alone = len(sides) == 1
    if is_alone and levels:
        notes = doubts_of_losses(sides[0], row.key)
    against = (*(one for one in of_sides if not one.is_loss), *notes, *doubts_of_pairs(judged, shared_doubts))
    if row.is_typical:
        against = (*against, *_doubts_of_modes(row, mine, judged))
    grade = grade_of(judged, (*against, *losses), is_alone=is_alone)
    slow = _slow_blocks(of_cell.values())
    return Effect(
        what=row.what,
        key=row.named_as or row.key,
        workload=row.key.workload,
        layer=None if row.key.workload is not None else row.key.layer,
        metric=row.key.metric,
        message_bytes=row.key.message_bytes if PATTERNS[row.key.pattern].has_size else None,
        is_typical=not is_tail,
        is_mean=row.is_mean,
        readings=tuple(
            _reading(side, row, levels.get(side.name), doubts[side.name], slow.get(side.name, ()), is_alone=is_alone)
            for side in sides
        ),
        pairs=pairs,
        ranks=_ranks([side.name for side in sides], pairs),
        grade=grade,
        doubts=tuple(dict.fromkeys(against)),
        unseen_share=_unseen(of_cell.values()) if grade is Grade.CLEAR else None,
        losses=losses,
    )


def _doubts_of_modes(row: Row, pairings: Sequence[Pairing], judged: Sequence[Judged]) -> Iterator[Doubt]:
    """Yield where a median lies between two modes of the samples, and their mean does not bear the verdict out.

    A few samples more in one mode move such a median by all that the modes are apart, and the mean by next to nothing.
    """
    by_ends = {(one.pair.fabric_a, one.pair.fabric_b): one for one in judged}
    for pairing in pairings:
        one = by_ends.get((pairing.a.name, pairing.b.name))
        cells = [(side.name, side.cells[row.key]) for side in (pairing.a, pairing.b)]
        if one is None or one.is_open or any(cell.means is None for _, cell in cells):
            continue
        between = [name for name, cell in cells if splits_median(cell.pooled)]
        known = ratio_of_samples(replace(row, is_mean=True), pairing) if between else None
        left = Decision.UNDECIDED if known is None else known.decide(one.rate, one.margin)
        if between and (lost := one.loses(left)) is not Consequence.NOTHING:
            yield Doubt.of(
                f"the median on {' and '.join(between)} lies between two modes of the samples, where few of them move it far: ",
                *("by their mean the ratio is ", times_number(1.0 if known is None else one.times(known.mean))),
                consequence=lost,
            )


def _notes(one: Comparison | None) -> Sequence[Doubt]:
    """Return what the table says beside a comparison, but for what a row weighs in its own numbers."""
    if one is None or one.verdict is Verdict.EQUIVALENT:
        return ()
    return [note for note in one.notes if not note.is_loss and not note.is_group]


def _unseen(cells: Iterable[Comparison | None]) -> float | None:
    """Return the share of launches that could be a slow mode unseen; None where there were launches enough to meet a rare one."""
    met = min((one.met for one in cells if one is not None), default=EQUIVALENT_LAUNCHES)
    return unseen_share(met) if met < EQUIVALENT_LAUNCHES else None


def _ranks(names: Sequence[str], pairs: Sequence[PairEffect]) -> tuple[tuple[str, ...], ...]:
    """Return the tiers, from the pairs alone: who beats more stands first. Empty unless every two were compared."""
    if len(pairs) < len(names) * (len(names) - 1) // 2:
        return ()
    wins = {
        ends: True
        for one in pairs
        if one.verdict.is_decided
        for ends in [(one.fabric_a, one.fabric_b) if one.verdict.leader is Letter.A else (one.fabric_b, one.fabric_a)]
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


Level = tuple[float | None, float | None, float | None]
"""A geometric mean over launches, of a tail their median, with its interval; None where no launch, or too few, tell."""


def _level(side: Side, row: Row, sides: Sequence[Side], pairings: Sequence[Pairing], confidence: float) -> Level:
    """Return a fabric's level: the geometric mean over what all sides have, so that ratios of readings are the ratios shown."""
    logs = log_values_of(side.cells[row.key], row)
    beside = [one for one in sides if one.is_beside(side)]
    mine = [pairing for pairing in pairings if side.name in (pairing.a.name, pairing.b.name)]
    if len(side.runs) > 1 and not all(pairing.is_paired for pairing in mine):
        logs = run_means(logs, side.run_of)
    elif len(beside) > 1:
        common = _common_blocks(row, beside, [pairing for pairing in mine if pairing.is_paired])
        shared = logs[[block in common for block in side.blocks]]
        logs = shared if shared.size else logs
    if row.tail is not None:
        median = median_interval(np.exp(logs[~np.isnan(logs)]), confidence, side.cells[row.key].rounding)
        return (None if np.isnan(median.value) else median.value), median.low, median.high
    level = paired_ratios(logs[np.newaxis, :], confidence, rounding=side.cells[row.key].rounding)
    value, low, high = (None if np.isnan(one[0]) else float(one[0]) for one in (level.ratio, level.low, level.high))
    return value if level.launches[0] else None, low, high


def _slow_blocks(cells: Iterable[Comparison | None]) -> dict[str, tuple[int, ...]]:
    """Return of each fabric whose launches fall into two groups the blocks of the slow one."""
    groups = [one.groups for one in cells if one is not None and one.groups is not None]
    return {one.fabric: one.slow_blocks for one in groups}


def _reading(
    side: Side, row: Row, level: Level | None, doubts: Sequence[Doubt], slow_blocks: Sequence[int], *, is_alone: bool
) -> Reading:
    if level is None:
        return Reading(
            fabric=side.name, value=None, low=None, high=None, launches=(None,) * len(side.blocks), note="gave nothing"
        )
    values = values_of(side.cells[row.key], row)
    return Reading(
        fabric=side.name,
        value=level[0],
        low=level[1],
        high=level[2],
        launches=tuple(None if np.isnan(value) else float(value) for value in values),
        slow=tuple(place for place, block in enumerate(side.blocks) if block in slow_blocks),
        is_impossible=any(doubt.is_void for doubt in doubts),
        is_beyond_wire=any(doubt.is_beyond_wire for doubt in doubts),
        note="; ".join(str(doubt) for doubt in doubts if doubt.is_void),
        share_of_line_rate=share_of_line_rate(side, row.key, level) if is_alone and row.is_typical else None,
    )


def _common_blocks(row: Row, sides: Sequence[Side], pairings: Sequence[Pairing]) -> set[int]:
    """Return the blocks in which every side that has the row at all has a value of it, halves close in time."""
    common: set[int] | None = None
    for side in sides:
        if row.key in side.cells:
            logs = log_values_of(side.cells[row.key], row)
            mine = {block for block, value in zip(side.blocks, logs, strict=True) if not np.isnan(value)}
            common = mine if common is None else common & mine
    apart = (pairing.blocks_left_out(row.key) for pairing in pairings if row.key in pairing.a.cells)
    return (common or set()).difference(*apart)


def _judged(
    row: Row,
    pairing: Pairing,
    compared: Comparison | None,
    rates: ErrorRates,
    margin: float,
    shared_doubts: SharedDoubts,
) -> Judged | None:
    """Return a pair of a row with its verdict and what that rests on; None where nothing is known of it."""
    rate = rates.of(row)
    if row.is_typical and compared is None:
        return None
    known = None if compared is None else log_ratio_of(compared)
    groups, worse = None if compared is None else compared.groups, None
    if not row.is_typical:
        known = ratio_of_samples(row, pairing)
        groups, worse = groups_of_samples(row, pairing)
    values = levels_of(row, pairing)
    if known is None and min(values) <= 0:
        return None
    mean = known.mean if known is not None and row.tail is None else log(values[1] / values[0])
    metric = row.key.metric
    open_pair = PairEffect(
        fabric_a=pairing.a.name,
        fabric_b=pairing.b.name,
        times=exp(mean if not metric.is_lower_better else -mean),
        low=None,
        high=None,
        verdict=Verdict.NOT_ENOUGH_DATA,
        words="",
        value_a=values[0],
        value_b=values[1],
        more_blocks_needed=None if compared is None or not row.is_typical else compared.more_blocks_needed,
        printed_step=None if compared is None or not row.is_typical else compared.printed_step,
    )
    judged = Judged(
        open_pair,
        metric.is_lower_better,
        pairing.a.cells[row.key].subject,
        rate,
        margin,
        known,
        None if known is None else groups,
        span_of(row, pairing) if known is not None else None,
        pairing.single_runs,
        session_means_of(row, pairing),
        shared_doubts.usual_of_sessions(open_pair, pairing.a.cells[row.key].subject),
        rates.sessions,
        known_values(row, pairing),
        pairing.is_one_machine,
        worse,
    )
    return replace(judged, pair=_shown(row, pairing, judged, values))


def _shown(row: Row, pairing: Pairing, judged: Judged, values: tuple[float, float]) -> PairEffect:
    """Return a pair with its verdict, and with the interval of its ratio where that holds whatever sessions differ by."""
    known, metric, verdict = judged.known, row.key.metric, Verdict.NOT_ENOUGH_DATA
    ends: list[float] = []
    if known is not None:
        if not pairing.is_of_one_occasion:
            sign = -1.0 if metric.is_lower_better else 1.0
            ends = sorted(exp(sign * end) for end in _bounds(row, judged, known))
            ends = [min(ends[0], judged.pair.times), max(ends[1], judged.pair.times)]
        found = verdict_of(judged.decide(), metric, is_unresolved=known.is_unresolved(judged.margin))
        verdict = withheld(found, survivors((pairing.a, pairing.b), (row.key,))[0], pairing, (row.key,))
    return judged.pair.model_copy(
        update={
            "low": ends[0] if ends else None,
            "high": ends[1] if ends else None,
            "verdict": verdict,
            "words": difference(metric, verdict, *values, margin=judged.margin),
        }
    )


def _bounds(row: Row, judged: Judged, known: LogRatio) -> tuple[float, float]:
    """Return the interval of a row's log ratio; where blocks are of several sessions it holds that of the sessions' means too."""
    low, high = _of_usual(row, judged, known).bounds(judged.rate)
    of_sessions = judged.of_sessions
    if of_sessions is None:
        return low, high
    least, most = of_sessions.bounds(judged.rate_of_sessions)
    return min(low, least), max(high, most)


def _of_usual(row: Row, judged: Judged, known: LogRatio) -> LogRatio:
    """Return what the interval of a row is of: of a tail whose launches are in two groups those that are more."""
    if row.tail is None or judged.groups is None:
        return known
    return max(judged.parts, key=lambda part: part.launches)
