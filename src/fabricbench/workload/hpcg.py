"""HPCG as a workload: fabricbench-hpcg, conjugate gradients with a multigrid preconditioner on a grid over all ranks.

[[workload]]
kind = "hpcg"
nx = [16, 104]               # points of each rank along x, multiples of 8; default 32; all of these but sets may be lists
ny = 32                      # along y and z; default as along x
nz = 32
ranks = [1, 4]               # default "all": one on each node; any number
sets = 3                     # of 50 iterations: the work is fixed, never the time
variant = "optimised"        # or "reference": plain loops over rows with indices
repetitions = 3              # runs in one start

It is judged by its rate in Gflop/s by the official count. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import log2
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import Figure
from fabricbench.workload.adapter import Kind, LeftOut, Place, Ranks, Seats, Start, WorkloadTable, seated
from fabricbench.workload.kernel_program import EACH_ONCE, ONE_OR_MORE, KernelProgramStart, boxes
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace

RATE = Figure(name="HPCG", unit="Gflop/s", better="higher")

USUAL_POINTS, MOST_POINTS, COARSENING, MOST_ASPECT = 32, 1024, 8, 8
USUAL_SETS, MOST_SETS = 3, 100_000
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

Variant = Literal["optimised", "reference"]


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
    rate: ClassVar[Figure] = RATE
    kind: Literal["hpcg"] = "hpcg"
    nx: Points
    ny: Points
    nz: Points
    sets: int = Field(default=USUAL_SETS, ge=1, le=MOST_SETS)
    variant: Variant = "optimised"

    @model_validator(mode="after")
    def _is_much_like_a_cube(self) -> HpcgStart:
        sides = (self.nx, self.ny, self.nz)
        if max(sides) > MOST_ASPECT * min(sides):
            raise ValueError(
                f"nx, ny, nz: found {self.nx} x {self.ny} x {self.nz}, needed a longest side of at most {MOST_ASPECT} times "
                "the shortest, as the official program asks"
            )
        return self

    @property
    def values(self) -> dict[str, str | int | float]:
        """The box of each rank, the sets and the variant, which tell of different work."""
        return {"box": f"{self.nx}x{self.ny}x{self.nz}", "sets": self.sets, "variant": self.variant}

    def options(self, place: Place) -> Mapping[str, object]:
        """Return its parameters."""
        del place
        return {name: getattr(self, name) for name in ("nx", "ny", "nz", "sets", "variant")}

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield the iterations of a set, and the residual that they came to."""
        yield "iterations", float(max(run.iterations or 0 for run in runs))
        yield "residual", max(run.values.get("residual") or 0.0 for run in runs)

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


Sides = Annotated[tuple[Points, ...], ONE_OR_MORE, EACH_ONCE]


class HpcgTable(WorkloadTable):
    """What people write: of lists every combination is a launch of its own in every block on every fabric."""

    kind: Literal["hpcg"] = "hpcg"
    nx: Sides = (USUAL_POINTS,)
    ny: Sides | None = None
    nz: Sides | None = None
    ranks: Ranks = "all"
    sets: int = Field(default=USUAL_SETS, ge=1, le=MOST_SETS)
    variant: Annotated[tuple[Variant, ...], ONE_OR_MORE, EACH_ONCE] = ("optimised",)
    repetitions: int = Field(default=1, ge=1, le=1000)

    @model_validator(mode="after")
    def _boxes_are_much_like_cubes(self) -> HpcgTable:
        for nx, ny, nz in boxes(self.nx, self.ny, self.nz):
            HpcgStart(nx=nx, ny=ny, nz=nz, ranks=1)
        return self

    def plan(self, seats: Seats) -> Iterator[Start | LeftOut]:
        """Yield a start for each number of ranks that the testbed seats and each combination of parameters."""
        counts, left_out = seated("hpcg", self.ranks, seats, lambda _: True, "any number")
        yield from left_out
        for ranks, (nx, ny, nz), variant in product(counts, boxes(self.nx, self.ny, self.nz), self.variant):
            yield HpcgStart(
                nx=nx,
                ny=ny,
                nz=nz,
                ranks=ranks,
                sets=self.sets,
                variant=variant,
                repetitions=self.repetitions,
            )


HPCG = Kind("hpcg", "conjugate gradients with multigrid, as HPCG: neighbours and small sums", HpcgTable, HpcgStart)
