"""One attempt of a launch: its directory and command before, its stored record and path proof after."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fabricbench.campaign.observing import Observations, observers_of, spans_of
from fabricbench.campaign.order import LaunchPlan
from fabricbench.campaign.path_proof import Carriers, prove_path
from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.rank_proof import rank_violations
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.start import Start, Written, start_of
from fabricbench.launch.launcher import Command, Launcher
from fabricbench.launch.staging import STAGED, NotStaged
from fabricbench.launch.watch import ProgramEnd
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.atomic import replace_text
from fabricbench.record.confinement import ATTEMPT
from fabricbench.record.crossings import Crossings
from fabricbench.record.frames import NO_CROSSINGS
from fabricbench.record.integrity import read_file
from fabricbench.record.launch import LaunchFacts, LaunchSummary, write_launch
from fabricbench.record.launch_files import CONDITIONS_FILE, STDERR_FILE, STDOUT_FILE
from fabricbench.record.outcome import LaunchOutcome, outcome_of, place_of_death, signal_name, signal_number
from fabricbench.record.probe_plan import ProbePlan, forget_secret, write_secret_plan
from fabricbench.record.provenance import origin_of
from fabricbench.record.reading import CellRecord
from fabricbench.record.setup import variant
from fabricbench.settings.session import SettingsSession
from fabricbench.testbed.model import Lost


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
    observations: Observations


@dataclass(frozen=True)
class CellFailureNotice:
    """A cell that could not be measured on a fabric. `cause` is the same for what fails alike in other sizes and launches."""

    cause: tuple[object, ...]
    words: str


@dataclass(frozen=True)
class Stored:
    """What an attempt left: its summary, why its path is not believed, and the cells that could not be measured."""

    summary: LaunchSummary
    violations: tuple[str, ...]
    failed_cells: tuple[CellFailureNotice, ...]


class Attempts:
    """The attempts of the launches of one run: prepares each, and stores what it left."""

    def __init__(
        self,
        directory: RunDirectory,
        plan: RunPlan,
        launcher: Launcher,
        settings: SettingsSession | None = None,
        carriers: Carriers | None = None,
    ) -> None:
        """`carriers` are what carries those of the fabrics' interfaces that are tunnels."""
        self._directory = directory
        self._plan = plan
        self._launcher = launcher
        self._settings = settings
        self._carriers = carriers
        self._observers = observers_of(plan, launcher, settings)
        self._is_reached = True
        """Whether rank 0's node gave what earlier attempts had left on it, else it is not asked for more of that now."""

    def finished(self, launch: LaunchPlan) -> LaunchSummary | None:
        """Return a launch that is finished, else None.

        One whose record is whole but was not stored before a crash is stored now: how its program ended is unknown. Not so where
        settings are varied: nobody read them back after it.
        """
        self._directory.finish_setting_aside(launch.launch_id)
        directory = self._directory.launch(launch.launch_id)
        plan = self._fetch_left(directory)
        for aside in sorted(directory.glob(f"{ATTEMPT}*/")):
            self._fetch_left(aside)
        stored = self._directory.stored(launch)
        if stored is not None:
            return stored if stored.is_finished else None
        if self._varies(launch):
            return None
        written = start_of(launch, self._plan).read(directory, plan)
        if written is None or not written.record.is_complete or not written.is_at_end:
            return None
        return self._store(launch, directory, written, plan, {"outcome": LaunchOutcome.UNKNOWN}).summary

    def _varies(self, launch: LaunchPlan) -> bool:
        return self._settings is not None and self._settings.varies(launch.fabric)

    def set_aside(self, launch: LaunchPlan) -> None:
        """Keep aside what a launch has measured, with what is still on the node of rank 0."""
        self._fetch_left(self._directory.launch(launch.launch_id))
        self._directory.set_aside(launch.launch_id)

    def _fetch_left(self, directory: Path) -> ProbePlan | None:
        """Bring back what an attempt, of a session that died as well, left on rank 0's node; later where it cannot be had now.

        Whatever is here of the attempt then, its ranks are gone and it has no more use for its secret: the plan that it followed is
        returned without it, if there is one.
        """
        if self._is_reached and (directory / STAGED).exists():
            try:
                self._launcher.collect(directory)
            except NotStaged:
                self._is_reached = not (directory / STAGED).exists()
        return forget_secret(directory)

    def set_aside_unplanned(self, planned: Collection[str]) -> None:
        """Keep aside what launches have measured that the plan does not hold any more: of more nodes, of a block given up."""
        for name in self._directory.launch_names:
            if name not in planned:
                self._fetch_left(self._directory.launch(name))
                self._directory.set_aside(name)

    def lost(self, launch: LaunchPlan | None = None) -> Lost | None:
        """Return what of the testbed has ended that a launch needs, or any."""
        return self._launcher.lost(None if launch is None else self._plan.fabric(launch.fabric))

    def stopped(self) -> Lost | None:
        """Return what of the testbed stands still."""
        return self._launcher.stopped()

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
        write_secret_plan(directory, plan)
        start = start_of(launch, self._plan)
        start.stage(directory)
        fabric, ranks = self._plan.fabric(launch.fabric), self._plan.ranks_of(launch)
        there = self._launcher.stage(directory, fabric)
        command = self._launcher.command(
            fabric, start.program(there, self._launcher.meeting_address(fabric)), directory, ranks
        )
        conditions = {**self._launcher.conditions(fabric), **start.conditions(there)}
        replace_text(directory / CONDITIONS_FILE, json.dumps(conditions, indent=1) + "\n")
        return Attempt(
            launch,
            directory,
            there,
            start,
            command,
            plan.patience_seconds,
            self._observers.begin(launch),
        )

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

    def store(self, attempt: Attempt, ended: ProgramEnd | None, *, is_spoilt: bool = False) -> Stored | None:
        """Convert what an attempt wrote, whole or cut short; None if it wrote no record.

        `ended` is None where nobody saw its end; `is_spoilt` says that its testbed broke under it, so that it does not count. Nor
        does one whose settings nobody read back.
        """
        plan = forget_secret(attempt.directory)
        written = attempt.start.read(attempt.directory, plan)
        if written is None:
            return None
        observed = attempt.observations.end(written.record, ended)
        crossings = self._launcher.crossings(
            self._plan.fabric(attempt.launch.fabric), spans_of(written.record, staged=True)
        )
        end = _end_of(attempt, written, ended)
        if (is_spoilt or (ended is None and self._varies(attempt.launch))) and end["outcome"].counts:
            end["outcome"] = LaunchOutcome.FAILED
        facts = {**end, **observed.facts}
        return self._store(attempt.launch, attempt.directory, written, plan, facts, crossings, observed.invalid_because)

    def _conditions_of(self, launch: LaunchPlan, directory: Path) -> dict[str, str]:
        """Return what a launch was started with; of one that an earlier version started, what it would be now."""
        try:
            return TypeAdapter(dict[str, str]).validate_json(read_file(directory / CONDITIONS_FILE))
        except (OSError, ValueError):
            start = start_of(launch, self._plan)
            return {**self._launcher.conditions(self._plan.fabric(launch.fabric)), **start.conditions(directory)}

    def _store(
        self,
        launch: LaunchPlan,
        directory: Path,
        written: Written,
        plan: ProbePlan | None,
        facts: dict[str, Any],
        crossings: Mapping[int, Crossings] = NO_CROSSINGS,
        invalid_because: tuple[str, ...] = (),
    ) -> Stored:
        record = written.record
        fabric = self._plan.fabric(launch.fabric)
        # A workload is counted while it prints; a measurer prints nothing.
        printed = 0 if launch.workload is None else _printed_bytes(directory)
        proof = prove_path(record, fabric, printed_bytes=printed, carriers=self._carriers)
        conditions, ranks = self._conditions_of(launch, directory), self._plan.ranks_of(launch)
        apart = () if written.found is None else tuple(rank_violations(written.found, ranks, conditions))
        violations = (*apart, *proof.violations, *invalid_because)
        summary = write_launch(
            directory,
            record,
            workload=written.workload,
            kernel=written.kernel,
            plan=plan,
            crossings=crossings,
            facts=LaunchFacts(
                block=launch.block,
                position=launch.position,
                origin=origin_of(fabric),
                proof=proof.verdict,
                is_valid=not violations,
                invalid_because=violations,
                path_proof=proof.model_dump(mode="json"),
                conditions=conditions,
                **facts,
            ),
        )
        failed = tuple(
            CellFailureNotice(
                (launch.fabric, _named(cell), cell.failed.code),
                f"{_named(cell)} could not be measured on {launch.fabric} ({cell.failed.code}): {cell.failed.reason}",
            )
            for cell in record.cells
            if cell.failed is not None
        )
        return Stored(summary, violations, failed)


def _printed_bytes(directory: Path) -> int:
    logs = (directory / STDOUT_FILE, directory / STDERR_FILE)
    return sum(log.stat().st_size for log in logs if log.exists())


def _end_of(attempt: Attempt, written: Written, ended: ProgramEnd | None) -> dict[str, Any]:
    """Return the facts of how an attempt ended."""
    exit_code = None if ended is None else ended.exit_code
    stderr_tail = "" if ended is None else ended.stderr_tail
    outcome = outcome_of(
        is_whole=written.record.is_complete,
        is_success=attempt.start.is_success(exit_code),
        exit_code=exit_code,
        is_hung=ended is not None and ended.is_ended,
        is_at_end=written.is_at_end,
        stood_still=ended is not None and bool(ended.standstills),
        stderr_tail=stderr_tail,
    )
    by_signal = signal_name(signal_number(exit_code, stderr_tail))
    died_on = place_of_death(stderr_tail) if by_signal is not None else None
    standstills = () if ended is None else ended.standstills
    return {
        "exit_code": exit_code,
        "outcome": outcome,
        "signal": by_signal,
        "died_on": died_on,
        "standstills": standstills,
    }


def _named(cell: CellRecord) -> str:
    """Return what a cell is, a kernel with its name: `mpi npb IS.W 4 ranks`."""
    one = cell.cell or cell.failed
    assert one is not None  # noqa: S101 - a record has one of the two
    is_workload = cell.cell is not None and PATTERNS[one.pattern].family is Family.WORKLOAD
    return f"{one.layer} {one.pattern}" + (f" {variant(cell.cell)}" if is_workload and cell.cell is not None else "")
