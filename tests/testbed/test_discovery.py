"""The first testbed file of made-up hosts: what belongs together, what is left out and why, and what the file says of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

import pytest

from fabricbench.errors import EnvironmentLacks
from fabricbench.testbed.discovery import Discovery, discover, with_measured
from fabricbench.testbed.first_file import HowAsked, first_file, read_back
from fabricbench.testbed.model import LauncherKind
from fabricbench.testbed.names import LookUp
from fabricbench.testbed.node_facts import (
    NodeFacts,
    NodeInterface,
    find_mpis,
    read_reached_at,
)
from fabricbench.testbed.rdma import RdmaPort

ORIGIN = HowAsked(name="rack", launcher=LauncherKind.SSH, command="fabricbench testbed init")

LO = NodeInterface(name="lo", mtu=65536, state="unknown", is_loopback=True, addresses=(IPv4Interface("127.0.0.1/8"),))


def rdma_port(device: str, netdev: str, rate_bit_s: float, state: str = "ACTIVE") -> RdmaPort:
    """One port of an InfiniBand adapter."""
    return RdmaPort(
        device=device,
        port=1,
        state=state,
        physical_state="LinkUp",
        link_layer="InfiniBand",
        rate_bit_s=rate_bit_s,
        gids=1,
        netdev=netdev,
        firmware=None,
        kind=None,
        numa_node=None,
        is_allowed=None,
    )


def card(name: str, *addresses: str, **facts: Any) -> NodeInterface:
    """One interface, a card of 1 Gbit/s if nothing else is said."""
    given = {"mtu": 1500, "state": "up", "link": "ethernet", "speed_bit_s": 1e9, **facts}
    return NodeInterface(name=name, addresses=tuple(IPv4Interface(one) for one in addresses), **given)


def host(*interfaces: NodeInterface, reached_at: str | None = None, rdma: Sequence[RdmaPort] = ()) -> NodeFacts:
    return NodeFacts(
        host="h",
        version="0",
        programs={},
        interfaces=(LO, *interfaces),
        load=0.0,
        processors=8,
        reached_at=None if reached_at is None else IPv4Address(reached_at),
        rdma=tuple(rdma),
    )


def file_of(facts: Mapping[str, NodeFacts], origin: HowAsked = ORIGIN) -> dict[str, Any]:
    """The tables of the file, which is one that can be read."""
    text = first_file(discover(facts), origin)
    read_back(text)
    return tomllib.loads(text)


def reasons(found: Discovery) -> dict[str, str]:
    return {one.interface: one.reason for one in found.left_out}


def test_two_networks_by_the_same_names_become_two_fabrics_with_their_rates_the_slow_one_first():
    found = file_of(
        {
            f"n{number}": host(
                card("eth1", f"10.2.0.{number}/24", mtu=9000, speed_bit_s=10e9), card("eth0", f"10.1.0.{number}/24")
            )
            for number in range(1, 5)
        }
    )
    assert found["testbed"] == {"name": "rack", "launcher": "ssh", "nodes": "n[1-4]"}
    assert found["fabric"] == [
        {"name": "ethernet-1g", "interface": "eth0", "line_rate": "1Gbit/s"},
        {"name": "ethernet-10g", "interface": "eth1", "mtu": 9000, "line_rate": "10Gbit/s"},
    ]


def test_where_hosts_name_an_interface_differently_the_subnet_tells():
    facts = {"a": host(card("eno1", "10.1.0.1/24")), "b": host(card("enp3s0", "10.1.0.2/24"))}
    found = file_of(facts)
    assert found["fabric"] == [{"name": "ethernet-1g", "subnet": "10.1.0.0/24", "line_rate": "1Gbit/s"}]
    assert "eno1 on a, enp3s0 on b" in first_file(discover(facts), ORIGIN)


def test_infiniband_has_the_rate_of_its_port_and_two_alike_are_told_apart_by_their_interfaces():
    port, second = rdma_port("mlx5_0", "ib0", 100e9), rdma_port("mlx5_1", "ib1", 100e9)
    facts = {
        f"n{number}": host(
            card("ib0", f"10.1.0.{number}/24", link="infiniband", speed_bit_s=None, mtu=2044),
            card("ib1", f"10.2.0.{number}/24", link="infiniband", speed_bit_s=None, mtu=2044),
            rdma=(port, second),
        )
        for number in (1, 2)
    }
    found = file_of(facts)
    assert [one["name"] for one in found["fabric"]] == ["infiniband-100g-ib0", "infiniband-100g-ib1"]
    assert {one["line_rate"] for one in found["fabric"]} == {"100Gbit/s"}
    assert "RDMA through mlx5_0/1 (InfiniBand)" in first_file(discover(facts), ORIGIN)


def test_an_rdma_port_without_an_address_is_told_and_is_no_fabric():
    port = rdma_port("mlx5_0", "ib0", 200e9)
    facts = {
        f"n{number}": host(card("eth0", f"10.1.0.{number}/24"), card("ib0", link="infiniband"), rdma=(port,))
        for number in (1, 2)
    }
    text = first_file(discover(facts), ORIGIN)
    assert [one["interface"] for one in tomllib.loads(text)["fabric"]] == ["eth0"]
    assert "RDMA port mlx5_0/1 (InfiniBand, 200 Gbit/s, active) on n[1-2]" in text
    assert "give it an address to measure it" in reasons(discover(facts))["ib0"]


def test_bonds_vlans_and_bridges_over_cards_are_fabrics_and_what_they_are_made_of_is_not():
    def made(number: int) -> NodeFacts:
        return host(
            card("eth0", master="bond0"),
            card("eth1", master="bond0"),
            card("bond0", f"10.1.0.{number}/24", kind="bond", speed_bit_s=2e9),
            card("bond0.7", f"10.7.0.{number}/24", kind="vlan", below="bond0", vlan=7, speed_bit_s=2e9),
            card("eth2", master="vmbr0"),
            card("vmbr0", f"10.3.0.{number}/24", kind="bridge", speed_bit_s=None),
        )

    found = discover({"n1": made(1), "n2": made(2)})
    assert {one.interface for one in found.networks} == {"bond0", "bond0.7", "vmbr0"}
    assert {"eth0", "eth1", "eth2"} <= set(reasons(found))
    assert reasons(found)["eth0"] == "a port of bond0"
    remarks = {one.interface: " ".join(one.remarks) for one in found.networks}
    assert "a bond of eth0, eth1: one stream takes one of its links only" in remarks["bond0"]
    assert "VLAN 7 on bond0" in remarks["bond0.7"]
    assert "a bridge over eth2" in remarks["vmbr0"]
    read_back(first_file(found, ORIGIN))


@pytest.mark.parametrize(
    ("interface", "words"),
    [
        (card("docker0", "172.17.0.1/16", kind="bridge"), "containers or virtual machines"),
        (card("br-0123456789ab", "172.18.0.1/16", kind="bridge"), "containers or virtual machines"),
        (card("mybridge", "10.250.0.1/24", kind="bridge"), "containers or virtual machines"),
        (card("wg0", "10.8.0.1/24", kind="wireguard", link=""), "of kind wireguard"),
        (card("usb0", "169.254.3.1/16"), "a link-local address only"),
        (card("eth7", "192.168.55.1/24"), "the same address on several hosts"),
        (card("eth8"), "no IPv4 address"),
        (card("eth9", state="down"), "no IPv4 address, and is down"),
    ],
    ids=lambda value: value.name if isinstance(value, NodeInterface) else "",
)
def test_what_stays_within_a_host_is_left_out_and_the_reason_stands_in_the_file(interface: NodeInterface, words: str):
    facts = {f"n{number}": host(card("eth0", f"10.1.0.{number}/24"), interface) for number in (1, 2)}
    found = discover(facts)
    assert [one.interface for one in found.networks] == ["eth0"]
    assert words in reasons(found)[interface.name]
    assert interface.name in first_file(found, ORIGIN)


def test_a_network_of_few_hosts_is_left_out_and_one_that_few_lack_is_kept_and_they_are_named():
    facts = {
        f"n{number}": host(
            *([card("eth0", f"10.1.0.{number}/24")] if number != 3 else []),
            *([card("eth1", f"10.2.0.{number}/24")] if number == 1 else []),
        )
        for number in range(1, 5)
    }
    found = discover(facts)
    assert [(one.interface, one.lacking) for one in found.networks] == [("eth0", ("n3",))]
    assert "n3 has no interface in it" in first_file(found, ORIGIN)
    assert reasons(found)["eth1"] == "only 1 of 4 hosts have an interface in 10.2.0.0/24"


def test_racks_with_subnets_of_their_own_are_one_fabric_and_the_router_is_told():
    facts = {
        f"r{rack}n{number}": host(card("eth0", f"10.{rack}.0.{number}/24")) for rack in (1, 2, 3) for number in (1, 2)
    }
    (one,) = discover(facts).networks
    assert one.interface == "eth0"
    assert len(one.members) == 6
    assert "a router lies between them" in one.remarks[0]


def test_a_second_interface_in_the_same_subnet_is_no_second_fabric():
    facts = {
        f"n{number}": host(card("ib0", f"10.1.0.{number}/16"), card("ib1", f"10.1.1.{number}/16")) for number in (1, 2)
    }
    found = discover(facts)
    assert [one.interface for one in found.networks] == ["ib0"]
    assert reasons(found)["ib1"] == "a second interface in 10.1.0.0/16, which ib0 is in already"


def test_hosts_that_differ_in_rate_or_mtu_or_are_down_are_named():
    facts = {
        "n1": host(card("eth0", "10.1.0.1/24")),
        "n2": host(card("eth0", "10.1.0.2/24")),
        "n3": host(card("eth0", "10.1.0.3/24", speed_bit_s=100e6, mtu=9000, state="down")),
    }
    (one,) = discover(facts).networks
    assert one.name == "ethernet-1g"
    assert one.remarks == (
        "n3 runs at 100 Mbit/s, the others 1.00 Gbit/s",
        "n3 has MTU 9000, the others 1500",
        "it is down on n3",
    )


def test_the_control_network_is_behind_comment_signs_only_where_two_others_can_be_compared():
    def made(number: int, *more: NodeInterface) -> NodeFacts:
        return host(card("eth0", f"10.1.0.{number}/24"), *more, reached_at=f"10.1.0.{number}")

    two = {f"n{number}": made(number, card("eth1", f"10.2.0.{number}/24")) for number in (1, 2)}
    assert len(file_of(two)["fabric"]) == 2
    assert "the control network" in first_file(discover(two), ORIGIN)
    three = {
        f"n{number}": made(number, card("eth1", f"10.2.0.{number}/24"), card("eth2", f"10.3.0.{number}/24"))
        for number in (1, 2)
    }
    assert [one["interface"] for one in file_of(three)["fabric"]] == ["eth1", "eth2"]


def test_without_raw_sockets_the_layers_that_need_them_are_left_out():
    facts = {"n1": host(card("eth0", "10.1.0.1/24")), "n2": host(card("eth0", "10.1.0.2/24"))}
    origin = HowAsked(name="rack", launcher=LauncherKind.SSH, command="init", raw_refused=("n1", "n2"))
    assert file_of(facts, origin)["fabric"][0]["layers"] == ["memory", "udp", "tcp", "mpi"]


def test_in_a_batch_job_the_file_takes_the_nodes_of_whatever_job_it_is_read_in(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    facts = {"n1": host(card("eth0", "10.1.0.1/24")), "n2": host(card("eth0", "10.1.0.2/24"))}
    origin = HowAsked(name="job", launcher=LauncherKind.SLURM, command="init", starter="srun", is_allocated=True)
    assert file_of(facts, origin)["testbed"] == {
        "name": "job",
        "launcher": "slurm",
        "starter": "srun",
        "nodes": "allocation",
    }


def test_other_mpis_are_named_behind_comment_signs():
    facts = {"n1": host(card("eth0", "10.1.0.1/24")), "n2": host(card("eth0", "10.1.0.2/24"))}
    origin = HowAsked(
        name="rack",
        launcher=LauncherKind.SSH,
        command="init",
        mpi={"n1": "MPICH hydra 5.0.2", "n2": ""},
        others_mpi={"/usr/lib64/openmpi": ("n1", "n2")},
    )
    text = first_file(discover(facts), origin)
    assert '# name = "openmpi"\n# prefix = "/usr/lib64/openmpi"' in text
    assert "MPI on n2: none that answers" in text
    assert "mpi" not in tomllib.loads(text)


def test_names_that_would_end_a_string_or_a_line_do_not():
    facts = {
        f"n{number}": host(
            card('e"\n[x]', f"10.1.0.{number}/24", speed_bit_s=None), card("eth0", f"10.2.0.{number}/24")
        )
        for number in (1, 2)
    }
    found = file_of(facts, HowAsked(name='a"b\\\n', launcher=LauncherKind.SSH, command="x\ny"))
    assert {one.get("subnet") for one in found["fabric"]} == {"10.1.0.0/24", None}
    assert found["testbed"]["name"] == 'a"b\\\n'


@pytest.mark.parametrize(("measured", "rate"), [(1.013e9, "1Gbit/s"), (203e6, "200Mbit/s"), (36.7e9, "37Gbit/s")])
def test_a_measured_rate_is_the_usual_one_nearby_and_says_that_it_was_measured(measured: float, rate: str):
    facts = {f"n{number}": host(card("eth0", f"10.1.0.{number}/24", speed_bit_s=None)) for number in (1, 2)}
    found = discover(facts)
    assert '# line_rate = "1Gbit/s"' in first_file(found, ORIGIN)
    text = first_file(with_measured(found, {"eth0": measured}), ORIGIN)
    assert tomllib.loads(text)["fabric"] == [{"name": "eth0", "interface": "eth0", "line_rate": rate}]
    assert "was measured" in text


def test_hosts_without_a_network_in_common_are_refused_with_what_was_seen():
    with pytest.raises(EnvironmentLacks, match="only 1 of 2 hosts"):
        first_file(
            discover({"a": host(card("eth0", "10.1.0.1/24")), "b": host(card("eth5", "10.9.0.1/30"))}),
            ORIGIN,
        )


def test_a_thousand_hosts_of_five_networks_are_grouped_and_named():
    facts = {
        f"node{number:04}": host(
            *(
                card(
                    f"eth{network}",
                    f"10.{network}.{number // 250}.{1 + number % 250}/16",
                    speed_bit_s=1e9 * (network + 1),
                )
                for network in range(5)
            ),
            card("docker0", "172.17.0.1/16", kind="bridge"),
            reached_at=f"10.0.{number // 250}.{1 + number % 250}",
        )
        for number in range(1000)
    }
    found = file_of(facts)
    assert found["testbed"]["nodes"] == "node[0000-0999]"
    assert len(found["fabric"]) == 4


def test_a_node_is_reached_at_the_address_of_ssh_only_where_that_is_its_own():
    interfaces = (LO, card("eth0", "10.1.0.1/24"))
    assert read_reached_at(interfaces, LookUp(), {"SSH_CONNECTION": "10.1.0.9 5 10.1.0.1 22"}) == IPv4Address(
        "10.1.0.1"
    )
    assert read_reached_at(interfaces, LookUp(), {"SSH_CONNECTION": "10.1.0.9 5 10.4.0.1 22"}) is None
    assert read_reached_at(interfaces, LookUp(), {"SSH_CONNECTION": "::1 5 ::1 22"}) is None


def test_mpis_are_found_in_the_usual_places_of_a_host(tmp_path: Path):
    for name in ("mpicxx", "mpirun"):
        path = tmp_path / "usr/lib64/openmpi/bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_mpis(tmp_path) == (str(tmp_path / "usr/lib64/openmpi"),)


def test_a_further_subnet_of_a_card_is_told_and_no_network_of_its_own():
    found = discover(
        {f"n{number}": host(card("eth0", f"10.1.0.{number}/24", f"10.9.0.{number}/24")) for number in (1, 2)}
    )
    assert len(found.networks) == 1
    assert reasons(found) == {
        "lo": "the loopback interface",
        "eth0": "a further subnet of it, 10.9.0.0/24: two subnets of one card are one network",
    }


def test_a_network_that_the_names_of_hosts_lead_to_is_said_to_be_measured_with_what_starters_say():
    hosts = {
        f"n{number}": host(
            card("mgt", f"10.1.0.{number}/24"), card("fast", f"10.2.0.{number}/24"), reached_at=f"10.1.0.{number}"
        )
        for number in (1, 2)
    }
    found = discover(hosts, {f"n{number}": IPv4Address(f"10.2.0.{number}") for number in (1, 2)})
    by_interface = {one.interface: one for one in found.networks}
    assert by_interface["mgt"].is_control
    assert any("the names of n[1-2] lead to it" in remark for remark in by_interface["fast"].remarks)
    unasked = discover(
        {name: one.model_copy(update={"reached_at": None}) for name, one in hosts.items()},
        {f"n{number}": IPv4Address(f"10.2.0.{number}") for number in (1, 2)},
    )
    assert {one.interface for one in unasked.networks if one.is_control} == {"fast"}


def test_a_tunnel_is_offered_with_what_carries_it():
    hosts = {
        f"n{number}": host(
            card("eth0", f"10.1.0.{number}/24"), card("vx0", f"10.8.0.{number}/24", kind="vxlan", carriers=("eth0",))
        )
        for number in (1, 2)
    }
    (tunnel,) = (one for one in discover(hosts).networks if one.interface == "vx0")
    assert "a tunnel (vxlan) over eth0, whose link it shares with what else goes over that" in tunnel.remarks
