"""Starting a run and going on with one: the run directory, the venue and the execution put together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fabricbench.campaign.events import Event
from fabricbench.campaign.execute import Execution
from fabricbench.campaign.inventory import read_inventories, read_versions
from fabricbench.campaign.journal import Happened, Journal
from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.specification import Campaign
from fabricbench.campaign.starts import start_of
from fabricbench.campaign.venue import Venue
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.launch.launcher import Launcher
from fabricbench.record.manifest import MANIFEST, Manifest, PlannedLaunch, write_manifest

Notify = Callable[[Event], None]


def start_run(
    path: Path, campaign: Campaign, venue: Venue, plan: RunPlan, *, notify: Notify, command: tuple[str, ...] = ()
) -> None:
    """Run a plan into a new run directory. Raises what `Execution.run` raises, and UsageError if the directory is not empty.

    `command` is what was typed, kept so that a report can say how to measure the same again.
    """
    directory = RunDirectory(path)
    directory.create()
    with directory.locked():
        stored = StoredPlan(campaign=campaign, plan=plan, venue=venue, command=command)
        directory.write_plan(stored)
        Journal(directory.path).append(Happened.PLANNED, launches=len(plan.launches), seed=plan.seed)
        try:
            _execute(directory, stored, notify)
        except (EnvironmentLacks, UsageError):
            if not (
                directory.path / MANIFEST
            ).exists():  # the venue could not be had: the same command can be given again
                directory.discard()
            raise


def resume_run(path: Path, *, notify: Notify) -> None:
    """Go on with a run: what is finished stays, all else is run. UsageError where the directory holds no run, or one that runs."""
    directory = RunDirectory(path)
    stored = directory.read_plan()  # before the lock, which would leave a file in a folder that holds no run
    with directory.locked():
        Journal(directory.path).append(Happened.RESUMED)
        _execute(directory, stored, notify)


def _execute(directory: RunDirectory, stored: StoredPlan, notify: Notify) -> None:
    for launch in stored.plan.launches:
        start_of(launch, stored.plan).program(directory.path)  # what is missing is to be said now, not in the middle
    with stored.venue.open() as launcher:
        if not (directory.path / MANIFEST).exists():
            write_manifest(directory.path, _manifest(stored, launcher))
        Execution(directory, stored.plan, launcher, notify).run()


def _manifest(stored: StoredPlan, launcher: Launcher) -> Manifest:
    testbed = stored.venue.testbed()
    return Manifest(
        campaign_name=stored.campaign.name,
        campaign=stored.campaign.model_dump(mode="json"),
        testbed=testbed,
        seed=stored.plan.seed,
        command=stored.command,
        planned=tuple(
            PlannedLaunch(**launch.model_dump(include=set(PlannedLaunch.model_fields)))
            for launch in stored.plan.launches
        ),
        versions=read_versions(),
        inventory=read_inventories(testbed, launcher),
    )
