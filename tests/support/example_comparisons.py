"""Comparisons, curves and crossovers of example findings: every verdict, from simple rules instead of tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from fabricbench.analysis.findings import CellKey, CellSummary, Comparison, Crossover, Replication, Verdict
from fabricbench.model import Layer, Metric

MARGIN = 0.02


def compared(
    keys: Iterable[CellKey], summaries: Sequence[CellSummary], pair: tuple[str, str], *, is_paired: bool
) -> Iterable[Comparison]:
    of = {(summary.fabric, summary.key): summary for summary in summaries}
    for key in keys:
        a, b = of[(pair[0], key)], of[(pair[1], key)]
        ratio = b.median.value / a.median.value
        is_short = a.median.low is None
        width = 0.004 + (0.03 if key.layer is Layer.MPI and key.message_bytes in (256, 1024) else 0.0)
        low, high = (None, None) if is_short else (ratio * (1 - width), ratio * (1 + width))
        verdict = _verdict(ratio, low, high, key.metric)
        yield Comparison(
            kind="cell",
            **key.of_any_size,
            message_bytes=key.message_bytes,
            unit=key.metric.unit,
            fabric_a=pair[0],
            fabric_b=pair[1],
            value_a=a.median.value,
            low_a=a.median.low,
            high_a=a.median.high,
            value_b=b.median.value,
            low_b=b.median.low,
            high_b=b.median.high,
            ratio=ratio,
            ratio_low=low,
            ratio_high=high,
            p_value=None if is_short else _p_value(verdict, 0.002),
            p_adjusted=None if is_short else _p_value(verdict, 0.0031),
            verdict=verdict,
            launches=a.launches,
            replication=Replication.BLOCKS if is_paired else Replication.LAUNCHES,
            more_blocks_needed=(3 if is_short else 14) if verdict is Verdict.NOT_ENOUGH_DATA else None,
        )


def _p_value(verdict: Verdict, significant: float) -> float:
    return significant if verdict.leader else 0.41


def _verdict(ratio: float, low: float | None, high: float | None, metric: Metric) -> Verdict:
    if low is None or high is None:
        return Verdict.NOT_ENOUGH_DATA
    if low > 1 - MARGIN and high < 1 + MARGIN:
        return Verdict.EQUIVALENT
    if low <= 1 <= high:
        return Verdict.NOT_ENOUGH_DATA
    is_b = (ratio < 1) is metric.is_lower_better
    if low > 1 + MARGIN or high < 1 - MARGIN:
        return Verdict.B_FASTER if is_b else Verdict.A_FASTER
    return Verdict.B_AHEAD if is_b else Verdict.A_AHEAD


def _curve_key(cell: Comparison) -> tuple[str, ...]:
    return (cell.layer, cell.pattern, cell.receive, cell.fabric_a, cell.fabric_b)


def _by_curve(cells: Sequence[Comparison]) -> list[list[Comparison]]:
    groups: dict[tuple[str, ...], list[Comparison]] = {}
    for cell in cells:
        groups.setdefault(_curve_key(cell), []).append(cell)
    return list(groups.values())


def curves_of(cells: Sequence[Comparison]) -> Iterable[Comparison]:
    for group in _by_curve(cells):
        ratio = math.exp(sum(math.log(cell.ratio) for cell in group) / len(group))
        whole = [cell for cell in group if cell.ratio_low is not None]
        low, high = (ratio * 0.994, ratio * 1.006) if len(whole) == len(group) else (None, None)
        verdict = _verdict(ratio, low, high, group[0].metric)
        yield group[0].model_copy(
            update={
                "kind": "curve",
                "message_bytes": None,
                "value_a": None,
                "low_a": None,
                "high_a": None,
                "value_b": None,
                "low_b": None,
                "high_b": None,
                "ratio": ratio,
                "ratio_low": low,
                "ratio_high": high,
                "verdict": verdict,
                "launches": min(cell.launches for cell in group),
                "p_value": None if low is None else _p_value(verdict, 0.002),
                "p_adjusted": None if low is None else _p_value(verdict, 0.0024),
                "more_blocks_needed": 3 if verdict is Verdict.NOT_ENOUGH_DATA else None,
            }
        )


def crossovers_of(cells: Sequence[Comparison]) -> Iterable[Crossover]:
    for group in _by_curve(cells):
        decided = [cell for cell in group if cell.verdict.is_decided]
        for before, after in pairwise(decided):
            if before.verdict is after.verdict:
                continue
            assert before.message_bytes is not None
            assert after.message_bytes is not None
            is_a_first = before.verdict is Verdict.A_FASTER
            yield Crossover(
                **before.of_any_size,
                fabric_a=before.fabric_a,
                fabric_b=before.fabric_b,
                lower_bytes=before.message_bytes,
                upper_bytes=after.message_bytes,
                **_located(before.message_bytes, after.message_bytes),
                faster_below=before.fabric_a if is_a_first else before.fabric_b,
                faster_above=before.fabric_b if is_a_first else before.fabric_a,
            )


def _located(lower: int, upper: int) -> dict[str, Any]:
    """Return what a model would say, of brackets that are narrow enough for one."""
    if upper > 4 * lower:
        return {}
    size = math.sqrt(lower * upper)
    found = {"message_bytes": size, "low": size * 0.8, "high": size * 1.25}
    return {**found, "model": "Hockney", "worst_misfit": 0.013, "fitted_bytes": (lower, upper)}
