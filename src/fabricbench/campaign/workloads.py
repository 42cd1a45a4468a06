"""From `[[workload]]` of a campaign and a testbed to what is to be run, each start a cell and a launch of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fabricbench.campaign.cells import has_layer
from fabricbench.campaign.estimate import START_SECONDS, line_rate_bit_s
from fabricbench.campaign.members import SeatPlan
from fabricbench.campaign.order import LaunchPlan, launch_of
from fabricbench.campaign.specification import Campaign
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Receive
from fabricbench.quantity import count
from fabricbench.record.probe_plan import PlanProbe, Stopping
from fabricbench.record.setup import Setup, setup_of, variant
from fabricbench.testbed.model import Fabric, Testbed
from fabricbench.workload.adapter import Place, WorkloadStart, WorkloadTable
from fabricbench.workload.pace import Pace


@dataclass(frozen=True)
class WorkloadPlan:
    """The workloads as cells, the launches of each on each fabric that every block has, and in words what was left out and why."""

    probes: tuple[PlanProbe, ...]
    arms: tuple[LaunchPlan, ...]
    notes: tuple[str, ...]


def plan_workloads(campaign: Campaign, testbed: Testbed, first_id: int) -> WorkloadPlan:
    """Return the workloads of a campaign on a testbed, numbered from `first_id`; UsageError where a wish cannot be carried."""
    probes: list[PlanProbe] = []
    arms: list[LaunchPlan] = []
    notes: list[str] = []
    asked_by: dict[Setup, tuple[int, WorkloadStart]] = {}
    named_by: dict[str, PlanProbe] = {}
    different = _Different()
    for number, table in enumerate(campaign.workloads, start=1):
        fabrics = _fabrics(campaign, testbed, table, number, notes)
        starts = _starts(campaign, table, SeatPlan(testbed), number, notes)
        for start in different.of(starts, table, number, fabrics[0], notes):
            _refuse_what_no_memory_holds(start, testbed, _what(table, number))
            notes += _too_many_threads(start, testbed)
            seconds = {one.name: expected_seconds(start, testbed, one) for one in fabrics}
            probe = _probe(start, first_id + len(probes), max(seconds.values()))
            first, same = asked_by.setdefault(setup_of(probe), (number, start))
            if first != number:
                raise _asked_twice(table, number, variant(probe), first, is_same=start == same)
            if setup_of(other := named_by.setdefault(start.name, probe)) != setup_of(probe):
                raise UsageError(
                    f"{_what(table, number)}: launches of {variant(probe)} would be named {start.name}, "
                    f"as those of {variant(other)}",
                    hint="give one of the two another name",
                )
            probes.append(probe)
            arms += [launch_of(name, [probe.id], START_SECONDS + each, start) for name, each in seconds.items()]
    return WorkloadPlan(tuple(probes), tuple(arms), tuple(dict.fromkeys(notes)))


class _Different:
    """The starts that are planned so far, by what they run in the end: options of which the program has nothing change nothing."""

    def __init__(self) -> None:
        self._known: list[tuple[object, WorkloadStart, int]] = []

    def of(
        self, starts: Iterable[WorkloadStart], table: WorkloadTable, number: int, fabric: Fabric, notes: list[str]
    ) -> Iterator[WorkloadStart]:
        """Yield the starts of a table, of those that come to the same the first; UsageError where another table has it.

        What people name may be there by two names: it is judged by another figure, say.
        """
        place = Place(Path(), fabric)
        for start in starts:
            form = (start.kind, start.canonical_form(place))
            same = next((each for each in self._known if each[0] == form), None)
            is_told_below = same is not None and same[1] == start and same[2] != number  # with the name of its cell
            if same is None or is_told_below or (same[2] != number and "name" in type(table).model_fields):
                self._known.append((form, start, number))
                yield start
            elif same[2] == number:
                notes.append(f"{start.name} is {same[1].name} by other options: it is run once")
            else:
                raise _asked_twice(table, number, start.name, same[2], is_same=True)


def _asked_twice(table: WorkloadTable, number: int, what: str, first: int, *, is_same: bool) -> UsageError:
    """Return the error for two cells that nothing tells apart, whether or not they are the same program."""
    if is_same or "name" not in type(table).model_fields:
        return UsageError(
            f"{_what(table, number)} runs {what} again, number {first} does already",
            hint="remove it from one of the two",
        )
    return UsageError(
        f"{_what(table, number)} is called {what} as number {first} is, and is not the same",
        hint="give one of the two another `name`",
    )


def expected_seconds(start: WorkloadStart, testbed: Testbed, fabric: Fabric) -> float:
    """Return how long a start takes on a fabric of a testbed; nodes that are no machines of their own share our processors."""
    processors = start.ranks if testbed.launcher.is_cluster else len(os.sched_getaffinity(0))
    return start.expected_seconds(Pace(line_rate_bit_s(fabric), min(start.ranks, processors)))


def _refuse_what_no_memory_holds(start: WorkloadStart, testbed: Testbed, what: str) -> None:
    """Raise UsageError where all nodes are this machine, and it has less memory than the ranks need together."""
    if testbed.launcher.is_cluster:
        return
    has = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    if start.memory_bytes > has:
        raise UsageError(
            f"{what}: {start.name} needs {start.memory_bytes / 2**30:,.0f} GiB for its data, and this machine, whose memory all "
            f"nodes share, has {has / 2**30:,.0f} GiB",
            hint="make it smaller",
        )


def _too_many_threads(start: WorkloadStart, testbed: Testbed) -> Iterator[str]:
    """Yield that more threads are asked for than this machine has processors, where all nodes are this machine."""
    processors = len(os.sched_getaffinity(0))
    for name, threads in {} if testbed.launcher.is_cluster else start.threads_told.items():
        if threads > processors:
            yield (
                f"{start.title}: {name} = {threads} for each rank, and this machine has {count(processors, 'processor')} for all "
                "of them"
            )


def _what(table: WorkloadTable, number: int) -> str:
    return f"[[workload]] number {number} ({table.kind})"


def _fabrics(campaign: Campaign, testbed: Testbed, table: WorkloadTable, number: int, notes: list[str]) -> list[Fabric]:
    having = [fabric for fabric in testbed.fabrics if has_layer(fabric, Layer.MPI)]
    for fabric in testbed.fabrics:
        if fabric in having:
            continue
        if campaign.unfit == "refuse":
            raise UsageError(
                f"{_what(table, number)} needs layer mpi, which fabric {fabric.name} does not have",
                hint='take the fabric out, or write unfit = "leave out" in [campaign]',
            )
        notes.append(f"no workloads on {fabric.name}: it does not have layer mpi")
    if not having:
        raise UsageError(f"{_what(table, number)} needs a fabric with layer mpi", hint="give one to the testbed")
    return having


def _starts(
    campaign: Campaign, table: WorkloadTable, seats: SeatPlan, number: int, notes: list[str]
) -> Iterable[WorkloadStart]:
    for one in table.plan(seats):
        if isinstance(one, WorkloadStart):
            yield one
        elif one.is_all and campaign.unfit == "refuse":
            raise UsageError(
                f"{_what(table, number)}: {one.what} cannot be run: {one.why}",
                hint='give other `ranks`, or write unfit = "leave out" in [campaign]',
            )
        else:
            notes.append(f"{one.what} is left out: {one.why}")


def _probe(start: WorkloadStart, number: int, seconds: float) -> PlanProbe:
    return PlanProbe(
        id=number,
        layer=Layer.MPI,
        pattern=start.pattern,
        message_bytes=0,
        receive=Receive.LIBRARY,
        ranks=tuple(range(start.ranks)),
        warmup_samples=0,
        stopping=Stopping(
            minimum_samples=start.repetitions, maximum_samples=start.repetitions, maximum_seconds=seconds
        ),
        parameters=start.parameters,
    )
