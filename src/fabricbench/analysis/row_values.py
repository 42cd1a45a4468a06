"""The numbers that a row of the first screen rests on: values of both sides, their ratio, and its spread."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.comparing import SlowMode, rounding_over
from fabricbench.analysis.findings import CellKey, Comparison, LaunchGroups
from fabricbench.analysis.grading import Span
from fabricbench.analysis.measured import CellMeasured, log_of, ratio_rounding
from fabricbench.analysis.pairing import Pairing
from fabricbench.analysis.rows import Row
from fabricbench.statistics.decision import FEWEST_PAIRS, LogRatio
from fabricbench.statistics.ratios import NOTHING_FITTED, Fitted, Rounding, paired_ratios, unpaired_ratios
from fabricbench.statistics.skew import find_slow_modes

Floats = NDArray[np.float64]


def values_of(cell: CellMeasured, row: Row) -> Floats:
    """Return what a row shows of each launch: its value, a tail of its samples, or their mean."""
    if row.is_typical:
        return cell.launch_values
    found = cell.means if row.is_mean else cell.tails.get(row.tail or 0.0)
    return np.full_like(cell.launch_values, np.nan) if found is None else found


def log_values_of(cell: CellMeasured, row: Row) -> Floats:
    """Return the logarithms of what a row shows of a cell, a launch each."""
    return cell.log_values if row.is_typical else log_of(values_of(cell, row))


def _replicates(row: Row, pairing: Pairing) -> tuple[Floats, Floats]:
    """Return the log values of both sides for each replicate, NaN where there is none."""
    return pairing.replicates(row.key, *(log_values_of(side.cells[row.key], row) for side in (pairing.a, pairing.b)))


def _compared_logs(row: Row, pairing: Pairing) -> tuple[Floats, Floats]:
    log_a, log_b = _replicates(row, pairing)
    if not pairing.is_paired:
        return log_a, log_b
    both = ~(np.isnan(log_a) | np.isnan(log_b))
    return (log_a[both], log_b[both]) if both.any() else (log_a, log_b)


def known_values(row: Row, pairing: Pairing) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the log values of both sides that are compared."""
    of_a, of_b = (tuple(map(float, logs[~np.isnan(logs)])) for logs in _compared_logs(row, pairing))
    return of_a, of_b


def levels_of(row: Row, pairing: Pairing) -> tuple[float, float]:
    """Return the geometric means of both sides over what is compared; of a tail the medians."""
    of_a, of_b = (
        exp(float(np.nanmean(one))) if row.tail is None else float(np.nanmedian(np.exp(one)))
        for one in _compared_logs(row, pairing)
    )
    return of_a, of_b


def span_of(row: Row, pairing: Pairing) -> Span | None:
    """Return how far the log ratios of blocks are apart; None where nothing pairs."""
    if not pairing.is_paired:
        return None
    log_a, log_b = _compared_logs(row, pairing)
    least, lower, upper, largest = np.nanquantile(log_b - log_a, (0.0, 0.25, 0.75, 1.0))
    return Span(float(least), float(largest), float(upper - lower))


def session_means_of(row: Row, pairing: Pairing) -> tuple[float, ...]:
    """Return the mean log ratio of each session; a single one, or none, where sides are not paired by block."""
    if not pairing.is_paired:
        return ()
    log_a, log_b = _replicates(row, pairing)
    means = pairing.session_means(row.key, log_b - log_a)
    return tuple(map(float, means[~np.isnan(means)]))


def groups_of_samples(row: Row, pairing: Pairing) -> tuple[LaunchGroups | None, tuple[float, float] | None]:
    """Return the two groups of launches in a tail's own values, and how many times worse the slow ones are than its others.

    A few launches with stalls are no slow launches: their medians tell nothing of them.
    """
    if not pairing.is_paired:
        return None, None
    logs = _replicates(row, pairing)
    found = find_slow_modes(logs[0][np.newaxis, :], logs[1][np.newaxis, :])
    for side, of_side, is_mixed, slower in zip(
        (pairing.a, pairing.b), logs, found.is_mixed[:, 0], found.slower[:, 0], strict=True
    ):
        if is_mixed:
            is_slow = found.is_slow[0]
            rounding = ratio_rounding(pairing.a.cells[row.key], pairing.b.cells[row.key])
            groups = SlowMode(side.name, is_slow, float(slower)).groups(pairing, logs[1] - logs[0], rounding)
            worse = np.exp(of_side[is_slow] - np.nanmedian(of_side[~is_slow]))
            return groups, (float(np.nanmin(worse)), float(np.nanmax(worse)))
    return None, None


def ratio_of_samples(row: Row, pairing: Pairing) -> LogRatio | None:
    """Return the log ratio of what a row shows of the samples: a tail, or the mean."""
    log_a, log_b = _compared_logs(row, pairing)
    return _log_ratio(pairing, log_a, log_b, ratio_rounding(pairing.a.cells[row.key], pairing.b.cells[row.key]))


def log_ratio_of(one: Comparison) -> LogRatio | None:
    """Return what a comparison knows of its log ratio; None where too few launches allow no statement."""
    if one.deviation is None or one.freedom is None or one.p_value is None:
        return None
    return LogRatio(log(one.ratio), one.deviation, one.launches, one.freedom, one.met, one.rounding_bound or 0.0)


def log_ratio_over(pairing: Pairing, keys: Sequence[CellKey]) -> LogRatio | None:
    """Return how many times better B is over some cells, times and rates alike: the mean of the log ratios of each block.

    None where too few launches allow a statement.
    """
    signs = [-1.0 if key.metric.is_lower_better else 1.0 for key in keys]
    sides = zip(*(pairing.log_values(key) for key in keys), strict=True)
    log_a, log_b = (
        np.mean([sign * logs for sign, logs in zip(signs, of_side, strict=True)], axis=0) for of_side in sides
    )
    fitted = pairing.fitted(keys[0])
    found = _log_ratio(pairing, log_a, log_b, rounding_over(pairing, keys), fitted)
    return None if found is None or (pairing.is_paired and found.launches < FEWEST_PAIRS) else found


def _log_ratio(
    pairing: Pairing, log_a: Floats, log_b: Floats, rounding: Rounding, fitted: Fitted = NOTHING_FITTED
) -> LogRatio | None:
    ratios = (
        paired_ratios((log_b - log_a)[np.newaxis, :], rounding=rounding, fitted=fitted)
        if pairing.is_paired
        else unpaired_ratios(log_a, log_b, rounding=rounding, is_alike=pairing.are_runs)
    )
    if np.isnan(ratios.p_value[0]):
        return None
    return LogRatio(
        float(np.log(ratios.ratio[0])),
        float(ratios.log_deviation[0]),
        int(ratios.launches[0]),
        float(ratios.degrees_of_freedom[0]),
        rounding_bound=float(ratios.rounding_bound[0]),
    )
