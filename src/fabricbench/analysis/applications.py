"""Applications on the fabrics: every figure of merit that they told of themselves, and how many times better on which fabric.

The primary figure and its ratios are those of the cells (`measured`, `comparing`): the same launches, pairs, intervals, verdicts.
Further figures come from the values of the same cells, what each is from the launches' own records (`record.workload_cells`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fabricbench.analysis.comparing import Pairing
from fabricbench.analysis.findings import (
    ApplicationFindings,
    ApplicationOnFabric,
    ApplicationRatio,
    CellKey,
    Comparison,
    Interval,
    WorkloadName,
)
from fabricbench.analysis.measured import CellMeasured, Floats, Side, log_of
from fabricbench.model import Pattern
from fabricbench.record.workload_cells import COMMUNICATION_SHARE, OF_FIGURE, FigureFound
from fabricbench.statistics.order import median_interval
from fabricbench.statistics.ratios import paired_ratios

Figures = dict[WorkloadName, tuple[FigureFound, ...]]
"""What each application tells, the primary figure first."""


def find_applications(
    sides: Sequence[Side], pairings: Sequence[Pairing], cells: Sequence[Comparison], confidence: float
) -> ApplicationFindings | None:
    """Return everything about applications; None where none was run."""
    figures = _figures(sides)
    results = [
        one
        for side in sides
        for key, cell in side.cells.items()
        if (name := application_of(key)) is not None
        for one in _on_fabric(side, cell, name, figures.get(name, ()), confidence)
    ]
    if not results:
        return None
    order = list(dict.fromkeys((one.application, one.figure) for one in results))
    ratios = [*_of_cells(cells, figures), *_of_values(pairings, figures, confidence)]
    return ApplicationFindings(
        results=tuple(sorted(results, key=lambda one: order.index((one.application, one.figure)))),
        ratios=tuple(sorted(ratios, key=lambda one: order.index((one.application, one.figure)))),
    )


def application_of(key: CellKey | Comparison) -> WorkloadName | None:
    """Return the application that a cell is; None if it is none, or a kernel of NPB."""
    return key.workload if key.pattern is Pattern.WORKLOAD else None


def _figures(sides: Sequence[Side]) -> Figures:
    found: Figures = {}
    for side in sides:
        for launch in side.launches:
            part = launch.summary.workload
            if part is not None and part.figures:
                found.setdefault(
                    WorkloadName(ranks=part.ranks, parameters=tuple(part.parameters.items())), part.figures
                )
    return found


def _on_fabric(
    side: Side, cell: CellMeasured, name: WorkloadName, figures: Sequence[FigureFound], confidence: float
) -> Iterable[ApplicationOnFabric]:
    shares = cell.values.get(COMMUNICATION_SHARE)
    share = None if shares is None or np.isnan(shares).all() else float(np.nanmean(shares))
    for place, figure in enumerate(figures):
        values = _primary(cell) if place == 0 else cell.values.get(f"{OF_FIGURE}{figure.name}")
        if values is None or np.isnan(values).all():
            continue
        level = median_interval(values, confidence)
        yield ApplicationOnFabric(
            fabric=side.name,
            application=name,
            figure=figure.name,
            unit=figure.unit,
            is_primary=place == 0,
            launches=int(np.count_nonzero(~np.isnan(values))),
            level=Interval(value=level.value, low=level.low, high=level.high),
            communication_share=share,
        )


def _primary(cell: CellMeasured) -> Floats:
    return cell.launch_values * 1e-9 if cell.key.metric.is_time else cell.launch_values


def _of_cells(cells: Sequence[Comparison], figures: Figures) -> Iterable[ApplicationRatio]:
    for one in cells:
        name = application_of(one)
        if name is None or not figures.get(name):
            continue
        yield _ratio(
            name,
            figures[name][0],
            (one.fabric_a, one.fabric_b),
            Interval(value=one.ratio, low=one.ratio_low, high=one.ratio_high),
            one.launches,
        ).model_copy(update={"verdict": one.verdict})


def _of_values(pairings: Sequence[Pairing], figures: Figures, confidence: float) -> Iterable[ApplicationRatio]:
    for pairing in pairings:
        for key in pairing.keys if pairing.is_paired else ():
            name = application_of(key)
            for figure in figures.get(name, ())[1:] if name is not None else ():
                told = [side.cells[key].values.get(f"{OF_FIGURE}{figure.name}") for side in (pairing.a, pairing.b)]
                if name is None or told[0] is None or told[1] is None:
                    continue
                log_a, log_b = pairing.replicates(log_of(told[0]), log_of(told[1]))
                ratios = paired_ratios((log_b - log_a)[np.newaxis, :], confidence)
                if not ratios.launches[0]:
                    continue
                bounds = [None if np.isnan(end[0]) else float(end[0]) for end in (ratios.low, ratios.high)]
                found = Interval(value=float(ratios.ratio[0]), low=bounds[0], high=bounds[1])
                yield _ratio(name, figure, (pairing.a.name, pairing.b.name), found, int(ratios.launches[0]))


def _ratio(
    name: WorkloadName, figure: FigureFound, fabrics: tuple[str, str], b_over_a: Interval, launches: int
) -> ApplicationRatio:
    """Return how many times better the better fabric is, of a ratio b / a."""
    is_b_better = (b_over_a.value < 1) == (figure.better == "lower")
    is_turned = b_over_a.value < 1
    low, high = (b_over_a.high, b_over_a.low) if is_turned else (b_over_a.low, b_over_a.high)
    worse, better = fabrics if is_b_better else fabrics[::-1]
    return ApplicationRatio(
        application=name,
        figure=figure.name,
        worse=worse,
        better=better,
        times=1 / b_over_a.value if is_turned else b_over_a.value,
        low=None if low is None else 1 / low if is_turned else low,
        high=None if high is None else 1 / high if is_turned else high,
        verdict=None,
        launches=launches,
    )
