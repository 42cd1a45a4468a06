"""HPCG as a workload: fabricbench-hpcg, conjugate gradients with a multigrid preconditioner on a grid over all ranks.

It is judged by its rate in Gflop/s by the official count. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import FigureOfMerit
from fabricbench.workload.kernel_program import KernelProgramStart
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace
from fabricbench.workload.parameters import Argument, declared

RATE = FigureOfMerit(name="HPCG", unit="Gflop/s", better="higher")

MOST_POINTS, COARSENING, MOST_ASPECT, MOST_SETS = 1024, 8, 8, 100_000
SET_ITERATIONS = 50

FLOP_S = 2.5e9
"""Of one processor: memory bounds it."""
POINT_OPERATIONS = 27 * 2 * 7
"""Of a point in an iteration, all grids together."""
EXCHANGES, SUMS, NEIGHBOURS, FACES = 11, 3, 26, 6
"""Of an iteration, and of a box."""
FINEST = 5
"""Exchanges of the finest grid which have as many bytes as all of them."""
UNTIMED_ITERATIONS = 200
"""Of the reference, of the tests, and as many as the optimised variant needs."""


def _halved_thrice(points: int) -> int:
    if points % COARSENING:
        raise ValueError(
            f"found {points}, needed a multiple of {COARSENING}: each of three coarser grids has every other point; "
            f"take {-(-points // COARSENING) * COARSENING}"
        )
    return points


Points = Annotated[int, Field(ge=COARSENING, le=MOST_POINTS), AfterValidator(_halved_thrice)]


class HpcgStart(KernelProgramStart):
    """One launch: a box of points on each rank, so many sets."""

    program: ClassVar[str] = "fabricbench-hpcg"
    rate: ClassVar[FigureOfMerit] = RATE
    kind: Literal["hpcg"] = "hpcg"
    nx: Annotated[Points, Argument("points of each rank along x, multiples of 8", short="box")] = 32
    ny: Annotated[Points, Argument("along y; as along x where not told", short="box", like="nx")]
    nz: Annotated[Points, Argument("along z; as along x where not told", short="box", like="nx")]
    sets: Annotated[int, Field(ge=1, le=MOST_SETS), Argument("of 50 iterations", is_listed=False)] = 3
    variant: Annotated[Literal["optimised", "reference"], Argument("of sweeps and products")] = "optimised"
    kept: ClassVar[tuple[str, ...]] = ("residual",)

    @model_validator(mode="after")
    def _is_much_like_a_cube(self) -> HpcgStart:
        sides = (self.nx, self.ny, self.nz)
        if max(sides) > MOST_ASPECT * min(sides):
            raise ValueError(
                f"nx, ny, nz: found {self.nx} x {self.ny} x {self.nz}, needed a longest side of at most {MOST_ASPECT} times "
                "the shortest, as the official program asks"
            )
        return self

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield the iterations of a set, and the residual that they came to."""
        yield "iterations", float(max(run.iterations or 0 for run in runs))
        yield from super().facts(runs)

    @property
    def memory_bytes(self) -> float:
        """The finest grid's matrix: 27 numbers and columns in each row."""
        return 27.0 * (8 + 4) * self.nx * self.ny * self.nz * self.ranks

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take: computing, then its bytes, then its messages."""
        iterations = self.sets * SET_ITERATIONS + UNTIMED_ITERATIONS
        computing = self.ranks * self.nx * self.ny * self.nz * POINT_OPERATIONS / FLOP_S / pace.computing
        if self.ranks == 1:
            return self.repetitions * iterations * computing
        # Of two boxes each has a neighbour behind one of its faces, of four behind two.
        surface = 2 * (self.nx * self.ny + self.ny * self.nz + self.nx * self.nz) * min(1.0, log2(self.ranks) / FACES)
        moving = 8 * 8 * surface * FINEST / pace.line_rate_bit_s
        messages = EXCHANGES * min(NEIGHBOURS, self.ranks - 1) + SUMS * self.ranks.bit_length()
        talking = moving + messages * MESSAGE_SECONDS
        return self.repetitions * iterations * (computing + talking)


HPCG = declared(HpcgStart, "conjugate gradients with multigrid, as HPCG: neighbours and small sums")
