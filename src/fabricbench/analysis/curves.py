"""Curves over message size of each side: which cells make one, the time of a message on it, and where first packets become full."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.instrument import impossible
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.model import Layer, Metric
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.statistics.curves import Anomaly, Curve, anomalies
from fabricbench.testbed.wire import (
    IP_HEADER_BYTES,
    RDMA_PATH_MTUS,
    TCP_HEADER_BYTES,
    UDP_HEADER_BYTES,
)

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

NEAR_PACKET = 0.9, 2.1
"""Of a packet's payload: between these a message fills its first packet and begins its second and third. Below one, as a library
adds a header of its own."""


@dataclass(frozen=True)
class MeasuredCurve:
    """The cells of one side that are alike but for their sizes, which ascend; empty messages are not among them.

    `key` is the curve's (`CellKey.curve`).
    """

    side: Side
    key: CellKey
    cells: tuple[CellMeasured, ...]

    @property
    def sizes(self) -> Floats:
        """Message sizes in bytes."""
        return np.array([cell.key.message_bytes for cell in self.cells], dtype=np.float64)

    @property
    def log_times(self) -> Floats:
        """The log times, ns, that launches took for a message, or for what the pattern times; shape (sizes, launches)."""
        return np.stack([log_time(cell) for cell in self.cells])

    @property
    def log_lower(self) -> Floats:
        """The same of the lower quartiles of launches' samples; NaN where a cell has no times. Shape (sizes, launches)."""
        nothing = np.full_like(self.cells[0].launch_values, np.nan)
        return np.stack([np.log(nothing if cell.lower is None else cell.lower) for cell in self.cells])

    @property
    def is_expected(self) -> Booleans:
        """Of each step to the next size, whether first packets become full in it.

        What several ranks exchange may be cut into a share for each, or hold a block of each.
        """
        payload = packet_payload(self.side, self.cells[0])
        if payload is None:
            return np.zeros(len(self.cells) - 1, dtype=np.bool_)
        family = PATTERNS[self.key.pattern].family
        shares = 1 if family in (Family.PAIR, Family.MATRIX) else len(self.cells[0].facts.ranks)
        low, high = NEAR_PACKET[0] * payload / shares, NEAR_PACKET[1] * payload * shares
        return (self.sizes[:-1] < high) & (self.sizes[1:] >= low)


CurveWithAnomalies = tuple[MeasuredCurve, tuple[Anomaly, ...]]


def measured_curves(side: Side, patterns: Collection[object] | None = None) -> Iterator[MeasuredCurve]:
    """Yield the curves of a side, but over memory and beside a congestor; of `patterns` alone where they are given.

    Values that cannot be are left out.
    """
    groups: dict[CellKey, list[CellMeasured]] = {}
    for key, cell in side.cells.items():
        facts = PATTERNS[key.pattern]
        if key.layer is Layer.MEMORY or key.congestor is not None or not facts.has_size or not key.message_bytes:
            continue
        if facts.family is Family.WORKLOAD or (patterns is not None and key.pattern not in patterns):
            continue
        if impossible(side, cell) is None:
            groups.setdefault(key.curve, []).append(cell)
    for key, cells in groups.items():
        yield MeasuredCurve(side, key, tuple(sorted(cells, key=lambda cell: cell.key.message_bytes)))


def curves_with_anomalies(sides: Sequence[Side], margin: float, level: float) -> tuple[CurveWithAnomalies, ...]:
    """Return every curve of some sides with its anomalies, those of all of them named together at `level` (an error: 0.05)."""
    curves = [curve for side in sides for curve in measured_curves(side)]
    found = anomalies([plain(one) for one in curves], margin, level)
    return tuple((curve, tuple(of_curve)) for curve, of_curve in zip(curves, found, strict=True))


def plain(curve: MeasuredCurve) -> Curve:
    """Return what statistics take of a curve."""
    step = max(cell.step_share for cell in curve.cells)
    return Curve(curve.sizes, curve.log_times, curve.is_expected, step)


def log_time(cell: CellMeasured) -> Floats:
    """Return the log times, ns, of what a cell times in each launch: of a rate what one message of it takes."""
    if cell.key.metric.is_time:
        return cell.log_values
    if cell.key.metric is Metric.MESSAGE_RATE:
        return np.asarray(np.log(1e9) - cell.log_values, dtype=np.float64)
    return np.asarray(np.log(8e9 * cell.key.message_bytes) - cell.log_values, dtype=np.float64)


def packet_payload(side: Side, cell: CellMeasured) -> int | None:
    """Return how much of a message goes into a packet; None where nothing tells."""
    mtu = side.fabric.mtu
    match cell.key.layer:
        case Layer.FRAME:
            return mtu
        case Layer.IP:
            return mtu - IP_HEADER_BYTES
        case Layer.UDP:
            return mtu - IP_HEADER_BYTES - UDP_HEADER_BYTES
        case Layer.TCP | Layer.MPI:
            return mtu - IP_HEADER_BYTES - TCP_HEADER_BYTES
        case Layer.RDMA:
            told = [one.path_mtu for one in cell.rdma if one.path_mtu is not None]
            return min(told, default=next((size for size in RDMA_PATH_MTUS if size < mtu), None))
    return None
