from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import fabricbench
from fabricbench.errors import UsageError
from support.synthetic_run import ladder_cells, write_synthetic_run
from support.tiny_campaign import tiny_campaign


def test_every_public_name_is_there():
    for name in fabricbench.__all__:
        assert getattr(fabricbench, name) is not None
    assert set(fabricbench.__all__) <= set(dir(fabricbench))
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = fabricbench.lode


def test_a_run_is_loaded_from_a_path(tmp_path: Path):
    write_synthetic_run(tmp_path, cells=ladder_cells({"a": 1e8, "b": 1e9}, samples=20), blocks=2)
    run = fabricbench.load(str(tmp_path))
    assert run.manifest.campaign_name == "synthetic"
    assert run.cells()["fabric"].unique().sort().to_list() == ["a", "b"]


def test_importing_the_package_imports_neither_tables_nor_models():
    code = "import fabricbench, sys; print([m for m in ('polars', 'numpy', 'scipy', 'pydantic') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout
    assert shown.strip() == "[]"


def test_a_run_and_its_findings_are_named_in_a_line(tmp_path: Path):
    write_synthetic_run(tmp_path, cells=ladder_cells({"a": 1e8, "b": 1e9}, samples=20), blocks=2)
    assert repr(fabricbench.load(tmp_path)).endswith(": campaign synthetic on synthetic, 4 of 4 launches>")
    assert len(repr(fabricbench.compare(str(tmp_path)))) < 200


def test_the_example_of_the_page_runs(tmp_path: Path):
    page = (Path(__file__).parents[1] / "docs" / "python.md").read_text()
    example = page.partition("<!-- tests/test_api.py runs this -->\n```python\n")[2].partition("```")[0]
    write_synthetic_run(tmp_path, cells=ladder_cells({"a": 1e8, "b": 1e9}, samples=20), blocks=2)
    names = {"fabricbench": fabricbench, "pl": pl, "findings": fabricbench.compare(str(tmp_path))}
    exec(example, names)
    assert names["table"].height == len(names["findings"].cells)
    assert names["plan"].launches


def test_plan_says_what_is_wrong_with_its_arguments():
    with pytest.raises(UsageError, match="nowhere"):
        fabricbench.plan("quick", "nowhere")


TINY = tiny_campaign(("memory", "mpi"), blocks=2)


@pytest.mark.mpi
def test_a_run_is_measured_as_the_command_line_does_and_compared(tmp_path: Path):
    campaign = tmp_path / "tiny.toml"
    campaign.write_text(TINY)
    run = fabricbench.run(campaign, "local", tmp_path / "run", seed=1)
    planned = fabricbench.plan(campaign, "local", seed=1).launches
    assert sorted(launch.launch_id for launch in run.launches) == sorted(launch.launch_id for launch in planned)
    assert fabricbench.verify(tmp_path / "run").verdict == "whole"
    assert fabricbench.compare(run)
    with pytest.raises(UsageError, match="is not empty: it holds a run"):
        fabricbench.run(str(campaign), "local", str(tmp_path / "run"), seed=1)
