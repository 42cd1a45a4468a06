"""The part of the example findings that is about all workloads together. Nothing here was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fabricbench.analysis.findings import Distribution, Interval, Verdict, WorkloadName
from fabricbench.analysis.findings.loads import Agreement, Limit, LoadExpectation, LoadOnFabric, LoadRatio, LoadSpeedUp
from fabricbench.model import Layer, Model, Pattern
from support.cell_keys import cell_key

LAUNCHES = 10


def npb(benchmark: str) -> WorkloadName:
    return WorkloadName(ranks=4, parameters=(("benchmark", benchmark), ("class", "W")))


LINPACK = WorkloadName(ranks=4, parameters=(("workload", "hpl"), ("n", 2000), ("figure", "HPL"), ("unit", "Gflop/s")))
LOADS = {
    "IS.W on 4 ranks": npb("IS"),
    "CG.W on 4 ranks": npb("CG"),
    f"{LINPACK}": LINPACK,
    "EP.W on 4 ranks": npb("EP"),
}
GAINS = {
    "IS.W on 4 ranks": (4.8, 5.6),
    "CG.W on 4 ranks": (1.6, 1.6),
    f"{LINPACK}": (1.3, 1.3),
    "EP.W on 4 ranks": (1.0, 1.0),
}
"""Measured, and expected from bytes."""


def around(value: float) -> Interval:
    return Interval(value=value, low=value * 0.97, high=value * 1.03)


def example_loads(fabrics: Sequence[str]) -> dict[str, tuple[dict[str, Any], ...]]:
    """Return the chapter's rows: each later fabric is as much better as the workload gains by a network."""
    first, *others = fabrics
    ratios = [_ratio(load, first, other) for other in others for load in LOADS]
    results = [_on_fabric(load, fabric, place) for load in LOADS for place, fabric in enumerate(fabrics)]
    speed_ups = [_speed_up(load, fabric, place) for load in LOADS for place, fabric in enumerate(fabrics)]
    return {
        "workloads": rows(results),
        "workload-ratios": rows(ratios),
        "workload-speed-up": rows(speed_ups),
    }


def rows(found: Sequence[Model]) -> tuple[dict[str, Any], ...]:
    return tuple(one.model_dump(mode="json") for one in found)


def _ratio(load: str, slower: str, faster: str) -> LoadRatio:
    gain, expected = GAINS[load]
    is_same = gain == 1.0
    return LoadRatio(
        load=load,
        workload=LOADS[load],
        slower=slower,
        faster=faster,
        ratio=gain,
        low=gain * 0.99,
        high=gain * 1.01,
        verdict=Verdict.EQUIVALENT if is_same else Verdict.B_FASTER,
        launches=LAUNCHES,
        lead=None if is_same else around(2.0),
        is_settled=not is_same,
        expectation=LoadExpectation(
            bytes_from="the profile of its MPI calls",
            payload_bytes=1e7,
            messages=None,
            seconds_faster=0.2,
            network_seconds_faster=0.0625,
            network_seconds_slower=0.8,
            expected_seconds_slower=0.2 * expected,
            ratio=Interval(value=expected, low=expected * 0.99, high=expected * 1.01),
            measured_over_expected=Interval(
                value=gain / expected, low=gain / expected * 0.99, high=gain / expected * 1.01
            ),
            agreement=Agreement.LESS if expected > gain else Agreement.WITHIN,
        ),
        limits=(Limit(what="4 ranks share 1 processor"),),
    )


def _on_fabric(load: str, fabric: str, place: int) -> LoadOnFabric:
    gain = 1.0 if place == 0 else GAINS[load][0]
    is_rate = load == f"{LINPACK}"
    return LoadOnFabric(
        load=load,
        workload=LOADS[load],
        fabric=fabric,
        launches=LAUNCHES,
        figure="HPL" if is_rate else "time",
        unit="Gflop/s" if is_rate else "s",
        level=around(2.0 * gain if is_rate else 1.0 / gain),
        seconds=around(1.0 / gain),
        communication_share=0.5 / gain,
        calls={"MPI_Alltoallv": 0.3 / gain, "MPI_Wait": 0.1 / gain},
        bytes_sent=1e7,
        mops_total=None if is_rate else 100.0 * gain,
        mops_per_process=None if is_rate else 25.0 * gain,
    )


def _speed_up(load: str, fabric: str, place: int) -> LoadSpeedUp:
    times = 2.0 if place == 0 else 2.6
    subject = "hpl, n=2000" if load == f"{LINPACK}" else LOADS[load].short
    return LoadSpeedUp(
        load=load,
        workload=LOADS[load],
        fabric=fabric,
        ranks=4,
        nodes=4,
        fewest=1,
        is_weak=False,
        times=around(times),
        efficiency=around(times / 4),
        subject=subject,
    )


def few_samples(fabrics: Sequence[str]) -> list[Distribution]:
    """Three runs of a kernel on each fabric: too few for a histogram."""
    key = cell_key(Layer.MPI, Pattern.NPB, ranks=4, benchmark="IS", **{"class": "W"})
    edges = (0.9e8, 0.97e8, 1.0e8, 1.03e8, 1.1e8)
    return [
        Distribution(
            fabric=fabric,
            key=key,
            edges=tuple(edge * 4.8 / (1 + 3.8 * place) for edge in edges),
            counts=(1, 0, 1, 1),
        )
        for place, fabric in enumerate(fabrics)
    ]
