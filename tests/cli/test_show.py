from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import polars as pl
import pytest
from _pytest.capture import CaptureResult

from fabricbench import cli
from fabricbench.record.store import Run
from support.synthetic_run import ladder_cells, write_synthetic_run

COMMAND = [sys.executable, "-c", "from fabricbench.cli import main; main()", "show"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("run")
    cells = ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64, 1024), samples=20)
    return write_synthetic_run(path, cells=cells, blocks=2, missing=["b01-slow"])


class Show(Protocol):
    """Takes the arguments, and returns what was written to stdout and stderr."""

    def __call__(self, *arguments: str | Path, code: int = 0) -> CaptureResult[bytes]: ...


@pytest.fixture
def show(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Show:
    """Call `fabricbench show` in this process: one of its own takes two seconds of processor to start."""

    def call(*arguments: str | Path, code: int = 0) -> CaptureResult[bytes]:
        monkeypatch.setattr(sys, "argv", ["fabricbench", "show", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        streams = capsysbinary.readouterr()
        assert int(end.value.code or 0) == code, streams.err.decode()
        return streams

    return call


def read(format_: str, data: bytes) -> pl.DataFrame:
    if format_ == "csv":
        return pl.read_csv(io.BytesIO(data))
    return pl.DataFrame(json.loads(data)) if format_ == "json" else pl.read_parquet(io.BytesIO(data))


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_every_sample_is_shown_in_every_format(run: Run, format_: str, show: Show):
    frame = read(format_, show(run.path, "--format", format_).out)
    samples = run.samples().collect()
    assert frame.height == samples.height
    assert frame["time_ns"].to_list() == samples["time_ns"].to_list()
    assert {"fabric", "layer", "pattern", "message_bytes", "value", "unit"} <= set(frame.columns)


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_the_summary_has_a_row_for_each_fabric_and_cell(run: Run, format_: str, show: Show):
    frame = read(format_, show(run.path, "--summary", "--format", format_).out)
    assert frame.height == run.cells().select("fabric", "cell").unique().height
    assert frame["median"].null_count() == 0


def test_without_a_terminal_the_default_is_csv(run: Run, show: Show):
    assert show(run.path, "--summary").out.startswith(b"fabric,layer,")


def test_the_text_says_what_is_missing_and_that_it_is_emulated(run: Run, show: Show):
    lines = show(run.path, "--format", "text").out.decode().splitlines()
    assert lines[0] == "campaign synthetic on synthetic (emulated fabrics): 3 launches, 1 not done yet"
    assert lines[1].split()[:4] == ["fabric", "layer", "pattern", "receive"]
    assert any("µs" in line for line in lines[2:])


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_other_formats_say_on_stderr_what_is_missing(run: Run, format_: str, show: Show):
    told = show(run.path, "--summary", "--format", format_).err.decode()
    assert told == "campaign synthetic on synthetic (emulated fabrics): 3 launches, 1 not done yet\n"


def test_a_file_takes_the_place_of_stdout(run: Run, tmp_path: Path, show: Show):
    path = tmp_path / "samples.parquet"
    assert show(run.path, "--format", "parquet", "-o", path).out == b""
    assert pl.read_parquet(path).height == run.samples().collect().height


def test_a_run_without_launches_gives_tables_without_rows(tmp_path: Path, show: Show):
    cells = ladder_cells({"a": 1e8}, samples=5)
    empty = write_synthetic_run(tmp_path, cells=cells, blocks=1, missing=["b00-a"])
    assert read("csv", show(empty.path, "--format", "csv").out).is_empty()
    assert json.loads(show(empty.path, "--format", "json").out) == []
    assert json.loads(show(empty.path, "--format", "json", "--summary").out) == []
    assert read("parquet", show(empty.path, "--format", "parquet").out).is_empty()


def test_a_folder_that_is_no_run_is_a_usage_error(tmp_path: Path, show: Show):
    assert b"what to do" in show(tmp_path, code=2).err


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_a_full_disk_is_told_with_what_to_do(run: Run, format_: str, show: Show):
    error = show(run.path, "--format", format_, "-o", "/dev/full", code=3).err
    assert b"no space left" in error
    assert b"Traceback" not in error


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_a_reader_that_has_seen_enough_is_no_error(run: Run, format_: str):
    command = [*COMMAND, str(run.path), "--format", format_]
    shown = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert shown.stdout is not None
    shown.stdout.read(1)
    shown.stdout.close()
    assert shown.stderr is not None
    said = shown.stderr.read().decode()
    shown.stderr.close()
    assert shown.wait(timeout=60) == 0
    assert "not done yet" in said  # of this run, which is unfinished, and nothing of the pipe
    assert len(said.splitlines()) == 1


def test_the_text_names_what_was_kept_aside(tmp_path: Path, show: Show):
    made = write_synthetic_run(tmp_path, cells=ladder_cells({"slow": 1e8}, sizes=(64,), samples=20), blocks=2)
    for attempt in ("attempt-1", "attempt-2"):
        (made.path / "launches" / "b01-slow" / attempt).mkdir()
    lines = show(made.path, "--format", "text").out.decode().splitlines()
    named = "b01-slow/attempt-1, b01-slow/attempt-2"
    assert lines[1] == f"earlier attempts are kept aside and not among them: {named}"
