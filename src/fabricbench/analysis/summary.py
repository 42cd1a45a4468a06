"""Summaries and distributions of each cell on each side."""

from __future__ import annotations

import numpy as np

from fabricbench.analysis.findings import CellSummary, Distribution, Interval
from fabricbench.analysis.instrument import doubt_of, impossible, tolerated, wire_shares
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.model import Metric
from fabricbench.record.values import mean_rate
from fabricbench.statistics.order import Estimate, median_interval
from fabricbench.statistics.ratios import EXACT, Rounding, paired_ratios
from fabricbench.statistics.skew import HISTOGRAM_BINS, TAIL, log_edges

PROBABILITIES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)


def summarise(side: Side, cell: CellMeasured, confidence: float) -> CellSummary:
    """Return the summary of one cell on one side."""
    is_time = cell.key.metric.is_time
    median = interval(median_interval(cell.launch_values, confidence, cell.rounding))
    pooled = cell.pooled
    shares = wire_shares(side, cell, median.value)
    doubt, cannot_be = doubt_of(side, cell), impossible(side, cell)
    within = None if cannot_be else tolerated(side, cell, median.value)
    return CellSummary(
        fabric=side.name,
        key=cell.key,
        launches=int(np.count_nonzero(~np.isnan(cell.launch_values))),
        samples=pooled.size,
        warmup_samples=cell.counts["warmup"],
        median=median,
        mean=float(pooled.mean()) if is_time else _mean_rate(cell),
        minimum=float(pooled[0]),
        maximum=float(pooled[-1]),
        quantiles={f"{p:g}": float(_quantile_of_sorted(pooled, p)) for p in PROBABILITIES if _has(pooled.size, p)},
        **{name: cell.counts[name] for name in ("lost", "sent", "reordered", "duplicated", "corrupted", "verified")},
        share_of_line_rate=shares[0],
        share_of_payload_rate=shares[1],
        values=tuple(float(value) for value in cell.launch_values if not np.isnan(value)),
        doubt="; ".join(str(one) for one in (cannot_be, within, doubt.doubt if doubt else None) if one is not None),
        is_impossible=cannot_be is not None,
        is_beyond_wire=within is not None,
    )


def _mean_rate(cell: CellMeasured) -> float:
    if cell.key.metric is Metric.WORK_RATE:
        return float(cell.pooled.size / (1.0 / cell.pooled).sum())
    found = mean_rate(cell.key.metric, cell.key.message_bytes, cell.total_bytes, cell.total_ns)
    assert found is not None  # noqa: S101 - a cell without time has no value and is not here
    return found


def interval(estimate: Estimate) -> Interval:
    """Return an estimate as findings carry it."""
    return Interval(value=estimate.value, low=estimate.low, high=estimate.high)


def over_launches(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], confidence: float, rounding: Rounding = EXACT
) -> Interval | None:
    """Return the median over launches with its interval; None where no launch has a value."""
    return None if np.isnan(values).all() else interval(median_interval(values, confidence, rounding))


def geometric_mean(
    logs: np.ndarray[tuple[int], np.dtype[np.float64]], confidence: float, rounding: Rounding = EXACT
) -> Interval | None:
    """Return the geometric mean of what logarithms are given of, NaN left out; None of nothing, without ends of too few."""
    found = paired_ratios(logs[np.newaxis, :], confidence, rounding=rounding)
    if not found.launches[0]:
        return None
    low, high = (None if np.isnan(end[0]) else float(end[0]) for end in (found.low, found.high))
    return Interval(value=float(found.ratio[0]), low=low, high=high)


def scaled(one: Interval, factor: float) -> Interval:
    """Return an interval times a positive factor."""
    low, high = (None if bound is None else bound * factor for bound in (one.low, one.high))
    return Interval(value=one.value * factor, low=low, high=high)


def distribution(side: Side, cell: CellMeasured) -> Distribution | None:
    """Return the histogram of all samples, bins even in the logarithm but for a wide one at each tail; None without a spread."""
    pooled = cell.pooled[cell.pooled > 0]
    if pooled.size == 0:
        return None
    core_low, core_high = _quantile_of_sorted(pooled, TAIL), _quantile_of_sorted(pooled, 1.0 - TAIL)
    edges = log_edges(core_low, core_high, HISTOGRAM_BINS)
    edges[0], edges[-1] = min(edges[0], pooled[0]), max(edges[-1], pooled[-1])
    below = np.searchsorted(pooled, edges, side="left")
    below[-1] = pooled.size
    return Distribution(
        fabric=side.name,
        key=cell.key,
        edges=tuple(float(f"{edge:.6g}") for edge in edges),
        counts=tuple(int(count) for count in np.diff(below)),
    )


def _has(samples: int, probability: float) -> bool:
    """Whether at least one of so many samples lies beyond a quantile; the median is told of any number."""
    return probability == 0.5 or samples * min(probability, 1.0 - probability) > 1.0 - 1e-9


def _quantile_of_sorted(ordered: np.ndarray[tuple[int], np.dtype[np.float64]], probability: float) -> float:
    """Return the quantile of sorted values by linear interpolation (Hyndman and Fan 1996, type 7) without sorting again."""
    place = probability * (ordered.size - 1)
    lower = int(place)
    upper = min(lower + 1, ordered.size - 1)
    return float(ordered[lower] + (place - lower) * (ordered[upper] - ordered[lower]))
