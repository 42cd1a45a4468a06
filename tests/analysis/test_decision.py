"""Decisions over runs whose truth is known: scores, ties, costs, break-evens, and how often they promise too much."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from fabricbench.analysis.comparing import places, ranks
from fabricbench.analysis.decide import find_decision
from fabricbench.analysis.findings import BreakEven, BreakEvenKind, DecisionFindings
from fabricbench.analysis.measured import CellMeasured
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.weighing import usual_tests
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.decision_table import DecisionTable, FabricPrice, Weight, decision_of, prices_of, read_decision
from fabricbench.record.manifest import Manifest
from fabricbench.record.store import Run
from fabricbench.statistics.scores import chances_of_first, mean_draws, pair_tests, share_of_no_difference
from fabricbench.testbed.model import Fabric
from fabricbench.testbed.wire import Wire
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed, write_synthetic_run

TRIP = Weight(layer=Layer.TCP, pattern=Pattern.PINGPONG, message_bytes=64)
BULK = Weight(layer=Layer.TCP, pattern=Pattern.STREAM, message_bytes=65536)
QUIET = Noise(launch=0.004, sample=0.01)


def cells(trips: Mapping[str, float], rates: Mapping[str, float]) -> list[SyntheticCell]:
    """A round trip of 64 B (us) and a stream of 64 KiB (Mbit/s) over tcp."""
    return [
        SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {name: us * 1e3 for name, us in trips.items()}, samples=60),
        SyntheticCell(Layer.TCP, Pattern.STREAM, 65536, {name: mbit * 1e6 for name, mbit in rates.items()}, samples=30),
    ]


def written(path: Path, trips: Mapping[str, float], rates: Mapping[str, float], **options: object) -> Run:
    settings: dict[str, object] = {"blocks": 8, "noise": QUIET} | options
    return write_synthetic_run(path, cells=cells(trips, rates), **settings)  # type: ignore[arg-type]


def decided(run: Run, table: DecisionTable) -> DecisionFindings:
    found = find_decision(read_sides([run]), table, 0.95)
    assert found is not None
    return found


def break_even(found: DecisionFindings, kind: BreakEvenKind) -> BreakEven:
    return next(one for one in found.break_evens if one.kind is kind)


def test_a_score_is_the_weighted_geometric_mean_and_larger_is_better(tmp_path: Path):
    run = written(tmp_path / "run", {"old": 100, "new": 50}, {"old": 100, "new": 800})
    found = decided(run, DecisionTable(weight=(TRIP.model_copy(update={"weight": 2.0}), BULK)))
    old, new = found.fabrics
    assert (old.score.value, old.score.low, old.score.high) == (1, 1, 1)
    assert new.score.value == pytest.approx((2**2 * 8) ** (1 / 3), rel=0.01)
    assert new.score.low is not None
    assert new.score.high is not None
    assert new.score.low < 32 ** (1 / 3) < new.score.high
    assert found.ranks == (("new",), ("old",))
    assert new.places == (1, 1)
    assert old.places == (2, 2)
    assert new.probability_first is not None
    assert new.probability_first > 0.999
    assert [one.share for one in found.tests] == pytest.approx([2 / 3, 1 / 3])


def test_without_weights_every_row_counts_equally(tmp_path: Path):
    run = written(tmp_path / "run", {"old": 100, "new": 50}, {"old": 100, "new": 800})
    found = decided(run, DecisionTable())
    assert not found.has_weights
    assert [one.share for one in found.tests] == [0.5, 0.5]
    sides = read_sides([run])
    (trip,) = [key for key in usual_tests(sides) if key.pattern is Pattern.PINGPONG]
    alone = find_decision(sides, DecisionTable(), 0.95, rows=[trip])
    assert alone is not None
    assert alone.fabrics[1].score.value == pytest.approx(2, rel=0.02)


def test_equal_fabrics_share_the_first_place(tmp_path: Path):
    trips, rates = {"a": 100.0, "b": 100.0, "c": 200.0}, {"a": 100.0, "b": 100.0, "c": 50.0}
    found = decided(written(tmp_path / "run", trips, rates, noise=Noise(0.02, 0.01)), DecisionTable())
    assert {*found.ranks[0]} == {"a", "b"}
    assert found.ranks[1:] == (("c",),)
    assert {one.fabric: one.places for one in found.fabrics} == {"a": (1, 2), "b": (1, 2), "c": (3, 3)}
    chances = [one.probability_first or 0 for one in found.fabrics]
    assert sum(chances) == pytest.approx(1)
    assert chances[2] == 0
    assert 0.01 < chances[0] < 0.99


def test_a_test_that_a_fabric_lacks_is_named_and_left_out_for_all(tmp_path: Path):
    run = written(tmp_path / "run", {"a": 100, "b": 90, "c": 80}, {"a": 100, "b": 900})
    found = decided(run, DecisionTable(weight=(TRIP, BULK, Weight(npb="IS.W"))))
    assert [one.what for one in found.tests] == ["tcp round trip of 64 B"]
    assert found.tests[0].share == 1
    assert [(one.what, one.why) for one in found.left_out] == [
        ("IS.W", "not measured"),
        ("tcp throughput at 64 KiB", "no data on c"),
    ]
    assert found.fabrics[1].score.value == pytest.approx(100 / 90, rel=0.01)


def test_nothing_in_common_decides_nothing_and_says_what_is_missing(tmp_path: Path):
    found = decided(written(tmp_path / "run", {"a": 100}, {"b": 900}), DecisionTable())
    assert found.fabrics == ()
    assert found.ranks == ()
    found = decided(written(tmp_path / "other", {"a": 100}, {"b": 900}), DecisionTable(weight=(TRIP, BULK)))
    assert [one.why for one in found.left_out] == ["no data on b", "no data on a"]


def test_a_stream_that_delivered_nothing_is_told_of(tmp_path: Path):
    run = written(tmp_path / "run", {"a": 100, "b": 90}, {"a": 100, "b": 100})
    sides = read_sides([run])
    (stream,) = [cell for key, cell in sides[1].cells.items() if key.pattern is Pattern.STREAM]
    stream.launch_values[:3] = 0.0
    found = find_decision(sides, DecisionTable(weight=(TRIP, BULK)), 0.95)
    assert found is not None
    assert found.blocks == 5
    assert found.notes[0].startswith("tcp throughput at 64 KiB: 3 launches on b delivered nothing")


def test_what_gets_no_verdict_is_not_weighed_either(tmp_path: Path):
    run = written(tmp_path / "run", {"a": 100, "b": 90}, {"a": 100, "b": 100})

    def without_stream(change: Callable[[CellMeasured], None]) -> DecisionFindings:
        sides = read_sides([run])
        sides[1].fabric = sides[1].fabric.model_copy(update={"wire": Wire(line_rate_bit_s=200e6)})
        (stream,) = [cell for key, cell in sides[1].cells.items() if key.pattern is Pattern.STREAM]
        change(stream)
        found = find_decision(sides, DecisionTable(weight=(TRIP, BULK)), 0.95)
        assert found is not None
        assert [one.what for one in found.tests] == ["tcp round trip of 64 B"]
        assert [one.what for one in found.left_out] == ["tcp throughput at 64 KiB"]
        return found

    def flood(stream: CellMeasured) -> None:
        stream.launch_values *= 10

    def die(stream: CellMeasured) -> None:
        stream.gave_nothing, stream.expected = 4, 8

    def change_payloads(stream: CellMeasured) -> None:
        stream.counts["corrupted"] = 2

    assert "of the payload that the wire can carry" in without_stream(flood).left_out[0].why
    assert without_stream(die).left_out[0].why == "4 of 8 launches on b gave nothing"
    assert without_stream(change_payloads).left_out[0].why == "on b 2 payloads arrived changed"


def test_a_decision_pairs_blocks_and_drift_cancels(tmp_path: Path):
    run = written(tmp_path / "run", {"a": 100, "b": 96}, {"a": 100, "b": 104}, missing=["b02-a"])
    sides = read_sides([run])
    for side in sides:
        for cell in side.cells.values():
            cell.launch_values *= np.exp(0.3 * np.array(side.blocks))
    found = find_decision(sides, DecisionTable(), 0.95)
    assert found is not None
    assert found.blocks == 7
    assert found.ranks == (("b",), ("a",))


def test_before_and_after_is_no_choice(tmp_path: Path):
    runs = [written(tmp_path / name, {"a": 100}, {"a": level}) for name, level in (("one", 100), ("two", 101))]
    assert find_decision(read_sides(runs), DecisionTable(), 0.95) is None
    assert find_decision(read_sides([runs[0]]), DecisionTable(), 0.95) is None


def test_two_blocks_give_a_score_and_no_certainty(tmp_path: Path):
    found = decided(written(tmp_path / "run", {"a": 100, "b": 50}, {"a": 100, "b": 200}, blocks=2), DecisionTable())
    assert found.fabrics[1].score.low is None
    assert found.fabrics[1].probability_first is None
    assert found.ranks == (("b", "a"),)
    assert "2 blocks give no interval" in " ".join(found.notes)


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
    assert found.fabrics[1].score.value == pytest.approx(2, rel=0.01)
    assert found.fabrics[1].cost_of_work is not None
    assert found.fabrics[1].cost_of_work.value == pytest.approx(0.8 + 0.2 / 2, rel=0.01)


def test_where_tests_disagree_the_share_of_the_weight_that_decides_is_told(tmp_path: Path):
    run = written(tmp_path / "run", {"old": 100, "new": 110}, {"old": 100, "new": 800})
    one = break_even(decided(run, DecisionTable(weight=(TRIP, BULK))), BreakEvenKind.LEAD)
    truth = np.log(1.1) / (np.log(1.1) + np.log(8))
    assert one.value.value == pytest.approx(truth, abs=0.005)
    assert one.tests == ("tcp throughput at 64 KiB",)
    assert one.value.low is not None
    assert one.value.high is not None
    assert one.value.low <= truth <= one.value.high
    agreed = written(tmp_path / "agreed", {"old": 100, "new": 50}, {"old": 100, "new": 800})
    kinds = {each.kind for each in decided(agreed, DecisionTable(weight=(TRIP, BULK))).break_evens}
    assert BreakEvenKind.LEAD not in kinds


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
    cost = np.log(found.fabrics[1].cost.total / found.fabrics[0].cost.total)
    assert one.value.value == pytest.approx((cost + np.log(1.02)) / (np.log(2) + np.log(1.02)), abs=0.01)
    weights = (Weight(npb="IS.W", weight=one.value.value), Weight(npb="EP.W", weight=1 - one.value.value))
    even = decided(run, table.model_copy(update={"weight": weights})).fabrics[1].cost_of_work
    assert even is not None
    assert even.value == pytest.approx(1)


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


def test_tiers_never_hold_two_that_were_separated_and_overlap_where_ties_are_not_transitive():
    assert ranks(["a", "b", "c"], {("a", "c"): True}) == (("a", "b"), ("b", "c"))
    assert ranks(["a", "b", "c"], {}) == (("a", "b", "c"),)
    assert ranks(["a", "b", "c"], {("a", "b"): True, ("a", "c"): True, ("b", "c"): True}) == (("a",), ("b",), ("c",))
    assert places(["a", "b", "c"], {("a", "c"): True}) == {"a": (1, 2), "b": (1, 3), "c": (2, 3)}
    assert ranks([], {}) == ()
    random = np.random.default_rng(3)
    for _ in range(200):
        names = [f"f{index}" for index in range(5)]
        better = {(a, b): bool(random.random() < 0.4) for i, a in enumerate(names) for b in names[i + 1 :]}
        tiers = ranks(names, better)
        assert {name for tier in tiers for name in tier} == set(names)
        for (a, b), is_better in better.items():
            assert any({a, b} <= set(tier) for tier in tiers) is not is_better


def test_a_probability_agrees_with_the_paired_t_test_of_two():
    random = np.random.default_rng(1)
    logs = np.column_stack([np.zeros(6), random.normal(0.02, 0.03, 6)])
    draws = mean_draws(logs, np.zeros(2))
    assert draws is not None
    column = logs[:, 1]
    exact = special.stdtr(5, column.mean() / (column.std(ddof=1) / np.sqrt(6)))
    assert chances_of_first(draws)[1] == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("noise", ["normal", "student", "exponential"])
def test_of_three_equal_fabrics_hardly_any_campaign_separates_one_or_is_sure_of_a_first(noise: str):
    random = np.random.default_rng(7)
    draw = {
        "normal": random.standard_normal,
        "student": lambda size: random.standard_t(3, size),
        "exponential": lambda size: random.exponential(1.0, size),
    }[noise]
    values = draw((400, 6, 3))
    separated = sure = covered = 0
    for block in values:
        logs = block - block[:, :1]
        tests = pair_tests(logs, np.zeros(3))
        separated += bool((tests.adjusted < 0.05).any())
        covered += bool(tests.ratios.low[0] <= 1 <= tests.ratios.high[0])
        draws = mean_draws(logs, np.zeros(3), draws=1000)
        assert draws is not None
        sure += bool(chances_of_first(draws).max() >= 0.95)
    assert separated / 400 <= 0.05 + 0.025  # two and a half standard errors
    assert sure / 400 <= 0.05 + 0.025
    assert covered / 400 >= 0.95 - 0.03


def test_the_share_that_decides_is_covered_and_not_told_where_one_side_is_open():
    random = np.random.default_rng(5)
    truth, covered, told = 0.25, 0, 0
    for _ in range(300):
        found = share_of_no_difference(random.normal(0.3, 0.05, 6), random.normal(-0.1, 0.03, 6), 0.0)
        if found is not None:
            told += 1
            covered += found[1] <= truth <= found[2]
    assert told > 250
    assert covered / told >= 0.92
    assert share_of_no_difference(random.normal(0.3, 0.05, 6), random.normal(-0.01, 0.2, 6), 0.0) is None
