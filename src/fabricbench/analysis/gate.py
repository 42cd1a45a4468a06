"""The gate: are new runs worse than old ones by more than is allowed, and what can the gate decide with these data at all?

For each cell the slowdown is the ratio that is above 1 when the new side is worse: new / old of a time, old / new of a
rate. With the allowed slowdown L = 1 + maximum:

    REGRESSED      "the slowdown is at most L" is rejected, one-sided at half of 1 - confidence, corrected over all cells of the
                   network (Holm: an exit code is one claim, so the chance of any wrong one counts)
    PASSED         the interval lies wholly below L; needs no correction, for all cells must pass for the gate to pass
    INCONCLUSIVE   the interval reaches L from either side, there are too few launches for one, or a farm did not do as many
                   jobs as before

The gate fails if a cell regressed; else it is inconclusive if one is; else it passes. Memory is compared like every layer, because
a CI machine that became slower must not be blamed on the network: its cells are marked as the control and never fail the gate.

With several runs on both sides a run's mean is one value, so that what differs from session to session is in the error. With one
run a side the launches are the values, and a session's effect cannot be told from a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.change import differences, redefined
from fabricbench.analysis.comparing import check_levels, error_of_look, number, survivors
from fabricbench.analysis.equal_work import unequal_work
from fabricbench.analysis.findings import CellKey, Replication
from fabricbench.analysis.measured import Side, cell_name, clock_deviation, in_order
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.wording import enumeration
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Model
from fabricbench.record.provenance import Marks, marks_of, unproven_of
from fabricbench.record.store import Run
from fabricbench.statistics.correction import holm
from fabricbench.statistics.gate_power import blocks_to_decide, caught_with_power, chance_to_pass, passed_with_power
from fabricbench.statistics.ratios import (
    MINIMUM_LAUNCHES,
    Ratios,
    run_means,
    student_one_sided,
    unpaired_ratios,
)

Floats = NDArray[np.float64]


class GateVerdict(StrEnum):
    """What the gate says about a cell, and about all of them."""

    PASSED = "passed"
    REGRESSED = "regressed"
    INCONCLUSIVE = "inconclusive"


class GateCell(Model):
    """One cell of one fabric, old against new. `p_adjusted` is that of "the slowdown is within what is allowed".

    `launches` counts the smaller side's launches, or its runs where runs are what is repeated; `deviation` is that of the log ratio
    of one from each side. `caught` is the smallest slowdown that this gate would catch here with 80 %, `chance_to_pass` how likely
    the cell passes if nothing changed, `passed` the largest change that passes with 80 %.
    """

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
    deviation: float | None = None
    caught: float | None = None
    passed: float | None = None
    chance_to_pass: float | None = None
    gave_nothing: str = ""
    """How many launches gave nothing, where so many did that those that are left cannot pass."""
    unequal_work: str = ""
    """Where farms did not do as many jobs on both sides: then it neither passes nor has regressed."""


class GatePower(Model):
    """What the gate can decide with the noise that it saw, over the cells of the network that have an interval.

    `caught_*`: the smallest slowdown (a ratio) of one cell that is caught with 80 %, in the median cell and in the noisiest.
    `passed_*`: the largest change (a ratio) that passes with 80 %; below 1 only a cell that became faster does. `unchanged_*`: the
    chance that a cell which did not change passes. `needed`: launches (or runs) on each side with which a system that did not
    change would pass with 80 %; `needed_of_new`: the same where the old side stays as it is. None: more than 1,000.
    """

    caught_typical: float
    caught_worst: float
    passed_typical: float
    passed_worst: float
    unchanged_typical: float
    unchanged_worst: float
    noisiest: str
    needed: int | None
    needed_of_new: int | None


class GateReport(Model):
    """The gate's answer. `unmatched` names cells that the new side, or one run of a side, lacks: they count as inconclusive.

    So do those of `redefined`, each with what is another: of the same name and yet another test. `changed` is all that differs
    between the two sides of fabrics, machines and workloads.

    `old_count` and `new_count` are what `replication` says: launches of a fabric, or runs. Of 1 - `confidence` this look at the
    data spends 1 - `look_confidence`, at which intervals and tests stand. `power` is None where no cell has an interval.
    """

    verdict: GateVerdict
    maximum_regression: float
    confidence: float
    look_confidence: float
    replication: Replication
    old_count: int
    new_count: int
    power: GatePower | None
    cells: tuple[GateCell, ...]
    unmatched: tuple[str, ...]
    redefined: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    marks: Marks
    """Which fabrics' numbers are emulated, simulated, predicted or imported, on either side."""
    unproven: tuple[str, ...] = ()
    """Fabrics with launches, on either side, whose traffic nobody counted."""


def check_regressions(
    old: Sequence[Run], new: Sequence[Run], *, maximum: float, confidence: float = 0.95
) -> GateReport:
    """Return whether `new` is worse than `old` by more than `maximum` (0.05: 5 %) in any cell of the fabrics they share.

    Each side is one run or several; runs are what is repeated where both sides have two or more. Intervals and tests leave
    something of the error to looks after more blocks (`statistics.correction`), unless every run was declared final.
    """
    if not 0.0 <= maximum < 10.0:
        raise UsageError(
            f"the largest allowed regression is {maximum:g}", hint="give a share, `--max-regression 5%` say"
        )
    check_levels(0.5, confidence)
    of_look = 1.0 - error_of_look([*old, *new], 1.0 - confidence)
    sides = read_sides(before=old, after=new)
    pairs = list(zip(sides[::2], sides[1::2], strict=True))
    replication = Replication.RUNS if min(len(old), len(new)) > 1 else Replication.LAUNCHES
    others = [redefined(a, b) for a, b in pairs]
    keys = [
        (a, b, key)
        for (a, b), other in zip(pairs, others, strict=True)
        for key in sorted((a.cells.keys() & b.cells.keys()) - other.keys(), key=in_order)
    ]
    tested = sum(key.layer is not Layer.MEMORY for _, _, key in keys)
    cells = [_cell(a, b, key, replication, maximum, of_look, tested) for a, b, key in keys]
    cells = _corrected(cells, of_look)
    unmatched = tuple(name for a, b in pairs for name in _unmatched(a, b))
    another = tuple(
        f"{a.fabric.name}: {cell_name(key)}: not the same {enumeration(names)}"
        for (a, _), other in zip(pairs, others, strict=True)
        for key, names in other.items()
    )
    counts = (len(old), len(new)) if replication is Replication.RUNS else _launches(pairs)
    return GateReport(
        verdict=_overall(cells, (*unmatched, *another)),
        maximum_regression=maximum,
        confidence=confidence,
        look_confidence=of_look,
        replication=replication,
        old_count=counts[0],
        new_count=counts[1],
        power=_power(cells, counts[0], maximum, of_look),
        cells=tuple(cells),
        unmatched=unmatched,
        redefined=another,
        changed=tuple(dict.fromkeys(text for a, b in pairs for text in differences(a, b))),
        marks=marks_of((one.fabric, one.origin) for side in sides for one in side.launches),
        unproven=unproven_of((one.fabric, one.proof) for side in sides for one in side.launches),
    )


def _launches(pairs: Sequence[tuple[Side, Side]]) -> tuple[int, int]:
    """Return the launches of each side, of the fabric that has the fewest."""
    return min(len(a.blocks) for a, _ in pairs), min(len(b.blocks) for _, b in pairs)


def name_on(fabric: str, cell: str, judged_by: str | None) -> str:
    """Return what a cell is, with the time that an application is judged by: with another one it is another cell."""
    return f"{fabric}: {cell}" + (f" ({judged_by})" if judged_by else "")


def _unmatched(a: Side, b: Side) -> list[str]:
    missing = [
        name_on(a.fabric.name, cell_name(key), key.workload.judged_by if key.workload is not None else None)
        for key in a.cells
        if key not in b.cells
    ]
    return missing + [f"{a.fabric.name}: {cell}" for cell in dict.fromkeys((*a.left_out, *b.left_out))]


def _values(side: Side, key: CellKey, replication: Replication) -> Floats:
    """Return the logarithms of what is repeated, larger where the side is slower."""
    values = side.cells[key].log_values
    values = values if key.metric.is_lower_better else -values
    return run_means(values, side.run_of) if replication is Replication.RUNS else values


def _cell(
    a: Side, b: Side, key: CellKey, replication: Replication, maximum: float, confidence: float, tested: int
) -> GateCell:
    clock = clock_deviation(a.cells[key], b.cells[key])
    slowdown = unpaired_ratios(
        _values(a, key, replication), _values(b, key, replication), confidence, least_deviation=clock
    )
    ratio, low, high = (float(one[0]) for one in (slowdown.ratio, slowdown.low, slowdown.high))
    count, deviation = int(slowdown.launches[0]), slowdown.log_deviation
    thin = "; ".join(survivors((a, b), (key,))[1]) if survivors((a, b), (key,))[0] else ""
    unequal = "; ".join(unequal_work((a, b), (key,)))
    has_interval = count >= MINIMUM_LAUNCHES
    return GateCell(
        fabric=a.fabric.name,
        key=key,
        old=float(np.nanmedian(a.cells[key].launch_values)),
        new=float(np.nanmedian(b.cells[key].launch_values)),
        unit=(key.workload.unit if key.workload is not None else "") or key.metric.unit,
        slowdown=ratio,
        slowdown_low=number(low),
        slowdown_high=number(high),
        p_adjusted=number(float(_p_beyond(slowdown, maximum)[0])),
        launches=count,
        is_control=key.layer is Layer.MEMORY,
        verdict=GateVerdict.PASSED if high <= 1.0 + maximum and not thin and not unequal else GateVerdict.INCONCLUSIVE,
        gave_nothing=thin,
        unequal_work=unequal,
        deviation=number(float(deviation[0])),
        caught=float(caught_with_power(deviation, count, maximum, confidence, tested)[0]) if has_interval else None,
        passed=float(passed_with_power(deviation, count, maximum, confidence)[0]) if has_interval else None,
        chance_to_pass=float(chance_to_pass(deviation, maximum, confidence, count)[0]) if has_interval else None,
    )


def _p_beyond(slowdown: Ratios, maximum: float) -> Floats:
    beyond = np.log(slowdown.ratio) - np.log1p(maximum)
    return student_one_sided(beyond, slowdown.log_standard_error, slowdown.degrees_of_freedom)


def _corrected(cells: Sequence[GateCell], confidence: float) -> list[GateCell]:
    """Adjust the p-values over the cells of the network, and over those of the control, and name the regressions."""
    if not cells:
        return []
    p_values = np.array([np.nan if cell.p_adjusted is None else cell.p_adjusted for cell in cells])
    is_control = np.array([cell.is_control for cell in cells])
    of_network, of_control = (holm(np.where(chosen, p_values, np.nan)) for chosen in (~is_control, is_control))
    found = []
    for cell, p_value in zip(cells, np.where(is_control, of_control, of_network), strict=True):
        is_open = cell.verdict is not GateVerdict.PASSED and not cell.unequal_work
        is_regressed = bool(p_value < (1.0 - confidence) / 2.0) and is_open
        verdict = GateVerdict.REGRESSED if is_regressed else cell.verdict
        found.append(cell.model_copy(update={"p_adjusted": number(float(p_value)), "verdict": verdict}))
    return found


def _overall(cells: Sequence[GateCell], unmatched: Sequence[str]) -> GateVerdict:
    seen = {cell.verdict for cell in cells if not cell.is_control}
    if GateVerdict.REGRESSED in seen:
        return GateVerdict.REGRESSED
    return GateVerdict.PASSED if seen == {GateVerdict.PASSED} and not unmatched else GateVerdict.INCONCLUSIVE


def _power(cells: Sequence[GateCell], old_count: int, maximum: float, confidence: float) -> GatePower | None:
    known = [cell for cell in cells if not cell.is_control and cell.deviation is not None]
    if not known:
        return None
    deviations = np.array([cell.deviation for cell in known], dtype=np.float64)
    caught = np.array([cell.caught for cell in known], dtype=np.float64)
    passed = np.array([cell.passed for cell in known], dtype=np.float64)
    unchanged = np.array([cell.chance_to_pass for cell in known], dtype=np.float64)
    worst = known[int(np.argmax(caught))]
    tested = sum(not cell.is_control for cell in cells)
    return GatePower(
        caught_typical=float(np.median(caught)),
        caught_worst=float(caught.max()),
        passed_typical=float(np.median(passed)),
        passed_worst=float(passed.min()),
        unchanged_typical=float(np.median(unchanged)),
        unchanged_worst=float(unchanged.min()),
        noisiest=f"{worst.fabric}: {cell_name(worst.key)}",
        needed=blocks_to_decide(deviations, maximum, confidence, tested),
        needed_of_new=blocks_to_decide(deviations, maximum, confidence, tested, other=old_count),
    )
