"""Gives every node its order (`agent`) and returns what each told."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from pydantic import ValidationError

from fabricbench.errors import FabricbenchError
from fabricbench.interpreter import python
from fabricbench.launch.asking import MOST_IN_FLIGHT, AskingLimits, CommandAnswer, ask_all
from fabricbench.settings.agent import MODULE, AgentAnswer, AgentRequest
from fabricbench.settings.setting import as_json

NODE_SECONDS = 40.0
"""A node that answers, starts Python, and writes a few settings, some of which take a link down for seconds."""

SECONDS_A_NODE = 0.5

InNode = Callable[[str, Sequence[str]], list[str]]
"""The tokens that run tokens on a node, by its name."""

Silence = str
"""Why a node told nothing."""


def question(in_node: InNode, node: str, order: AgentRequest) -> list[str]:
    """Return the tokens that give a node its order. Raises FabricbenchError."""
    return in_node(node, python(MODULE, as_json(order)))


def ask_nodes(
    in_node: InNode, orders: Mapping[str, AgentRequest], *, are_apart: bool = True
) -> dict[str, AgentAnswer | Silence]:
    """Return what each node told, or why it told nothing. `are_apart`: each has processors of its own."""
    questions: dict[str, Sequence[str]] = {}
    found: dict[str, AgentAnswer | Silence] = {}
    for node, order in orders.items():
        try:
            questions[node] = question(in_node, node, order)
        except FabricbenchError as error:
            found[node] = error.message
    found |= ask_each(questions, are_apart=are_apart)
    return {node: found[node] for node in orders}


def ask_each(
    questions: Mapping[str, Sequence[str]],
    *,
    are_apart: bool = True,
    each_s: float = NODE_SECONDS,
    all_s: float | None = None,
) -> dict[str, AgentAnswer | Silence]:
    """Return what came of each question (tokens). `all_s`: how long all of them may take, else by their number."""
    limits = AskingLimits(
        each_s=each_s,
        all_s=each_s + SECONDS_A_NODE * len(questions) if all_s is None else all_s,
        in_flight=MOST_IN_FLIGHT if are_apart else max(2, len(os.sched_getaffinity(0))),
    )
    return {name: _understood(answer) for name, answer in ask_all(questions, limits).items()}


def _understood(answer: CommandAnswer) -> AgentAnswer | Silence:
    # Whatever a login shell prints comes before the agent's one line.
    line = next((one for one in reversed(answer.stdout.splitlines()) if one.startswith("{")), None)
    if line is not None and answer.exit_code == 0:
        try:
            told = AgentAnswer.model_validate_json(line)
        except ValidationError:
            return "its answer cannot be read: another version of fabricbench is there"
        return told.refused or told
    return answer.last_words if answer.problem is None else answer.problem
