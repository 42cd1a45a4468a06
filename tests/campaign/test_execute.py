from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from fabricbench.campaign.events import (
    Event,
    GroupAgain,
    LaunchFailed,
    LaunchFinished,
    LaunchStarted,
    Notice,
    RunStarted,
    Tick,
)
from fabricbench.campaign.execute import Execution
from fabricbench.errors import Interrupted, RunIncomplete
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.launch import read_launch
from fabricbench.record.store import Run
from support.execution import Setting


def test_every_launch_is_run_once_in_the_order_of_the_plan_and_can_be_read_back(setting: Setting):
    setting.run()
    assert setting.launcher.started == setting.ids
    assert setting.entries(JournalEvent.STARTED) == setting.ids == setting.entries(JournalEvent.FINISHED)
    assert setting.entries(JournalEvent.COMPLETED) == [None]
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


def test_nothing_is_started_within_the_pause_before_a_launch_and_the_time_left_tells_of_it(setting: Setting):
    pauses = [0.0, 0.3, 0.0, 0.2, 0.1, 0.0]
    launches = [
        launch.model_copy(update={"pause_seconds": pause})
        for launch, pause in zip(setting.plan.launches, pauses, strict=True)
    ]
    setting.plan = setting.plan.model_copy(update={"launches": tuple(launches)})
    setting.run()
    assert setting.events[0] == RunStarted(6, 0, 3, pytest.approx(setting.plan.estimated_seconds))
    entries = Journal(setting.directory.path).entries()
    begun = [entry.unix_ns for entry in entries if entry.event is JournalEvent.STARTED]
    ended = [entry.unix_ns for entry in entries if entry.event is JournalEvent.FINISHED]
    waited = [(after - before) / 1e9 for before, after in zip(ended[:-1], begun[1:], strict=True)]
    assert all(seconds >= pause for seconds, pause in zip(waited, pauses[1:], strict=True))


def test_a_pause_hears_what_asks_the_run_to_end(setting: Setting):
    pauses = [model.model_copy(update={"pause_seconds": 300.0}) for model in setting.plan.launches]
    setting.plan = setting.plan.model_copy(update={"launches": tuple(pauses)})

    def hear(event: Event) -> None:
        if isinstance(event, Tick):
            raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Execution(setting.directory, setting.plan, setting.launcher, hear).run()
    assert time.monotonic() - begun < 60.0
    assert setting.launcher.started == []


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
    (told,) = [entry for entry in Journal(setting.directory.path).entries() if entry.event is JournalEvent.AGAIN]
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
    assert len(set(setting.entries(JournalEvent.FINISHED))) == 5
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
    assert setting.entries(JournalEvent.COMPLETED) == [None]


@pytest.mark.slow
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
    reasons = [
        one.facts["reason"] for one in Journal(setting.directory.path).entries() if one.event is JournalEvent.AGAIN
    ]
    assert reasons[-1] == "a part of it was measured 3 h 00 min ago"


def test_blocks_that_are_whole_are_never_run_again_however_old(setting: Setting):
    setting.run()
    setting.launcher.started.clear()
    setting.run(later_seconds=30 * 86400)
    assert setting.launcher.started == []


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


@pytest.mark.slow
def test_an_interrupted_run_keeps_what_the_launch_had_measured_and_resumes(setting: Setting):
    setting.launcher.behave(setting.ids[0], "slow")
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(Interrupted, match="interrupted during") as raised:
        setting.run()
    timer.join()
    assert raised.value.exit_code == 130
    assert "resume" in str(raised.value.hint)
    (interrupted,) = setting.entries(JournalEvent.INTERRUPTED)
    finished = setting.entries(JournalEvent.FINISHED)
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started[0] == interrupted
    assert not set(setting.launcher.started) & set(finished)


def test_the_plan_of_each_launch_is_beside_its_records(setting: Setting):
    setting.run()
    told = json.loads((setting.directory.launch(setting.ids[0]) / "plan.json").read_text())
    assert told["launch_id"] == setting.ids[0]
    assert [probe["id"] for probe in told["probes"]] == list(setting.plan.launches[0].cells)
