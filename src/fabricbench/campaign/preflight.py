"""Looks at a venue before a run directory is written: can everything be started, are the nodes as the testbed says, is all quiet?

What is wrong is `testbed.preflight`'s to tell; this asks. The inventory, what the nodes are like (the doctor's facts of each) and
the versions of what measures, is kept in the manifest; one that a node does not give is said in its place, and never keeps a run
from starting. Where a run takes place on this machine, other work on it is looked for before the first launch.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from fabricbench import __version__
from fabricbench.campaign.attempt import PROBE, start_of
from fabricbench.campaign.condition import sets_mtu
from fabricbench.campaign.events import Event, NodesAsked, Notice
from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.venue import Conditioned, OwnLab, Standing, Twins, Venue
from fabricbench.errors import FabricbenchError
from fabricbench.launch.asking import MOST_IN_FLIGHT, Answer, Limits, ask_all
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.mpi import check_fits, programs_of, starter_of
from fabricbench.launch.slurm import STEP_ADVICE
from fabricbench.launch.ssh import SSH_FAILED, advice_on
from fabricbench.model import Layer
from fabricbench.native import build_info, builds_of, built_for_levels, native_file
from fabricbench.settings.agent import Told
from fabricbench.settings.session import examine_nodes
from fabricbench.testbed.differences import as_findings, find_differences
from fabricbench.testbed.doctor import find_mpi
from fabricbench.testbed.model import Launcher as LauncherName
from fabricbench.testbed.model import Lost, Mpi, Testbed, mpi_of
from fabricbench.testbed.node_facts import NodeFacts
from fabricbench.testbed.preflight import Needed, judge
from fabricbench.testbed.preflight_result import (
    OF_THE_ENVIRONMENT,
    SETTING,
    Finding,
    Preflight,
    Severity,
    Silent,
    told,
)

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
    # A twin is the same fabric by intention, and so are a fabric's conditions.
    place = venue.of if isinstance(venue, Twins | Conditioned) else venue
    if plan is not None:
        _check_commands(place, plan)
    if isinstance(place, OwnLab):
        return _examine_own_lab(place)
    found = _examine_standing(place, plan, notify)
    return _with_conditions(found, venue, place) if isinstance(venue, Conditioned) else found


def _check_commands(place: OwnLab | Standing, plan: RunPlan) -> None:
    """Put together each launch's command as it will be started: what cannot be told to an MPI is to be said now."""
    launcher = place.sketch()
    starter = starter_of(place.testbed())
    for mpi in _native_names(plan, place.testbed()):
        check_fits(starter.others[mpi.name] if mpi else starter, native_file(PROBE, programs_of(mpi)))
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
    return look_at_nodes(place, plan, notify)[0]


def look_at_nodes(
    place: Standing, plan: RunPlan | None, notify: Notify
) -> tuple[Preflight, dict[str, NodeAnswer | Silent]]:
    """Return how a testbed was found, and what each node told. Raises what no launch could be started for."""
    testbed = place.testbed()
    place.check()
    needed = _needed(plan, testbed)
    launcher, nodes = place.sketch(), len(testbed.nodes)
    notify(NodesAsked(0, nodes))
    answers = ask_nodes(testbed, launcher, tuple(needed.programs), lambda done: notify(NodesAsked(done, nodes)))
    facts = {name: one.facts if isinstance(one, NodeAnswer) else one for name, one in answers.items()}
    mpi = {name: one.inventory.get("mpi.version", "") for name, one in answers.items() if isinstance(one, NodeAnswer)}
    found = judge(testbed, facts, needed, mpi)
    inventories = {name: one.inventory for name, one in answers.items() if isinstance(one, NodeAnswer)}
    findings = (*found.findings, *as_findings(find_differences(inventories)))
    lost = launcher.lost()
    if lost is not None:
        findings = (_of_lost(lost), *findings)
    return found.model_copy(update={"findings": findings, "inventories": inventories}), answers


def _with_conditions(found: Preflight, venue: Conditioned, place: Standing) -> Preflight:
    """Return what was found with what keeps settings from being varied, and without the MTUs that every condition sets."""
    set_everywhere = {one.name for one in place.testbed().fabrics if sets_mtu(one, venue.conditions)}
    kept = [one for one in found.findings if one.subject != "mtu" or one.fabric not in set_everywhere]
    silent = {one.node for one in kept if one.subject in OF_THE_ENVIRONMENT and one.severity is Severity.ERROR}
    sides = venue.sides()
    nodes = [node.name for node in place.testbed().nodes if node.name not in silent] if sides else []
    answers = examine_nodes(place.sketch().in_node, nodes, sides, are_apart=place.testbed().launcher.is_cluster)
    wrong = [finding for node, one in answers.items() for finding in _unsettable(node, one)]
    return found.model_copy(update={"findings": (*wrong, *kept)})


def _unsettable(node: str, told: Told | str) -> Iterator[Finding]:
    if isinstance(told, str):
        needed = "an answer of what reads and writes settings"
        yield Finding(node=node, subject=SETTING, found=told, needed=needed, action=SAME_PATH)
        return
    for one in told.problems:
        found = f"{one.found} ({one.setting})"
        yield Finding(node=node, subject=SETTING, found=found, needed=one.needed, action=one.action)


def _of_lost(lost: Lost) -> Finding:
    return Finding(
        fabric=lost.fabric,
        subject="lab",
        found=f"that {lost.what}",
        needed="a lab of which every process runs",
        action=lost.action,
    )


def _needed(plan: RunPlan | None, testbed: Testbed) -> Needed:
    """Return what must be on each node: the programs of ours that the plan starts, as they are here.

    What runs inside a container is in there, not on the node.
    """
    programs: dict[str, str] = {}
    higher_levels: set[str] = set()
    for mpi, names in _native_names(plan, testbed).items():
        build = programs_of(mpi)
        for name in names if not (mpi and mpi.inside) else ():
            own, *others = (str(native_file(level, build)) for level in built_for_levels(name, build))
            programs |= dict.fromkeys((own, *others), f"{name} {__version__}")
            higher_levels.update(others)
    return Needed(
        version=__version__,
        programs=programs,
        mpi=find_mpi().version if testbed.launcher.is_cluster and not testbed.mpis else None,
        builds=builds_of(programs),
        architecture=os.uname().machine,
        higher_levels=frozenset(higher_levels),
        by_rdma=_by_rdma(plan, testbed),
    )


def _by_rdma(plan: RunPlan | None, testbed: Testbed) -> frozenset[str]:
    """Return the fabrics that layer rdma is measured over; without a plan those that have it."""
    if plan is None:
        return frozenset(fabric.name for fabric in testbed.fabrics if Layer.RDMA in fabric.layers)
    over = {
        number
        for number, cell in enumerate(plan.cells)
        if Layer.RDMA in (cell.layer, cell.congestor and cell.congestor.layer)
    }
    return frozenset(launch.fabric for launch in plan.launches if not over.isdisjoint(launch.cells))


def _native_names(plan: RunPlan | None, testbed: Testbed) -> dict[Mpi | None, list[str]]:
    """Return the programs of ours that are started with each MPI; without a plan the measurer with each of the fabrics'.

    An MPI that starts programs of others alone needs none of ours built with it.
    """
    if plan is None:
        return {mpi_of(testbed.mpis, fabric): [PROBE] for fabric in testbed.fabrics}
    found: dict[Mpi | None, list[str]] = {}
    for launch in plan.launches:
        wanted = launch.workload.native_programs if launch.workload else (PROBE,)
        if wanted:
            names = found.setdefault(plan.mpi_of(launch.fabric), [PROBE])
            names += [name for name in wanted if name not in names]
    return found


NODE_SECONDS = 30.0
"""A cold file system and a busy node; it takes under a second otherwise."""

ALL_SECONDS = 60.0
SECONDS_A_NODE = 0.5
"""The deadline of all nodes grows with their number: emulated ones share this machine's processors."""

DOCTOR = "fabricbench.testbed.doctor"
NO_PROGRAM = (126, 127)
"""What a shell ends with where the program is missing or may not be run."""

SAME_PATH = f"install fabricbench {__version__} there at the same path as here, {sys.prefix}"


@dataclass(frozen=True)
class NodeAnswer:
    """What a node told: facts for a preflight, its inventory as text, and the span of the question by this machine's clock."""

    facts: NodeFacts
    inventory: dict[str, str]
    asked_ns: tuple[int, int] = (0, 0)


def ask_nodes(
    testbed: Testbed,
    launcher: Launcher,
    programs: Sequence[str] = (),
    tell: Callable[[int], None] = lambda _: None,
) -> dict[str, NodeAnswer | Silent]:
    """Ask every node for its facts and its inventory; `tell` hears how many are done. One deadline over all."""
    doctor = [sys.executable, "-m", DOCTOR, "--json", *programs]
    questions: dict[str, Sequence[str]] = {}
    answers: dict[str, NodeAnswer | Silent] = {}
    for node in testbed.nodes:
        try:
            questions[node.name] = launcher.in_node(node.name, doctor)
        except FabricbenchError as error:
            answers[node.name] = Silent(found=error.message, action=error.hint or "correct the testbed")
    nodes_are_apart = testbed.launcher.is_cluster
    limits = Limits(
        each_s=NODE_SECONDS,
        all_s=ALL_SECONDS + SECONDS_A_NODE * len(testbed.nodes),
        in_flight=MOST_IN_FLIGHT if nodes_are_apart else max(2, len(os.sched_getaffinity(0))),
    )
    for name, answer in ask_all(questions, limits, tell).items():
        answers[name] = _understood(name, answer, testbed.launcher)
    return {node.name: answers[node.name] for node in testbed.nodes}


def read_inventories(testbed: Testbed, launcher: Launcher) -> dict[str, dict[str, str]]:
    """Return the doctor's facts by node; where a node gave none, why."""
    return {
        name: {"missing": answer.found} if isinstance(answer, Silent) else answer.inventory
        for name, answer in ask_nodes(testbed, launcher).items()
    }


def read_versions(testbed: Testbed) -> dict[str, str]:
    """Return what measures, and in which version."""
    starter = starter_of(testbed)
    several = starter.others if len(starter.others) > 1 else {}
    return {
        "fabricbench": __version__,
        "python": platform.python_version(),
        "mpi": ", ".join(f"{name}: {one.mpi}" for name, one in several.items()) or starter.mpi,
        "starter": f"{starter.starter.NAME} {starter.version}".strip(),
        "compiler": build_info().compiler,
        "build": build_info().build_type,
    }


def _understood(node: str, answer: Answer, place: LauncherName) -> NodeAnswer | Silent:
    """Return what a node's answer says, or why it says nothing."""
    # Whatever a login shell prints comes before the doctor's one line.
    line = next((one for one in reversed(answer.stdout.splitlines()) if one.startswith("{")), None)
    if line is not None:
        return _parsed(line, (answer.begin_unix_ns, answer.end_unix_ns))
    is_over_ssh = place is LauncherName.SSH
    if answer.problem is not None and place is LauncherName.SLURM:
        return Silent(found=answer.problem, action=STEP_ADVICE.format(node=node))
    if answer.problem is not None:
        is_client = "cannot be started here" in answer.problem and is_over_ssh
        action = "install an OpenSSH client here, with `ssh` on the PATH" if is_client else advice_on(node, "timed out")
        return Silent(found=answer.problem, action=action)
    last = (answer.stderr.strip().splitlines() or [f"exit code {answer.exit_code}"])[-1].strip()
    if is_over_ssh and answer.exit_code == SSH_FAILED:
        return Silent(found=last, action=advice_on(node, answer.stderr))
    return _without_doctor(answer, last)


def _without_doctor(answer: Answer, last: str) -> Silent:
    """Return what to say of a node that is reached and has no doctor that answers."""
    found, action = f"the doctor failed: {last}", f"run `{sys.executable} -m {DOCTOR}` there and see"
    if answer.exit_code in NO_PROGRAM:
        found, action = f"no {sys.executable} there ({last})", SAME_PATH
    elif "No module named" in answer.stderr:
        found, action = f"no fabricbench in {sys.prefix} there ({last})", SAME_PATH
    elif "unrecognized arguments" in answer.stderr:
        found, action = "an earlier fabricbench, which knows no preflight", SAME_PATH
    return Silent(subject="fabricbench", found=found, action=action)


def _parsed(line: str, asked_ns: tuple[int, int]) -> NodeAnswer | Silent:
    try:
        told = json.loads(line)
        inventory = {str(what): str(value) for what, value in told["inventory"].items()}
        return NodeAnswer(NodeFacts.model_validate(told["node"]), inventory, asked_ns)
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError):
        version = _version_of(line)
        found = f"fabricbench {version}" if version else "another fabricbench, whose answer cannot be read"
        return Silent(subject="fabricbench", found=found, action=SAME_PATH)


def _version_of(line: str) -> str | None:
    """Return the version in an answer of another one, as far as it tells."""
    try:
        return str(json.loads(line)["node"]["version"])
    except (ValueError, KeyError, TypeError):
        return None


SAMPLE_S = 0.5
BUSY_SHARE = 0.1
LEAST_BUSY = 0.25
"""Processors: a desktop's own housekeeping stays below; a program that runs all the time does not."""

_STAT = Path("/proc/stat")
_IDLE = (3, 4)
"""Places of the idle times of a processor in /proc/stat, behind its name: idle, and waiting for a disk."""


def other_load(
    *,
    read: Callable[[], str] = _STAT.read_text,
    wait: Callable[[float], None] = time.sleep,
    cpus: Iterable[int] | None = None,
) -> str | None:
    """Return in words how busy the processors that may be used are with other work; None where they are quiet. Takes `SAMPLE_S`."""
    mine = set(os.sched_getaffinity(0) if cpus is None else cpus)
    before = read()
    wait(SAMPLE_S)
    busy = busy_processors(before, read(), mine)
    if busy < max(LEAST_BUSY, BUSY_SHARE * len(mine)):
        return None
    return (
        f"this machine is busy: {busy:.1f} of {len(mine)} processors do other work (load average {os.getloadavg()[0]:.1f}). "
        "What is measured now scatters more, and emulated switches are late; a quiet machine gives narrower intervals"
    )


def busy_processors(before: str, after: str, cpus: Iterable[int]) -> float:
    """Return how many of `cpus` were busy on average between two readings of /proc/stat; time that a host took away counts."""
    busy = 0.0
    begin, end = _times(before), _times(after)
    for cpu in cpus:
        spent = [new - old for old, new in zip(begin.get(cpu, ()), end.get(cpu, ()), strict=False)]
        if total := sum(spent):
            busy += 1 - sum(spent[place] for place in _IDLE) / total
    return busy


def _times(stat: str) -> dict[int, list[int]]:
    """Return the times of each processor: user, nice, system, idle, iowait, irq, softirq, steal. Guests' are in user already."""
    lines = [line.split() for line in stat.splitlines() if line.startswith("cpu") and line[3].isdigit()]
    return {int(name[3:]): [int(each) for each in times[:8]] for name, *times in lines}
