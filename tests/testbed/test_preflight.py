"""What a preflight finds wrong in what nodes told, and what it lets pass."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from fabricbench.errors import EnvironmentLacks
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from fabricbench.testbed.node_facts import NodeFacts, read_node
from fabricbench.testbed.preflight import Known, Requirements, judge
from fabricbench.testbed.preflight_result import Finding, Preflight, Silent, told

NEEDED = Requirements(version="1.2.3", programs={"/opt/probe": "probe 1.2.3"})
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


def found(*fabrics: dict[str, Any], nodes: dict[str, NodeFacts | Silent], needed: Requirements = NEEDED) -> Preflight:
    testbed = Testbed(
        name="rack",
        launcher=LauncherKind.SSH,
        nodes=tuple(Node(name=name) for name in nodes),
        fabrics=tuple(Fabric.model_validate(fabric) for fabric in fabrics),
    )
    return judge(testbed, nodes, needed)


def test_a_nodes_name_within_another_word_stays_what_it_is():
    """Two nodes called `a` and `b` share a finding in whose words both letters stand."""
    findings = [
        Finding(node=name, subject="mtu", found=f"bad MTU on {name}", needed="another", action=f"look at {name}")
        for name in ("a", "b")
    ]
    assert told(findings[:1]) == ["  a: found bad MTU on a; needed: another", "      what to do: look at a"]
    both = told(findings)
    assert both == [
        "  a,b: found bad MTU on a,b; needed: another",
        "      what to do: look at NODE (NODE: each of a,b)",
    ]


def problem(*fabrics: dict[str, Any], nodes: dict[str, NodeFacts | Silent]) -> str:
    """The one finding, as it is told; nodes that are not as the testbed says are no usage error."""
    result = found(*fabrics, nodes=nodes)
    (_, *lines) = str(result.refusal()).splitlines()
    assert isinstance(result.refusal(), EnvironmentLacks)
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


def test_an_mtu_that_differs_on_one_node_names_that_node_and_leaves_the_testbed_as_it_is():
    text = problem(SLOW, FAST, nodes={"a": facts(1), "b": changed(2, "eth1", mtu=1500)})
    assert "b, fabric fast: found MTU 1500 of eth1; needed: MTU 9000, as on a and in the testbed" in text
    assert "what to do: `ip link set dev eth1 mtu 9000` there" in text
    assert "write" not in text


def test_where_most_nodes_agree_on_another_mtu_than_the_testbed_the_odd_one_is_named_and_then_the_key():
    bare = {"name": "fast", "interface": "eth1"}
    nodes = {"c1": facts(1), "c2": facts(2), "c3": changed(3, "eth1", mtu=1500)}
    text = problem(bare, nodes=nodes)
    assert "c3, fabric fast: found MTU 1500 of eth1; needed: MTU 9000, as on c[1-2]" in text
    assert "`ip link set dev eth1 mtu 9000` there, and `mtu = 9000` in the testbed, which says 1500" in text


def test_a_lower_mtu_of_all_nodes_is_mended_on_the_nodes_or_in_the_testbed():
    text = problem(SLOW, FAST, nodes={"c1": changed(1, "eth1", mtu=1500), "c2": changed(2, "eth1", mtu=1500)})
    assert "`ip link set dev eth1 mtu 9000` on every node" in text
    assert "else write `mtu = 1500` in the testbed" in text


@pytest.mark.parametrize("fabric", [{"interface": "lo"}, {"subnet": "127.0.0.0/8"}, {"interface": "lo", "mtu": 65536}])
def test_an_interface_that_leads_to_no_other_node_is_refused_and_never_advised(fabric: dict[str, Any]):
    usual = facts(1).model_dump(mode="json")
    loopback = {"name": "lo", "mtu": 65536, "state": "unknown", "addresses": ["127.0.0.1/8"], "is_loopback": True}
    node = NodeFacts.model_validate(usual | {"interfaces": [loopback, *usual["interfaces"]]})
    text = problem({"name": "slow", **fabric}, nodes={"a": node})
    assert "found lo (127.0.0.1/8), the loopback interface; needed: an interface that leads to the other nodes" in text
    assert "there are eth0 (10.1.0.1/24), eth1" in text
    assert "there are eth0, eth1; needed" in problem({"name": "slow", "interface": "eth9"}, nodes={"a": node})


def test_problems_are_counted_as_they_are_told():
    result = found({"name": "slow", "interface": "eth9"}, nodes={f"n{number}": facts(number) for number in range(1, 9)})
    assert str(result.refusal()).splitlines()[0] == "the preflight of rack found 1 problem"


def test_another_build_of_the_same_version_is_refused_and_names_the_nodes():
    needed = Requirements(
        version="1.2.3", programs=NEEDED.programs, builds={"/opt/probe": "a" * 64}, architecture="x86_64"
    )
    same = {"builds": {"/opt/probe": "a" * 64}, "architecture": "x86_64"}
    other = {"builds": {"/opt/probe": "b" * 64}, "architecture": "x86_64"}
    nodes = {"n1": facts(1, **same), "n2": facts(2, **other), "n3": facts(3, **other)}
    result = found(SLOW, nodes=nodes, needed=needed)
    assert isinstance(result.refusal(), EnvironmentLacks)
    assert (
        told(result.errors)[0]
        == "  n[2-3]: found /opt/probe of build bbbbbbbbbbbb; needed: build aaaaaaaaaaaa, as here"
    )


def test_a_build_for_a_level_that_a_processor_lacks_need_not_run_there_but_be_the_same():
    level = "/opt/kernel-x86-64-v4"
    needed = Requirements(
        version="1.2.3",
        programs={"/opt/probe": "probe 1.2.3", level: "kernel 1.2.3"},
        builds={level: "a" * 64},
        architecture="x86_64",
        higher_levels=frozenset({level}),
    )
    told_there = {"programs": {"/opt/probe": "probe 1.2.3", level: "ended with -4: no reason given"}}
    same = facts(1, **told_there, builds={level: "a" * 64}, architecture="x86_64")
    other = facts(2, **told_there, builds={level: "b" * 64}, architecture="x86_64")
    assert found(SLOW, nodes={"n1": same}, needed=needed).refusal() is None
    errors = told(found(SLOW, nodes={"n1": same, "n2": other}, needed=needed).errors)
    assert next(line for line in errors if level in line).startswith("  n2: found /opt/kernel-x86-64-v4: ended with -4")


def test_builds_for_other_processors_are_compared_by_their_version_alone_which_is_said():
    needed = Requirements(
        version="1.2.3", programs=NEEDED.programs, builds={"/opt/probe": "a" * 64}, architecture="x86_64"
    )
    arm = facts(1, builds={"/opt/probe": "b" * 64}, architecture="aarch64")
    result = found(SLOW, nodes={"a": arm}, needed=needed)
    assert result.refusal() is None
    assert (
        "/opt/probe for aarch64; needed: the build that is here, for x86_64: of other processors only the version"
        in (told(result.warnings)[0])
    )


def test_a_node_without_an_mpi_that_answers_is_told_so():
    needed = Requirements(version="1.2.3", programs={}, mpi="MPICH 5")
    (warning,) = found(SLOW, nodes={"a": facts(1)}, needed=needed).warnings
    assert (warning.found, "fabricbench doctor" in warning.action) == ("no MPI that answers", True)


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
        launcher=LauncherKind.SSH,
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
        "  n[0-2]: found n[0-2] is off; needed: fabricbench 1.2.3 within reach",
        "      what to do: start NODE (NODE: each of n[0-2])",
    ]
    assert told(result.errors[:1])[1] == "      what to do: start n0"


def test_load_and_another_mpi_are_warnings_and_refuse_nothing():
    needed = Requirements(version="1.2.3", programs={}, mpi="MPICH 5")
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
    assert loopback.is_loopback
    assert here.programs == {"/no/such/program": "cannot be started: No such file or directory"}
    assert here.builds == {}


def test_this_host_tells_the_build_of_a_program(tmp_path: Path):
    program = tmp_path / "probe"
    program.write_bytes(b"abc")
    # The SHA-256 of "abc" (FIPS 180-2, appendix B.1).
    assert read_node([str(program)]).builds == {
        str(program): "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    }


def port(device: str = "mlx5_0", **others: Any) -> dict[str, Any]:
    told = {"device": device, "port": 1, "state": "ACTIVE", "physical_state": "LinkUp", "link_layer": "Ethernet"}
    told |= {"rate_bit_s": 1e11, "gids": 4, "netdev": "eth0", "firmware": None, "kind": None, "numa_node": None}
    return told | {"is_allowed": True} | others


OVER_RDMA = {**SLOW, "layers": ["tcp", "rdma"]}


@pytest.mark.parametrize(
    ("rdma", "fabric", "said"),
    [
        ([], {}, "found no RDMA device: /sys/class/infiniband is empty; needed: an RDMA port beside eth0"),
        ([], {"rdma": {"device": "mlx5_0"}}, "needed: RDMA device mlx5_0"),
        ([port()], {"rdma": {"device": "mlx5_7"}}, "found RDMA ports mlx5_0/1 (eth0); needed: RDMA device mlx5_7"),
        ([port()], {"rdma": {"port": 2}}, "needed: an RDMA port beside eth0 with port 2"),
        ([port(netdev="eth1")], {}, "found RDMA ports mlx5_0/1 (eth1); needed: an RDMA port beside eth0"),
        (
            [port(), port("mlx5_1", netdev="eth1", netdevs=["eth1", "eth1.7"])],
            {"rdma": {"device": "mlx5_1"}},
            "found RDMA ports mlx5_0/1 (eth0), mlx5_1/1 (eth1, eth1.7); needed: RDMA device mlx5_1 beside eth0",
        ),
        (
            [port(gid_netdevs={0: "eth0", 3: "eth0"})],
            {"rdma": {"gid_index": 9}},
            "found mlx5_0/1 has no address (GID) of index 9; it has 0 (eth0), 3 (eth0)",
        ),
        (
            [port(gid_netdevs={0: "eth0", 3: "eth0.7"})],
            {"rdma": {"gid_index": 3}},
            "found the address (GID) of index 3 of mlx5_0/1 is of eth0.7; it has 0 (eth0), 3 (eth0.7); needed: an address of eth0",
        ),
        (
            [port(largest_message_bytes=8 * 1024 * 1024)],
            {},
            "found mlx5_0/1 takes messages of at most 8 MiB (max_msg_sz); needed: room for 16 MiB, the largest message",
        ),
        ([port(state="DOWN")], {}, "found mlx5_0/1 is DOWN; needed: a port that is ACTIVE"),
        ([port(is_allowed=False)], {}, "found mlx5_0, which this user may not open"),
    ],
)
def test_a_fabric_that_is_measured_by_rdma_needs_its_port(
    rdma: list[dict[str, Any]], fabric: dict[str, Any], said: str
):
    nodes = {"a": facts(1, rdma=[port()]), "b": facts(2, rdma=rdma)}
    needed = replace(NEEDED, by_rdma={"slow": 16 * 1024 * 1024})
    usual = {**OVER_RDMA, **fabric}
    result = found(usual, nodes=nodes, needed=needed)
    assert isinstance(result.refusal(), EnvironmentLacks)
    assert any(said in line for line in told(result.findings)), told(result.findings)
    assert not found(usual, nodes=nodes).findings, "nothing is measured by RDMA"


@pytest.mark.parametrize(
    "rdma",
    [
        [port()],
        [port("siw0", netdev=None)],
        [port("other", netdev="eth1"), port()],
        [port(gid_netdevs={0: "eth0"}, largest_message_bytes=64)],
    ],
    ids=["beside it", "beside no interface that is told", "of several", "with room for its messages"],
)
def test_a_port_beside_the_interface_or_one_that_may_be_there_passes(rdma: list[dict[str, Any]]):
    nodes = {"a": facts(1, rdma=rdma), "b": facts(2, rdma=rdma)}
    assert not found(OVER_RDMA, nodes=nodes, needed=replace(NEEDED, by_rdma={"slow": 64})).findings


def warnings(
    *fabrics: dict[str, Any], nodes: dict[str, NodeFacts | Silent], known: Known | None = None
) -> list[Finding]:
    testbed = Testbed(
        name="rack",
        launcher=LauncherKind.SSH,
        nodes=tuple(Node(name=name) for name in nodes),
        fabrics=tuple(Fabric.model_validate(fabric) for fabric in fabrics),
    )
    return list(judge(testbed, nodes, NEEDED, known or Known()).warnings)


def test_a_tunnel_is_told_with_its_carrier_and_so_is_a_fabric_that_carries_another():
    nodes: dict[str, NodeFacts | Silent] = {
        name: changed(number, "eth1", mtu=1450, kind="vxlan", carriers=["eth0"])
        for number, name in ((1, "a"), (2, "b"))
    }
    tunnel = {"name": "overlay", "interface": "eth1", "mtu": 1450}
    alone = warnings(tunnel, nodes=nodes)
    assert {one.found for one in alone} == {"that eth1 is a tunnel (vxlan) over eth0"}
    both = warnings(SLOW, tunnel, nodes=nodes)
    assert "that overlay (eth1) is a tunnel over eth0, which is slow" in {one.found for one in both}
    assert found(SLOW, tunnel, nodes=nodes).nodes[0].attachments["overlay"].carriers == ("eth0",)
    assert found(SLOW, tunnel, nodes=nodes).carriers == {"host1": {"eth1": ("eth0",)}, "host2": {"eth1": ("eth0",)}}


def test_a_vpn_whose_carrier_nobody_knows_is_said_to_be_unprovable():
    (one,) = warnings(
        {"name": "vpn", "interface": "eth1", "mtu": 9000}, nodes={"a": changed(1, "eth1", kind="tun", carriers=[""])}
    )
    assert "over an interface that the kernel does not tell" in one.found
    assert "cannot be proven" in one.action


def test_two_interfaces_of_a_node_in_one_subnet_are_named():
    (one,) = warnings(SLOW, nodes={"a": changed(1, "eth1", addresses=["10.1.0.77/24"])})
    assert (one.subject, one.found) == ("subnet", "eth0 and eth1 in one subnet, 10.1.0.0/24")
    assert "arp_ignore" in one.action


def test_two_interfaces_of_a_node_in_the_subnet_of_a_fabric_are_refused_as_nobody_knows_which_is_meant():
    told_of = problem({"name": "wide", "subnet": "10.0.0.0/8"}, nodes={"a": facts(1)})
    assert "found eth0 and eth1 with addresses in 10.0.0.0/8; eth0 would be measured" in told_of
    assert "name the `interface` in the testbed, or narrow the `subnet`" in told_of


def test_two_subnets_of_one_card_are_named_as_what_two_fabrics_are():
    node = changed(1, "eth0", addresses=["10.1.0.1/24", "10.9.0.1/24"])
    told_of = problem(
        {"name": "one", "subnet": "10.1.0.0/24"}, {"name": "nine", "subnet": "10.9.0.0/24"}, nodes={"a": node}
    )
    assert "the interface eth0 (10.1.0.1/24, 10.9.0.1/24), two subnets of one card, for both" in told_of


def test_a_label_in_place_of_an_interface_is_said_to_be_one():
    told_of = problem({"name": "alias", "interface": "eth0:1"}, nodes={"a": facts(1)})
    assert "eth0:1 is a label of an address of eth0: write its `subnet`" in told_of


def test_a_fabric_that_nodes_are_reached_over_is_named_by_where_their_names_lead_and_by_where_ssh_arrives():
    named = Known(addresses={"a": IPv4Address("10.2.0.1"), "b": IPv4Address("10.3.0.1")})
    (by_name,) = warnings(SLOW, FAST, nodes={"a": facts(1), "b": facts(2)}, known=named)
    assert (by_name.node, by_name.fabric, by_name.subject) == ("a", "fast", "control")
    assert by_name.found == "that its name leads to eth1 of this fabric"
    (by_ssh,) = warnings(SLOW, FAST, nodes={"a": facts(1, reached_at="10.1.0.1")})
    assert by_ssh.found == "that who asks it arrives at eth0 of this fabric"
    alone = changed(1, "eth1", addresses=[])
    assert warnings(SLOW, nodes={"a": alone}, known=Known(addresses={"a": IPv4Address("10.1.0.1")})) == []


def test_a_name_service_that_is_silent_is_told():
    (one,) = warnings(SLOW, nodes={"a": facts(1, is_name_service_silent=True)})
    assert one.subject == "names"
    assert "the node's own name host1" in one.found
    assert "/etc/resolv.conf" in one.action
