"""Decisions over runs whose truth is known: scores, ties, costs, break-evens, and how often they promise too much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from fabricbench.analysis import analyse
from fabricbench.analysis.decide import find_decision
from fabricbench.analysis.findings import BreakEvenKind, CellKey, DecisionFindings
from fabricbench.analysis.measured import CellMeasured, CellOrder
from fabricbench.analysis.ranking import places, ranks
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.weighing import Weighed, usual_tests, weigh
from fabricbench.campaign.specification import campaign_of
from fabricbench.chapters.decision import DECISION, decision_lines
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.record.decision_table import (
    Counting,
    DecisionTable,
    Weight,
    read_decision,
)
from fabricbench.record.manifest import write_manifest
from fabricbench.record.store import Run
from fabricbench.statistics.order_effects import OrderEffects
from fabricbench.statistics.ratios import EXACT, NOTHING_FITTED, Fitted, Rounding
from fabricbench.statistics.scores import chances_of_first, mean_draws, pair_tests, share_of_no_difference
from fabricbench.testbed.wire import Wire
from support.applications import TIME
from support.decisions import BULK, TRIP, break_even, decided, written
from support.lost_runs import lost_run
from support.simulated_sides import keys_of, sides_of
from support.synthetic_run import Noise


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
    assert "2 blocks put no fabric before another: at least 5 do" in " ".join(found.notes)


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


def test_the_work_of_a_mix_is_covered_as_often_as_is_said():
    random = np.random.default_rng(11)
    truth, covered = np.log(1 / (0.5 + 0.5 / 3)), 0
    for _ in range(400):
        logs = np.zeros((2, 2, 6))
        logs[:, 1] = np.array([[np.log(3)], [0.0]])
        logs += 0.1 * random.standard_normal(logs.shape)
        keys = tuple(CellKey.model_construct(pattern=Pattern.NPB, workload=None) for _ in range(2))
        exact = Rounding.of(np.zeros((2, 2)))
        weighed = Weighed(("a", "b"), keys, Counting.EQUAL_TIME, np.array([0.5, 0.5]), logs, exact, (), ())
        times = weighed.times(None)
        assert times is not None
        ratios = pair_tests(weighed.work_scores(times), weighed.work_rounding(times)).ratios
        covered += bool(np.log(ratios.low[0]) <= truth <= np.log(ratios.high[0]))
    assert covered / 400 >= 0.95 - 0.03


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ('npb = "IS.W"\nshare_of_time = "40%"', "adds up to 40 %, needed 100 %"),
        ('npb = "IS.W"\nshare_of_time = "40%"\nweight = 3', "share_of_time and weight are both given"),
        ('npb = "IS.W"\nruns = 3\n[[decision.weight]]\nnpb = "EP.W"', "or runs in every table"),
        ('layer = "tcp"\npattern = "pingpong"\nruns = 3', "a network test has none"),
    ],
)
def test_tests_that_count_in_two_ways_or_not_in_full_are_refused(tmp_path: Path, weights: str, said: str):
    path = tmp_path / "buy.toml"
    path.write_text(f"[decision]\n[[decision.weight]]\n{weights}\n")
    with pytest.raises(UsageError, match=said):
        read_decision(path)


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


@pytest.mark.parametrize("fitted", [NOTHING_FITTED, Fitted(2, 1.2)])
def test_a_probability_agrees_with_the_paired_t_test_of_two(fitted: Fitted):
    random = np.random.default_rng(1)
    logs = np.column_stack([np.zeros(6), random.normal(0.02, 0.03, 6)])
    draws = mean_draws(logs, EXACT, fitted=fitted)
    assert draws is not None
    column, freedom = logs[:, 1], 5 - int(fitted.effects)
    error = np.sqrt(np.sum((column - column.mean()) ** 2) / freedom / 6) * fitted.error_times
    exact = special.stdtr(freedom, column.mean() / error)
    assert chances_of_first(draws)[1] == pytest.approx(exact, abs=0.01)
    tests = pair_tests(logs, Rounding.of(np.zeros(2)), fitted=lambda _one, _other: fitted)
    assert tests.ratios.p_value[0] == pytest.approx(2 * (1 - exact))


def test_a_decision_pays_for_what_the_order_of_launches_was_found_to_do():
    random = np.random.default_rng(2)
    keys = keys_of((Layer.TCP,), trips=(64,), streams=())
    logs = random.normal(0.0, 0.01, (2, 1, 12)) + np.array([0.0, 0.1])[:, None, None]
    effects = OrderEffects(
        (0,), np.zeros(1), np.zeros((1, 1)), np.zeros((1, 2, 12)), np.array([[0.0, 1.0]]), np.eye(1) / 6.0
    )
    sides = [
        replace(side, runs=(side.run,), cells={key: replace(cell, order=CellOrder(np.zeros(12), effects, index))})
        for index, side in enumerate(sides_of(keys, logs, ("a", "b")))
        for key, cell in side.cells.items()
    ]
    weighed = weigh(sides, DecisionTable(weight=(Weight(layer=Layer.TCP, pattern=Pattern.PINGPONG, weight=1.0),)))
    assert weighed.fitted(0, 1) == weighed.fitted(1, 0) == Fitted(1, pytest.approx(np.sqrt(2.0)))


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
        tests = pair_tests(logs, Rounding.of(np.zeros(3)))
        separated += bool((tests.adjusted < 0.05).any())
        covered += bool(tests.ratios.low[0] <= 1 <= tests.ratios.high[0])
        draws = mean_draws(logs, EXACT, draws=1000)
        assert draws is not None
        sure += bool(chances_of_first(draws).max() >= 0.95)
    assert separated / 400 <= 0.05 + 0.025  # two and a half standard errors
    assert sure / 400 <= 0.05 + 0.025
    assert covered / 400 >= 0.95 - 0.03


def test_equal_fabrics_on_days_that_differ_are_seldom_set_apart_and_one_that_is_twice_as_good_is():
    """Each of four days favours one of the two by as much as 3 % (one standard deviation); blocks of a day differ by 1 %."""
    random = np.random.default_rng(15)
    sessions, campaigns, none = np.repeat(np.arange(4), 3), 400, Rounding.of(np.zeros(2))
    apart = {"by blocks": 0, "by days as well": 0, "twice as good": 0}
    for _ in range(campaigns):
        log_ratios = random.normal(0.0, 0.03, 4)[sessions] + random.normal(0.0, 0.01, sessions.size)
        logs = np.stack([np.zeros(sessions.size), log_ratios], axis=1)
        better = logs + np.array([0.0, np.log(2)])
        apart["by blocks"] += bool(pair_tests(logs, none).adjusted[0] < 0.05)
        apart["by days as well"] += bool(pair_tests(logs, none, sessions=sessions).adjusted[0] < 0.05)
        apart["twice as good"] += bool(pair_tests(better, none, sessions=sessions).adjusted[0] < 0.05)
    assert apart["by blocks"] > 0.2 * campaigns
    assert apart["by days as well"] <= 0.07 * campaigns
    assert apart["twice as good"] == campaigns
    chances = mean_draws(logs, none, draws=1000, sessions=sessions)
    assert chances is not None
    assert mean_draws(logs, none, sessions=np.repeat([0, 1], 6)) is None


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


def test_a_weight_is_not_left_out_for_what_became_of_a_workload_whose_name_only_begins_alike(tmp_path: Path):
    run = lost_run(tmp_path / "run", workload="ring-big.4")
    command = {"kind": "command", "command": ["x"], "success": {"found": ["x"]}, "figure": [TIME], "ranks": [4]}
    campaign = campaign_of(
        {"campaign": {}, "workload": [{"name": name, **command} for name in ("ring", "ring-big")]}, "x"
    )
    told = {"campaign": run.manifest.campaign | {"workloads": campaign.model_dump(mode="json")["workloads"]}}
    write_manifest(run.path, run.manifest.model_copy(update=told))
    trip = Weight(layer=Layer.TCP, pattern=Pattern.PINGPONG)
    found = {}
    for name in ("ring", "ring-big"):
        decision = DECISION.first_of(
            analyse([Run.open(run.path)], decision=DecisionTable(weight=(trip, Weight(workload=name))))
        )
        assert decision is not None
        found |= {one.what: one.why for one in decision.left_out}
    assert found["ring"] == "not measured"
    assert found["ring-big"].startswith("measured and lost: 6 of 6 launches failed")


def test_a_weight_whose_test_is_lost_is_not_shared_out_and_nobody_is_first_without_it(tmp_path: Path):
    run = lost_run(tmp_path / "run", workload="ring.2")
    table = DecisionTable(
        weight=(Weight(layer=Layer.TCP, pattern=Pattern.PINGPONG), Weight(workload="ring", weight=3.0))
    )
    found = DECISION.first_of(analyse([run], decision=table))
    assert found is not None
    assert found.missing_share == pytest.approx(0.75)
    (lost,) = found.left_out
    assert lost.share == pytest.approx(0.75)
    why = "6 of 6 launches failed (ended with exit code 7)"
    assert lost.why == f"measured and lost: {why} on slow and fast each"
    first, *rest = decision_lines(analyse([run], decision=table))
    assert not any("ring" in line for line in rest)
    assert first.startswith("No fabric is first: 75.0 % of the weight has no data, ring (measured and lost: 6 of 6")
    assert first.endswith("Over the other 25.0 % alone, in 1 test, fast is ahead.")


def test_a_workload_that_gave_nothing_is_missing_also_where_nobody_gave_weights(tmp_path: Path):
    run = lost_run(tmp_path / "run", workload="ring.2")
    found = DECISION.first_of(analyse([run], decision=DecisionTable()))
    assert found is not None
    assert [one.what for one in found.left_out] == ["ring.2"]
    assert found.missing_share > 0
