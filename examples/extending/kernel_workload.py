"""The kernel of kernel.cpp as a workload: `[[workload]] kind = "jacobi"`, with every parameter declared once."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import FigureOfMerit
from fabricbench.workload.kernel_program import KernelProgramStart
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace
from fabricbench.workload.parameters import Argument, declared

POINTS_S = 1e9
"""Replaced by one processor."""


class JacobiStart(KernelProgramStart):
    """One launch: a line of so many points, so many sweeps."""

    program: ClassVar[str] = "fabricbench-jacobi"
    rate: ClassVar[FigureOfMerit] = FigureOfMerit(name="Jacobi", unit="Mop/s", better="higher")
    kind: Literal["jacobi"] = "jacobi"
    n: Annotated[int, Field(ge=1, le=10**9), Argument("points of the line")] = 100_000
    sweeps: Annotated[int, Field(ge=1, le=10**6), Argument("how often each is replaced", is_listed=False)] = 100

    def rate_of(self, run: KernelRun) -> float:
        """Return what it did in Mop/s."""
        return run.mops_total or 0.0

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take: computing, then a message to each neighbour in every sweep."""
        talking = 2 * MESSAGE_SECONDS if self.ranks > 1 else 0.0
        return self.repetitions * self.sweeps * (self.n / POINTS_S / pace.computing + talking)


JACOBI = declared(JacobiStart, "sweeps over a line of points: one point to each neighbour, again and again")
