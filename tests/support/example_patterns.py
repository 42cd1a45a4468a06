"""The part of the example findings that is about patterns of many ranks, congestion, MPI operations, one-way latencies and pairs.

Nothing here was measured. Values follow from the wires and a few factors, so that every renderer meets each verdict, a suspect,
a confirmed cause, a lossy incast and an interval that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from fabricbench.analysis.channels import channel_rate
from fabricbench.analysis.findings import (
    Coefficient,
    Congestion,
    CongestorFacts,
    Findings,
    Interval,
    NetworkMap,
    OneWay,
    Operation,
    Slow,
    StartUp,
    Topology,
    Verdict,
)
from fabricbench.chapters.congestion import CONGESTIONS
from fabricbench.chapters.one_way import ONE_WAYS
from fabricbench.chapters.operations import COEFFICIENTS, OPERATIONS
from fabricbench.chapters.topologies import TOPOLOGIES
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.patterns import bus_factor, metric_of
from fabricbench.statistics.candidates import Touch
from fabricbench.testbed.wire import Wire
from support.cell_keys import cell_key

RANKS, LAUNCHES = 4, 10
FLOWS = (1, 4, 16, 64)
CHANNELS = {Pattern.STAR: 6, Pattern.RING: 4, Pattern.CHAOS: 12, Pattern.INCAST: 3, Pattern.BISECTION: 2}
REACHED = {Pattern.STAR: 0.97, Pattern.RING: 0.98, Pattern.CHAOS: 0.92, Pattern.INCAST: 0.99, Pattern.BISECTION: 0.96}
HOSTS = tuple(f"n{node}" for node in range(4))


class OnWire(Protocol):
    """What is needed of an example's fabric."""

    @property
    def name(self) -> str: ...
    @property
    def wire(self) -> Wire: ...
    @property
    def mtu(self) -> int: ...


def other_patterns(fabrics: Sequence[OnWire]) -> dict[str, Any]:
    """The rows of the chapters."""
    return {
        "topologies": tuple(one for fabric in fabrics for one in _topologies(fabric)),
        "congestions": tuple(
            one for place, fabric in enumerate(fabrics) for one in _congestions(fabric.name, 1 + 0.4 * place)
        ),
        "operations": tuple(
            one for place, fabric in enumerate(fabrics) for one in _operations(fabric.name, 1 - 0.3 * place)
        ),
        "coefficients": tuple(one for fabric in fabrics[1:] for one in _coefficients(fabrics[0].name, fabric.name)),
        "start_ups": tuple(
            StartUp(fabric=fabric.name, ranks=RANKS, launches=LAUNCHES, time=around(84e6, 0.03)) for fabric in fabrics
        ),
        "one_ways": tuple(
            one for place, fabric in enumerate(fabrics) for one in _one_ways(fabric.name, 1 - 0.2 * place)
        ),
        "maps": tuple(_map(fabric.name, place) for place, fabric in enumerate(fabrics)),
    }


def small_patterns(whole: Findings) -> dict[str, Any]:
    """A row or two of each, for golden files."""
    return {
        "topologies": tuple(
            one
            for one in TOPOLOGIES.of(whole)
            if one.key.pattern in (Pattern.RING, Pattern.INCAST, Pattern.EXCHANGE)
            and one.flows in (1, 16)
            and one.key.layer is Layer.TCP
        ),
        "congestions": tuple(one for one in CONGESTIONS.of(whole) if one.congestor.flows == 16),
        "operations": tuple(
            one for one in OPERATIONS.of(whole) if one.key.pattern in (Pattern.ALLREDUCE, Pattern.BARRIER)
        ),
        "coefficients": tuple(
            one for one in COEFFICIENTS.of(whole) if one.key.pattern in (Pattern.ALLREDUCE, Pattern.BARRIER)
        ),
        "one_ways": tuple(
            one for one in ONE_WAYS.of(whole) if one.key.layer is Layer.TCP and one.key.message_bytes == 64
        ),
    }


def around(value: float, width: float) -> Interval:
    """An interval of that relative width on either side."""
    return Interval(value=value, low=value * (1 - width), high=value * (1 + width))


def _topologies(fabric: OnWire) -> Iterable[Topology]:
    for layer, size in ((Layer.UDP, 1472), (Layer.TCP, 65536), (Layer.MPI, 65536)):
        for pattern, reached in REACHED.items():
            for flows in FLOWS if pattern is Pattern.INCAST else (1,):
                channels = CHANNELS[pattern] * flows
                rate = channel_rate(fabric.wire, fabric.mtu, layer, pattern, size, ranks=RANKS, flows=flows)
                assert rate is not None
                share = reached * (1 - 0.02 * FLOWS.index(flows))
                yield Topology(
                    fabric=fabric.name,
                    key=cell_key(layer, pattern, size, RANKS, **({"flows": flows} if flows > 1 else {})),
                    ranks=RANKS,
                    flows=flows,
                    channels=channels,
                    launches=LAUNCHES,
                    throughput=around(rate * share * channels, 0.01),
                    channel_throughput=around(rate * share, 0.01),
                    arithmetic=rate,
                    share_of_arithmetic=around(share, 0.01),
                    time=None,
                    fairness=around(1 - 0.003 * flows, 0.002),
                    loss_share=around(0.66, 0.01) if layer is Layer.UDP and pattern is Pattern.INCAST else None,
                )
        rate = 0.6 * fabric.wire.line_rate_bit_s
        yield Topology(
            fabric=fabric.name,
            key=cell_key(layer, Pattern.EXCHANGE, size, RANKS),
            ranks=RANKS,
            flows=1,
            channels=8,
            launches=LAUNCHES,
            throughput=around(8 * rate, 0.02),
            channel_throughput=around(rate, 0.02),
            arithmetic=None,
            share_of_arithmetic=None,
            time=around(size * 8e9 / rate, 0.02),
            fairness=None,
            loss_share=None,
        )


def _congestions(fabric: str, factor: float) -> Iterable[Congestion]:
    for layer, pattern, size, alone in (
        (Layer.TCP, Pattern.PINGPONG, 64, 110e3),
        (Layer.TCP, Pattern.STREAM, 65536, 90e6),
        (Layer.MPI, Pattern.PINGPONG, 64, 130e3),
    ):
        for congesting in (1024, 65536):
            for flows in FLOWS:
                impact = 1 + factor * (0.5 + flows**0.5) * (1.5 if congesting > 1024 else 0.2)
                is_time = metric_of(pattern).is_time
                if congesting == 1024 and flows == 1:
                    impact = 1.003  # the idle control
                yield Congestion(
                    fabric=fabric,
                    key=cell_key(layer, pattern, size),
                    congestor=CongestorFacts(
                        layer=layer,
                        pattern=Pattern.INCAST,
                        message_bytes=congesting,
                        flows=flows,
                        ranks=(5, 2, 3),
                        is_idle=congesting == 1024 and flows == 1,
                    ),
                    launches=LAUNCHES,
                    samples_a_launch=800 if is_time else 40,
                    isolated=around(alone, 0.01),
                    congested=around(alone * impact if is_time else alone / impact, 0.05),
                    impact=around(impact, 0.06),
                    impact_p99=around(impact * 1.7, 0.15),
                    impact_p999=None if not is_time and flows == 64 else around(impact * 2.4, 0.4),
                )


def _operations(fabric: str, factor: float) -> Iterable[Operation]:
    for pattern, sizes, base in (
        (Pattern.BARRIER, (0,), 190e3),
        (Pattern.BCAST, (8, 1024, 65536), 120e3),
        (Pattern.ALLREDUCE, (8, 1024, 65536), 230e3),
        (Pattern.ALLTOALL, (8, 1024, 65536), 260e3),
        (Pattern.PUT, (8, 65536), 150e3),
    ):
        for size in sizes:
            time = (base + size * 80 * (RANKS if pattern is Pattern.ALLTOALL else 1)) * factor
            ranks = 2 if pattern is Pattern.PUT else RANKS
            moved = size * (RANKS if pattern is Pattern.ALLTOALL else 1)
            algorithm = around(moved * 8e9 / time, 0.02) if size else None
            bus = bus_factor(pattern, ranks)
            for mode in ({}, {"mode": "nonblocking"}) if pattern is Pattern.ALLREDUCE else ({},):
                yield Operation(
                    fabric=fabric,
                    key=cell_key(Layer.MPI, pattern, size, ranks, **mode),
                    ranks=ranks,
                    launches=LAUNCHES,
                    samples=4200,
                    time=around(time, 0.02),
                    algorithm_bandwidth=algorithm,
                    bus_factor=bus,
                    bus_bandwidth=around(algorithm.value * bus, 0.02) if algorithm and bus else None,
                    back_to_back=around(0.81 * time, 0.02) if ranks > 2 else None,
                    overlap=around(0.62, 0.08) if mode else None,
                    missed_share=0.014,
                    barrier_start=around(0.9 * time, 0.02) if ranks > 2 else None,
                    start_tolerance_ns=0.08 * time,
                    clock_error_ns=0.0,
                )


def _coefficients(a: str, b: str) -> Iterable[Coefficient]:
    looks: list[tuple[float, Verdict]] = [(-0.42, Verdict.B_FASTER), (0.18, Verdict.A_FASTER)]
    looks += [(0.004, Verdict.EQUIVALENT), (-0.05, Verdict.NOT_ENOUGH_DATA), (-0.03, Verdict.B_AHEAD)]
    for place, one in enumerate(_operations(a, 1.0)):
        value, verdict = looks[place % len(looks)]
        width = 0.2 if verdict is Verdict.NOT_ENOUGH_DATA else 0.01
        is_short = place == 7
        yield Coefficient(
            key=one.key,
            fabric_a=a,
            fabric_b=b,
            coefficient=Interval(
                value=value, low=None if is_short else value - width, high=None if is_short else value + width
            ),
            verdict=Verdict.NOT_ENOUGH_DATA if is_short else verdict,
            launches=2 if is_short else LAUNCHES,
        )


def _one_ways(fabric: str, factor: float) -> Iterable[OneWay]:
    for layer in (Layer.UDP, Layer.TCP):
        for size in (64, 1472):
            forth, back = factor * (42e3 + size * 80), factor * (61e3 + size * 80)
            is_shared = layer is Layer.TCP
            yield OneWay(
                fabric=fabric,
                key=cell_key(layer, Pattern.ONEWAY, size),
                source=0,
                destination=1,
                launches=LAUNCHES,
                forth=around(forth, 0.01),
                back=around(back, 0.01),
                total=around(forth + back, 0.008),
                round_trip=around(forth + back + 700, 0.008),
                asymmetry=Interval(value=forth - back, low=(forth - back) * 1.03, high=(forth - back) * 0.97),
                clock_bound_ns=0.0 if is_shared else 1400.0,
                clock_bound_begin_ns=0.0 if is_shared else 900.0,
                clock_bound_end_ns=0.0 if is_shared else 1400.0,
                is_shared_clock=is_shared,
            )


def _map(fabric: str, place: int) -> NetworkMap:
    slow_host, is_confirmed = (3, True) if place == 0 else (1, False)
    matrix = tuple(
        tuple(
            None if one == other else (90e6 - 1e6 * ((one * 3 + other) % 4)) * (0.8 if slow_host in (one, other) else 1)
            for other in range(len(HOSTS))
        )
        for one in range(len(HOSTS))
    )
    cause = Slow(
        touch=Touch.MEMBER,
        hosts=(HOSTS[slow_host],),
        slower=0.2,
        slower_low=0.17,
        slower_high=0.23,
        is_confirmed=is_confirmed,
    )
    return NetworkMap(
        fabric=fabric,
        layer=Layer.TCP,
        pattern=Pattern.PAIRS_STREAM,
        schedule="alone",
        message_bytes=65536,
        metric=Metric.THROUGHPUT,
        launches=LAUNCHES,
        hosts=HOSTS,
        matrix=matrix,
        slow=(cause,),
        is_judged=True,
        is_measured_again=is_confirmed,
    )
