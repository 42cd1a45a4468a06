"""Speeds, clocks and who reaches whom, of made-up nodes; and the program that asks, against the kernel's own answers."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Interface

import pytest

from fabricbench.testbed import reaching
from fabricbench.testbed.joining import (
    ClockReading,
    Reachability,
    Reached,
    judge_clocks,
    judge_members,
    judge_speeds,
    judge_way,
)
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from fabricbench.testbed.node_facts import NodeFacts, NodeInterface
from fabricbench.testbed.preflight_result import Finding, FindingSeverity
from fabricbench.testbed.wire import Wire

NAMES = ("n1", "n2", "n3", "n4")
FABRIC = Fabric(name="fast", interface="eth0", wire=Wire(line_rate_bit_s=10e9))
ADDRESSES = {name: IPv4Address(f"10.1.0.{number}") for number, name in enumerate(NAMES, start=1)}


def facts(speed_bit_s: float | None = 10e9, kind: str = "", **told: object) -> NodeFacts:
    interface = NodeInterface(
        name="eth0", mtu=1500, state="up", addresses=(IPv4Interface("10.1.0.1/24"),), speed_bit_s=speed_bit_s, kind=kind
    )
    given = {"host": "h", "version": "0", "programs": {}, "interfaces": (interface,), "load": 0.0, "processors": 8}
    return NodeFacts.model_validate({**given, **told})


def nodes_named(*names: str) -> Testbed:
    return Testbed(
        name="t", launcher=LauncherKind.SSH, nodes=tuple(Node(name=name) for name in names), fabrics=(FABRIC,)
    )


def test_a_fabric_of_one_node_has_no_pairs():
    bed = nodes_named("n1", "n2")
    alone = bed.model_copy(update={"fabrics": (FABRIC, FABRIC.model_copy(update={"name": "slow", "nodes": ("n2",)}))})
    assert list(judge_members(bed)) == []
    assert [(one.fabric, one.found, one.severity) for one in judge_members(alone)] == [
        ("slow", "n2 alone", FindingSeverity.ERROR)
    ]


def test_an_interface_that_agreed_on_half_the_rate_is_named_and_of_what_no_driver_tells_nothing_is_said():
    found = list(
        judge_speeds(
            nodes_named(*NAMES), {"n1": facts(), "n2": facts(5e9), "n3": facts(None), "n4": facts(20e9, kind="bond")}
        )
    )
    assert [(one.node, one.subject, one.found) for one in found] == [("n2", "speed", "eth0 at 5.00 Gbit/s")]


def test_where_all_interfaces_run_at_another_rate_the_file_is_to_be_corrected():
    found = list(judge_speeds(nodes_named("n1", "n2"), {"n1": facts(25e9), "n2": facts(25e9)}))
    assert len(found) == 2
    assert 'line_rate = "25Gbit/s"' in found[0].action


SECOND = 10**9


def reading(ahead_s: float, took_s: float = 1.0) -> ClockReading:
    begin = 1000 * SECOND
    return ClockReading(int(begin + (took_s / 2 + ahead_s) * SECOND), (begin, int(begin + took_s * SECOND)))


def test_a_clock_that_is_off_is_named_as_far_as_the_time_of_asking_can_tell():
    all_facts = {name: facts(clock_source="tsc") for name in NAMES}
    found = list(
        judge_clocks(
            all_facts, {"n1": reading(0.0), "n2": reading(0.3), "n3": reading(-90.0), "n4": reading(1.2, took_s=4.0)}
        )
    )
    assert [(one.node, one.severity) for one in found] == [("n3", FindingSeverity.ERROR)]
    assert "behind the others" in found[0].found


def test_a_slow_clock_source_is_an_error_and_another_one_a_warning():
    sources = {"n1": "tsc", "n2": "tsc", "n3": "hpet", "n4": "kvm-clock"}
    found = list(judge_clocks({name: facts(clock_source=source) for name, source in sources.items()}, {}))
    assert {one.node: one.severity for one in found} == {"n3": FindingSeverity.ERROR, "n4": FindingSeverity.WARNING}


def way(
    silent: Iterable[tuple[str, str]] = (),
    cut: Iterable[tuple[str, str]] = (),
    changed: Mapping[str, Reached] | None = None,
) -> Reachability:
    """Nodes that reach each other but for these ordered pairs."""
    silent, cut = set(silent), set(cut)

    def seen(name: str) -> Reached:
        others = [other for other in NAMES if other != name and (name, other) not in silent]
        return Reached(
            answering=tuple(ADDRESSES[other] for other in others),
            full=tuple(ADDRESSES[other] for other in others if (name, other) not in cut),
        )

    return Reachability(FABRIC, ADDRESSES, {name: seen(name) for name in NAMES} | dict(changed or {}))


def told(found: Iterable[Finding]) -> list[tuple[str, str, FindingSeverity]]:
    return [(one.node, one.subject, one.severity) for one in found]


def both(name: str) -> set[tuple[str, str]]:
    return {pair for other in NAMES if other != name for pair in ((name, other), (other, name))}


def test_nodes_that_all_reach_each_other_are_told_nothing():
    assert told(judge_way(way())) == []


def test_a_node_that_nobody_reaches_is_named_once_and_a_pair_by_its_ends():
    assert told(judge_way(way(silent=both("n3")))) == [("n3", "link", FindingSeverity.ERROR)]
    (one,) = judge_way(way(silent={("n2", "n4")}))
    assert one.node == "n2"
    assert "between n2 and n4" in one.found


def test_messages_that_are_lost_at_full_mtu_only_are_a_matter_of_the_mtu():
    assert told(judge_way(way(cut=both("n4")))) == [("n4", "path-mtu", FindingSeverity.ERROR)]


def test_what_is_silent_is_not_told_again_as_lost_at_full_mtu():
    one_way = {("n3", other) for other in NAMES if other != "n3"}
    assert told(judge_way(way(silent=one_way, cut=both("n3")))) == [("n3", "link", FindingSeverity.ERROR)]


def test_a_firewall_that_lets_nothing_through_proves_nothing_and_is_a_warning():
    everybody = {(one, other) for one in NAMES for other in NAMES if one != other}
    assert told(judge_way(way(silent=everybody))) == [("", "link", FindingSeverity.WARNING)]
    assert told(judge_way(way(cut=everybody))) == [("", "path-mtu", FindingSeverity.WARNING)]


def test_a_node_that_cannot_ask_is_told_with_its_reason():
    (one,) = judge_way(way(changed={"n1": Reached(problem="no such address")}))
    assert (one.node, one.subject) == ("n1", "link")
    assert "no such address" in one.found


def asked(*arguments: str) -> Reached:
    done = subprocess.run(
        [sys.executable, "-I", "-S", reaching.__file__, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return Reached.model_validate(json.loads(done.stdout)["reached"])


def test_the_kernel_answers_for_closed_ports_and_for_messages_of_the_full_mtu():
    found = asked("127.0.0.1", "1472", "127.0.0.2", "127.0.0.3")
    assert {str(one) for one in found.answering} == {"127.0.0.2", "127.0.0.3"}
    assert found.full == found.answering
    assert not found.too_long


def test_a_message_that_the_own_interface_does_not_take_is_told():
    try:
        found = asked("127.0.0.1", "65512", "127.0.0.2")
    except subprocess.CalledProcessError:
        pytest.fail("a message that is too long must not end the program")
    assert found.too_long
    assert not found.full


def test_an_address_that_is_not_there_is_a_problem_and_no_crash():
    assert "192.0.2.1" in asked("192.0.2.1", "1472", "127.0.0.2").problem


def test_a_port_that_somebody_listens_at_is_an_answer_as_well(monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(reaching, "FIRST_PORT", server.getsockname()[1])
        monkeypatch.setattr(reaching, "PORTS", 1)
        assert reaching.reach("127.0.0.1", 1472, ["127.0.0.1"])["answering"] == ["127.0.0.1"]
