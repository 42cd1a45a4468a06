"""What a launch starts: the measurer, or a workload of whichever kind (`workload.adapter`), and what either wrote.

What a workload told becomes the record of a launch (`record.workload_cells`), so that everything behind it needs to know nothing
of programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Protocol

from fabricbench.campaign.order import LaunchPlan
from fabricbench.campaign.plan import RunPlan
from fabricbench.launch import on_subnet
from fabricbench.launch.mpi import programs_of
from fabricbench.launch.watch import guarded_apart
from fabricbench.model import Layer
from fabricbench.native import native_file
from fabricbench.record.atomic import replace_text
from fabricbench.record.launch import KernelPart
from fabricbench.record.launch_files import PLAN_FILE, RECORDS, STDERR_FILE, STDOUT_FILE
from fabricbench.record.probe_plan import PlanProbe, ProbePlan, options_of
from fabricbench.record.reading import Record, read_record
from fabricbench.record.workload_cells import (
    Failed,
    LaunchOfWorkload,
    RanksFound,
    WorkloadPart,
    WorkloadResult,
    record_of,
)
from fabricbench.testbed.model import Mpi
from fabricbench.workload.adapter import NODE_OF_RANK_0, Output, Place, WorkloadStart
from fabricbench.workload.counted import AROUND, read_around

PROBE = "fabricbench-probe"

SOCKET_CALLS_LIBRARY = "libfabricbench-socket-calls.so"
"""What tells when an MPI library calls the kernel (native/socket_calls). The measurer has it loaded into itself where stages of
messages of MPI are measured; its calls on sockets cost a look at two variables more then."""

WORKLOAD_ENVIRONMENT = "workload environment"
"""Among the conditions of a launch: a workload's own variables. Its LD_PRELOAD is joined behind the others."""

UNREAD_SECONDS = 1e-9
"""Stands for the time of a program of which nothing could be read: its cell has failed, and no time of it counts."""


@dataclass(frozen=True)
class Written:
    """What a launch left: its record as cells and samples, and beside it what a workload told, and a kernel of its own record."""

    record: Record
    workload: WorkloadPart | None = None
    kernel: KernelPart | None = None
    is_at_end: bool = True
    """Whether the program itself came to its end, with an exit code that it may have: a whole record alone does not tell."""
    found: RanksFound | None = None
    """Which ranks it had; None of a launch of which nobody tells."""


class Start(Protocol):
    """One program that a launch runs."""

    def program(self, directory: Path, first: str = NODE_OF_RANK_0, /) -> list[str]:
        """Return the tokens that each rank runs in the launch's directory; EnvironmentLacks where there is no such program.

        `first` is where the other ranks find rank 0.
        """

    def stage(self, directory: Path) -> None:
        """Write into the launch's directory what the program reads there."""

    def conditions(self, directory: Path) -> Mapping[str, str]:
        """Return what a reader must know of how the program was started, besides what the launcher says: what -> fact."""

    def is_success(self, exit_code: int | None) -> bool:
        """Tell whether an exit code means that the program came to its end with a whole record."""

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return the files that grow while it measures."""

    def read(self, directory: Path, plan: ProbePlan | None, /) -> Written | None:
        """Return what the program wrote; None if nothing. `plan` is what is in the directory, if anything."""


def start_of(launch: LaunchPlan, plan: RunPlan) -> Start:
    """Return what a launch starts."""
    if launch.workload is None:
        return Measurer((plan.cells[cell] for cell in launch.cells), plan.mpi_of(launch.fabric))
    return WorkloadLaunch(launch, launch.workload, plan)


class Measurer:
    """The measurer follows the plan in its directory."""

    def __init__(self, probes: Iterable[PlanProbe], mpi: Mpi | None = None) -> None:
        cells = list(probes)
        self._options = options_of(cells)
        self._notes_calls = any(probe.is_stamped and probe.layer is Layer.MPI for probe in cells)
        self._mpi = mpi

    def program(self, directory: Path, _first: str = NODE_OF_RANK_0) -> list[str]:
        """Return its tokens."""
        preload = ["--preload", str(native_file(SOCKET_CALLS_LIBRARY))] if self._notes_calls else []
        return [str(native_file(PROBE, programs_of(self._mpi))), *preload, *self._options, str(directory / PLAN_FILE)]

    def stage(self, directory: Path) -> None:
        """Write nothing: its plan is every launch's."""

    def conditions(self, directory: Path) -> Mapping[str, str]:
        """Return what it loads into itself; the launcher knows all else."""
        del directory
        return {"mpi calls": f"noted by {SOCKET_CALLS_LIBRARY}, for their stages"} if self._notes_calls else {}

    def is_success(self, exit_code: int | None) -> bool:
        """Tell whether it ended well."""
        return exit_code == 0

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return what grows."""
        return (directory / RECORDS,)

    def read(self, directory: Path, plan: ProbePlan | None) -> Written | None:
        """Return its record."""
        records = directory / RECORDS
        if not records.exists():
            return None
        record = read_record(records, plan)
        header = record.header
        found = None if header is None else RanksFound(len(header.ranks), mpi_library=header.mpi_library)
        return Written(record, found=found)


class WorkloadLaunch:
    """A workload, by what its adapter says of it."""

    def __init__(self, launch: LaunchPlan, workload: WorkloadStart, plan: RunPlan) -> None:
        self._workload = workload
        self._fabric, self._mpi = plan.fabric(launch.fabric), plan.mpi_of(launch.fabric)
        self._launch = LaunchOfWorkload(launch.launch_id, launch.fabric, plan.cells[launch.cells[0]])

    def program(self, directory: Path, first: str = NODE_OF_RANK_0) -> list[str]:
        """Return its tokens, behind what tells a rank what its node has on the fabric, and what ends all that it starts."""
        # A program of somebody else needs none of ours that were built with its MPI.
        build = programs_of(self._mpi) if self._workload.native_programs else None
        tokens = self._workload.tokens(Place(directory, self._fabric, build, first))
        told = self._workload.told_on_nodes()
        tokens = on_subnet.wrapped(dict(told), self._fabric.where, tokens) if told else tokens
        return guarded_apart(tokens) if self._workload.starts_others else tokens

    def stage(self, directory: Path) -> None:
        """Write its input files."""
        for name, text in self._workload.files().items():
            replace_text(directory / name, text)

    def conditions(self, directory: Path) -> Mapping[str, str]:
        """Return the variables that its ranks get besides those of the fabric."""
        variables = self._workload.environment(Place(directory, self._fabric))
        return {WORKLOAD_ENVIRONMENT: join(f"{name}={value}" for name, value in variables.items())} if variables else {}

    def is_success(self, exit_code: int | None) -> bool:
        """Tell whether it ran to its end, whatever its results."""
        return self._workload.is_success(exit_code)

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return what grows."""
        return self._workload.outputs(_output(directory))

    def read(self, directory: Path, _plan: ProbePlan | None) -> Written | None:
        """Return what it told as the record of a launch; a failed cell where its adapter cannot read it, whatever that raises."""
        code = read_around(directory / AROUND).exit_code
        is_at_end = code is None or self._workload.is_success(code)
        try:
            result = self._workload.parse(_output(directory))
            if result is None:
                return None
            kernel = result.kernel
            return Written(
                record_of(result, self._launch),
                self._part(result),
                None if kernel is None else KernelPart(header=kernel.header, runs=tuple(kernel.runs)),
                is_at_end,
                result.found,
            )
        except Exception as error:  # noqa: BLE001 - an adapter is anybody's, and so is what it reads
            return Written(record_of(self._unread(error), self._launch), is_at_end=is_at_end)

    def _unread(self, error: Exception) -> WorkloadResult:
        reason = f"what it wrote cannot be read: {type(error).__name__}: {error}"
        figure = self._workload.figure
        seconds = (UNREAD_SECONDS,)
        failed = Failed(reason, is_wrong=False)
        return WorkloadResult(program=self._workload.name, seconds=seconds, metric=figure.metric, failed=failed)

    def _part(self, result: WorkloadResult) -> WorkloadPart:
        return WorkloadPart(
            kind=self._workload.kind,
            name=self._workload.name,
            ranks=self._workload.ranks,
            parameters=self._workload.parameters,
            figures=result.figures,
            checks=result.checks,
            communication_share=result.communication_share,
            fixed=dict(result.fixed),
            definition=dict(self._workload.definition),
            jobs=result.jobs,
        )


def _output(directory: Path) -> Output:
    return Output(directory, directory / STDOUT_FILE, directory / STDERR_FILE)
