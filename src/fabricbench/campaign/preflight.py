"""Looks at a venue before a run directory is written: can everything be started, and are the nodes as the testbed says?

What is wrong is `testbed.preflight`'s to tell; this asks.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from fabricbench import __version__
from fabricbench.campaign.events import Event, NodesAsked, Notice
from fabricbench.campaign.inventory import NodeAnswer, ask_nodes
from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.starts import PROBE, start_of
from fabricbench.campaign.venue import OwnLab, Standing, Twins, Venue
from fabricbench.native import builds_of, native_file
from fabricbench.testbed.doctor import find_mpi
from fabricbench.testbed.model import Launcher, Lost
from fabricbench.testbed.preflight import Needed, judge
from fabricbench.testbed.preflight_result import Finding, Preflight, told

SKIPPED = Preflight(is_skipped=True)

Notify = Callable[[Event], None]


def pass_preflight(venue: Venue, plan: RunPlan, notify: Notify) -> Preflight:
    """Return how the venue was found; its warnings go to `notify`. Raises UsageError or EnvironmentLacks for what refuses a run."""
    found = examine_venue(venue, plan, notify)
    refusal = found.refusal()
    if refusal is not None:
        raise refusal
    for line in told(found.warnings):
        notify(Notice(line))
    return found


def examine_venue(venue: Venue, plan: RunPlan | None, notify: Notify) -> Preflight:
    """Return how the venue was found, for a plan or for any. Raises what no launch could be started for."""
    place = venue.of if isinstance(venue, Twins) else venue  # a twin is the same fabric by intention
    if plan is not None:
        _check_commands(place, plan)
    return _examine_own_lab(place) if isinstance(place, OwnLab) else _examine_standing(place, plan, notify)


def _check_commands(place: OwnLab | Standing, plan: RunPlan) -> None:
    """Put together each launch's command as it will be started: what cannot be told to an MPI is to be said now."""
    launcher = place.sketch()
    tried: set[tuple[str, tuple[str, ...], int]] = set()
    for launch in plan.launches:
        program, ranks = start_of(launch, plan).program(Path("RUNDIR")), plan.ranks_of(launch)
        if (what := (launch.fabric, tuple(program), ranks)) not in tried:
            launcher.command(plan.fabric(launch.fabric), program, Path("RUNDIR"), ranks)
            tried.add(what)


def _examine_own_lab(lab: OwnLab) -> Preflight:
    """A lab that is yet to be built is as it is planned; what matters is this machine."""
    lab.check()
    note = f"the lab of {lab.nodes} nodes is built for the run on {os.uname().nodename}, as its fabrics say"
    return Preflight(testbed=lab.testbed().name, notes=(note,))


def _examine_standing(place: Standing, plan: RunPlan | None, notify: Notify) -> Preflight:
    testbed = place.testbed()
    needed = _needed(plan, with_mpi=testbed.launcher is Launcher.SSH)
    launcher, nodes = place.sketch(), len(testbed.nodes)
    notify(NodesAsked(0, nodes))
    answers = ask_nodes(testbed, launcher, tuple(needed.programs), lambda done: notify(NodesAsked(done, nodes)))
    facts = {name: one.facts if isinstance(one, NodeAnswer) else one for name, one in answers.items()}
    mpi = {name: one.inventory.get("mpi.version", "") for name, one in answers.items() if isinstance(one, NodeAnswer)}
    found = judge(testbed, facts, needed, mpi)
    lost = launcher.lost()
    return found if lost is None else found.model_copy(update={"findings": (_of_lost(lost), *found.findings)})


def _of_lost(lost: Lost) -> Finding:
    return Finding(
        fabric=lost.fabric,
        subject="lab",
        found=f"that {lost.what}",
        needed="a lab of which every process runs",
        action=lost.action,
    )


def _needed(plan: RunPlan | None, *, with_mpi: bool) -> Needed:
    """Return what must be on each node: the programs of ours that the plan starts, as they are here."""
    workloads = [one.workload for one in plan.launches if one.workload] if plan is not None else []
    names = list(dict.fromkeys((PROBE, *(name for one in workloads for name in one.native_programs))))
    programs = {str(native_file(name)): f"{name} {__version__}" for name in names}
    return Needed(
        version=__version__,
        programs=programs,
        mpi=find_mpi().version if with_mpi else None,
        builds=builds_of(programs),
        architecture=os.uname().machine,
    )
