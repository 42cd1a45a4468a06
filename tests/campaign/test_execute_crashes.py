from __future__ import annotations

import polars as pl
import pytest

from fabricbench.campaign.events import Notice
from fabricbench.errors import EnvironmentLacks
from fabricbench.record.account import account_of
from fabricbench.record.journal import JournalEvent
from fabricbench.record.launch import read_launch
from fabricbench.record.outcome import LaunchOutcome
from fabricbench.record.store import Run
from support.execution import Setting, make_record


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


@pytest.mark.slow
def test_a_run_whose_journal_ends_anywhere_resumes_without_running_a_finished_launch_again(setting: Setting):
    setting.run()
    journal = setting.directory.path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    setting.launcher.started.clear()
    for lines_kept in range(len(lines)):
        journal.write_bytes(b"".join(lines[:lines_kept]) + b'{"event":"fini')
        setting.run()
        assert setting.launcher.started == []
        told = setting.entries(JournalEvent.FINISHED) + setting.entries(JournalEvent.ADOPTED)
        assert sorted(str(each) for each in told) == sorted(setting.ids)


def test_a_launch_that_was_under_way_when_the_run_was_killed_is_named_and_measured_again(setting: Setting):
    setting.run()
    journal, last = setting.directory.path / "journal.jsonl", setting.ids[5]
    lines = journal.read_bytes().splitlines(keepends=True)
    begun = next(at for at, line in enumerate(lines) if b'"started"' in line and last.encode() in line)
    journal.write_bytes(b"".join(lines[: begun + 1]))
    for path in setting.directory.launch(last).iterdir():
        path.unlink()
    setting.events.clear()
    setting.run()
    told = [one.text for one in setting.events if isinstance(one, Notice)]
    assert told == [f"{last} was under way when the run was killed, or had no more disk; it is measured again"]
    setting.write_manifest()
    (fabric,) = (one for one in account_of(Run.open(setting.directory.path)).subjects if one.killed_starts)
    assert (fabric.killed_starts, fabric.starts, fabric.measured) == (1, 4, 3)


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


def run_again(setting: Setting) -> list[str]:
    """Run with a failure in the first group and return its launches in the order in which it is run again: that of the plan."""
    setting.launcher.behave(setting.ids[1], "dies midway")
    setting.run()
    return setting.ids[:2]


def positions(setting: Setting) -> dict[str, int | None]:
    return {one: read_launch(setting.directory.launch(one)).facts.position for one in setting.ids[:2]}


def test_a_group_cut_off_while_it_was_run_again_is_resumed_in_the_order_in_which_it_began_again(setting: Setting):
    order = run_again(setting)
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
    order = run_again(setting)
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


def test_a_launch_adopted_after_a_crash_says_that_nobody_saw_its_end(setting: Setting):
    setting.run()
    (setting.directory.launch(setting.ids[2]) / "launch.json").unlink()
    make_record(setting, setting.ids[2])
    setting.run()
    facts = read_launch(setting.directory.launch(setting.ids[2])).facts
    assert (facts.outcome, facts.exit_code) == (LaunchOutcome.UNKNOWN, None)
