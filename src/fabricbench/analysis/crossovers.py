"""Message sizes between which one side overtakes the other, and where in between if a model of the curves says so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey, Comparison, Crossover
from fabricbench.analysis.pairing import CellCurve, Pairing, curves_of
from fabricbench.model import Metric
from fabricbench.statistics.crossing import Crossing, crossings

Floats = NDArray[np.float64]


def find_crossovers(pairings: Sequence[Pairing], cells: Sequence[Comparison], confidence: float) -> list[Crossover]:
    """Return the crossovers of each curve, between sizes whose verdicts oppose each other."""
    found = []
    for pairing in pairings:
        verdicts = {
            cell.key: cell for cell in cells if (cell.fabric_a, cell.fabric_b) == (pairing.a.name, pairing.b.name)
        }
        for curve in curves_of(pairing.keys):
            found += _of_curve(pairing, curve, verdicts, confidence)
    return found


def _of_curve(
    pairing: Pairing, curve: CellCurve, verdicts: dict[CellKey, Comparison], confidence: float
) -> list[Crossover]:
    keys = [key for key in curve.keys if key.message_bytes > 0 and key in verdicts]
    if len(keys) < 2:
        return []
    times_a, times_b = zip(*(_log_times(pairing, key) for key in keys), strict=True)
    crossed = crossings(
        np.array([key.message_bytes for key in keys], dtype=np.float64),
        np.stack(times_a),
        np.stack(times_b),
        np.array([_sign(verdicts[key]) for key in keys], dtype=np.int64),
        confidence,
    )
    return [_crossover(pairing, keys[0], one) for one in crossed]


def _log_times(pairing: Pairing, key: CellKey) -> tuple[Floats, Floats]:
    """Return the logarithm of a message's time on both sides: the model that is fitted speaks of times, also of a stream."""
    log_a, log_b = pairing.log_values(key)
    shorter = min(log_a.size, log_b.size)  # unpaired launches are independent, so any pairing of them is as good
    log_a, log_b = log_a[:shorter], log_b[:shorter]
    if key.metric.is_time:
        return log_a, log_b
    work = 0.0 if key.metric is Metric.MESSAGE_RATE else np.log(8.0 * key.message_bytes)
    return work - log_a, work - log_b


def _sign(comparison: Comparison) -> int:
    """Return -1 where b takes less time at this size, by however little, 1 where it takes more, 0 where nobody is shown to lead."""
    return comparison.verdict.of_leader(1, -1) or 0


def _crossover(pairing: Pairing, key: CellKey, crossing: Crossing) -> Crossover:
    a, b = pairing.a.name, pairing.b.name
    return Crossover(
        **key.of_any_size,
        fabric_a=a,
        fabric_b=b,
        lower_bytes=round(crossing.lower),
        upper_bytes=round(crossing.upper),
        message_bytes=crossing.point,
        low=crossing.low,
        high=crossing.high,
        model=crossing.model,
        worst_misfit=crossing.worst_misfit,
        fitted_bytes=tuple(round(size) for size in crossing.sizes),
        # Where the ratio of times b / a rises through 1, b took less time below.
        faster_below=b if crossing.is_rising else a,
        faster_above=a if crossing.is_rising else b,
    )
