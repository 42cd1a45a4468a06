"""The five studies: where each is measured, what it found, what it drew."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.studies.found import (
    Agreement,
    Found,
    Plot,
    Study,
    above,
    holds,
    interval_words,
    inverse,
    kernel_ratio,
    largest,
    load_ratio,
    load_ratios,
    median,
    pairs_in_order,
    spanned,
    within,
)

from fabricbench.analysis.findings import Findings, Interval
from fabricbench.chapters.topologies import TOPOLOGIES
from fabricbench.chapters.workload_tables import FIGURES, PER_HERTZ, RATIOS
from fabricbench.model import Layer, Pattern
from fabricbench.published import published_kernels
from fabricbench.published.figures import OA_ON_ATM, OA_ON_ETHERNET
from fabricbench.published.loads import published_flops_per_hertz
from fabricbench.published.studies import Study as Published

FE, MYRINET, ATM, SCI, TORUS = "fast-ethernet", "myrinet", "atm-oc3", "sci", "sci-torus"
ROCE, INFINIBAND = "roce-100g", "infiniband-100g"
WITHOUT, COALESCED = "off", "on"
NEARLY = 1.1
STREAMED_BYTES = 1472
ONE_SIZE = "fft*,shared*,speech"
"""The loads of NIST that are measured in one size; the boxes are in several."""
MEGA = 1e6
MEGABYTE = 8e6
"""Bits."""


def _in(unit: float, interval: Interval) -> Interval:
    low, high = (None if end is None else end / unit for end in (interval.low, interval.high))
    return Interval(value=interval.value / unit, low=low, high=high)


def _korkhov(_: Published, findings: Findings) -> Iterator[Found]:
    here = {one.workload.own.get("benchmark") for one in RATIOS.of(findings)}
    kernels = [(one.benchmark, one.ratio) for one in published_kernels() if one.benchmark in here]
    gains = {name: kernel_ratio(findings, name, MYRINET) for name, _ in kernels}
    alike, pairs = pairs_in_order([gain for _, gain in kernels], [gains[name].value for name, _ in kernels])
    ours = sorted(gains, key=lambda name: -gains[name].value)
    yield Found(
        "order of the kernels by gain, class A",
        ", ".join(name for name, _ in kernels),
        f"{', '.join(ours)}: {alike} of {pairs} pairs in the same order",
        Agreement.YES if alike == pairs else Agreement.NO,
    )
    for name, gain in kernels:
        yield Found(
            f"NPB {name}.A: times as long on Fast Ethernet as on Myrinet",
            f"{gain:.2f}",
            interval_words(gains[name]),
            Agreement.OTHER_MACHINE,
        )
    for topology in TOPOLOGIES.of(findings):
        if topology.key.layer is Layer.TCP:
            yield Found(
                f"{topology.key.pattern} of {topology.ranks} nodes, TCP, {topology.fabric}: Mbit/s of a channel",
                "-",
                interval_words(_in(MEGA, topology.channel_throughput)),
                Agreement.NOT_TOLD,
            )


def _salamon_mink(of: Published, findings: Findings) -> Iterator[Found]:
    for fabric in (FE, ATM):
        told = of.fact("fabrics", fabric, "tcp_stream_Mbit_s")
        here = _in(MEGA, largest(findings, fabric, Layer.TCP, Pattern.STREAM))
        is_near = abs(here.value / told - 1) <= 0.05
        yield Found(
            f"highest TCP stream on {fabric}, Mbit/s, within 5 %",
            f"{told:g}",
            interval_words(here, 4),
            Agreement.YES if is_near else Agreement.NO,
        )
    bytes_told = of.fact("crossover", "bytes")
    crossed = [one for one in findings.crossovers if (one.layer, one.pattern) == (Layer.TCP, Pattern.PINGPONG)]
    yield Found(
        "TCP ping-pong: Fast Ethernet ahead below, ATM above",
        f"{bytes_told / 1024:g} KiB",
        "; ".join(
            f"{one.faster_below} below {one.lower_bytes / 1024:g} KiB, {one.faster_above} above {one.upper_bytes / 1024:g} KiB"
            for one in crossed
        )
        or "no crossover was found",
        Agreement.BUILT_FROM_IT,
    )
    absorption, decomposition = (of.fact("applications", name) for name in ("optical-absorption", "3dmd"))
    times, gain = absorption["time_s"], 1 + absorption["ATM_faster_than_FE_percent"] / 100
    most = times[OA_ON_ETHERNET] / times[OA_ON_ATM]
    here = load_ratio(findings, "fft-convolution", 4)
    yield Found(
        "optical absorption (here fft-convolution): times as long on Fast Ethernet, between the two published ones",
        f"{gain:.2f} by its text, {most:.2f} by its times",
        interval_words(here),
        within(here, gain, most),
    )
    told = 1 + decomposition["ATM_faster_than_FE_percent"] / 100
    here = spanned(load_ratios(findings, "elliptic", 4))
    yield Found(
        "3-D matrix decomposition (here elliptic, with 10 to 40 sweeps between exchanges): times as long on Fast Ethernet",
        f"{told:.2f}, its share of computing is not told",
        interval_words(here),
        holds(told, here),
    )
    lu, rays = (load_ratio(findings, name, 4) for name in ("shared-lu", "shared-raytrace"))
    yield Found(
        "shared memory in software: what LU feels of the network, and Raytrace",
        "LU badly, Raytrace well",
        f"LU {interval_words(lu)} times as long on Fast Ethernet, Raytrace {interval_words(rays)}",
        Agreement.NOT_TOLD,
    )


def _pisarczyk(of: Published, findings: Findings) -> Iterator[Found]:
    for layer in (Layer.UDP, Layer.TCP, Layer.MPI):
        single, coalesced = (
            _in(2000, median(findings, fabric, layer, Pattern.PINGPONG, 64)) for fabric in (WITHOUT, COALESCED)
        )
        rate = median(findings, COALESCED, layer, Pattern.STREAM, STREAMED_BYTES)
        streamed = _in(1 / (8 * MEGA * STREAMED_BYTES), inverse(rate))
        yield Found(
            f"{layer}: a single message of 64 B with coalescing, one way, us",
            "much longer than one of a stream",
            f"{interval_words(coalesced)}, one of {STREAMED_BYTES:,} B of a stream {interval_words(streamed)}; "
            f"a single one without coalescing {interval_words(single)}",
            above(coalesced, streamed),
        )
    message = of.fact("results", "mpi_message_us")
    here = _in(2000, median(findings, WITHOUT, Layer.MPI, Pattern.PINGPONG, 64))
    yield Found("an MPI message, us", f"{message:g}", interval_words(here), Agreement.OTHER_MACHINE)
    most = of.fact("results", "bcm5700_default_max_Mbit_s")
    here = _in(MEGA, largest(findings, WITHOUT, Layer.TCP, Pattern.STREAM))
    yield Found("highest throughput, Mbit/s", f"{most:g}, by its driver", interval_words(here), Agreement.OTHER_MACHINE)


def _abramov(of: Published, findings: Findings) -> Iterator[Found]:
    told = of.fact("mpi_over_sci", "bandwidth_MB_s")
    latencies = of.fact("mpi_over_sci", "latency_us_0_to_32_bytes")
    patterns = {"ping-ping": Pattern.PINGPING, "send-receive": Pattern.SENDRECV, "ping-pong": Pattern.PINGPONG}
    trips = {name: _in(1000, median(findings, SCI, Layer.MPI, one, 2**20)) for name, one in patterns.items()}
    carried = {name: (2 if name == "ping-pong" else 1) * 2**20 / trip.value for name, trip in trips.items()}
    for name, pattern in patterns.items():
        yield Found(
            f"{name} of 1 MiB over MPI, MB/s each way",
            f"{told[name]:g}",
            f"{carried[name]:.3g}",
            Agreement.BUILT_FROM_IT,
        )
        halves = 2 if name == "ping-pong" else 1
        small = [
            _in(1000 * halves, median(findings, SCI, Layer.MPI, pattern, size)).value for size in (0, 4, 8, 16, 32)
        ]
        low, high = latencies[name]
        yield Found(
            f"{name} of 0 to 32 B, us",
            f"{low:g} to {high:g}",
            f"{min(small):.3g} to {max(small):.3g}",
            Agreement.OTHER_MACHINE,
        )
    processors = sorted(published_flops_per_hertz(), key=lambda one: -one.flops_per_hertz)
    results = FIGURES.of(findings)
    here = [one.level for one in results if (one.figure, one.fabric, one.workload.ranks) == (PER_HERTZ, SCI, 1)]
    names = sorted({facts["cpu.model"] for facts in findings.inventory.values()})
    yield Found(
        "Linpack, operations in a cycle of the processor's clock, the most first",
        "; ".join(f"{one.processor} {one.flops_per_hertz:g}" for one in processors),
        "; ".join(f"{', '.join(names)} {interval_words(one)}" for one in here),
        Agreement.OTHER_MACHINE,
    )


def _xu(of: Published, findings: Findings) -> Iterator[Found]:
    for one in findings.cells:
        if one.pattern is Pattern.INCAST and one.kind == "cell":
            flows = dict(one.parameters).get("flows", 1)
            low, high = one.ratio_low, one.ratio_high
            here = Interval(value=one.ratio, low=low, high=high)
            is_near = within(here, 1 / NEARLY, NEARLY)
            yield Found(
                f"incast over {flows} flows each, {one.message_bytes} B: InfiniBand over RoCE, within {100 * (NEARLY - 1):.0f} %",
                of.fact("results", "congestion_bandwidth"),
                interval_words(here),
                # Both classes have the rate that the study tells, and buffers that drop nothing.
                Agreement.BUILT_FROM_IT if is_near is Agreement.YES else is_near,
            )
    low, high = of.fact("results", "hpl_time_RoCE_ahead_percent")
    for name, told in (
        ("hpl", f"RoCE ahead by {low:g} to {high:g} %"),
        ("hpcg", of.fact("results", "hpcg")),
    ):
        here = load_ratio(findings, name, 4)
        yield Found(
            f"{name}: times as long on RoCE as on InfiniBand", told, interval_words(here), Agreement.DIFFERENT_WORK
        )
    gain = kernel_ratio(findings, "IS", INFINIBAND)
    yield Found(
        "NPB IS: times as long on RoCE as on InfiniBand",
        of.fact("results", "npb_is"),
        interval_words(gain),
        Agreement.DIFFERENT_WORK,
    )


STUDIES = (
    Study(
        "korkhov-2000",
        f"lab:{FE},{MYRINET}",
        4,
        _korkhov,
        (
            Plot("streams", "Streams at each layer.", ("--y", "throughput", "--where", "pattern=stream")),
            Plot("npb", "Seconds of the kernels, class A.", ("--y", "seconds", "--x", "load", "--kind", "bars")),
        ),
    ),
    Study(
        "salamon-mink-nist",
        f"lab:{FE},{ATM}",
        4,
        _salamon_mink,
        (
            Plot(
                "pingpong",
                "Throughput of a TCP ping-pong.",
                ("--y", "throughput", "--where", "pattern=pingpong", "--where", "layer=tcp"),
            ),
            Plot("streams", "TCP streams.", ("--y", "throughput", "--where", "pattern=stream", "--published")),
            Plot(
                "nodes",
                "Time of the transforms over nodes.",
                ("--y", "seconds", "--x", "nodes", "--where", "load=fft*", "--log", "both"),
            ),
            Plot(
                "elliptic",
                "Time of the boxes over nodes.",
                (
                    "--y",
                    "seconds",
                    "--x",
                    "nodes",
                    "--where",
                    "load=elliptic*",
                    "--where",
                    "sweeps=10",
                    "--log",
                    "both",
                ),
            ),
            Plot(
                "seconds",
                "Seconds of the loads of one size on four nodes.",
                (
                    "--y",
                    "seconds",
                    "--x",
                    "load",
                    "--kind",
                    "bars",
                    "--where",
                    "ranks=4",
                    "--where",
                    f"load={ONE_SIZE}",
                ),
            ),
        ),
    ),
    Study(
        "abramov-2002",
        f"lab:{SCI},{TORUS}",
        4,
        _abramov,
        (
            Plot(
                "patterns",
                "Throughput over MPI of three patterns on sci.",
                (
                    "--y",
                    "throughput",
                    "--where",
                    "pattern=pingpong,pingping,sendrecv",
                    "--where",
                    f"fabric={SCI}",
                    "--units",
                    "MB/s",
                    "--published",
                ),
            ),
            Plot(
                "small",
                "Time of the two patterns of which both ranks send at once, 0 to 32 B.",
                (
                    "--y",
                    "time",
                    "--where",
                    "pattern=pingping,sendrecv",
                    "--where",
                    "size=0,4,8,16,32",
                    "--where",
                    f"fabric={SCI}",
                ),
            ),
            Plot("linpack", "Linpack.", ("--y", "rate", "--x", "ranks", "--kind", "bars", "--where", "load=hpl*")),
        ),
    ),
    Study(
        "pisarczyk-2006",
        f"lab:{WITHOUT}=gigabit-crossover,{COALESCED}=gigabit-crossover:coalesce=100us",
        2,
        _pisarczyk,
        (
            Plot(
                "layers",
                "Throughput of a ping-pong in frames, over TCP and MPI, without coalescing.",
                (
                    "--y",
                    "throughput",
                    "--where",
                    "pattern=pingpong",
                    "--where",
                    "layer=frame,tcp,mpi",
                    "--where",
                    f"fabric={WITHOUT}",
                ),
            ),
            Plot(
                "single",
                "Half a round trip with coalescing and without.",
                ("--y", "half-round-trip", "--where", "pattern=pingpong", "--where", "layer=udp,tcp"),
            ),
        ),
    ),
    Study(
        "xu-2024",
        f"lab:{ROCE},{INFINIBAND}",
        4,
        _xu,
        (
            Plot("incast", "Incast by flows.", ("--y", "throughput", "--x", "flows", "--where", "pattern=incast")),
            Plot("seconds", "Seconds of the loads.", ("--y", "seconds", "--x", "load", "--kind", "bars")),
            Plot(
                "coefficient",
                "(t_IB - t_RoCE) / t_RoCE of collectives.",
                ("--y", "coefficient", "--where", "pattern=allreduce,alltoall", "--baseline", ROCE),
            ),
        ),
    ),
)
"""Oldest first but for that of 1999, in the order of the page."""
