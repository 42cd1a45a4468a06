from __future__ import annotations

from collections.abc import Mapping

import pytest

from fabricbench.testbed.differences import NodeDifference, as_findings, find_differences
from fabricbench.testbed.preflight_result import told

FACTS = {
    "cpu.model": "AMD EPYC 7543",
    "memory_bytes": "270000000000",
    "load": "0.1",
    "net.ib0.driver": "mlx5_core",
    "net.ib0.mac": "00:00",
    "net.ib0.mtu": "2044",
    "net.ib0.adapter.firmware": "20.35",
    "net.ib0.adapter.pcie.lanes": "16",
    "net.ib0.adapter.interrupts": "0-7",
    "sysctl.net.core.rmem_max": "212992",
}


def nodes(count: int, changes: Mapping[int, Mapping[str, str | None]]) -> dict[str, dict[str, str]]:
    found = {}
    for number in range(count):
        facts = FACTS | {"net.ib0.mac": f"00:{number}", "load": f"{number}.0"} | changes.get(number, {})
        found[f"node{number:03d}"] = {name: value for name, value in facts.items() if value is not None}
    return found


def test_the_node_with_another_firmware_is_named_with_what_the_others_have():
    (found,) = find_differences(nodes(128, {3: {"net.ib0.adapter.firmware": "20.31"}}))
    lines = told(as_findings([found]))
    assert lines[0].startswith("  node003: found net.ib0.adapter.firmware 20.31 where 127 other nodes have 20.35")
    assert "firmware" in lines[1]
    assert found.words() == "net.ib0.adapter.firmware: node003: 20.31; the other 127 have 20.35"


def test_nodes_that_agree_on_something_else_are_told_as_one():
    found = find_differences(
        nodes(16, {3: {"net.ib0.adapter.pcie.lanes": "8"}, 4: {"net.ib0.adapter.pcie.lanes": "8"}})
    )
    lines = told(as_findings(found))
    assert len(lines) == 2
    assert lines[0].startswith("  node[003-004]: found net.ib0.adapter.pcie.lanes 8 where 14")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"advice.load": "busy"},
        {"net.ib0.adapter.interrupts": "3"},
        {"memory_bytes": "269999000000"},
        {"net.veth12.mtu": "1500"},
        {"allowance.shared_memory_bytes": "4096"},  # what launches that were killed left there, say
        {"missing": "it did not answer"},
    ],
)
def test_what_differs_from_node_to_node_of_one_kind_is_no_difference(changes: dict[str, str]):
    assert find_differences(nodes(4, {2: changes})) == ()


def test_half_of_the_memory_is_a_difference():
    (found,) = find_differences(nodes(4, {2: {"memory_bytes": "135000000000"}}))
    assert found.fact == "memory_bytes"


def test_an_adapter_that_a_node_lacks_is_said_once_and_the_others_are_compared():
    without: dict[str, str | None] = {name: None for name in FACTS if name.startswith("net.ib0.")}
    found = find_differences(nodes(5, {1: without, 2: {"net.ib0.adapter.firmware": "19"}}))
    assert [one.fact for one in found] == ["net.ib0.adapter.firmware", "net.ib0.driver"]
    assert found[1].others == {"none": ("node001",)}


def test_what_a_preflight_judges_itself_is_not_said_twice():
    assert list(as_findings([NodeDifference("net.ib0.mtu", "2044", ("a", "b"), {"1500": ("c",)})])) == []


def test_one_node_has_nobody_to_differ_from():
    assert find_differences(nodes(1, {})) == ()
    assert find_differences({}) == ()


def test_a_thousand_nodes_with_hundreds_of_facts_are_compared():
    wide = {f"fact.{number}": "same" for number in range(200)}
    found = {name: facts | wide for name, facts in nodes(1000, {7: {"cpu.model": "AMD EPYC 7443"}}).items()}
    (one,) = find_differences(found)
    assert one.others == {"AMD EPYC 7443": ("node007",)}
