"""Which pairs are slow in all measurements, and whose are measured again."""

from __future__ import annotations

import itertools

from fabricbench.analysis.pair_looks import best_rates, cause_of, hosts_to_look_at_again, pairs_below, reference_of
from support.rate_matrices import FOUR, GOOD, matrix, sends_slowly


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


def test_of_what_was_measured_again_the_best_rate_is_shown():
    rates = best_rates([matrix(rates={("n1", "n2"): GOOD / 2}), matrix(("n1", "n2"), {("n2", "n1"): GOOD / 3})])
    assert rates == dict.fromkeys(itertools.permutations(FOUR, 2), GOOD)


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
