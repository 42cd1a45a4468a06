"""CSV and Parquet: a row for each launch and test, by hand from what the run is known to hold."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from fabricbench.exchange.exported import Export, results_of
from fabricbench.exchange.exports import parquet
from fabricbench.model import Metric
from fabricbench.record.export import launch_frame
from fabricbench.record.store import Run
from support.exported_run import exported, exported_run, text_of

ROW = {
    "run": "run",
    "launch_id": "b01-slow",
    "block": "1",
    "fabric": "slow",
    "origin": "emulated",
    "proof": "proven",
    "is_valid": "true",
    "invalid_because": "",
    "layer": "mpi",
    "door": "",
    "pattern": "alltoall",
    "receive": "blocking",
    "message_bytes": "1024",
    "ranks": "4",
    "parameters": '{"mode": "persistent"}',
    "metric": "operation_time",
    "unit": "ns",
    "statistic": "median",
    "value": "60000.0",
    "samples": "5",
    "lost": "0",
    "status": "done",
    "started": "2026-10-30T22:41:00.000000Z",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return exported_run(tmp_path_factory.mktemp("folder") / "run")


def rows(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text_of(exported(run, "csv")))))


def test_a_row_holds_what_the_launch_measured(run: Run):
    found = rows(run)
    assert len(found) == 12
    (one,) = (row for row in found if (row["launch_id"], row["pattern"]) == ("b01-slow", "alltoall"))
    assert {name: one[name] for name in ROW} == ROW


def test_a_test_that_failed_has_a_row_without_a_value_and_with_the_reason(run: Run):
    (one,) = (row for row in rows(run) if (row["launch_id"], row["pattern"]) == ("b01-slow", "stream"))
    assert (one["status"], one["reason"], one["value"], one["statistic"]) == ("failed", "no answer", "", "")


def test_a_refuted_launch_is_marked_as_invalid(run: Run):
    told = {
        (row["proof"], row["is_valid"], row["invalid_because"]) for row in rows(run) if row["launch_id"] == "b01-fast"
    }
    assert told == {("refuted", "false", "the traffic went another way")}


def test_the_value_of_a_rate_is_all_bytes_over_all_time(run: Run):
    (one,) = (row for row in rows(run) if (row["launch_id"], row["pattern"]) == ("b00-fast", "stream"))
    assert (one["value"], one["unit"], one["statistic"]) == ("1000000000.0", "bit/s", "total")


def test_parquet_holds_the_same_rows_and_says_what_they_are(run: Run, tmp_path: Path):
    (file,) = exported(run, "parquet").files
    assert isinstance(file.content, bytes)
    path = tmp_path / "launches.parquet"
    path.write_bytes(file.content)
    frame = pl.read_parquet(path)
    assert frame["value"].to_list() == [float(row["value"]) if row["value"] else None for row in rows(run)]
    told = pl.read_parquet_metadata(path)
    assert told["fabricbench.schema"] == "fabricbench/launches/1"
    assert json.loads(told["fabricbench.units"])["throughput"] == "bit/s"
    assert json.loads(told["fabricbench.origins"]) == ["emulated"]


def test_parquet_tells_no_unit_of_a_metric_that_has_several(run: Run):
    frame = launch_frame(run)
    one, other, *others = results_of(frame)
    rates = (
        replace(one, metric=Metric.WORK_RATE, unit="GFLOP/s"),
        replace(other, metric=Metric.WORK_RATE, unit="ns/day"),
    )
    (file,) = parquet.files(Export(run, frame, (*rates, *others)))
    assert isinstance(file.content, bytes)
    told = pl.read_parquet_metadata(io.BytesIO(file.content))
    assert json.loads(told["fabricbench.units"]) == {each.metric.value: each.unit for each in others}
