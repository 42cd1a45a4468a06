"""What of a testbed is measured, and with whom: nodes of which something is wrong are left out where that is."""

from __future__ import annotations

from fabricbench.campaign.testbed_check import Looked, check_campaign, measurings
from fabricbench.model import Layer, Pattern
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from fabricbench.testbed.preflight_result import Finding, FindingSeverity, Preflight

SLOW = Fabric(name="slow", interface="eth0")
FAST = Fabric(name="fast", interface="eth1", mtu=9000, layers=(Layer.MEMORY, Layer.TCP, Layer.MPI))
MEMORY = Fabric(name="memory", layers=(Layer.MEMORY, Layer.MPI))


def looked(*findings: Finding, nodes: int = 4) -> Looked:
    testbed = Testbed(
        name="t",
        launcher=LauncherKind.SSH,
        nodes=tuple(Node(name=f"n{number}") for number in range(1, nodes + 1)),
        fabrics=(SLOW, FAST, MEMORY),
    )
    return Looked(testbed, Preflight(), findings, {}, {})


def wrong(
    node: str = "", fabric: str = "", subject: str = "interface", severity: FindingSeverity = FindingSeverity.ERROR
) -> Finding:
    return Finding(severity=severity, node=node, fabric=fabric, subject=subject, found="x", needed="y", action="z")


def test_a_node_is_left_out_of_the_fabric_that_it_is_wrong_on_and_of_all_where_it_is_silent():
    found = looked(wrong("n1", "slow"), wrong("n2", subject="reach"))
    assert found.sound_nodes(SLOW) == ("n3", "n4")
    assert found.sound_nodes(FAST) == ("n1", "n3", "n4")


def test_two_fabrics_that_are_one_are_not_measured_and_what_does_no_harm_keeps_nobody_out():
    assert looked(wrong(fabric="slow and fast", subject="distinct")).sound_nodes(SLOW) == ()
    harmless = (
        wrong("n1", "slow", "speed"),
        wrong("n2", subject="clock"),
        wrong("n3", severity=FindingSeverity.WARNING),
    )
    assert looked(*harmless).sound_nodes(SLOW) == ("n1", "n2", "n3", "n4")


def test_each_fabric_with_an_interface_and_two_sound_nodes_is_measured_by_itself():
    found = measurings(looked(wrong("n1", "slow"), wrong("n2", "slow"), wrong("n3", "slow")), seed=1)
    (one,) = found
    assert one.fabric.name == "fast"
    assert one.plan.ranks == 4
    assert [node.name for node in one.venue.given.nodes] == ["n1", "n2", "n3", "n4"]


def test_datagrams_fill_the_mtu_and_only_layers_that_the_fabric_has_are_measured():
    assert check_campaign(SLOW, 4).experiments[0].message_bytes == (1472,)
    assert [one.layers for one in check_campaign(FAST, 4).experiments] == [(Layer.TCP,), (Layer.MPI,)]


def test_many_nodes_are_measured_in_rounds_whose_number_grows_with_the_nodes_and_not_their_pairs():
    few, many = check_campaign(SLOW, 8).experiments[1], check_campaign(SLOW, 1000).experiments[1]
    assert (few.parameters["schedule"], many.parameters["schedule"]) == ("alone", "rounds")
    assert float(few.maximum_seconds or 0) == 56 * 0.1
    assert float(many.maximum_seconds or 0) == 2 * 999 * 0.1


def test_of_many_nodes_each_is_in_one_pair_of_what_nothing_is_judged_by():
    without_tcp = FAST.model_copy(update={"layers": (Layer.MPI,)})
    of_mpi = [
        check_campaign(fabric, nodes).experiments[-1] for fabric, nodes in ((FAST, 8), (FAST, 9), (without_tcp, 9))
    ]
    assert [one.layers for one in of_mpi] == [(Layer.MPI,)] * 3
    assert [one.parameters["schedule"] for one in of_mpi] == ["alone", "halves", "rounds"]
    assert float(of_mpi[1].maximum_seconds or 0) == 2 * 0.05


def test_what_looked_slow_is_measured_again_one_pair_at_a_time_by_the_streams_that_it_is_judged_by():
    again = check_campaign(SLOW, 16, is_again=True).experiments
    assert [(one.layers, one.parameters["schedule"]) for one in again] == [((Layer.TCP,), "alone")]
    assert check_campaign(SLOW, 17, is_again=True).experiments[0].parameters["schedule"] == "rounds"
    (one,) = measurings(looked(wrong(fabric="fast", subject="reach")), seed=1)
    assert [cell.pattern for cell in one.again(one.nodes).plan.cells] == [Pattern.PAIRS_STREAM]
    fewer = one.again(one.nodes[:2])
    assert [node.name for node in fewer.venue.testbed().nodes] == list(fewer.nodes) == list(one.nodes[:2])
