from __future__ import annotations

import errno
import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from fabricbench.campaign import run as running
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.presets import QUICK
from fabricbench.campaign.run import resume_run, start_run
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.venue import OwnLab, Standing
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab import parse_fabrics
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.testbed.model import LauncherKind, Testbed


def test_a_directory_that_holds_a_run_is_not_overwritten_but_resumed(tmp_path: Path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(UsageError, match="it holds a run") as raised:
        RunDirectory(tmp_path).create()
    assert raised.value.hint == f"go on with it by `fabricbench resume {tmp_path}`, or give another -o"


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match="is not empty"):
        RunDirectory(tmp_path).create()


def test_a_file_is_no_run_directory(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        RunDirectory(tmp_path / "file").create()


def test_two_cannot_run_in_one_directory_at_once(tmp_path: Path):
    first, second = RunDirectory(tmp_path), RunDirectory(tmp_path)
    with first.locked(), pytest.raises(UsageError, match="another fabricbench is running"), second.locked():
        pass
    with second.locked():
        pass


def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fabricbench.deadline.fcntl.flock", refuse)
    with (
        pytest.raises(EnvironmentLacks, match="cannot be locked: Function not implemented"),
        RunDirectory(tmp_path).locked(),
    ):
        pass


def test_what_is_no_run_cannot_be_resumed(tmp_path: Path):
    with pytest.raises(UsageError, match="not a run that can be resumed"):
        RunDirectory(tmp_path).read_plan()
    with pytest.raises(UsageError, match="there is no run directory"), RunDirectory(tmp_path / "none").locked():
        pass


def test_resuming_what_is_no_run_leaves_nothing_in_it(tmp_path: Path):
    for path in (tmp_path, tmp_path / "none", Path("/dev/null")):
        with pytest.raises(UsageError):
            resume_run(path, notify=print)
    assert list(tmp_path.iterdir()) == []


def test_resuming_somebody_elses_folder_asks_to_remove_nothing_of_it(tmp_path: Path):
    os.mkfifo(tmp_path / "mailbox")
    (tmp_path / "shared").symlink_to("/usr/share")
    with pytest.raises(UsageError, match=r"is not a run directory: it has no plan\.json") as raised:
        resume_run(tmp_path, notify=print)
    assert "remove" not in str(raised.value) + str(raised.value.hint)


def test_a_plan_and_its_venue_survive_being_written_down(tmp_path: Path, testbed: Testbed):
    directory = RunDirectory(tmp_path)
    lab = OwnLab(nodes=3, fabrics=tuple(parse_fabrics("fast-ethernet,myrinet:delay=5us")))
    for venue in (Standing(given=testbed), lab):
        stored = StoredPlan(campaign=QUICK, plan=plan_run(QUICK, venue.testbed(), seed=1), venue=venue)
        directory.write_plan(stored)
        assert directory.read_plan() == stored


def test_what_an_earlier_attempt_left_is_kept_aside_each_under_its_number(tmp_path: Path):
    directory = RunDirectory(tmp_path)
    for content in ("one", "two", "three"):
        launch = directory.prepare("b00-a")
        assert list(launch.glob("*.log")) == []
        (launch / "stderr.log").write_text(content)
    kept = {path.parent.name: path.read_text() for path in tmp_path.glob("launches/b00-a/attempt-*/stderr.log")}
    assert kept == {"attempt-1": "one", "attempt-2": "two"}


@pytest.mark.slow
def test_a_run_that_could_not_begin_leaves_nothing_and_can_be_started_again(tmp_path: Path, testbed: Testbed):
    nowhere = testbed.fabrics[0].model_copy(update={"interface": "nowhere0"})
    here = testbed.model_copy(update={"launcher": LauncherKind.LOCAL, "lab": None, "fabrics": (nowhere,)})
    plan = plan_run(QUICK, here, seed=1)
    (tmp_path / "was there").mkdir()
    for preflight in (True, False, True):
        for path in (tmp_path / "new/run", tmp_path / "was there"):
            with pytest.raises(EnvironmentLacks, match=r"no interface '?nowhere0"):
                start_run(path, QUICK, Standing(given=here), plan, notify=lambda _: None, preflight=preflight)
        assert [path.name for path in tmp_path.rglob("*")] == ["was there"]


def test_an_attempt_is_numbered_after_the_highest_there_is_and_overwrites_none(tmp_path: Path):
    directory = RunDirectory(tmp_path)
    launch = directory.prepare("b00-slow")
    for name in ("attempt-2", "attempt-7", "attempt-old"):
        (launch / name).mkdir()
        (launch / name / "stderr.log").write_text(name)
    (launch / "stderr.log").write_text("new")
    directory.set_aside("b00-slow")
    assert (launch / "attempt-8/stderr.log").read_text() == "new"
    (launch / "attempt-7.moving").mkdir()
    (launch / "attempt-7.moving/stderr.log").write_text("half moved")
    directory.finish_setting_aside("b00-slow")
    assert (launch / "attempt-9/stderr.log").read_text() == "half moved"
    assert (launch / "attempt-7/stderr.log").read_text() == "attempt-7"


def test_a_run_that_began_between_the_first_look_and_the_lock_is_not_overwritten(
    tmp_path: Path, testbed: Testbed, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "run"
    locked = RunDirectory.locked

    def another_was_faster(self: RunDirectory) -> AbstractContextManager[None]:
        (self.path / "plan.json").write_text("theirs")
        return locked(self)

    monkeypatch.setattr(RunDirectory, "locked", another_was_faster)
    with pytest.raises(UsageError, match="it holds a run"):
        start_run(path, QUICK, Standing(given=testbed), plan_run(QUICK, testbed, seed=1), notify=print, preflight=False)
    assert (path / "plan.json").read_text() == "theirs"


def test_the_folder_of_a_launch_is_on_the_disk_before_anything_tells_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    RunDirectory(tmp_path).prepare("b00-a")
    assert {tmp_path, tmp_path / "launches"} <= set(synced)


def test_a_line_of_the_journal_is_on_the_disk_when_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    Journal(tmp_path).append(JournalEvent.PLANNED)
    assert synced == [tmp_path / "journal.jsonl"]


def test_what_a_kill_left_half_written_is_gone_once_the_run_goes_on(
    tmp_path: Path, testbed: Testbed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(running, "_execute", lambda *_, **__: None)
    directory = RunDirectory(tmp_path)
    plan = plan_run(QUICK, testbed, seed=1)
    local = testbed.model_copy(update={"launcher": LauncherKind.LOCAL})
    directory.write_plan(StoredPlan(campaign=QUICK, plan=plan, venue=Standing(given=local)))
    (tmp_path / "launches/b00-slow").mkdir(parents=True)
    for name in (".manifest.json.77.tmp", "launches/b00-slow/.samples.parquet.77.tmp"):
        (tmp_path / name).write_text("half")
    (tmp_path / "notes.tmp").write_text("somebody's own")
    resume_run(tmp_path, notify=print, preflight=False)
    assert [path.name for path in tmp_path.rglob("*.tmp")] == ["notes.tmp"]


@pytest.mark.parametrize("is_half", [False, True], ids=["whole line", "half a line"])
def test_what_a_run_left_that_died_before_its_plan_was_whole_is_no_run_and_is_begun_anew(
    tmp_path: Path, testbed: Testbed, monkeypatch: pytest.MonkeyPatch, *, is_half: bool
):
    path = tmp_path / "run"
    stored = StoredPlan(campaign=QUICK, plan=plan_run(QUICK, testbed, seed=1), venue=Standing(given=testbed))
    with monkeypatch.context() as killed:
        killed.setattr("fabricbench.record.journal.replace_text", lambda *_: None)
        path.mkdir()
        RunDirectory(path).write_plan(stored)
    if is_half:
        os.truncate(path / "journal.jsonl", 20)
    begun: list[list[JournalEvent]] = []
    monkeypatch.setattr(
        running, "_execute", lambda *_, **__: begun.append([one.event for one in Journal(path).entries()])
    )
    start_run(path, QUICK, Standing(given=testbed), stored.plan, notify=print, preflight=False)
    assert begun == [[JournalEvent.DESCRIBED, JournalEvent.PLANNED]]
    assert RunDirectory(path).read_plan().plan == stored.plan


def test_a_journal_that_tells_of_launches_is_no_stub(tmp_path: Path):
    Journal(tmp_path).append(JournalEvent.STARTED, "b00-slow")
    with pytest.raises(UsageError, match="is not empty"):
        RunDirectory(tmp_path).create()


def test_a_run_that_has_no_disk_at_all_says_that_nothing_is_left_to_resume(
    tmp_path: Path, testbed: Testbed, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr("fabricbench.campaign.run_directory.synced", lambda _: None)
    plan = plan_run(QUICK, testbed, seed=1)
    with pytest.raises(EnvironmentLacks, match="no space left") as raised:
        start_run(tmp_path / "run", QUICK, Standing(given=testbed), plan, notify=print, preflight=False)
    assert "resume" not in str(raised.value.hint)
    assert not (tmp_path / "run").exists()
