"""From `[[npb]]` of a campaign and a testbed to the kernels that are to be run, each a cell and a launch of its own. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from fabricbench.campaign.limits import has_layer
from fabricbench.campaign.members import Seats
from fabricbench.campaign.npb_table import NAMES, OFFICIAL, OWN, NpbTable
from fabricbench.campaign.specification import Campaign
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Model, Pattern, Receive
from fabricbench.record.frames import variant
from fabricbench.record.probe_plan import PlanProbe, Stopping
from fabricbench.testbed.model import WITHOUT_NUL, Fabric, Testbed
from fabricbench.workload.npb import BENCHMARKS, CLASSES, Benchmark
from fabricbench.workload.npb_effort import usual_seconds

USUAL_LINE_RATE_BIT_S = 1e9
"""Of a fabric whose wire is not known."""


class KernelStart(Model):
    """What a launch of a kernel starts. `program` is `own`, `official` (on PATH), or the folder of an official NPB."""

    benchmark: Annotated[str, Field(pattern=rf"^({'|'.join(NAMES)})$")]
    problem_class: Annotated[str, Field(pattern=rf"^({'|'.join(CLASSES)})$")]
    ranks: int = Field(ge=1)
    repetitions: int = Field(ge=1)
    program: str = Field(default=OWN, pattern=WITHOUT_NUL)

    @property
    def name(self) -> str:
        """The kernel as names of launches have it: `is.W.4`, of an official program with a word for that."""
        other = "" if self.program == OWN else f"-{re.sub(r'[^A-Za-z0-9._-]|[.]{2,}', '-', _word(self.program))}"
        return f"{self.benchmark.lower()}.{self.problem_class}.{self.ranks}{other}"

    def expected_seconds(self, fabric: Fabric) -> float:
        """Return how long all its repetitions take on a fabric, generously."""
        rate = fabric.wire.line_rate_bit_s if fabric.wire is not None else USUAL_LINE_RATE_BIT_S
        return self.repetitions * usual_seconds(self.benchmark.lower(), self.problem_class, self.ranks, rate)


class PlannedKernel(Model):
    """A kernel as a cell, what starts it, and the fabrics that it is run on."""

    probe: PlanProbe
    start: KernelStart
    fabrics: tuple[str, ...]


class KernelPlan(Model):
    """All kernels, and in words what was left out and why."""

    kernels: tuple[PlannedKernel, ...]
    notes: tuple[str, ...]


def plan_kernels(campaign: Campaign, testbed: Testbed, first_id: int) -> KernelPlan:
    """Return the kernels of a campaign on a testbed, numbered from `first_id`; UsageError where a wish cannot be carried."""
    kernels: list[PlannedKernel] = []
    notes: list[str] = []
    asked_by: dict[str, int] = {}
    for number, table in enumerate(campaign.npb, start=1):
        fabrics = _fabrics(campaign, testbed, number, notes)
        for start in _starts(campaign, table, Seats(testbed), number, notes):
            probe = _probe(start, first_id + len(kernels), max(start.expected_seconds(one) for one in fabrics))
            if (first := asked_by.setdefault(variant(probe), number)) != number:
                raise UsageError(
                    f"[[npb]] number {number} runs {variant(probe)} again, number {first} does already",
                    hint="remove it from one of the two",
                )
            kernels.append(PlannedKernel(probe=probe, start=start, fabrics=tuple(one.name for one in fabrics)))
    return KernelPlan(kernels=tuple(kernels), notes=tuple(dict.fromkeys(notes)))


def _fabrics(campaign: Campaign, testbed: Testbed, number: int, notes: list[str]) -> list[Fabric]:
    having = [fabric for fabric in testbed.fabrics if has_layer(fabric, Layer.MPI)]
    for fabric in testbed.fabrics:
        if fabric in having:
            continue
        if campaign.unfit == "refuse":
            raise UsageError(
                f"[[npb]] number {number} needs layer mpi, which fabric {fabric.name} does not have",
                hint='take the fabric out, or write unfit = "leave out" in [campaign]',
            )
        notes.append(f"no kernels on {fabric.name}: it does not have layer mpi")
    if not having:
        raise UsageError(f"[[npb]] number {number} needs a fabric with layer mpi", hint="give one to the testbed")
    return having


def _starts(campaign: Campaign, table: NpbTable, seats: Seats, number: int, notes: list[str]) -> Iterable[KernelStart]:
    for name in table.benchmarks:
        benchmark = BENCHMARKS[name.lower()]
        counts = _counts(benchmark, table, seats)
        refused = [] if table.ranks == "all" else [count for count in table.ranks if count not in counts]
        if refused:
            why = f"{name} takes {benchmark.rank_rule} of ranks, {seats.of_workload_in_words}"
            what = f"{name} on {', '.join(map(str, refused))} ranks"
            if not counts and campaign.unfit == "refuse":
                raise UsageError(
                    f"[[npb]] number {number}: {what} cannot be run: {why}",
                    hint='give other `ranks`, or write unfit = "leave out" in [campaign]',
                )
            notes.append(f"{what} is left out: {why}")
        for problem_class in table.classes:
            for count in counts:
                yield KernelStart(
                    benchmark=name,
                    problem_class=problem_class,
                    ranks=count,
                    repetitions=table.repetitions,
                    program=table.program,
                )


def _counts(benchmark: Benchmark, table: NpbTable, seats: Seats) -> list[int]:
    """Return the numbers of ranks to run on: those asked for that the kernel takes and the testbed seats."""
    is_own = table.program == OWN
    possible = [count for count in range(1, seats.of_workload + 1) if benchmark.takes(count, is_own=is_own)]
    return possible[-1:] if table.ranks == "all" else [count for count in table.ranks if count in possible]


def _probe(start: KernelStart, number: int, seconds: float) -> PlanProbe:
    parameters: dict[str, str | int | float] = {"benchmark": start.benchmark, "class": start.problem_class}
    if start.program != OWN:
        parameters["program"] = _word(start.program)
    return PlanProbe(
        id=number,
        layer=Layer.MPI,
        pattern=Pattern.NPB,
        message_bytes=0,
        receive=Receive.LIBRARY,
        ranks=tuple(range(start.ranks)),
        warmup_samples=0,
        stopping=Stopping(
            minimum_samples=start.repetitions, maximum_samples=start.repetitions, maximum_seconds=seconds
        ),
        parameters=parameters,
    )


def _word(program: str) -> str:
    """Return what an official program is called: the folder that it lies in."""
    return OFFICIAL if program == OFFICIAL else Path(program).name
