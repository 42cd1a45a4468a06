"""A short, seeded part of benchmarks/damage.py: damaged run directories end in no traceback and no altered sample in a number."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer

from fabricbench import cli
from fabricbench.record.store import Run

BENCHMARK = Path(__file__).parents[1] / "benchmarks/damage.py"


@pytest.fixture(scope="module")
def damage() -> ModuleType:
    spec = importlib.util.spec_from_file_location("damage", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["damage"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_damaged_runs_end_in_clear_errors_and_no_altered_sample_is_used(
    damage: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cli, "app", typer.main.get_command(cli.app))
    monkeypatch.setattr(sys, "argv", [])
    cases = damage.Damage(tmp_path, seed=7)
    for number in range(30):
        cases.case(number)
    assert cases.counts.failures == []
    assert cases.counts.altered_samples > 10


def test_the_run_that_is_damaged_is_whole_before(damage: ModuleType, tmp_path: Path):
    damage.write_run(tmp_path / "run")
    assert damage.verify(tmp_path / "run").verdict == "whole"
    assert len(Run.open(tmp_path / "run").launches) == 4
