"""MPI operations: time, bandwidth as collective users know it, overlap, start-up, and the coefficient between two fabrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabricbench.analysis.arithmetic import bus_factor
from fabricbench.analysis.crossovers import cell_key
from fabricbench.analysis.findings import Coefficient, Comparison, Interval, Operation, StartUp
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.summary import interval
from fabricbench.analysis.topologies import over_launches, scaled
from fabricbench.patterns import PATTERNS, Family
from fabricbench.statistics.order import median_interval


def find_operations(sides: Sequence[Side], confidence: float) -> list[Operation]:
    """Return every MPI operation, side by side."""
    return [
        _operation(side, cell, confidence)
        for side in sides
        for key, cell in side.cells.items()
        if PATTERNS[key.pattern].family is Family.OPERATION and cell.facts.congestor is None
    ]


def _operation(side: Side, cell: CellMeasured, confidence: float) -> Operation:
    facts, values = cell.facts, cell.launch_values
    moved = facts.operation_bytes if PATTERNS[cell.key.pattern].has_size else 0.0
    algorithm = interval(median_interval(moved * 8e9 / values, confidence)) if moved else None
    factor = bus_factor(cell.key.pattern, len(facts.ranks))

    def told(name: str) -> Interval | None:
        values = cell.values.get(name)
        return None if values is None else over_launches(values, confidence)

    missed = cell.counts["missed"]
    return Operation(
        fabric=side.name,
        key=cell.key,
        ranks=len(facts.ranks),
        launches=int(np.count_nonzero(~np.isnan(values))),
        samples=cell.pooled.size,
        time=interval(median_interval(values, confidence)),
        algorithm_bandwidth=algorithm,
        bus_factor=factor,
        bus_bandwidth=None if algorithm is None or factor is None else scaled(algorithm, factor),
        back_to_back=told("back_to_back_ns"),
        overlap=told("overlap"),
        missed_share=missed / max(missed + cell.pooled.size, 1),
        barrier_start=told("barrier_start_ns"),
        start_tolerance_ns=cell.greatest("start_tolerance_ns"),
        clock_error_ns=cell.greatest("clock_error_ns"),
    )


def find_coefficients(cells: Sequence[Comparison]) -> list[Coefficient]:
    """Return (t_B - t_A) / t_A of each operation that was compared, which is the ratio less 1, with the comparison's verdict."""

    def less_one(bound: float | None) -> float | None:
        return None if bound is None else bound - 1.0

    return [
        Coefficient(
            key=cell_key(one),
            fabric_a=one.fabric_a,
            fabric_b=one.fabric_b,
            coefficient=Interval(value=one.ratio - 1.0, low=less_one(one.ratio_low), high=less_one(one.ratio_high)),
            verdict=one.verdict,
            launches=one.launches,
        )
        for one in cells
        if PATTERNS[one.pattern].family is Family.OPERATION
    ]


def find_start_ups(sides: Sequence[Side], confidence: float) -> list[StartUp]:
    """Return what starting MPI took on the slowest rank of each launch; nothing where no launch tells."""
    found = []
    for side in sides:
        headers = [launch.summary.header for launch in side.launches if launch.summary.header is not None]
        told = [[rank.start_up_ns for rank in header.ranks if rank.start_up_ns is not None] for header in headers]
        slowest = np.array([max(times) for times in told if times], dtype=np.float64)
        if slowest.size:
            found.append(
                StartUp(
                    fabric=side.name,
                    ranks=max(len(header.ranks) for header in headers),
                    launches=slowest.size,
                    time=interval(median_interval(slowest, confidence)),
                )
            )
    return found
