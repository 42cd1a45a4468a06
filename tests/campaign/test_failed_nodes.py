"""Nodes that fail in the middle of a run: what is planned for the rest, what is kept, and what counts as the same test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from fabricbench.analysis import analyse
from fabricbench.campaign import run as running
from fabricbench.campaign import venue
from fabricbench.campaign.events import Event, LaunchFinished, Notice
from fabricbench.campaign.failure import NodesFailed
from fabricbench.campaign.plan import RunPlan, plan_run, plan_without
from fabricbench.campaign.run import _without_silent_nodes, resume_run, start_run
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import Standing
from fabricbench.errors import EnvironmentLacks, FabricbenchError, UsageError
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.slurm import SlurmLauncher
from fabricbench.launch.staging import STAGED, NotStaged
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.manifest import has_moved, lost_by
from fabricbench.record.store import Run
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from support.execution import Setting
from support.fake_launcher import FakeLauncher

PAIR = Experiment(layers=("tcp",), pattern="pingpong", message_bytes=(64,))
ALL = Experiment(layers=("tcp",), pattern="ring", message_bytes=(64,))
LAST_PAIR = Experiment(layers=("tcp",), pattern="pingpong", message_bytes=(1024,), ranks=(0, 3))
CAMPAIGN = Campaign(name="tiny", blocks=4, experiments=(PAIR, ALL, LAST_PAIR))
WHY = {"c": "ssh: connect to host c port 22: No route to host"}


@pytest.fixture
def four(testbed: Testbed) -> Testbed:
    return testbed.model_copy(update={"nodes": tuple(Node(name=name) for name in "abcd")})


def done_up_to(plan: RunPlan, block: int) -> set[str]:
    """The launches of all blocks before, and the first of that one."""
    half = next(launch.launch_id for launch in plan.launches if launch.block == block)
    return {half, *(launch.launch_id for launch in plan.launches if launch.block < block)}


def cells_of(plan: RunPlan, block: int) -> dict[str, tuple[int, ...]]:
    launch = next(launch for launch in plan.launches if launch.block == block)
    return {
        f"{plan.cells[cell].pattern} {plan.cells[cell].message_bytes}": plan.cells[cell].ranks for cell in launch.cells
    }


def test_whole_blocks_stay_and_all_others_are_planned_for_the_rest(four: Testbed):
    plan = plan_run(CAMPAIGN, four, seed=3)
    rest = plan_without(plan, CAMPAIGN, four, WHY, done_up_to(plan, 2), unix_ns=1)
    (loss,) = rest.losses
    assert loss.kept == (0, 1)
    assert loss.reasons == WHY
    assert [launch for launch in rest.launches if launch.block < 2] == [
        launch for launch in plan.launches if launch.block < 2
    ]
    assert [launch.launch_id for launch in rest.launches][4:] != []
    assert {launch.launch_id for launch in rest.launches} == {launch.launch_id for launch in plan.launches}
    assert cells_of(rest, 1) == {"pingpong 64": (0, 1), "ring 64": (0, 1, 2, 3), "pingpong 1024": (0, 3)}
    assert cells_of(rest, 2) == {"pingpong 64": (0, 1), "ring 64": (0, 1, 2)}
    assert any("ranks 0 and 3" in note for note in loss.left_out), "0 and 3 would both be on a"
    assert [rest.ranks_of(next(one for one in rest.launches if one.block == block)) for block in (1, 2)] == [4, 3]
    assert not {cell for one in rest.launches if one.block >= 2 for cell in one.cells} & {*range(len(plan.cells))}


def test_a_block_that_failed_long_ago_is_planned_for_the_rest_as_well(four: Testbed):
    plan = plan_run(CAMPAIGN, four, seed=3)
    finished = done_up_to(plan, 3) - {plan.launches[0].launch_id}
    rest = plan_without(plan, CAMPAIGN, four, WHY, finished, unix_ns=1)
    assert rest.losses[0].kept == (1, 2)
    assert [launch.block for launch in rest.launches] == sorted(launch.block for launch in plan.launches)


def test_cells_are_measured_as_long_as_the_budget_of_the_plan_had_them(four: Testbed):
    plan = plan_run(CAMPAIGN, four, seed=3, budget_seconds=60, blocks=4)
    rest = plan_without(plan, CAMPAIGN, four, WHY, set(), unix_ns=1)
    longest = {cell.stopping.maximum_seconds for cell in plan.cells}
    assert {cell.stopping.maximum_seconds for cell in rest.cells} <= longest


def test_nodes_fail_one_after_the_other_until_the_rest_can_carry_nothing(four: Testbed):
    plan = plan_run(CAMPAIGN, four, seed=3)
    rest = plan_without(plan, CAMPAIGN, four, WHY, done_up_to(plan, 1), unix_ns=1)
    rest = plan_without(rest, CAMPAIGN, four, {"a": "gone"}, done_up_to(rest, 2), unix_ns=2)
    assert [lost_by(rest.losses, block) for block in range(4)] == [(), ("c",), ("c", "a"), ("c", "a")]
    assert rest.lost_nodes == ("c", "a")
    with pytest.raises(UsageError):
        plan_without(rest, CAMPAIGN, four, {"b": "gone"}, set(), unix_ns=3)
    with pytest.raises(UsageError, match="no node is left"):
        plan_without(rest, CAMPAIGN, four, {"b": "gone", "d": "gone"}, set(), unix_ns=3)


def test_a_test_is_the_same_only_where_its_ranks_are_on_the_nodes_they_were_on(four: Testbed):
    assert not has_moved((0, 1), four, ("d",))
    assert has_moved((0, 1), four, ("b",))
    assert not has_moved((0,), four, ("b",))
    assert has_moved((0, 1, 2, 3), four, ("d",)), "rank 3 is on a now"


class Cluster:
    """A run directory and a launcher that stands for nodes some of which fail."""

    def __init__(self, tmp_path: Path, testbed: Testbed) -> None:
        self.path, self.testbed = tmp_path / "run", testbed
        self.launcher = FakeLauncher(tmp_path / "behaviour")
        self.notices: list[str] = []
        self.nodes: list[str] = []

    def notify(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)

    def start(self, *, without_failed_nodes: bool) -> Run:
        plan = plan_run(CAMPAIGN, self.testbed, seed=5)
        start_run(
            *(self.path, CAMPAIGN, Standing(given=self.testbed), plan),
            notify=self.notify,
            preflight=False,
            without_failed_nodes=without_failed_nodes,
        )
        return Run.open(self.path)

    def resume(self, *, without_failed_nodes: bool, blocks: int | None = None) -> Run:
        self.launcher.started.clear()
        resume_run(
            *(self.path,),
            notify=self.notify,
            preflight=False,
            blocks=blocks,
            without_failed_nodes=without_failed_nodes,
        )
        return Run.open(self.path)

    def let_node_fail_in(self, launch_id: str, node: str = "c") -> None:
        self.launcher.behave(launch_id, "no start 255")
        self.launcher.nodes_die_in[launch_id] = {node: WHY["c"]}


@pytest.fixture
def cluster(tmp_path: Path, four: Testbed, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(tmp_path, four)

    def sketch(venue: Standing) -> Launcher:
        names = {node.name for node in venue.given.nodes}
        made.nodes = sorted(names)
        made.launcher.silent = {node: why for node, why in made.launcher.silent.items() if node in names}
        return made.launcher

    @contextmanager
    def fake_open(venue: Standing) -> Iterator[Launcher]:
        yield sketch(venue)

    monkeypatch.setattr(Standing, "open", fake_open)
    monkeypatch.setattr(Standing, "sketch", sketch)
    monkeypatch.setattr(running, "read_inventories", lambda *_: {})
    return made


def second_of(cluster: Cluster, block: int) -> str:
    plan = plan_run(CAMPAIGN, cluster.testbed, seed=5)
    return [launch.launch_id for launch in plan.launches if launch.block == block][1]


@pytest.mark.slow
def test_a_run_goes_on_without_a_node_and_says_so_everywhere(cluster: Cluster):
    half = second_of(cluster, 1)
    cluster.let_node_fail_in(half)
    run = cluster.start(without_failed_nodes=True)
    assert run.missing == ()
    assert cluster.nodes == ["a", "b", "d"]
    assert len(run.set_aside) == 2, "the launch that was whole in the block of the failure, and the one that failed"
    assert cluster.launcher.started.count(half) == 2, "nobody asked for the failed node again"
    assert any("c (ssh: connect to host c port 22: No route to host) does not answer" in one for one in cluster.notices)
    (loss,) = run.manifest.losses
    assert (loss.kept, list(loss.reasons)) == ((0,), ["c"])
    assert [node.name for node in run.manifest.testbed.nodes] == [*"abcd"]
    assert RunDirectory(cluster.path).read_plan().plan.losses == run.manifest.losses
    assert [entry.facts["kept"] for entry in Journal(cluster.path).entries() if entry.event is JournalEvent.LOST] == [
        [0]
    ]
    found = {(row["block"], row["pattern"], row["variant"]) for row in run.cells().iter_rows(named=True)}
    assert {(0, "ring", "4 ranks"), (1, "ring", "3 ranks,without c"), (0, "pingpong", ""), (3, "pingpong", "")} <= found
    findings = analyse([run], baseline=None, margin=0.02)
    (warning,) = [one for one in findings.warnings if one.subject == "c"]
    assert "1 of 4 blocks were whole before and have it" in warning.text
    assert "No route to host" in warning.text
    assert any("without them (c)" in paragraph for paragraph in findings.method)
    compared = {(one.pattern, one.variant): one.launches for one in findings.cells}
    assert compared[("pingpong", "")] == 4, "a and b are there all the time: the same test in all blocks"
    assert ("ring", "4 ranks") not in compared or compared[("ring", "4 ranks")] == 1
    assert compared[("ring", "3 ranks,without c")] == 3


@pytest.mark.slow
def test_without_the_option_the_run_ends_and_names_the_node_and_the_option(cluster: Cluster):
    half = second_of(cluster, 1)
    cluster.let_node_fail_in(half)
    with pytest.raises(NodesFailed) as ended:
        cluster.start(without_failed_nodes=False)
    assert ended.value.exit_code == EnvironmentLacks.exit_code
    assert "c (ssh: connect to host c port 22: No route to host) does not answer" in ended.value.message
    assert "--without-failed-nodes" in str(ended.value.hint)
    run = cluster.resume(without_failed_nodes=True)
    assert run.missing == ()
    assert run.manifest.losses[0].kept == (0,)
    assert not any(started.startswith("b00") for started in cluster.launcher.started)


@pytest.mark.slow
def test_what_a_half_block_measured_on_more_nodes_is_kept_aside_whatever_its_name(cluster: Cluster):
    half = second_of(cluster, 1)
    cluster.let_node_fail_in(half)
    with pytest.raises(NodesFailed):
        cluster.start(without_failed_nodes=False)
    farm = cluster.path / "launches" / f"{half}-speech.4"
    farm.mkdir()
    (farm / "launch.json").write_text("{}")
    run = cluster.resume(without_failed_nodes=True)
    assert run.missing == ()
    assert run.damaged == ()
    assert [path.name for path in farm.iterdir()] == ["attempt-1"]


@pytest.mark.slow
def test_a_crash_after_the_new_plan_mixes_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    half = second_of(cluster, 1)
    cluster.let_node_fail_in(half)

    def crash(*_: object) -> None:
        raise SystemExit(9)

    with monkeypatch.context() as crashing:
        crashing.setattr(running, "_bring_up_to_date", crash)
        with pytest.raises(SystemExit):
            cluster.start(without_failed_nodes=True)
    assert RunDirectory(cluster.path).read_plan().plan.losses
    run = cluster.resume(without_failed_nodes=False)
    assert run.missing == ()
    assert run.manifest.losses[0].kept == (0,)
    variants = {row["variant"] for row in run.cells().iter_rows(named=True) if row["block"] == 1}
    assert "4 ranks" not in variants, "what was measured in block 1 before the node failed is kept aside"
    assert len(cluster.launcher.started) == 6


def test_nodes_that_are_silent_at_the_start_are_left_out_from_the_beginning(cluster: Cluster):
    cluster.launcher.silent = {"a": "timed out"}
    run = cluster.start(without_failed_nodes=True)
    assert run.manifest.losses[0].kept == ()
    assert run.missing == ()
    assert {row["variant"] for row in run.cells().iter_rows(named=True)} == {"without a", "3 ranks,without a"}


@pytest.mark.slow
def test_blocks_that_are_added_later_are_on_the_rest(cluster: Cluster):
    cluster.let_node_fail_in(second_of(cluster, 1))
    cluster.start(without_failed_nodes=True)
    run = cluster.resume(without_failed_nodes=False, blocks=5)
    assert {row["variant"] for row in run.cells().iter_rows(named=True) if row["block"] == 4} == {
        "",
        "3 ranks,without c",
    }


def test_a_campaign_that_the_rest_cannot_carry_ends_with_the_reason(cluster: Cluster):
    cluster.launcher.silent = dict.fromkeys("bcd", "timed out")
    with pytest.raises(EnvironmentLacks, match="cannot go on without"):
        cluster.start(without_failed_nodes=True)
    assert not cluster.path.exists()


def test_a_launch_whose_files_do_not_reach_rank_0_fails_and_is_tried_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
):
    failing, staged = setting.ids[1], setting.launcher.stage
    reasons = ["a could not be given what a launch needs: no space left"]

    def stage(directory: Path, fabric: Fabric) -> Path:
        if directory.name == failing and reasons:
            raise NotStaged(reasons.pop())
        return staged(directory, fabric)

    monkeypatch.setattr(setting.launcher, "stage", stage)
    setting.run()
    assert setting.entries(JournalEvent.FAILED) == [failing]
    assert len(setting.of(LaunchFinished)) == len(setting.ids) + 1, "its group was measured again as a whole"


@pytest.mark.parametrize("is_allocated", [True, False])
def test_a_node_that_the_job_lacks_has_failed(
    four: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_allocated: bool
):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "a,b,d")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr(venue, "starter_of", lambda _: SimpleNamespace(reaches_nodes=True))
    monkeypatch.setattr(SlurmLauncher, "failed_nodes", lambda _: {"d": "timed out"})
    slurm = four.model_copy(update={"launcher": LauncherKind.SLURM, "is_allocated": is_allocated})
    plan = plan_run(CAMPAIGN, slurm, seed=3)
    stored = StoredPlan(campaign=CAMPAIGN, plan=plan, venue=Standing(given=slurm))
    rest = _without_silent_nodes(RunDirectory(tmp_path), stored, lambda _: None)
    assert rest.plan.losses[0].reasons == {"c": "this job does not have it", "d": "timed out"}
    assert [node.name for node in rest.place.testbed().nodes] == ["a", "b"]


class Far:
    """Rank 0's node: a folder of each staged launch, by a token; `refuses` is how often collecting fails."""

    def __init__(self, setting: Setting, monkeypatch: pytest.MonkeyPatch, refuses: int) -> None:
        self.folders: set[str] = set()
        self.refuses = refuses
        self.node = setting.directory.path.parent / "node"
        self.node.mkdir()
        monkeypatch.setattr(setting.launcher, "stage", self.stage)
        monkeypatch.setattr(setting.launcher, "collect", self.collect)

    def stage(self, directory: Path, _fabric: Fabric) -> Path:
        token = f"{directory.name} {len(self.folders)}"
        (directory / STAGED).write_text(token)
        self.folders.add(token)
        return directory

    def collect(self, directory: Path) -> None:
        if not (directory / STAGED).exists():
            return
        token = (directory / STAGED).read_text()
        if self.refuses:
            self.refuses -= 1
            for record in directory.glob("records.jsonl"):
                record.rename(self.node / token)
            raise NotStaged("connection refused")
        for record in self.node.glob(token):
            record.rename(directory / "records.jsonl")
        self.folders.remove(token)
        (directory / STAGED).unlink()


def test_what_a_failed_collection_left_is_fetched_before_it_is_set_aside(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
):
    far = Far(setting, monkeypatch, refuses=1)
    setting.run()
    failed = setting.directory.launch(setting.ids[0])
    assert (failed / "attempt-1" / "records.jsonl").exists()
    assert far.folders == set()


def test_what_was_set_aside_with_files_still_on_the_node_is_fetched_by_the_next_session(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
):
    far = Far(setting, monkeypatch, refuses=2)
    setting.run()
    failed = setting.directory.launch(setting.ids[0])
    assert (failed / "attempt-1" / STAGED).exists()
    setting.run()
    assert (failed / "attempt-1" / "records.jsonl").exists()
    assert far.folders == set()


def test_a_launch_whose_files_were_half_given_leaves_nothing_there(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    far = Far(setting, monkeypatch, refuses=0)
    given, reasons = far.stage, ["no space left"]

    def stage(directory: Path, fabric: Fabric) -> Path:
        given(directory, fabric)
        if reasons:
            raise NotStaged(reasons.pop())
        return directory

    monkeypatch.setattr(setting.launcher, "stage", stage)
    setting.run()
    assert far.folders == set()


def test_a_launch_whose_record_cannot_be_brought_back_says_why(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    def collect(directory: Path) -> None:
        for record in directory.glob("records.jsonl"):
            record.unlink()
            raise NotStaged("a could not be asked for what a launch wrote: timed out")

    monkeypatch.setattr(setting.launcher, "collect", collect)
    with pytest.raises(FabricbenchError, match="ended well but a could not be asked for what a launch wrote"):
        setting.run()
