"""The gate between two runs, and the self-check of one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fabricbench.analysis.gate import GateVerdict, check_regressions
from fabricbench.analysis.selfcheck import analyse_selfcheck, are_twins
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.testbed import model as testbed_model
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed

from .conftest import MakeRun, scaled, two


def one_fabric(slower: float = 1.0, layer: Layer = Layer.TCP) -> list[SyntheticCell]:
    cells = [replace(cell, medians={"slow": cell.medians["one"]}) for cell in two(1.0)]
    return scaled(cells, {"one": lambda cell: slower if cell.layer is layer else 1.0})


def test_an_unchanged_fabric_passes(make_run: MakeRun):
    report = check_regressions(make_run(one_fabric(), "old"), make_run(one_fabric(), "new", seed=2), maximum=0.05)
    assert report.verdict is GateVerdict.PASSED
    assert {cell.verdict for cell in report.cells} == {GateVerdict.PASSED}


def test_a_regression_beyond_the_allowed_one_fails_and_only_its_cells_are_named(make_run: MakeRun):
    report = check_regressions(make_run(one_fabric(), "old"), make_run(one_fabric(1.12), "new", seed=2), maximum=0.05)
    assert report.verdict is GateVerdict.REGRESSED
    regressed = [cell for cell in report.cells if cell.verdict is GateVerdict.REGRESSED]
    assert {cell.key.layer for cell in regressed} == {Layer.TCP}
    assert len(regressed) == 6  # round trips and throughputs of three sizes: a lower rate is slower
    assert all(cell.slowdown == pytest.approx(1.12, rel=0.02) for cell in regressed)


def test_a_regression_within_what_is_allowed_passes_and_an_improvement_too(make_run: MakeRun):
    old = make_run(one_fabric(), "old")
    for slower in (1.02, 0.8):
        new = make_run(one_fabric(slower), f"new{slower}", seed=2)
        assert check_regressions(old, new, maximum=0.05).verdict is GateVerdict.PASSED


def test_a_slowdown_about_the_limit_is_inconclusive(make_run: MakeRun):
    report = check_regressions(make_run(one_fabric(), "old"), make_run(one_fabric(1.05), "new", seed=2), maximum=0.05)
    assert report.verdict is GateVerdict.INCONCLUSIVE


def test_a_cell_that_is_gone_or_too_few_launches_are_inconclusive(make_run: MakeRun):
    old = make_run(one_fabric(), "old")
    fewer = [cell for cell in one_fabric() if cell.layer is not Layer.MPI]
    report = check_regressions(old, make_run(fewer, "fewer", seed=2), maximum=0.05)
    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert report.unmatched[0] == "one: mpi pingpong of 64 B"
    short = make_run(one_fabric(), "short", seed=2, blocks=2)
    assert check_regressions(old, short, maximum=0.05).verdict is GateVerdict.INCONCLUSIVE


def test_slower_memory_alone_does_not_fail_the_gate(make_run: MakeRun):
    cells = [
        replace(c, medians={"one": c.medians["one"] / 1.5}) if c.layer is Layer.MEMORY else c for c in one_fabric()
    ]
    report = check_regressions(make_run(one_fabric(), "old"), make_run(cells, "new", seed=2), maximum=0.05)
    assert report.verdict is GateVerdict.PASSED
    assert all(cell.is_control for cell in report.cells if cell.verdict is not GateVerdict.PASSED)


def test_the_gate_raises_few_false_alarms_over_many_unchanged_cells(make_run: MakeRun):
    noise = Noise(launch=0.03, sample=0.02)
    cells = [SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64 + size, {"one": 50e3}, samples=20) for size in range(60)]
    runs = [make_run(cells, f"r{seed}", seed=seed, noise=noise) for seed in range(6)]
    verdicts = [check_regressions(a, b, maximum=0.0).verdict for a in runs for b in runs if a is not b]
    assert np.mean([verdict is GateVerdict.REGRESSED for verdict in verdicts]) <= 0.1


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
    bed = synthetic_testbed({"one": 100e6, "again": 100e6})
    first = bed.fabrics[0]
    twins = testbed_model.Testbed(**{**dict(bed), "fabrics": (first, first.model_copy(update={"name": "again"}))})
    cells = [replace(cell, medians={"one": cell.medians["one"], "again": cell.medians["one"]}) for cell in two(1.0)]
    found = analyse_selfcheck(make_run(cells, testbed=twins))
    twin = next(one for one in found.results if one.way == "twins")
    assert (twin.fabric, twin.twin, twin.trials) == ("one", "again", 128)
    assert twin.wrong_trials <= 0.1
    assert not are_twins(*bed.fabrics)


def test_too_few_launches_cannot_be_split(make_run: MakeRun):
    run = make_run(two(1.0), blocks=4)
    with pytest.raises(UsageError, match="4 valid launches, 6 are needed"):
        analyse_selfcheck(run)
    with pytest.raises(UsageError, match="no fabric sci"):
        analyse_selfcheck(run, fabric="sci")
