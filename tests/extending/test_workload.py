"""The workload of CONTRIBUTING.md: one file, and one line in the registry."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fabricbench.analysis import analyse
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.campaign.venue import Standing
from fabricbench.chapters.workload_tables import LOADS, RATIOS
from fabricbench.cli.list_keys import keys_of
from fabricbench.record.store import Run
from fabricbench.testbed.reading import local_testbed
from fabricbench.workload.adapter import Place
from fabricbench.workload.registry import WORKLOADS
from support.applications import lab_of

EXAMPLES = Path(__file__).parents[2] / "examples/extending"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return loaded("workload", monkeypatch)


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"extending_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its models look their annotations up there
    spec.loader.exec_module(module)
    return module


def test_a_declared_parameter_is_a_key_an_option_a_part_of_the_name_and_of_the_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    jacobi = loaded("kernel_workload", monkeypatch).JACOBI
    monkeypatch.setitem(WORKLOADS, jacobi.name, jacobi)
    monkeypatch.setenv("FABRICBENCH_BIN", str(tmp_path))
    (tmp_path / "fabricbench-jacobi").touch()
    campaign = campaign_of({"campaign": {"blocks": 2}, "workload": [{"kind": "jacobi", "n": [10, 20]}]}, "own.toml")
    testbed = lab_of(4)
    found = {one.workload.name: one.workload for one in plan_run(campaign, testbed, seed=1).launches if one.workload}
    assert sorted(found) == ["jacobi-n10-sweeps100.4", "jacobi-n20-sweeps100.4"]
    tokens = found["jacobi-n20-sweeps100.4"].tokens(Place(tmp_path, testbed.fabrics[0]))
    assert tokens[1:5] == ["--n", "20", "--sweeps", "100"]
    assert dict(keys_of(jacobi.table))["n"].startswith("points of the line (a whole number from 1 to 1,000,000,000")


@pytest.mark.mpi
@pytest.mark.alone
def test_a_workload_that_is_listed_is_planned_run_and_compared_as_every_other(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(WORKLOADS, example.RANDOM_PAIRS.name, example.RANDOM_PAIRS)
    campaign = campaign_of(
        {"campaign": {"blocks": 2}, "workload": [{"kind": "random-pairs", "ranks": [2]}]}, "own.toml"
    )
    venue = Standing(given=local_testbed())
    start_run(tmp_path / "run", campaign, venue, plan_run(campaign, venue.testbed(), seed=1), notify=lambda _: None)
    run = Run.open(tmp_path / "run")
    assert set(run.cells()["status"]) == {"done"}, run.cells()["reason"].to_list()
    assert {row["figure_of_merit"] > 0 for row in run.cells().iter_rows(named=True)} == {True}
    found = analyse([run])
    assert {(one.figure, one.unit) for one in LOADS.of(found)} == {("pairs", "Mop/s")}
    assert {one.load for one in RATIOS.of(found)} == {"random-pairs, size=S, on 2 ranks (Mop/s)"}
