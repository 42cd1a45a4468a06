"""What a launch can start, and how its record is read: the measurer, or a workload of whichever kind (`workload.adapter`).

What a workload told becomes the record of a launch (`record.workload_cells`), so that everything behind it needs to know nothing
of programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fabricbench.campaign.order import LaunchPlan
from fabricbench.campaign.plan import RECORDS_FILE, RunPlan
from fabricbench.launch.watch import STDERR_FILE, STDOUT_FILE
from fabricbench.native import native_file
from fabricbench.record.atomic import replace_text
from fabricbench.record.launch import KernelPart
from fabricbench.record.probe_plan import PLAN_FILE, PlanProbe, options_of, plan_beside
from fabricbench.record.reading import Record, read_record
from fabricbench.record.workload_cells import LaunchOfWorkload, WorkloadPart, record_of
from fabricbench.workload.adapter import Output, Parsed, Place
from fabricbench.workload.adapter import Start as WorkloadStart

PROBE = "fabricbench-probe"


@dataclass(frozen=True)
class Written:
    """What a launch left: its record as cells and samples, and beside it what a workload told, and a kernel of its own record."""

    record: Record
    workload: WorkloadPart | None = None
    kernel: KernelPart | None = None


class Start(Protocol):
    """One program that a launch runs."""

    def program(self, directory: Path) -> list[str]:
        """Return the tokens that each rank runs in the launch's directory; EnvironmentLacks where there is no such program."""

    def stage(self, directory: Path) -> None:
        """Write into the launch's directory what the program reads there."""

    def is_well(self, exit_code: int | None) -> bool:
        """Tell whether an exit code means that the program came to its end with a whole record."""

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return the files that grow while it measures."""

    def read(self, directory: Path) -> Written | None:
        """Return what the program wrote; None if nothing."""


def start_of(launch: LaunchPlan, plan: RunPlan) -> Start:
    """Return what a launch starts."""
    if launch.workload is None:
        return Measurer(plan.cells[cell] for cell in launch.cells)
    return WorkloadLaunch(launch, launch.workload, plan)


class Measurer:
    """The measurer follows the plan in its directory."""

    def __init__(self, probes: Iterable[PlanProbe]) -> None:
        self._options = options_of(probes)

    def program(self, directory: Path) -> list[str]:
        """Return its tokens."""
        return [str(native_file(PROBE)), *self._options, str(directory / PLAN_FILE)]

    def stage(self, directory: Path) -> None:
        """Write nothing: its plan is every launch's."""

    def is_well(self, exit_code: int | None) -> bool:
        """Tell whether it ended well."""
        return exit_code == 0

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return what grows."""
        return (directory / RECORDS_FILE,)

    def read(self, directory: Path) -> Written | None:
        """Return its record."""
        records = directory / RECORDS_FILE
        return Written(read_record(records, plan_beside(directory))) if records.exists() else None


class WorkloadLaunch:
    """A workload, by what its adapter says of it."""

    def __init__(self, launch: LaunchPlan, workload: WorkloadStart, plan: RunPlan) -> None:
        self._workload = workload
        self._fabric = plan.fabric(launch.fabric)
        self._launch = LaunchOfWorkload(launch.launch_id, launch.fabric, plan.cells[launch.cells[0]])

    def program(self, directory: Path) -> list[str]:
        """Return its tokens."""
        return self._workload.tokens(Place(directory, self._fabric))

    def stage(self, directory: Path) -> None:
        """Write its input files."""
        for name, text in self._workload.files().items():
            replace_text(directory / name, text)

    def is_well(self, exit_code: int | None) -> bool:
        """Tell whether it ran to its end, whatever its results."""
        return self._workload.is_well(exit_code)

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return what grows."""
        return self._workload.outputs(_output(directory))

    def read(self, directory: Path) -> Written | None:
        """Return what it told as the record of a launch."""
        parsed = self._workload.parse(_output(directory))
        if parsed is None:
            return None
        kernel = parsed.kernel
        return Written(
            record_of(parsed.told, self._launch),
            self._part(parsed),
            None if kernel is None else KernelPart(header=kernel.header, runs=tuple(kernel.runs)),
        )

    def _part(self, parsed: Parsed) -> WorkloadPart:
        return WorkloadPart(
            kind=self._workload.kind,
            name=self._workload.name,
            ranks=self._workload.ranks,
            parameters=self._workload.parameters,
            figures=parsed.figures,
            checks=parsed.checks,
            communication_share=parsed.communication_share,
            fixed=dict(parsed.fixed),
        )


def _output(directory: Path) -> Output:
    return Output(directory, directory / STDOUT_FILE, directory / STDERR_FILE)
