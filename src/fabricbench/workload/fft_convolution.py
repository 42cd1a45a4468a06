"""A convolution by Fourier transforms as a workload: fabricbench-fft-convolution, after the program OA of the study of 1999.

It is judged by its rate in Gflop/s. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt, log2
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from fabricbench.record.workload_cells import FigureOfMerit
from fabricbench.workload.adapter import RankSlots
from fabricbench.workload.kernel_program import KernelProgramStart
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace
from fabricbench.workload.parameters import Argument, RankRule, declared

RATE = FigureOfMerit(name="convolution", unit="Gflop/s", better="higher")

MOST_POINTS, FACTORS, MOST_ITERATIONS = 16_384, (2, 3, 5), 10_000

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
    rate: ClassVar[FigureOfMerit] = RATE
    kind: Literal["fft-convolution"] = "fft-convolution"
    nx: Annotated[Points, Argument("points along x, with factors 2, 3 and 5 alone", short="field")] = 64
    ny: Annotated[Points, Argument("along y; as along x where not told", short="field", like="nx")]
    nz: Annotated[Points, Argument("along z; as along x where not told", short="field", like="nx")]
    iterations: Annotated[int, Field(ge=1, le=MOST_ITERATIONS), Argument("convolutions", is_listed=False)] = 10
    decomposition: Annotated[
        Decomposition, Argument("one transpose each way, up to as many ranks as planes; or two, on a grid of ranks")
    ] = "slab"
    kept: ClassVar[tuple[str, ...]] = ("message_bytes",)
    ranks_follow: ClassVar[tuple[str, ...]] = ("nx", "ny", "nz", "decomposition")

    @classmethod
    def rank_rule(cls, chosen: Mapping[str, Any], seats: RankSlots) -> RankRule:
        """Return the numbers of ranks of which each gets points."""
        del seats
        nx, ny, nz, decomposition = (chosen[name] for name in cls.ranks_follow)
        most = f"up to {min(ny, nz)}"
        words = f"numbers {most}"
        if decomposition == "pencil":
            words = f"products of {words} and up to {min(nx, ny)}"
        return RankRule(
            f"fft-convolution of {nx}x{ny}x{nz} by {decomposition}s",
            lambda ranks: can_share((nx, ny, nz), ranks, decomposition),
            words,
        )

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


FFT_CONVOLUTION = declared(
    FftConvolutionStart, "a convolution by Fourier transforms in three dimensions: large messages from all to all"
)
