"""How often the procedures of `fabricbench.statistics` are right on campaigns whose truth is known.

Cells and curves of a campaign are one family, as in a report. Each is judged twice: by the correction of tables (the false
discovery rate for differences, Hochberg for equivalence) and by that of a headline (the chance of any wrong claim: Holm).
docs/statistics.md shows the rates that come out; the tests hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from benchmarks.simulation import Curves, Noise, Shape, simulate_curves, simulate_launches, simulate_runs
from numpy.typing import NDArray

from fabricbench.statistics.correction import benjamini_hochberg, hochberg, holm
from fabricbench.statistics.crossing import crossings
from fabricbench.statistics.decision import (
    EQUIVALENT,
    HIGHER,
    HIGHER_AHEAD,
    LOWER,
    LOWER_AHEAD,
    UNDECIDED,
    PValues,
    corrected,
    decision_codes,
    p_values_of,
)
from fabricbench.statistics.ratios import Assumption, Ratios, paired_ratios, unpaired_ratios
from fabricbench.statistics.skew import SlowModes, find_slow_modes, p_values_of_both

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Booleans = NDArray[np.bool_]

BATCH = 25_000_000
"""Numbers drawn at a time: a batch stays within about 200 MB."""


@dataclass(frozen=True)
class Rates:
    """What was claimed; every figure is a share. A wrong claim is counted once for each campaign that makes any.

    `wrong_beyond`: faster, where neither the mean nor the typical launch of that side is so by more than the margin.
    `wrong_ahead`: faster or ahead, where the truth is 0 or the other way round. `wrong_equivalent`: equivalent, where the mean or
    the typical launch differs by more than the margin. `wrong`: any of these.

    The rest is power, a share of the cells that differ (of all cells where none does): `beyond` the margin on the right side,
    `ahead` on the right side (or beyond), `equivalent`, `undecided`.
    """

    wrong_beyond: float
    wrong_ahead: float
    wrong_equivalent: float
    wrong: float
    beyond: float
    ahead: float
    equivalent: float
    undecided: float


@dataclass(frozen=True)
class Characteristics:
    """Rates under the correction of `tables` and of `headlines`, how many intervals hold the true mean, how many campaigns alarm.

    `coverage` is of intervals of single cells at the confidence asked for, `curve_coverage` of curves; `alarmed` campaigns had
    launches in two groups on one side.
    """

    tables: Rates
    headlines: Rates
    coverage: float
    curve_coverage: float
    alarmed: float


def claims_characteristics(
    seed: int,
    campaigns: int,
    shape: Shape,
    noise: Noise | None = None,
    *,
    effect: float = 0.0,
    differing_curves: int | None = None,
    margin: float = 0.02,
    confidence: float = 0.95,
    assumption: Assumption = Assumption.NORMAL,
    is_guarded: bool = True,
) -> Characteristics:
    """Simulate comparisons of two sides within blocks; side 1 is longer by `effect` in the first `differing_curves` curves.

    Where `is_guarded`, campaigns whose pooled launches fall into two groups are decided by both of them (`p_values_of_both`).
    """
    noise = noise or Noise()
    random = np.random.default_rng(seed)
    log_effect, typical = _truth(shape, effect, differing_curves)
    judged = []
    for size in _batches(campaigns, 2, shape):
        launches = simulate_launches(random, size, shape, noise, log_effect)
        log_ratios = _with_curves(launches[:, 1] - launches[:, 0], shape)
        ratios = paired_ratios(log_ratios.reshape(-1, shape.blocks), confidence, assumption)
        judged.append(_judge(ratios, log_ratios, _slow_modes(launches) if is_guarded else None, margin, confidence))
    return _summary(judged, typical, typical + noise.mean_shift, shape.cells, margin)


def runs_characteristics(
    seed: int,
    campaigns: int,
    runs: int,
    shape: Shape,
    noise: Noise | None = None,
    *,
    effect: float = 0.0,
    differing_curves: int | None = None,
    margin: float = 0.02,
    confidence: float = 0.95,
) -> Characteristics:
    """Simulate before and after with so many runs on each side, compared by Welch's t on the means of runs.

    A run, not a launch, is what is repeated here: what differs from session to session is part of the noise (Kalibera and Jones,
    "Rigorous benchmarking in reasonable time", ISMM 2013). With one run a side, launches stand for runs, as if sessions did
    not differ.
    """
    noise = noise or Noise()
    random = np.random.default_rng(seed)
    log_effect, typical = _truth(shape, effect, differing_curves)
    judged = []
    for size in _batches(campaigns, 2 * runs, shape):
        values = simulate_runs(random, size, runs, shape, noise, log_effect)
        repeated = np.moveaxis(values[:, :, 0], -1, 2) if runs == 1 else values.mean(axis=-1)
        sides = [_with_curves(np.moveaxis(repeated[:, side], 1, -1), shape) for side in (0, 1)]
        flat_a, flat_b = (side.reshape(-1, side.shape[-1]) for side in sides)
        ratios = unpaired_ratios(flat_a, flat_b, confidence)
        judged.append(_judge(ratios, sides[1] - sides[0], None, margin, confidence))
    return _summary(judged, typical, typical + noise.mean_shift, shape.cells, margin)


@dataclass(frozen=True)
class CrossingCharacteristics:
    """What was said of crossings: brackets `claimed` for each campaign, and what became of them.

    `bracket_right` of them hold a true crossing; in `earned` of them a model earned a point; `interval_right` of its intervals
    hold a true crossing, and their median `width` is high / low.
    """

    claimed: float
    bracket_right: float
    earned: float
    interval_right: float
    width: float


def crossing_characteristics(
    seed: int,
    campaigns: int,
    curves: Curves,
    sizes: Sequence[int],
    blocks: int,
    noise: Noise | None = None,
    confidence: float = 0.95,
) -> CrossingCharacteristics:
    """Simulate one curve for each campaign, decide its sizes by the false discovery rate, and locate crossings between them."""
    random = np.random.default_rng(seed)
    size = np.array(sizes, dtype=np.float64)
    roots, step = _true_crossings(curves, size)
    brackets: list[bool] = []
    intervals: list[bool] = []
    widths: list[float] = []
    for _ in range(campaigns):
        log_a, log_b = simulate_curves(random, curves, size, blocks, noise or Noise())
        ratios = paired_ratios(log_b - log_a, confidence)
        is_decided = benjamini_hochberg(ratios.p_value) < 1.0 - confidence
        signs = np.where(is_decided, np.sign(np.log(ratios.ratio)), 0).astype(np.int64)
        for one in crossings(size, log_a, log_b, signs, confidence):
            brackets.append(bool(np.any((roots * step >= one.lower) & (roots <= one.upper))))
            if one.low is not None and one.high is not None:
                intervals.append(bool(np.any((roots * step >= one.low) & (roots <= one.high))))
                widths.append(one.high / one.low)
    nothing = float("nan")
    return CrossingCharacteristics(
        claimed=len(brackets) / campaigns,
        bracket_right=float(np.mean(brackets)) if brackets else nothing,
        earned=len(intervals) / len(brackets) if brackets else 0.0,
        interval_right=float(np.mean(intervals)) if intervals else nothing,
        width=float(np.median(widths)) if widths else nothing,
    )


def _true_crossings(curves: Curves, sizes: Floats) -> tuple[Floats, float]:
    """Return the sizes just below which the true curves cross, on a fine grid, and the grid's factor."""
    grid = np.geomspace(sizes[0], sizes[-1], 8001)
    log_a, log_b = curves(grid)
    is_above = log_b > log_a
    return grid[:-1][is_above[1:] != is_above[:-1]], float(grid[1] / grid[0])


@dataclass(frozen=True)
class _Judged:
    """A batch of campaigns: decisions under both corrections and the intervals' bounds, shape (campaigns, comparisons)."""

    tables: Codes
    headlines: Codes
    log_low: Floats
    log_high: Floats
    is_mixed: Booleans


def _truth(shape: Shape, effect: float, differing_curves: int | None) -> tuple[Floats, Floats]:
    """Return the true log ratios of cells, and of cells and curves, as typical launches have them."""
    curves = shape.curves if differing_curves is None else differing_curves
    log_effect = np.where(np.arange(shape.cells) < curves * shape.sizes, np.log1p(effect), 0.0)
    return log_effect, np.concatenate([log_effect, log_effect.reshape(shape.curves, shape.sizes).mean(axis=1)])


def _batches(campaigns: int, sides: int, shape: Shape) -> list[int]:
    most = max(1, BATCH // (sides * shape.cells * shape.blocks * max(shape.samples, 4)))
    return [min(most, campaigns - start) for start in range(0, campaigns, most)]


def _with_curves(cells: Floats, shape: Shape) -> Floats:
    """Return cells and, after them, curves as means over sizes; shape (campaigns, cells, repetitions)."""
    campaigns, _, repetitions = cells.shape
    curves = cells.reshape(campaigns, shape.curves, shape.sizes, repetitions).mean(axis=2)
    return np.concatenate([cells, curves], axis=1)


def _slow_modes(launches: Floats) -> SlowModes:
    """Return for each campaign whether the launches of one side, pooled over cells, fall into two groups, and which are slow."""
    centred = launches - np.median(launches, axis=-1, keepdims=True)
    sides = centred.mean(axis=2)  # what `skew.pooled` does, for many campaigns at once
    return find_slow_modes(sides[:, 0], sides[:, 1])


def _judge(ratios: Ratios, log_ratios: Floats, found: SlowModes | None, margin: float, confidence: float) -> _Judged:
    campaigns = log_ratios.shape[0]
    raw = p_values_of(ratios, margin)
    zero, beyond, within = (one.reshape(campaigns, -1).copy() for one in (raw.zero, raw.margin, raw.equivalence))
    is_mixed: Booleans = np.zeros(campaigns, dtype=np.bool_)
    if found is not None:
        is_mixed = np.asarray(found.is_mixed.any(axis=0), dtype=np.bool_)
        for campaign in np.flatnonzero(is_mixed):
            for row, values in enumerate(log_ratios[campaign]):
                both = p_values_of_both(values, found.is_slow[campaign], margin)
                if both is not None:
                    zero[campaign, row], beyond[campaign, row] = both.zero[0], both.margin[0]
                    within[campaign, row] = both.equivalence[0]
    of_tables = corrected(PValues(zero, beyond, within))
    of_headlines = PValues(holm(zero), holm(beyond), hochberg(within))
    codes = [
        decision_codes(ratios, tests, margin, confidence).reshape(campaigns, -1) for tests in (of_tables, of_headlines)
    ]
    low, high = (np.log(one).reshape(campaigns, -1) for one in (ratios.low, ratios.high))
    return _Judged(codes[0], codes[1], low, high, is_mixed)


def _summary(judged: list[_Judged], typical: Floats, mean: Floats, cells: int, margin: float) -> Characteristics:
    covers = np.concatenate([(one.log_low <= mean) & (mean <= one.log_high) for one in judged])
    tables, headlines = (np.concatenate([getattr(one, name) for one in judged]) for name in ("tables", "headlines"))
    return Characteristics(
        tables=_rates(tables, typical, mean, cells, margin),
        headlines=_rates(headlines, typical, mean, cells, margin),
        coverage=float(covers[:, :cells].mean()),
        curve_coverage=float(covers[:, cells:].mean()),
        alarmed=float(np.concatenate([one.is_mixed for one in judged]).mean()),
    )


def _rates(codes: Codes, typical: Floats, mean: Floats, cells: int, margin: float) -> Rates:
    """Compare decisions, shape (campaigns, comparisons), with the true log ratios of typical launches and of the mean."""
    limit = np.log1p(margin) * (1.0 + 1e-9)
    lowest, highest = np.minimum(typical, mean), np.maximum(typical, mean)
    wrong_beyond = ((codes == LOWER) & (lowest >= -limit)) | ((codes == HIGHER) & (highest <= limit))
    is_lower, is_higher = np.isin(codes, (LOWER, LOWER_AHEAD)), np.isin(codes, (HIGHER, HIGHER_AHEAD))
    wrong_ahead = (is_lower & (lowest >= 0)) | (is_higher & (highest <= 0))
    wrong_equivalent = (codes == EQUIVALENT) & ((highest > limit) | (lowest < -limit))
    differs = np.flatnonzero(typical[:cells] != 0) if np.any(typical[:cells]) else np.arange(cells)
    shown, sign = codes[:, differs], np.sign(typical[differs])

    def any_of(wrong: Booleans) -> float:
        return float(wrong.any(axis=1).mean())

    def share(right: Booleans) -> float:
        return float(right.mean())

    return Rates(
        wrong_beyond=any_of(wrong_beyond),
        wrong_ahead=any_of(wrong_ahead),
        wrong_equivalent=any_of(wrong_equivalent),
        wrong=any_of(wrong_beyond | wrong_ahead | wrong_equivalent),
        beyond=share(shown == np.where(sign < 0, LOWER, HIGHER)),
        ahead=share(np.where(sign < 0, is_lower[:, differs], is_higher[:, differs])),
        equivalent=share(shown == EQUIVALENT),
        undecided=share(shown == UNDECIDED),
    )
