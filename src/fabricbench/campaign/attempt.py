"""One attempt of a launch: what it starts, its directory and command before, its stored record and path proof after.

It starts the measurer, or a workload of whichever kind (`workload.adapter`). What a workload told becomes the record of a launch
(`record.workload_cells`), so that everything behind it needs to know nothing of programs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Any, Protocol

from fabricbench.campaign.order import LaunchPlan
from fabricbench.campaign.path_proof import prove_path
from fabricbench.campaign.plan import RECORDS_FILE, RunPlan
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.launch import on_subnet
from fabricbench.launch.launcher import Command, Launcher
from fabricbench.launch.mpi import programs_of, where_of
from fabricbench.launch.staging import STAGED, NotStaged
from fabricbench.launch.watch import STDERR_FILE, STDOUT_FILE, Outcome, guarded_apart
from fabricbench.native import native_file
from fabricbench.patterns import PATTERNS, Family
from fabricbench.record.atomic import replace_text
from fabricbench.record.frames import variant
from fabricbench.record.launch import KernelPart, LaunchFacts, LaunchSummary, write_launch
from fabricbench.record.outcome import LaunchOutcome, outcome_of, place_of_death, signal_name, signal_number
from fabricbench.record.probe_plan import PLAN_FILE, PlanProbe, options_of, plan_beside
from fabricbench.record.provenance import origin_of
from fabricbench.record.reading import CellRecord, Record, read_record
from fabricbench.record.store import ATTEMPT
from fabricbench.record.workload_cells import Failed, LaunchOfWorkload, Told, WorkloadPart, record_of
from fabricbench.settings.session import SettingsSession
from fabricbench.testbed.model import Lost, Mpi
from fabricbench.workload.adapter import NODE_OF_RANK_0, Output, Parsed, Place
from fabricbench.workload.adapter import Start as WorkloadStart
from fabricbench.workload.counted import AROUND, read_around

PROBE = "fabricbench-probe"

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

    def is_well(self, exit_code: int | None) -> bool:
        """Tell whether an exit code means that the program came to its end with a whole record."""

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return the files that grow while it measures."""

    def read(self, directory: Path) -> Written | None:
        """Return what the program wrote; None if nothing."""


def start_of(launch: LaunchPlan, plan: RunPlan) -> Start:
    """Return what a launch starts."""
    if launch.workload is None:
        return Measurer((plan.cells[cell] for cell in launch.cells), plan.mpi_of(launch.fabric))
    return WorkloadLaunch(launch, launch.workload, plan)


class Measurer:
    """The measurer follows the plan in its directory."""

    def __init__(self, probes: Iterable[PlanProbe], mpi: Mpi | None = None) -> None:
        self._options = options_of(probes)
        self._mpi = mpi

    def program(self, directory: Path, _first: str = NODE_OF_RANK_0) -> list[str]:
        """Return its tokens."""
        return [str(native_file(PROBE, programs_of(self._mpi))), *self._options, str(directory / PLAN_FILE)]

    def stage(self, directory: Path) -> None:
        """Write nothing: its plan is every launch's."""

    def conditions(self, directory: Path) -> Mapping[str, str]:
        """Return nothing: the launcher knows all of it."""
        del directory
        return {}

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
        self._fabric, self._mpi = plan.fabric(launch.fabric), plan.mpi_of(launch.fabric)
        self._launch = LaunchOfWorkload(launch.launch_id, launch.fabric, plan.cells[launch.cells[0]])

    def program(self, directory: Path, first: str = NODE_OF_RANK_0) -> list[str]:
        """Return its tokens, behind what tells a rank what its node has on the fabric, and what ends all that it starts."""
        # A program of somebody else needs none of ours that were built with its MPI.
        build = programs_of(self._mpi) if self._workload.native_programs else None
        tokens = self._workload.tokens(Place(directory, self._fabric, build, first))
        told = self._workload.told_on_nodes()
        tokens = on_subnet.wrapped(dict(told), where_of(self._fabric), tokens) if told else tokens
        return guarded_apart(tokens) if self._workload.starts_others else tokens

    def stage(self, directory: Path) -> None:
        """Write its input files."""
        for name, text in self._workload.files().items():
            replace_text(directory / name, text)

    def conditions(self, directory: Path) -> Mapping[str, str]:
        """Return the variables that its ranks get besides those of the fabric."""
        variables = self._workload.environment(Place(directory, self._fabric))
        return {WORKLOAD_ENVIRONMENT: join(f"{name}={value}" for name, value in variables.items())} if variables else {}

    def is_well(self, exit_code: int | None) -> bool:
        """Tell whether it ran to its end, whatever its results."""
        return self._workload.is_well(exit_code)

    def outputs(self, directory: Path) -> tuple[Path, ...]:
        """Return what grows."""
        return self._workload.outputs(_output(directory))

    def read(self, directory: Path) -> Written | None:
        """Return what it told as the record of a launch; a failed cell where its adapter cannot read it, whatever that raises."""
        code = read_around(directory / AROUND).exit_code
        is_at_end = code is None or self._workload.is_well(code)
        try:
            parsed = self._workload.parse(_output(directory))
            if parsed is None:
                return None
            kernel = parsed.kernel
            return Written(
                record_of(parsed.told, self._launch),
                self._part(parsed),
                None if kernel is None else KernelPart(header=kernel.header, runs=tuple(kernel.runs)),
                is_at_end,
            )
        except Exception as error:  # noqa: BLE001 - an adapter is anybody's, and so is what it reads
            return Written(record_of(self._unread(error), self._launch), is_at_end=is_at_end)

    def _unread(self, error: Exception) -> Told:
        reason = f"what it wrote cannot be read: {type(error).__name__}: {error}"
        figure = self._workload.figure
        seconds = (UNREAD_SECONDS,)
        failed = Failed(reason, is_wrong=False)
        return Told(program=self._workload.name, seconds=seconds, metric=figure.metric, failed=failed)

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
            definition=dict(self._workload.definition),
        )


def _printed_bytes(directory: Path) -> int:
    logs = (directory / STDOUT_FILE, directory / STDERR_FILE)
    return sum(log.stat().st_size for log in logs if log.exists())


def _output(directory: Path) -> Output:
    return Output(directory, directory / STDOUT_FILE, directory / STDERR_FILE)


@dataclass(frozen=True)
class Attempt:
    """A launch that is about to be started. `patience_seconds`: what the measurer was told of ranks that are silent.

    `there` is its directory as rank 0 sees it.
    """

    launch: LaunchPlan
    directory: Path
    there: Path
    start: Start
    command: Command
    patience_seconds: float | None
    switches_before: dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """What an attempt left: its summary, why its path is not believed, and in words the cells that could not be measured."""

    summary: LaunchSummary
    violations: tuple[str, ...]
    failed_cells: tuple[str, ...]


class Attempts:
    """The attempts of the launches of one run: prepares each, and stores what it left."""

    def __init__(
        self, directory: RunDirectory, plan: RunPlan, launcher: Launcher, settings: SettingsSession | None = None
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._launcher = launcher
        self._settings = settings
        self._is_reached = True
        """Whether rank 0's node gave what earlier attempts had left on it, else it is not asked for more of that now."""

    def finished(self, launch: LaunchPlan) -> LaunchSummary | None:
        """Return a launch that is finished, else None.

        One whose record is whole but was not stored before a crash is stored now: how its program ended is unknown. Not so where
        settings are varied: nobody read them back after it.
        """
        self._directory.finish_setting_aside(launch.launch_id)
        directory = self._directory.launch(launch.launch_id)
        self._fetch_left(directory)
        for aside in sorted(directory.glob(f"{ATTEMPT}*/")):
            self._fetch_left(aside)
        stored = self._directory.stored(launch)
        if stored is not None:
            return stored if stored.is_finished else None
        if self._settings is not None and self._settings.varies(launch.fabric):
            return None
        written = start_of(launch, self._plan).read(directory)
        if written is None or not written.record.is_complete or not written.is_at_end:
            return None
        return self._store(launch, directory, written, {"outcome": LaunchOutcome.UNKNOWN}).summary

    def set_aside(self, launch: LaunchPlan) -> None:
        """Keep aside what a launch has measured, with what is still on the node of rank 0."""
        self._fetch_left(self._directory.launch(launch.launch_id))
        self._directory.set_aside(launch.launch_id)

    def _fetch_left(self, directory: Path) -> None:
        """Bring back what an attempt, of a session that died as well, left on rank 0's node; later where it cannot be had now."""
        if self._is_reached and (directory / STAGED).exists():
            try:
                self._launcher.collect(directory)
            except NotStaged:
                self._is_reached = not (directory / STAGED).exists()

    def set_aside_unplanned(self, planned: Collection[str]) -> None:
        """Keep aside what launches have measured that the plan does not hold any more: those of a farm on more nodes, say."""
        for name in self._directory.launch_names:
            if name not in planned:
                self._directory.set_aside(name)

    def lost(self) -> Lost | None:
        """Return what of the testbed has ended."""
        return self._launcher.lost()

    def failed_nodes(self) -> Mapping[str, str]:
        """Return which nodes do not answer, and why."""
        return self._launcher.failed_nodes()

    def bring_settings(self, launch: LaunchPlan) -> None:
        """Bring all nodes to what a launch's fabric sets of them. Raises SettingsNotHeldError."""
        if self._settings is not None:
            self._settings.bring(launch.fabric)

    def prepare(self, launch: LaunchPlan) -> Attempt:
        """Write a launch's plan into its directory, which is emptied, bring it where rank 0 sees it, and build its command.

        Raises NotStaged where the node of rank 0 cannot be given it.
        """
        self._fetch_left(self._directory.launch(launch.launch_id))
        directory = self._directory.prepare(launch.launch_id)
        plan = self._plan.probe_plan(launch)
        replace_text(directory / PLAN_FILE, plan.model_dump_json(by_alias=True, indent=1) + "\n")
        start = start_of(launch, self._plan)
        start.stage(directory)
        there = self._launcher.stage(directory)
        fabric, ranks = self._plan.fabric(launch.fabric), self._plan.ranks_of(launch)
        command = self._launcher.command(
            fabric, start.program(there, self._launcher.meeting_address(fabric)), directory, ranks
        )
        return Attempt(launch, directory, there, start, command, plan.patience_seconds, self._launcher.switches())

    def silent_seconds(self, attempt: Attempt) -> float | None:
        """Return how long an attempt has written nothing on rank 0's node; None where that is to be seen here."""
        return self._launcher.silent_seconds(attempt.directory, attempt.start.outputs(attempt.directory))

    def collect(self, attempt: Attempt) -> str | None:
        """Bring back what an attempt wrote on rank 0's node; return why that cannot be had."""
        try:
            self._launcher.collect(attempt.directory)
        except NotStaged as error:
            return error.message
        self._is_reached = True
        return None

    def collect_unstarted(self, launch: LaunchPlan) -> None:
        """Leave nothing on rank 0's node of a launch that was given its files, or half of them, and not started."""
        self._fetch_left(self._directory.launch(launch.launch_id))

    def store(self, attempt: Attempt, ended: Outcome | None, *, is_spoilt: bool = False) -> Stored | None:
        """Convert what an attempt wrote, whole or cut short; None if it wrote no record.

        `ended` is None where nobody saw its end; `is_spoilt` says that its testbed broke under it, so that it does not count.
        """
        written = attempt.start.read(attempt.directory)
        if written is None:
            return None
        switches = {"switches_before": attempt.switches_before, "switches_after": self._launcher.switches()}
        lateness = self._launcher.lateness(self._plan.fabric(attempt.launch.fabric), _spans(written.record))
        end = _end_of(attempt, written, ended)
        if self._settings is not None and ended is not None:
            end["settings"], end["invalid_because"] = self._settings.look(attempt.launch.fabric)
        if is_spoilt and end["outcome"].counts:
            end["outcome"] = LaunchOutcome.FAILED
        return self._store(attempt.launch, attempt.directory, written, {**end, **switches, "lateness": lateness})

    def _store(self, launch: LaunchPlan, directory: Path, written: Written, facts: dict[str, Any]) -> Stored:
        record = written.record
        fabric = self._plan.fabric(launch.fabric)
        # A workload is counted while it prints; a measurer prints nothing.
        printed = 0 if launch.workload is None else _printed_bytes(directory)
        proof = prove_path(record, fabric, printed_bytes=printed)
        violations = (*proof.violations, *facts.pop("invalid_because", ()))
        summary = write_launch(
            directory,
            record,
            workload=written.workload,
            kernel=written.kernel,
            facts=LaunchFacts(
                block=launch.block,
                position=launch.position,
                origin=origin_of(fabric),
                proof=proof.verdict,
                is_valid=not violations,
                invalid_because=violations,
                path_proof=proof.model_dump(mode="json"),
                conditions={
                    **self._launcher.conditions(fabric),
                    **start_of(launch, self._plan).conditions(directory),
                },
                **facts,
            ),
        )
        failed = tuple(
            f"{_named(cell)} could not be measured on {launch.fabric} ({cell.failed.code}): {cell.failed.reason}"
            for cell in record.cells
            if cell.failed is not None
        )
        return Stored(summary, violations, failed)


def _end_of(attempt: Attempt, written: Written, ended: Outcome | None) -> dict[str, Any]:
    """Return the facts of how an attempt ended."""
    exit_code = None if ended is None else ended.exit_code
    stderr_tail = "" if ended is None else ended.stderr_tail
    outcome = outcome_of(
        is_whole=written.record.is_complete,
        is_well=attempt.start.is_well(exit_code),
        exit_code=exit_code,
        is_hung=ended is not None and ended.is_ended,
        is_at_end=written.is_at_end,
        stderr_tail=stderr_tail,
    )
    by_signal = signal_name(signal_number(exit_code, stderr_tail))
    died_on = place_of_death(stderr_tail) if by_signal is not None else None
    return {"exit_code": exit_code, "outcome": outcome, "signal": by_signal, "died_on": died_on}


def _spans(record: Record) -> dict[int, tuple[int, int]]:
    """Return when each finished cell began and ended, where the record tells."""
    ends = [cell.end for cell in record.cells if cell.end is not None]
    return {
        end.cell: (end.begin_unix_ns, end.end_unix_ns)
        for end in ends
        if end.begin_unix_ns is not None and end.end_unix_ns is not None
    }


def _named(cell: CellRecord) -> str:
    """Return what a cell is, a kernel with its name: `mpi npb IS.W 4 ranks`."""
    one = cell.cell or cell.failed
    assert one is not None  # noqa: S101 - a record has one of the two
    is_workload = cell.cell is not None and PATTERNS[one.pattern].family is Family.WORKLOAD
    return f"{one.layer} {one.pattern}" + (f" {variant(cell.cell)}" if is_workload and cell.cell is not None else "")
