"""Linpack as a workload: fabricbench-hpl, a dense system of linear equations over a grid of P x Q ranks.

It is judged by its rate in Gflop/s. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator, Mapping
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from fabricbench.quantity import Bytes, parse_bytes
from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import FigureFound, FigureOfMerit
from fabricbench.testbed.model import WITHOUT_NUL
from fabricbench.workload.adapter import Place
from fabricbench.workload.command_start import grid as square_grid
from fabricbench.workload.kernel_program import KernelProgramStart
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace
from fabricbench.workload.parameters import Argument, Arrangement, InName, Instead, declared

BLAS_VARIABLE = "FABRICBENCH_BLAS"

RATE = FigureOfMerit(name="HPL", unit="Gflop/s", better="higher")
PER_HZ = FigureOfMerit(name="flops per hertz", unit="flop/Hz", better="higher")

MOST_N, MOST_NB, MOST_THREADS = 4_000_000, 4096, 4096

FLOP_S = 10e9
"""Of one processor, with any BLAS that was made for speed."""
FACTORED = 1.5
"""Times as many bytes as the matrix has numbers to send: what panels and rows wait for each other."""


def equations_in(memory: int, ranks: int, nb: int) -> int:
    """Return how many equations take so many bytes on each rank: whole panels, as fabricbench-hpl counts with --memory."""
    most = int(sqrt(memory / 8 * ranks))
    return max(min(most // nb * nb or most, MOST_N), 1)


def expected_seconds(n: int, nb: int, p: int, q: int, pace: Pace) -> float:
    """Return what one run takes: its computing, then its bytes, then its messages in turn."""
    ranks = p * q
    computing = (2 / 3 * n + 3 / 2) * n * n / FLOP_S / pace.computing
    if ranks == 1:
        return computing
    # Each rank gets the panels of its rows, and sends and gets rows of U for its columns, half the matrix in all.
    panels = (q > 1) * n * n / 2 / p
    rows = (p > 1) * 2 * n * n / 2 / q
    moving = FACTORED * 8 * 8 * (panels + rows) / pace.line_rate_bit_s
    steps = n / nb
    messages = n * (p > 1) * p.bit_length() + steps * (2 * ranks + 8)
    return computing + moving + messages * MESSAGE_SECONDS


MEMORY = Instead(
    "memory",
    Annotated[Bytes, BeforeValidator(parse_bytes), Field(ge=8)],
    "in place of n: as many equations as take so much memory on each rank, whole panels",
    lambda memory, chosen: equations_in(memory, chosen["ranks"], chosen["nb"]),
)


class HplStart(KernelProgramStart):
    """One launch: so many equations over one grid of ranks."""

    program: ClassVar[str] = "fabricbench-hpl"
    rate: ClassVar[FigureOfMerit] = RATE
    arrangement: ClassVar[Arrangement] = Arrangement(("p", "q"), square_grid, "rows and columns of ranks", "2x4")
    kind: Literal["hpl"] = "hpl"
    n: Annotated[int, Field(ge=1, le=MOST_N), Argument("equations", instead=MEMORY)] = 2000
    nb: Annotated[int, Field(ge=1, le=MOST_NB), Argument("columns of a panel")] = 192
    p: Annotated[int, Field(ge=1), Argument("rows of ranks", short="grid")]
    q: Annotated[int, Field(ge=1), Argument("columns of ranks", short="grid")]
    depth: Annotated[Literal[0, 1], Argument("look-ahead of panels", in_name=InName.UNUSUAL)] = 1
    broadcast: Annotated[
        Literal["ring", "ring-modified", "long", "mpi"],
        Argument("how panels go along rows of the grid", in_name=InName.UNUSUAL),
    ] = "ring-modified"
    swap: Annotated[
        Literal["binary", "long"], Argument("how rows go along columns of the grid", in_name=InName.UNUSUAL)
    ] = "binary"
    threads: Annotated[
        int,
        Field(ge=1, le=MOST_THREADS),
        Argument("of the BLAS on each rank", in_name=InName.UNUSUAL, is_listed=False),
    ] = 1
    blas: Annotated[
        Annotated[str, Field(min_length=1, pattern=WITHOUT_NUL)] | None,
        Argument("a path or a name that the loader knows", in_name=InName.NEVER, is_listed=False),
    ] = None

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take."""
        return self.repetitions * expected_seconds(self.n, self.nb, self.p, self.q, pace)

    @property
    def memory_bytes(self) -> float:
        """The matrix."""
        return 8.0 * self.n * self.n

    def options(self, place: Place) -> Mapping[str, object]:
        """Return its parameters, and the BLAS where the program would not find it by itself."""
        blas = self.blas or _blas(place.build)
        return {**super().options(place), **({"blas": blas} if blas else {})}

    def rate_of(self, run: KernelRun) -> float:
        """Return what it did in Gflop/s."""
        return (run.mops_total or 0.0) / 1e3

    def figures(self, runs: list[KernelRun]) -> Iterator[FigureFound]:
        """Yield the medians over its runs; per hertz where the processor's clock is known."""
        yield from super().figures(runs)
        per_hz = [value for run in runs if (value := run.values.get("flops_per_hz")) is not None]
        if per_hz:
            yield PER_HZ.found(median(per_hz))

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield the processor's clock."""
        clock = [value for run in runs if (value := run.values.get("processor_hz")) is not None]
        if clock:
            yield "processor_hz", median(clock)

    def external_commands(self) -> Iterator[str]:
        """Yield the library that it loads, where one is named."""
        if self.blas is not None:
            yield f"{self.title}: every rank loads {self.blas}"


def _blas(build: Path | None) -> str | None:
    """Return the library that a program does not find by itself: the user's, which a starter may not pass on, or our wheel's."""
    given = os.environ.get(BLAS_VARIABLE)
    if given or build is None:
        return given or None
    wheel = Path(sysconfig.get_path("platlib")) / "scipy_openblas32" / "lib" / "libscipy_openblas.so"
    return str(wheel) if wheel.exists() else None


HPL = declared(HplStart, "Linpack: a dense system of linear equations, verified")
