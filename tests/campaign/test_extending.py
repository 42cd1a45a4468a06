"""Adding blocks to a run: what is added, what is written down, what a crash in between leaves, how looks are counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabricbench.campaign import run as running
from fabricbench.campaign.journal import Happened, Journal
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import resume_run, start_run
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import Standing
from fabricbench.errors import RunIncomplete, UsageError
from fabricbench.launch.launcher import Launcher
from fabricbench.record.manifest import Extension, looks_of
from fabricbench.record.store import Run
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

    def start(self, *, is_final: bool = False) -> None:
        plan = plan_run(CAMPAIGN, self.testbed, seed=5).model_copy(update={"is_final": is_final})
        start_run(self.path, CAMPAIGN, Standing(given=self.testbed), plan, notify=lambda _: None)

    def resume(self, blocks: int | None = None) -> Run:
        self.launcher.started.clear()
        resume_run(self.path, notify=lambda _: None, blocks=blocks)
        return Run.open(self.path)

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


def test_an_extension_is_written_down_with_how_many_blocks_there_were_and_counts_as_a_look(bench: Bench):
    bench.start()
    assert Run.open(bench.path).looks == (2,)
    bench.resume(blocks=3)
    run = bench.resume(blocks=5)
    told = [one.facts for one in Journal(bench.path).entries() if one.event is Happened.EXTENDED]
    assert told == [{"blocks": 3, "planned": 2, "measured": 2}, {"blocks": 5, "planned": 3, "measured": 3}]
    assert [(one.planned, one.blocks) for one in run.manifest.extensions] == [(2, 3), (3, 5)]
    assert looks_of(run.manifest) == (2, 3)
    assert run.looks == (2, 3, 5)


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
