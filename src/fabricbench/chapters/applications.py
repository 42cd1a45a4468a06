"""Applications: their own figures of merit on each fabric, and how many times better on which.

The primary figure and its ratios are those of the cells (`measured`, `comparing`): the same launches, pairs, intervals, verdicts.
Further figures come from the values of the same cells, what each is from the launches' own records (`record.workload_cells`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fabricbench.analysis.findings import (
    ApplicationFindings,
    ApplicationOnFabric,
    ApplicationRatio,
    CellKey,
    Comparison,
    Findings,
    Interval,
    WorkloadName,
)
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Floats, Side, log_of, workload_of
from fabricbench.analysis.pairing import Pairing
from fabricbench.chapters.chapter import Chapter, Found, OnPage, Records
from fabricbench.model import Pattern
from fabricbench.record.workload_cells import COMMUNICATION_SHARE, OF_FIGURE, FigureFound
from fabricbench.report.words import NOTHING, WithInterval, counted, outcome_words, share_words, with_bounds
from fabricbench.statistics.order import median_interval
from fabricbench.statistics.ratios import EXACT, Rounding, paired_ratios
from fabricbench.table import Table, table
from fabricbench.units import seconds_in

METHOD = """
Applications are judged by their own figure of merit, as they print it: a time, or a rate of which more is better. A launch counts
with that figure; one whose result fails a check, or of which the figure cannot be found, is a failed test and counts nowhere.
Further figures explain and enter no verdict; one that is 0 or less in any pair has no ratio.
"""


def find(material: Material) -> Found:
    """Return the figures of merit of every application; nothing where none was run."""
    sides, pairings, cells = material.sides, material.pairings, material.cells
    return {"applications": find_applications(sides, pairings, cells, material.confidence)}


def application_table(findings: Findings) -> Table:
    """A row for each figure of merit of each application on each fabric."""
    results = findings.applications.results if findings.applications is not None else ()
    rows = [
        (
            f"{one.application}",
            one.fabric,
            one.figure,
            figure_words(one.level, one.unit),
            share_words(one.communication_share) if one.is_primary else NOTHING,
            str(one.launches),
        )
        for one in results
    ]
    columns = ("Application", "Fabric", "Figure of merit", "Median over launches", "Communication", "Launches")
    return table(columns, rows, (3, 4, 5), spare=("Launches",))


def application_ratio_table(findings: Findings) -> Table:
    """A row for each figure of merit of each application and pair of fabrics."""
    ratios = findings.applications.ratios if findings.applications is not None else ()
    rows = [
        (
            f"{one.application}",
            one.figure,
            f"{one.better} over {one.worse}",
            _times(one),
            "explains" if one.verdict is None else outcome_words(one.verdict, one.better, one.better, findings.margin),
            counted(one.launches, "pair"),
        )
        for one in ratios
    ]
    times = f"Times better ({findings.confidence * 100:g} % interval, unadjusted)"
    undecided = [index for index, one in enumerate(ratios) if one.verdict is None or one.verdict.leader is None]
    columns = ("Application", "Figure of merit", "Of", times, "Verdict", "n")
    return table(columns, rows, (3, 5), undecided, spare=("n",))


def application_tables(findings: Findings) -> list[tuple[str, Table]]:
    """Return all tables of the section with their titles."""
    return [
        ("What the network is worth to each", application_ratio_table(findings)),
        ("Figures of merit, as the programs tell them", application_table(findings)),
    ]


def figure_words(level: Interval, unit: str) -> WithInterval:
    """Return `1,014 MFLOP/s (1,002 to 1,020)`."""
    value = f"{_number(level.value)} {unit}".rstrip()
    return with_bounds(value, level.low, level.high, _number)


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def _times(one: ApplicationRatio) -> str:
    return with_bounds(f"{one.times:.3f}", one.low, one.high, "{:.3f}".format)


def _records(findings: Findings) -> Records:
    found = findings.applications
    return {} if found is None else {"applications": found.results, "application-ratios": found.ratios}


CHAPTER = Chapter(
    name="applications",
    title="Applications",
    needs="applications: a campaign with [[workload]]",
    find=find,
    method=METHOD,
    tables=application_tables,
    records=_records,
    on_page=OnPage(is_open=False),
)


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
                found.setdefault(workload_of(part), part.figures)
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
        unit = figure.told_in or figure.unit
        rounding = _rounding(side, cell.key, figure) if place else cell.rounding
        level = median_interval(values / seconds_in(unit), confidence, rounding)
        yield ApplicationOnFabric(
            fabric=side.name,
            application=name,
            figure=figure.name,
            unit=unit,
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
                a, b = pairing.replicates(key, told[0], told[1])
                is_pair = ~(np.isnan(a) | np.isnan(b))
                if not is_pair.any() or min(a[is_pair].min(), b[is_pair].min()) <= 0:
                    continue  # a ratio of the others would be one of the blocks in which it happened to be positive
                of_a, of_b = (_rounding(side, key, figure) for side in (pairing.a, pairing.b))
                logs = (log_of(b) - log_of(a))[np.newaxis, :]
                ratios = paired_ratios(logs, confidence, rounding=of_a.against(of_b))
                bounds = [None if np.isnan(end[0]) else float(end[0]) for end in (ratios.low, ratios.high)]
                found = Interval(value=float(ratios.ratio[0]), low=bounds[0], high=bounds[1])
                yield _ratio(name, figure, (pairing.a.name, pairing.b.name), found, int(ratios.launches[0]))


def _rounding(side: Side, key: CellKey, figure: FigureFound) -> Rounding:
    """Return what the digits that were printed of a further figure make of its logarithms, the mean over launches."""
    parts = [launch.summary.workload for launch in side.launches]
    found = [
        one.printed_step / one.value
        for part in parts
        if part is not None and part.figures and workload_of(part) == key.workload
        for one in part.figures
        if one.name == figure.name and one.printed_step is not None and one.value > 0
    ]
    return Rounding.of(float(np.mean(found))) if found else EXACT


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
