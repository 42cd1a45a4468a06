"""What a preflight finds wrong in what nodes told, and what it lets pass."""

from __future__ import annotations

from typing import Any

import pytest

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.testbed.model import Fabric, Launcher, Node, Testbed
from fabricbench.testbed.node_facts import NodeFacts, read_node
from fabricbench.testbed.preflight import Needed, Preflight, Silent, judge, told

NEEDED = Needed(version="1.2.3", programs={"/opt/probe": "probe 1.2.3"})
SLOW = {"name": "slow", "interface": "eth0"}
FAST = {"name": "fast", "interface": "eth1", "mtu": 9000}


def facts(number: int, **others: Any) -> NodeFacts:
    """A node with eth0 and eth1 as the two fabrics need them."""
    told: dict[str, Any] = {
        "host": f"host{number}",
        "version": "1.2.3",
        "programs": {"/opt/probe": "probe 1.2.3"},
        "interfaces": [
            {"name": "eth0", "mtu": 1500, "state": "up", "addresses": [f"10.1.0.{number}/24"]},
            {"name": "eth1", "mtu": 9000, "state": "unknown", "addresses": [f"10.2.0.{number}/24"]},
        ],
        "load": 0.2,
        "processors": 4,
    }
    return NodeFacts.model_validate(told | others)


def changed(number: int, name: str, **changes: Any) -> NodeFacts:
    """A node with something else about one interface."""
    usual = facts(number).model_dump(mode="json")
    interfaces = [one | changes if one["name"] == name else one for one in usual["interfaces"]]
    return NodeFacts.model_validate(usual | {"interfaces": interfaces})


def found(*fabrics: dict[str, Any], nodes: dict[str, NodeFacts | Silent], needed: Needed = NEEDED) -> Preflight:
    testbed = Testbed(
        name="rack",
        launcher=Launcher.SSH,
        nodes=tuple(Node(name=name) for name in nodes),
        fabrics=tuple(Fabric.model_validate(fabric) for fabric in fabrics),
    )
    return judge(testbed, nodes, needed)


def problem(*fabrics: dict[str, Any], nodes: dict[str, NodeFacts | Silent]) -> str:
    """The one finding, as it is told; a testbed that is wrong is a usage error."""
    result = found(*fabrics, nodes=nodes)
    (_, *lines) = str(result.refusal()).splitlines()
    assert isinstance(result.refusal(), UsageError)
    assert len(lines) == 2, lines
    return "\n".join(lines)


def test_nodes_that_are_as_the_testbed_says_pass_and_their_attachments_are_told():
    result = found(SLOW, FAST, {"name": "memory"}, nodes={"a": facts(1), "b": facts(2)})
    assert (result.findings, result.refusal()) == ((), None)
    assert result.nodes[1].attachments["fast"].address == "10.2.0.2/24"
    assert Preflight.model_validate_json(result.model_dump_json()) == result


def test_a_wrong_interface_is_named_with_those_that_there_are_once_for_all_nodes():
    text = problem({"name": "slow", "interface": "eth9"}, FAST, nodes={"a1": facts(1), "a2": facts(2)})
    assert "a[1-2], fabric slow: found no interface eth9; there are eth0, eth1; needed: interface eth9" in text
    assert "what to do: correct `interface` in the testbed" in text


def test_an_mtu_that_differs_on_one_node_names_that_node():
    text = problem(SLOW, FAST, nodes={"a": facts(1), "b": changed(2, "eth1", mtu=1500)})
    assert "b, fabric fast: found MTU 1500 of eth1; needed: MTU 9000" in text
    assert "else write `mtu = 1500` in the testbed" in text


def test_jumbo_frames_that_the_testbed_does_not_know_of_are_refused():
    assert "write `mtu = 9000` in the testbed" in problem({"name": "fast", "interface": "eth1"}, nodes={"a": facts(1)})


def test_an_interface_that_is_down_or_has_no_address_is_refused():
    down = problem(SLOW, nodes={"a": changed(1, "eth0", state="down")})
    assert "found eth0 is down" in down
    bare = problem(SLOW, nodes={"a": changed(1, "eth0", addresses=[])})
    assert "eth0, which has no IPv4 address" in bare
    frames_only = found(SLOW | {"layers": ["frame"]}, nodes={"a": changed(1, "eth0", addresses=[])})
    assert frames_only.findings == ()


def test_an_address_outside_of_the_subnet_is_refused():
    text = problem(SLOW | {"subnet": "10.5.0.0/24"}, nodes={"a": facts(1)})
    assert "found eth0 (10.1.0.1/24); needed: an address in 10.5.0.0/24" in text


def test_an_address_that_a_node_table_gives_must_be_the_interfaces_own():
    testbed = Testbed(
        name="rack",
        launcher=Launcher.SSH,
        nodes=(Node(name="a", addresses={"slow": "10.1.0.7"}),),
        fabrics=(Fabric.model_validate(SLOW),),
    )
    (one,) = judge(testbed, {"a": facts(1)}, NEEDED).errors
    assert one.needed == "the address 10.1.0.7 that [[node]] gives"


def test_with_a_subnet_alone_each_node_has_its_own_interface_in_it():
    other = facts(2).model_dump(mode="json")
    other["interfaces"][1]["name"] = "ens7"
    nodes = {"a": facts(1), "b": NodeFacts.model_validate(other)}
    result = found({"name": "fast", "subnet": "10.2.0.0/24", "mtu": 9000}, nodes=nodes)
    assert result.findings == ()
    assert [node.attachments["fast"].interface for node in result.nodes] == ["eth1", "ens7"]
    assert "an address in 10.3.0.0/24" in problem({"name": "fast", "subnet": "10.3.0.0/24"}, nodes={"a": facts(1)})


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({"interface": "eth0"}, {"interface": "eth0"}, "the interface eth0"),
        ({"interface": "eth0"}, {"subnet": "10.1.0.0/24"}, "the interface eth0 (10.1.0.1/24)"),
        ({"subnet": "10.1.0.0/24"}, {"subnet": "10.1.0.0/16"}, "10.1.0.0/24 and 10.1.0.0/16, which overlap,"),
    ],
)
def test_two_fabrics_that_are_one_are_refused_unless_they_are_conditions(
    one: dict[str, str], other: dict[str, str], shared: str
):
    first, second = {"name": "first", **one}, {"name": "second", **other}
    assert f"fabrics first and second: found {shared} for both" in problem(first, second, nodes={"a": facts(1)})
    condition = {"condition_of": "tuning"}
    assert found(first | condition, second | condition, nodes={"a": facts(1)}).findings == ()


def test_two_interfaces_in_one_subnet_are_one_network():
    node = changed(1, "eth1", addresses=["10.1.0.99/24"])
    assert "the subnet 10.1.0.0/24 on eth0 and eth1 for both" in problem(SLOW, FAST, nodes={"a": node})


def test_another_version_or_probe_refuses_as_something_that_the_environment_lacks():
    nodes = {
        "a": facts(1, version="1.2.2"),
        "b": facts(2, programs={"/opt/probe": "cannot be started: Permission denied"}),
    }
    result = found(SLOW, nodes=nodes)
    assert isinstance(result.refusal(), EnvironmentLacks)
    text = "\n".join(told(result.errors))
    assert "a: found fabricbench 1.2.2; needed: fabricbench 1.2.3, as here" in text
    assert "b: found /opt/probe: cannot be started: Permission denied; needed: probe 1.2.3 at that path" in text


def test_nodes_that_are_silent_for_one_reason_are_told_of_once():
    nodes = {f"n{number}": Silent(found=f"n{number} is off", action=f"start n{number}") for number in range(3)}
    result = found(SLOW, nodes=nodes)
    assert told(result.errors) == [
        "  n[0-2]: found NODE is off; needed: fabricbench 1.2.3 within reach",
        "      what to do: start NODE",
    ]
    assert told(result.errors[:1])[1] == "      what to do: start n0"


def test_load_and_another_mpi_are_warnings_and_refuse_nothing():
    needed = Needed(version="1.2.3", programs={}, mpi="MPICH 5")
    result = found(SLOW, nodes={"a": facts(1, load=3.0)}, needed=needed)
    assert {one.subject for one in result.warnings} == {"load", "mpi"}
    assert result.refusal() is None


def test_an_address_that_two_nodes_have_is_refused_and_one_machine_of_two_names_is_a_warning():
    assert "10.1.0.1/24 on eth0, which a has too: two machines have it" in problem(
        SLOW, nodes={"a": facts(1), "b": facts(1, host="other")}
    )
    same = found(SLOW, nodes={"a": facts(1), "b": facts(1)})
    assert (len(same.errors), len(same.warnings)) == (0, 1)


def test_nodes_of_a_fabric_in_different_subnets_are_a_warning():
    far = changed(2, "eth0", addresses=["10.7.0.2/24"])
    (warning,) = found(SLOW, nodes={"a": facts(1), "b": far}).warnings
    assert warning.found == "a in 10.1.0.0/24; b in 10.7.0.0/24"


def test_this_host_tells_its_interfaces_and_programs():
    here = read_node(["/no/such/program"])
    (loopback,) = [one for one in here.interfaces if one.name == "lo"]
    assert "127.0.0.1/8" in map(str, loopback.addresses)
    assert here.programs == {"/no/such/program": "cannot be started: No such file or directory"}
