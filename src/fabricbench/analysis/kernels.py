"""Kernels of NPB on the fabrics: times and rates, what the network is worth to each, speed-up.

Times and their ratios are those of the cells (`measured`, `comparing`): the same launches, pairs, intervals, verdicts. What only a
kernel tells of itself, rates and the split of its time, comes from its own record in `launch.json`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, median

import numpy as np
import polars as pl

from fabricbench.analysis.findings import (
    CellKey,
    Comparison,
    Interval,
    KernelFindings,
    KernelName,
    KernelOnFabric,
    Reference,
    Sensitivity,
    SpeedUp,
    WorkloadName,
)
from fabricbench.analysis.measured import Side, ratio_rounding
from fabricbench.analysis.node_sets import NO_LOSS, Blocks
from fabricbench.analysis.order_of_gains import MeasuredGain, joint_confidence, leads, settled
from fabricbench.analysis.pairing import Pairing
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.summary import geometric_mean
from fabricbench.errors import UsageError
from fabricbench.model import Pattern
from fabricbench.record.frames import CELL_SCHEMA
from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.setup import Setup, stored_setup
from fabricbench.record.store import Run
from fabricbench.statistics.order import median_interval

ORDER = ("EP", "MG", "CG", "FT", "IS", "LU", "SP", "BT")


def find_kernels(
    sides: Sequence[Side],
    pairings: Sequence[Pairing],
    cells: Sequence[Comparison],
    confidence: float,
    reference: Reference | None = None,
) -> KernelFindings | None:
    """Return everything about kernels; None where none was run."""
    results = [one for side in sides for one in _results(side, confidence, reference)]
    if not results:
        return None
    return KernelFindings(
        results=tuple(sorted(results, key=lambda one: _place(one.kernel))),
        sensitivities=tuple(_sensitivities(pairings, cells, confidence)),
        speed_ups=tuple(one for side in sides for one in _speed_ups(side, confidence)),
        reference=reference,
    )


def kernel_of(key: CellKey | Comparison) -> KernelName | None:
    """Return the kernel that a cell is; None if it is another kind of cell."""
    if key.workload is None or key.pattern is not Pattern.NPB:
        return None
    known = {name: str(value) for name, value in key.workload.parameters}
    return KernelName(
        benchmark=known["benchmark"],
        problem_class=known["class"],
        ranks=key.workload.ranks,
        program=known.get("program", "own"),
    )


def work_of(key: CellKey | Comparison) -> KernelName | WorkloadName | None:
    """Return the kernel or the application that a cell is; None if it is no workload."""
    return kernel_of(key) or key.workload


GRID = "grid"
ARRANGED = frozenset({"hpl", "training-step"})
"""Workloads whose grid says how ranks are arranged; that of others (`elliptic`) is what they compute on."""


def subject_of(key: CellKey) -> tuple[Pattern, tuple[tuple[str, str | int | float], ...]]:
    """Return what is the same of a workload on every number of ranks."""
    if key.workload is None:
        return key.pattern, ()
    arrangement = GRID if key.workload.name in ARRANGED else None
    return key.pattern, tuple(one for one in key.workload.parameters if one[0] != arrangement)


def on_most_ranks(keys: Iterable[CellKey], blocks: Blocks = NO_LOSS) -> list[CellKey]:
    """Return each workload on the most ranks that it was run on, in every arrangement of them; cells of none are left out.

    Where nodes failed meanwhile, on the ranks that have the most blocks.
    """
    most: dict[object, tuple[tuple[int, int], list[CellKey]]] = {}
    for key in keys:
        if key.workload is not None:
            subject = subject_of(key)
            place = (blocks.get(key, 0), key.workload.ranks)
            if subject not in most or place > most[subject][0]:
                most[subject] = (place, [key])
            elif place == most[subject][0]:
                most[subject][1].append(key)
    return [key for _, chosen in most.values() for key in chosen]


def reference_run(run: Run) -> Reference:
    """Return a stored run as the machine to normalise to: of each kernel and class the run on the fewest ranks.

    UsageError if no kernel was run there.
    """
    fewest: dict[str, tuple[int, float]] = {}
    for side in read_sides([run]):
        for key, cell in side.cells.items():
            kernel = kernel_of(key)
            if kernel is None:
                continue
            name = f"{kernel.benchmark}.{kernel.problem_class}"
            found = (kernel.ranks, float(np.nanmedian(cell.launch_values)) * 1e-9)
            fewest[name] = min(fewest.get(name, found), found)
    if not fewest:
        raise UsageError(f"no kernel was run in {run.path}", hint="give a run of a campaign with kernels of NPB")
    return Reference(
        name=run.manifest.testbed.name,
        source=f"run {run.path}, each kernel on its fewest ranks",
        seconds={name: seconds for name, (_, seconds) in fewest.items()},
    )


def _place(kernel: KernelName) -> tuple[str, str, int, int]:
    place = ORDER.index(kernel.benchmark) if kernel.benchmark in ORDER else len(ORDER)
    return kernel.program, kernel.problem_class, place, kernel.ranks


def _results(side: Side, confidence: float, reference: Reference | None) -> Iterable[KernelOnFabric]:
    runs = _runs(side)
    for key, cell in side.cells.items():
        kernel = kernel_of(key)
        if kernel is None:
            continue
        of_kernel = runs.get(key.setup, [])
        time = median_interval(cell.launch_values * 1e-9, confidence, cell.rounding)
        profiles = [run.profile for run in of_kernel if run.profile is not None]
        known = None if reference is None else reference.seconds.get(f"{kernel.benchmark}.{kernel.problem_class}")
        yield KernelOnFabric(
            fabric=side.name,
            kernel=kernel,
            launches=int(np.count_nonzero(~np.isnan(cell.launch_values))),
            seconds=Interval(value=time.value, low=time.low, high=time.high),
            mops_total=_median(run.mops_total for run in of_kernel),
            mops_per_process=_median(run.mops_per_process for run in of_kernel),
            communication_share=fmean(one.communication_share for one in profiles) if profiles else None,
            calls=_calls(of_kernel),
            bytes_sent=median(sum(one.bytes_sent) for one in profiles) if profiles else None,
            of_reference=None if known is None else known / time.value,
        )


def _runs(side: Side) -> dict[Setup, list[KernelRun]]:
    """Return the runs whose result was right, by the setup of their cell."""
    runs: dict[Setup, list[KernelRun]] = defaultdict(list)
    for index, run in enumerate(side.runs):
        kernels = {
            launch.launch_id: launch.summary.kernel.runs
            for launch in side.launches_of_run(index)
            if launch.summary.kernel is not None
        }
        cells = run.cells() if kernels else pl.DataFrame(schema=CELL_SCHEMA)
        done = cells.filter(pl.col("pattern").cast(pl.String) == Pattern.NPB.value, pl.col("status") == "done")
        for row in done.iter_rows(named=True):
            runs[stored_setup(row)] += kernels.get(str(row["launch_id"]), ())
    return runs


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None


def _calls(runs: Sequence[KernelRun]) -> dict[str, float]:
    """Return the share of the ranks' time in each kind of call, the largest first."""
    seconds: dict[str, float] = defaultdict(float)
    whole = 0.0
    for run in runs:
        if run.profile is not None:
            whole += sum(run.profile.mpi_seconds) + sum(run.profile.compute_seconds)
            for call in run.profile.calls:
                seconds[call.call] += call.seconds
    ordered = sorted(seconds.items(), key=lambda item: -item[1])
    return {call: spent / whole for call, spent in ordered} if whole > 0 else {}


def _sensitivities(
    pairings: Sequence[Pairing], cells: Sequence[Comparison], confidence: float
) -> Iterable[Sensitivity]:
    """Yield what the network is worth to each kernel on its most ranks, pair by pair, class by class, the largest first."""
    of_pairs = {
        (pairing.a.name, pairing.b.name, key): (
            pairing.log_ratios(key),
            ratio_rounding(pairing.a.cells[key], pairing.b.cells[key]),
        )
        for pairing in pairings
        if pairing.is_paired
        for key in pairing.keys
        if kernel_of(key) is not None
    }
    groups: dict[tuple[str, str, str, str], list[tuple[KernelName, Comparison]]] = defaultdict(list)
    for cell in cells:
        kernel = kernel_of(cell)
        if kernel is not None and kernel.ranks > 1:
            groups[cell.fabric_a, cell.fabric_b, kernel.program, kernel.problem_class].append((kernel, cell))
    for group in groups.values():
        most: dict[str, tuple[KernelName, Comparison]] = {}
        for kernel, cell in group:
            if kernel.benchmark not in most or kernel.ranks > most[kernel.benchmark][0].ranks:
                most[kernel.benchmark] = (kernel, cell)
        # The fabric on which they take longer together is the slower one, so that all ratios have one sense.
        is_a_slower = fmean(float(np.log(cell.ratio)) for _, cell in most.values()) <= 0
        ordered = sorted(most.values(), key=lambda item: item[1].ratio, reverse=not is_a_slower)
        made = [_sensitivity(kernel, cell, is_a_slower=is_a_slower) for kernel, cell in ordered]
        b_over_a = [of_pairs.get((cell.fabric_a, cell.fabric_b, cell.key)) for _, cell in ordered]
        gains = [
            None if one is None else MeasuredGain(-one[0] if is_a_slower else one[0], rounding=one[1])
            for one in b_over_a
        ]
        joint = joint_confidence(len(gains), confidence)
        yield from (
            one.model_copy(update={"lead": lead, "is_settled": is_settled})
            for one, lead, is_settled in zip(made, leads(gains, joint), settled(gains, joint), strict=True)
        )


def _sensitivity(kernel: KernelName, cell: Comparison, *, is_a_slower: bool) -> Sensitivity:
    low, high = cell.ratio_low, cell.ratio_high
    bounds = (high, low) if is_a_slower else (low, high)
    turned = [None if bound is None else 1.0 / bound if is_a_slower else bound for bound in bounds]
    return Sensitivity(
        slower=cell.fabric_a if is_a_slower else cell.fabric_b,
        faster=cell.fabric_b if is_a_slower else cell.fabric_a,
        kernel=kernel,
        ratio=1.0 / cell.ratio if is_a_slower else cell.ratio,
        low=turned[0],
        high=turned[1],
        verdict=cell.verdict,
        launches=cell.launches,
    )


def _speed_ups(side: Side, confidence: float) -> Iterable[SpeedUp]:
    groups: dict[tuple[str, str, str], list[tuple[KernelName, CellKey]]] = defaultdict(list)
    for key in side.cells:
        kernel = kernel_of(key)
        if kernel is not None:
            groups[kernel.program, kernel.problem_class, kernel.benchmark].append((kernel, key))
    for group in groups.values():
        ordered = sorted(group, key=lambda item: item[0].ranks)
        first, base = ordered[0]
        for kernel, key in ordered[1:]:
            logs = side.cells[base].log_values - side.cells[key].log_values
            rounding = ratio_rounding(side.cells[base], side.cells[key])
            speed_up = geometric_mean(logs, confidence, rounding)
            if speed_up is not None:
                yield SpeedUp(fabric=side.name, kernel=kernel, fewest=first.ranks, speed_up=speed_up)
