from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from fabricbench.record.store import Run
from support.synthetic_run import ladder_cells, write_synthetic_run

COMMAND = [sys.executable, "-c", "from fabricbench.cli import main; main()", "show"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("run")
    cells = ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64, 1024), samples=20)
    return write_synthetic_run(path, cells=cells, blocks=2, missing=["b01-slow"])


def show(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run([*COMMAND, *map(str, arguments)], check=False, capture_output=True, timeout=60)
    assert done.returncode == code, done.stderr.decode()
    return done


def read(format_: str, data: bytes) -> pl.DataFrame:
    if format_ == "csv":
        return pl.read_csv(io.BytesIO(data))
    return pl.DataFrame(json.loads(data)) if format_ == "json" else pl.read_parquet(io.BytesIO(data))


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_every_sample_is_shown_in_every_format(run: Run, format_: str):
    frame = read(format_, show(run.path, "--format", format_).stdout)
    samples = run.samples().collect()
    assert frame.height == samples.height
    assert frame["time_ns"].to_list() == samples["time_ns"].to_list()
    assert {"fabric", "layer", "pattern", "message_bytes", "value", "unit"} <= set(frame.columns)


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_the_summary_has_a_row_for_each_fabric_and_cell(run: Run, format_: str):
    frame = read(format_, show(run.path, "--summary", "--format", format_).stdout)
    assert frame.height == run.cells().select("fabric", "cell").unique().height
    assert frame["median"].null_count() == 0


def test_without_a_terminal_the_default_is_csv(run: Run):
    assert show(run.path, "--summary").stdout.startswith(b"fabric,layer,")


def test_the_text_says_what_is_missing_and_that_it_is_emulated(run: Run):
    lines = show(run.path, "--format", "text").stdout.decode().splitlines()
    assert lines[0] == "campaign synthetic on synthetic (emulated fabrics): 3 launches, 1 not done yet"
    assert lines[1].split()[:4] == ["fabric", "layer", "pattern", "receive"]
    assert any("µs" in line for line in lines[2:])


def test_a_file_takes_the_place_of_stdout(run: Run, tmp_path: Path):
    path = tmp_path / "samples.parquet"
    assert show(run.path, "--format", "parquet", "-o", path).stdout == b""
    assert pl.read_parquet(path).height == run.samples().collect().height


def test_a_run_without_launches_gives_tables_without_rows(tmp_path: Path):
    cells = ladder_cells({"a": 1e8}, samples=5)
    empty = write_synthetic_run(tmp_path, cells=cells, blocks=1, missing=["b00-a"])
    assert read("csv", show(empty.path, "--format", "csv").stdout).is_empty()
    assert json.loads(show(empty.path, "--format", "json").stdout) == []
    assert json.loads(show(empty.path, "--format", "json", "--summary").stdout) == []
    assert read("parquet", show(empty.path, "--format", "parquet").stdout).is_empty()


def test_a_folder_that_is_no_run_is_a_usage_error(tmp_path: Path):
    assert b"what to do" in show(tmp_path, code=2).stderr


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_a_full_disk_is_told_with_what_to_do(run: Run, format_: str):
    error = show(run.path, "--format", format_, "-o", "/dev/full", code=3).stderr
    assert b"no space left" in error
    assert b"Traceback" not in error


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_a_reader_that_has_seen_enough_is_no_error(run: Run, format_: str):
    command = [*COMMAND, str(run.path), "--format", format_]
    shown = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert shown.stdout is not None
    shown.stdout.read(1)
    shown.stdout.close()
    assert shown.stderr is not None
    assert shown.stderr.read() == b""
    shown.stderr.close()
    assert shown.wait(timeout=60) == 0


def test_the_text_names_what_was_kept_aside(tmp_path: Path):
    made = write_synthetic_run(tmp_path, cells=ladder_cells({"slow": 1e8}, sizes=(64,), samples=20), blocks=2)
    for attempt in ("attempt-1", "attempt-2"):
        (made.path / "launches" / "b01-slow" / attempt).mkdir()
    lines = show(made.path, "--format", "text").stdout.decode().splitlines()
    named = "b01-slow/attempt-1, b01-slow/attempt-2"
    assert lines[1] == f"earlier attempts are kept aside and not among them: {named}"
