"""The part of the example findings that is about kernels of NPB. Nothing here was measured."""

from __future__ import annotations

from collections.abc import Sequence

from fabricbench.analysis.findings import (
    Distribution,
    Interval,
    KernelFindings,
    KernelName,
    KernelOnFabric,
    Sensitivity,
    SpeedUp,
    Verdict,
)
from fabricbench.model import Layer, Pattern
from support.cell_keys import cell_key

GAINS = {"IS": 4.8, "CG": 1.6, "EP": 1.0}
SECONDS = {"IS": 0.4, "CG": 2.0, "EP": 3.0}
RANKS = (1, 4)
LAUNCHES = 10


def around(value: float) -> Interval:
    return Interval(value=value, low=value * 0.97, high=value * 1.03)


def example_kernels(fabrics: Sequence[str]) -> KernelFindings:
    """Return kernels on one and four ranks; each later fabric is as much faster on four as the kernel gains by a network."""
    results, speed_ups, sensitivities = [], [], []
    for place, fabric in enumerate(fabrics):
        for name, alone in SECONDS.items():
            for ranks in RANKS:
                kernel = KernelName(benchmark=name, problem_class="W", ranks=ranks)
                slowed = 1.0 if ranks == 1 else GAINS[name] / (1 if place == 0 else GAINS[name])
                seconds = alone / ranks * slowed
                results.append(
                    KernelOnFabric(
                        fabric=fabric,
                        kernel=kernel,
                        launches=LAUNCHES,
                        seconds=around(seconds),
                        mops_total=100.0 / seconds,
                        mops_per_process=100.0 / seconds / ranks,
                        communication_share=0.0 if ranks == 1 else 1 - 1 / (1 + slowed),
                        calls={} if ranks == 1 else {"MPI_Alltoallv": 0.3, "MPI_Wait": 0.1},
                        bytes_sent=0.0 if ranks == 1 else 1e7,
                    )
                )
            kernel = KernelName(benchmark=name, problem_class="W", ranks=4)
            speed_ups.append(SpeedUp(fabric=fabric, kernel=kernel, fewest=1, speed_up=around(4 / slowed)))
    for other in fabrics[1:]:
        gains = list(GAINS.items())
        for (name, gain), (_, less) in zip(gains, [*gains[1:], ("", None)], strict=True):
            is_same = gain == 1.0
            sensitivities.append(
                Sensitivity(
                    slower=fabrics[0],
                    faster=other,
                    kernel=KernelName(benchmark=name, problem_class="W", ranks=4),
                    ratio=gain,
                    low=gain * 0.99,
                    high=gain * 1.01,
                    verdict=Verdict.EQUIVALENT if is_same else Verdict.B_FASTER,
                    launches=LAUNCHES,
                    lead=None if less is None else around(gain / less),
                )
            )
    return KernelFindings(results=tuple(results), sensitivities=tuple(sensitivities), speed_ups=tuple(speed_ups))


def few_samples(fabrics: Sequence[str]) -> list[Distribution]:
    """Three runs of a kernel on each fabric: too few for a histogram."""
    key = cell_key(Layer.MPI, Pattern.NPB, ranks=4, benchmark="IS", **{"class": "W"})
    edges = (0.9e8, 0.97e8, 1.0e8, 1.03e8, 1.1e8)
    return [
        Distribution(
            fabric=fabric,
            key=key,
            edges=tuple(edge * GAINS["IS"] / (1 + 3.8 * place) for edge in edges),
            counts=(1, 0, 1, 1),
        )
        for place, fabric in enumerate(fabrics)
    ]
