"""The gate between two runs, and the self-check of one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from fabricbench.analysis.findings import Replication
from fabricbench.analysis.gate import GateVerdict, check_regressions
from fabricbench.analysis.selfcheck import analyse_selfcheck, is_aa_pair
from fabricbench.cli.check_text import limits
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.record.manifest import Extension
from fabricbench.record.store import Run
from support.lost_runs import lost_run, trip
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed

from .conftest import MakeRun, scaled, twin_cells, twin_testbed, two


def one_fabric(slower: float = 1.0, layer: Layer = Layer.TCP) -> list[SyntheticCell]:
    cells = [replace(cell, medians={"slow": cell.medians["one"]}) for cell in two(1.0)]
    return scaled(cells, {"one": lambda cell: slower if cell.layer is layer else 1.0})


def test_an_unchanged_fabric_passes(make_run: MakeRun):
    report = check_regressions([make_run(one_fabric(), "old")], [make_run(one_fabric(), "new", seed=2)], maximum=0.05)
    assert report.verdict is GateVerdict.PASSED
    assert {cell.verdict for cell in report.cells} == {GateVerdict.PASSED}


def test_a_regression_beyond_the_allowed_one_fails_and_only_its_cells_are_named(make_run: MakeRun):
    report = check_regressions(
        [make_run(one_fabric(), "old")], [make_run(one_fabric(1.12), "new", seed=2)], maximum=0.05
    )
    assert report.verdict is GateVerdict.REGRESSED
    regressed = [cell for cell in report.cells if cell.verdict is GateVerdict.REGRESSED]
    assert {cell.key.layer for cell in regressed} == {Layer.TCP}
    assert len(regressed) == 6  # round trips and throughputs of three sizes: a lower rate is slower
    assert all(cell.slowdown == pytest.approx(1.12, rel=0.02) for cell in regressed)


@pytest.mark.slow
def test_a_regression_within_what_is_allowed_passes_and_an_improvement_too(make_run: MakeRun):
    old = make_run(one_fabric(), "old")
    for slower in (1.02, 0.8):
        new = make_run(one_fabric(slower), f"new{slower}", seed=2)
        assert check_regressions([old], [new], maximum=0.05).verdict is GateVerdict.PASSED


def test_a_slowdown_about_the_limit_is_inconclusive(make_run: MakeRun):
    report = check_regressions(
        [make_run(one_fabric(), "old")], [make_run(one_fabric(1.05), "new", seed=2)], maximum=0.05
    )
    assert report.verdict is GateVerdict.INCONCLUSIVE


def test_a_cell_that_is_gone_or_too_few_launches_are_inconclusive(make_run: MakeRun):
    old = make_run(one_fabric(), "old")
    fewer = [cell for cell in one_fabric() if cell.layer is not Layer.MPI]
    report = check_regressions([old], [make_run(fewer, "fewer", seed=2)], maximum=0.05)
    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert report.unmatched[0] == "one: mpi pingpong of 64 B"
    short = make_run(one_fabric(), "short", seed=2, blocks=2)
    assert check_regressions([old], [short], maximum=0.05).verdict is GateVerdict.INCONCLUSIVE


def test_slower_memory_alone_does_not_fail_the_gate(make_run: MakeRun):
    cells = [
        replace(c, medians={"one": c.medians["one"] / 1.5}) if c.layer is Layer.MEMORY else c for c in one_fabric()
    ]
    report = check_regressions([make_run(one_fabric(), "old")], [make_run(cells, "new", seed=2)], maximum=0.05)
    assert report.verdict is GateVerdict.PASSED
    assert all(cell.is_control for cell in report.cells if cell.verdict is not GateVerdict.PASSED)


@pytest.mark.slow
def test_the_gate_raises_few_false_alarms_over_many_unchanged_cells(make_run: MakeRun):
    noise = Noise(launch=0.03, sample=0.02)
    cells = [SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64 + size, {"one": 50e3}, samples=20) for size in range(60)]
    runs = [make_run(cells, f"r{seed}", seed=seed, noise=noise) for seed in range(6)]
    verdicts = [check_regressions([a], [b], maximum=0.0).verdict for a in runs for b in runs if a is not b]
    assert np.mean([verdict is GateVerdict.REGRESSED for verdict in verdicts]) <= 0.1


def test_the_gate_spends_half_of_its_error_on_alarms_and_no_more(make_run: MakeRun):
    def run(name: str, slower: float, seed: int) -> Run:
        cell = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"one": 50e3 * slower}, samples=20)
        return make_run([cell], name, seed=seed, noise=Noise(launch=0.03, sample=0.02))

    old = run("old", 1.0, 1)
    reports = [check_regressions([old], [run(f"{slower}", slower, 2)], maximum=0.0) for slower in (1.026, 1.03, 1.034)]
    level = (1.0 - reports[0].look_confidence) / 2.0
    assert level <= 0.025
    told = [(one.cells[0].p_adjusted or 1.0, one.verdict is GateVerdict.REGRESSED) for one in reports]
    assert all(is_regressed == (p_value < level) for p_value, is_regressed in told)
    assert any(level < p_value < 2 * level for p_value, _ in told)  # a doubled level would call it a regression
    assert any(is_regressed for _, is_regressed in told)


@pytest.mark.slow
def test_splits_of_one_fabric_give_few_wrong_verdicts(make_run: MakeRun):
    found = analyse_selfcheck(make_run(two(1.3), blocks=12, noise=Noise(launch=0.02, sample=0.02)))
    assert [(one.way, one.fabric, one.trials) for one in found.results] == [
        ("splits", "one", 924),
        ("splits", "other", 924),
    ]
    assert found.wrong_trials <= 0.15  # overlapping splits of one run scatter: the simulations hold the 5 %
    for one in found.results:
        assert one.wrong_verdicts + one.equivalent + one.not_enough_data == pytest.approx(1.0)
        assert one.typical_half_width == pytest.approx(2.2 * 0.02 * np.sqrt(2 / 6), rel=0.4)


def test_a_fabric_listed_twice_is_checked_as_twins_by_block(make_run: MakeRun):
    found = analyse_selfcheck(make_run(twin_cells(), testbed=twin_testbed()))
    twin = next(one for one in found.results if one.way == "twins")
    assert (twin.fabric, twin.twin, twin.trials) == ("one", "again", 128)
    assert twin.wrong_trials <= 0.1
    assert not found.has_failed
    assert [one.way for one in found.plain] == ["twins", "halves", "halves"]
    assert 1.0 < found.plain[0].finds < 1.05
    assert not is_aa_pair(*synthetic_testbed({"one": 100e6, "again": 100e6}).fabrics)


def test_a_twin_that_is_slower_fails_though_exchanging_sides_hides_it(make_run: MakeRun):
    found = analyse_selfcheck(make_run(twin_cells(1.5), testbed=twin_testbed()))
    assert found.wrong_trials <= 0.1
    assert found.has_failed
    twins = found.plain[0]
    assert (twins.way, twins.cells, len(twins.named)) == ("twins", 28, 28)
    assert all(1.4 < one.ratio < 1.6 for one in twins.named)  # slower is above 1 for times and for rates
    assert all(not one.named for one in found.plain[1:])


@pytest.mark.slow
def test_a_fabric_that_drifts_is_told_by_its_halves_and_by_its_trend(make_run: MakeRun):
    cells = [replace(cell, drift=0.10) for cell in two(1.0)]
    found = analyse_selfcheck(make_run(cells, blocks=12))
    assert found.has_failed
    assert all(one.named for one in found.plain)
    of_one, of_other, of_ratio = found.dependence
    assert of_one.has_drift
    assert of_other.has_drift
    assert of_one.drift == pytest.approx(1.10, rel=0.02)
    assert of_one.is_autocorrelated
    assert (of_ratio.other, of_ratio.has_drift, of_ratio.is_autocorrelated) == ("other", False, False)


@pytest.mark.slow
def test_few_healthy_machines_fail_the_self_check(make_run: MakeRun):
    noise = Noise(launch=0.02, sample=0.02)
    cells = [SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64 + size, {"one": 50e3}, samples=20) for size in range(8)]
    failed = [
        analyse_selfcheck(make_run(cells, f"healthy{seed}", seed=seed, noise=noise)).has_failed for seed in range(10)
    ]
    assert binom.sf(sum(failed) - 1, len(failed), 0.05) > 0.01  # as few as at most one in twenty gives


def test_runs_with_sessions_of_their_own_pass_the_gate_as_runs_and_not_as_launches(make_run: MakeRun):
    def session(effect: float, seed: int) -> Run:
        cells = [replace(c, medians={"one": c.medians["one"] * (1 + effect)}) for c in one_fabric()]
        times = [cell for cell in cells if cell.metric is Metric.ROUND_TRIP_TIME]
        return make_run(times, f"s{seed}", seed=seed, blocks=4)

    old = [session(effect, seed) for seed, effect in enumerate((0.0, 0.05, -0.05))]
    new = [session(effect, seed + 10) for seed, effect in enumerate((0.0, 0.05, 0.10))]
    assert check_regressions(old[:1], new[2:], maximum=0.05).verdict is GateVerdict.REGRESSED
    report = check_regressions(old, new, maximum=0.05)
    assert (report.replication, report.verdict) == (Replication.RUNS, GateVerdict.INCONCLUSIVE)
    assert {cell.launches for cell in report.cells} == {3}
    assert report.power is not None
    assert report.power.needed is not None
    assert report.power.needed > 3


def test_a_cell_that_one_of_several_runs_lacks_is_inconclusive_and_named(make_run: MakeRun):
    runs = [make_run(one_fabric(), f"r{seed}", seed=seed, blocks=3) for seed in range(5)]
    fewer = make_run([cell for cell in one_fabric() if cell.layer is not Layer.MPI], "fewer", seed=9, blocks=3)
    report = check_regressions([*runs[:2], fewer], runs[2:], maximum=0.05)
    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert any("mpi pingpong of 64 B: not in" in name and "fewer" in name for name in report.unmatched)


def test_looking_again_after_more_blocks_costs_a_part_of_the_error(make_run: MakeRun):
    old, new = make_run(one_fabric(), "old"), make_run(one_fabric(), "new", seed=2)
    once = check_regressions([old], [new], maximum=0.05)
    grown = replace(
        new,
        manifest=new.manifest.model_copy(
            update={"extensions": (Extension(blocks=8, planned=4, measured=4, unix_ns=0),)}
        ),
    )
    again = check_regressions([old], [grown], maximum=0.05)
    assert once.look_confidence == pytest.approx(0.96)
    assert again.look_confidence > 0.985
    assert again.confidence == once.confidence == 0.95


def test_too_few_launches_cannot_be_split(make_run: MakeRun):
    run = make_run(two(1.0), blocks=4)
    found = analyse_selfcheck(run)
    assert found.plain == ()
    assert "4 valid launches, 6 are needed" in found.skipped[0]
    with pytest.raises(UsageError, match="no fabric sci"):
        analyse_selfcheck(run, fabric="sci")


@pytest.mark.slow
def test_a_gate_never_passes_on_the_few_launches_that_gave_anything(make_run: MakeRun):
    # Six of ten new launches gave nothing, and the gate said "passed: 2 of 2 cells".
    cells = [cell for cell in two(1.0) if cell.layer is Layer.TCP]
    old = make_run(cells, "old", blocks=10)
    silent = [replace(cell, fails_in=frozenset(range(6))) for cell in cells]
    broken = make_run(silent, "new", blocks=10, seed=2)
    report = check_regressions([old], [broken], maximum=0.5)
    assert report.verdict is GateVerdict.INCONCLUSIVE
    told = [cell.gave_nothing for cell in report.cells if cell.gave_nothing]
    assert told
    assert all(text.startswith("6 of 10 launches on ") for text in told)


@pytest.mark.slow
def test_a_gate_does_not_pass_what_lost_a_fabric_or_more_than_a_tenth_of_its_starts(tmp_path: Path):
    old = lost_run(tmp_path / "old", blocks=12)
    same = lost_run(tmp_path / "same", blocks=11)
    assert check_regressions([old], [same], maximum=0.2).verdict is GateVerdict.PASSED
    fewer = lost_run(tmp_path / "fewer", blocks=11, again=[f"b{block:02d}-fast" for block in range(3)])
    found = check_regressions([old], [fewer], maximum=0.2)
    assert found.verdict is GateVerdict.INCONCLUSIVE
    assert found.lost == ("fast (after): 3 of 14 starts gave nothing that counts",)
    slow = {"slow": 100e3}
    alone = lost_run(tmp_path / "alone", blocks=11, cells=[replace(trip(), medians=slow)])
    found = check_regressions([old], [alone], maximum=0.2)
    assert (found.verdict, found.lost) == (GateVerdict.INCONCLUSIVE, ("fast: not in the new runs",))


@pytest.mark.slow
def test_a_gate_does_not_pass_what_lacks_launches_before_its_last_ones(make_run: MakeRun):
    old, well = (make_run([trip()], blocks=12, name=name, seed=seed) for seed, name in enumerate(("old", "well")))
    assert check_regressions([old], [well], maximum=0.2).lost == ()
    gone = [f"b{block:02d}-fast" for block in range(12) if block % 3]
    holes = make_run([trip()], blocks=12, missing=gone, name="holes", seed=2)
    found = check_regressions([old], [holes], maximum=0.2)
    assert found.verdict is GateVerdict.INCONCLUSIVE
    assert found.lost == ("fast: 6 of the first 10 launches of holes are not there, and nothing says why",)
    ended = make_run(
        [trip()], blocks=12, missing=[f"b{block:02d}-fast" for block in range(8, 12)], name="ended", seed=3
    )
    assert check_regressions([old], [ended], maximum=0.2).lost == ()


def on_machines(run: Run, **facts: dict[str, str]) -> Run:
    """Return a run with the inventory of some nodes."""
    return replace(run, manifest=run.manifest.model_copy(update={"inventory": facts}))


@pytest.mark.slow
def test_a_gate_on_other_machines_passes_nothing_unless_they_are_what_is_judged(make_run: MakeRun):
    # Hosts were compared by name, so that other ones counted as unchanged.
    was = {"cpu.model": "EPYC 7543", "kernel.release": "6.1"}
    old = on_machines(make_run(one_fabric(), "old"), n0=was, n1=was)
    same = make_run(one_fabric(), "new", seed=2)
    others = {
        "nodes n[0-1] became n[2-3]": {"n2": was, "n3": was},
        "nodes n[0-1] became n0": {"n0": was, "n1": {"missing": "no answer"}},
        "n0 and n1: kernel.release 6.1 became 6.6": dict.fromkeys(("n0", "n1"), was | {"kernel.release": "6.6"}),
        "cpu.model EPYC 7543 became Xeon": dict.fromkeys(("n2", "n3"), was | {"cpu.model": "Xeon"}),
    }
    for told, inventory in others.items():
        new = on_machines(same, **inventory)
        report = check_regressions([old], [new], maximum=0.05)
        assert report.verdict is GateVerdict.INCONCLUSIVE
        assert told in report.other_machines
        assert told not in report.changed
        meant = check_regressions([old], [new], maximum=0.05, expects_other_machines=True)
        assert (meant.verdict, meant.other_machines) == (GateVerdict.PASSED, ())
        assert told in meant.changed
    firmware = on_machines(same, n0=was | {"load": "3", "firmware": "2"}, n1=was)
    assert check_regressions([old], [firmware], maximum=0.05).verdict is GateVerdict.PASSED


def test_that_one_side_alone_counted_events_of_its_processors_is_said(make_run: MakeRun):
    """They make receivers that sleep slower, by 13 % where that was measured: a regression of nothing but the counting."""
    old, new = make_run(one_fabric(), "old", blocks=4), make_run(one_fabric(), "new", seed=2, blocks=4)
    manifest = new.manifest.model_copy(update={"campaign": {**new.manifest.campaign, "hardware_counters": True}})
    counted = replace(new, manifest=manifest)
    told = "while ranks were measured, hardware counters not open became open"
    assert told in check_regressions([old], [counted], maximum=0.05).changed
    assert told not in check_regressions([old], [new], maximum=0.05).changed
    both = replace(old, manifest=old.manifest.model_copy(update={"campaign": manifest.campaign}))
    assert told not in check_regressions([both], [counted], maximum=0.05).changed


@pytest.mark.slow
def test_a_pass_of_few_launches_says_how_large_a_slow_mode_they_may_have_missed(make_run: MakeRun):
    cells = [cell for cell in one_fabric() if cell.layer is Layer.TCP]
    old = make_run(cells, "old", blocks=6)
    report = check_regressions([old], [make_run(cells, "new", seed=2, blocks=6)], maximum=0.05)
    assert (report.verdict, report.met) == (GateVerdict.PASSED, 6)
    assert report.unseen_share == pytest.approx(0.393, abs=0.001)
    assert limits(report)[0] == (
        "limit: 6 new launches may have missed a slow mode of up to 39 % of all launches; 32 would have met one of one "
        "launch in ten"
    )
    enough = check_regressions([old], [make_run(cells, "more", seed=3, blocks=32)], maximum=0.05)
    assert (enough.verdict, enough.unseen_share, len(limits(enough))) == (GateVerdict.PASSED, None, 1)


def test_a_fabric_that_one_of_several_runs_lacks_is_named(make_run: MakeRun):
    both, alone = two(1.0), one_fabric()
    names = {"old": ("one", "other"), "alone": ("one",)}
    old, new, again = (make_run(both, name, seed=seed, blocks=3) for seed, name in enumerate(("old", "new", "again")))
    bed = synthetic_testbed(dict.fromkeys(names["alone"]))
    less = make_run(
        [replace(cell, medians={"one": cell.medians["one"]}) for cell in alone], "less", blocks=3, testbed=bed
    )
    report = check_regressions([old], [new, less], maximum=0.5)
    assert (report.verdict, report.lost) == (GateVerdict.INCONCLUSIVE, ("other: not in less",))
    report = check_regressions([less], [again], maximum=0.5)
    assert "other" in report.unjudged


@pytest.mark.slow
def test_a_start_that_died_counts_as_slow_as_the_slowest_launch(tmp_path: Path):
    # Two of 22 starts are less than a tenth, so the share alone leaves the rest to pass.
    old, new = lost_run(tmp_path / "old", blocks=21), lost_run(tmp_path / "new", blocks=20)
    dead = lost_run(tmp_path / "dead", blocks=20, again=["b00-fast", "b01-fast"])
    found = check_regressions([old], [new], maximum=0.5)
    allowed = max(cell.slowdown_high or 1.0 for cell in found.cells if cell.fabric == "fast") - 1.0 + 0.0001
    report = check_regressions([old], [dead], maximum=max(allowed, 0.0001))
    assert not report.lost
    told = [cell.gave_nothing for cell in report.cells if cell.fabric == "fast"]
    assert "passes only without the 2 starts that died" in told
    assert report.verdict is GateVerdict.INCONCLUSIVE
