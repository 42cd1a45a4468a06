"""Message sizes where one side overtakes the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabricbench.analysis.comparing import Curve, Pairing, curves_of
from fabricbench.analysis.findings import CellKey, Comparison, Crossover, Verdict
from fabricbench.statistics.crossing import Crossing, crossings


def find_crossovers(pairings: Sequence[Pairing], cells: Sequence[Comparison], confidence: float) -> list[Crossover]:
    """Return the crossovers of each curve, between sizes whose verdicts oppose each other."""
    found = []
    for pairing in pairings:
        verdicts = {
            cell_key(cell): cell for cell in cells if (cell.fabric_a, cell.fabric_b) == (pairing.a.name, pairing.b.name)
        }
        for curve in curves_of(pairing.keys):
            found += _of_curve(pairing, curve, verdicts, confidence)
    return found


def cell_key(comparison: Comparison) -> CellKey:
    """Return the cell that a comparison of kind `cell` is about."""
    return CellKey(
        layer=comparison.layer,
        pattern=comparison.pattern,
        receive=comparison.receive,
        message_bytes=comparison.message_bytes or 0,
        metric=comparison.metric,
        variant=comparison.variant,
    )


def _of_curve(
    pairing: Pairing, curve: Curve, verdicts: dict[CellKey, Comparison], confidence: float
) -> list[Crossover]:
    keys = [key for key in curve.keys if key.message_bytes > 0 and key in verdicts]
    if len(keys) < 2:
        return []
    crossed = crossings(
        np.array([key.message_bytes for key in keys], dtype=np.float64),
        np.stack([pairing.log_ratios(key) for key in keys]),
        np.array([_sign(verdicts[key]) for key in keys], dtype=np.int64),
        confidence,
    )
    return [_crossover(pairing, keys[0], one) for one in crossed]


def _sign(comparison: Comparison) -> int:
    if comparison.verdict not in (Verdict.A_FASTER, Verdict.B_FASTER):
        return 0
    return 1 if comparison.ratio > 1.0 else -1


def _crossover(pairing: Pairing, key: CellKey, crossing: Crossing) -> Crossover:
    # Where the ratio b / a rises through 1, the lower number was b's; a lower time is faster, a lower rate slower.
    is_b_faster_below = crossing.is_rising == key.metric.is_lower_better
    names = (pairing.b.name, pairing.a.name) if is_b_faster_below else (pairing.a.name, pairing.b.name)
    return Crossover(
        layer=key.layer,
        pattern=key.pattern,
        receive=key.receive,
        variant=key.variant,
        metric=key.metric,
        fabric_a=pairing.a.name,
        fabric_b=pairing.b.name,
        message_bytes=crossing.size,
        low=crossing.low,
        high=crossing.high,
        faster_below=names[0],
        faster_above=names[1],
    )
