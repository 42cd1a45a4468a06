"""Sizes at which something changes by design: packets, pages, buffers, windows, protocols of MPI libraries.

What lies where a curve has an anomaly is named beside it: that both coincide is all that is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from fabricbench.analysis.curves import MeasuredCurve, packet_payload
from fabricbench.analysis.findings.thresholds import Threshold, ThresholdKind
from fabricbench.model import Layer

PAGE_BYTES = 4096
"""Of x86-64, and of most kernels for ARM."""
INITIAL_WINDOW_SEGMENTS = 10
"""What TCP sends before the first acknowledgement (RFC 6928)."""
MOST_PACKETS = 10
"""Beyond, some multiple of a packet lies between any two sizes that are measured."""


EAGER_LIMITS: tuple[tuple[str, int], ...] = (
    ("Open MPI", 4 << 10),
    ("Open MPI", 64 << 10),
    ("MPICH", 128),
    ("MPICH", 128 << 10),
    ("Intel(R) MPI", 256 << 10),
)
"""By a word of what `MPI_Get_library_version` says, the sizes up to which libraries send without asking, as their documentation
has them by default: btl_sm_eager_limit and btl_tcp_eager_limit; MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE; I_MPI_EAGER_THRESHOLD. MPICH's
first is libfabric's tcp, which acknowledges larger messages (strace of MPICH 5.0.2)."""

BUFFERS = {
    Layer.TCP: (("net.ipv4.tcp_wmem", ThresholdKind.SEND_BUFFER), ("net.ipv4.tcp_rmem", ThresholdKind.RECEIVE_BUFFER)),
    Layer.UDP: (
        ("net.core.wmem_default", ThresholdKind.SEND_BUFFER),
        ("net.core.rmem_default", ThresholdKind.RECEIVE_BUFFER),
    ),
}
BUFFERS |= {Layer.MPI: BUFFERS[Layer.TCP], Layer.IP: BUFFERS[Layer.UDP], Layer.FRAME: BUFFERS[Layer.UDP]}
"""What sockets of a layer hold at first, by the names of the kernel."""


def thresholds_between(curve: MeasuredCurve, low: float, high: float) -> tuple[Threshold, ...]:
    """Return what changes beyond a size from `low` bytes on, below `high`: a limit is the last size before its change."""
    return tuple(one for one in _thresholds(curve, low, high) if low <= one.bytes < high)


def _thresholds(curve: MeasuredCurve, low: float, high: float) -> Iterator[Threshold]:
    payload = packet_payload(curve.side, curve.cells[0])
    if payload is not None:
        first, last = math.ceil(low / payload), math.ceil(high / payload) - 1
        if 1 <= first == last <= MOST_PACKETS:
            yield Threshold(kind=ThresholdKind.PACKETS, bytes=first * payload, number=first)
        if curve.key.layer in (Layer.TCP, Layer.MPI):
            yield Threshold(kind=ThresholdKind.INITIAL_WINDOW, bytes=INITIAL_WINDOW_SEGMENTS * payload)
    yield Threshold(kind=ThresholdKind.PAGE, bytes=PAGE_BYTES)
    for name, kind in BUFFERS.get(curve.key.layer, ()):
        size = _usual_size(curve, f"sysctl.{name}")
        if size is not None:
            yield Threshold(kind=kind, bytes=size)
    if curve.key.layer is Layer.MPI:
        for library, size in EAGER_LIMITS:
            if library in _library(curve):
                yield Threshold(kind=ThresholdKind.EAGER_LIMIT, bytes=size, library=library)


def _usual_size(curve: MeasuredCurve, fact: str) -> int | None:
    """Return a kernel's size that all hosts have, of a least, a usual and a largest one the second; None where they differ."""
    values = {facts.get(fact) for facts in curve.side.run.manifest.inventory.values()}
    told = next(iter(values)) if len(values) == 1 else None
    numbers = [int(number) for number in (told or "").split() if number.isdecimal()]
    return numbers[len(numbers) // 2] if numbers else None


def _library(curve: MeasuredCurve) -> str:
    headers = (launch.summary.header for launch in curve.side.launches)
    return next((header.mpi_library for header in headers if header is not None), "")
