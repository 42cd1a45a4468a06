"""Costs and break-evens of decisions over runs whose truth is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.analysis.decide import find_decision
from fabricbench.analysis.findings import Basis, BreakEvenKind, Findings
from fabricbench.analysis.sides import read_sides
from fabricbench.chapters.decision import decision_lines
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.decision_table import (
    DecisionTable,
    FabricPrice,
    Weight,
    decision_of,
    prices_of,
    read_decision,
)
from fabricbench.record.manifest import Manifest
from fabricbench.testbed.model import Fabric
from support.decisions import BULK, TRIP, break_even, decided, kernels, mixed, written
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed, write_synthetic_run

PRICED = DecisionTable(
    weight=(TRIP, BULK),
    nodes=16,
    node_price=2000,
    network_share=1.0,
    years=4,
    electricity_price_per_kwh=0.3,
    price={"old": FabricPrice(per_node=50), "new": FabricPrice(per_node=900, fixed=1600, power_per_node_watt=10)},
)


def test_cost_is_that_of_the_whole_system(tmp_path: Path):
    run = written(tmp_path / "run", {"old": 100, "new": 80}, {"old": 100, "new": 125})
    found = decided(run, PRICED)
    old, new = found.fabrics
    assert "measured on 2 nodes and weighed for 16" in " ".join(found.notes)
    energy = 16 * 0.010 * 8766 * 4 * 0.3
    assert old.cost is not None
    assert old.cost.total == 16 * 2050
    assert new.cost is not None
    assert new.cost.total == pytest.approx(16 * 2900 + 1600 + energy)
    assert new.cost_of_work is not None
    assert new.cost_of_work.value == pytest.approx(new.cost.total / old.cost.total / new.score.value)
    assert found.ranks[0] == ("new",)
    assert found.cost_ranks[0] == ("old",)
    assert new.probability_cheapest is not None
    assert new.probability_cheapest < 0.01


def test_at_the_break_even_prices_the_same_work_costs_the_same(tmp_path: Path):
    run = written(tmp_path / "run", {"old": 100, "new": 80}, {"old": 100, "new": 125})
    found = decided(run, PRICED)
    node = break_even(found, BreakEvenKind.NODE_PRICE)
    assert (node.fabric, node.against, node.now) == ("new", "old", 2000)
    assert node.value.low is not None
    assert node.value.high is not None
    assert node.value.low < node.value.value < node.value.high
    dearer = decided(run, PRICED.model_copy(update={"node_price": node.value.value}))
    assert dearer.fabrics[1].cost_of_work is not None
    assert dearer.fabrics[1].cost_of_work.value == pytest.approx(1)
    own = break_even(found, BreakEvenKind.FABRIC_PRICE)
    new = PRICED.price["new"].model_copy(update={"per_node": own.value.value})
    cheaper = decided(run, PRICED.model_copy(update={"price": {**PRICED.price, "new": new}}))
    assert cheaper.fabrics[1].cost_of_work is not None
    assert cheaper.fabrics[1].cost_of_work.value == pytest.approx(1)


def test_a_faster_fabric_that_costs_no_more_pays_whatever_a_node_costs(tmp_path: Path):
    run = written(tmp_path / "run", {"old": 100, "new": 80}, {"old": 100, "new": 125})
    same = {"old": FabricPrice(per_node=100), "new": FabricPrice(per_node=100)}
    found = decided(run, DecisionTable(price=same, network_share=0.5))
    assert break_even(found, BreakEvenKind.NODE_PRICE).value.high == 0
    assert found.fabrics[0].cost is None  # nobody said what a node costs
    assert "costs of whole systems need node_price" in " ".join(found.notes)


def test_without_a_sure_lead_no_price_of_a_node_is_said_to_be_enough(tmp_path: Path):
    run = written(tmp_path / "run", {"old": 100, "new": 99.9}, {"old": 100, "new": 100}, noise=Noise(0.05, 0.01))
    node = break_even(decided(run, PRICED), BreakEvenKind.NODE_PRICE)
    assert node.value.high is None


def test_network_tests_alone_do_not_say_what_a_job_gains(tmp_path: Path):
    run = written(tmp_path / "run", {"old": 100, "new": 50}, {"old": 100, "new": 300})
    found = decided(run, PRICED.model_copy(update={"network_share": None}))
    assert found.ranks[0] == ("new",)
    assert found.cost_ranks == ()
    assert found.fabrics[1].cost_of_work is None
    assert {one.kind for one in found.break_evens} == {BreakEvenKind.TIME}
    assert "network tests do not tell what a job gains" in " ".join(found.notes)
    time = break_even(found, BreakEvenKind.TIME)
    assert time.value.low is not None
    assert time.value.high is not None
    assert time.value.low < time.value.value < time.value.high
    # Where just that share of the time is the network's, the same work costs the same.
    even = decided(run, PRICED.model_copy(update={"network_share": time.value.value})).fabrics[1].cost_of_work
    assert even is not None
    assert even.value == pytest.approx(1, abs=1e-3)


def test_a_job_gains_by_its_share_of_the_network_only(tmp_path: Path):
    run = written(tmp_path / "run", {"old": 100, "new": 50}, {"old": 100, "new": 200})
    same = dict.fromkeys(("old", "new"), PRICED.price["old"])
    found = decided(run, PRICED.model_copy(update={"network_share": 0.2, "price": same}))
    new = found.fabrics[1]
    assert new.geometric is not None
    assert new.geometric.value == pytest.approx(2, rel=0.01)
    assert new.score.value == pytest.approx(1 / (0.8 + 0.2 / 2), rel=0.01)
    assert new.cost_of_work is not None
    assert new.cost_of_work.value == pytest.approx(0.8 + 0.2 / 2, rel=0.01)


def test_where_kernels_disagree_costs_decide_by_how_they_are_weighed(tmp_path: Path):
    names = {"benchmark": "IS", "class": "W"}, {"benchmark": "EP", "class": "W"}
    seconds = {"old": 2e9, "new": 1e9}, {"old": 1e9, "new": 1.02e9}
    kernels = [
        SyntheticCell(Layer.MPI, Pattern.NPB, 0, times, Receive.LIBRARY, samples=1, warmup=0, parameters=dict(of))
        for of, times in zip(names, seconds, strict=True)
    ]
    run = write_synthetic_run(tmp_path / "run", cells=kernels, blocks=8, noise=Noise(0.004, 0.004))
    table = PRICED.model_copy(update={"weight": (Weight(npb="IS.W"), Weight(npb="EP.W")), "network_share": None})
    found = decided(run, table)
    one = break_even(found, BreakEvenKind.WEIGHT)
    assert one.tests == ("IS.W on 2 ranks",)
    assert found.fabrics[1].cost is not None
    assert found.fabrics[0].cost is not None
    cost = found.fabrics[1].cost.total / found.fabrics[0].cost.total
    assert one.value.value == pytest.approx((1.02 - 1 / cost) / (1.02 - 0.5), abs=0.01)
    weights = (Weight(npb="IS.W", share_of_time=one.value.value), Weight(npb="EP.W", share_of_time=1 - one.value.value))
    even = decided(run, table.model_copy(update={"weight": weights})).fabrics[1].cost_of_work
    assert even is not None
    assert even.value == pytest.approx(1)


def twice_the_price(*weights: Weight) -> DecisionTable:
    prices = {"old": FabricPrice(per_node=0), "new": FabricPrice(per_node=990)}
    return DecisionTable(weight=weights, nodes=16, node_price=1000, price=prices)


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights",
    [
        (),
        (Weight(npb="IS.W"), Weight(npb="EP.W")),
        (Weight(npb="IS.W", share_of_time=0.5), Weight(npb="EP.W", share_of_time=0.5)),
        (Weight(npb="IS.W", runs=7), Weight(npb="EP.W", runs=7)),
    ],
)
def test_two_jobs_of_half_the_time_each_one_of_them_no_faster_cost_more_at_twice_the_price(
    tmp_path: Path, weights: tuple[Weight, ...]
):
    found = decided(mixed(tmp_path / "run"), twice_the_price(*weights))
    new = found.fabrics[1]
    assert found.basis is Basis.WORK
    assert new.score.value == pytest.approx(1 / (0.5 + 0.5 / 11.7), rel=0.01)
    assert new.geometric is not None
    assert new.geometric.value == pytest.approx(11.7**0.5, rel=0.01)
    assert new.cost_of_work is not None
    assert new.cost_of_work.value == pytest.approx(1.08, abs=0.01)
    assert new.cost_of_work.low is not None
    assert new.cost_of_work.low > 1
    assert found.cost_ranks == (("old",), ("new",))
    lines = " ".join(decision_lines(Findings.model_construct(chapters={"decision": (found,)})))
    assert "The same work is cheapest with old with probability above 0.99; with new it costs 1.08" in lines


def test_runs_share_the_time_by_what_they_take_on_the_first_fabric(tmp_path: Path):
    run = kernels(tmp_path / "run", IS={"old": 1, "new": 0.5}, EP={"old": 3, "new": 3})
    table = twice_the_price(Weight(npb="IS.W", runs=3), Weight(npb="EP.W", runs=1))
    found = decided(run, table)
    assert [one.share for one in found.tests] == pytest.approx([0.5, 0.5], abs=0.01)
    assert found.fabrics[1].score.value == pytest.approx(6 / 4.5, rel=0.01)


def test_a_weight_of_the_geometric_score_says_nothing_of_costs_and_what_to_write_instead(tmp_path: Path):
    run = mixed(tmp_path / "run")
    found = decided(run, twice_the_price(Weight(npb="IS.W", weight=3.0), Weight(npb="EP.W")))
    assert found.basis is Basis.GEOMETRIC
    assert found.fabrics[1].score.value == pytest.approx(11.7**0.75, rel=0.01)
    assert (found.cost_ranks, found.fabrics[1].cost_of_work) == ((), None)
    lines = decision_lines(Findings.model_construct(chapters={"decision": (found,)}))
    assert lines[0].startswith("By the geometric score of the 2 tests weighed new is first")
    assert any('share_of_time = "50%" of the machine\'s time on old' in line for line in lines)
    one_job = decided(run, twice_the_price(Weight(npb="IS.W", weight=3.0)))
    assert one_job.cost_ranks == (("new",), ("old",)), "of a single job every share is the same"


def test_what_is_bought_is_a_fabric_and_not_its_settings(tmp_path: Path):
    seconds = {"old-a": 2.0, "old-b": 2.0, "new-a": 1.0, "new-b": 0.5}
    sides = read_sides([kernels(tmp_path / "run", IS=seconds)])
    for side in sides:
        network, condition = side.name.split("-")
        side.fabric = side.fabric.model_copy(update={"network": network, "condition": condition})
    found = find_decision(sides, twice_the_price(), 0.95)
    assert found is not None
    assert [one.fabric for one in found.fabrics] == ["old", "new"]
    assert found.fabrics[1].score.value == pytest.approx(8**0.5, rel=0.01)
    assert found.fabrics[1].cost is not None
    assert (
        "a fabric counts by the mean over the conditions that it was measured in (a and b), each alike" in found.notes
    )
    assert find_decision(sides[:2], twice_the_price(), 0.95) is None, "one fabric in two conditions is no choice"


def test_few_blocks_put_no_fabric_before_another(tmp_path: Path):
    found = decided(kernels(tmp_path / "run", blocks=4, IS={"old": 2, "new": 1}), twice_the_price())
    assert found.ranks == (("new", "old"),)
    assert found.fabrics[1].probability_first is None


def test_prices_in_two_currencies_are_refused_and_a_price_for_no_fabric_too():
    fabrics = [Fabric(name="a", price_per_node=1, currency="EUR"), Fabric(name="b", price_per_node=1, currency="USD")]
    with pytest.raises(UsageError, match=r"different currencies: EUR \(a\), USD \(b\)"):
        prices_of(DecisionTable(), fabrics)
    assert prices_of(DecisionTable(price={"b": FabricPrice(per_node=2)}), fabrics)[1] == "EUR"
    with pytest.raises(UsageError, match=r"'myrinett'.*did you mean"):
        prices_of(DecisionTable(price={"myrinett": FabricPrice(per_node=2)}), [Fabric(name="myrinet")])


def test_a_decision_file_is_read_and_what_is_wrong_with_it_is_named(tmp_path: Path):
    path = tmp_path / "buy.toml"
    path.write_text(
        '[decision]\nnodes = 16\n[[decision.weight]]\nnpb = "is.w.4"\nweight = 3\n[decision.price]\nmyrinet = 1200\n'
    )
    table = read_decision(path)
    assert table.weight[0].kernel == ("IS", "W", 4)
    assert table.price["myrinet"].per_node == 1200
    for text, said in (
        ("[decision]\nyears = 4", "years and electricity_price_per_kwh go together"),
        ('[[decision.weight]]\nnpb = "IS"', "needed a kernel and its class"),
        ('[[decision.weight]]\nlayer = "tcp"', 'needed npb = "IS.W"'),
        ('[[decision.weight]]\nnpb = "IS.W"\nlayer = "tcp"', "both given"),
        ("[decision]\nnode_prise = 1", "did you mean 'node_price'"),
        ("[decision]\nnode_price = inf", "finite"),
        ("nodes = 4", "decision: missing"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=said):
            read_decision(path)


def test_a_run_keeps_the_decision_of_its_campaign():
    bed = synthetic_testbed({"a": None})
    table = PRICED.model_copy(update={"weight": (TRIP, Weight(npb="IS.W", weight=3.0))})
    stored = Manifest(campaign_name="x", campaign={"decision": table.model_dump(mode="json")}, testbed=bed, seed=1)
    assert decision_of(stored) == table
    assert decision_of(stored.model_copy(update={"campaign": {}})) is None
