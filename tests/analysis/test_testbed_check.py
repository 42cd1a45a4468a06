"""What measured rates of pairs come to: who is slow, what is written wrong in the testbed, and what is healthy."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pytest

from fabricbench.analysis.findings import NetworkMap, Slow, UnexplainedPair
from fabricbench.analysis.testbed_check import (
    cause_of,
    expected_bit_s,
    hosts_to_look_at_again,
    judge_rates,
    pairs_below,
    reference_of,
)
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.statistics.candidates import Touch
from fabricbench.testbed.model import Fabric
from fabricbench.testbed.preflight_result import FindingSeverity
from fabricbench.testbed.wire import Wire

GIGABIT = Fabric(name="eth", interface="eth0", wire=Wire(line_rate_bit_s=1e9))
GOOD = 940e6
FOUR = ("n1", "n2", "n3", "n4")


def matrix(
    hosts: Sequence[str] = FOUR,
    rates: Mapping[tuple[str, str], float] | None = None,
    usual: float = GOOD,
    slow: Sequence[Slow] = (),
) -> NetworkMap:
    """A matrix in which all directions carry the usual rate but for some."""
    rows = tuple(
        tuple(None if one == other else (rates or {}).get((one, other), usual) for other in hosts) for one in hosts
    )
    return NetworkMap(
        fabric="eth",
        layer=Layer.TCP,
        pattern=Pattern.PAIRS_STREAM,
        schedule="alone",
        message_bytes=65536,
        metric=Metric.THROUGHPUT,
        launches=2,
        hosts=tuple(hosts),
        matrix=rows,
        slow=tuple(slow),
        is_judged=len(hosts) > 3,
    )


def found(*measured: NetworkMap, expected: float | None = 949e6, fabric: Fabric = GIGABIT) -> list[tuple[str, str]]:
    return [
        (one.node, one.found)
        for one in judge_rates(fabric, measured[0], measured[1:], expected)
        if one.severity is FindingSeverity.ERROR
    ]


def sends_slowly(host: str, hosts: Sequence[str], rate: float = GOOD / 2) -> dict[tuple[str, str], float]:
    return {(host, other): rate for other in hosts if other != host}


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


def test_all_hosts_are_looked_at_again_where_one_may_be_slow_and_else_the_ends_of_slow_pairs():
    pair, sender = matrix(rates={("n1", "n2"): GOOD / 2}), matrix(rates=sends_slowly("n1", FOUR))
    assert hosts_to_look_at_again([matrix()], 949e6) == ()
    ends = matrix(("n1", "n2"), {("n1", "n2"): GOOD / 2})
    assert hosts_to_look_at_again([sender], 949e6) == FOUR
    assert hosts_to_look_at_again([matrix(usual=470e6)], 949e6) == FOUR
    assert hosts_to_look_at_again([pair], 949e6) == ("n1", "n2")
    assert hosts_to_look_at_again([pair, pair], 949e6) == ("n1", "n2")
    assert hosts_to_look_at_again([pair, ends], 949e6) == ("n1", "n2")
    assert hosts_to_look_at_again([pair, ends, ends], 949e6) == ()
    assert hosts_to_look_at_again([pair, matrix(("n1", "n2"))], 949e6) == ()
    assert hosts_to_look_at_again([pair, matrix()], 949e6) == ()
    assert hosts_to_look_at_again([sender, sender], 949e6) == ()
    assert hosts_to_look_at_again([pair, pair, matrix(("n1", "n2"), {("n1", "n2"): GOOD / 2})], 949e6) == ()


def test_where_many_pairs_look_slow_by_chance_more_looks_are_taken():
    busy = matrix(rates=dict.fromkeys(itertools.permutations(FOUR, 2), GOOD / 2) | {("n3", "n4"): GOOD})
    half = matrix(rates={("n1", "n2"): GOOD / 2, ("n3", "n4"): GOOD / 2, ("n4", "n3"): GOOD / 2})
    other = matrix(rates={("n1", "n2"): GOOD / 2, ("n3", "n1"): GOOD / 2, ("n2", "n4"): GOOD / 2})
    ends = matrix(("n1", "n2"), {("n1", "n2"): GOOD / 2})
    assert hosts_to_look_at_again([busy, half, other], 949e6) == ("n1", "n2")
    assert hosts_to_look_at_again([busy, half, other, ends], 949e6) == ("n1", "n2")
    assert hosts_to_look_at_again([busy, half, other, ends, ends], 949e6) == ()
    assert hosts_to_look_at_again([busy, *[half] * 5], 949e6) == ()


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


def test_without_a_line_rate_four_nodes_are_held_against_one_another_by_the_map_alone():
    one = matrix(rates={("n1", "n2"): 700e6})
    assert pairs_below(one, reference_of(one, None)) == {}
    assert pairs_below(one, reference_of(one, 949e6)) == {("n1", "n2"): 700e6}


def test_a_cause_is_one_node_in_exactly_the_slow_pairs():
    hosts = FOUR[:3]
    both = {pair for other in ("n1", "n2") for pair in ((other, "n3"), ("n3", other))}
    assert cause_of(both, hosts) == ("n3", "is slow with all others")
    assert cause_of({("n1", "n3"), ("n2", "n3")}, hosts) == ("n3", "receives slowly from all others")
    assert cause_of({("n1", "n2")}, hosts) is None
    assert cause_of({("n1", "n2"), ("n2", "n1")}, hosts[:2]) is None


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
