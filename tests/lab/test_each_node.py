"""A module that is run in all nodes of a lab by one Python: each tells of itself, and one that is gone takes no other with it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fabricbench.campaign.preflight import DOCTOR, NodeAnswer, ask_nodes
from fabricbench.campaign.venue import Standing
from fabricbench.lab import each_node
from fabricbench.lab.each_node import Order
from fabricbench.launch.lab import LabLauncher
from support.lab_outside import StartLab

pytestmark = pytest.mark.lab

THREE = ("n0", "n1", "n2")


def without_load(inventory: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in inventory.items() if not key.endswith("load")}


def told(tokens: Sequence[str]) -> dict[str, Any]:
    """What each node's doctor tells, by the node."""
    done = subprocess.run(tokens, capture_output=True, text=True, timeout=60, check=True)
    lines = (line.partition(": ") for line in done.stdout.splitlines())
    return {node: json.loads(text) for node, _, text in lines}


def test_each_node_tells_of_itself_what_it_tells_when_it_is_asked_alone(start_lab: StartLab):
    lab = start_lab(nodes=3)
    together = lab.command_in_each(THREE, DOCTOR, ["--json"])
    assert together is not None
    found = told(together)
    assert {node: one["host"] for node, one in found.items()} == dict(zip(THREE, THREE, strict=True))
    place = Standing(given=lab.testbed())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LabLauncher, "in_nodes", lambda *_: None)
        alone = ask_nodes(place.testbed(), place.sketch())
    for node, one in alone.items():
        assert isinstance(one, NodeAnswer)
        assert not one.is_by_fan_out
        assert without_load(found[node]["inventory"]) == without_load(one.inventory)


def test_a_node_that_is_gone_is_missing_and_no_other(start_lab: StartLab):
    lab = start_lab(nodes=3)
    tokens = lab.command_in_each(THREE, DOCTOR, ["--json"])
    assert tokens is not None
    order = Order.model_validate_json(tokens[-1])
    gone = order.nodes["n1"].model_copy(update={"pid": 2**22})
    broken = order.model_copy(update={"nodes": {**order.nodes, "n1": gone}})
    assert set(told([*tokens[:-1], broken.model_dump_json()])) == {"n0", "n2"}


def test_a_module_that_fails_ends_the_command(start_lab: StartLab):
    lab = start_lab(nodes=2)
    tokens = lab.command_in_each(THREE[:2], "fabricbench.nowhere", [])
    assert tokens is not None
    done = subprocess.run(tokens, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "fabricbench.nowhere" in done.stderr
    assert tokens[tokens.index(sys.executable) :][-2] == each_node.__name__
