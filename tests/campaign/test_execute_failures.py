from __future__ import annotations

import errno
import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from fabricbench.campaign import execute
from fabricbench.campaign.attempt import Attempts
from fabricbench.campaign.events import LaunchFailed, Notice, RunStarted
from fabricbench.campaign.execute import Execution
from fabricbench.campaign.failure import is_full
from fabricbench.errors import EnvironmentLacks, Interrupted, RunIncomplete
from fabricbench.record.account import account_of
from fabricbench.record.journal import JournalEvent
from fabricbench.record.launch import read_launch
from fabricbench.record.outcome import LaunchOutcome
from fabricbench.record.store import Run
from fabricbench.settings.session import SettingsSession
from fabricbench.testbed.model import Lost, Testbed
from support.execution import Setting

KEEPER = Lost(what="the keeper of lab x (process 7) has ended, and the lab with it", action="`lab up x`")
SWITCH = Lost(what="the switch of slow (process 9) is stopped", action="let it go on: `kill -CONT 9`")


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


def test_a_launch_that_the_end_of_its_job_took_with_it_did_not_fail(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(execute, "JOB_END_SECONDS", 0.0)
    monkeypatch.setattr(execute, "is_own_job_ending", lambda: True)
    setting.launcher.behave(setting.ids[0], "no start")
    with pytest.raises(Interrupted, match=f"interrupted during {setting.ids[0]}"):
        setting.run()
    assert setting.entries(JournalEvent.FAILED) == []
    assert setting.entries(JournalEvent.INTERRUPTED) == [setting.ids[0]]
    setting.run()
    assert setting.entries(JournalEvent.FINISHED) == setting.ids


def test_a_process_that_could_not_be_ended_is_told_and_costs_no_launch(setting: Setting):
    setting.launcher.behave(setting.ids[0], "leaves a process")
    setting.run()
    told = [event.text for event in setting.events if isinstance(event, Notice)]
    assert told == [
        f"process 17 (sudo sleep 300, user root) of {setting.ids[0]} could not be ended and goes on beside all that follows"
    ]


@pytest.mark.slow
def test_a_launch_in_which_a_rank_stood_still_is_measured_again(setting: Setting):
    setting.launcher.behave(setting.ids[0], "stands still")
    setting.run()
    [failed] = [event for event in setting.events if isinstance(event, LaunchFailed)]
    assert (failed.launch.launch_id, failed.is_retried) == (setting.ids[0], True)
    assert "fake_probe.py" in failed.reason
    assert "stood still for" in failed.reason
    aside = read_launch(setting.directory.launch(setting.ids[0]) / "attempt-1")
    assert aside.outcome is LaunchOutcome.FAILED
    assert [one.pid is not None for one in aside.facts.standstills] == [True]
    assert read_launch(setting.directory.launch(setting.ids[0])).facts.standstills == ()


def test_a_fabric_on_which_nothing_starts_stops_the_run_too(setting: Setting):
    fast = [launch.launch_id for launch in setting.plan.launches if launch.fabric == "fast"]
    for launch_id in fast:
        setting.launcher.behave(launch_id, "no start", "no start")
    with pytest.raises(EnvironmentLacks, match=fast[1]):
        setting.run()
    assert setting.launcher.started.count(fast[0]) == 2
    assert setting.launcher.started.count(fast[1]) == 1


@pytest.mark.slow
def test_a_hung_launch_is_ended_at_its_limit_with_its_log(setting: Setting):
    setting.launcher.behave(setting.ids[0], "hang", "hang")
    with pytest.raises(RunIncomplete, match="hung: ended at its time limit") as raised:
        setting.run(limit_seconds=1.0)
    assert "waiting for a peer that never comes" in raised.value.message
    assert len(set(setting.entries(JournalEvent.FINISHED))) == 5


@pytest.mark.slow
def test_a_launch_whose_record_still_grows_at_its_limit_is_not_hung(setting: Setting):
    setting.launcher.behave(setting.ids[0], "slow")  # 0.6 s a cell
    setting.run(limit_seconds=2.0)
    assert not setting.of(LaunchFailed)
    assert setting.launcher.started == setting.ids


def test_a_launch_is_given_what_those_before_it_took_also_before_a_resume(setting: Setting):
    shorter = [launch.model_copy(update={"estimated_seconds": 0.01}) for launch in setting.plan.launches]
    setting.plan = setting.plan.model_copy(update={"launches": tuple(shorter)})
    setting.launcher.behave(setting.ids[-1], "no start", "no start")
    expected: list[float] = []

    def limit(seconds: float) -> float:
        expected.append(seconds)
        return 30.0

    for _ in range(2):
        with suppress(RunIncomplete):
            Execution(setting.directory, setting.plan, setting.launcher, setting.events.append, limit=limit).run()
    assert expected[0] == 0.01
    assert min(expected[1:]) > 0.02, "a process takes longer to start"
    left = [event.seconds_left for event in setting.of(RunStarted)]
    assert left[0] == pytest.approx(0.06)
    assert left[1] > 0.02


def test_a_full_disk_that_the_measurer_meets_is_said_and_everything_is_kept(setting: Setting):
    setting.launcher.behave(setting.ids[2], "full disk")
    with pytest.raises(EnvironmentLacks, match="no space left on the disk") as raised:
        setting.run()
    assert "resume" in str(raised.value.hint)
    assert len(setting.entries(JournalEvent.FINISHED)) == 2


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
    finished = setting.entries(JournalEvent.FINISHED)
    assert 0 < len(finished) < len(setting.ids)
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    setting.launcher.started.clear()
    setting.run()
    assert not set(setting.launcher.started) & set(finished)
    assert setting.entries(JournalEvent.COMPLETED) == [None]


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
    done = len(setting.entries(JournalEvent.FINISHED))
    setting.launcher.started.clear()
    setting.run()
    assert len(setting.launcher.started) <= 6 - done


@pytest.mark.slow
@pytest.mark.parametrize("word", ["dies midway", "no start", "hang"])
def test_a_run_whose_testbed_has_ended_says_so_at_once_and_goes_on_when_it_is_there_again(setting: Setting, word: str):
    setting.launcher.behave(setting.ids[0], word)
    setting.launcher.lost_in[setting.ids[0]] = KEEPER
    begin = time.monotonic()
    with pytest.raises(EnvironmentLacks, match="the keeper of lab x") as raised:
        setting.run()
    assert time.monotonic() - begin < 20  # of a limit of 30 s
    assert "resume" in str(raised.value.hint)
    assert setting.launcher.started == setting.ids[:1]
    assert setting.entries(JournalEvent.FAILED) == setting.ids[:1]
    setting.launcher.what_is_lost = None
    setting.run()
    assert setting.entries(JournalEvent.COMPLETED) == [None]


def test_no_launch_is_started_on_a_testbed_of_which_a_part_has_ended(setting: Setting):
    setting.launcher.what_is_lost = KEEPER
    with pytest.raises(EnvironmentLacks, match=f"the lab with it; {setting.ids[0]} was not started"):
        setting.run()
    assert setting.launcher.started == setting.entries(JournalEvent.STARTED) == []


def test_a_switch_that_dies_costs_no_launch_on_another_fabric(setting: Setting):
    """The launch under way needs it not, and the next one does."""
    first = setting.plan.launches[0]
    other = next(one.fabric for one in setting.plan.launches if one.fabric != first.fabric)
    setting.launcher.lost_in[first.launch_id] = Lost(what="its switch has ended", action="`lab up x`", fabric=other)
    with pytest.raises(EnvironmentLacks, match="its switch has ended"):
        setting.run()
    assert setting.entries(JournalEvent.FINISHED) == setting.launcher.started == [first.launch_id]
    assert setting.entries(JournalEvent.FAILED) == []
    setting.write_manifest()
    assert not account_of(Run.open(setting.directory.path)).has_lost_results


def test_a_launch_waits_for_what_is_stopped_and_goes_on_with_it(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    waited = []

    def goes_on(seconds: float) -> None:
        waited.append(seconds)
        setting.launcher.what_is_stopped = None

    setting.launcher.what_is_stopped = SWITCH
    monkeypatch.setattr(execute.time, "sleep", goes_on)
    setting.run()
    assert len(waited) == 1
    assert len(setting.entries(JournalEvent.FINISHED)) == len(setting.ids)
    (told,) = [one.text for one in setting.events if isinstance(one, Notice)]
    assert told == f"the switch of slow (process 9) is stopped; {setting.ids[0]} waits for it, 30 s at most"


def test_a_launch_is_not_started_while_what_it_needs_stays_stopped(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    setting.launcher.what_is_stopped = SWITCH
    monkeypatch.setattr(execute, "STOPPED_SECONDS", 0.0)
    with pytest.raises(EnvironmentLacks, match=r"is stopped; b00-.* was not started") as raised:
        setting.run()
    assert "`kill -CONT 9`, then `fabricbench resume" in str(raised.value.hint)
    assert setting.launcher.started == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_what_may_not_be_allocated_is_full_whoever_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int):
    assert not is_full(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", refuse)
        assert is_full(tmp_path)
    assert list(tmp_path.iterdir()) == []


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


@pytest.mark.slow
def test_a_launch_that_hung_after_its_record_counts(setting: Setting):
    setting.launcher.behave(setting.ids[0], "hangs at the end")
    setting.run(limit_seconds=2.0)
    assert outcomes(setting)[setting.ids[0]] is LaunchOutcome.DIED_AFTER_RECORD
    assert "hung until its time limit" in setting.of(Notice)[0].text


@pytest.mark.slow
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
    assert not setting.entries(JournalEvent.ADOPTED)


@pytest.mark.slow
def test_a_launch_whose_record_is_not_of_what_was_planned_fails_and_names_the_cell(setting: Setting):
    failing = setting.ids[1]
    setting.launcher.behave(failing, "another size", "another size")
    cell = setting.plan.launches[1].cells[0]
    size = setting.plan.cells[cell].message_bytes
    reason = f"its record is not whole: cell {cell}: message_bytes is {size + 1}, the plan has {size}"
    with pytest.raises(RunIncomplete, match=f"{failing} {reason}"):
        setting.run()
    assert outcomes(setting)[failing] is LaunchOutcome.CUT_SHORT
    setting.run()
    assert outcomes(setting)[failing] is LaunchOutcome.FINISHED


class Varied:
    """Stands for a session of settings that vary on every fabric."""

    def varies(self, fabric: str) -> bool:
        del fabric
        return True


@pytest.mark.parametrize(("settings", "counts"), [(None, True), (Varied(), False)])
def test_a_whole_record_whose_end_nobody_saw_counts_unless_settings_were_to_be_read_back(
    setting: Setting, settings: Varied | None, counts: bool
):
    attempts = Attempts(setting.directory, setting.plan, setting.launcher, cast("SettingsSession", settings))
    attempt = attempts.prepare(setting.plan.launches[0])
    subprocess.run(attempt.command.tokens, cwd=attempt.directory, env=attempt.command.whole_environment, check=True)
    stored = attempts.store(attempt, None)
    assert stored is not None
    assert stored.summary.complete
    assert stored.summary.is_finished is counts
