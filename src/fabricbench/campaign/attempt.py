"""One attempt of a launch on the disk: its directory and command before, its stored record and path proof after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricbench.campaign.path_proof import prove_path
from fabricbench.campaign.plan import RECORDS_FILE, LaunchPlan, RunPlan
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.launch.command import Command
from fabricbench.launch.launcher import Launcher
from fabricbench.record.atomic import replace_text
from fabricbench.record.launch import LaunchFacts, LaunchSummary, write_launch
from fabricbench.record.reading import Record, read_record

LAUNCH_PLAN_FILE = "plan.json"


@dataclass(frozen=True)
class Attempt:
    """A launch that is about to be started."""

    launch: LaunchPlan
    directory: Path
    command: Command
    switches_before: dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """What an attempt left: its summary, why its path is not believed, and in words the cells that could not be measured."""

    summary: LaunchSummary
    violations: tuple[str, ...]
    failed_cells: tuple[str, ...]


class Keeper:
    """Prepares and keeps the launches of one run directory."""

    def __init__(self, directory: RunDirectory, plan: RunPlan, launcher: Launcher) -> None:
        self._directory = directory
        self._plan = plan
        self._launcher = launcher

    def is_finished(self, launch: LaunchPlan) -> bool:
        """Tell whether a launch is finished. One whose record is whole but was not stored before a crash is stored now."""
        if self._directory.is_finished(launch):
            return True
        records = self._directory.launch(launch.launch_id) / RECORDS_FILE
        if not records.exists():
            return False
        record = read_record(records)
        if record.is_complete:
            self._store(launch, records.parent, record, {})
        return record.is_complete

    def prepare(self, launch: LaunchPlan) -> Attempt:
        """Write a launch's plan into its directory, which is emptied, and build its command."""
        directory = self._directory.prepare(launch.launch_id)
        plan_path = directory / LAUNCH_PLAN_FILE
        replace_text(plan_path, self._plan.probe_plan(launch).model_dump_json(by_alias=True, indent=1) + "\n")
        command = self._launcher.command(self._plan.fabric(launch.fabric), plan_path, self._plan.ranks)
        return Attempt(launch, directory, command, self._launcher.switches())

    def store(self, attempt: Attempt, *, exit_code: int | None) -> Stored | None:
        """Convert what an attempt wrote, whole or cut short; None if it wrote no record."""
        records = attempt.directory / RECORDS_FILE
        if not records.exists():
            return None
        switches = {"switches_before": attempt.switches_before, "switches_after": self._launcher.switches()}
        return self._store(
            attempt.launch, attempt.directory, read_record(records), {"exit_code": exit_code, **switches}
        )

    def _store(self, launch: LaunchPlan, directory: Path, record: Record, facts: dict[str, Any]) -> Stored:
        proof = prove_path(record, self._plan.fabric(launch.fabric))
        summary = write_launch(
            directory,
            record,
            facts=LaunchFacts(
                block=launch.block,
                position=launch.position,
                is_valid=not proof.violations,
                invalid_because=proof.violations,
                path_proof=proof.model_dump(mode="json"),
                conditions=dict(self._launcher.conditions(self._plan.fabric(launch.fabric))),
                **facts,
            ),
        )
        failed = tuple(
            f"{cell.failed.layer} {cell.failed.pattern} could not be measured on {launch.fabric} ({cell.failed.code}): "
            f"{cell.failed.reason}"
            for cell in record.cells
            if cell.failed is not None
        )
        return Stored(summary, proof.violations, failed)
