from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.record.store import Run, write_launch
from support.synthetic_run import Noise, SyntheticCell, ladder_cells, write_synthetic_run

FIXTURE = Path(__file__).parents[2] / "schema/fixtures/record.jsonl"
FABRICS = {"slow": 100e6, "fast": 1280e6}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_synthetic_run(tmp_path / "run", cells=ladder_cells(FABRICS, samples=50), blocks=3)


def test_the_record_fixture_becomes_a_launch_with_every_sample(tmp_path: Path):
    shutil.copy(FIXTURE, tmp_path / "records.jsonl")
    summary = write_launch(tmp_path)
    assert (summary.complete, summary.damage, summary.cells, summary.failed, summary.samples) == (True, (), 3, 1, 9)
    assert not (tmp_path / "records.jsonl").exists()


def test_every_launch_and_cell_of_a_run_is_a_row(run: Run):
    cells = run.cells()
    assert cells.height == 3 * 2 * len(ladder_cells(FABRICS))
    assert cells["launch_id"].n_unique() == 6
    assert cells["status"].to_list() == ["done"] * cells.height


def test_every_sample_of_a_run_is_kept_with_its_warm_up(run: Run):
    samples = run.samples().collect()
    cells = run.cells()
    assert samples.height == cells["warmup"].sum() + cells["measured"].sum()
    assert samples.columns == ["launch_id", "cell", "phase", "index", "time_ns", "bytes", "missed"]


def test_launch_quantiles_are_those_of_numpy(run: Run):
    quantiles = run.launch_quantiles((0.1, 0.999))
    samples = run.samples().collect()
    assert quantiles.height == run.cells().height
    for row in quantiles.iter_rows(named=True):
        mine = samples.filter(launch_id=row["launch_id"], cell=row["cell"], phase="measured")
        time = mine["time_ns"].to_numpy().astype(float)
        value = time if row["metric"] == "round_trip_time" else mine["bytes"].to_numpy() * 8e9 / time
        assert row["n"] == len(time)
        assert row["median"] == pytest.approx(np.median(value))
        assert row["q0.1"] == pytest.approx(np.quantile(value, 0.1))
        assert row["q0.999"] == pytest.approx(np.quantile(value, 0.999))
        mean = value.mean() if row["metric"] == "round_trip_time" else mine["bytes"].sum() * 8e9 / time.sum()
        assert row["mean"] == pytest.approx(mean)


def test_the_medians_asked_for_are_those_that_are_found(tmp_path: Path):
    cell = SyntheticCell(Layer.TCP, Pattern.STREAM, 1024, {"a": 90e6, "b": 180e6}, samples=2000)
    run = write_synthetic_run(tmp_path, cells=[cell], blocks=5, noise=Noise(0.001, 0.01))
    medians = {
        row[0]: row[1] for row in run.launch_quantiles().group_by("fabric").agg(pl.col("median").median()).rows()
    }
    assert medians == pytest.approx({"a": 90e6, "b": 180e6}, rel=2e-3)


def test_an_unfinished_run_opens_and_says_what_is_missing(tmp_path: Path):
    run = write_synthetic_run(tmp_path, cells=ladder_cells(FABRICS), blocks=2, missing=["b01-slow"])
    assert [launch.launch_id for launch in run.missing] == ["b01-slow"]
    assert len(run.launches) == 3


def test_a_run_without_a_launch_has_frames_without_rows(tmp_path: Path):
    missing = ["b00-slow", "b00-fast"]
    run = write_synthetic_run(tmp_path, cells=ladder_cells(FABRICS), blocks=1, missing=missing)
    full = write_synthetic_run(tmp_path / "full", cells=ladder_cells(FABRICS), blocks=1)
    assert run.cells().is_empty()
    assert run.samples().collect().is_empty()
    assert run.launch_quantiles().is_empty()
    assert run.launch_quantiles().columns == full.launch_quantiles().columns


def test_a_folder_that_is_no_run_is_refused_with_advice(tmp_path: Path):
    with pytest.raises(UsageError, match="not a run directory") as caught:
        Run.open(tmp_path)
    assert caught.value.hint


def test_a_newer_format_is_refused_as_such(run: Run):
    manifest = run.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace("fabricbench/run/1", "fabricbench/run/7"))
    with pytest.raises(UsageError, match=r"newer fabricbench: its format is fabricbench/run/7"):
        Run.open(run.path)


def test_a_garbled_manifest_is_refused_with_the_place(run: Run):
    (run.path / "manifest.json").write_text('{"schema": "fabricbench/run/1", "seed"')
    with pytest.raises(UsageError, match=r"manifest\.json cannot be read"):
        Run.open(run.path)


@pytest.mark.parametrize("name", ["launch.json", "cells.parquet", "samples.parquet"])
def test_a_launch_that_was_cut_short_on_the_disk_is_left_out_and_named(run: Run, name: str):
    path = run.path / "launches/b01-fast" / name
    path.write_bytes(path.read_bytes()[:40])
    left = Run.open(run.path)
    assert "b01-fast" not in {launch.launch_id for launch in left.launches}
    assert [launch.launch_id for launch in left.missing] == ["b01-fast"]
    (damaged,) = left.damaged
    assert (damaged.launch_id, f"{name} cannot be read" in damaged.reason) == ("b01-fast", True)
    assert left.cells()["launch_id"].n_unique() == left.launch_quantiles()["launch_id"].n_unique() == 5
