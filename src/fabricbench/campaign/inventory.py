"""What the nodes are like: the doctor's facts of each, and the versions of what measures. Kept in the manifest.

An inventory that a node does not give is said in its place; it never keeps a run from starting.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from fabricbench import __version__
from fabricbench.errors import FabricbenchError
from fabricbench.launch.asking import MOST_IN_FLIGHT, Answer, Limits, ask_all
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.ssh import SSH_FAILED, advice_on
from fabricbench.native import build_info
from fabricbench.testbed.model import Launcher as LauncherName
from fabricbench.testbed.model import Testbed
from fabricbench.testbed.node_facts import NodeFacts
from fabricbench.testbed.preflight_result import Silent

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
    """What a node told: facts for a preflight, and its inventory as text."""

    facts: NodeFacts
    inventory: dict[str, str]


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
    nodes_are_apart = testbed.launcher is LauncherName.SSH
    limits = Limits(
        each_s=NODE_SECONDS,
        all_s=ALL_SECONDS + SECONDS_A_NODE * len(testbed.nodes),
        in_flight=MOST_IN_FLIGHT if nodes_are_apart else max(2, len(os.sched_getaffinity(0))),
    )
    for name, answer in ask_all(questions, limits, tell).items():
        answers[name] = _understood(name, answer, nodes_are_apart)
    return {node.name: answers[node.name] for node in testbed.nodes}


def read_inventories(testbed: Testbed, launcher: Launcher) -> dict[str, dict[str, str]]:
    """Return the doctor's facts by node; where a node gave none, why."""
    return {
        name: {"missing": answer.found} if isinstance(answer, Silent) else answer.inventory
        for name, answer in ask_nodes(testbed, launcher).items()
    }


def read_versions(testbed: Testbed) -> dict[str, str]:
    """Return what measures, and in which version."""
    starter = find_starter(testbed.starter)
    return {
        "fabricbench": __version__,
        "python": platform.python_version(),
        "mpi": f"{starter.library.NAME} {starter.library_version}",
        "starter": f"{starter.starter.NAME} {starter.version}".strip(),
        "compiler": build_info().compiler,
        "build": build_info().build_type,
    }


def _understood(node: str, answer: Answer, is_over_ssh: bool) -> NodeAnswer | Silent:
    """Return what a node's answer says, or why it says nothing."""
    # Whatever a login shell prints comes before the doctor's one line.
    line = next((one for one in reversed(answer.stdout.splitlines()) if one.startswith("{")), None)
    if line is not None:
        return _parsed(line)
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


def _parsed(line: str) -> NodeAnswer | Silent:
    try:
        told = json.loads(line)
        inventory = {str(what): str(value) for what, value in told["inventory"].items()}
        return NodeAnswer(NodeFacts.model_validate(told["node"]), inventory)
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
