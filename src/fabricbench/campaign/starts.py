"""What a launch can start, and how its record is read: the measurer, fabricbench-npb, a program of an official NPB.

A kernel's record is turned into that of a launch (`record.kernel_cells`), so that everything behind it needs to know nothing of
kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fabricbench.campaign.kernels import KernelStart
from fabricbench.campaign.npb_table import OFFICIAL, OWN
from fabricbench.campaign.order import LaunchPlan
from fabricbench.campaign.plan import RECORDS_FILE, RunPlan
from fabricbench.launch.watch import STDOUT_FILE
from fabricbench.native import native_file
from fabricbench.record.kernel_cells import LaunchOfKernel, as_record
from fabricbench.record.kernel_reading import KernelRecord
from fabricbench.record.launch import KERNEL_RECORDS, KernelPart
from fabricbench.record.lines import InterfaceBytes
from fabricbench.record.probe_plan import PLAN_FILE, PlanProbe, options_of, plan_beside
from fabricbench.record.reading import Record, read_record
from fabricbench.workload import counted
from fabricbench.workload.npb import VERIFIED, WRONG, NpbRun, npb_program, read_npb
from fabricbench.workload.official_npb import find_official, official_program, parse_official

PROBE = "fabricbench-probe"


@dataclass(frozen=True)
class Written:
    """What a launch left: its record as cells and samples, and the kernel's own record where it ran one."""

    record: Record
    kernel: KernelPart | None = None


class Start(Protocol):
    """One program that a launch runs."""

    def program(self, directory: Path) -> list[str]:
        """Return the tokens that each rank runs in the launch's directory; EnvironmentLacks where there is no such program."""

    def is_well(self, exit_code: int | None) -> bool:
        """Tell whether an exit code means that the program came to its end with a whole record."""

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return the files that grow while it measures."""

    def read(self, directory: Path) -> Written | None:
        """Return what the program wrote; None if nothing."""


def start_of(launch: LaunchPlan, plan: RunPlan) -> Start:
    """Return what a launch starts."""
    if launch.kernel is None:
        return Measurer(plan.cells[cell] for cell in launch.cells)
    return (OwnKernel if launch.kernel.program == OWN else OfficialKernel)(launch, launch.kernel, plan)


class Measurer:
    """The measurer follows the plan in its directory."""

    def __init__(self, probes: Iterable[PlanProbe]) -> None:
        self._options = options_of(probes)

    def program(self, directory: Path) -> list[str]:
        """Return its tokens."""
        return [str(native_file(PROBE)), *self._options, str(directory / PLAN_FILE)]

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


class _Kernel:
    def __init__(self, launch: LaunchPlan, kernel: KernelStart, plan: RunPlan) -> None:
        self._launch = launch
        self._kernel = kernel
        self._fabric = plan.fabric(launch.fabric)
        self._probe = plan.cells[launch.cells[0]]

    def _written(self, record: KernelRecord, interfaces: Mapping[str, InterfaceBytes] | None = None) -> Written:
        launch = LaunchOfKernel(self._launch.launch_id, self._launch.fabric, self._probe)
        part = KernelPart(header=record.header, runs=tuple(record.runs))
        return Written(as_record(record, launch, interfaces), part)


class OwnKernel(_Kernel):
    """fabricbench-npb. A wrong result is no failed launch: it ran, and its cell says so."""

    def program(self, directory: Path) -> list[str]:
        """Return its tokens; the record goes to the launch's directory."""
        run = NpbRun(
            kernel=self._kernel.benchmark.lower(),
            problem_class=self._kernel.problem_class,
            repetitions=self._kernel.repetitions,
        )
        where = []
        if self._fabric.has_interface and self._fabric.interface is not None:
            where += ["--interface", self._fabric.interface]
        if self._fabric.has_interface and self._fabric.subnet is not None:
            where += ["--subnet", str(self._fabric.subnet)]
        return [*npb_program(run, directory / KERNEL_RECORDS), *where]

    def is_well(self, exit_code: int | None) -> bool:
        """Tell whether it ran to its end, whatever its results."""
        return exit_code in (VERIFIED, WRONG)

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return what grows."""
        return (directory / KERNEL_RECORDS,)

    def read(self, directory: Path) -> Written | None:
        """Return its record as that of a launch."""
        path = directory / KERNEL_RECORDS
        return self._written(read_npb(path)) if path.exists() else None


class OfficialKernel(_Kernel):
    """A program of an official NPB: what it prints is its record, and interfaces are counted around it from outside."""

    def program(self, directory: Path) -> list[str]:
        """Return its tokens, behind those that count what the interfaces carry."""
        folder = None if self._kernel.program == OFFICIAL else Path(self._kernel.program)
        program = find_official(
            self._kernel.benchmark.lower(), self._kernel.problem_class, self._kernel.ranks, folder
        ).absolute()
        counting = [sys.executable, "-I", "-S", counted.__file__, str(directory / counted.COUNTERS)]
        return [*counting, *official_program(program)]

    def is_well(self, exit_code: int | None) -> bool:
        """Tell whether it ended well."""
        return exit_code == 0

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return what grows."""
        return (directory / STDOUT_FILE,)

    def read(self, directory: Path) -> Written | None:
        """Return what it printed as the record of a launch."""
        path = directory / STDOUT_FILE
        if not path.exists() or not path.stat().st_size:
            return None
        record = parse_official(path.read_text(errors="replace"))
        carried = counted.read_counters(directory / counted.COUNTERS)
        return self._written(record, {name: InterfaceBytes(**each) for name, each in carried.items()})
