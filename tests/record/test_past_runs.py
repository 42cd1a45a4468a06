from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fabricbench.errors import UsageError
from fabricbench.record import decoding
from fabricbench.record import past_runs as listing
from fabricbench.record.account import account_of
from fabricbench.record.lock import locked
from fabricbench.record.manifest import MANIFEST, read_manifest, write_manifest
from fabricbench.record.past_run import PastRun, past_run
from fabricbench.record.past_runs import past_runs
from fabricbench.record.run_state import State
from fabricbench.record.verification import RunVerdict, verify
from support.calling import Call
from support.synthetic_run import ladder_cells, write_synthetic_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("results")
    cells = ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64,), samples=5)
    for number, (name, missing) in enumerate([("old", []), ("deep/new", ["b01-slow"]), ("hurt", [])]):
        path = top / name
        path.mkdir(parents=True)
        write_synthetic_run(path, cells=cells, blocks=2, missing=missing, unproven=["fast"] if name == "old" else [])
        manifest = read_manifest(path)
        write_manifest(path, manifest.model_copy(update={"created": manifest.created + timedelta(days=number)}))
    (top / "hurt" / MANIFEST).write_text("{")
    (top / "site").mkdir()
    (top / "site" / MANIFEST).write_text("{}")  # a web page's, say
    return top


def test_runs_are_listed_newest_first_with_what_is_there_of_them(folder: Path):
    found = past_runs(folder)
    assert [Path(run.path).name for run in found] == ["new", "old", "hurt"]
    assert [run.state for run in found] == [State.INCOMPLETE, State.COMPLETE, State.DAMAGED]
    assert [(run.blocks_done, run.blocks_planned) for run in found] == [(1, 2), (2, 2), (None, None)]
    assert set(found[0].fabrics) == {"slow", "fast"}
    assert found[2].reason is not None


def test_fabrics_whose_path_nobody_proved_are_told(folder: Path):
    new, old, _ = past_runs(folder)
    assert (new.unproven, old.unproven) == ((), ("fast",))


def test_a_folder_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no folder"):
        past_runs(tmp_path / "nowhere")


def test_the_command_lists_them_for_people_and_for_programs(
    folder: Path, fabricbench: Call, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(folder)

    def told(*arguments: str) -> str:
        code, out, _ = fabricbench("runs", *arguments)
        assert code == 0
        return out

    assert [line.split()[0] for line in told().splitlines()[2:5]] == ["deep/new", "old", "hurt"]
    assert told().splitlines()[3].endswith("complete, path unproven: fast")
    assert [run["state"] for run in json.loads(told("--format", "json"))] == ["incomplete", "complete", "damaged"]
    assert told("site").startswith("no runs in ")


def test_a_list_of_runs_decodes_no_table_and_leaves_hashes_to_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = write_synthetic_run(tmp_path / "run", cells=ladder_cells({"a": 1e8}, sizes=(64,), samples=5), blocks=2)
    samples = run.path / "launches/b00-a/samples.parquet"
    samples.write_bytes(b"x" * samples.stat().st_size)
    shutil.copytree(run.path / "launches/b01-a", run.path / "launches/b01-a/attempt-1")
    with monkeypatch.context() as patch:
        patch.setattr(decoding.DECODER, "check_content", lambda *_: pytest.fail("a table was decoded"))
        (found,) = past_runs(tmp_path)
    assert (found.state, found.launches_measured) == (State.COMPLETE, 2)
    assert [one.set_aside for one in found.account.subjects] == [1]
    assert verify(run.path).verdict is RunVerdict.ALTERED


def test_a_table_that_is_gone_is_noticed_all_the_same(tmp_path: Path):
    run = write_synthetic_run(tmp_path / "run", cells=ladder_cells({"a": 1e8}, sizes=(64,), samples=5), blocks=2)
    (run.path / "launches/b00-a/samples.parquet").unlink()
    (found,) = past_runs(tmp_path)
    assert found.state is State.DAMAGED
    assert "samples.parquet cannot be read" in str(found.reason)


def test_why_tests_failed_is_read_from_checked_cells(tmp_path: Path):
    cells = [replace(one, fails_in=frozenset({1})) for one in ladder_cells({"a": 1e8}, sizes=(64,), samples=5)[:1]]
    run = write_synthetic_run(tmp_path / "run", cells=cells, blocks=3)
    (found,) = past_runs(tmp_path)
    assert [one.failed_test_reason for one in found.account.subjects] == ["no answer"]
    table = run.path / "launches/b01-a/cells.parquet"
    table.write_bytes(b"x" * table.stat().st_size)
    (found,) = past_runs(tmp_path)
    assert found.state is State.DAMAGED


def test_a_list_and_an_open_run_count_the_same(tmp_path: Path):
    cells = ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64,), samples=5)
    run = write_synthetic_run(tmp_path / "run", cells=cells, blocks=3, invalid=["b01-fast"], missing=["b02-slow"])
    (found,) = past_runs(tmp_path)
    assert found.account == account_of(run)
    assert found.launches_done == len(run.launches)


@pytest.mark.slow
def test_a_list_of_runs_that_lost_nothing_loads_no_part_of_reports(tmp_path: Path):
    write_synthetic_run(tmp_path / "runs/run", cells=ladder_cells({"a": 1e8}, sizes=(64,), samples=5), blocks=2)
    program = (
        "import sys; sys.argv[1:] = ['runs', sys.argv[1]]\n"
        "from fabricbench.cli import main\n"
        "from fabricbench.record import past_runs\n"
        "past_runs.SETTLED_NS = 0\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = ('scipy', 'altair', 'fabricbench.report.first_screen', 'numpy', 'polars')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "runs")]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for loaded in ("['numpy', 'polars']", "[]"):  # the second time the index tells it
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, env=environment)
        assert done.stdout.splitlines()[-1] == loaded
        assert "complete" in done.stdout


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Which runs are read from their files, with an index of its own that keeps also what was written just now."""
    read: list[str] = []

    def reading(path: Path) -> PastRun:
        read.append(path.name)
        return past_run(path)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(listing, "SETTLED_NS", 0)
    monkeypatch.setattr(listing, "past_run", reading)
    return read


def two_runs(top: Path) -> Path:
    cells = ladder_cells({"a": 1e8}, sizes=(64,), samples=5)[:1]
    for name in ("one", "two"):
        write_synthetic_run(top / name, cells=cells, blocks=2)
    return top


def test_only_what_changed_is_read_again(told: list[str], tmp_path: Path):
    top = two_runs(tmp_path / "runs")
    first = past_runs(top)
    assert (past_runs(top), told) == (first, ["one", "two"])
    path = top / "one/launches/b01-a/launch.json"
    kept = path.stat()
    path.write_text(path.read_text().replace('"proof": "proven"', '"proof": "rumour"'))
    assert path.stat().st_size == kept.st_size
    os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    told.clear()
    found = {Path(run.path).name: run.state for run in past_runs(top)}
    assert told == ["one"]
    assert found == {"one": State.DAMAGED, "two": State.COMPLETE}
    shutil.rmtree(top / "one")
    assert [Path(run.path).name for run in past_runs(top)] == ["two"]
    assert told == ["one"]


@pytest.mark.parametrize("spoil", ["cut", "other version", "open to others", "a folder", "no cache at all"])
def test_an_index_that_is_of_no_use_is_as_if_there_were_none(
    told: list[str], tmp_path: Path, spoil: str, monkeypatch: pytest.MonkeyPatch
):
    top = two_runs(tmp_path / "runs")
    first = past_runs(top)
    (index,) = (tmp_path / "cache/fabricbench/runs").iterdir()
    match spoil:
        case "cut":
            index.write_bytes(index.read_bytes()[:-9])
        case "other version":
            index.write_text(index.read_text().replace(listing.MADE_BY, "fabricbench 0.0.0, index 0"))
        case "open to others":
            index.chmod(0o666)
        case "a folder":
            index.unlink()
            index.mkdir()
        case _:
            (tmp_path / "file").touch()
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    told.clear()
    assert past_runs(top) == first
    assert told == ["one", "two"]


def test_a_run_that_goes_on_has_links_or_changed_just_now_is_not_kept(
    told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    top = two_runs(tmp_path / "runs")
    with locked(top / "one"):
        past_runs(top)
        past_runs(top)
    assert sorted(told) == ["one", "one", "two"]
    (top / "two/launches").rename(top / "two/elsewhere")
    (top / "two/launches").symlink_to("elsewhere")
    told.clear()
    assert [past_runs(top), past_runs(top)] == [past_runs(top)] * 2
    assert told.count("two") == 3
    monkeypatch.setattr(listing, "SETTLED_NS", 3_600_000_000_000)
    told.clear()
    past_runs(top)
    assert told == ["one", "two"]


def test_runs_are_looked_for_by_what_they_are(folder: Path, fabricbench: Call):
    def names(*arguments: str) -> list[str]:
        code, out, _ = fabricbench("runs", folder, "--format", "json", *arguments)
        assert code == 0
        return [Path(run["path"]).name for run in json.loads(out)]

    assert names("--fabric", "fa*", "--fabric", "none") == ["new", "old"]
    assert names("--host", "n1", "--campaign", "synth*") == ["new", "old"]
    assert names("--host", "n7") == []
    assert names("--state", "incomplete", "--state", "damaged") == ["new", "hurt"]
    day = past_runs(folder)[1].created
    assert day is not None
    assert names("--until", f"{day:%Y-%m-%d}") == ["old"]
    assert names("--since", f"{day + timedelta(days=1):%Y-%m-%d}") == ["new"]
    code, out, err = fabricbench("runs", folder, "--campaign", "other")
    assert (code, out.startswith("none of 3 runs in ")) == (0, True)
    assert err.startswith("1 run cannot be read")
    code, _, err = fabricbench("runs", folder, "--since", "yesterday")
    assert (code, "--since" in err) == (2, True)


def test_who_was_faster_is_found_once_and_told_again_while_the_samples_are_the_same(
    tmp_path: Path, fabricbench: Call, monkeypatch: pytest.MonkeyPatch
):
    run = write_synthetic_run(
        tmp_path / "runs" / "a", cells=ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64,), samples=5), blocks=6
    )
    monkeypatch.setattr(listing, "SETTLED_NS", 0)

    def verdict(*options: str) -> str | None:
        code, out, _ = fabricbench("runs", str(tmp_path / "runs"), "--format", "json", *options)
        assert code == 0
        (one,) = json.loads(out)
        said: str | None = one["verdict"]
        return said

    assert verdict() is None
    found = verdict("--verdicts")
    assert found is not None
    assert found.startswith("fast seems faster")
    code, out, _ = fabricbench("runs", str(tmp_path / "runs"))
    assert (code, found in out) == (0, True)
    assert verdict() == found
    samples = next(run.path.glob("launches/*/samples.parquet"))
    samples.write_bytes(samples.read_bytes())
    assert verdict() is None


def test_a_copy_of_a_run_is_marked_and_its_original_is_not(tmp_path: Path, fabricbench: Call):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write_synthetic_run(tmp_path / name, cells=ladder_cells({"a": 1e8}, sizes=(64,), samples=5), blocks=1)
        manifest = read_manifest(tmp_path / name)
        later = timedelta(microseconds=name == "second")
        write_manifest(tmp_path / name, manifest.model_copy(update={"created": manifest.created + later}))
    shutil.copytree(tmp_path / "first", tmp_path / "z-backup")
    found = {Path(run.path).name: run.copy_of for run in past_runs(tmp_path)}
    assert found == {"first": None, "second": None, "z-backup": str(tmp_path / "first")}
    _, out, _ = fabricbench("runs", tmp_path)
    assert f"z-backup: a copy of {tmp_path / 'first'}" in out
    assert out.count("a copy of") == 1


@pytest.mark.parametrize(("since", "until"), [("2026-11-13", "2026-11-12"), ("2026-11-12T10:00", "2026-11-12T10:00")])
def test_dates_between_which_there_is_none_are_refused(since: str, until: str, tmp_path: Path, fabricbench: Call):
    for command in ("runs", "trend"):
        code, _, err = fabricbench(command, tmp_path, "--since", since, "--until", until)
        assert code == 2
        assert "--since" in err
        assert "--until" in err


def test_a_day_is_between_itself_and_itself(tmp_path: Path, fabricbench: Call):
    code, _, _ = fabricbench("runs", tmp_path, "--since", "2026-11-12", "--until", "2026-11-12")
    assert code == 0
