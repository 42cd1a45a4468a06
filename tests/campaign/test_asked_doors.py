"""Doors that the measurer does not have are refused in the plan, those that it has pass."""

from __future__ import annotations

from typing import Any

import pytest

from fabricbench.campaign.asked_doors import refuse_unknown_doors
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.errors import EnvironmentLacks, UsageError

DOORS = {"rdma": ("send", "write"), "tcp": ("socket",)}
LOAD = {"pattern": "incast", "message_bytes": 64, "ranks": 2}


def campaign(**experiment: Any) -> Campaign:
    asked = {"layers": ["rdma"], "pattern": "pingpong", "message_bytes": [64], **experiment}
    return Campaign(name="doors", blocks=2, experiments=(Experiment.model_validate(asked),))


@pytest.mark.parametrize(
    ("experiment", "said"),
    [
        (
            {"parameters": {"door": "sent"}},
            r"number 1: parameters\.door: found 'sent', needed one of send, write for layer rdma",
        ),
        ({"parameters": {"door": "sent"}}, "did you mean 'send'"),
        ({"parameters": {"door": ("send", "wirte")}}, "found 'wirte'"),
        (
            {"layers": ["tcp", "rdma"], "parameters": {"door": "write"}},
            "found 'write', needed one of socket for layer tcp",
        ),
        ({"congestor": {**LOAD, "parameters": {"door": "sned"}}}, r"congestor\.parameters\.door: found 'sned'"),
        ({"congestor": {**LOAD, "layer": "tcp", "parameters": {"door": "send"}}}, "for layer tcp"),
    ],
)
def test_a_door_that_the_measurer_does_not_have_is_refused(experiment: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said):
        refuse_unknown_doors(campaign(**experiment), DOORS)


@pytest.mark.parametrize(
    "experiment",
    [
        {},
        {"parameters": {"door": ("send", "write")}},
        {"congestor": {**LOAD, "layer": "tcp", "parameters": {"door": "socket"}}},
    ],
)
def test_doors_that_are_there_pass_and_all_do_where_nothing_is_built(experiment: dict[str, Any]):
    refuse_unknown_doors(campaign(**experiment), DOORS)
    refuse_unknown_doors(campaign(parameters={"door": "anything"}), {})


def test_a_layer_that_the_measurer_was_built_without_is_lacking():
    with pytest.raises(EnvironmentLacks, match="number 1: this measurer was built without layer rdma") as lacking:
        refuse_unknown_doors(campaign(), {"tcp": ("socket",)})
    assert "`make`" in str(lacking.value.hint)
