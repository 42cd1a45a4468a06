"""Other work on the machine is told of before the first launch, and quiet machines hear nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabricbench.campaign.events import Event, LaunchStarted, Notice
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.quietness import SAMPLE_S, OtherLoad, busy_processors, other_load
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import Standing
from fabricbench.launch.launcher import Launcher
from fabricbench.quantity import count
from fabricbench.record.manifest import read_manifest
from fabricbench.testbed.advice import findings_in
from fabricbench.testbed.model import LauncherKind, Testbed
from support.fake_launcher import FakeLauncher


def stat(*processors: str) -> str:
    lines = [f"cpu{number} {times}" for number, times in enumerate(processors)]
    return "\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *lines, "intr 12 0", "ctxt 4711"]) + "\n"


BEFORE = stat("100 0 100 1000 50 0 0 0 0 0", "100 0 100 1000 50 0 0 0 0 0")
QUIET = stat("100 0 101 1049 50 0 0 0 0 0", "100 0 100 1045 55 0 0 0 0 0")
BUSY = stat("120 0 110 1010 50 0 5 5 20 0", "100 0 100 1045 55 0 0 0 0 0")


def test_busy_is_what_is_neither_idle_nor_waiting_for_a_disk_and_stolen_time_is_busy():
    assert busy_processors(BEFORE, QUIET, [0, 1]) == pytest.approx(0.02)
    assert busy_processors(BEFORE, BUSY, [0, 1]) == pytest.approx(0.8)
    assert busy_processors(BEFORE, BUSY, [1]) == 0
    assert busy_processors(BEFORE, BUSY, [7]) == 0


def load_of(before: str, after: str) -> str | None:
    readings = iter([before, after])
    waited: list[float] = []
    other = other_load(read=lambda: next(readings), wait=waited.append, cpus=[0, 1])
    assert waited == [SAMPLE_S]
    return other.words()


def test_a_busy_machine_is_told_of_and_a_quiet_one_is_not():
    assert load_of(BEFORE, QUIET) is None
    told = load_of(BEFORE, BUSY)
    assert told is not None
    assert "0.8 of 2 processors do other work (load average " in told


@pytest.mark.slow
@pytest.mark.parametrize("busy", [0.8, 0.0])
def test_a_run_on_this_machine_says_so_before_its_first_launch_and_keeps_it(
    busy: float, testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    crowded = "processor 1 serves the switches of labs a and b"
    other = OtherLoad(busy=busy, processors=2)
    monkeypatch.setattr("fabricbench.campaign.run.other_load", lambda: other)
    monkeypatch.setattr("fabricbench.campaign.run.crowding", lambda: [crowded])

    @contextmanager
    def fake(_venue: Standing) -> Iterator[Launcher]:
        yield FakeLauncher(tmp_path / "behaviour")

    monkeypatch.setattr(Standing, "open", fake)
    experiment = Experiment(layers=("tcp",), pattern="pingpong", message_bytes=(64,))
    campaign = Campaign(name="tiny", blocks=2, experiments=(experiment,))
    events: list[Event] = []
    in_a_lab = testbed.model_copy(update={"launcher": LauncherKind.LAB, "lab": "a"})
    plan = plan_run(campaign, in_a_lab, seed=5)
    start_run(tmp_path / "run", campaign, Standing(given=in_a_lab), plan, notify=events.append, preflight=False)
    first = next(place for place, event in enumerate(events) if isinstance(event, LaunchStarted))
    notices = [event.text for event in events[:first] if isinstance(event, Notice)]
    assert notices[-1] == crowded
    assert [text.startswith("this machine is busy: 0.8 of 2 processors") for text in notices[:-1]] == [True] * bool(
        busy
    )
    for facts in read_manifest(tmp_path / "run").inventory.values():
        usable = int(facts["cpu.usable"])
        assert float(facts["load"]) == pytest.approx(busy / 2 * usable, abs=0.01)
        told = [finding for _, subject, finding in findings_in(facts) if subject == "load"]
        assert told == (
            [f"the machine is busy: load {busy / 2 * usable:.1f} on {count(usable, 'processor')}"] if busy else []
        )
