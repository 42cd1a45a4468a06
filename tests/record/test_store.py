from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fabricbench.analysis.sides import read_sides
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.record.export import summary_frame
from fabricbench.record.frames import LATER_CELL_COLUMNS, LATER_SAMPLE_COLUMNS
from fabricbench.record.manifest import PlannedLaunch, paired_blocks
from fabricbench.record.provenance import Proof
from fabricbench.record.store import LaunchSummary, Run, write_launch
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


def test_a_launch_whose_settings_did_not_hold_does_not_count_though_its_path_is_proven(run: Run):
    path = run.launches[0].directory / "launch.json"
    told = json.loads(path.read_text())
    told["facts"] |= {
        "is_valid": False,
        "invalid_because": ["after the launch a setting was not what it had to be: mtu"],
    }
    path.write_text(json.dumps(told))
    found = Run.open(run.path).launches[0]
    assert (found.proof, found.is_valid) == (Proof.PROVEN, False)


def test_a_message_rate_is_in_messages_of_the_cells_size(tmp_path: Path):
    cell = SyntheticCell(
        Layer.TCP, Pattern.MESSAGE_RATE, 8, {"a": 1.5e6}, samples=300, messages_per_sample=20_000, ranks=(0, 1, 2, 3)
    )
    run = write_synthetic_run(tmp_path, cells=[cell], blocks=3, noise=Noise(0.001, 0.01))
    quantiles = run.launch_quantiles()
    assert quantiles["median"].to_list() == pytest.approx([1.5e6] * 3, rel=0.01)
    assert quantiles["mean"].to_list() == pytest.approx([1.5e6] * 3, rel=0.01)
    assert summary_frame(run)["unit"].to_list() == ["message/s"]
    assert read_sides([run])[0].cells.popitem()[1].launch_values.tolist() == pytest.approx(quantiles["mean"].to_list())


def test_samples_that_missed_their_start_are_kept_and_count_nowhere(tmp_path: Path):
    cell = SyntheticCell(Layer.MPI, Pattern.ALLREDUCE, 8, {"a": 5e4}, samples=100, missed=60, ranks=(0, 1, 2))
    run = write_synthetic_run(tmp_path, cells=[cell], blocks=3, noise=Noise(0.001, 0.01))
    assert run.samples().filter(pl.col("missed")).collect().height == 3 * 60
    quantiles = run.launch_quantiles()
    assert quantiles["n"].to_list() == [40] * 3
    assert quantiles["q0.99"].max() < 6e4
    side = read_sides([run])[0]
    ((key, measured),) = side.cells.items()
    assert (key.variant, measured.pooled.size, measured.counts["missed"]) == ("3 ranks", 120, 180)
    assert measured.pooled.max() < 6e4
    assert measured.launch_values.tolist() == pytest.approx(quantiles["median"].to_list())


def test_a_cell_all_of_whose_samples_missed_their_start_has_no_value(tmp_path: Path):
    late = SyntheticCell(Layer.MPI, Pattern.BARRIER, 0, {"a": 5e4}, samples=10, missed=10)
    fine = SyntheticCell(Layer.MPI, Pattern.PINGPONG, 8, {"a": 5e4})
    run = write_synthetic_run(tmp_path, cells=[late, fine], blocks=2)
    assert [key.pattern for key in read_sides([run])[0].cells] == ["pingpong"]


def test_the_channels_of_every_launch_are_read_unread_until_needed(tmp_path: Path):
    shares = {(1, 0, 0): 0.75, (2, 0, 0): 0.25}
    incast = SyntheticCell(
        Layer.TCP, Pattern.INCAST, 1024, {"a": 90e6, "b": 90e6}, ranks=(0, 1, 2), channels=2, channel_shares=shares
    )
    run = write_synthetic_run(tmp_path, cells=[incast], blocks=2)
    channels = run.channels().collect()
    assert channels.height == 2 * 2 * 2
    assert channels["launch_id"].n_unique() == 4
    assert channels.filter(source=1)["bytes"].to_list() == [200 * 1024 * 3 // 4] * 4


def test_a_run_without_channels_has_a_frame_without_rows(run: Run):
    assert run.channels().collect().is_empty()


def test_a_run_of_an_earlier_version_still_opens(tmp_path: Path):
    """Earlier versions had two patterns, two metrics, and none of the later columns."""
    run = write_synthetic_run(tmp_path, cells=ladder_cells(FABRICS, samples=20), blocks=2)
    before = run.launch_quantiles()
    for launch in run.launches:
        words = {"pattern": ["pingpong", "stream"], "metric": ["round_trip_time", "throughput"]}
        old = [pl.col(name).cast(pl.String).cast(pl.Enum(of)) for name, of in words.items()]
        cells, samples = launch.directory / "cells.parquet", launch.directory / "samples.parquet"
        pl.read_parquet(cells).with_columns(old).drop(LATER_CELL_COLUMNS).write_parquet(cells)
        pl.read_parquet(samples).drop(LATER_SAMPLE_COLUMNS).write_parquet(samples)
        path = launch.directory / "launch.json"
        summary = json.loads(path.read_text())
        del summary["table_rows"], summary["clocks"], summary["sha256"]
        path.write_text(json.dumps(summary))
    opened = Run.open(run.path)
    assert opened.damaged == ()
    assert opened.launch_quantiles().equals(before)
    cells = opened.cells()
    assert cells["channels"].unique().to_list() == [1]
    assert cells["congestor"].null_count() == cells.height
    assert not opened.samples().collect()["missed"].any()
    assert read_sides([opened])[0].cells


def test_the_rows_of_tables_that_an_earlier_version_told_in_fields_of_their_own_are_known():
    told = {
        "launch_id": "b00-a",
        "fabric": "a",
        "complete": True,
        "cells": 1,
        "failed": 0,
        "samples": 2,
        "header": None,
        "footer": None,
    }
    earlier = LaunchSummary.model_validate({**told, "channel_rows": 3, "stage_rows": 0})
    assert (earlier.table_rows, earlier.parquet[2:]) == ({"channels": 3}, ("channels.parquet",))
    assert "channel_rows" not in earlier.model_dump()
    assert LaunchSummary.model_validate(told).parquet[2:] == ()


def test_a_block_counts_for_a_look_only_where_a_whole_pair_of_it_is_measured(run: Run):
    assert run.looks == (3,)
    shutil.rmtree(run.path / "launches/b02-slow")
    assert Run.open(run.path).looks == (2,)


def test_a_kernel_that_is_measured_on_all_fabrics_makes_a_block_count_though_another_is_not():
    names = ("b00-a", "b00-a-x", "b00-a-y", "b00-a-x-y")  # fabrics `a` and `a-x`, the measurer and kernel `y`
    fabrics = ("a", "a-x", "a", "a-x")
    planned = [
        PlannedLaunch(launch_id=name, block=0, position=at, fabric=fabric)
        for at, (name, fabric) in enumerate(zip(names, fabrics, strict=True))
    ]
    assert paired_blocks(planned, {"b00-a-y", "b00-a-x-y", "b00-a"}) == {0}
    assert paired_blocks(planned, {"b00-a-y", "b00-a-x"}) == set()


def test_a_block_counts_as_a_look_once_two_of_three_sides_are_measured():
    planned = [
        PlannedLaunch(launch_id=f"b{block:02d}-{side}", block=block, position=0, fabric=side)
        for block in range(3)
        for side in ("usual", "jumbo", "dead")
    ]
    measured = {"b00-usual", "b00-jumbo", "b01-usual"}
    assert paired_blocks(planned, measured) == {0}
