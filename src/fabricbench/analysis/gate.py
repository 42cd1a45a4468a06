"""The gate: are new runs worse than old ones by more than is allowed, and what can the gate decide with these data at all?

For each cell the slowdown is the ratio that is above 1 when the new side is worse: new / old of a time, old / new of a
rate. With the allowed slowdown L = 1 + maximum:

    REGRESSED      "the slowdown is at most L" is rejected, one-sided at half of 1 - confidence, corrected over all cells of the
                   network (Holm: an exit code is one claim, so the chance of any wrong one counts)
    PASSED         the interval lies wholly below L; needs no correction, for all cells must pass for the gate to pass
    INCONCLUSIVE   the interval reaches L from either side, there are too few launches for one, a farm did not do as many
                   jobs as before, a side lost a fabric, a test, or more than a tenth of the starts of one, a test would not pass
                   if each start of the new side that died had been its slowest launch, or as two, or the machines are other ones

Fewer than 32 launches of the new side may have met no slow mode of one launch in ten, so what "passed" cannot exclude is told
(`unseen_share`). One of the old side alone would make it slower than it seemed, and a pass no less right.

The gate fails if a cell regressed; else it is inconclusive if one is; else it passes. Memory is compared like every layer, because
a CI machine that became slower must not be blamed on the network: its cells are marked as the control and never fail the gate.

With several runs on a side a run's mean is one value, so that what differs from session to session is in the error; one new run
against three or more old ones is taken to differ as these do. With one run a side the launches are the values, and a session's
effect cannot be told from a change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.change import differences, machine_changes, redefined
from fabricbench.analysis.comparing import check_levels, error_of_look, number
from fabricbench.analysis.equal_work import unequal_work
from fabricbench.analysis.findings import CellKey, Replication
from fabricbench.analysis.lost_launches import TIMES_OF_DEAD, survivors
from fabricbench.analysis.measured import Side, cell_name, in_order, ratio_rounding
from fabricbench.analysis.pairing import replication_of
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.wording import named
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Model
from fabricbench.quantity import count, enumeration
from fabricbench.record.account import DOUBTED_SHARE, account_of
from fabricbench.record.provenance import Marks, Origin, marks_of, unproven_of
from fabricbench.record.run_account import RunAccount
from fabricbench.record.store import Run
from fabricbench.statistics.correction import holm
from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES
from fabricbench.statistics.gate_power import blocks_to_decide, caught_with_power, chance_to_pass, passed_with_power
from fabricbench.statistics.ratios import (
    MINIMUM_LAUNCHES,
    Ratios,
    Rounding,
    run_means,
    student_one_sided,
    unpaired_ratios,
)
from fabricbench.statistics.skew import unseen_share

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
    rounding_bound: float | None = None
    """By how much the log ratio may be off because values are told in steps, whatever the number of launches."""
    met: int = 0
    """Launches of the new side: what a rare slow mode had to escape."""
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
    between the two sides of fabrics, machines and workloads, but for `other_machines`: nodes, processors and kernels that are not
    those of the baseline, where nobody said that they are meant to be. They leave what would pass inconclusive.

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
    other_machines: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    """Fabrics, and tests of each, that the new side has and the baseline lacks: nothing is said of them."""
    met: int = 0
    unseen_share: float | None = None
    """The share of launches that may be slow, of which `met` launches of a test of the new side showed none; None from 32 on."""
    lost: tuple[str, ...] = ()
    """What of a side lost so much that the rest may be a selection, or gave nothing: it neither passes nor has regressed."""
    accounts: tuple[RunAccount, ...] = ()
    """What was started and lost in the old runs, then in the new ones."""


def check_regressions(
    old: Sequence[Run],
    new: Sequence[Run],
    *,
    maximum: float,
    confidence: float = 0.95,
    expects_other_machines: bool = False,
) -> GateReport:
    """Return whether `new` is worse than `old` by more than `maximum` (0.05: 5 %) in any cell of the fabrics they share.

    Nodes, processors or kernels that are other than in `old` leave it inconclusive, unless they are the change that is judged.

    Each side is one run or several; runs are what is repeated where both sides have two or more. Intervals and tests leave
    something of the error to looks after more blocks (`statistics.correction`), unless every run was declared final.
    """
    if not 0.0 <= maximum < 10.0:
        raise UsageError(
            f"the largest allowed regression is {maximum:g}", hint="give a share, `--max-regression 5%` say"
        )
    check_levels(0.5, confidence)
    of_look, of_next = (1.0 - error_of_look([*old, *new], 1.0 - confidence, ahead=ahead) for ahead in (0, 1))
    sides = read_sides(before=old, after=new)
    pairs = list(zip(sides[::2], sides[1::2], strict=True))
    replication = replication_of(len(old), len(new))
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
    lost = _lost(sides, old, new)
    machines = () if expects_other_machines else _other_machines(old, new)
    met = min((cell.met for cell in cells if not cell.is_control), default=0)
    counts = (len(old), len(new)) if replication is Replication.RUNS else _launches(pairs)
    return GateReport(
        verdict=_overall(cells, (*unmatched, *another, *lost, *machines)),
        maximum_regression=maximum,
        confidence=confidence,
        look_confidence=of_look,
        replication=replication,
        old_count=counts[0],
        new_count=counts[1],
        power=_power(cells, counts[0], maximum, of_next),
        cells=tuple(cells),
        unmatched=unmatched,
        redefined=another,
        changed=tuple(dict.fromkeys(text for a, b in pairs for text in differences(a, b) if text not in machines)),
        other_machines=machines,
        unjudged=_unjudged(pairs, old, new),
        met=met,
        unseen_share=unseen_share(met) if 0 < met < EQUIVALENT_LAUNCHES else None,
        marks=marks_of((one.fabric, one.origin) for side in sides for one in side.launches),
        unproven=unproven_of((one.fabric, one.proof) for side in sides for one in side.launches),
        lost=lost,
        accounts=tuple(account_of(run) for run in (*old, *new)),
    )


def _lost(sides: Sequence[Side], old: Sequence[Run], new: Sequence[Run]) -> tuple[str, ...]:
    """Return what of the sides the gate cannot judge.

    That is fabrics that one of the runs lacks, what lost too many of its starts, and imports that repeat a text of another run.
    """
    found: list[str] = []
    for name in dict.fromkeys(name for run in old for name in _fabrics(run)):
        lacking = [run for run in (*old, *new) if name not in _fabrics(run)]
        if lacking:
            is_gone = all(run in lacking for run in new)
            found.append(f"{name}: not in {'the new runs' if is_gone else named([run.path.name for run in lacking])}")
    for side in sides:
        found += [
            f"{side.name}: launch {launch.launch_id}: {why}"
            for launch in side.invalid
            if launch.origin is Origin.IMPORTED
            for why in launch.summary.facts.invalid_because
        ]
        for one in side.accounts:
            what = " ".join(filter(None, (side.name, one.subject)))
            if one.gave_nothing:
                found.append(f"{what}: none of {count(one.planned, 'launch')} gave anything that counts")
            elif one.lost_share > DOUBTED_SHARE:
                found.append(f"{what}: {one.lost_starts} of {count(one.starts, 'start')} gave nothing that counts")
    return tuple(found) or tuple(gap for run in (*old, *new) for gap in _launches_left_out(run))


def _launches_left_out(run: Run) -> Iterator[str]:
    """Yield of what more than a tenth of the launches is missing before the last that is there: only later ones may not be due."""
    stored = {launch.launch_id for launch in run.launches}
    are_there: dict[str, list[bool]] = defaultdict(list)
    for one in run.manifest.planned:
        are_there[" ".join(filter(None, (one.fabric, one.subject)))].append(one.launch_id in stored)
    for what, planned in are_there.items():
        begun = planned[: max((place for place, is_there in enumerate(planned) if is_there), default=-1) + 1]
        if begun.count(False) > DOUBTED_SHARE * len(begun):
            lost = f"{begun.count(False)} of the first {count(len(begun), 'launch')}"
            yield f"{what}: {lost} of {run.path.name} are not there, and nothing says why"


def _fabrics(run: Run) -> list[str]:
    return [fabric.name for fabric in run.manifest.testbed.fabrics]


def _other_machines(old: Sequence[Run], new: Sequence[Run]) -> tuple[str, ...]:
    """Return what tells that the machines of the new runs are not those of the old ones."""
    changes = machine_changes([run.manifest for run in old], [run.manifest for run in new])
    return tuple(str(change) for change in changes if change.is_other)


def _unjudged(pairs: Sequence[tuple[Side, Side]], old: Sequence[Run], new: Sequence[Run]) -> tuple[str, ...]:
    """Return what the new side has and the baseline lacks."""
    known = {name for run in old for name in _fabrics(run)}
    fabrics = dict.fromkeys(name for run in new for name in _fabrics(run) if name not in known)
    tests = ((b.fabric.name, len(b.cells.keys() - a.cells.keys())) for a, b in pairs)
    return (*fabrics, *(f"{count(more, 'test')} on {name}" for name, more in tests if more))


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


def _level(side: Side, key: CellKey, replication: Replication) -> float:
    """Return the geometric mean that the slowdown is made of; of values that have no logarithm their median."""
    values = _values(side, key, replication)
    if np.isnan(values).all():
        return float(np.nanmedian(side.cells[key].launch_values))
    mean = float(np.nanmean(values))
    return float(np.exp(mean if key.metric.is_lower_better else -mean))


def _cell(
    a: Side, b: Side, key: CellKey, replication: Replication, maximum: float, confidence: float, tested: int
) -> GateCell:
    rounding = ratio_rounding(a.cells[key], b.cells[key])
    slowdown = unpaired_ratios(
        _values(a, key, replication),
        _values(b, key, replication),
        confidence,
        rounding=rounding,
        is_alike=replication is Replication.RUNS,
    )
    ratio, low, high = (float(one[0]) for one in (slowdown.ratio, slowdown.low, slowdown.high))
    units, deviation, bound = int(slowdown.launches[0]), slowdown.log_deviation, slowdown.rounding_bound
    thin = "; ".join(map(str, survivors((a, b), (key,))[1])) if survivors((a, b), (key,))[0] else ""
    unequal = "; ".join(unequal_work((a, b), (key,)))
    dead = _dead_starts(b, key)
    with_dead = high
    if dead and not thin:
        had = int(np.sum(~np.isnan(b.cells[key].log_values)))
        as_slowest = _high_with_dead(a, b, key, replication, dead, confidence, rounding)
        with_dead = max(as_slowest, high * TIMES_OF_DEAD ** (dead / (had + dead)))
    if high <= 1.0 + maximum < with_dead:
        thin = f"passes only without the {count(dead, 'start')} that died"
    has_interval = units >= MINIMUM_LAUNCHES
    return GateCell(
        fabric=a.fabric.name,
        key=key,
        old=_level(a, key, replication),
        new=_level(b, key, replication),
        unit=(key.workload.unit if key.workload is not None else "") or key.metric.unit,
        slowdown=ratio,
        slowdown_low=number(low),
        slowdown_high=number(high),
        p_adjusted=number(float(_p_beyond(slowdown, maximum)[0])),
        launches=units,
        met=int(np.count_nonzero(~np.isnan(b.cells[key].log_values))),
        is_control=key.layer is Layer.MEMORY,
        verdict=GateVerdict.PASSED if high <= 1.0 + maximum and not thin and not unequal else GateVerdict.INCONCLUSIVE,
        gave_nothing=thin,
        unequal_work=unequal,
        deviation=number(float(deviation[0])),
        rounding_bound=number(float(bound[0])),
        caught=float(caught_with_power(deviation, units, maximum, confidence, tested, bound)[0])
        if has_interval
        else None,
        passed=float(passed_with_power(deviation, units, maximum, confidence, bound)[0]) if has_interval else None,
        chance_to_pass=float(chance_to_pass(deviation, maximum, confidence, units, bound=bound)[0])
        if has_interval
        else None,
    )


def _dead_starts(side: Side, key: CellKey) -> int:
    """Return how many starts of a cell's launches died on a side, tried again or not."""
    account = side.account_of(side.cells[key].subject)
    return 0 if account is None else account.lost_starts


def _high_with_dead(
    a: Side, b: Side, key: CellKey, replication: Replication, dead: int, confidence: float, rounding: Rounding
) -> float:
    """Return the upper end of the slowdown if each start of the new side that died had been as slow as its slowest launch."""
    slower = 1.0 if key.metric.is_lower_better else -1.0
    old, values = slower * a.cells[key].log_values, slower * b.cells[key].log_values
    # Dead starts join their run's launches; of several runs the account does not tell whose they were: those of the first, say.
    new = np.append(values, np.full(dead, np.nanmax(values)))
    if replication is Replication.RUNS:
        old, new = run_means(old, a.run_of), run_means(new, (*b.run_of, *(0,) * dead))
    is_alike = replication is Replication.RUNS
    return float(unpaired_ratios(old, new, confidence, rounding=rounding, is_alike=is_alike).high[0])


def _p_beyond(slowdown: Ratios, maximum: float) -> Floats:
    beyond = np.log(slowdown.ratio) - slowdown.rounding_bound - np.log1p(maximum)
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
    known = [cell for cell in cells if not cell.is_control and cell.caught is not None]
    if not known:
        return None
    deviations = np.array([cell.deviation for cell in known], dtype=np.float64)
    bounds = np.array([cell.rounding_bound or 0.0 for cell in known], dtype=np.float64)
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
        needed=blocks_to_decide(deviations, maximum, confidence, tested, bound=bounds),
        needed_of_new=blocks_to_decide(deviations, maximum, confidence, tested, other=old_count, bound=bounds),
    )
