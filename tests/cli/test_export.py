"""`fabricbench export`: where its files go, what is never replaced, what is said."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from support.calling import Call
from support.exported_run import exported_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported_run(tmp_path_factory.mktemp("folder") / "run").path


def test_a_text_goes_to_stdout_and_what_is_left_out_to_stderr(run: Path, fabricbench: Call):
    code, out, err = fabricbench("export", run, "--format", "benchstat")
    assert code == 0
    assert out.startswith("fabricbench: ")
    assert "benchstat: left out 3 results: path refuted: the traffic went another way" in err
    assert "LOST: " in err
    assert fabricbench("export", run, "--format", "benchstat", "-o", "-")[1] == out


def test_a_file_that_is_there_is_replaced_by_force_alone(run: Path, tmp_path: Path, fabricbench: Call):
    path = tmp_path / "x.csv"
    assert fabricbench("export", run, "--format", "csv", "-o", path)[0] == 0
    before = path.read_text()
    path.write_text("mine")
    code, _, err = fabricbench("export", run, "--format", "csv", "-o", path)
    assert (code, path.read_text()) == (2, "mine")
    assert "is there already" in err
    assert "--force" in err
    assert fabricbench("export", run, "--format", "csv", "-o", path, "--force")[0] == 0
    assert path.read_text() == before
    assert [one.name for one in tmp_path.iterdir()] == ["x.csv"]


def test_several_files_go_into_a_new_folder_or_a_zip(run: Path, tmp_path: Path, fabricbench: Call):
    assert fabricbench("export", run, "--format", "osu", "-o", tmp_path / "osu")[0] == 0
    names = sorted(path.name for path in (tmp_path / "osu").iterdir())
    assert names == ["b00-fast.txt", "b00-slow.txt", "b01-slow.txt"]
    assert fabricbench("export", run, "--format", "osu", "-o", tmp_path / "osu.zip")[0] == 0
    with ZipFile(tmp_path / "osu.zip") as archive:
        assert sorted(archive.namelist()) == names
    assert fabricbench("export", run, "--format", "osu", "-o", tmp_path / "osu", "--force")[0] == 2
    code, _, err = fabricbench("export", run, "--format", "osu")
    assert code == 2
    assert "several files" in err


@pytest.mark.parametrize(
    ("name", "output", "told"),
    [
        ("osu", "x.tar", "osu is several files"),
        ("osu", "x.tar.gz", "osu is several files"),
        ("extra-p", "x.jsonl", "extra-p is several files"),
        ("csv", "x.zip", "csv is one file"),
        ("csv", "x.csv.gz", "csv is one file"),
    ],
)
def test_a_name_that_promises_what_is_not_written_is_refused(
    name: str, output: str, told: str, run: Path, tmp_path: Path, fabricbench: Call
):
    code, _, err = fabricbench("export", run, "--format", name, "-o", tmp_path / output)
    assert (code, list(tmp_path.iterdir())) == (2, [])
    assert told in err
    assert "what to do: name a" in err


def test_every_command_tells_of_a_launch_that_the_plan_does_not_name(tmp_path: Path, fabricbench: Call):
    path = exported_run(tmp_path / "run").path
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"b00-slow"', '"../../b00-slow"'))
    asked = ("verify", path), ("runs", tmp_path), ("show", path, "--summary"), ("export", path, "--format", "csv")
    for command in asked:
        _, out, err = fabricbench(*command)
        told = " ".join((out + err).split())  # where lines end is for the path's length to say
        assert "launch.json is of a launch that the manifest does not plan" in told, command[0]


def test_a_folder_that_is_not_there_is_named(run: Path, tmp_path: Path, fabricbench: Call):
    for name in ("csv", "osu"):
        code, _, err = fabricbench("export", run, "--format", name, "-o", tmp_path / "none/x")
        assert code == 2
        assert f"there is no folder {tmp_path / 'none'}" in err


def test_the_null_device_takes_everything(run: Path, fabricbench: Call):
    assert fabricbench("export", run, "--format", "parquet", "-o", "/dev/null")[0] == 0
