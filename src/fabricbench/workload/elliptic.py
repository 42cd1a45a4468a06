"""An elliptic equation as a workload: fabricbench-elliptic, a Schwarz method on boxes, after the program 3DMD of the study of 1999.

[[workload]]
kind = "elliptic"
nx = [160, 320]              # points of the whole grid along x; default 160; all of these but steps may be lists
ny = 160                     # along y and z; default as along x
nz = 160
ranks = [4]                  # default "all": one on each node
sweeps = [20, 100]           # over each box between two exchanges of its faces: computing, at the same messages; default 20
steps = 20                   # exchanges, each with its sweeps: the work is fixed, never the residual
repetitions = 3              # runs in one start

It is judged by its rate in Gflop/s. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import Figure
from fabricbench.workload.adapter import Kind, LeftOut, Place, Ranks, Seats, Start, WorkloadTable, seated
from fabricbench.workload.kernel_program import EACH_ONCE, ONE_OR_MORE, KernelProgramStart, boxes
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace

RATE = Figure(name="elliptic solver", unit="Gflop/s", better="higher")

USUAL_POINTS, MOST_POINTS = 160, 16_384
USUAL_SWEEPS, USUAL_STEPS, MOST_TIMES = 20, 20, 100_000

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
    rate: ClassVar[Figure] = RATE
    kind: Literal["elliptic"] = "elliptic"
    nx: Points
    ny: Points
    nz: Points
    sweeps: Times = USUAL_SWEEPS
    steps: Times = USUAL_STEPS

    @property
    def values(self) -> dict[str, str | int | float]:
        """The grid, the sweeps and the steps, which tell of different work."""
        return {"grid": f"{self.nx}x{self.ny}x{self.nz}", "sweeps": self.sweeps, "steps": self.steps}

    def options(self, place: Place) -> Mapping[str, object]:
        """Return its parameters."""
        del place
        return {name: getattr(self, name) for name in ("nx", "ny", "nz", "sweeps", "steps")}

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield the size of its largest message."""
        yield "message_bytes", max(run.values.get("message_bytes") or 0.0 for run in runs)

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


Sides = Annotated[tuple[Points, ...], ONE_OR_MORE, EACH_ONCE]


class EllipticTable(WorkloadTable):
    """What people write: of lists every combination is a launch of its own in every block on every fabric."""

    kind: Literal["elliptic"] = "elliptic"
    nx: Sides = (USUAL_POINTS,)
    ny: Sides | None = None
    nz: Sides | None = None
    ranks: Ranks = "all"
    sweeps: Annotated[tuple[Times, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_SWEEPS,)
    steps: Times = USUAL_STEPS
    repetitions: int = Field(default=1, ge=1, le=1000)

    def plan(self, seats: Seats) -> Iterator[Start | LeftOut]:
        """Yield a start for each grid, number of sweeps and number of ranks that the testbed seats and that share the grid."""
        for size in boxes(self.nx, self.ny, self.nz):

            def takes(ranks: int, size: tuple[int, int, int] = size) -> bool:
                return any(grids(size, ranks))

            what = f"elliptic of {'x'.join(map(str, size))}"
            rule = "products of numbers up to {}, {} and {}".format(*size)
            counts, left_out = seated(what, self.ranks, seats, takes, rule)
            yield from left_out
            for ranks, sweeps in product(counts, self.sweeps):
                yield EllipticStart(
                    nx=size[0],
                    ny=size[1],
                    nz=size[2],
                    ranks=ranks,
                    sweeps=sweeps,
                    steps=self.steps,
                    repetitions=self.repetitions,
                )


ELLIPTIC = Kind(
    "elliptic",
    "an elliptic equation in three dimensions: long computing, then whole faces to neighbours",
    EllipticTable,
    EllipticStart,
)
