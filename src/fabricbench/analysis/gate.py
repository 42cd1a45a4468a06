"""The gate: is a new run worse than an old one by more than is allowed?

For each cell the slowdown is the ratio that is above 1 when the new run is worse: new / old of a time, old / new of a
rate. With the allowed slowdown L = 1 + maximum:

    REGRESSED      "the slowdown is at most L" is rejected, one-sided at half of 1 - confidence, corrected over all cells (false
                   discovery rate): the interval lies wholly beyond L and would do so by chance too seldom
    PASSED         the interval lies wholly below L; needs no correction, for all cells must pass for the gate to pass
    INCONCLUSIVE   the interval reaches L from either side, or there are too few launches for one

The gate fails if a cell regressed; else it is inconclusive if one is; else it passes. Memory is compared like every layer, because
a CI machine that became slower must not be blamed on the network: its cells are marked as the control and never fail the gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from fabricbench.analysis.analysing import check_levels
from fabricbench.analysis.comparing import Pairing, number, pair
from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.measured import read_sides
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Model
from fabricbench.record.store import Run
from fabricbench.statistics.correction import benjamini_hochberg
from fabricbench.statistics.ratios import Ratios, student_one_sided, unpaired_ratios


class GateVerdict(StrEnum):
    """What the gate says about a cell, and about all of them."""

    PASSED = "passed"
    REGRESSED = "regressed"
    INCONCLUSIVE = "inconclusive"


class GateCell(Model):
    """One cell of one fabric, old against new. `p_adjusted` is that of "the slowdown is within what is allowed"."""

    fabric: str
    key: CellKey
    old: float
    new: float
    unit: str
    slowdown: float
    slowdown_low: float | None
    slowdown_high: float | None
    p_adjusted: float | None
    launches: int
    is_control: bool
    verdict: GateVerdict


class GateReport(Model):
    """The gate's answer. `unmatched` names cells of the old run that the new one lacks: they count as inconclusive."""

    verdict: GateVerdict
    maximum_regression: float
    confidence: float
    cells: tuple[GateCell, ...]
    unmatched: tuple[str, ...]


def check_regressions(old: Run, new: Run, *, maximum: float, confidence: float = 0.95) -> GateReport:
    """Return whether `new` is worse than `old` by more than `maximum` (0.05: 5 %) in any cell of the fabrics they share."""
    if not 0.0 <= maximum < 10.0:
        raise UsageError(
            f"the largest allowed regression is {maximum:g}", hint="give a share, `--max-regression 5%` say"
        )
    check_levels(0.5, confidence)
    sides = read_sides([old, new])
    pairings = [pair(a, b) for a, b in zip(sides[::2], sides[1::2], strict=True)]
    cells = [cell for pairing in pairings for cell in _cells(pairing, maximum, confidence)]
    cells = _corrected(cells, confidence)
    unmatched = tuple(
        f"{pairing.a.fabric.name}: {key.layer.value} {key.pattern.value} of {key.message_bytes} B"
        for pairing in pairings
        for key in pairing.a.cells
        if key not in pairing.b.cells
    )
    return GateReport(
        verdict=_overall(cells, unmatched),
        maximum_regression=maximum,
        confidence=confidence,
        cells=tuple(cells),
        unmatched=unmatched,
    )


def _cells(pairing: Pairing, maximum: float, confidence: float) -> list[GateCell]:
    return [_cell(pairing, key, maximum, confidence) for key in pairing.keys]


def _cell(pairing: Pairing, key: CellKey, maximum: float, confidence: float) -> GateCell:
    log_old, log_new = pairing.log_values(key)
    if not key.metric.is_lower_better:
        log_old, log_new = -log_old, -log_new
    slowdown = unpaired_ratios(log_old, log_new, confidence, least_deviation=pairing.clock_deviation(key))
    ratio, low, high = (float(one[0]) for one in (slowdown.ratio, slowdown.low, slowdown.high))
    return GateCell(
        fabric=pairing.a.fabric.name,
        key=key,
        old=float(np.nanmedian(pairing.a.cells[key].launch_values)),
        new=float(np.nanmedian(pairing.b.cells[key].launch_values)),
        unit=key.metric.unit,
        slowdown=ratio,
        slowdown_low=number(low),
        slowdown_high=number(high),
        p_adjusted=number(float(_p_beyond(slowdown, maximum)[0])),
        launches=int(slowdown.launches[0]),
        is_control=key.layer is Layer.MEMORY,
        verdict=GateVerdict.PASSED if high <= 1.0 + maximum else GateVerdict.INCONCLUSIVE,
    )


def _p_beyond(slowdown: Ratios, maximum: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    beyond = np.log(slowdown.ratio) - np.log1p(maximum)
    return student_one_sided(beyond, slowdown.log_standard_error, slowdown.degrees_of_freedom)


def _corrected(cells: Sequence[GateCell], confidence: float) -> list[GateCell]:
    """Adjust the p-values over all cells and name the regressions."""
    p_values = np.array([np.nan if cell.p_adjusted is None else cell.p_adjusted for cell in cells])
    adjusted = benjamini_hochberg(p_values) if len(cells) else p_values
    found = []
    for cell, p_value in zip(cells, adjusted, strict=True):
        is_regressed = bool(p_value < (1.0 - confidence) / 2.0) and cell.verdict is not GateVerdict.PASSED
        verdict = GateVerdict.REGRESSED if is_regressed else cell.verdict
        found.append(cell.model_copy(update={"p_adjusted": number(float(p_value)), "verdict": verdict}))
    return found


def _overall(cells: Sequence[GateCell], unmatched: Sequence[str]) -> GateVerdict:
    seen = {cell.verdict for cell in cells if not cell.is_control}
    if GateVerdict.REGRESSED in seen:
        return GateVerdict.REGRESSED
    return GateVerdict.PASSED if seen == {GateVerdict.PASSED} and not unmatched else GateVerdict.INCONCLUSIVE
