"""A fabric against itself: the venue that a self-check measures in, and one fabric in two conditions within one run."""

from __future__ import annotations

import json
from ipaddress import IPv4Address

import pytest

from fabricbench.analysis.selfcheck import is_aa_pair
from fabricbench.campaign.condition import Condition
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import AAPair, OwnLab, Standing, find_aa_pair, find_venue, in_conditions
from fabricbench.errors import UsageError
from fabricbench.launch.library import mpich
from fabricbench.launch.mpi import MpiStarter
from fabricbench.launch.ssh import SshLauncher
from fabricbench.launch.starter import hydra
from fabricbench.record.launch import LaunchFacts
from fabricbench.testbed.model import Fabric, Node, Testbed


def test_an_a_a_pair_is_one_fabric_under_two_names_and_the_lab_builds_no_other():
    venue = find_aa_pair("lab:fast-ethernet,myrinet", "myrinet", nodes=2)
    first, second = venue.testbed().fabrics
    assert (first.name, second.name) == ("myrinet", "myrinet-again")
    assert first.model_copy(update={"name": second.name}) == second
    assert isinstance(venue.of, OwnLab)
    assert [fabric.name for fabric in venue.of.fabrics] == ["myrinet"]
    assert {fabric.network for fabric in (first, second)} == {"myrinet"}
    assert all(node.address_on(first) == node.address_on(second) is not None for node in venue.testbed().nodes)


def test_ranks_meet_at_the_address_of_the_network_on_every_side_of_a_fabric(testbed: Testbed):
    nodes = tuple(
        Node(name=node.name, addresses={"slow": IPv4Address(f"10.1.0.{number}")})
        for number, node in enumerate(testbed.nodes, 1)
    )
    stands = Standing(given=testbed.model_copy(update={"nodes": nodes}))
    jumbo = Condition(name="jumbo", mtu=9000, fabrics=("slow",))
    launcher = SshLauncher(MpiStarter("mpiexec", hydra, "5.0.2", mpich, "5.0.2"), stands.given)
    for venue in (stands, AAPair(of=stands, fabric="slow"), in_conditions(stands, (jumbo,))):
        met = {launcher.meeting_address(one) for one in venue.testbed().fabrics if one.network == "slow"}
        assert met == {"10.1.0.1"}
    assert launcher.meeting_address(testbed.fabric("fast")) == nodes[0].name


def test_a_lab_watches_the_one_switch_of_a_fabric_for_both_of_its_names():
    venue = find_aa_pair("lab:myrinet", None, nodes=2)
    launcher = venue.sketch()
    assert {launcher.meeting_address(one) for one in venue.testbed().fabrics} == {
        str(venue.testbed().nodes[0].addresses["myrinet"])
    }
    died = LaunchFacts(block=0, switches_after={"myrinet": {"state": "dead"}})
    assert [died.has_dead_switch(one.network) for one in venue.testbed().fabrics] == [True, True]


@pytest.mark.parametrize("stored", [{"name": "eth"}, {"name": "eth", "network": ""}])
def test_a_fabric_of_a_stored_run_that_names_no_network_is_its_own(stored: dict[str, str]):
    opened = Fabric.model_validate_json(json.dumps(stored))
    assert opened == Fabric(name="eth")
    assert Fabric(name="eth").network == "eth"


def test_the_two_names_of_a_self_check_of_before_are_one_fabric_as_those_of_now_are():
    now = find_aa_pair("lab:myrinet", None, nodes=2).testbed().fabrics
    before = [Fabric.model_validate({**one.model_dump(mode="json"), "network": ""}) for one in now]
    assert [one.network for one in before] == ["myrinet", "myrinet-again"]
    assert is_aa_pair(*now)
    assert is_aa_pair(*before)


def test_a_testbed_of_several_fabrics_asks_which():
    with pytest.raises(UsageError, match="has 2 fabrics") as caught:
        find_aa_pair("lab:fast-ethernet,myrinet", None)
    assert caught.value.hint == "choose one with --fabric: fast-ethernet, myrinet"


def test_a_fabric_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="no fabric 'sci'"):
        find_aa_pair("lab:myrinet", "sci")


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


def test_neither_name_of_an_a_a_pair_is_a_condition():
    pair = find_aa_pair("lab:old=myrinet,new=myrinet:delay=20us", "new", nodes=2).testbed()
    assert [(fabric.name, fabric.condition_of) for fabric in pair.fabrics] == [("new", ""), ("new-again", "")]
