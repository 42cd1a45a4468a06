"""Looks at a venue before a run directory is written: can everything be started, are the nodes as the testbed says, is all quiet?

What is wrong is `testbed.preflight`'s to tell; this asks. The inventory, what the nodes are like (the doctor's facts of each) and
the versions of what measures, is kept in the manifest; one that a node does not give is said in its place, and never keeps a run
from starting. Where a run takes place on this machine, other work on it is looked for before the first launch.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from fabricbench import __version__
from fabricbench.campaign.condition import sets_mtu
from fabricbench.campaign.events import NodesAsked, Notice, Notify
from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.quietness import OtherLoad
from fabricbench.campaign.start import PROBE, start_of
from fabricbench.campaign.venue import AAPair, Conditioned, OwnLab, Standing, Venue
from fabricbench.errors import FabricbenchError
from fabricbench.interpreter import python
from fabricbench.launch.asking import MOST_IN_FLIGHT, AskingLimits, CommandAnswer, ask_all, ask_together
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.mpi import check_fits, programs_of, starter_of
from fabricbench.launch.slurm import STEP_ADVICE, is_step_lost
from fabricbench.launch.ssh import SSH, SSH_FAILED, advice_on
from fabricbench.launch.starter import srun
from fabricbench.model import Layer
from fabricbench.native import build_info, builds_of, built_for_levels, native_file
from fabricbench.settings.agent import AgentAnswer
from fabricbench.settings.session import examine_nodes
from fabricbench.testbed.advice import with_load
from fabricbench.testbed.allowance import read_allowance
from fabricbench.testbed.differences import as_findings, differences_in
from fabricbench.testbed.doctor import find_mpi
from fabricbench.testbed.model import Lost, Mpi, Testbed, mpi_of
from fabricbench.testbed.names import LOOK_UP_SECONDS, look_up_all
from fabricbench.testbed.node_facts import NodeFacts
from fabricbench.testbed.preflight import Known, Requirements, allowed, judge
from fabricbench.testbed.preflight_result import (
    REACH,
    SETTING,
    UNUSABLE,
    Finding,
    FindingSeverity,
    Preflight,
    Silent,
    folded,
    told,
)

SKIPPED = Preflight(is_skipped=True)


def pass_preflight(venue: Venue, plan: RunPlan, notify: Notify) -> Preflight:
    """Return how the venue was found; its warnings go to `notify`. Raises EnvironmentLacks for what refuses a run."""
    found = examine_venue(venue, plan, notify)
    refusal = found.refusal()
    if refusal is not None:
        raise refusal
    for line in told(found.warnings):
        notify(Notice(line))
    return found


def examine_venue(venue: Venue, plan: RunPlan | None, notify: Notify) -> Preflight:
    """Return how the venue was found, for a plan or for any. Raises what no launch could be started for."""
    # The two names of an A/A pair are one fabric by intention, and so are a fabric's conditions.
    place = venue.of if isinstance(venue, AAPair | Conditioned) else venue
    if plan is not None:
        _check_commands(place, plan)
    if isinstance(place, OwnLab):
        return _examine_own_lab(place, plan)
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


def _examine_own_lab(lab: OwnLab, plan: RunPlan | None) -> Preflight:
    """Return a lab that is yet to be built as it is planned; what matters is this machine, which has the ranks of all nodes."""
    lab.check()
    note = f"the lab of {lab.nodes} nodes is built for the run on {os.uname().nodename}, as its fabrics say"
    here = read_allowance(Path("/")).model_copy(update={"shared_memory_bytes": None})  # nodes of a lab have their own
    findings = allowed("", here, _most_ranks(plan))
    return Preflight(testbed=lab.testbed().name, notes=(note,), findings=tuple(findings))


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
    found = judge(testbed, facts, needed, Known(mpi, addresses_of(testbed)))
    inventories = {name: one.inventory for name, one in answers.items() if isinstance(one, NodeAnswer)}
    alone = _alone(testbed, launcher, answers)
    findings = (*found.findings, *as_findings(differences_in(testbed, inventories)), *alone)
    lost = launcher.lost() or launcher.stopped()
    if lost is not None:
        findings = (_of_lost(lost), *findings)
    return found.model_copy(update={"findings": findings, "inventories": inventories}), answers


def _with_conditions(found: Preflight, venue: Conditioned, place: Standing) -> Preflight:
    """Return what was found with what keeps settings from being varied, and without the MTUs that every condition sets."""
    set_everywhere = {one.name for one in place.testbed().fabrics if sets_mtu(one, venue.conditions)}
    kept = [one for one in found.findings if one.subject != "mtu" or one.fabric not in set_everywhere]
    silent = {one.node for one in kept if one.subject in UNUSABLE and one.severity is FindingSeverity.ERROR}
    sides = venue.sides()
    nodes = [node.name for node in place.testbed().nodes if node.name not in silent] if sides else []
    answers = examine_nodes(place.sketch().in_node, nodes, sides, are_apart=place.testbed().launcher.is_cluster)
    wrong = [finding for node, one in answers.items() for finding in _unsettable(node, one)]
    return found.model_copy(update={"findings": (*wrong, *kept)})


def _unsettable(node: str, told: AgentAnswer | str) -> Iterator[Finding]:
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


def _needed(plan: RunPlan | None, testbed: Testbed) -> Requirements:
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
    return Requirements(
        version=__version__,
        programs=programs,
        mpi=find_mpi().version if testbed.launcher.is_cluster and not testbed.mpis else None,
        builds=builds_of(programs),
        architecture=os.uname().machine,
        higher_levels=frozenset(higher_levels),
        by_rdma=_by_rdma(plan, testbed),
        ranks_on_a_node=_ranks_on_a_node(plan, testbed),
    )


def _most_ranks(plan: RunPlan | None) -> int:
    return max(map(plan.ranks_of, plan.launches), default=1) if plan is not None else 1


def _ranks_on_a_node(plan: RunPlan | None, testbed: Testbed) -> int:
    """Return the most that a launch starts on one machine: nodes that are not machines share this one."""
    nodes = testbed.seats if testbed.launcher.is_cluster else 1
    return -(-_most_ranks(plan) // nodes)


def _by_rdma(plan: RunPlan | None, testbed: Testbed) -> dict[str, int]:
    """Return the fabrics that layer rdma is measured over, with the largest message; without a plan those that have it, with 0."""
    if plan is None:
        return {fabric.name: 0 for fabric in testbed.fabrics if Layer.RDMA in fabric.layers}
    sizes = [
        max(
            (one.message_bytes for one in (cell, cell.congestor) if one is not None and one.layer is Layer.RDMA),
            default=None,
        )
        for cell in plan.cells
    ]
    found: dict[str, int] = {}
    for launch in plan.launches:
        for size in (sizes[cell] for cell in launch.cells):
            if size is not None:
                found[launch.fabric] = max(found.get(launch.fabric, 0), size)
    return found


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

SECONDS_OF_SILENT = 10.0
"""For a node that said nothing where all were asked at once."""

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
    is_by_fan_out: bool = False
    """Whether it was asked together with others, by one command."""


def ask_nodes(
    testbed: Testbed,
    launcher: Launcher,
    programs: Sequence[str] = (),
    tell: Callable[[int], None] = lambda _: None,
) -> dict[str, NodeAnswer | Silent]:
    """Ask every node for its facts and its inventory; `tell` hears how many are done. One deadline over all."""
    arguments = ("--json", *programs)
    questions: dict[str, Sequence[str]] = {}
    answers: dict[str, NodeAnswer | Silent] = {**_answers_together(testbed, launcher, arguments, tell)}
    together = len(answers)
    for node in testbed.nodes:
        if node.name in answers:
            continue
        try:
            questions[node.name] = launcher.in_node(node.name, python(DOCTOR, *arguments))
        except FabricbenchError as error:
            answers[node.name] = Silent(found=error.message, action=error.hint or "correct the testbed")
    nodes_are_apart = testbed.launcher.is_cluster
    limits = AskingLimits(
        each_s=SECONDS_OF_SILENT if together else NODE_SECONDS,
        all_s=ALL_SECONDS + SECONDS_A_NODE * len(testbed.nodes),
        in_flight=MOST_IN_FLIGHT if nodes_are_apart else max(2, len(os.sched_getaffinity(0))),
    )
    asked = ask_all(questions, limits, lambda done: tell(together + done))
    named = look_up_all(name for name, answer in asked.items() if answer.problem is not None)
    for name, answer in asked.items():
        is_nameless = name in named and named[name].is_silent
        answers[name] = NAMELESS if is_nameless else _understood(name, answer, launcher)
    return {node.name: answers[node.name] for node in testbed.nodes}


def _answers_together(
    testbed: Testbed, launcher: Launcher, arguments: Sequence[str], tell: Callable[[int], None]
) -> dict[str, NodeAnswer]:
    """Return what those nodes told that answer where all are asked at once; who is silent, or unclear, is asked alone."""
    nodes = [node.name for node in testbed.nodes]
    tokens = launcher.in_nodes(nodes, DOCTOR, *arguments)
    if tokens is None:
        return {}
    seconds = ALL_SECONDS + SECONDS_A_NODE * len(nodes)
    found = ask_together(tokens, set(nodes), seconds, _is_of_doctor, tell)
    told = {name: _parsed(answer.stdout, (answer.begin_unix_ns, answer.end_unix_ns)) for name, answer in found.items()}
    # What one node told may stand behind the name of another.
    return {
        name: replace(one, is_by_fan_out=True)
        for name, one in told.items()
        if isinstance(one, NodeAnswer) and (one.facts.host == name or one.facts.host not in told)
    }


def _alone(testbed: Testbed, launcher: Launcher, answers: Mapping[str, NodeAnswer | Silent]) -> Iterator[Finding]:
    """Yield which nodes answer alone and not by the command for all: with many nodes that costs minutes."""
    nodes = [name for name, one in answers.items() if isinstance(one, NodeAnswer) and not one.is_by_fan_out]
    asked = (
        launcher.in_nodes([node.name for node in testbed.nodes][:2], DOCTOR, "--json")
        if nodes and testbed.fan_out
        else None
    )
    if asked is not None:
        them = f"{folded(nodes)} {'does' if len(nodes) == 1 else 'do'} not answer by `fan_out`"
        yield Finding(
            severity=FindingSeverity.WARNING,
            subject="fan_out",
            found=f"that {them}, and each had to be asked alone",
            needed="what each node prints, behind its name: `n17: ...`",
            action=f"see what `{shlex.join(asked)}` prints, or leave `fan_out` out",
        )


def _is_of_doctor(line: str) -> bool:
    return line.startswith("{")


NAMELESS = Silent(
    subject=REACH,
    found=f"that no name server here told within {LOOK_UP_SECONDS:g} s what its name leads to",
    action="add the nodes to /etc/hosts here, or take silent name servers out of /etc/resolv.conf",
)


def addresses_of(testbed: Testbed) -> dict[str, IPv4Address]:
    """Return what the names of nodes that are machines of their own lead to here, where ssh and starters look them up."""
    named = look_up_all(node.name for node in testbed.nodes) if testbed.launcher.is_cluster else {}
    return {name: one.address for name, one in named.items() if one.address is not None}


def read_inventories(
    testbed: Testbed,
    launcher: Launcher,
    other: OtherLoad | None = None,
    known: Mapping[str, dict[str, str]] = MappingProxyType({}),
) -> dict[str, dict[str, str]]:
    """Return the doctor's facts by node; where a node gave none, why. `other`: how busy the one machine was that all nodes are.

    Nodes whose facts are `known`, from the preflight, are not asked again.
    """
    unknown = tuple(node for node in testbed.nodes if node.name not in known)
    answers = ask_nodes(testbed.model_copy(update={"nodes": unknown}), launcher) if unknown else {}
    told = {
        name: {"missing": answer.found} if isinstance(answer, Silent) else answer.inventory
        for name, answer in answers.items()
    }
    inventories = {node.name: known.get(node.name) or told[node.name] for node in testbed.nodes}
    if other is None:
        return inventories
    return {
        name: with_load(facts, other.share) if "missing" not in facts else facts for name, facts in inventories.items()
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


def _understood(node: str, answer: CommandAnswer, launcher: Launcher) -> NodeAnswer | Silent:
    """Return what a node's answer says, or why it says nothing."""
    # Whatever a login shell prints comes before the doctor's one line.
    line = next(filter(_is_of_doctor, reversed(answer.stdout.splitlines())), None)
    if line is not None:
        return _parsed(line, (answer.begin_unix_ns, answer.end_unix_ns))
    way = launcher.in_node(node, ["true"])
    if way[0] == SSH:
        return _silent_over_ssh(node, answer)
    if answer.problem is None and not is_step_lost(answer.stderr):
        return _without_doctor(answer, answer.last_words)
    found = answer.problem or answer.last_words
    if way[0].rpartition("/")[2] == srun.NAME:
        return Silent(found=found, action=STEP_ADVICE.format(node=node))
    return Silent(found=found, action=f"see how long `{shlex.join(way)}` takes here, and what it says")


def _silent_over_ssh(node: str, answer: CommandAnswer) -> Silent:
    if answer.problem is not None:
        client = "install an OpenSSH client here, with `ssh` on the PATH"
        action = client if answer.is_unstartable else advice_on(node, "timed out")
        return Silent(found=answer.problem, action=action)
    if answer.exit_code == SSH_FAILED:
        return Silent(found=answer.last_words, action=advice_on(node, answer.stderr))
    return _without_doctor(answer, answer.last_words)


def _without_doctor(answer: CommandAnswer, last: str) -> Silent:
    """Return what to say of a node that is reached and has no doctor that answers."""
    found, action = f"the doctor failed: {last}", f"run `{shlex.join(python(DOCTOR))}` there and see"
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
