from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from fabricbench.api import compare, verify
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.store import Run
from support.calling import Call
from support.synthetic_run import SyntheticCell, forget_hashes, write_synthetic_run

CELL = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 1e5, "b": 2e5}, samples=20)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run as `run` writes it: with a journal that has the hashes of what is not in a launch.json."""
    run = write_synthetic_run(tmp_path / "run", cells=[CELL], blocks=2)
    journal = Journal(run.path)
    journal.append(JournalEvent.DESCRIBED, sha256=journal.hashes(run.path / "manifest.json"))
    for launch in run.launches:
        journal.append(JournalEvent.FINISHED, launch.launch_id, sha256=journal.hashes(launch.directory / "launch.json"))
    return run


def test_a_run_that_is_whole_and_unaltered_ends_with_0_and_tells_the_hash_of_the_report(run: Run, fabricbench: Call):
    code, out, err = fabricbench("verify", str(run.path))
    assert code == 0, err
    found = verify(run.path)
    assert (found.verdict, found.planned, found.finished, found.files) == ("whole", 4, 4, 13)
    assert f"data SHA-256 {found.data_sha256}" in out
    assert compare(run).headline.data_sha256 == (found.data_sha256,)


def test_what_was_altered_is_listed_and_ends_with_1(run: Run, fabricbench: Call):
    path = run.path / "launches/b00-a/samples.parquet"
    path.write_bytes(path.read_bytes() + b" ")
    (run.path / "launches/b01-a/launch.json").write_text("{}")
    (run.path / "launches/b01-b/cells.parquet").write_text("")
    manifest = run.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"seed": 1', '"seed": 2'))
    code, out, err = fabricbench("verify", str(run.path), "--format", "json")
    assert code == 1
    found = json.loads(out)
    assert found["verdict"] == "altered"
    assert [one["path"] for one in found["altered"]] == [
        "launches/b00-a/samples.parquet",
        "launches/b01-a/launch.json",
        "launches/b01-b/cells.parquet",
        "manifest.json",
    ]
    assert "not as they were written: 4 files in" in err


def test_a_finished_launch_that_is_gone_is_altered_and_one_that_never_ran_is_missing(run: Run, fabricbench: Call):
    shutil.rmtree(run.path / "launches/b01-b")
    assert [one.path for one in verify(run.path).altered] == ["launches/b01-b/launch.json"]
    journal = run.path / "journal.jsonl"
    journal.write_text("".join(line for line in journal.read_text().splitlines(keepends=True) if "b01-b" not in line))
    code, out, _ = fabricbench("verify", str(run.path))
    assert code == 4
    assert "missing: b01-b" in out


def test_a_run_of_an_earlier_version_cannot_be_told_and_ends_with_5(run: Run, fabricbench: Call):
    (run.path / "journal.jsonl").unlink()
    for launch in run.launches:
        forget_hashes(launch.directory)
    code, _, err = fabricbench("verify", str(run.path))
    assert code == 5
    assert "cannot tell: no hashes" in err


def test_what_is_advised_can_be_done_about_the_file_that_was_altered(run: Run, fabricbench: Call):
    journal = Journal(run.path)
    (run.path / "plan.json").write_text("{}")
    journal.append(JournalEvent.DESCRIBED, sha256=journal.hashes(run.path / "plan.json"))
    (run.path / "plan.json").write_text("{ }")
    code, _, err = fabricbench("verify", run.path)
    assert (code, "restore plan.json from a copy: nothing writes it again" in err, "resume" in err) == (1, True, False)
    (run.path / "launches/b01-a/launch.json").write_text("{}")
    _, _, err = fabricbench("verify", run.path)
    assert f"for the others `fabricbench resume {run.path}` measures their launches again" in err


def test_what_is_no_run_is_refused(tmp_path: Path, fabricbench: Call):
    assert fabricbench("verify", str(tmp_path))[0] == 2


def test_a_file_of_a_launch_that_is_gone_is_altered_and_named(run: Run, fabricbench: Call):
    (run.path / "launches/b00-b/samples.parquet").unlink()
    code, out, _ = fabricbench("verify", str(run.path))
    assert code == 1
    assert "altered: launches/b00-b/samples.parquet: it is gone" in out
    assert [one.launch_id for one in Run.open(run.path).damaged] == ["b00-b"]


def test_a_pipe_in_the_place_of_a_file_hangs_nobody(run: Run):
    path = run.path / "launches/b00-b/launch.json"
    path.unlink()
    os.mkfifo(path)
    for opened in (verify, Run.open):
        with pytest.raises(UsageError, match=r"launches/b00-b/launch\.json is neither a file nor a folder"):
            opened(run.path)


def test_a_pipe_in_the_place_of_a_file_without_a_hash_hangs_nobody(run: Run):
    forget_hashes(run.path / "launches/b00-b")
    (run.path / "journal.jsonl").unlink()
    path = run.path / "launches/b00-b/samples.parquet"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UsageError, match=r"samples\.parquet is neither a file nor a folder"):
        Run.open(run.path)
