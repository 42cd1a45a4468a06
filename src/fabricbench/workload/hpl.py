"""Linpack as a workload: fabricbench-hpl, a dense system of linear equations over a grid of P x Q ranks.

[[workload]]
kind = "hpl"
n = [4000, 8000]             # equations; default 2000
memory = "1GiB"              # in place of n: as many as take so much memory on each rank
nb = 192                     # columns of a panel; all of these may be lists
grid = ["1x4", "2x2"]        # P x Q of the ranks; default the most square one of `ranks`
ranks = [1, 4]               # default "all": one on each node
depth = 1                    # look-ahead: 1 or 0
broadcast = "ring-modified"  # of panels; or "ring", "long", "mpi"
swap = "binary"              # of rows; or "long"
threads = 1                  # of the BLAS on each rank
blas = "libopenblas.so.0"    # default: FABRICBENCH_BLAS, else that of the wheel scipy-openblas32
repetitions = 3              # runs in one start

It is judged by its rate in Gflop/s. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Iterator, Mapping
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from fabricbench.quantity import Bytes, parse_bytes
from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import Figure, FigureFound
from fabricbench.testbed.model import WITHOUT_NUL
from fabricbench.workload.adapter import Kind, LeftOut, Place, Ranks, Seats, Start, WorkloadTable, seated
from fabricbench.workload.command_start import grid as square_grid
from fabricbench.workload.kernel_program import EACH_ONCE, ONE_OR_MORE, KernelProgramStart
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace

BLAS_VARIABLE = "FABRICBENCH_BLAS"

RATE = Figure(name="HPL", unit="Gflop/s", better="higher")
TIME = Figure(name="time", unit="s", better="lower")
PER_HZ = Figure(name="flops per hertz", unit="flop/Hz", better="higher")

USUAL_N, USUAL_NB = 2000, 192
MOST_N, MOST_NB, MOST_THREADS = 4_000_000, 4096, 4096

FLOP_S = 10e9
"""Of one processor, with any BLAS that was made for speed."""
FACTORED = 1.5
"""Times as many bytes as the matrix has numbers to send: what panels and rows wait for each other."""

Broadcast = Literal["ring", "ring-modified", "long", "mpi"]
Swap = Literal["binary", "long"]


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


class HplStart(KernelProgramStart):
    """One launch: so many equations over one grid of ranks."""

    program: ClassVar[str] = "fabricbench-hpl"
    rate: ClassVar[Figure] = RATE
    kind: Literal["hpl"] = "hpl"
    n: int = Field(ge=1, le=MOST_N)
    nb: int = Field(ge=1, le=MOST_NB)
    p: int = Field(ge=1)
    q: int = Field(ge=1)
    depth: Literal[0, 1] = 1
    broadcast: Broadcast = "ring-modified"
    swap: Swap = "binary"
    threads: int = Field(default=1, ge=1, le=MOST_THREADS)
    blas: Annotated[str, Field(pattern=WITHOUT_NUL)] | None = None

    @model_validator(mode="after")
    def _grid_has_the_ranks(self) -> HplStart:
        if self.p * self.q != self.ranks:
            raise ValueError(f"ranks: found {self.ranks}, needed {self.p} x {self.q} = {self.p * self.q}")
        return self

    @property
    def values(self) -> dict[str, str | int | float]:
        """What tells its cell apart besides the ranks; what is at its default is left out, but for n, NB and the grid."""
        values: dict[str, str | int | float] = {"n": self.n, "nb": self.nb, "grid": f"{self.p}x{self.q}"}
        for name in ("depth", "broadcast", "swap", "threads"):
            if getattr(self, name) != type(self).model_fields[name].default:
                values[name] = getattr(self, name)
        return values

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take."""
        return self.repetitions * expected_seconds(self.n, self.nb, self.p, self.q, pace)

    @property
    def memory_bytes(self) -> float:
        """The matrix."""
        return 8.0 * self.n * self.n

    def essence(self, place: Place) -> object:
        """Return what it is told but for the BLAS, which is looked for where it starts."""
        del place
        return self.model_dump_json()

    def options(self, place: Place) -> Mapping[str, object]:
        """Return its parameters, and the BLAS where the program would not find it by itself."""
        names = ("n", "nb", "p", "q", "depth", "broadcast", "swap", "threads")
        blas = self.blas or _blas(place.build)
        return {**{name: getattr(self, name) for name in names}, **({"blas": blas} if blas else {})}

    def figures(self, runs: list[KernelRun]) -> Iterator[FigureFound]:
        """Yield the medians over its runs; per hertz where the processor's clock is known."""
        yield RATE.found(median((run.mops_total or 0.0) / 1e3 for run in runs))
        yield TIME.found(median(run.seconds for run in runs))
        per_hz = [value for run in runs if (value := run.values.get("flops_per_hz")) is not None]
        if per_hz:
            yield PER_HZ.found(median(per_hz))

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield the processor's clock."""
        clock = [value for run in runs if (value := run.values.get("processor_hz")) is not None]
        if clock:
            yield "processor_hz", median(clock)

    def beyond(self) -> Iterator[str]:
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


def _read_grid(value: Any) -> tuple[int, int]:
    if isinstance(value, str) and (found := re.fullmatch(r"([1-9]\d{0,5}) ?x ?([1-9]\d{0,5})", value)):
        return int(found[1]), int(found[2])
    if (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(type(one) is int and 1 <= one < 1_000_000 for one in value)
    ):
        return value[0], value[1]
    raise ValueError(f'found {value!r}, needed rows and columns of ranks such as "2x4"')


def _read_grids(value: Any) -> Any:
    return value if value is None else tuple(map(_read_grid, value if isinstance(value, list | tuple) else (value,)))


Equations = Annotated[int, Field(ge=1, le=MOST_N)]
PanelColumns = Annotated[int, Field(ge=1, le=MOST_NB)]


class HplTable(WorkloadTable):
    """What people write: of lists every combination is a launch of its own in every block on every fabric."""

    kind: Literal["hpl"] = "hpl"
    n: Annotated[tuple[Equations, ...], ONE_OR_MORE, EACH_ONCE] | None = None
    memory: Annotated[Bytes | None, BeforeValidator(lambda one: None if one is None else parse_bytes(one))] = Field(
        default=None, ge=8
    )
    nb: Annotated[tuple[PanelColumns, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_NB,)
    grid: Annotated[tuple[tuple[int, int], ...] | None, BeforeValidator(_read_grids)] = None
    ranks: Ranks = "all"
    depth: Annotated[tuple[Literal[0, 1], ...], ONE_OR_MORE, EACH_ONCE] = (1,)
    broadcast: Annotated[tuple[Broadcast, ...], ONE_OR_MORE, EACH_ONCE] = ("ring-modified",)
    swap: Annotated[tuple[Swap, ...], ONE_OR_MORE, EACH_ONCE] = ("binary",)
    threads: int = Field(default=1, ge=1, le=MOST_THREADS)
    blas: Annotated[str, Field(min_length=1, pattern=WITHOUT_NUL)] | None = None
    repetitions: int = Field(default=1, ge=1, le=1000)

    @model_validator(mode="after")
    def _is_told_its_size_once(self) -> HplTable:
        if self.n is not None and self.memory is not None:
            raise ValueError("memory: n says how many equations there are as well; needed one of them")
        return self

    @model_validator(mode="after")
    def _is_told_its_ranks_once(self) -> HplTable:
        if self.grid == ():
            raise ValueError('grid: found nothing, needed at least one such as "2x4"')
        if self.grid is not None and self.ranks != "all":
            p, q = self.grid[0]
            raise ValueError(
                f'grid: ranks = [...] says how many there are as well; needed one of them: "{p}x{q}" is {p * q} ranks'
            )
        return self

    def plan(self, seats: Seats) -> Iterator[Start | LeftOut]:
        """Yield a start for each grid that the testbed seats and each combination of parameters."""
        if self.grid is None:
            counts, left_out = seated("hpl", self.ranks, seats, lambda _: True, "any number")
            grids = [square_grid(count) for count in counts]
        else:
            asked = tuple(p * q for p, q in self.grid)
            counts, left_out = seated("hpl", asked, seats, lambda _: True, "any number")
            grids = [(p, q) for p, q in dict.fromkeys(self.grid) if p * q in counts]
        yield from left_out
        for (p, q), nb, depth, broadcast, swap in product(grids, self.nb, self.depth, self.broadcast, self.swap):
            sizes = self.n or ((USUAL_N,) if self.memory is None else (equations_in(self.memory, p * q, nb),))
            for n in sizes:
                yield HplStart(
                    n=n,
                    nb=nb,
                    p=p,
                    q=q,
                    ranks=p * q,
                    depth=depth,
                    broadcast=broadcast,
                    swap=swap,
                    threads=self.threads,
                    blas=self.blas,
                    repetitions=self.repetitions,
                )


HPL = Kind("hpl", "Linpack: a dense system of linear equations, verified", HplTable, HplStart)
