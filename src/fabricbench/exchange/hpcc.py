"""HPC Challenge 1 (hpccoutf.txt), its summary: Linpack, PTRANS, FFT and random access as workloads, latencies and rings.

The average ping-pong over its pairs is half a round trip of 8 bytes; a ring carries 8 or 2,000,000 bytes both ways at once, of
which latency and bandwidth stand for themselves, as tests of the network that have no pattern here. A GB is 10^9 bytes. A text
without its summary, or whose tests did not succeed, is no result (https://icl.utk.edu/hpcc).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fabricbench.exchange.imported import CellParameters, Imported, ImportedCell, ImportedLoad
from fabricbench.exchange.rows import (
    NS_OF_HALF_US,
    SECOND_NS,
    PrintedNumber,
    RowError,
    TextLine,
    TextReading,
    lines_of,
    read_number,
    read_whole,
)
from fabricbench.model import Layer, Pattern
from fabricbench.record.provenance import BY
from fabricbench.record.workload_cells import FigureOfMerit, Measures
from fabricbench.workload.hpl import RATE

NAME = "hpcc"
TITLE = "HPC Challenge"

BANNER = "HPC Challenge"
BEGIN, END = "Begin of Summary section.", "End of Summary section."
RANKS, SUCCESS = "CommWorldProcs", "Success"
TIME = re.compile(r"^Current time \((?P<seconds>\d{1,11})\) is ", re.MULTILINE)
LATENCIES = tuple(f"{which}PingPongLatency_usec" for which in ("Min", "Avg", "Max"))
LATENCY_BYTES = 8

PTRANS = FigureOfMerit(name="PTRANS", unit="GB/s", better="higher", measures=Measures.WORK_RATE)
FFT = FigureOfMerit(name="MPIFFT", unit="Gflop/s", better="higher", measures=Measures.WORK_RATE)
UPDATES = FigureOfMerit(name="MPIRandomAccess", unit="GUP/s", better="higher", measures=Measures.WORK_RATE)

RINGS: Mapping[str, tuple[str, float, FigureOfMerit]] = {
    "NaturallyOrderedRingLatency_usec": (
        "natural ring latency",
        1e-6,
        FigureOfMerit(name="latency", unit="s", better="lower"),
    ),
    "RandomlyOrderedRingLatency_usec": (
        "random ring latency",
        1e-6,
        FigureOfMerit(name="latency", unit="s", better="lower"),
    ),
    "NaturallyOrderedRingBandwidth_GBytes": (
        "natural ring bandwidth",
        1.0,
        FigureOfMerit(name="bandwidth", unit="GB/s", better="higher"),
    ),
    "RandomlyOrderedRingBandwidth_GBytes": (
        "random ring bandwidth",
        1.0,
        FigureOfMerit(name="bandwidth", unit="GB/s", better="higher"),
    ),
}
"""What each is called here, in how many of the figure's unit it is told, and the figure."""

Values = Mapping[str, str]


def is_it(text: str) -> bool:
    """Tell by its banner or its summary."""
    lines = text.split("\n")
    return any(BANNER in line for line in lines[:20] if len(line) < 200) or BEGIN in lines


def read(text: str) -> Imported:
    """Return the results of each summary of a text; ValueError where there is none."""
    found, versions = TextReading(), []
    loads: list[ImportedLoad] = []
    summaries = list(_summaries(text))
    if not summaries:
        raise ValueError(f"it has no whole summary, from {BEGIN!r} to {END!r}: it was cut short")
    for begin, values in summaries:
        versions.append(".".join(values.get(f"Version{part}", "?") for part in ("Major", "Minor", "Micro")))
        with found.row(begin):
            if values.get(SUCCESS) != "1":
                raise RowError(f"it says {SUCCESS}={values.get(SUCCESS, 'nothing')}: not all of its tests succeeded")
            ranks = read_whole(values.get(RANKS, ""), RANKS)
            with found.row(begin):
                found.cells.append(_round_trip(values, ranks))
            loads += _loads(begin, values, ranks, found)
    return Imported(
        program="HPC Challenge",
        version=", ".join(dict.fromkeys(versions)),
        statistic="one run's figures; ping-pong: the mean over pairs, twice the half round trip it prints",
        cells=tuple(found.cells),
        loads=tuple(loads),
        started_unix_ns=min((int(one["seconds"]) * SECOND_NS for one in TIME.finditer(text)), default=None),
        notes=tuple(found.notes),
    )


def _summaries(text: str) -> Iterator[tuple[TextLine, Values]]:
    """Yield each whole summary and the line that it begins with."""
    begin: TextLine | None = None
    values: dict[str, str] = {}
    for line in lines_of(text):
        if line.text == BEGIN:
            begin, values = line, {}
        elif line.text == END and begin is not None:
            yield begin, values
            begin = None
        elif begin is not None:
            name, _, value = line.text.partition("=")
            values.setdefault(name, value)


def _number(values: Values, name: str, scale: float = 1.0) -> PrintedNumber:
    if name not in values:
        raise RowError(f"its summary has no {name}")
    return read_number(values[name], name).times(scale)


def _round_trip(values: Values, ranks: int) -> ImportedCell:
    least, mean, most = (_number(values, name) for name in LATENCIES)
    if not least.value <= mean.value <= most.value:
        raise RowError("the latencies of its ping-pong do not follow one another")
    result = mean.times(NS_OF_HALF_US)
    return ImportedCell(Pattern.PAIRS, LATENCY_BYTES, (result.value,), result.step, Layer.MPI, ranks)


def _loads(begin: TextLine, values: Values, ranks: int, found: TextReading) -> Iterator[ImportedLoad]:
    """Yield what it did, one by one; what the summary does not tell, as of a test that was left out, is noted."""
    with found.row(begin):
        yield _linpack(values)
    for name, workload, figure, of_size in (
        ("PTRANS_GBs", "ptrans", PTRANS, ("PTRANS_n", "PTRANS_nb")),
        ("MPIFFT_Gflops", "mpi fft", FFT, ("MPIFFT_N",)),
        ("MPIRandomAccess_GUPs", "mpi random access", UPDATES, ("MPIRandomAccess_N",)),
    ):
        with found.row(begin):
            number = _number(values, name)
            sizes = tuple((one.rpartition("_")[2].lower(), read_whole(values.get(one, ""), one)) for one in of_size)
            yield ImportedLoad(workload, ranks, (*sizes, (BY, NAME)), figure.found(number.value, number.step))
    for name, (workload, scale, kind) in RINGS.items():
        with found.row(begin):
            number = _number(values, name, scale)
            figure = kind.model_copy(update={"measures": Measures.NETWORK})
            of_ring: CellParameters = ((BY, NAME),)
            yield ImportedLoad(workload, ranks, of_ring, figure.found(number.value, number.step))


def _linpack(values: Values) -> ImportedLoad:
    n, nb, p, q = (read_whole(values.get(f"HPL_{name}", ""), f"HPL_{name}") for name in ("N", "NB", "nprow", "npcol"))
    rate, seconds = _number(values, "HPL_Tflops", 1e3), _number(values, "HPL_time")
    expected = (2 / 3 * n + 3 / 2) * n * n / seconds.value / 1e9
    if abs(expected - rate.value) > 1e-3 * rate.value:
        raise RowError("HPL_Tflops is not that of HPL_N and HPL_time")
    parameters: CellParameters = (("n", n), ("nb", nb), ("grid", f"{p}x{q}"), (BY, NAME))
    return ImportedLoad("hpl", p * q, parameters, RATE.found(rate.value, rate.step), seconds.value)
