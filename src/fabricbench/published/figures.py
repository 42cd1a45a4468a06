"""Single figures of the studies in the units of our measurements, each with its condition and its source.

No number stands here: each row points to one in `studies.json`. Fabrics carry the names of the lab's presets where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from fabricbench.model import Layer, Model, Pattern
from fabricbench.published.studies import study

FE, ATM, GIGABIT, MYRINET, SCI = "fast-ethernet", "atm-oc3", "gigabit-ethernet", "myrinet", "sci"
SCI_TORUS = "sci-torus"
ROCE, INFINIBAND = "roce-100g", "infiniband-100g"
OA_ON_ATM, OA_ON_ETHERNET = "ATM, 8 nodes", "Fast Ethernet, number of nodes not told"
"""Times of the optical absorption, by their names in the study of NIST."""


class PublishedQuantity(StrEnum):
    """What a published figure is of. A `latency` is what its study calls so, one way as a rule: not our round-trip time."""

    LINE_RATE = "line_rate"
    THROUGHPUT = "throughput"
    LATENCY = "latency"
    SWITCH_ADDED_LATENCY = "switch_added_latency"
    CROSSOVER = "crossover"
    RUN_TIME = "run_time"
    RUN_RATE = "run_rate"
    AHEAD = "ahead"


class PublishedFigure(Model):
    """A figure in SI units (`unit`: ns, bit/s, s, B, Mop/s, %) with `as_published` as the study writes it.

    `fabric` is None for what no fabric takes part in, and for a crossover, which is `between` two. A range appears as two figures,
    for its lowest and its highest `end`. What of ours is of the same kind is told as far as the study tells it: the `pattern` with
    the range of its sizes, a load by its name and its ranks, one a node.
    """

    study: str
    fabric: str | None
    layer: Layer | None
    quantity: PublishedQuantity
    value: float
    unit: str
    as_published: str
    condition: str
    citation: str
    study_name: str
    year: int
    end: str = ""
    between: tuple[str, ...] = ()
    pattern: Pattern | None = None
    message_bytes: tuple[int, int] | None = None
    load: str | None = None
    ranks: int | None = None

    @property
    def condition_words(self) -> str:
        """`TCP stream, highest`."""
        return ", ".join(filter(None, (self.condition, self.end)))


class FigureSource(NamedTuple):
    """Where a figure stands and what it means."""

    study: str
    path: tuple[str | int, ...]
    unit: str
    fabric: str | None
    layer: Layer | None
    quantity: PublishedQuantity
    condition: str
    pattern: Pattern | None = None
    message_bytes: tuple[int, int] | None = None
    load: str | None = None
    ranks: int | None = None
    end: str = ""
    between: tuple[str, ...] = ()


UNITS = {
    "Mbit/s": (1e6, "bit/s"),
    "MB/s": (8e6, "bit/s"),
    "us": (1e3, "ns"),
    "s": (1.0, "s"),
    "B": (1.0, "B"),
    "Mop/s": (1.0, "Mop/s"),
    "%": (1.0, "%"),
}
"""As published -> factor and unit of ours."""


def published_figures(
    fabric: str | None = None, layer: Layer | None = None, quantity: PublishedQuantity | None = None
) -> list[PublishedFigure]:
    """Return the figures of a fabric, a layer, a quantity; None takes all of them."""
    return [
        figure
        for figure in _all()
        if fabric in {None, figure.fabric} and layer in {None, figure.layer} and quantity in {None, figure.quantity}
    ]


@cache
def _all() -> tuple[PublishedFigure, ...]:
    return tuple(_figure(source) for source in _sources())


def _figure(source: FigureSource) -> PublishedFigure:
    origin = study(source.study)
    number = origin.fact(*source.path)
    factor, unit = UNITS[source.unit]
    return PublishedFigure(
        study=source.study,
        fabric=source.fabric,
        layer=source.layer,
        quantity=source.quantity,
        value=number * factor,
        unit=unit,
        as_published=f"{number} {source.unit}",
        condition=source.condition,
        citation=origin.citation,
        study_name=origin.name,
        year=origin.year,
        end=source.end,
        between=source.between,
        pattern=source.pattern,
        message_bytes=source.message_bytes,
        load=source.load,
        ranks=source.ranks,
    )


def _sources() -> Iterator[FigureSource]:
    yield from _korkhov()
    yield from _salamon_mink()
    yield from _pisarczyk()
    yield from _abramov()
    yield from _xu()


def _korkhov() -> Iterator[FigureSource]:
    key = "korkhov-2000"
    for fabric in (FE, MYRINET):
        yield FigureSource(
            key,
            ("fabrics", fabric, "line_rate_Mbit_s"),
            "Mbit/s",
            fabric,
            None,
            PublishedQuantity.LINE_RATE,
            "one link, one direction",
        )
        for kernel in study(key).fact("npb", fabric):
            on = f"NPB {kernel}, class A, 4 ranks on 4 nodes of Pentium II 450 MHz"
            time = ("npb", fabric, kernel, 0)
            of = f"{kernel}.A"
            yield FigureSource(key, time, "s", fabric, Layer.MPI, PublishedQuantity.RUN_TIME, on, load=of, ranks=4)
            yield FigureSource(
                key, ("npb", fabric, kernel, 1), "Mop/s", fabric, Layer.MPI, PublishedQuantity.RUN_RATE, on
            )


def _salamon_mink() -> Iterator[FigureSource]:
    key = "salamon-mink-nist"
    for fabric in (FE, ATM):
        path: tuple[str | int, ...] = ("fabrics", fabric)
        yield FigureSource(
            key, (*path, "line_rate_Mbit_s"), "Mbit/s", fabric, None, PublishedQuantity.LINE_RATE, "one link"
        )
        stream, on, is_stream = (*path, "tcp_stream_Mbit_s"), "TCP stream", Pattern.STREAM
        quantity = PublishedQuantity.THROUGHPUT
        yield FigureSource(key, stream, "Mbit/s", fabric, Layer.TCP, quantity, on, is_stream, end="highest")
    for cpu in study(key).fact("memory_copy_MB_s"):
        on = f"memory copy, {cpu} MHz"
        yield FigureSource(key, ("memory_copy_MB_s", cpu), "MB/s", None, Layer.MEMORY, PublishedQuantity.THROUGHPUT, on)
    on = f"TCP ping-pong throughput: {FE} is faster below, {ATM} above"
    where: tuple[str | int, ...] = ("crossover", "bytes")
    yield FigureSource(key, where, "B", None, Layer.TCP, PublishedQuantity.CROSSOVER, on, between=(FE, ATM))
    for end, word in (("min", "lowest"), ("max", "highest")):
        on = "packets of various sizes, against a crossover cable"
        added = ("ethernet_switch_added_latency_us", end)
        yield FigureSource(key, added, "us", FE, Layer.FRAME, PublishedQuantity.SWITCH_ADDED_LATENCY, on, end=word)
    for fabric, name in ((ATM, OA_ON_ATM), (FE, OA_ON_ETHERNET)):
        where = ("applications", "optical-absorption", "time_s", name)
        yield FigureSource(
            key, where, "s", fabric, Layer.MPI, PublishedQuantity.RUN_TIME, f"optical absorption (FFT), {name}"
        )


def _pisarczyk() -> Iterator[FigureSource]:
    key = "pisarczyk-2006"
    driver = ("results", "bcm5700_default_max_Mbit_s")
    on = "bcm5700 driver with its defaults"
    yield FigureSource(key, driver, "Mbit/s", GIGABIT, None, PublishedQuantity.THROUGHPUT, on, end="highest")
    for name, unit, layer, quantity, condition in (
        ("transmitter_latency_streaming_us", "us", None, PublishedQuantity.LATENCY, "transmitter's share, streaming"),
        ("mpi_message_us", "us", Layer.MPI, PublishedQuantity.LATENCY, "one MPI message, crossover cable"),
        (
            "estimated_with_rdma_us",
            "us",
            Layer.MPI,
            PublishedQuantity.LATENCY,
            "one message with RDMA: the study's estimate",
        ),
    ):
        yield FigureSource(key, ("results", name), unit, GIGABIT, layer, quantity, condition)


SCI_PATTERNS = {
    "ping-ping": Pattern.PINGPING,
    "ping-pong": Pattern.PINGPONG,
    "send-receive": Pattern.SENDRECV,
}


def _abramov() -> Iterator[FigureSource]:
    key = "abramov-2002"
    for test in study(key).fact("mpi_over_sci", "bandwidth_MB_s"):
        where: tuple[str | int, ...] = ("mpi_over_sci", "bandwidth_MB_s", test)
        pattern = SCI_PATTERNS[test]
        quantity = PublishedQuantity.THROUGHPUT
        yield FigureSource(key, where, "MB/s", SCI, Layer.MPI, quantity, f"MPI {test}", pattern, end="highest")
        for end, word in enumerate(("lowest", "highest")):
            on = f"MPI {test}, 0 to 32 bytes, {word} over the nodes tried"
            where = ("mpi_over_sci", "latency_us_0_to_32_bytes", test, end)
            yield FigureSource(key, where, "us", SCI, Layer.MPI, PublishedQuantity.LATENCY, on, pattern, (0, 32))
    on = "first SKIF cluster (2000), SCI torus 4 x 4"
    first = "first_skif_2000"
    latency, carried = (first, "mpi_latency_us_no_worse_than"), (first, "mpi_point_to_point_MB_s_up_to")
    yield FigureSource(key, latency, "us", SCI_TORUS, Layer.MPI, PublishedQuantity.LATENCY, on)
    yield FigureSource(key, carried, "MB/s", SCI_TORUS, Layer.MPI, PublishedQuantity.THROUGHPUT, on)


def _xu() -> Iterator[FigureSource]:
    key = "xu-2024"
    for fabric, other, name, load in (
        (ROCE, INFINIBAND, "hpl_time_RoCE_ahead_percent", "HPL"),
        (ROCE, INFINIBAND, "VASP_RoCE_ahead_percent", "VASP, Fe"),
        (ROCE, INFINIBAND, "LAMMPS_RoCE_ahead_percent", "LAMMPS, in.lj"),
        (INFINIBAND, ROCE, "QE_IB_ahead_percent", "Quantum ESPRESSO, ausurf"),
    ):
        for end, word in enumerate(("lowest", "highest")):
            on, of = f"{load}, ahead of {other}", ("results", name, end)
            yield FigureSource(key, of, "%", fabric, Layer.MPI, PublishedQuantity.AHEAD, on, end=word)
