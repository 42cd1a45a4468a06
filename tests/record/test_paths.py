"""A run directory may have any name, and a file of it may have been replaced by a thing that is no file."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from fabricbench.model import Layer, Pattern
from fabricbench.record.store import Run
from support.calling import Call
from support.synthetic_run import SyntheticCell, write_synthetic_run

CELL = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 1e5, "b": 2e5}, samples=20)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a[b]", "wh?t", "al*l", "file:x", "s3:", "two words", "%41", "~root"])
def test_a_run_is_read_whatever_its_path_is_called(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fabricbench: Call
):
    monkeypatch.chdir(tmp_path)
    path = Path(name, "run")
    write_synthetic_run(path.absolute(), cells=[CELL], blocks=3)
    run = Run.open(path)
    assert (len(run.launches), run.damaged) == (6, ())
    assert run.samples().filter(pl.col("phase") == "measured").collect().height == 120
    code, out, err = fabricbench("verify", path, "--format", "json")
    assert (code, '"altered":[]' in out.replace(" ", "").replace("\n", "")) == (5, True), err  # the run has no journal
    code, _, err = fabricbench("report", path, "-o", "page.html")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("command", ["verify", "report", "show", "compare"])
def test_a_pipe_in_place_of_the_manifest_is_refused_and_not_waited_for(command: str, tmp_path: Path, fabricbench: Call):
    os.mkfifo(tmp_path / "manifest.json")
    code, _, err = fabricbench(command, tmp_path)
    assert code == 2
    assert "manifest.json is neither a file nor a folder" in err


def test_the_list_of_runs_tells_of_a_pipe_in_place_of_a_manifest(tmp_path: Path, fabricbench: Call):
    (tmp_path / "run/launches").mkdir(parents=True)
    os.mkfifo(tmp_path / "run/manifest.json")
    code, out, _ = fabricbench("runs", tmp_path)
    assert (code, "damaged" in out) == (0, True)
