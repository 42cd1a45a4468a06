from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.record import atomic
from fabricbench.record.frames import CHANNEL_SCHEMA
from fabricbench.record.launch import LaunchFacts, is_converted, read_launch, write_launch
from fabricbench.record.probe_plan import PlanCongestor

FIXTURES = Path(__file__).parents[2] / "schema/fixtures"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    launch = tmp_path / "b03-fast-ethernet"
    launch.mkdir()
    shutil.copy(FIXTURES / "record.jsonl", launch / "records.jsonl")
    shutil.copy(FIXTURES / "plan.json", launch / "plan.json")
    return launch


def test_a_whole_record_moves_into_parquet(directory: Path):
    summary = write_launch(directory, facts=LaunchFacts(block=3, position=1, exit_code=0))
    assert is_converted(directory)
    assert sorted(path.name for path in directory.iterdir()) == [
        "cells.parquet",
        "launch.json",
        "plan.json",
        "samples.parquet",
    ]
    assert read_launch(directory) == summary
    assert (summary.block, summary.facts.exit_code) == (3, 0)
    samples = pl.read_parquet(directory / "samples.parquet")
    assert samples.filter(cell=0)["time_ns"].to_list() == [210500, 200100, 190100, 190700, 191300]
    assert samples.filter(cell=2)["bytes"].to_list() == [65536, 64512]
    assert samples.filter(cell=0)["phase"].to_list() == ["warmup"] * 2 + ["measured"] * 3
    assert samples.filter(cell=0)["index"].to_list() == [0, 1, 0, 1, 2]


def test_a_cell_that_failed_before_it_opened_takes_its_receive_and_metric_from_the_plan(directory: Path):
    write_launch(directory)
    (failed,) = pl.read_parquet(directory / "cells.parquet").filter(status="failed").to_dicts()
    assert (failed["cell"], failed["receive"], failed["metric"]) == (3, "blocking", "round_trip_time")
    assert "CAP_NET_RAW" in failed["reason"]


def test_converting_again_changes_nothing_but_takes_new_facts(directory: Path):
    first = write_launch(directory)
    assert write_launch(directory) == first
    facts = LaunchFacts(is_valid=False, invalid_because=("the bytes went over ctl0",))
    again = write_launch(directory, facts=facts)
    assert read_launch(directory) == again
    assert (again.facts, again.samples) == (facts, first.samples)


def test_a_record_cut_short_is_converted_as_far_as_it_goes_and_stays(directory: Path):
    records = directory / "records.jsonl"
    records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:7]))
    summary = write_launch(directory)
    assert not summary.complete
    assert (summary.cells, summary.samples) == (1, 5)
    assert [(damage.cell, damage.lost_samples) for damage in summary.damage] == [(1, 2), (None, 0)]
    assert records.exists()
    assert write_launch(directory) == summary


def test_a_launch_without_a_record_says_where_to_look(tmp_path: Path):
    with pytest.raises(UsageError, match=r"records\.jsonl is missing") as caught:
        write_launch(tmp_path)
    assert "stderr.log" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), pl.exceptions.ComputeError("parquet: (os error 28)")],
    ids=["from the system", "wrapped by polars"],
)
def test_a_full_disk_keeps_the_raw_record_and_leaves_no_half_file(
    directory: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(EnvironmentLacks, match="no space left") as caught:
        write_launch(directory)
    assert "free some space" in (caught.value.hint or "")
    assert sorted(path.name for path in directory.iterdir()) == ["plan.json", "records.jsonl"]


def test_a_crash_before_the_rename_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "journal"
    path.write_text("old")

    def crash(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        atomic.replace_text(path, "new")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_a_garbled_launch_json_says_what_to_do(directory: Path):
    write_launch(directory)
    (directory / "launch.json").write_text("{")
    with pytest.raises(UsageError, match=r"launch\.json cannot be read") as caught:
        read_launch(directory)
    assert "resume" in (caught.value.hint or "")


@pytest.fixture
def patterns(tmp_path: Path) -> Path:
    launch = tmp_path / "b00-fast-ethernet"
    launch.mkdir()
    shutil.copy(FIXTURES / "record-patterns.jsonl", launch / "records.jsonl")
    return launch


def test_the_clocks_of_the_ranks_are_in_launch_json(patterns: Path):
    write_launch(patterns)
    clocks = read_launch(patterns).clocks
    assert [(clock.rank, clock.phase, clock.offset_ns, clock.is_shared) for clock in clocks] == [
        (1, "begin", -1500.5, False),
        (2, "begin", 0.0, True),
        (1, "end", -1488.0, False),
    ]


def test_every_number_of_every_channel_is_a_row_beside_what_the_channel_lost(patterns: Path):
    summary = write_launch(patterns)
    channels = pl.read_parquet(patterns / "channels.parquet")
    assert channels.height == summary.table_rows["channels"] == 2 + 4 + 4
    assert channels.columns == list(CHANNEL_SCHEMA)
    incast = channels.filter(cell=0)
    assert incast.select("source", "destination", "bytes").rows() == [(1, 0, 262144), (2, 0, 196608)]
    one_way = channels.filter(cell=1, source=0)
    assert (one_way["time_ns"].to_list(), one_way["bytes"].to_list()) == ([-120, 21000], [None, None])
    assert one_way["quantity"].to_list() == ["one_way"] * 2
    pairs = channels.filter(cell=2)
    assert pairs.select("destination", "round", "index", "time_ns", "lost").rows() == [
        (1, 0, 0, 50000, 0),
        (1, 0, 1, 51000, 0),
        (2, 1, 0, 52000, 0),
        (2, 2, None, None, 3),
    ]


def test_a_cell_keeps_its_channels_its_values_and_its_congestor(patterns: Path):
    write_launch(patterns)
    rows = {row["cell"]: row for row in pl.read_parquet(patterns / "cells.parquet").to_dicts()}
    assert [rows[cell]["channels"] for cell in range(5)] == [2, 1, 1, 1, 1]
    assert [rows[cell]["missed"] for cell in range(5)] == [0, 0, 0, 1, 0]
    assert json.loads(rows[3]["values"]) == {"pure_ns": 215000.0, "compute_ns": 215000.0, "overlap": 0.62}
    assert [rows[cell]["congestor"] is None for cell in range(5)] == [True] * 4 + [False]
    assert PlanCongestor.model_validate_json(rows[4]["congestor"]).ranks == (3, 2)
    assert [rows[cell]["variant"] for cell in range(5)] == [
        "3 ranks",
        "",
        "3 ranks,schedule=rounds",
        "3 ranks,mode=nonblocking",
        "beside incast tcp 64 KiB of 2 ranks flows=16",
    ]


def test_a_sample_that_missed_its_start_is_kept_and_marked(patterns: Path):
    write_launch(patterns)
    samples = pl.read_parquet(patterns / "samples.parquet").filter(cell=3)
    assert samples["time_ns"].to_list() == [900000, 210000, 9900000, 220000]
    assert samples["missed"].to_list() == [False, False, True, False]


def test_a_launch_whose_channels_are_gone_says_so(patterns: Path):
    write_launch(patterns)
    (patterns / "channels.parquet").unlink()
    with pytest.raises(UsageError, match=r"channels\.parquet cannot be read"):
        read_launch(patterns)


def test_a_disk_that_fails_while_parquet_is_written_is_said_and_the_raw_record_stays(
    directory: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        raise pl.exceptions.ComputeError("parquet: File out of specification: Invalid thrift: transport error")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    with pytest.raises(EnvironmentLacks, match=r"cells\.parquet cannot be written: parquet: File out"):
        write_launch(directory)
    assert (directory / "records.jsonl").exists()
    assert not list(directory.glob(".*.tmp"))
