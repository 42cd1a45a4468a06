from __future__ import annotations

import json
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricbench.errors import UsageError
from fabricbench.lab import PRESETS, EmulatedFabric, parse_fabric, parse_fabrics
from fabricbench.lab.topology import LabTopology, cpus_of_nodes, plan_lab, share_cpus
from fabricbench.pattern_facts import USUAL_LAYERS
from fabricbench.testbed.model import LauncherKind

FABRICS = parse_fabrics("fast-ethernet,myrinet")


def test_addresses_interfaces_and_names_follow_the_scheme():
    topology = plan_lab("a", 3, FABRICS, [0, 1])
    assert [node.name for node in topology.nodes] == ["n0", "n1", "n2"]
    assert topology.nodes[2].control_address == IPv4Address("10.98.0.3")
    assert [str(address) for address in topology.nodes[2].fabric_addresses] == ["10.98.1.3", "10.98.2.3"]
    assert [fabric.interface for fabric in topology.fabrics] == ["fe0", "myr1"]
    assert topology.fabrics[1].switch_interfaces == ("myr1-n0", "myr1-n1", "myr1-n2")


@pytest.mark.slow
@settings(deadline=None)
@given(nodes=st.integers(2, 200), fabrics=st.integers(1, 16))
def test_no_name_is_too_long_and_no_address_is_given_twice(nodes: int, fabrics: int):
    asked = [PRESETS["sci"].model_copy(update={"name": f"f{index}"}) for index in range(fabrics)]
    topology = plan_lab("a", nodes, asked, [0])
    names = [name for fabric in topology.fabrics for name in (fabric.interface, *fabric.switch_interfaces)]
    assert max(map(len, names)) <= 15
    assert len(set(names)) == len(names)
    macs = [mac for node in topology.nodes for mac in (node.control_mac, *node.fabric_macs)]
    addresses = [address for node in topology.nodes for address in (node.control_address, *node.fabric_addresses)]
    assert len(set(macs)) == len(macs)
    assert len(set(addresses)) == len(addresses)


def test_the_testbed_is_emulated_on_every_fabric_and_carries_every_layer():
    testbed = plan_lab("a", 2, FABRICS, [0, 1]).testbed()
    assert testbed.launcher is LauncherKind.LAB
    assert testbed.lab == "a"
    assert all(fabric.is_emulated and fabric.layers == USUAL_LAYERS for fabric in testbed.fabrics)
    assert testbed.fabric("myrinet").wire == PRESETS["myrinet"].wire
    assert testbed.nodes[1].addresses["myrinet"] == IPv4Address("10.98.2.2")


def test_node_names_resolve_to_control_addresses():
    assert "10.98.0.2 n1" in plan_lab("a", 2, FABRICS, [0]).hosts().splitlines()


@pytest.mark.parametrize(
    ("cpus", "fabrics", "for_nodes", "for_switches"),
    [
        ([3], 2, [3], []),
        ([0, 1], 2, [0], [1]),
        ([0, 1, 2, 3], 2, [0, 1, 2], [3]),
        (range(16), 2, list(range(14)), [14, 15]),
    ],
)
def test_switches_get_the_last_processors_and_nodes_the_rest(
    cpus: Sequence[int], fabrics: int, for_nodes: list[int], for_switches: list[int]
):
    assert share_cpus(cpus, fabrics, {}) == (for_nodes, for_switches)


@pytest.mark.parametrize(
    ("cpus", "fabrics", "taken", "for_nodes", "for_switches"),
    [
        (range(16), 2, {14: 1, 15: 1}, list(range(12)), [12, 13]),
        (range(4), 2, {3: 2}, [0, 1], [2]),
        (range(4), 1, {2: 1, 3: 1}, [0, 1], [3]),
        (range(4), 1, {2: 1, 3: 2}, [0, 1], [2]),
        ([0, 1], 2, {1: 1}, [0], [1]),
        ([4, 5], 1, {9: 3}, [4], [5]),
        (range(8), 4, {5: 1, 6: 1, 7: 1}, [0, 1, 2, 3], [4]),
        ([3], 1, {3: 1}, [3], []),
    ],
)
def test_switches_keep_off_the_processors_of_other_labs_switches_where_there_are_enough(
    cpus: Sequence[int], fabrics: int, taken: dict[int, int], for_nodes: list[int], for_switches: list[int]
):
    assert share_cpus(cpus, fabrics, taken) == (for_nodes, for_switches)


def test_the_switch_is_told_what_was_asked_for():
    told = plan_lab("a", 2, parse_fabrics("atm-oc3:delay=7us"), [0, 1]).switch_configuration(
        0, {"status": Path("/s"), "lateness": Path("/l")}
    )
    assert told["delay_ns"] == 7000
    assert told["cell"] == {"payload_bytes": 48, "cell_bytes": 53}
    assert told["ports"] == [
        {"interface": "atm0-n0", "mac": "02:fb:00:00:01:01"},
        {"interface": "atm0-n1", "mac": "02:fb:00:00:01:02"},
    ]
    assert told["cpu"] == 1
    json.dumps(told)


def test_the_switch_is_told_that_a_cable_is_one_link(tmp_path: Path):
    topology = plan_lab("a", 2, parse_fabrics("fast-ethernet-crossover:delay=3us"), [0, 1])
    told = topology.switch_configuration(0, {"status": tmp_path / "status"})
    assert (told["switching"], told["delay_ns"], told["switch_latency_ns"]) == ("none", 3000, 0)
    assert isinstance(told["ports"], list)
    assert [port["delay_down_ns"] for port in told["ports"]] == [0, 0]
    with pytest.raises(UsageError, match="fast-ethernet-crossover is a cable between two nodes, and the lab has 3"):
        plan_lab("a", 3, parse_fabrics("fast-ethernet-crossover"), [0, 1])


def test_the_switch_is_told_the_segments_of_a_torus_and_every_route(tmp_path: Path):
    topology = plan_lab("a", 4, parse_fabrics("sci-torus:latency=1us"), [0, 1])
    told = topology.switch_configuration(0, {"status": tmp_path / "status"})
    assert told["segments"] == [{"line_rate_bit_s": 6.4e9, "latency_ns": 1000}] * 8
    assert told["switch_latency_ns"] == 0
    assert told["routes"] == [
        [[], [0], [4], [0, 5]],
        [[1], [], [1, 4], [5]],
        [[6], [2, 7], [], [2]],
        [[3, 6], [7], [3], []],
    ]
    assert "routes" not in plan_lab("a", 4, FABRICS, [0, 1]).switch_configuration(0, {})
    with pytest.raises(UsageError, match="4 nodes make no torus of 3 columns"):
        plan_lab("a", 4, parse_fabrics("sci-torus:columns=3"), [0, 1])


def test_a_testbed_tells_the_scale_of_its_fabrics():
    testbed = plan_lab("a", 2, parse_fabrics("myrinet,roce-100g"), [0, 1]).testbed()
    (_, fabric), (_, note) = testbed.fabrics, testbed.notes
    assert note.startswith("roce-100g is scaled 1:80")
    assert fabric.description.startswith("emulated: RoCE v2")
    assert "scaled 1:80: 1.25 Gbit/s of 100 Gbit/s, delays 80 times as long" in fabric.description


@pytest.mark.parametrize("fabric", ["myrinet", "sci-torus", "roce-100g"])
def test_a_topology_survives_the_way_to_the_keeper(fabric: str):
    topology = plan_lab("a", 2, parse_fabrics(fabric), [0, 1])
    assert LabTopology.model_validate_json(topology.model_dump_json()) == topology


@pytest.mark.parametrize(("nodes", "fabrics"), [(1, FABRICS), (201, FABRICS), (2, []), (2, FABRICS * 2)])
def test_a_lab_that_cannot_be_is_refused(nodes: int, fabrics: list[EmulatedFabric]):
    with pytest.raises(UsageError):
        plan_lab("a", nodes, fabrics, [0])


def test_the_switch_is_told_of_a_link_that_differs(tmp_path: Path) -> None:
    topology = plan_lab("faulty", 3, [parse_fabric("fast-ethernet:n2.rate=80Mbit/s,n1.delay-up=20us")], [0, 1])
    ports = topology.switch_configuration(0, {"status": tmp_path / "status"})["ports"]
    assert isinstance(ports, list)
    assert "line_rate_bit_s" not in ports[0]
    assert ports[1] == {**ports[1], "delay_up_ns": 20_000, "line_rate_bit_s": 100e6}
    assert "delay_down_ns" not in ports[1]
    assert ports[2]["line_rate_bit_s"] == 80e6


def test_a_link_of_a_node_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="n7"):
        plan_lab("faulty", 3, [parse_fabric("fast-ethernet:n7.rate=80Mbit/s")], [0, 1])


@pytest.mark.parametrize(
    ("cpus", "nodes", "own"),
    [
        ([0], 4, ()),
        ([0, 1, 2], 4, ()),
        ([0, 1, 2, 3], 4, ((0,), (1,), (2,), (3,))),
        ([5, 4, 9, 8, 7, 6], 2, ((4, 5, 6), (7, 8, 9))),
        ([0, 1, 2, 3, 4], 2, ((0, 1), (2, 3))),
    ],
)
def test_each_node_has_as_many_processors_that_no_other_has(
    cpus: list[int], nodes: int, own: tuple[tuple[int, ...], ...]
):
    assert cpus_of_nodes(cpus, nodes) == own


@given(cpus=st.sets(st.integers(0, 255), min_size=1, max_size=64), nodes=st.integers(1, 70))
def test_processors_of_nodes_are_apart_equal_in_number_and_of_those_given(cpus: set[int], nodes: int):
    own = cpus_of_nodes(sorted(cpus), nodes)
    given_out = [cpu for one in own for cpu in one]
    assert len(set(given_out)) == len(given_out)
    assert set(given_out) <= cpus
    assert [len(one) for one in own] == ([len(cpus) // nodes] * nodes if len(cpus) >= nodes else [])


def test_nodes_share_processors_where_there_are_too_few_or_where_that_is_asked_for():
    fabrics = parse_fabrics("fast-ethernet,myrinet")
    crowded, roomy = plan_lab("a", 4, fabrics, [0, 1]), plan_lab("a", 4, fabrics, range(8))
    shared = plan_lab("a", 4, fabrics, range(8), own_cpus=False)
    assert shared.cpus_of("n0") == shared.cpus_of("n1") > (0,)
    assert {crowded.cpus_of(f"n{index}") for index in range(4)} == {(0,)}
    assert [roomy.cpus_of(f"n{index}") for index in range(4)] == [(0,), (1,), (2,), (3,)]
    assert {shared.cpus_of(f"n{index}") for index in range(4)} == {shared.node_cpus}
    switches = {planned.cpu for planned in roomy.fabrics}
    assert not switches & {cpu for node in roomy.nodes for cpu in node.cpus}


def test_processors_of_their_own_are_refused_where_there_are_too_few():
    with pytest.raises(
        UsageError, match="4 nodes cannot each have a processor of its own: 1 processor of 2"
    ) as refused:
        plan_lab("a", 4, parse_fabrics("fast-ethernet"), [0, 1], own_cpus=True)
    assert "--shared-processors" in (refused.value.hint or "")
