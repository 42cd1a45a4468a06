"""What workloads came to on each fabric: what they are judged by, where their time went, their further figures of merit.

Levels are those of the cells (`measured`): the same launches, the same intervals. Where the time of a program of ours went comes
from its own record in `launch.json`; further figures come from the values of the cells, what each is from the launches' records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TypeVar

import numpy as np

from fabricbench.analysis.expectation import Launches, LoadLaunch, seconds_of
from fabricbench.analysis.findings import CellKey, Interval, WorkloadName
from fabricbench.analysis.findings.loads import FigureOnFabric, FigureRatio, LoadOnFabric, OfLoad, ReferenceMachine
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Floats, Side, log_of, workload_of
from fabricbench.analysis.pairing import Pairing
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.summary import geometric_mean
from fabricbench.errors import UsageError
from fabricbench.model import Pattern
from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.store import Run
from fabricbench.record.workload_cells import COMMUNICATION_SHARE, OF_FIGURE, FigureFound
from fabricbench.statistics.order import median_interval
from fabricbench.statistics.ratios import EXACT, Rounding
from fabricbench.units import seconds_in

NPB_FIGURE = "time"

Row = TypeVar("Row", bound=OfLoad)

OfSides = Mapping[str, Launches]
"""The launches of workloads, by the name of their side."""


def reference_run(run: Run) -> ReferenceMachine:
    """Return a stored run as the machine to normalise to: of each kernel of NPB and class the run on the fewest ranks.

    UsageError if no kernel was run there.
    """
    fewest: dict[str, tuple[int, float]] = {}
    for side in read_sides([run]):
        for key, cell in side.cells.items():
            if key.workload is not None and key.pattern is Pattern.NPB:
                found = (key.workload.ranks, float(np.nanmedian(cell.launch_values)) * 1e-9)
                name = key.workload.short
                fewest[name] = min(fewest.get(name, found), found)
    if not fewest:
        raise UsageError(f"no kernel was run in {run.path}", hint="give a run of a campaign with kernels of NPB")
    return ReferenceMachine(
        name=run.manifest.testbed.name,
        source=f"run {run.path}, each kernel on its fewest ranks",
        seconds={name: seconds for name, (_, seconds) in fewest.items()},
    )


def loads_on_fabrics(material: Material, launches: OfSides) -> list[LoadOnFabric]:
    """Return every workload on every fabric: its figure of merit, the time of a run, where that went."""
    return by_load(
        _on_fabric(side, key, cell, key.workload, launches[side.name].get(key, ()), material)
        for side in material.sides
        for key, cell in side.cells.items()
        if key.workload is not None
    )


def by_load(found: Iterable[Row]) -> list[Row]:
    """Return rows with those of one workload together, in the order in which they were asked for."""
    rows = list(found)
    order = list(dict.fromkeys(one.load for one in rows))
    return sorted(rows, key=lambda one: order.index(one.load))


def _on_fabric(
    side: Side,
    key: CellKey,
    cell: CellMeasured,
    name: WorkloadName,
    launches: Sequence[LoadLaunch],
    material: Material,
) -> LoadOnFabric:
    figure = next((part.figures[0] for one in launches if (part := one.launch.summary.workload) and part.figures), None)
    unit = (figure.told_in or figure.unit) if figure is not None else "s"
    values = cell.launch_values * 1e-9 if key.metric.is_time else cell.launch_values
    level = over_launches(values / seconds_in(unit), material.confidence, cell.rounding)
    times = seconds_of(launches)
    shares = cell.values.get(COMMUNICATION_SHARE)
    runs = [run for one in launches if (kernel := one.launch.summary.kernel) is not None for run in kernel.runs]
    profiles = [run.profile for run in runs if run.profile is not None]
    is_npb, reference = key.pattern is Pattern.NPB, material.reference
    known = reference.seconds.get(name.short) if reference is not None and is_npb else None
    return LoadOnFabric(
        load=str(name),
        workload=name,
        fabric=side.name,
        launches=int(np.count_nonzero(~np.isnan(values))),
        figure=figure.name if figure is not None else NPB_FIGURE,
        unit=unit,
        level=level,
        seconds=over_launches(np.array(times), material.confidence) if times and not name.is_network_test else None,
        communication_share=None if shares is None or np.isnan(shares).all() else float(np.nanmean(shares)),
        calls=_calls(runs),
        bytes_sent=median(sum(one.bytes_sent) for one in profiles) if profiles else None,
        mops_total=_median(run.mops_total for run in runs) if is_npb else None,
        mops_per_process=_median(run.mops_per_process for run in runs) if is_npb else None,
        of_reference=None if known is None else known / level.value,
    )


def over_launches(values: Floats, confidence: float, rounding: Rounding = EXACT) -> Interval:
    """Return the median over launches with its interval."""
    found = median_interval(values, confidence, rounding)
    return Interval(value=found.value, low=found.low, high=found.high)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None


def _calls(runs: Sequence[KernelRun]) -> dict[str, float]:
    """Return the share of the ranks' time in each kind of call of MPI, the largest first."""
    seconds: dict[str, float] = defaultdict(float)
    whole = 0.0
    for run in runs:
        if run.profile is not None:
            whole += sum(run.profile.mpi_seconds) + sum(run.profile.compute_seconds)
            for call in run.profile.calls:
                seconds[call.call] += call.seconds
    ordered = sorted(seconds.items(), key=lambda item: -item[1])
    return {call: spent / whole for call, spent in ordered} if whole > 0 else {}


Figures = dict[WorkloadName, tuple[FigureFound, ...]]
"""What each workload tells besides what it is judged by."""


def further_figures(sides: Sequence[Side]) -> Figures:
    """Return what workloads tell besides what they are judged by, which explains and enters no verdict."""
    found: Figures = {}
    for side in sides:
        for launch in side.launches:
            part = launch.summary.workload
            if part is not None and part.figures:
                found.setdefault(workload_of(part), part.figures[1:])
    return found


def figures_on_fabrics(material: Material, figures: Figures) -> list[FigureOnFabric]:
    """Return every further figure of merit on every fabric."""
    return by_load(
        FigureOnFabric(
            load=str(name),
            workload=name,
            fabric=side.name,
            launches=int(np.count_nonzero(~np.isnan(values))),
            figure=figure.name,
            unit=unit,
            level=over_launches(values / seconds_in(unit), material.confidence, _rounding(side, name, figure)),
        )
        for side in material.sides
        for key, cell in side.cells.items()
        for name, figure, values in _told(cell, key, figures)
        for unit in (figure.told_in or figure.unit,)
    )


def _told(cell: CellMeasured, key: CellKey, figures: Figures) -> Iterator[tuple[WorkloadName, FigureFound, Floats]]:
    """Yield the further figures of a cell that any launch told, with their values."""
    for figure in figures.get(key.workload, ()) if key.workload is not None else ():
        values = cell.values.get(f"{OF_FIGURE}{figure.name}")
        if key.workload is not None and values is not None and not np.isnan(values).all():
            yield key.workload, figure, values


def figure_ratios(material: Material, figures: Figures) -> list[FigureRatio]:
    """Return how many times better each further figure is on the better of two fabrics."""
    return by_load(
        one
        for pairing in material.pairings
        for key in (pairing.keys if pairing.is_paired else ())
        for name, figure, of_a in _told(pairing.a.cells[key], key, figures)
        for one in _figure_ratio(pairing, key, name, figure, of_a, material.confidence)
    )


def _figure_ratio(
    pairing: Pairing, key: CellKey, name: WorkloadName, figure: FigureFound, of_a: Floats, confidence: float
) -> Iterator[FigureRatio]:
    of_b = pairing.b.cells[key].values.get(f"{OF_FIGURE}{figure.name}")
    if of_b is None:
        return
    a, b = pairing.replicates(key, of_a, of_b)
    is_pair = ~(np.isnan(a) | np.isnan(b))
    if not is_pair.any() or min(a[is_pair].min(), b[is_pair].min()) <= 0:
        return  # a ratio of the others would be one of the blocks in which it happened to be positive
    rounding = _rounding(pairing.a, name, figure).against(_rounding(pairing.b, name, figure))
    logs = log_of(b) - log_of(a)
    is_turned = float(np.nanmean(logs)) < 0  # whoever is better stands first: no factor is below 1
    times = geometric_mean(-logs if is_turned else logs, confidence, rounding)
    if times is None:
        return
    # Of a time b / a is how many times worse B is.
    is_b_better = is_turned == (figure.better == "lower")
    worse, better = (pairing.a.name, pairing.b.name) if is_b_better else (pairing.b.name, pairing.a.name)
    yield FigureRatio(
        load=str(name),
        workload=name,
        figure=figure.name,
        worse=worse,
        better=better,
        times=times,
        launches=int(np.count_nonzero(is_pair)),
    )


def _rounding(side: Side, name: WorkloadName, figure: FigureFound) -> Rounding:
    """Return what the digits that were printed of a further figure make of its logarithms, the mean over launches."""
    parts = [launch.summary.workload for launch in side.launches]
    found = [
        one.printed_step / one.value
        for part in parts
        if part is not None and part.figures and workload_of(part) == name
        for one in part.figures
        if one.name == figure.name and one.printed_step is not None and one.value > 0
    ]
    return Rounding.of(float(np.mean(found))) if found else EXACT
