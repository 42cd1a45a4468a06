from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fabricbench.model import Layer, Pattern
from fabricbench.record.export import failed_tests, sample_scans, summary_frame, violations
from fabricbench.record.lines import CellFailed, FailureCode
from fabricbench.record.store import Run
from support.synthetic_run import SyntheticCell, forget_hashes, ladder_cells, write_synthetic_run

FABRICS = {"slow": 100e6, "fast": 1280e6}
FRAME = CellFailed(
    cell=99, layer=Layer.FRAME, pattern=Pattern.PINGPONG, message_bytes=64, code=FailureCode.PERMISSION, reason="no"
)


def test_every_sample_is_exported_with_its_value_and_unit(tmp_path: Path):
    run = write_synthetic_run(tmp_path, cells=ladder_cells(FABRICS, samples=30), blocks=2)
    samples = pl.concat(list(sample_scans(run))).collect()
    assert samples.height == run.samples().collect().height
    for metric, unit in (("round_trip_time", "ns"), ("throughput", "bit/s")):
        assert samples.filter(metric=metric)["unit"].unique().to_list() == [unit]
    rates = samples.filter(metric="throughput")
    assert (rates["value"] - rates["bytes"] * 8e9 / rates["time_ns"]).abs().max() == 0


def test_samples_of_a_failed_cell_say_that_it_failed(tmp_path: Path):
    cell = SyntheticCell(
        Layer.TCP, Pattern.PINGPONG, 64, {"slow": 100e3, "fast": 20e3}, samples=10, fails_in=frozenset({1})
    )
    samples = pl.concat(list(sample_scans(write_synthetic_run(tmp_path, cells=[cell], blocks=2)))).collect()
    status = samples.group_by("block").agg(pl.col("status").cast(pl.String).unique()).sort("block")
    assert status.rows() == [(0, ["done"]), (1, ["failed"])]


def test_the_summary_leaves_invalid_launches_out_and_names_what_failed(tmp_path: Path):
    cell = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"slow": 100e3, "fast": 20e3}, samples=100, lost=1)
    run = write_synthetic_run(tmp_path, cells=[cell], blocks=4, invalid=["b01-slow"], failed=[FRAME])
    rows = {(row["fabric"], row["layer"]): row for row in summary_frame(run).to_dicts()}
    slow, fast = rows["slow", "tcp"], rows["fast", "tcp"]
    assert (slow["launches"], slow["samples"], slow["lost"]) == (3, 300, 3)
    assert (fast["launches"], fast["samples"], fast["lost"]) == (4, 400, 4)
    assert fast["median"] == pytest.approx(20e3, rel=0.05)
    assert fast["minimum"] < fast["q0.01"] < fast["median"] < fast["q0.99"] < fast["maximum"]
    failed = rows["fast", "frame"]
    assert (failed["failed"], failed["reason"], failed["median"]) == (4, "no", None)


def test_what_failed_is_told_once_for_each_fabric_with_its_first_reason_and_why_launches_do_not_count(tmp_path: Path):
    cell = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"slow": 100e3, "fast": 20e3}, samples=100)
    run = write_synthetic_run(tmp_path, cells=[cell], blocks=4, invalid=["b01-slow"], failed=[FRAME])
    assert failed_tests(run) == [f"{fabric}: frame pingpong 64 B, 4 launches: no" for fabric in ("slow", "fast")]
    (violation,) = violations(run)
    assert violation.startswith("b01-slow: ")


def test_the_summary_is_ordered_by_fabric_layer_and_size_however_it_was_measured(tmp_path: Path):
    cells = [
        SyntheticCell(layer, Pattern.PINGPONG, size, {"slow": 9e3, "fast": 5e3}, samples=5)
        for size in (1024, 8, 64)
        for layer in (Layer.MPI, Layer.FRAME)
    ]
    frame = summary_frame(write_synthetic_run(tmp_path, cells=cells, blocks=2))
    rows = frame.select("fabric", "layer", "message_bytes").rows()
    layers, sizes = ("frame", "mpi"), (8, 64, 1024)
    assert rows == [(fabric, layer, size) for fabric in ("slow", "fast") for layer in layers for size in sizes]


def test_the_mean_of_a_rate_is_total_bits_over_total_time(tmp_path: Path):
    cell = SyntheticCell(Layer.TCP, Pattern.STREAM, 1024, {"a": 90e6}, samples=50)
    run = write_synthetic_run(tmp_path, cells=[cell], blocks=3)
    measured = run.samples().filter(pl.col("phase") == "measured").collect()
    expected = measured["bytes"].sum() * 8e9 / measured["time_ns"].sum()
    assert summary_frame(run)["mean"].to_list() == [pytest.approx(expected)]


def test_operations_that_share_a_sample_share_its_time(tmp_path: Path):
    run = write_synthetic_run(
        tmp_path, cells=[SyntheticCell(Layer.MEMORY, Pattern.PINGPONG, 8, {"a": 4000.0})], blocks=2
    )
    for launch in run.launches:
        path = launch.directory / "cells.parquet"
        forget_hashes(launch.directory)
        pl.read_parquet(path).with_columns(operations_per_sample=pl.lit(100, pl.UInt64)).write_parquet(path)
    assert Run.open(tmp_path).launch_quantiles()["median"].mean() == pytest.approx(40, rel=0.05)
