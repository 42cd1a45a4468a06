"""An elliptic equation as a workload: fabricbench-elliptic, a Schwarz method on boxes, after the program 3DMD of the study of 1999.

It is judged by its rate in Gflop/s. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fabricbench.record.workload_cells import FigureOfMerit
from fabricbench.workload.adapter import RankSlots
from fabricbench.workload.kernel_program import KernelProgramStart
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace
from fabricbench.workload.parameters import Argument, RankRule, declared

RATE = FigureOfMerit(name="elliptic solver", unit="Gflop/s", better="higher")

MOST_POINTS, MOST_TIMES = 16_384, 100_000

POINT_SECONDS = 3e-9
"""Of a sweep, on one processor."""
SET_UP_SWEEPS = 30
"""The chosen solution and its check, which cost about as much."""
NEIGHBOURS = 6

Points = Annotated[int, Field(ge=1, le=MOST_POINTS)]
Times = Annotated[int, Field(ge=1, le=MOST_TIMES)]


def grids(size: tuple[int, int, int], ranks: int) -> Iterator[tuple[int, int, int]]:
    """Yield the grids of so many ranks on which each has points."""
    for z in range(1, min(ranks, size[2]) + 1):
        for y in range(1, min(ranks // z, size[1]) + 1):
            x = ranks // z // y
            if x * y * z == ranks and x <= size[0]:
                yield x, y, z


class EllipticStart(KernelProgramStart):
    """One launch: a grid over all ranks, so many steps of so many sweeps."""

    program: ClassVar[str] = "fabricbench-elliptic"
    rate: ClassVar[FigureOfMerit] = RATE
    kind: Literal["elliptic"] = "elliptic"
    nx: Annotated[Points, Argument("points of the whole grid along x", short="grid")] = 160
    ny: Annotated[Points, Argument("along y; as along x where not told", short="grid", like="nx")]
    nz: Annotated[Points, Argument("along z; as along x where not told", short="grid", like="nx")]
    sweeps: Annotated[Times, Argument("over each box between two exchanges of its faces")] = 20
    steps: Annotated[Times, Argument("exchanges, each with its sweeps", is_listed=False)] = 20
    kept: ClassVar[tuple[str, ...]] = ("message_bytes",)
    ranks_follow: ClassVar[tuple[str, ...]] = ("nx", "ny", "nz")

    @classmethod
    def rank_rule(cls, chosen: Mapping[str, Any], seats: RankSlots) -> RankRule:
        """Return the numbers of ranks of which each gets points."""
        del seats
        nx, ny, nz = (chosen[name] for name in cls.ranks_follow)
        return RankRule(
            f"elliptic of {nx}x{ny}x{nz}",
            lambda ranks: any(grids((nx, ny, nz), ranks)),
            f"products of numbers up to {nx}, {ny} and {nz}",
        )

    @property
    def memory_bytes(self) -> float:
        """The solution and the right side."""
        return 2.0 * 8 * self.nx * self.ny * self.nz

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take: computing, then its bytes, then its messages."""
        points = self.nx * self.ny * self.nz
        computing = points * POINT_SECONDS * ((self.steps + 1) * self.sweeps + SET_UP_SWEEPS) / pace.computing
        talking = 0.0
        if self.ranks > 1:
            # No box has more points on its faces than the whole grid has.
            surface = 2 * (self.nx * self.ny + self.ny * self.nz + self.nx * self.nz)
            talking = 8 * 8 * surface / pace.line_rate_bit_s + NEIGHBOURS * MESSAGE_SECONDS
        return self.repetitions * (computing + (self.steps + 1) * talking)


ELLIPTIC = declared(
    EllipticStart, "an elliptic equation in three dimensions: long computing, then whole faces to neighbours"
)
