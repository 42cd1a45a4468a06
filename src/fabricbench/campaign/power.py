"""What a planned campaign will find, from a noise profile: the difference that it calls with 80 %, by kind of cell. Pure.

The rules are those of `statistics.decision`, at the level that the run's first look is judged at: unless it is declared final it
keeps a part of its error for later looks. How large a difference is found depends on how many of the comparisons truly differ;
what is said here is of one that differs `alone`, the worst case, and beside it of one among all that differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import isinf, sqrt
from typing import TYPE_CHECKING

from fabricbench.campaign.noise import CellKind, NoiseProfile, kind_of
from fabricbench.campaign.plan import RunPlan
from fabricbench.model import Layer, Model
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.record.setup import setup_of

if TYPE_CHECKING:
    from fabricbench.statistics.planning import Components

CONFIDENCE = 0.95
"""Of `run`'s verdict and of `report` without `--confidence`."""


USEFUL = 10.0
"""A difference of more, as a share, is no use to plan for: whoever has fabrics elevenfold apart needs no campaign to see it."""


class DetectableDifference(Model):
    """What is found among cells of a kind over some layers. Differences are shares: 0.1 is 10 %.

    `deviation` is that of the log ratio of a block, of the noisiest of the cells. `faster`, `ahead`: the smallest true difference
    that is called beyond the margin, or for which it is named who is ahead, with 80 %, if no other cell differs; `*_among_all` if
    all do. None: no useful difference is, with so few blocks. `equivalent_blocks`: those that equivalence takes where nothing
    differs; None where more than 1000.
    """

    kind: CellKind
    layers: tuple[Layer, ...]
    cells: int
    seconds: float
    deviation: float
    faster: float | None
    ahead: float | None
    faster_among_all: float | None
    ahead_among_all: float | None
    equivalent_blocks: int | None


class Power(Model):
    """What a campaign finds, and from which noise that follows. `tests` comparisons share one correction.

    `left_out` cells are of kinds that the profile says nothing of. Empty `found`: nothing is compared, or nothing is known.
    """

    noise: str
    source: str
    blocks: int
    margin: float
    confidence: float
    tests: int
    found: tuple[DetectableDifference, ...]
    left_out: int


class GateNeed(Model):
    """The blocks of each run that a gate needs to pass an unchanged system with 80 %; None where more than 1000.

    `by_kind` takes a single cell of each kind, the noisiest kind first; `all_cells` has to pass all at once, but for those
    `left_out`, of whose noise nothing is known. Nothing is known at all where `by_kind` is empty.
    """

    allowed: float
    all_cells: int | None
    by_kind: tuple[tuple[CellKind, tuple[Layer, ...], int | None], ...]
    left_out: int


def power_of(plan: RunPlan, noise: NoiseProfile, margin: float, confidence: float = CONFIDENCE) -> Power:
    """Return what a plan finds; `margin` is the campaign's."""
    from fabricbench.statistics.planning import blocks_for, detectable  # noqa: PLC0415 - SciPy is slow to import

    tests, judged = comparisons(plan), _confidence_of_look(plan, confidence)
    carried = _carried(plan).values()
    shared = [probe for probe in plan.cells if sum(probe.id in cells for cells in carried) > 1]
    groups = _groups(shared, noise)
    found = []
    for (kind, _, _), probes in groups.items():
        of = [(known, probe.stopping.maximum_seconds) for probe in probes if (known := noise.components(probe))]
        deviation, seconds = max((_log_ratio_deviation(known, each), each) for known, each in of)
        alone, among_all = (
            detectable(deviation, plan.blocks, margin, confidence=judged, tests=tests, differing=differing)
            for differing in (1, tests)
        )
        needed = blocks_for(margin, deviation, margin, confidence=judged, tests=tests)
        found.append(
            DetectableDifference(
                kind=kind,
                layers=tuple(dict.fromkeys(probe.layer for probe in probes)),
                cells=len(probes),
                seconds=seconds,
                deviation=deviation,
                faster=_share(float(alone.beyond)),
                ahead=_share(float(alone.ahead)),
                faster_among_all=_share(float(among_all.beyond)),
                ahead_among_all=_share(float(among_all.ahead)),
                equivalent_blocks=_count(needed.equivalent),
            )
        )
    return Power(
        noise=noise.name,
        source=noise.source,
        blocks=plan.blocks,
        margin=margin,
        confidence=confidence,
        tests=tests,
        found=tuple(found),
        left_out=_left_out(shared, noise),
    )


def gate_need(plan: RunPlan, noise: NoiseProfile, allowed: float, confidence: float = CONFIDENCE) -> GateNeed:
    """Return the blocks that a gate of that width needs on the cells of a plan, each fabric with itself of another day."""
    from fabricbench.statistics.gate_power import blocks_to_decide  # noqa: PLC0415 - as SciPy

    judged = _confidence_of_look(plan, confidence)
    deviations, by_kind = [], []
    for (kind, _, _), probes in _groups(plan.cells, noise).items():
        own = [
            _log_ratio_deviation(known, probe.stopping.maximum_seconds)
            for probe in probes
            if (known := noise.components(probe))
        ]
        deviations += own * len(plan.fabrics)
        layers = tuple(dict.fromkeys(probe.layer for probe in probes))
        by_kind.append((max(own), kind, layers, blocks_to_decide(max(own), allowed, judged, cells=1)))
    by_kind.sort(key=lambda each: each[0], reverse=True)
    return GateNeed(
        allowed=allowed,
        all_cells=blocks_to_decide(deviations, allowed, judged, cells=len(deviations)),
        by_kind=tuple((kind, layers, blocks) for _, kind, layers, blocks in by_kind),
        left_out=_left_out(plan.cells, noise),
    )


def _confidence_of_look(plan: RunPlan, confidence: float) -> float:
    """Return the confidence that the run's first look is judged at."""
    from fabricbench.statistics.correction import level_of_look  # noqa: PLC0415 - as SciPy

    return 1.0 - level_of_look([plan.blocks], 1.0 - confidence, is_final=plan.is_final)


def _left_out(cells: Sequence[PlanProbe], noise: NoiseProfile) -> int:
    """Return of how many cells the profile says nothing, the control aside."""
    judged = [probe for probe in cells if probe.layer is not Layer.MEMORY and not probe.is_stamped]
    return sum(1 for probe in judged if noise.components(probe) is None)


def comparisons(plan: RunPlan) -> int:
    """Return how many comparisons a report of the plan corrects together: cells and curves, over all pairs of fabrics."""
    carried = _carried(plan)
    names = list(carried)
    return sum(
        _with_curves([plan.cells[cell] for cell in carried[a] & carried[b]])
        for index, a in enumerate(names)
        for b in names[index + 1 :]
    )


def _carried(plan: RunPlan) -> dict[str, set[int]]:
    """Return the cells that each fabric measures and that are compared, by number."""
    stamped = {probe.id for probe in plan.cells if probe.is_stamped}
    return {
        fabric.name: {cell for launch in plan.launches if launch.fabric == fabric.name for cell in launch.cells}
        - stamped
        for fabric in plan.fabrics
    }


def _with_curves(cells: Sequence[PlanProbe]) -> int:
    """Return the number of cells and of curves: cells that differ in their size only, at least two of them."""
    curves: dict[object, int] = defaultdict(int)
    for cell in cells:
        curves[cell.layer, cell.pattern, cell.receive, setup_of(cell)] += 1
    return len(cells) + sum(1 for sizes in curves.values() if sizes > 1)


def _groups(cells: Sequence[PlanProbe], noise: NoiseProfile) -> dict[tuple[CellKind, float, float], list[PlanProbe]]:
    """Return the cells that will scatter alike: of one kind, with the same components, over the layers that share them."""
    groups: dict[tuple[CellKind, float, float], list[PlanProbe]] = defaultdict(list)
    for probe in cells:
        if probe.is_stamped:
            continue
        kind, known = kind_of(probe.layer, probe.pattern, probe.message_bytes), noise.components(probe)
        if kind is not None and known is not None:
            groups[kind, known.launch, known.second].append(probe)
    return dict(sorted(groups.items(), key=lambda item: list(CellKind).index(item[0][0])))


def _log_ratio_deviation(components: Components, seconds: float) -> float:
    """Return the deviation of the log ratio of two launches that scatter alike."""
    return sqrt(2.0) * components.value(seconds)


def _share(value: float) -> float | None:
    return value if value <= USEFUL else None


def _count(value: float) -> int | None:
    return None if isinf(value) else int(value)
