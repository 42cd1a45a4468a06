"""A convolution by Fourier transforms as a workload: fabricbench-fft-convolution, after the program OA of the study of 1999.

[[workload]]
kind = "fft-convolution"
nx = [64, 128]               # points along x, with factors 2, 3 and 5 alone; default 64; all of these but iterations may be lists
ny = 64                      # along y and z; default as along x
nz = 64
ranks = [4]                  # default "all": one on each node
iterations = 10              # convolutions: the work is fixed, never the time
decomposition = "slab"       # one transpose each way, up to as many ranks as planes; or "pencil": two, on a grid of ranks
repetitions = 3              # runs in one start

It is judged by its rate in Gflop/s. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import isqrt, log2
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import Figure
from fabricbench.workload.adapter import Kind, LeftOut, Place, Ranks, Seats, Start, WorkloadTable, seated
from fabricbench.workload.kernel_program import EACH_ONCE, ONE_OR_MORE, KernelProgramStart, boxes
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace

RATE = Figure(name="convolution", unit="Gflop/s", better="higher")

USUAL_POINTS, MOST_POINTS, FACTORS = 64, 16_384, (2, 3, 5)
USUAL_ITERATIONS, MOST_ITERATIONS = 10, 10_000

FLOP_S = 1e9
"""Of one processor."""
POINT_BYTES = 16
UNTIMED_ITERATIONS = 2
"""The kernel's transform and a warm-up."""
TERM_SECONDS = 50e-9
"""Of the sum that a point is checked by, which has a term for each iteration and one more."""

Decomposition = Literal["slab", "pencil"]


def has_transform(points: int) -> bool:
    """Tell whether the program can transform so many points: they have no other prime factors than 2, 3 and 5."""
    for factor in FACTORS:
        while points % factor == 0:
            points //= factor
    return points == 1


def _transformed(points: int) -> int:
    if not has_transform(points):
        larger = next(size for size in range(points, 2 * points) if has_transform(size))
        raise ValueError(
            f"found {points}, needed a number that has no other prime factors than 2, 3 and 5; the next one is {larger}"
        )
    return points


Points = Annotated[int, Field(ge=1, le=MOST_POINTS), AfterValidator(_transformed)]


def can_share(size: tuple[int, int, int], ranks: int, decomposition: Decomposition) -> bool:
    """Tell whether each of so many ranks gets points: a slab each, or a pencil each on some grid."""
    nx, ny, nz = size
    most_along_x = 1 if decomposition == "slab" else min(nx, ny)
    return any(ranks % along_x == 0 and ranks // along_x <= min(ny, nz) for along_x in range(1, most_along_x + 1))


class FftConvolutionStart(KernelProgramStart):
    """One launch: a field of so many points, so many convolutions."""

    program: ClassVar[str] = "fabricbench-fft-convolution"
    rate: ClassVar[Figure] = RATE
    kind: Literal["fft-convolution"] = "fft-convolution"
    nx: Points
    ny: Points
    nz: Points
    iterations: int = Field(default=USUAL_ITERATIONS, ge=1, le=MOST_ITERATIONS)
    decomposition: Decomposition = "slab"

    @property
    def values(self) -> dict[str, str | int | float]:
        """The field, the iterations and the decomposition, which tell of different work."""
        return {
            "field": f"{self.nx}x{self.ny}x{self.nz}",
            "iterations": self.iterations,
            "decomposition": self.decomposition,
        }

    def options(self, place: Place) -> Mapping[str, object]:
        """Return its parameters."""
        del place
        return {name: getattr(self, name) for name in ("nx", "ny", "nz", "iterations", "decomposition")}

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield the size of its messages."""
        yield "message_bytes", max(run.values.get("message_bytes") or 0.0 for run in runs)

    @property
    def memory_bytes(self) -> float:
        """The field, and what its transposes are sent from."""
        return 2.0 * POINT_BYTES * self.nx * self.ny * self.nz

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take: computing, then its bytes, then its messages."""
        points = self.nx * self.ny * self.nz
        computing = points * 10 * log2(2 * points) / FLOP_S / pace.computing
        transposes = 2 if self.decomposition == "slab" else 4
        moving = 8 * POINT_BYTES * points / self.ranks * transposes / pace.line_rate_bit_s
        peers = self.ranks if self.decomposition == "slab" else 2 * (isqrt(self.ranks) + 1)
        talking = (moving + transposes * peers * MESSAGE_SECONDS) if self.ranks > 1 else 0.0
        checking = points * self.iterations * TERM_SECONDS / pace.computing
        iterations = self.iterations + UNTIMED_ITERATIONS
        return self.repetitions * (checking + iterations * (computing + talking))


Sides = Annotated[tuple[Points, ...], ONE_OR_MORE, EACH_ONCE]


class FftConvolutionTable(WorkloadTable):
    """What people write: of lists every combination is a launch of its own in every block on every fabric."""

    kind: Literal["fft-convolution"] = "fft-convolution"
    nx: Sides = (USUAL_POINTS,)
    ny: Sides | None = None
    nz: Sides | None = None
    ranks: Ranks = "all"
    iterations: int = Field(default=USUAL_ITERATIONS, ge=1, le=MOST_ITERATIONS)
    decomposition: Annotated[tuple[Decomposition, ...], ONE_OR_MORE, EACH_ONCE] = ("slab",)
    repetitions: int = Field(default=1, ge=1, le=1000)

    def plan(self, seats: Seats) -> Iterator[Start | LeftOut]:
        """Yield a start for each field, decomposition and number of ranks that the testbed seats and that share the field."""
        for size, decomposition in product(boxes(self.nx, self.ny, self.nz), self.decomposition):
            what = f"fft-convolution of {'x'.join(map(str, size))} by {decomposition}s"

            def takes(
                ranks: int, size: tuple[int, int, int] = size, decomposition: Decomposition = decomposition
            ) -> bool:
                return can_share(size, ranks, decomposition)

            most = f"up to {min(size[1:])}"
            rule = (
                f"numbers {most}"
                if decomposition == "slab"
                else f"products of numbers {most} and up to {min(size[:2])}"
            )
            counts, left_out = seated(what, self.ranks, seats, takes, rule)
            yield from left_out
            for ranks in counts:
                yield FftConvolutionStart(
                    nx=size[0],
                    ny=size[1],
                    nz=size[2],
                    ranks=ranks,
                    iterations=self.iterations,
                    decomposition=decomposition,
                    repetitions=self.repetitions,
                )


FFT_CONVOLUTION = Kind(
    "fft-convolution",
    "a convolution by Fourier transforms in three dimensions: large messages from all to all",
    FftConvolutionTable,
    FftConvolutionStart,
)
