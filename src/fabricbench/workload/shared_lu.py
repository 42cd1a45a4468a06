"""LU over shared memory as a workload: fabricbench-shared-lu, after LU of SPLASH-2.

[[workload]]
kind = "shared-lu"
n = [512, 1024]              # rows and columns of the matrix; default 512; all of these but repetitions may be lists
block = 16                   # rows and columns of a block, which one rank changes and others read; default 16
page = "4KiB"                # what is fetched at once, a power of two; default 4 KiB
ranks = [4]                  # default "all": one on each node; any number
repetitions = 5              # runs in one start

It is judged by its rate in Gflop/s. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import sqrt
from statistics import median
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import Figure, FigureFound
from fabricbench.workload.adapter import Kind, LeftOut, Place, Ranks, Seats, Start, WorkloadTable, seated
from fabricbench.workload.kernel_program import EACH_ONCE, ONE_OR_MORE, KernelProgramStart
from fabricbench.workload.pace import Pace
from fabricbench.workload.shared_pages import USUAL_PAGE_BYTES, PageBytes, Pages, fetching_seconds

RATE = Figure(name="shared LU", unit="Gflop/s", better="higher")
TIME = Figure(name="time", unit="s", better="lower")

USUAL_N, MOST_N = 512, 100_000
USUAL_BLOCK, MOST_BLOCK = 16, 256

FLOP_S = 1e9
"""Of one processor."""
BARRIER_SECONDS = 0.5e-3
"""Of one step among the ranks of a barrier, which sleep while they wait."""

Order = Annotated[int, Field(ge=1, le=MOST_N)]
Block = Annotated[int, Field(ge=1, le=MOST_BLOCK)]


class SharedLuStart(KernelProgramStart):
    """One launch: a matrix in blocks, in pages of so many bytes."""

    program: ClassVar[str] = "fabricbench-shared-lu"
    rate: ClassVar[Figure] = RATE
    kind: Literal["shared-lu"] = "shared-lu"
    n: Order = USUAL_N
    block: Block = USUAL_BLOCK
    page: PageBytes = USUAL_PAGE_BYTES

    @property
    def values(self) -> dict[str, str | int | float]:
        """The matrix, its blocks and the pages."""
        return {"n": self.n, "block": self.block, "page": self.page}

    def options(self, place: Place) -> Mapping[str, object]:
        """Return its parameters."""
        del place
        return self.values

    def figures(self, runs: list[KernelRun]) -> Iterator[FigureFound]:
        """Yield the medians over its runs."""
        yield RATE.found(median((run.mops_total or 0.0) / 1e3 for run in runs))
        yield TIME.found(median(run.seconds for run in runs))

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield the pages that ranks fetched of each other, and the largest residual."""
        yield "pages_fetched", max(run.values.get("pages_fetched") or 0.0 for run in runs)
        yield "residual", max(run.values.get("residual") or 0.0 for run in runs)

    @property
    def memory_bytes(self) -> float:
        """The matrix."""
        return 8.0 * self.n * self.n

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take: computing, then fetching, then waiting for all."""
        steps = -(-self.n // self.block)
        computing = 2 / 3 * (steps * self.block) ** 3 / FLOP_S / pace.computing
        pages_of_block = -(-8 * self.block**2 // self.page) + 1
        # In a step a rank of a square grid needs its share of a column and of a row of what is left.
        blocks = steps**2 / sqrt(self.ranks)
        fetching = fetching_seconds(blocks * pages_of_block, self.page, self.ranks, pace)
        waiting = 2 * steps * self.ranks.bit_length() * BARRIER_SECONDS
        return self.repetitions * (computing + fetching + waiting)


class SharedLuTable(WorkloadTable):
    """What people write: of lists every combination is a launch of its own in every block on every fabric."""

    kind: Literal["shared-lu"] = "shared-lu"
    n: Annotated[tuple[Order, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_N,)
    block: Annotated[tuple[Block, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_BLOCK,)
    page: Pages = (USUAL_PAGE_BYTES,)
    ranks: Ranks = "all"
    repetitions: int = Field(default=1, ge=1, le=1000)

    def plan(self, seats: Seats) -> Iterator[Start | LeftOut]:
        """Yield a start for each number of ranks that the testbed seats and each combination of parameters."""
        counts, left_out = seated(self.kind, self.ranks, seats, lambda _: True, "any number")
        yield from left_out
        for ranks, n, block, page in product(counts, self.n, self.block, self.page):
            yield SharedLuStart(n=n, block=block, page=page, ranks=ranks, repetitions=self.repetitions)


SHARED_LU = Kind(
    "shared-lu",
    "LU over shared memory, as SPLASH-2's: many small reads of others' memory",
    SharedLuTable,
    SharedLuStart,
)
