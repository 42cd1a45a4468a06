"""Adding blocks to a run: what is added, what is written down, what a crash in between leaves, how looks are counted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from fabricbench.analysis.analysing import error_of_look
from fabricbench.campaign import run as running
from fabricbench.campaign.attempt import Attempts
from fabricbench.campaign.events import Event, Notice
from fabricbench.campaign.plan import extend_plan, plan_run
from fabricbench.campaign.run import resume_run, start_run
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.trust import seal_plan
from fabricbench.campaign.venue import Standing
from fabricbench.errors import EnvironmentLacks, RunIncomplete, UsageError
from fabricbench.launch.launcher import Launcher
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.manifest import Extension, looks_of
from fabricbench.record.store import Run
from fabricbench.statistics.correction import level_of_look
from fabricbench.testbed.model import Testbed
from support.fake_launcher import FakeLauncher

EXPERIMENT = Experiment(layers=("tcp",), pattern="pingpong", message_bytes=(64,))
CAMPAIGN = Campaign(name="tiny", blocks=2, experiments=(EXPERIMENT,))


class Bench:
    """A run of two blocks on a fake testbed that can be resumed."""

    def __init__(self, path: Path, testbed: Testbed) -> None:
        self.path = path / "run"
        self.testbed = testbed
        self.launcher = FakeLauncher(path / "behaviour")
        self.events: list[Event] = []

    def start(self, *, is_final: bool = False, blocks: int | None = None, budget_seconds: float | None = None) -> None:
        plan = plan_run(CAMPAIGN, self.testbed, seed=5, blocks=blocks)
        plan = plan.model_copy(update={"is_final": is_final, "budget_seconds": budget_seconds})
        venue = Standing(given=self.testbed)
        start_run(self.path, CAMPAIGN, venue, plan, notify=self.events.append, preflight=False)

    def resume(self, blocks: int | None = None) -> Run:
        self.launcher.started.clear()
        resume_run(self.path, notify=self.events.append, blocks=blocks, preflight=False)
        return Run.open(self.path)

    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    def planned(self) -> list[str]:
        return [launch.launch_id for launch in RunDirectory(self.path).read_plan().plan.launches]


@pytest.fixture
def bench(tmp_path: Path, testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path, testbed)

    @contextmanager
    def fake(_venue: Standing) -> Iterator[Launcher]:
        yield made.launcher

    monkeypatch.setattr(Standing, "open", fake)
    monkeypatch.setattr(running, "read_inventories", lambda *_: {})
    return made


def test_a_finished_run_gets_more_blocks_and_measures_only_those(bench: Bench):
    bench.start()
    before = bench.planned()
    run = bench.resume(blocks=4)
    assert bench.planned()[: len(before)] == before
    assert bench.launcher.started == bench.planned()[len(before) :]
    assert {launch.block for launch in run.launches} == {0, 1, 2, 3}
    assert run.missing == ()
    assert [one.launch_id for one in run.manifest.planned] == bench.planned()


@pytest.mark.slow
def test_an_extension_is_written_down_with_how_many_blocks_there_were_and_counts_as_a_look(bench: Bench):
    bench.start()
    assert Run.open(bench.path).looks == (2,)
    bench.resume(blocks=3)
    run = bench.resume(blocks=5)
    told = [one.facts for one in Journal(bench.path).entries() if one.event is JournalEvent.EXTENDED]
    assert told == [{"blocks": 3, "planned": 2, "measured": 2}, {"blocks": 5, "planned": 3, "measured": 3}]
    assert [(one.planned, one.blocks) for one in run.manifest.extensions] == [(2, 3), (3, 5)]
    assert looks_of(run.manifest) == (2, 3)
    assert run.looks == (2, 3, 5)


@pytest.mark.slow
def test_an_unfinished_run_is_extended_and_its_look_is_at_what_was_measured(bench: Bench):
    bench.launcher.behave("b01-slow", "dies midway", "dies midway")
    bench.launcher.behave("b01-fast", "dies midway", "dies midway")
    with pytest.raises(RunIncomplete):
        bench.start()
    run = bench.resume(blocks=3)
    assert len(run.launches) == 6
    assert run.looks == (1, 3)


def test_adding_blocks_twice_without_measuring_in_between_is_one_look(bench: Bench):
    bench.start()
    manifest = Run.open(bench.path).manifest
    twice = [Extension(blocks=blocks, planned=2, measured=2, unix_ns=0) for blocks in (3, 4)]
    never = [Extension(blocks=3, planned=2, measured=0, unix_ns=0)]
    assert looks_of(manifest.model_copy(update={"extensions": tuple(twice)})) == (2,)
    assert looks_of(manifest.model_copy(update={"extensions": tuple(never)})) == ()


def test_as_many_blocks_as_there_are_add_none_and_count_no_look(bench: Bench):
    bench.start()
    run = bench.resume(blocks=2)
    assert bench.launcher.started == []
    assert run.manifest.extensions == ()


def test_fewer_blocks_and_a_run_that_is_final_are_refused_and_nothing_changes(bench: Bench):
    bench.start(is_final=True)
    plan = (bench.path / "plan.json").read_bytes()
    with pytest.raises(UsageError, match="declared final"):
        bench.resume(blocks=4)
    assert (bench.path / "plan.json").read_bytes() == plan
    assert Run.open(bench.path).manifest.is_final


def test_a_crash_between_plan_and_manifest_is_mended_by_the_next_resume(bench: Bench):
    bench.start()
    old = (bench.path / "manifest.json").read_bytes()
    bench.resume(blocks=3)
    (bench.path / "manifest.json").write_bytes(old)
    run = bench.resume()
    assert bench.launcher.started == []
    assert run.looks == (2, 3)
    assert [one.launch_id for one in run.manifest.planned] == bench.planned()


def lose(bench: Bench, *launch_ids: str) -> None:
    """Leave launches as if they had never been started."""
    for launch_id in launch_ids:
        shutil.rmtree(bench.path / "launches" / launch_id)


@pytest.mark.slow
def test_an_extension_that_added_half_a_block_is_no_look_of_its_own(bench: Bench):
    bench.start()
    bench.resume(blocks=3)
    lose(bench, bench.planned()[-1])
    assert Run.open(bench.path).looks == (2,)
    bench.launcher.behave(bench.planned()[-1], "no start", "no start")
    bench.launcher.behave("b03-slow", "no start", "no start")
    with pytest.raises((RunIncomplete, EnvironmentLacks)):
        bench.resume(blocks=4)
    (_, second) = Run.open(bench.path).manifest.extensions
    assert (second.planned, second.measured) == (3, 2)


@pytest.mark.slow
def test_blocks_of_which_nothing_is_measured_are_given_up_and_that_is_written_down(bench: Bench):
    bench.start()
    bench.resume(blocks=5)
    before = bench.planned()
    lose(bench, *before[5:])  # half of block 2 is there, of 3 and 4 nothing
    run = bench.resume(blocks=3)
    assert bench.planned() == before[:6] == [one.launch_id for one in run.manifest.planned]
    assert bench.launcher.started == before[5:6]
    assert RunDirectory(bench.path).read_plan().plan.blocks == 3
    assert run.missing == ()
    last = run.manifest.extensions[-1]
    assert (last.blocks, last.planned, last.measured) == (3, 5, 2)
    assert bench.resume(blocks=4).missing == ()
    assert bench.planned() == before[:8]


@pytest.mark.slow
def test_blocks_that_hold_anything_measured_are_not_given_up(bench: Bench):
    bench.start()
    bench.resume(blocks=4)
    lose(bench, *bench.planned()[7:])
    kept = bench.path / "launches" / bench.planned()[6]
    aside = kept / "attempt-1"
    aside.mkdir()
    for path in [each for each in kept.iterdir() if each.is_file()]:
        path.rename(aside / path.name)
    with pytest.raises(UsageError, match="--blocks 3 is fewer than the 4 blocks that the run has"):
        bench.resume(blocks=3)
    assert len(bench.planned()) == 8


def test_a_run_that_was_declared_final_gives_up_no_block(bench: Bench):
    """Else one could look, stop there, and still spend the whole error."""
    bench.start(is_final=True)
    lose(bench, *bench.planned())
    plan = RunDirectory(bench.path).read_plan().plan.model_copy(update={"blocks": 3})
    with pytest.raises(UsageError, match="declared final"):
        extend_plan(plan, Extension(blocks=2, planned=3, measured=0, unix_ns=0), fewest=0)


def test_a_final_run_whose_budget_is_spent_ends_with_the_blocks_that_it_has_and_the_whole_error(bench: Bench):
    """Time ended it, not what was seen."""
    bench.start(is_final=True, blocks=4, budget_seconds=1e-3)
    (told,) = [text for text in bench.notices() if "is spent" in text]
    assert told.endswith("so the run has 2 of 4 blocks; it was declared final, so the others are not measured")
    assert error_of_look([Run.open(bench.path)], 0.05) == 0.05
    assert bench.resume().missing == ()
    assert bench.launcher.started == []
    with pytest.raises(UsageError, match="declared final"):
        bench.resume(blocks=4)


def half_of_block_two_is_left_and_the_budget_is_spent(bench: Bench) -> str:
    """Leave a run of three blocks interrupted in the last, with the launch that it has of that."""
    bench.start(blocks=3)
    lose(bench, bench.planned()[-1])
    stored = RunDirectory(bench.path).read_plan()
    plan = stored.plan.model_copy(update={"budget_seconds": 1e-3})
    RunDirectory(bench.path).write_plan(stored.model_copy(update={"plan": plan}))
    seal_plan(RunDirectory(bench.path))
    return bench.planned()[-2]


def test_a_block_half_measured_that_no_longer_fits_the_budget_is_given_up_and_kept_aside(bench: Bench):
    given_up = half_of_block_two_is_left_and_the_budget_is_spent(bench)
    run = bench.resume()
    assert bench.launcher.started == []
    assert [launch.block for launch in run.launches] == [0, 0, 1, 1]
    assert [one.name for one in run.set_aside] == [f"{given_up}/attempt-1"]
    assert run.damaged == ()
    assert bench.resume(blocks=3).missing == ()


def test_a_run_that_an_earlier_version_left_with_a_launch_of_a_block_given_up_is_mended_by_the_next_resume(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    given_up = half_of_block_two_is_left_and_the_budget_is_spent(bench)
    with monkeypatch.context() as patched:
        patched.setattr(Attempts, "set_aside", lambda *_: None)
        run = bench.resume()
    assert [one.launch_id for one in run.damaged] == [given_up]
    assert bench.resume().damaged == ()


def test_blocks_are_not_added_where_the_venue_cannot_be_had(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    bench.start()
    plan = (bench.path / "plan.json").read_bytes()

    def closed(_venue: Standing) -> NoReturn:
        raise EnvironmentLacks("no lab can be had")

    monkeypatch.setattr(Standing, "open", closed)
    with pytest.raises(EnvironmentLacks, match="no lab"):
        bench.resume(blocks=4)
    assert (bench.path / "plan.json").read_bytes() == plan
    assert not [one for one in Journal(bench.path).entries() if one.event is JournalEvent.EXTENDED]


def test_an_unfinished_final_run_has_not_the_whole_error(bench: Bench):
    bench.start(is_final=True)
    assert error_of_look([Run.open(bench.path)], 0.05) == 0.05
    lose(bench, bench.planned()[-1])
    run = Run.open(bench.path)
    assert not run.is_final
    assert error_of_look([run], 0.05) == level_of_look([1], 0.05) < 0.05
