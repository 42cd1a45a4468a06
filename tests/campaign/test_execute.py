from __future__ import annotations

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from fabricbench.campaign.events import (
    Event,
    GroupAgain,
    LaunchFailed,
    LaunchFinished,
    LaunchStarted,
    Notice,
    RunStarted,
)
from fabricbench.campaign.execute import Execution
from fabricbench.campaign.failure import is_full
from fabricbench.campaign.journal import Happened, Journal
from fabricbench.campaign.order import groups_of
from fabricbench.campaign.plan import RunPlan, plan_run
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.errors import EnvironmentLacks, Interrupted, RunIncomplete
from fabricbench.record.launch import read_launch
from fabricbench.record.manifest import Manifest, write_manifest
from fabricbench.record.outcome import LaunchOutcome
from fabricbench.record.store import Run
from fabricbench.testbed.model import Lost, Testbed
from support.fake_launcher import FAKE_PROBE, FakeLauncher

EXPERIMENT = Experiment(layers=("memory", "frame", "tcp"), pattern="pingpong", message_bytes=(64, 1024))
CAMPAIGN = Campaign(name="tiny", blocks=3, experiments=(EXPERIMENT,))


class Setting:
    """A run directory with a plan of 3 blocks on 2 fabrics and a fake launcher."""

    def __init__(self, tmp_path: Path, testbed: Testbed) -> None:
        self.testbed = testbed
        self.directory = RunDirectory(tmp_path / "run")
        self.directory.create()
        self.plan: RunPlan = plan_run(CAMPAIGN, testbed, seed=5)
        self.launcher = FakeLauncher(tmp_path / "behaviour")
        self.events: list[Event] = []
        self.ids = [launch.launch_id for launch in self.plan.launches]

    def run(self, limit_seconds: float = 30.0, later_seconds: float = 0.0) -> None:
        """Run what is left; `later_seconds` sets the clock forward."""
        Execution(
            self.directory,
            self.plan,
            self.launcher,
            self.events.append,
            limit=lambda _estimate: limit_seconds,
            now=lambda: time.time() + later_seconds,
        ).run()

    def write_manifest(self) -> None:
        manifest = Manifest(campaign_name="tiny", testbed=self.testbed, seed=5, planned=self.plan.launches)
        write_manifest(self.directory.path, manifest)

    def of(self, kind: type) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def entries(self, event: Happened) -> list[str | None]:
        return [entry.launch_id for entry in Journal(self.directory.path).entries() if entry.event is event]


@pytest.fixture
def setting(tmp_path: Path, testbed: Testbed) -> Setting:
    return Setting(tmp_path, testbed)


def test_every_launch_is_run_once_in_the_order_of_the_plan_and_can_be_read_back(setting: Setting):
    setting.run()
    assert setting.launcher.started == setting.ids
    assert setting.entries(Happened.STARTED) == setting.ids == setting.entries(Happened.FINISHED)
    assert setting.entries(Happened.COMPLETED) == [None]
    setting.write_manifest()
    run = Run.open(setting.directory.path)
    assert {launch.launch_id for launch in run.launches} == set(setting.ids)
    assert all(launch.is_valid for launch in run.launches)
    assert len(run.cells()) == len(setting.ids) * 6
    facts = read_launch(setting.directory.launch(setting.ids[0])).facts
    assert facts.exit_code == 0
    assert facts.switches_after == {"slow": {"state": "idle"}}
    assert set(facts.lateness) == set(range(6))
    assert {late.count for late in facts.lateness.values()} == {3_000_000}
    assert facts.conditions == {"mpi waits": "not at all"}


def test_progress_tells_what_is_going_on_and_how_long_it_takes(setting: Setting):
    setting.run()
    first, *_ = setting.events
    assert first == RunStarted(6, 0, 3, pytest.approx(setting.plan.estimated_seconds))
    assert [event.launch.launch_id for event in setting.of(LaunchStarted)] == setting.ids
    left = [event.seconds_left for event in setting.of(LaunchStarted)]
    assert left[-1] < left[1] < left[0]
    assert [event.cells for event in setting.of(LaunchFinished)] == [6] * 6


def test_a_block_in_which_a_launch_fails_is_run_again_as_a_whole_at_once_and_nothing_is_lost(setting: Setting):
    setting.launcher.behave(setting.ids[1], "dies midway")
    setting.run()
    first, again, rest = (setting.launcher.started[slice(*ends)] for ends in ((0, 2), (2, 4), (4, None)))
    assert first == setting.ids[:2]
    assert sorted(again) == sorted(setting.ids[:2])
    assert rest == setting.ids[2:]
    kept = setting.directory.launch(setting.ids[0]) / "attempt-1"
    assert read_launch(kept).complete
    (failed,) = setting.of(LaunchFailed)
    assert failed.is_retried
    assert failed.reason == "ended with exit code 9"
    aside = setting.directory.launch(setting.ids[1]) / "attempt-1"
    assert (aside / "stderr.log").read_text() == "rank 1 on node b was lost\n"
    partial = read_launch(aside)
    assert not partial.complete
    assert partial.cells == 5
    assert read_launch(setting.directory.launch(setting.ids[1])).complete
    (told,) = [entry for entry in Journal(setting.directory.path).entries() if entry.event is Happened.AGAIN]
    assert told.facts["order"] == again
    assert told.facts["set_aside"] == [setting.ids[0]]
    assert told.facts["reason"] == f"{setting.ids[1]} failed"
    assert setting.of(GroupAgain)[0].set_aside == 1
    setting.write_manifest()
    aside = Run.open(setting.directory.path).set_aside
    assert {one.name: one.is_complete for one in aside} == {
        f"{setting.ids[0]}/attempt-1": True,
        f"{setting.ids[1]}/attempt-1": False,
    }


def test_a_launch_that_fails_twice_leaves_the_run_incomplete_and_says_what_to_do(setting: Setting):
    setting.launcher.behave(setting.ids[1], "dies midway", "dies midway")
    with pytest.raises(
        RunIncomplete, match=rf"1 of 6 launches failed: {setting.ids[1]} ended with exit code 9"
    ) as raised:
        setting.run()
    assert "rank 1 on node b was lost" in raised.value.message
    assert f"fabricbench resume {setting.directory.path}" in str(raised.value.hint)
    assert len(set(setting.entries(Happened.FINISHED))) == 5
    assert read_launch(setting.directory.launch(setting.ids[1])).cells == 5


def test_a_resumed_run_starts_only_what_is_not_finished(setting: Setting):
    setting.launcher.behave(setting.ids[1], "dies midway", "dies midway")
    with pytest.raises(RunIncomplete):
        setting.run()
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started == [setting.ids[1]]
    assert sorted(path.name for path in setting.directory.launch(setting.ids[1]).glob("attempt-*")) == [
        "attempt-1",
        "attempt-2",
    ]
    assert setting.entries(Happened.COMPLETED) == [None]


def test_what_failed_is_resumed_alone_within_minutes_but_with_its_other_half_after_hours(setting: Setting):
    def incomplete(later_seconds: float) -> list[str]:
        setting.launcher.started.clear()
        setting.launcher.behave(setting.ids[1], "dies midway", "dies midway")
        with pytest.raises(RunIncomplete):
            setting.run(later_seconds=later_seconds)
        return list(setting.launcher.started)

    incomplete(0)
    assert incomplete(300)[0] == setting.ids[1]
    setting.launcher.started.clear()
    setting.run(later_seconds=3 * 3600)
    assert sorted(setting.launcher.started) == sorted(setting.ids[:2])
    reasons = [one.facts["reason"] for one in Journal(setting.directory.path).entries() if one.event is Happened.AGAIN]
    assert reasons[-1] == "a part of it was measured 3 h 00 min ago"


def test_blocks_that_are_whole_are_never_run_again_however_old(setting: Setting):
    setting.run()
    setting.launcher.started.clear()
    setting.run(later_seconds=30 * 86400)
    assert setting.launcher.started == []


def test_a_run_that_dies_between_the_halves_of_a_block_is_whole_and_close_after_a_late_resume(setting: Setting):
    """As after kill -9: the second half is not there, the first is from another day."""
    setting.run()
    half = setting.directory.launch(setting.ids[3])
    for path in half.iterdir():
        path.unlink()
    setting.launcher.started.clear()
    setting.run(later_seconds=86400)
    assert sorted(setting.launcher.started) == sorted(setting.ids[2:4])
    setting.write_manifest()
    run = Run.open(setting.directory.path)
    assert len(run.launches) == 6
    assert run.missing == ()
    assert [one.name for one in run.set_aside] == [f"{setting.ids[2]}/attempt-1"]


def test_an_attempt_that_was_half_moved_by_a_crash_is_moved_to_its_end_and_is_no_launch(setting: Setting):
    setting.run()
    directory = setting.directory.launch(setting.ids[2])
    moving = directory / "attempt-1.moving"
    moving.mkdir()
    (directory / "launch.json").rename(moving / "launch.json")
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started == [setting.ids[2]]
    assert read_launch(directory / "attempt-1").complete
    assert not moving.exists()


def test_a_run_whose_journal_ends_anywhere_resumes_without_running_a_finished_launch_again(setting: Setting):
    setting.run()
    journal = setting.directory.path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    setting.launcher.started.clear()
    for lines_kept in range(len(lines)):
        journal.write_bytes(b"".join(lines[:lines_kept]) + b'{"event":"fini')
        setting.run()
        assert setting.launcher.started == []
        told = setting.entries(Happened.FINISHED) + setting.entries(Happened.ADOPTED)
        assert sorted(str(each) for each in told) == sorted(setting.ids)


def test_a_launch_that_was_measured_but_not_stored_before_a_crash_is_adopted(setting: Setting):
    setting.run()
    directory = setting.directory.launch(setting.ids[2])
    (directory / "launch.json").unlink()
    records = make_record(setting, setting.ids[2])
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started == []
    assert read_launch(directory).complete
    assert not records.exists()


def make_record(setting: Setting, launch_id: str) -> Path:
    """Let the fake measurer write a launch's record again, as it was before it was converted."""
    directory = setting.directory.launch(launch_id)
    subprocess.run([sys.executable, str(FAKE_PROBE), str(directory / "plan.json"), "none"], check=True)
    return directory / "records.jsonl"


def test_a_measurer_that_does_not_start_twice_alike_stops_the_run_early(setting: Setting):
    for launch_id in setting.ids:
        setting.launcher.behave(launch_id, "no start", "no start")
    with pytest.raises(EnvironmentLacks, match=r"the measurer does not start: .* ended with exit code 7") as raised:
        setting.run()
    assert set(setting.launcher.started) == set(setting.ids[:2])
    assert len(setting.launcher.started) <= 3
    assert "cannot open /dev/fabric" in raised.value.message
    assert "fake_probe.py" in raised.value.message


def test_the_exit_code_of_what_does_not_start_may_change_from_try_to_try(setting: Setting):
    for launch_id, code in zip(setting.ids, itertools.cycle((143, 15))):
        setting.launcher.behave(launch_id, f"no start {code}", f"no start {code}")
    with pytest.raises(EnvironmentLacks, match=r"does not start: b00-.* ended with exit code 1"):
        setting.run()
    assert set(setting.launcher.started) == set(setting.ids[:2])


def test_a_fabric_on_which_nothing_starts_stops_the_run_too(setting: Setting):
    fast = [launch.launch_id for launch in setting.plan.launches if launch.fabric == "fast"]
    for launch_id in fast:
        setting.launcher.behave(launch_id, "no start", "no start")
    with pytest.raises(EnvironmentLacks, match=fast[1]):
        setting.run()
    assert setting.launcher.started.count(fast[0]) == 2
    assert setting.launcher.started.count(fast[1]) == 1


def test_a_hung_launch_is_ended_at_its_limit_with_its_log(setting: Setting):
    setting.launcher.behave(setting.ids[0], "hang", "hang")
    with pytest.raises(RunIncomplete, match="hung: ended at its time limit") as raised:
        setting.run(limit_seconds=1.0)
    assert "waiting for a peer that never comes" in raised.value.message
    assert len(set(setting.entries(Happened.FINISHED))) == 5


def test_a_launch_whose_traffic_went_another_way_is_kept_but_not_valid_and_told(setting: Setting):
    setting.launcher.behave(setting.ids[0], "wrong way")
    setting.run()
    summary = read_launch(setting.directory.launch(setting.ids[0]))
    assert summary.complete
    assert not summary.facts.is_valid
    assert any("it went another way" in why for why in summary.facts.invalid_because)
    assert setting.of(LaunchFinished)[0].violations == summary.facts.invalid_because


def test_a_layer_without_permission_is_told_once_and_the_rest_is_measured(setting: Setting):
    for launch_id in setting.ids:
        setting.launcher.behave(launch_id, "no permission")
    setting.run()
    fabrics = {launch.fabric for launch in setting.plan.launches}
    notices = [event.text for event in setting.of(Notice)]
    assert len(notices) == len(fabrics)
    assert all("frame pingpong could not be measured" in text and "AF_PACKET" in text for text in notices)


def test_a_full_disk_that_the_measurer_meets_is_said_and_everything_is_kept(setting: Setting):
    setting.launcher.behave(setting.ids[2], "full disk")
    with pytest.raises(EnvironmentLacks, match="no space left on the disk") as raised:
        setting.run()
    assert "resume" in str(raised.value.hint)
    assert len(setting.entries(Happened.FINISHED)) == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for a few launches."""
    directory = tmp_path / "small"
    directory.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=120k", "tmpfs", str(directory)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk cannot be mounted by this user")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def test_a_disk_that_fills_up_ends_the_run_and_more_space_lets_it_go_on(small_disk: Path, testbed: Testbed):
    setting = Setting(small_disk, testbed)
    with pytest.raises(EnvironmentLacks, match="no space left on the disk"):
        setting.run()
    finished = setting.entries(Happened.FINISHED)
    assert 0 < len(finished) < len(setting.ids)
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    setting.launcher.started.clear()
    setting.run()
    assert not set(setting.launcher.started) & set(finished)
    assert setting.entries(Happened.COMPLETED) == [None]


def test_a_full_disk_that_the_journal_meets_is_said(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    real = os.fsync
    calls = iter(range(100))

    def full(descriptor: int) -> None:
        if next(calls) == 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EnvironmentLacks, match="no space left on the disk"):
        setting.run()
    monkeypatch.undo()
    done = len(setting.entries(Happened.FINISHED))
    setting.launcher.started.clear()
    setting.run()
    assert len(setting.launcher.started) <= 6 - done


def test_an_interrupted_run_keeps_what_the_launch_had_measured_and_resumes(setting: Setting):
    setting.launcher.behave(setting.ids[0], "slow")
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(Interrupted, match="interrupted during") as raised:
        setting.run()
    timer.join()
    assert raised.value.exit_code == 130
    assert "resume" in str(raised.value.hint)
    (interrupted,) = setting.entries(Happened.INTERRUPTED)
    finished = setting.entries(Happened.FINISHED)
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started[0] == interrupted
    assert not set(setting.launcher.started) & set(finished)


def test_the_plan_of_each_launch_is_beside_its_records(setting: Setting):
    setting.run()
    told = json.loads((setting.directory.launch(setting.ids[0]) / "plan.json").read_text())
    assert told["launch_id"] == setting.ids[0]
    assert [probe["id"] for probe in told["probes"]] == list(setting.plan.launches[0].cells)


def test_a_full_disk_that_a_measured_launch_meets_when_it_is_adopted_is_said(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
):
    """As polars does on a disk without any room: an error of its own in which the system's number is lost."""
    setting.run()
    (setting.directory.launch(setting.ids[2]) / "launch.json").unlink()
    records = make_record(setting, setting.ids[2])

    def full(*_: object, **__: object) -> None:
        raise pl.exceptions.ComputeError("parquet: the writer was closed")

    with monkeypatch.context() as patched:
        patched.setattr(pl.DataFrame, "write_parquet", full)
        patched.setattr("fabricbench.campaign.execute.is_full", lambda _: True)
        with pytest.raises(EnvironmentLacks, match="no space left on the disk"):
            setting.run()
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started == []
    assert not records.exists()


@pytest.mark.parametrize("word", ["dies midway", "no start", "hang"])
def test_a_run_whose_testbed_has_ended_says_so_at_once_and_goes_on_when_it_is_there_again(setting: Setting, word: str):
    setting.launcher.behave(setting.ids[0], word)
    setting.launcher.what_is_lost = Lost(
        what="the keeper of lab x (process 7) has ended, and the lab with it", action="`lab up x`"
    )
    begin = time.monotonic()
    with pytest.raises(EnvironmentLacks, match="the keeper of lab x") as raised:
        setting.run()
    assert time.monotonic() - begin < 20  # of a limit of 30 s
    assert "resume" in str(raised.value.hint)
    assert setting.launcher.started == setting.ids[:1]
    assert setting.entries(Happened.FAILED) == setting.ids[:1]
    setting.launcher.what_is_lost = None
    setting.run()
    assert setting.entries(Happened.COMPLETED) == [None]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_what_may_not_be_allocated_is_full_whoever_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int):
    assert not is_full(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", refuse)
        assert is_full(tmp_path)
    assert list(tmp_path.iterdir()) == []


def again_in_another_order(setting: Setting) -> tuple[int, list[str]]:
    """Run with a first failure, under a seed by which the group that is run again has another order than the plan."""
    for seed in range(5, 50):
        setting.plan = plan_run(CAMPAIGN, setting.testbed, seed=seed)
        setting.ids = [launch.launch_id for launch in setting.plan.launches]
        again = groups_of(setting.plan.launches)[0][0].again(seed, 1)
        order = [launch.launch_id for launch in again.launches]
        if order != setting.ids[:2]:
            break
    setting.launcher.behave(setting.ids[1], "dies midway")
    setting.run()
    return seed, order


def positions(setting: Setting) -> dict[str, int | None]:
    return {one: read_launch(setting.directory.launch(one)).facts.position for one in setting.ids[:2]}


def test_a_group_cut_off_while_it_was_run_again_is_resumed_in_the_order_in_which_it_began_again(setting: Setting):
    _, order = again_in_another_order(setting)
    for path in setting.directory.launch(order[1]).iterdir():
        if path.is_file():
            path.unlink()
    (setting.directory.launch(order[0]) / "launch.json").unlink()
    make_record(setting, order[0])
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started == [order[1]]
    assert positions(setting) == {order[0]: 0, order[1]: 1}


def test_what_a_crash_kept_from_being_set_aside_is_set_aside_by_the_resume_and_no_place_is_taken_twice(
    setting: Setting,
):
    _, order = again_in_another_order(setting)
    journal = setting.directory.path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    (at,) = [number for number, line in enumerate(lines) if b'"again"' in line]
    journal.write_bytes(b"".join(lines[: at + 1]))
    for launch_id in order:  # as it was when the group was to begin again: the first half whole, the second cut short
        directory = setting.directory.launch(launch_id)
        for path in directory.iterdir():
            if path.is_file():
                path.unlink()
        for path in (directory / "attempt-1").iterdir():
            path.rename(directory / path.name)
        (directory / "attempt-1").rmdir()
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started[:2] == order
    assert positions(setting) == {order[0]: 0, order[1]: 1}


def outcomes(setting: Setting) -> dict[str, LaunchOutcome]:
    return {one: read_launch(setting.directory.launch(one)).outcome for one in setting.ids}


def test_a_launch_that_died_after_its_record_counts_in_run_and_resume_and_says_by_what_and_where(setting: Setting):
    setting.launcher.behave(setting.ids[1], "dies at the end 139")
    setting.run()
    facts = read_launch(setting.directory.launch(setting.ids[1])).facts
    assert (facts.outcome, facts.exit_code) == (LaunchOutcome.DIED_AFTER_RECORD, 139)
    assert (facts.signal, facts.died_on) == ("SIGSEGV", "n2")
    assert setting.launcher.started == setting.ids
    (told,) = setting.of(Notice)
    assert told.text == f"{setting.ids[1]} counts: its record was whole when SIGSEGV ended its program on n2"
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started == []
    assert outcomes(setting)[setting.ids[1]] is LaunchOutcome.DIED_AFTER_RECORD


def test_a_launch_that_hung_after_its_record_counts(setting: Setting):
    setting.launcher.behave(setting.ids[0], "hangs at the end")
    setting.run(limit_seconds=2.0)
    assert outcomes(setting)[setting.ids[0]] is LaunchOutcome.DIED_AFTER_RECORD
    assert "hung until its time limit" in setting.of(Notice)[0].text


def test_a_launch_whose_exit_code_says_that_it_failed_does_not_count_for_run_resume_or_report(setting: Setting):
    failing = setting.ids[1]
    setting.launcher.behave(failing, "dies at the end 3", "dies at the end 3")
    with pytest.raises(RunIncomplete, match=f"{failing} ended with exit code 3"):
        setting.run()
    assert outcomes(setting)[failing] is LaunchOutcome.FAILED
    setting.write_manifest()
    run = Run.open(setting.directory.path)
    assert [launch.launch_id for launch in run.unfinished] == [failing]
    assert [launch.launch_id for launch in run.missing] == [failing]
    assert failing not in set(run.cells()["launch_id"])
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started == [failing]
    assert not setting.entries(Happened.ADOPTED)


def test_a_launch_adopted_after_a_crash_says_that_nobody_saw_its_end(setting: Setting):
    setting.run()
    (setting.directory.launch(setting.ids[2]) / "launch.json").unlink()
    make_record(setting, setting.ids[2])
    setting.run()
    facts = read_launch(setting.directory.launch(setting.ids[2])).facts
    assert (facts.outcome, facts.exit_code) == (LaunchOutcome.UNKNOWN, None)
