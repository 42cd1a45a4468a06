"""Any number of configurations: which runs are one side, what sides are called, and what is compared with what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import fabricbench
from fabricbench.analysis import analyse
from fabricbench.analysis.configurations import configurations_named, configurations_of
from fabricbench.analysis.factors import Asked, main_effects_of
from fabricbench.analysis.findings import Grade, InteractionVerdict, MainEffect, Replication, Severity
from fabricbench.analysis.gaps import BlockSessions
from fabricbench.analysis.measured import CellOrder, Side
from fabricbench.analysis.pairing import all_pairs, pair
from fabricbench.analysis.sides import read_sides
from fabricbench.chapters.decision import DECISION
from fabricbench.chapters.factors import CHAPTER, EFFECTS, INTERACTIONS
from fabricbench.errors import UsageError
from fabricbench.model import Layer
from fabricbench.record.decision_table import DecisionTable, FabricPrice
from fabricbench.record.manifest import write_manifest
from fabricbench.record.store import Run
from fabricbench.statistics.order_effects import OrderEffects
from fabricbench.statistics.ratios import run_means
from support.configuration_screens import Design, is_found, is_wrong, screen
from support.configured_runs import EPYC, XEON, write_system
from support.simulated_sides import keys_of, sides_of

Write = Callable[..., Run]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a run under a name, with a seed of its own."""
    seeds = iter(range(1, 100))
    return lambda name, fabrics, **options: write_system(tmp_path / name, fabrics, seed=next(seeds), **options)


def test_runs_that_nothing_tells_apart_are_runs_of_one_side(write: Write):
    runs = [write(f"x{n}", {"ib": 1.0}) for n in range(2)] + [
        write(f"e{n}", {"ib": 1.0}, processor=EPYC) for n in range(2)
    ]
    found = configurations_of(runs)
    assert [(one.name, len(one.runs)) for one in found] == [("Xeon Gold 6148", 2), ("EPYC 7742", 2)]


def test_runs_between_which_somebody_corrected_a_price_are_one_configuration(write: Write):
    priced = write("priced", {"ib": 1.0})
    costs = {"price_per_node": 900.0, "price_fixed": 4000.0, "power_per_node_watt": 12.0, "currency": "USD"}
    testbed = priced.manifest.testbed
    fabrics = (testbed.fabrics[0].model_copy(update=costs),)
    testbed = testbed.model_copy(update={"fabrics": fabrics})
    write_manifest(priced.path, priced.manifest.model_copy(update={"testbed": testbed}))
    runs = [write("unpriced", {"ib": 1.0}), Run.open(priced.path), write("other", {"ib": 1.0}, mtu=9000)]
    assert [(one.name, len(one.runs)) for one in configurations_of(runs)] == [("mtu 1500", 2), ("mtu 9000", 1)]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([{}, {"kernel": "5.14.0-427.el9"}], ["Linux 6.1.0-18", "Linux 5.14.0-427"]),
        ([{}, {"nodes": 3}], ["n[0-1]", "n[0-2]"]),
        ([{}, {"mtu": 9000}], ["mtu 1500", "mtu 9000"]),
        # kernel and processor differ together: the processor names them
        ([{}, {"processor": EPYC, "kernel": "5.14"}], ["Xeon Gold 6148", "EPYC 7742"]),
        # two that are shortened to the same stay whole
        ([{}, {"processor": "Xeon(R) Gold 6148"}], [XEON, "Xeon(R) Gold 6148"]),
        ([{}, {"processor": ""}], ["Xeon Gold 6148", "processor unknown"]),
    ],
)
def test_a_name_has_what_differs_and_no_more(write: Write, options: list[dict[str, object]], names: list[str]):
    runs = [write(f"r{n}", {"ib": 1.0}, **one) for n, one in enumerate(options)]
    assert [one.name for one in configurations_of(runs)] == names


def test_processor_and_fabric_are_named_wherever_they_differ(write: Write):
    runs = [
        write("a", {"ib": 1.0}),
        write("b", {"gige": 2.0}, processor=EPYC),
        write("c", {"gige": 2.0}, processor="Z"),
    ]
    assert [one.name for one in configurations_of(runs)] == ["Xeon Gold 6148, ib", "EPYC 7742, gige", "Z, gige"]


def test_runs_in_which_nothing_differs_are_called_by_their_folders_and_that_is_said(write: Write):
    found = analyse(configurations=configurations_of([write(f"r{n}", {"ib": 1.0}) for n in range(3)]))
    assert [one.name for one in found.fabrics] == ["r0", "r1", "r2"]
    assert any("nothing is known that these runs differ in" in one.text for one in found.warnings)


def test_what_sides_differ_in_besides_their_names_is_told(write: Write):
    runs = [
        write("a", {"ib": 1.0}),
        write("b", {"ib": 1.0}, processor=EPYC, kernel="5.14.0"),
        write("c", {"ib": 1.0}, processor="Z"),
    ]
    found = analyse(configurations=configurations_of(runs))
    (told,) = [one.text for one in found.warnings if "differ as well" in one.text]
    assert "kernel (Linux 6.1.0-18 of Xeon Gold 6148 and Z; Linux 5.14.0 of EPYC 7742)" in told


def test_how_to_measure_many_runs_again_is_told_of_a_few(write: Write):
    lines = analyse(
        configurations=configurations_of([write(f"r{n}", {"ib": 1.0}) for n in range(6)])
    ).headline.reproduce
    assert [line.split(":")[0] for line in lines[:4]] == ["r0", "r1", "r2", "r3"]
    assert lines[4:5] == ("and 2 more: `command` in the manifest.json of each run",)
    assert lines[5].startswith("fabricbench ")


def test_names_that_are_given_group_runs_whatever_they_differ_in(write: Write):
    runs = {"old": [write("a", {"ib": 1.0}), write("b", {"ib": 1.0}, kernel="5.14")], "new": [write("c", {"ib": 1.0})]}
    assert [(one.name, len(one.runs)) for one in configurations_named(runs)] == [("old", 2), ("new", 1)]
    with pytest.raises(UsageError, match="the one name old"):
        configurations_named({"old": runs["old"]})
    with pytest.raises(UsageError, match="given twice"):
        configurations_named({"old": runs["old"], "new": runs["old"]})


def test_fabrics_of_one_run_are_compared_by_block_and_others_by_launch_or_by_run(write: Write):
    single = [
        write("a", {"ib": 1.0, "gige": 2.0}),
        write("b", {"ib": 1.0}, processor=EPYC),
        write("c", {"ib": 1.0}, processor="Z"),
    ]
    sides = read_sides(configurations=configurations_of(single))
    ways = {(one.a.name, one.b.name): one.replication for one in all_pairs(sides)}
    assert ways["Xeon Gold 6148, ib", "Xeon Gold 6148, gige"] is Replication.BLOCKS
    assert ways["Xeon Gold 6148, ib", "EPYC 7742, ib"] is Replication.LAUNCHES
    several = read_sides(configurations=configurations_of([*single, write("d", {"ib": 1.0}, processor=EPYC)]))
    by_name = {one.name: one for one in several}
    assert pair(by_name["Xeon Gold 6148, ib"], by_name["EPYC 7742, ib"]).replication is Replication.RUNS


def test_fabrics_of_the_same_several_runs_are_compared_by_block_and_each_run_is_a_session(write: Write):
    first, second = (write(f"r{n}", {"ib": 1.0, "gige": 2.0}, blocks=3) for n in range(2))
    one, other = read_sides(configurations=configurations_of([first, second]))
    found = pair(one, other)
    assert (found.replication, found.shared_blocks) == (Replication.BLOCKS, [0, 1, 2, 3, 4, 5])
    assert sorted(found.sessions.values()) == [0, 0, 0, 1, 1, 1]


def test_one_run_of_each_claims_nothing_clear_and_says_so(write: Write):
    runs = [write(name, {"ib": slower}, processor=name) for name, slower in (("A", 1.0), ("B", 1.5), ("C", 2.0))]
    found = analyse(configurations=configurations_of(runs))
    assert "A seems fastest of 3" in found.headline.sentence
    assert found.headline.detail.startswith("One run a side cannot tell")
    assert {one.grade for one in found.headline.effects if one.is_typical} == {Grade.DOUBTFUL}
    assert all(pair.low is None for one in found.headline.effects for pair in one.pairs)
    assert found.headline.changes is None


@pytest.mark.slow
def test_three_runs_of_each_rank_configurations_in_one_family(write: Write):
    runs = [
        write(f"{name}{n}", {"ib": slower}, processor=name)
        for name, slower in (("A", 1.0), ("B", 1.5), ("C", 2.0))
        for n in range(3)
    ]
    found = analyse(configurations=configurations_of(runs))
    assert "A is fastest of 3" in found.headline.sentence
    assert {one.grade for one in found.headline.effects if one.is_typical} == {Grade.CLEAR}
    assert all(one.ranks == (("A",), ("B",), ("C",)) for one in found.headline.effects if one.is_typical)
    assert "3 configurations of 3 runs each" in found.headline.conditions


@pytest.mark.slow
def test_memory_is_a_control_of_the_same_machines_alone(write: Write):
    """Memory that is slower on other machines says nothing against a comparison; on the same ones they have changed."""
    slower = (("A", 1.0), ("B", 1.5), ("C", 2.0))
    others = [write(f"{name}{n}", {"ib": much}, processor=name, memory=much) for name, much in slower for n in range(3)]
    same = [
        write(f"m{name}{n}", {"ib": much}, mtu=int(1500 * much), memory=much) for name, much in slower for n in range(3)
    ]
    for runs, is_control in ((others, False), (same, True)):
        found = analyse(configurations=configurations_of(runs))
        assert any(one.subject == "memory control" for one in found.warnings) is is_control
        doubts = [str(doubt) for one in found.headline.effects for doubt in one.doubts]
        assert any("memory control" in one for one in doubts) is is_control


def crossed(write: Write, *, alike: bool = True) -> list[Run]:
    """Three runs of two processors with two fabrics; gige is 2 times slower, on EPYC 3 times where factors are not alike."""
    return [
        write(f"{name}{n}", {"ib": slower, "gige": slower * factor}, processor=name)
        for name, slower, factor in ((XEON, 1.0, 2.0), (EPYC, 0.8, 2.0 if alike else 3.0))
        for n in range(3)
    ]


@pytest.mark.slow
def test_crossed_factors_have_their_main_effects_first(write: Write):
    found = analyse(configurations=configurations_of(crossed(write)))
    assert found.headline.sentence.startswith("By processor EPYC 7742 is faster")
    assert "by fabric ib is faster" in found.headline.sentence
    effects = {(one.factor, one.key.pattern): one for one in found.chapters[EFFECTS]}
    of_fabric, of_processor = effects["fabric", "pingpong"], effects["processor", "pingpong"]
    assert of_fabric.effect.value == pytest.approx(0.5, rel=0.02)
    assert of_processor.effect.value == pytest.approx(1.25, rel=0.02)
    assert (of_fabric.verdict, of_processor.verdict) == ("less", "more")
    assert (of_fabric.replication, of_fabric.launches) == ("runs", 3)
    assert {one.verdict for one in found.chapters[INTERACTIONS]} <= {"open", "same", "perhaps more", "perhaps less"}


@pytest.mark.slow
def test_factors_that_are_not_alike_everywhere_are_an_interaction(write: Write):
    found = analyse(configurations=configurations_of(crossed(write, alike=False)))
    assert {one.verdict for one in found.chapters[INTERACTIONS]} == {"less"}
    assert found.chapters[INTERACTIONS][0].ratio.value == pytest.approx(2 / 3, rel=0.02)


def test_the_interval_of_a_main_effect_is_that_of_the_runs_means_over_the_other_factor(write: Write):
    """Welch's t interval of three runs a processor, each the mean over both fabrics, reckoned by SciPy."""
    sides = read_sides(configurations=configurations_of(crossed(write)))
    (effect,) = [
        one
        for one in main_effects_of(Asked(sides, all_pairs(sides), 0.02, 0.95, 0.95))
        if (one.factor, one.key.pattern.value) == ("processor", "pingpong")
    ]
    means = [run_means(side.cells[effect.key].log_values, side.run_of) for side in sides]
    xeon, epyc = (np.mean(means[first : first + 2], axis=0) for first in (0, 2))
    by_hand = stats.ttest_ind(xeon, epyc, equal_var=False).confidence_interval(0.95)
    assert (effect.effect.low, effect.effect.high) == pytest.approx(
        (np.exp(by_hand.low), np.exp(by_hand.high)), rel=1e-4
    )
    assert effect.among == ("ib", "gige")


def crossed_in_one_run(blocks: int = 24, slower_on: slice = slice(0)) -> list[Side]:
    """Two processors, each with two networks, in one run; the second is 10 % slower on some blocks."""
    names = ("xeon-ib", "xeon-gige", "epyc-ib", "epyc-gige")
    logs = np.random.default_rng(3).normal(0.0, 0.01, (4, 1, blocks))
    logs[2:, :, slower_on] += np.log(1.1)
    made = sides_of(keys_of((Layer.TCP,), (64,), ()), logs, names)
    factors = [dict(zip(("processor", "fabric"), name.split("-"), strict=True)) for name in names]
    return [replace(side, runs=(side.run,), factors=those) for side, those in zip(made, factors, strict=True)]


def of_processor(sides: list[Side], sessions: BlockSessions) -> MainEffect:
    pairings = [replace(one, sessions=sessions) for one in all_pairs(sides)]
    (effect,) = [one for one in main_effects_of(Asked(sides, pairings, 0.02, 0.95, 0.95)) if one.factor == "processor"]
    return effect


def test_what_one_day_did_to_a_level_is_no_main_effect():
    sides = crossed_in_one_run(slower_on=slice(12))
    days = {(block, ""): block // 12 for block in range(24)}
    by_blocks, by_days = (of_processor(sides, one) for one in (dict.fromkeys(days, 0), days))
    assert by_blocks.p_adjusted is not None
    assert by_days.p_adjusted is not None
    assert by_blocks.p_adjusted < 0.001
    assert by_days.p_adjusted > 0.2
    assert by_days.effect.low is not None
    assert by_days.effect.high is not None
    assert by_days.effect.low < 1 < by_days.effect.high
    of_all_days = crossed_in_one_run(slower_on=slice(24))
    assert of_processor(of_all_days, days).verdict is InteractionVerdict.LESS


def test_a_main_effect_pays_for_what_the_order_of_launches_was_found_to_do():
    sides = crossed_in_one_run(12)
    removed, means = np.zeros((1, len(sides), 12)), np.array([[0.0, 0.0, 1.0, 1.0]])
    effects = OrderEffects((0,), np.zeros(1), np.zeros((1, 1)), removed, means, np.eye(1) / 12.0)
    paying = [
        replace(side, cells={key: replace(cell, order=CellOrder(np.zeros(12), effects, index))})
        for index, side in enumerate(sides)
        for key, cell in side.cells.items()
    ]
    free, paid = (of_processor(those, {}).effect for those in (sides, paying))
    assert free.low is not None
    assert paid.low is not None
    wider = stats.t.ppf(0.975, 10) / stats.t.ppf(0.975, 11) * np.sqrt(11 / 10) * np.sqrt(1.0 + 12.0 / 1.0 / 12.0)
    assert np.log(paid.value / paid.low) / np.log(free.value / free.low) == pytest.approx(wider)


@pytest.mark.slow
def test_crossed_factors_that_do_nothing_are_shown_to_do_nothing(write: Write):
    """Nor does one run of each show more: its effects are of these sessions, which is said."""
    runs = [write(f"{name}{n}", {"ib": 1.0, "gige": 1.0}, processor=name, blocks=3) for name in "AB" for n in range(3)]
    for some, is_single in ((runs, False), (runs[2:4], True)):
        found = analyse(configurations=configurations_of(some))
        told = CHAPTER.lines(found)
        assert "nothing shown in any of 2 tests" in told[0]
        assert any("Where a side has one run" in line for line in told) is is_single
        assert found.headline.sentence.startswith("Not enough data to rank")
        assert all(content.rows for _, content in CHAPTER.tables(found))


def test_sides_that_are_not_crossed_have_no_main_effects(write: Write):
    runs = [write("a", {"ib": 1.0}), write("b", {"gige": 2.0}, processor=EPYC), write("c", {"ib": 1.0}, processor="Z")]
    found = analyse(configurations=configurations_of(runs))
    assert not found.chapters.get(EFFECTS)


def test_who_is_beaten_does_not_lead_though_the_first_was_not_told_from_it(write: Write):
    """Four blocks tell no two fabrics of a run apart among so many pairs, and launches of other runs do."""
    runs = [write(f"P{n}", {"ib": 1 + n / 5, "eth": 2.0}, processor=f"P{n}") for n in range(5)]
    found = analyse(configurations=configurations_of(runs))
    assert found.headline.sentence == "No single fastest: P0, ib leads, not told apart from P0, eth."
    assert found.title == "10 configurations: P0, ib; P0, eth; ..."
    assert any("P0, ib; P0, eth; P1, ib; " in one.subject for one in found.warnings)


def test_a_decision_names_configurations_and_a_price_of_a_fabric_is_that_of_each_with_it(write: Write):
    table = DecisionTable(
        node_price=5000.0,
        network_share=0.5,
        price={
            "ib": FabricPrice(per_node=1000.0),
            "gige": FabricPrice(per_node=50.0),
            "EPYC 7742, ib": FabricPrice(per_node=2000.0),
        },
    )
    found = DECISION.first_of(analyse(configurations=configurations_of(crossed(write)), decision=table))
    assert found is not None
    costs = {one.fabric: one.cost.fabric for one in found.fabrics if one.cost is not None}
    assert costs == {
        "Xeon Gold 6148, ib": 2000.0,
        "Xeon Gold 6148, gige": 100.0,
        "EPYC 7742, ib": 4000.0,
        "EPYC 7742, gige": 100.0,
    }
    assert found.ranks[0] == ("EPYC 7742, ib",)
    assert (found.are_runs, found.blocks) == (True, 3)


def test_one_run_of_each_puts_no_configuration_before_another_in_a_decision(write: Write):
    runs = [write(name, {"ib": slower}, processor=name) for name, slower in (("A", 1.0), ("B", 1.5), ("C", 2.0))]
    found = DECISION.first_of(analyse(configurations=configurations_of(runs), decision=DecisionTable()))
    assert found is not None
    assert found.ranks == (("A", "B", "C"),)
    assert "1 run of each put no fabric before another: at least 3 do" in found.notes


def test_a_baseline_names_a_configuration(write: Write):
    runs = [write(name, {"ib": 1.0}, processor=name) for name in "ABC"]
    assert analyse(configurations=configurations_of(runs), baseline="B").fabrics[0].name == "B"
    with pytest.raises(UsageError, match="no configuration nope"):
        analyse(configurations=configurations_of(runs), baseline="nope")


def test_a_warning_tells_that_there_is_one_run_a_side(write: Write):
    found = analyse(configurations=configurations_of([write(name, {"ib": 1.0}, processor=name) for name in "ABC"]))
    assert any(one.subject == "configurations" and one.severity is Severity.WARNING for one in found.warnings)


def test_the_module_takes_as_many_runs_as_the_commands(write: Write):
    runs = [write(name, {"ib": 1.0}, processor=name) for name in "ABC"]
    assert [one.name for one in fabricbench.compare(*runs).fabrics] == ["A", "B", "C"]
    named = fabricbench.compare(named={"old": [runs[0].path], "new": [runs[1].path, runs[2]]})
    assert [one.name for one in named.fabrics] == ["old", "new"]


@pytest.mark.slow
@pytest.mark.parametrize("design", [Design(systems=5, runs=3), Design(systems=3, fabrics=2, runs=3)])
def test_configurations_that_are_alike_are_clearly_set_apart_on_few_screens(design: Design):
    """Of 100 screens of runs that differ by 2 % by themselves at most 5 have a clear row that is wrong; and a true 2 is found."""
    random = np.random.default_rng(20261128)
    assert sum(is_wrong(screen(random, design)) for _ in range(100)) <= 5
    assert any(is_found(screen(random, replace(design, sessions=0.005), 2.0)) for _ in range(5))
