"""LU over shared memory as a workload: fabricbench-shared-lu, after LU of SPLASH-2.

It is judged by its rate in Gflop/s. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from math import sqrt
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import FigureOfMerit
from fabricbench.workload.kernel_program import KernelProgramStart
from fabricbench.workload.pace import Pace
from fabricbench.workload.parameters import Argument, declared
from fabricbench.workload.shared_pages import PAGE, PageBytes, fetching_seconds

RATE = FigureOfMerit(name="shared LU", unit="Gflop/s", better="higher")

MOST_N, MOST_BLOCK = 100_000, 256

FLOP_S = 1e9
"""Of one processor."""
BARRIER_SECONDS = 0.5e-3
"""Of one step among the ranks of a barrier, which sleep while they wait."""


class SharedLuStart(KernelProgramStart):
    """One launch: a matrix in blocks, in pages of so many bytes."""

    program: ClassVar[str] = "fabricbench-shared-lu"
    rate: ClassVar[FigureOfMerit] = RATE
    kind: Literal["shared-lu"] = "shared-lu"
    n: Annotated[int, Field(ge=1, le=MOST_N), Argument("rows and columns of the matrix")] = 512
    block: Annotated[
        int,
        Field(ge=1, le=MOST_BLOCK),
        Argument("rows and columns of a block, which one rank changes and others read"),
    ] = 16
    page: Annotated[PageBytes, PAGE] = 4096
    kept: ClassVar[tuple[str, ...]] = ("pages_fetched", "residual")

    def rate_of(self, run: KernelRun) -> float:
        """Return what it did in Gflop/s."""
        return (run.mops_total or 0.0) / 1e3

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


SHARED_LU = declared(SharedLuStart, "LU over shared memory, as SPLASH-2's: many small reads of others' memory")
