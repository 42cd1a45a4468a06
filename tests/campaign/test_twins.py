"""A fabric against itself: the venue that a self-check measures in, and one fabric in two conditions within one run."""

from __future__ import annotations

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import OwnLab, find_twins, find_venue
from fabricbench.errors import UsageError


def test_twins_are_one_fabric_under_two_names_and_the_lab_builds_no_other():
    venue = find_twins("lab:fast-ethernet,myrinet", "myrinet", nodes=2)
    first, second = venue.testbed().fabrics
    assert (first.name, second.name) == ("myrinet", "myrinet-again")
    assert first.model_copy(update={"name": second.name}) == second
    assert isinstance(venue.of, OwnLab)
    assert [fabric.name for fabric in venue.of.fabrics] == ["myrinet"]
    assert all(node.addresses["myrinet"] == node.addresses["myrinet-again"] for node in venue.testbed().nodes)


def test_a_testbed_of_several_fabrics_asks_which():
    with pytest.raises(UsageError, match="has 2 fabrics") as caught:
        find_twins("lab:fast-ethernet,myrinet", None)
    assert caught.value.hint == "choose one with --fabric: fast-ethernet, myrinet"


def test_a_fabric_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="no fabric 'sci'"):
        find_twins("lab:myrinet", "sci")


def test_two_conditions_of_a_fabric_are_launched_in_turn_in_every_block():
    testbed = find_venue("lab:old=myrinet,new=myrinet:delay=20us", nodes=2).testbed()
    assert [(fabric.name, fabric.condition_of) for fabric in testbed.fabrics] == [
        ("old", "myrinet"),
        ("new", "myrinet"),
    ]
    experiment = Experiment(layers=("tcp",), pattern="pingpong", message_bytes=(64,))
    plan = plan_run(Campaign(name="tiny", blocks=3, experiments=(experiment,)), testbed, seed=5)
    assert [{launch.fabric for launch in plan.launches if launch.block == block} for block in range(3)] == [
        {"old", "new"}
    ] * 3
    assert {plan.probe_plan(launch).fabric.interface for launch in plan.launches} == {"myr0", "myr1"}


def test_a_twin_for_the_self_check_is_no_condition():
    twins = find_twins("lab:old=myrinet,new=myrinet:delay=20us", "new", nodes=2).testbed()
    assert [(fabric.name, fabric.condition_of) for fabric in twins.fabrics] == [("new", ""), ("new-again", "")]
