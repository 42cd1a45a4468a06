"""Starting a run and going on with one: the run directory, the venue and the execution put together."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from shlex import quote

from fabricbench.campaign.budget import BudgetSpentError
from fabricbench.campaign.events import Notice, Notify
from fabricbench.campaign.execute import Execution
from fabricbench.campaign.failure import NodesFailed, enumerated, silent_in_words
from fabricbench.campaign.plan import RunPlan, extend_plan, plan_without, shorten_plan
from fabricbench.campaign.preflight import SKIPPED, pass_preflight, read_inventories, read_versions
from fabricbench.campaign.quietness import OtherLoad, other_load
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.specification import Campaign
from fabricbench.campaign.start import start_of
from fabricbench.campaign.trust import check_trust, is_sealed, seal_plan
from fabricbench.campaign.venue import Conditioned, Venue
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab import crowding
from fabricbench.launch.foreign import CLEARED, CLEARED_NOTICE
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.slurm import JOB_NODES
from fabricbench.quantity import count, format_duration
from fabricbench.record.atomic import NoSpace
from fabricbench.record.integrity import MANIFEST
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.manifest import (
    Extension,
    Manifest,
    PlannedLaunch,
    manifest_text,
    paired_blocks,
    read_manifest,
)
from fabricbench.settings.session import SettingsSession, varied_settings
from fabricbench.testbed.allocation import JOB, allocated_nodes
from fabricbench.testbed.model import LauncherKind
from fabricbench.testbed.preflight_result import NodesSilent, Preflight


def start_run(
    path: Path,
    campaign: Campaign,
    venue: Venue,
    plan: RunPlan,
    *,
    notify: Notify,
    command: tuple[str, ...] = (),
    preflight: bool = True,
    found: Preflight = SKIPPED,
    without_failed_nodes: bool = False,
) -> None:
    """Run a plan into a new run directory. Raises what `Execution.run` raises, and UsageError if the directory is not empty.

    `without_failed_nodes`: where nodes do not answer, before it or in the middle, it is run on the rest.

    A preflight comes first, unless it is not wanted: where it finds an error, EnvironmentLacks, nothing is written. Without it
    `found` is what is known of the nodes. `command` is what was typed, kept so that a report can say how to measure the same again.
    """
    directory = RunDirectory(path)
    directory.check_unused()
    stored = StoredPlan(campaign=campaign, plan=plan, venue=venue, command=command)
    if without_failed_nodes:
        stored = _without_silent_nodes(directory, stored, notify)
    if preflight:
        found = pass_preflight(stored.place, stored.plan, notify)
    directory.create()
    with directory.locked():
        directory.check_unused()  # again: another run may have begun in it between the two
        directory.remove_stub()
        stored = stored.model_copy(update={"preflight": found})
        try:
            directory.write_plan(stored)
            seal_plan(directory)
            Journal(directory.path).append(JournalEvent.PLANNED, launches=len(stored.plan.launches), seed=plan.seed)
            _execute(directory, stored, notify, without_failed_nodes=without_failed_nodes)
        except (EnvironmentLacks, UsageError) as error:
            if not (directory.path / MANIFEST).exists():  # nothing was begun: the same command can be given again
                directory.discard()
                if isinstance(error, NoSpace):
                    hint = "free some space and repeat the command: nothing was begun, and nothing is left of it"
                    raise NoSpace(error.message, hint=hint) from error
            raise


def resume_run(
    path: Path,
    *,
    notify: Notify,
    blocks: int | None = None,
    is_trusted: bool = False,
    preflight: bool = True,
    without_failed_nodes: bool = False,
) -> None:
    """Go on with a run: what is finished stays, all else is run. UsageError where the directory holds no run, or one that runs.

    With `blocks` the run gets so many in all, or gives up those beyond, of which nothing is measured; UsageError where it cannot.
    UsageError, too, where the plan was not written by this user and asks for more than our own programs, unless it `is_trusted`.
    Where anything is left to measure a preflight comes first, unless it is not wanted, and refuses as that of `start_run` does.
    `without_failed_nodes`: what is left is measured on the nodes that answer.
    """
    directory = RunDirectory(path)
    directory.check_is_run()  # before a word about what is in it: it may be somebody else's folder
    directory.read_plan()  # before the lock, which would leave a file in a folder that holds no run
    with directory.locked():
        stored = directory.read_plan()
        check_trust(directory, stored, is_trusted=is_trusted)
        Journal(directory.path).entries()  # one that cannot be read is to be said before anything is written
        extension = None if blocks is None else _extension(directory, stored.plan, blocks)
        if extension is not None:
            fewest = directory.blocks_with_data(stored.plan)
            stored = stored.model_copy(update={"plan": extend_plan(stored.plan, extension, fewest=fewest)})
        is_left = any(directory.finished(launch) is None for launch in stored.plan.launches)
        if is_left and without_failed_nodes:
            stored = _without_silent_nodes(directory, stored, notify)
        try:
            found = pass_preflight(stored.place, stored.plan, notify) if is_left and preflight else SKIPPED
        except NodesSilent as error:
            if without_failed_nodes or not stored.venue.testbed().launcher.is_cluster:
                raise
            hint = f"{error.hint}; where a node has failed for good, --without-failed-nodes goes on with the rest"
            raise NodesSilent(error.message, hint=hint) from error
        directory.remove_temporaries()  # what is written comes after all that may refuse
        if is_trusted:
            seal_plan(directory)  # said once is enough
        Journal(directory.path).append(JournalEvent.RESUMED, preflight=found.model_dump(mode="json"))
        _execute(directory, stored, notify, extension, without_failed_nodes=without_failed_nodes)


def _extension(directory: RunDirectory, plan: RunPlan, blocks: int) -> Extension | None:
    """Return the step to so many blocks, with what somebody may have looked at before it; None where there are as many."""
    if blocks == plan.blocks:
        return None
    measured = {launch.launch_id for launch in plan.launches if directory.finished(launch) is not None}
    paired = paired_blocks(plan.launches, measured)
    return Extension(blocks=blocks, planned=plan.blocks, measured=len(paired), unix_ns=time.time_ns())


def _without_silent_nodes(directory: RunDirectory, stored: StoredPlan, notify: Notify) -> StoredPlan:
    """Return the plan on the nodes that this job has and that answer now; nothing is written."""
    testbed = stored.place.testbed()
    is_slurm = testbed.launcher is LauncherKind.SLURM and bool(os.environ.get(JOB_NODES))
    here = allocated_nodes() if testbed.is_allocated or is_slurm else None
    lacking = [node.name for node in testbed.nodes if here is not None and node.name not in here]
    reasons = dict.fromkeys(lacking, "this job does not have it")
    if len(lacking) < len(testbed.nodes):
        reasons |= stored.place.without(lacking).sketch().failed_nodes()
    return _without(directory, stored, reasons, notify) if reasons else stored


def _without(directory: RunDirectory, stored: StoredPlan, reasons: Mapping[str, str], notify: Notify) -> StoredPlan:
    """Return the plan for the nodes that have not failed; EnvironmentLacks where the campaign cannot go on with them."""
    plan = stored.plan
    finished = {launch.launch_id for launch in plan.launches if directory.finished(launch) is not None}
    try:
        rest = plan_without(plan, stored.campaign, stored.venue.testbed(), reasons, finished, unix_ns=time.time_ns())
    except UsageError as error:
        raise EnvironmentLacks(
            f"{silent_in_words(reasons)}, and the run cannot go on without: {error.message}",
            hint=f"bring {enumerated(list(reasons))} back, then resume the run; what was measured is kept",
        ) from error
    loss = rest.losses[-1]
    left_out = "".join(f"; {note}" for note in loss.left_out)
    notify(
        Notice(
            f"{silent_in_words(reasons)}: {len(loss.kept)} of {count(plan.blocks, 'block')} "
            f"{'is' if len(loss.kept) == 1 else 'are'} whole and stay, the others are measured on "
            f"the rest of the nodes, from their beginning{left_out}"
        )
    )
    return stored.model_copy(update={"plan": rest})


def _execute(
    directory: RunDirectory,
    stored: StoredPlan,
    notify: Notify,
    extension: Extension | None = None,
    *,
    without_failed_nodes: bool = False,
) -> None:
    """Run what is left, within the plan's budget.

    `without_failed_nodes`: on fewer nodes, as often as some fail, each time by a new plan.
    """
    while True:
        try:
            _execute_plan(directory, stored, notify, extension)
        except NodesFailed as failed:
            if not without_failed_nodes:
                raise
            stored, extension = _without(directory, stored, failed.reasons, notify), None
        except BudgetSpentError as spent:
            return _end_for_budget(directory, stored, spent, notify)
        else:
            return None


def _end_for_budget(directory: RunDirectory, stored: StoredPlan, spent: BudgetSpentError, notify: Notify) -> None:
    """Give up the blocks that are left, and say so: what was measured is the run. No look at the data decided it."""
    plan = stored.plan
    extension = Extension(blocks=spent.blocks, planned=plan.blocks, measured=0, unix_ns=time.time_ns())
    shorter = stored.model_copy(update={"plan": shorten_plan(plan, extension)})
    _write_changed_plan(directory, shorter)
    Journal(directory.path).append(JournalEvent.EXTENDED, **extension.model_dump(exclude={"unix_ns"}))
    _bring_up_to_date(directory.path, shorter.plan)
    Journal(directory.path).append(JournalEvent.COMPLETED)
    planned = plan.estimated_seconds / plan.blocks
    others = (
        "; it was declared final, so the others are not measured"
        if plan.is_final
        else f"; `fabricbench resume {quote(str(directory.path))} --blocks {plan.blocks}` measures the others"
    )
    notify(
        Notice(
            f"the budget of {format_duration(plan.budget_seconds or 0.0)} is spent: a block took "
            f"{format_duration(spent.seconds / spent.blocks)} where {format_duration(planned)} was planned, so the run has "
            f"{spent.blocks} of {count(plan.blocks, 'block')}{others}"
        )
    )


def _execute_plan(directory: RunDirectory, stored: StoredPlan, notify: Notify, extension: Extension | None) -> None:
    """Run what is left. `extension` is the plan's last one where it is not on the disk yet: it is written once the venue is had."""
    for launch in stored.plan.launches:
        start_of(launch, stored.plan).program(directory.path)  # what is missing is to be said now, not in the middle
    place = stored.venue.testbed().launcher
    other = other_load() if not place.is_cluster else None  # before a lab is started, which is work too
    with stored.place.open() as launcher, _varied(stored, launcher, directory, notify) as settings:
        busy = other.words() if other is not None else None
        for warning in (busy, *(crowding() if place is LauncherKind.LAB else ())):
            if warning is not None:
                notify(Notice(warning))
        for fact in dict.fromkeys(launcher.conditions(fabric).get(CLEARED, "") for fabric in stored.plan.fabrics):
            if fact:
                notify(Notice(CLEARED_NOTICE.format(fact)))
        if extension is not None or directory.read_plan().plan.losses != stored.plan.losses:
            _write_changed_plan(directory, stored)
        if extension is not None:
            Journal(directory.path).append(JournalEvent.EXTENDED, **extension.model_dump(exclude={"unix_ns"}))
        if not (directory.path / MANIFEST).exists():
            _describe(directory.path, _manifest(stored, launcher, other))
        else:
            _bring_up_to_date(directory.path, stored.plan)
        carriers = stored.preflight.carriers if stored.preflight is not None else None
        Execution(directory, stored.plan, launcher, notify, settings=settings, carriers=carriers).run()


def _write_changed_plan(directory: RunDirectory, stored: StoredPlan) -> None:
    """Write a plan in the place of one that it was made from, which stays trusted or not."""
    is_ours = is_sealed(directory)
    directory.write_plan(stored)
    if is_ours:
        seal_plan(directory)


def _varied(
    stored: StoredPlan, launcher: Launcher, directory: RunDirectory, notify: Notify
) -> AbstractContextManager[SettingsSession | None]:
    """Return the context in which the settings of the venue's conditions are varied; at its end they are what they were."""
    venue = stored.place
    if not isinstance(venue, Conditioned):
        return nullcontext()
    testbed = venue.testbed()
    return varied_settings(
        launcher.in_node,
        [node.name for node in testbed.nodes],
        venue.sides(),
        run=directory.path,
        notice=lambda text: notify(Notice(text)),
        are_apart=testbed.launcher.is_cluster,
        lives_with=launcher.lives_with(),
        job=os.environ.get(JOB, "") if testbed.launcher is LauncherKind.SLURM else "",
    )


def _bring_up_to_date(path: Path, plan: RunPlan) -> None:
    """Write the manifest of a run whose plan has changed again: the plan counts, also where a crash came between the two."""
    manifest = read_manifest(path)
    if (manifest.extensions, manifest.losses) != (plan.extensions, plan.losses):
        changed = {"planned": _planned(plan), "extensions": plan.extensions, "losses": plan.losses}
        _describe(path, manifest.model_copy(update=changed))


def _describe(path: Path, manifest: Manifest) -> None:
    Journal(path).write(MANIFEST, manifest_text(manifest))


def _planned(plan: RunPlan) -> tuple[PlannedLaunch, ...]:
    fields = set(PlannedLaunch.model_fields)
    return tuple(PlannedLaunch(**launch.model_dump(include=fields)) for launch in plan.launches)


def _manifest(stored: StoredPlan, launcher: Launcher, other: OtherLoad | None) -> Manifest:
    testbed = stored.venue.testbed()
    known = stored.preflight.inventories if stored.preflight is not None else {}
    return Manifest(
        campaign_name=stored.campaign.name,
        campaign=stored.campaign.model_dump(mode="json"),
        testbed=testbed,
        seed=stored.plan.seed,
        command=stored.command,
        planned=_planned(stored.plan),
        is_final=stored.plan.is_final,
        extensions=stored.plan.extensions,
        losses=stored.plan.losses,
        versions=read_versions(testbed),
        inventory=read_inventories(stored.place.testbed(), launcher, other, known),
        preflight=stored.preflight,
    )
