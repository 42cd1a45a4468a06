"""How launches scatter, by kind of cell: what a campaign is planned with. Two measured profiles, and one taken from a run.

A profile plans, it decides nothing: verdicts rest on what the run itself scatters by.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from typing import TYPE_CHECKING

from fabricbench.model import Layer, Pattern
from fabricbench.pattern_facts import NETWORK, Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.testbed.model import LauncherKind

if TYPE_CHECKING:
    from fabricbench.statistics.planning import Components

KIB = 1024
SMALL_BYTES, LARGE_BYTES = KIB, 8 * KIB
"""Up to a KiB a message is one packet everywhere and its cost that of the software; from 8 KiB on the wire's share is steady."""


class CellKind(StrEnum):
    """What scatters alike within a layer."""

    SMALL = "times up to 1 KiB"
    MEDIUM = "times of 1 to 8 KiB"
    LARGE = "times from 8 KiB"
    RATE = "throughput"


UNKNOWN = (Family.WORKLOAD, Family.MATRIX, Family.FLOOD)


def kind_of(layer: Layer, pattern: Pattern, message_bytes: int, *, is_congested: bool = False) -> CellKind | None:
    """Return the kind of a cell; None where no profile says anything.

    That is the control, kernels, matrices, what is measured beside a congestor, and floods: where many senders lose messages and
    wait for timers, the scatter is that of the losses.
    """
    facts = PATTERNS[pattern]
    if layer is Layer.MEMORY or is_congested or facts.family in UNKNOWN:
        return None
    if not facts.metric.is_time:
        return CellKind.RATE
    return (
        CellKind.SMALL
        if message_bytes <= SMALL_BYTES
        else CellKind.MEDIUM
        if message_bytes < LARGE_BYTES
        else CellKind.LARGE
    )


@dataclass(frozen=True)
class NoiseProfile:
    """A profile: where it comes from, and by (layer, kind) the deviation between launches and within one per root of a second."""

    name: str
    source: str
    scatter: Mapping[tuple[Layer, CellKind], tuple[float, float]]

    def components(self, probe: PlanProbe) -> Components | None:
        """Return the components of a cell; None where nothing is known."""
        from fabricbench.statistics.planning import Components  # noqa: PLC0415 - SciPy is slow to import

        is_congested = probe.congestor is not None
        kind = kind_of(probe.layer, probe.pattern, probe.message_bytes, is_congested=is_congested)
        found = None if kind is None else self.scatter.get((probe.layer, kind))
        return None if found is None else Components(*found)


BELOW_MPI = tuple(layer for layer in NETWORK if layer is not Layer.MPI)


def _of_stacks(
    below: Mapping[CellKind, tuple[float, float]], mpi: Mapping[CellKind, tuple[float, float]]
) -> dict[tuple[Layer, CellKind], tuple[float, float]]:
    return {
        **{(layer, kind): found for layer in BELOW_MPI for kind, found in below.items()},
        **{(Layer.MPI, kind): found for kind, found in mpi.items()},
    }


LAB = NoiseProfile(
    name="the quiet lab",
    source=(
        "20 blocks on the lab's gigabit-ethernet and myrinet, 2 processors otherwise idle: blocking tcp and MPICH ping-pongs of "
        "64 B, 72 B, 1472 B and 16 KiB, streams of 16 and 256 KiB, 0.4 s each; all others below MPI are taken to scatter so"
    ),
    scatter=_of_stacks(
        below={
            CellKind.SMALL: (0.030, 0.009),
            CellKind.MEDIUM: (0.057, 0.010),
            CellKind.LARGE: (0.025, 0.004),
            CellKind.RATE: (0.010, 0.010),
        },
        mpi={
            CellKind.SMALL: (0.085, 0.028),
            CellKind.MEDIUM: (0.061, 0.012),
            CellKind.LARGE: (0.016, 0.004),
            CellKind.RATE: (0.003, 0.006),
        },
    ),
)
"""They give log ratios of a block the scatter that was measured: 4.7 % where it was 4.5 % (tcp, 64 B), 8.4 and 8.1 % (1472 B), 3.7
and 3.8 % (16 KiB), 13.5 % where it was 11 and 15 % (mpi, 64 and 72 B)."""

LOOPBACK_LAUNCH, LOOPBACK_SECOND = 0.029, 0.0003
"""docs/statistics.md: 2.4 % that all cells of a launch share and 1.7 % of each; samples of 20 us with 2 %, AR(1) of 0.7
(their median varies (1 + 0.7) / (1 - 0.7) times pi / 2 as much as the mean of as many independent ones)."""

LOOPBACK = NoiseProfile(
    name="loopback",
    source=(
        "24 launches of blocking tcp ping-pongs of 64 B to 16 KiB over loopback on a 2-core virtual machine (docs/statistics.md); "
        "all layers and throughput are taken to scatter as these do, and your network may do otherwise"
    ),
    scatter={(layer, kind): (LOOPBACK_LAUNCH, LOOPBACK_SECOND) for layer in NETWORK for kind in CellKind},
)


def usual_noise(launcher: LauncherKind) -> NoiseProfile:
    """Return what is assumed of a testbed where no run has told."""
    return LAB if launcher is LauncherKind.LAB else LOOPBACK


def pooled(name: str, source: str, cells: Iterable[tuple[Layer, CellKind, Components]]) -> NoiseProfile:
    """Return the profile in which a kind of cell has the mean variances of its cells."""
    found: dict[tuple[Layer, CellKind], list[Components]] = defaultdict(list)
    for layer, kind, components in cells:
        found[layer, kind].append(components)

    def deviation(values: Sequence[float]) -> float:
        return sqrt(sum(value**2 for value in values) / len(values))

    return NoiseProfile(
        name,
        source,
        {
            key: (deviation([each.launch for each in of]), deviation([each.second for each in of]))
            for key, of in found.items()
        },
    )
