"""What measured rates of pairs come to: who is slow, what is written wrong in the testbed, and what is healthy."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fabricbench.analysis.findings import NetworkMap, Slow, UnexplainedPair
from fabricbench.analysis.testbed_check import expected_bit_s, judge_rates
from fabricbench.model import Layer
from fabricbench.statistics.candidates import Touch
from fabricbench.testbed.model import Fabric
from fabricbench.testbed.preflight_result import FindingSeverity
from fabricbench.testbed.wire import Wire
from support.rate_matrices import FOUR, GOOD, matrix, sends_slowly

GIGABIT = Fabric(name="eth", interface="eth0", wire=Wire(line_rate_bit_s=1e9))


def found(*measured: NetworkMap, expected: float | None = 949e6, fabric: Fabric = GIGABIT) -> list[tuple[str, str]]:
    return [
        (one.node, one.found)
        for one in judge_rates(fabric, measured[0], measured[1:], expected)
        if one.severity is FindingSeverity.ERROR
    ]


def test_what_arithmetic_leaves_of_the_line_rate_is_expected_of_every_pair():
    assert expected_bit_s(GIGABIT, Layer.TCP, 65536) == pytest.approx(1e9 * 1448 / 1538)
    assert expected_bit_s(Fabric(name="x", interface="eth0"), Layer.TCP, 65536) is None
    assert found(matrix()) == []
    assert found(matrix(), expected=None) == []


def test_a_node_that_the_map_names_is_told_once_with_both_rates():
    slow = Slow(touch=Touch.SENDING, hosts=("n3",), slower=0.5, slower_low=0.49, slower_high=0.51, is_confirmed=True)
    ((node, words),) = found(matrix(rates=sends_slowly("n3", FOUR), slow=[slow]))
    assert node == "n3"
    assert "n3 sends slowly to all others: 470 Mbit/s, 2.0 times slower" in words


@pytest.mark.parametrize("expected", [949e6, None])
def test_of_three_nodes_the_one_in_all_slow_pairs_is_named(expected: float | None):
    hosts = FOUR[:3]
    ((node, words),) = found(matrix(hosts, sends_slowly("n2", hosts)), expected=expected)
    assert (node, words) == ("n2", "that n2 sends slowly to all others: 470 Mbit/s")


def test_of_two_nodes_the_slow_direction_is_told():
    ((node, words),) = found(matrix(("n1", "n2"), {("n2", "n1"): 95e6}))
    assert (node, words) == ("n2", "95.0 Mbit/s from n2 to n1")


def test_what_a_second_measurement_does_not_find_again_is_told_of_nobody():
    hosts = FOUR[:3]
    assert found(matrix(hosts, sends_slowly("n2", hosts)), matrix(hosts)) == []
    assert len(found(matrix(hosts, sends_slowly("n2", hosts)), matrix(hosts, sends_slowly("n2", hosts)))) == 1


def test_a_pair_that_is_slow_twice_and_not_when_its_ends_alone_are_measured_once_more_is_told_of_nobody():
    slow = {("n1", "n2"): GOOD / 2}
    assert [node for node, _ in found(matrix(rates=slow), matrix(rates=slow))] == ["n1"]
    assert found(matrix(rates=slow), matrix(rates=slow), matrix(("n1", "n2"))) == []
    unexplained = UnexplainedPair(source="n1", destination="n2", value=GOOD / 2, slower=0.5)
    first = matrix(rates=slow).model_copy(update={"unexplained": (unexplained,)})
    assert found(first, matrix(rates=slow), matrix(("n1", "n2"))) == []


def test_the_ends_of_a_slow_pair_alone_are_held_against_what_all_nodes_carry():
    slow = {("n1", "n2"): GOOD / 2, ("n2", "n1"): GOOD / 2}
    told = found(matrix(rates=slow), matrix(rates=slow), matrix(("n1", "n2"), slow))
    assert [node for node, _ in told] == ["n1", "n2"]


def test_a_fabric_that_carries_half_of_its_line_rate_everywhere_is_one_finding():
    ((node, words),) = found(matrix(usual=470e6))
    assert node == ""
    assert words == "at most 470 Mbit/s between the nodes of three quarters of all pairs"
    ((_, words),) = found(matrix(FOUR[:3], usual=470e6))
    assert words == "at most 470 Mbit/s between any two nodes"


def test_of_a_lab_it_is_the_machine_that_carries_too_little():
    emulated = GIGABIT.model_copy(update={"is_emulated": True})
    for fabric, action in ((GIGABIT, "correct `line_rate`"), (emulated, "fewer nodes or slower links")):
        (one,) = judge_rates(fabric, matrix(usual=470e6), [], 949e6)
        assert action in one.action


def test_beyond_what_one_stream_fills_half_a_rate_is_a_warning():
    fabric = Fabric(name="eth", interface="eth0", wire=Wire(line_rate_bit_s=100e9))
    (one,) = judge_rates(fabric, matrix(usual=40e9), [], 94e9)
    assert one.severity is FindingSeverity.WARNING
    assert "one stream" in one.needed


def test_a_fabric_that_carries_more_than_its_line_rate_has_a_wrong_line_rate():
    ((node, words),) = found(matrix(usual=2.3e9))
    assert node == ""
    assert words == "2.30 Gbit/s between nodes"


@pytest.mark.parametrize(
    ("hosts", "half"), [(FOUR, ("n3", "n4")), ([f"n{n}" for n in range(1, 9)], ["n5", "n6", "n7", "n8"])]
)
def test_where_half_of_the_nodes_are_slow_they_are_named_and_the_rate_is_not_called_wrong(
    hosts: Sequence[str], half: Sequence[str]
):
    rates = {(a, b): GOOD / 2 for a in hosts for b in hosts if a != b and (a in half or b in half)}
    found = matrix(tuple(hosts), rates)
    told = list(judge_rates(GIGABIT, found, [found], 949e6))
    assert [one.node for one in told] == list(half)
    assert all("is slow with all others" in one.found for one in told)


def test_pairs_that_are_slow_only_while_all_carry_at_once_are_told_and_no_cable_is_blamed():
    hosts = [f"n{n}" for n in range(1, 10)]
    together = matrix(hosts, {(a, b): GOOD / 2 for a in hosts for b in hosts if a != b and (a, b) != ("n1", "n2")})
    together = together.model_copy(update={"schedule": "rounds"})
    (told,) = judge_rates(GIGABIT, together, [matrix(hosts)], 949e6)
    assert (told.severity, told.node, told.subject) == (FindingSeverity.WARNING, "", "sharing")
    assert "in 71 of 72 directions of pairs while all nodes carried at once" in told.found


def test_a_node_that_is_slow_among_others_and_alone_is_named():
    hosts = [f"n{n}" for n in range(1, 10)]
    slow = matrix(hosts, sends_slowly("n3", hosts))
    ((node, _),) = found(slow.model_copy(update={"schedule": "rounds"}), slow)
    assert node == "n3"
