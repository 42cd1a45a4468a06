"""Conditions make sides of fabrics: which, what is merged, what is set of hosts, and what is refused early."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricbench.campaign.condition import Condition, commands_of, expanded, sets_mtu, sides_of
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.preparing import prepare_in
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.specification import campaign_of, read_campaign
from fabricbench.campaign.trust import beyond_this_installation
from fabricbench.campaign.venue import Conditioned, Standing, find_aa_pair, find_venue, in_conditions
from fabricbench.errors import UsageError
from fabricbench.record.decision_table import DecisionTable, prices_of
from fabricbench.testbed.model import Mpi, MpiTransport, Testbed
from fabricbench.testbed.node_facts import NodeFacts, NodeInterface
from fabricbench.testbed.preflight import Requirements, judge
from fabricbench.testbed.reading import read_testbed

EXAMPLE = Path(__file__).parents[2] / "examples/campaign-conditions.toml"

USUAL = Condition(name="usual", mtu=1500)
JUMBO = Condition(
    name="jumbo", mtu=9000, sysctl={"net.core.busy_poll": 50}, mpi_environment={"A": "2"}, mpi_arguments=("-x",)
)


def test_each_fabric_stands_in_the_testbed_once_for_each_of_its_conditions(testbed: Testbed):
    fabrics = tuple(one.model_copy(update={"mpi_environment": {"A": "1", "B": "1"}}) for one in testbed.fabrics)
    nodes = tuple(
        node.model_copy(update={"addresses": {"slow": f"10.1.0.{number}"}})
        for number, node in enumerate(testbed.nodes, 1)
    )
    testbed = testbed.model_copy(update={"fabrics": fabrics, "nodes": nodes})
    only_slow = Condition(name="tuned", fabrics=("slow",), transport="ucx", description="with UCX")
    found = expanded(testbed, (USUAL, JUMBO, only_slow))
    assert [(one.name, one.network, one.condition, one.mtu) for one in found.fabrics] == [
        ("slow-usual", "slow", "usual", 1500),
        ("slow-jumbo", "slow", "jumbo", 9000),
        ("slow-tuned", "slow", "tuned", 1500),
        ("fast-usual", "fast", "usual", 1500),
        ("fast-jumbo", "fast", "jumbo", 9000),
    ]
    jumbo, tuned = found.fabrics[1:3]
    assert jumbo.mpi_environment == {"A": "2", "B": "1"}
    assert jumbo.mpi_arguments == ("-x",)
    assert jumbo.settings == {"mtu": "9000", "net.core.busy_poll": "50"}
    assert tuned.transport is MpiTransport.UCX
    assert tuned.description == "with UCX"
    assert [str(found.nodes[1].address_on(one)) for one in found.fabrics[:3]] == ["10.1.0.2"] * 3


def test_a_fabric_that_no_condition_is_for_stays_as_it_is_and_keeps_the_original_settings(testbed: Testbed):
    jumbo = JUMBO.model_copy(update={"fabrics": ("slow",)})
    assert expanded(testbed, (jumbo,)).fabrics[1] == testbed.fabrics[1]
    sides = sides_of(testbed, (jumbo,))
    assert {name: [one.key for one in settings] for name, settings in sides.items()} == {
        "slow-jumbo": ["mtu of eth0", "net.core.busy_poll"],
        "fast": [],
    }


def test_no_host_is_touched_where_only_mpi_is_varied(testbed: Testbed):
    conditions = (Condition(name="eager", mpi_environment={"X": "1"}), Condition(name="rendezvous"))
    assert sides_of(testbed, conditions) == {}
    assert list(commands_of(testbed, conditions, with_sudo=True)) == []


def test_the_plan_has_a_launch_of_each_side_in_every_block_and_the_measurer_is_told_its_mtu(testbed: Testbed):
    campaign = campaign_of(
        {
            "campaign": {"blocks": 2},
            "experiment": [{"layers": ["tcp"], "pattern": "stream", "message_bytes": [65536]}],
            "condition": [{"name": "usual", "mtu": 1500}, {"name": "jumbo", "mtu": 9000}],
        },
        "x.toml",
    )
    plan = plan_run(campaign, expanded(testbed, campaign.conditions), seed=1)
    assert len(plan.launches) == 2 * 2 * 2
    told = {launch.fabric: plan.probe_plan(launch).fabric for launch in plan.launches}
    assert {name: (fabric.interface, fabric.mtu) for name, fabric in told.items()} == {
        "slow-usual": ("eth0", 1500),
        "slow-jumbo": ("eth0", 9000),
        "fast-usual": ("eth1", 1500),
        "fast-jumbo": ("eth1", 9000),
    }


def refusal(testbed: Testbed, *conditions: Condition) -> str:
    with pytest.raises(UsageError) as caught:
        expanded(testbed, conditions)
    return f"{caught.value.message} | {caught.value.hint}"


def test_what_the_testbed_lacks_is_refused_with_what_there_is(testbed: Testbed):
    assert "did you mean 'slow'? | there are slow, fast" in refusal(testbed, Condition(name="a", fabrics=("slw",)))
    assert "add an [[mpi]] of that name" in refusal(testbed, Condition(name="a", mpi="mpich"))
    with_mpi = testbed.model_copy(update={"mpis": (Mpi(name="openmpi"),)})
    assert "there are openmpi" in refusal(with_mpi, Condition(name="a", mpi="mpich"))
    assert expanded(with_mpi, (Condition(name="a", mpi="openmpi"),)).fabrics[0].mpi == "openmpi"
    alike = testbed.model_copy(
        update={"fabrics": (testbed.fabrics[0], testbed.fabrics[1].model_copy(update={"name": "slow-x"}))}
    )
    both = (Condition(name="x-y", fabrics=("slow",)), Condition(name="y", fabrics=("slow-x",)))
    assert "two fabrics in their conditions would be called slow-x-y" in refusal(alike, *both)


def test_an_mtu_beyond_what_an_emulated_switch_carries_is_refused():
    lab = find_venue("lab:fast-ethernet", nodes=2).testbed()
    assert "the emulated switch of fast-ethernet carries 1500 | build the lab with `mtu=9000`" in refusal(lab, JUMBO)


def test_conditions_of_one_name_or_one_setting_written_in_two_ways_are_refused_with_the_file():
    base = {"experiment": [{"layers": ["tcp"], "pattern": "pingpong", "message_bytes": [8]}]}
    custom = {"name": "irq", "read": ["cat", "/x"], "write": ["w", "{value}"], "value": 1}
    with pytest.raises(UsageError, match=r"x.toml: condition: condition a is named twice"):
        campaign_of({**base, "condition": [{"name": "a"}, {"name": "a"}]}, "x.toml")
    with pytest.raises(UsageError, match="custom 'irq' of conditions a and b is read or written in two ways"):
        campaign_of(
            {
                **base,
                "condition": [
                    {"name": "a", "custom": [custom]},
                    {"name": "b", "custom": [{**custom, "read": ["cat", "/y"]}]},
                ],
            },
            "x.toml",
        )
    with pytest.raises(UsageError, match=r"condition\[1\].mtuu: unknown key; did you mean 'mtu'\?"):
        campaign_of({**base, "condition": [{"name": "a", "mtuu": 9000}]}, "x.toml")


def facts(host: str, mtu: int) -> NodeFacts:
    interfaces = [
        NodeInterface(
            name=f"eth{net}", mtu=mtu if net == 0 else 9000, state="up", addresses=(f"10.{net + 1}.0.{host}/24",)
        )
        for net in (0, 1)
    ]
    return NodeFacts(host=host, version="1", load=0.0, processors=4, interfaces=tuple(interfaces), programs={})


def test_a_preflight_takes_two_conditions_of_a_network_for_what_they_are(testbed: Testbed):
    sides = expanded(testbed, (Condition(name="a"), Condition(name="b")))
    answers = {"a": facts("1", 1500), "b": facts("2", 1500)}
    assert judge(sides, answers, Requirements(version="1", programs={})).findings == ()
    strangers = sides.model_copy(
        update={"fabrics": tuple(one.model_copy(update={"network": one.name}) for one in sides.fabrics)}
    )
    subjects = {one.subject for one in judge(strangers, answers, Requirements(version="1", programs={})).findings}
    assert subjects == {"distinct"}


def test_the_present_mtu_does_not_matter_where_every_condition_sets_it(testbed: Testbed):
    slow = testbed.fabrics[0]
    assert sets_mtu(slow, (USUAL, JUMBO))
    assert not sets_mtu(slow, (USUAL, Condition(name="as-it-is")))
    assert not sets_mtu(slow, (JUMBO.model_copy(update={"fabrics": ("fast",)}),))


def test_a_stored_plan_keeps_its_conditions_and_says_which_commands_it_would_run_as_root(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    campaign = tmp_path / "mine.toml"
    campaign.write_text(
        '[campaign]\nblocks = 2\n[[experiment]]\nlayers = ["tcp"]\npattern = "pingpong"\nmessage_bytes = [8]\n'
        '[[condition]]\nname = "usual"\nmtu = 1500\n[[condition]]\nname = "jumbo"\nmtu = 9000\n'
    )
    prepared = prepare_in(Standing(given=testbed), str(campaign), None, None, 1)
    assert isinstance(prepared.venue, Conditioned)
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    directory.write_plan(StoredPlan(campaign=prepared.campaign, plan=prepared.plan, venue=prepared.venue))
    stored = directory.read_plan()
    assert stored.venue == prepared.venue
    assert stored.venue.testbed().fabrics == stored.plan.fabrics
    asked = list(beyond_this_installation(stored))
    assert "settings of hosts for slow-jumbo: ip link set dev eth0 mtu 9000" in asked


def test_a_self_check_takes_no_conditions():
    with pytest.raises(UsageError, match="a self-check compares a fabric with itself"):
        in_conditions(find_aa_pair("lab:myrinet", None), (USUAL,))
    plain = find_venue("lab:myrinet")
    assert in_conditions(plain, ()) is plain


def test_the_example_that_people_copy_is_read_and_shows_every_kind():
    campaign = read_campaign(EXAMPLE)
    shown = {name for one in campaign.conditions for name in one.model_fields_set}
    assert shown >= {
        *("name", "description", "fabrics", "mpi_environment", "mpi_arguments", "mtu", "coalesce", "offload"),
        *("ring", "sysctl", "governor", "custom"),
    }
    assert json.loads(campaign.model_dump_json())["conditions"][0]["name"] == campaign.conditions[0].name


def test_a_price_of_a_fabric_is_that_of_all_its_conditions(testbed: Testbed):
    table = DecisionTable(
        price={"slow": {"per_node": 10}, "fast-jumbo": {"per_node": 30}, "slow-jumbo": {"per_node": 20}}
    )
    prices, _ = prices_of(table, expanded(testbed, (USUAL, JUMBO)).fabrics)
    assert {name: price.per_node for name, price in prices.items()} == {"slow": 10, "fast": 30}
    by_condition = DecisionTable(price={"slow-jumbo": {"per_node": 20}, "slow-usual": {"per_node": 10}})
    dearest, _ = prices_of(by_condition, expanded(testbed, (USUAL, JUMBO)).fabrics)
    assert dearest["slow"].per_node == 20, "it buys the fabric in all its conditions"


def test_the_example_is_for_the_testbed_beside_it():
    campaign = read_campaign(EXAMPLE)
    place = read_testbed(EXAMPLE.parent / "testbed-two-fabrics.toml")
    sides = expanded(place, campaign.conditions)
    assert len(sides.fabrics) == 2 * len(campaign.conditions) - 1  # one is for one fabric only
    commands = dict(commands_of(place, campaign.conditions, with_sudo=True))
    assert [line for line in commands["gigabit-ethernet-jumbo"] if line.startswith("sudo -n ip link set dev ")]
