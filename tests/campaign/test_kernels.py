"""Kernels in campaigns: what is asked for, what is planned, how a record becomes a cell, what proves its path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricbench.campaign.path_proof import prove_path
from fabricbench.campaign.plan import RunPlan, plan_run
from fabricbench.campaign.specification import Campaign, campaign_of
from fabricbench.campaign.start import start_of
from fabricbench.errors import UsageError
from fabricbench.lab import parse_fabrics
from fabricbench.lab.topology import plan_lab
from fabricbench.record.kernel_lines import KernelRecord, parse_kernel_record
from fabricbench.record.launch import read_launch, write_launch
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.record.workload_cells import LaunchOfWorkload, record_of, result_of_kernel
from fabricbench.testbed.model import LauncherKind, Layout, Testbed

FIXTURE = (Path(__file__).parents[2] / "schema/fixtures/kernel_record.jsonl").read_bytes().splitlines(keepends=True)
GOOD = [FIXTURE[0], FIXTURE[1], FIXTURE[3].replace(b'"runs":2', b'"runs":1')]


def campaign(*tables: dict[str, object], **keys: object) -> Campaign:
    return campaign_of({"campaign": {"blocks": 2, **keys}, "npb": list(tables)}, "kernels.toml")


def lab_of(nodes: int = 4) -> Testbed:
    return plan_lab("four", nodes, parse_fabrics("fast-ethernet,myrinet"), [0, 1]).testbed()


def names(plan: RunPlan) -> set[str]:
    return {launch.workload.name for launch in plan.launches if launch.workload}


def test_all_eight_run_on_the_most_nodes_that_each_takes():
    assert names(plan_run(campaign({}), lab_of(), seed=1)) == {
        f"{name}.W.4" for name in ("ep", "mg", "cg", "ft", "is", "lu", "sp", "bt")
    }
    assert {"mg.W.4", "bt.W.4", "ep.W.5"} <= names(plan_run(campaign({}), lab_of(5), seed=1))


def test_kernels_fill_nodes_that_seat_several_ranks_and_patterns_still_take_one_of_each():
    seating = lab_of().model_copy(update={"layout": Layout(ranks_per_node=2)})
    assert names(plan_run(campaign({"benchmarks": ["IS", "BT"]}), seating, seed=1)) == {"is.W.8", "bt.W.4"}
    with pytest.raises(UsageError, match="2 on a node, and it has 4 nodes"):
        plan_run(campaign({"benchmarks": ["IS"], "ranks": [16]}), seating, seed=1)
    ring = {"layers": ["tcp"], "pattern": "ring", "message_bytes": [64]}
    assert plan_run(campaign_of({"experiment": [ring]}, "ring.toml"), seating, seed=1).cells[0].ranks == (0, 1, 2, 3)


def test_every_kernel_is_a_launch_of_its_own_in_each_block_on_each_fabric_in_random_order():
    plan = plan_run(campaign({"benchmarks": ["IS", "EP"], "class": ["S", "W"], "ranks": [1, 4]}), lab_of(), seed=1)
    ids = [launch.launch_id for launch in plan.launches]
    assert len(ids) == len(set(ids)) == 2 * 2 * 2 * 2 * 2
    assert {"b00-fast-ethernet-is.W.4", "b01-myrinet-ep.S.1"} <= set(ids)
    blocks = [[one.launch_id[4:] for one in plan.launches if one.block == block] for block in (0, 1)]
    assert sorted(blocks[0]) == sorted(blocks[1])
    assert blocks[0] != blocks[1]
    assert {plan.ranks_of(launch) for launch in plan.launches} == {1, 4}


def test_kernels_stand_beside_experiments_and_their_cells_are_numbered_on():
    both = campaign_of(
        {
            "experiment": [{"layers": ["tcp"], "pattern": "pingpong", "message_bytes": [64]}],
            "npb": [{"benchmarks": "IS"}],
        },
        "both.toml",
    )
    plan = plan_run(both, lab_of(), seed=1)
    assert [cell.pattern for cell in plan.cells] == ["pingpong", "npb"]
    assert {launch.cells for launch in plan.launches} == {(0,), (1,)}
    alone = plan_run(both.model_copy(update={"workloads": ()}), lab_of(), seed=1)
    measuring = [launch for launch in plan.launches if launch.workload is None]
    assert {one.token for one in measuring} == {one.token for one in alone.launches}


def test_a_number_of_ranks_that_a_kernel_does_not_take_is_left_out_with_the_reason():
    plan = plan_run(campaign({"benchmarks": ["BT", "IS"], "ranks": [1, 2, 4]}), lab_of(), seed=1)
    assert names(plan) == {"bt.W.1", "bt.W.4", "is.W.1", "is.W.2", "is.W.4"}
    assert any("BT on 2 ranks is left out: BT takes squares" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"benchmarks": ["BT"], "ranks": [3]}, "BT on 3 ranks cannot be run"),
        ({"benchmarks": ["XX"]}, "there is no benchmark 'XX'"),
        ({"class": "Z"}, "there is no class 'Z'"),
        ({"ranks": [0]}, "numbers of ranks such as"),
        ({"ranks": [8], "benchmarks": ["IS"]}, "it has 4 nodes"),
        ({"program": "official", "repetitions": 2}, "runs once in a start"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(table: dict[str, object], said: str):
    with pytest.raises(UsageError, match=said):
        plan_run(campaign(table), lab_of(), seed=1)


def test_the_same_kernel_twice_is_refused_and_as_an_experiment_too():
    with pytest.raises(UsageError, match=r"runs IS\.W 4 ranks again, number 1 does already"):
        plan_run(campaign({"benchmarks": ["IS"]}, {"benchmarks": ["IS", "EP"]}), lab_of(), seed=1)
    with pytest.raises(UsageError, match=r"npb is a workload; it has a table of its own, \[\[npb\]\]"):
        campaign_of({"experiment": [{"layers": ["mpi"], "pattern": "npb"}]}, "one.toml")


def test_a_kernel_may_be_slower_than_estimated_by_more_than_the_measurer():
    both = {
        "campaign": {"blocks": 2},
        "npb": [{"benchmarks": ["IS"]}],
        "experiment": [{"layers": ["tcp"], "pattern": "pingpong", "message_bytes": [64]}],
    }
    plan = plan_run(campaign_of(both, "both.toml"), lab_of(), seed=1)
    assert {launch.arm[1]: launch.slowness for launch in plan.launches} == {"": 1.0, "is.W.4": 5.0}


def test_ranks_that_share_processors_are_expected_to_take_longer(monkeypatch: pytest.MonkeyPatch):
    def seconds(processors: int) -> float:
        monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(processors)))
        return (
            plan_run(campaign({"benchmarks": ["EP"], "classes": ["A"]}), lab_of(), seed=1).launches[0].estimated_seconds
        )

    one, two, many = seconds(1), seconds(2), seconds(64)
    assert one - two == pytest.approx(2 * (two - seconds(4)))
    assert many == seconds(4), "there are four ranks"


@pytest.mark.parametrize(
    "large",
    [
        {"kind": "hpl", "n": 2_000_000},
        {"kind": "hpcg", "nx": 1024, "ny": 1024, "nz": 1024},
        {"kind": "fft-convolution", "nx": 8192},
        {"kind": "elliptic", "nx": 16384},
    ],
)
def test_what_this_machine_could_never_hold_is_refused_where_all_nodes_are_this_machine(large: dict[str, object]):
    asked = campaign_of({"workload": [large]}, "large.toml")
    with pytest.raises(
        UsageError, match=r"needs [\d,]+ GiB for its data, and this machine, whose memory all nodes share, has"
    ):
        plan_run(asked, lab_of(), seed=1)
    cluster = lab_of().model_copy(update={"launcher": LauncherKind.SSH})
    assert plan_run(asked, cluster, seed=1).launches


def test_a_budget_costs_blocks_and_no_kernel():
    asked = campaign({"benchmarks": ["IS"]}, blocks=20)
    whole = plan_run(asked, lab_of(), seed=1)
    short = plan_run(asked, lab_of(), seed=1, budget_seconds=whole.estimated_seconds / 2 + 0.1)
    assert short.blocks == 10
    assert short.cells == whole.cells
    assert short.estimated_seconds == pytest.approx(whole.estimated_seconds / 2)


def test_the_plan_survives_being_written_down():
    plan = plan_run(campaign({"ranks": [1, 4]}), lab_of(), seed=1)
    assert RunPlan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan
    asked = campaign({"class": ["S", "W"], "ranks": [4]})
    assert Campaign.model_validate_json(asked.model_dump_json(by_alias=True)) == asked


def test_a_plan_and_a_campaign_of_before_there_were_other_workloads_are_read():
    asked = campaign({"benchmarks": ["IS"]})
    plan = plan_run(asked, lab_of(), seed=1)
    earlier = json.loads(plan.model_dump_json(by_alias=True))
    for launch in earlier["launches"]:
        launch["kernel"] = {name: value for name, value in launch.pop("workload").items() if name != "kind"}
    assert set(earlier["launches"][0]["kernel"]) == {"benchmark", "problem_class", "ranks", "repetitions", "program"}
    assert RunPlan.model_validate(earlier) == plan
    stored = json.loads(asked.model_dump_json(by_alias=True))
    (table,) = stored.pop("workloads")
    assert (
        Campaign.model_validate({**stored, "npb": [{name: one for name, one in table.items() if name != "kind"}]})
        == asked
    )


def test_kernels_are_a_kind_of_workload():
    by_kind = campaign_of(
        {"campaign": {"blocks": 2}, "workload": [{"kind": "npb", "benchmarks": ["IS"]}]}, "kernels.toml"
    )
    assert by_kind == campaign({"benchmarks": ["IS"]})


@pytest.mark.complete
def test_a_kernel_is_told_which_interface_leads_into_the_fabric():
    plan = plan_run(campaign({"benchmarks": ["IS"]}), lab_of(), seed=1)
    launch = next(one for one in plan.launches if one.fabric == "myrinet")
    tokens = start_of(launch, plan).program(Path("/run"))
    assert tokens[1:4] == ["is", "--class", "W"]
    assert tokens[tokens.index("--interface") + 1] == plan.fabric("myrinet").interface
    assert tokens[tokens.index("--output") + 1] == f"/run/{KERNEL_RECORDS}"


def launch_of_cg() -> tuple[LaunchOfWorkload, RunPlan]:
    plan = plan_run(campaign({"benchmarks": ["CG"], "class": "S", "ranks": [2]}), lab_of(), seed=1)
    launch = next(one for one in plan.launches if one.fabric == "myrinet")
    return LaunchOfWorkload(launch.launch_id, "myrinet", plan.cells[0]), plan


def record(lines: list[bytes]) -> KernelRecord:
    return parse_kernel_record(lines)


def test_a_record_becomes_a_cell_with_a_sample_for_each_repetition(tmp_path: Path):
    launch, _ = launch_of_cg()
    made = record_of(result_of_kernel(record(GOOD)), launch)
    assert made.is_complete
    (cell,) = made.cells
    assert cell.batches[0].time_ns.tolist() == [50_000_000]
    assert cell.end is not None
    assert cell.end.values["mops_total"] == 1335.0
    assert cell.end.values["communication_share"] == pytest.approx(0.038 / 0.099)
    assert (cell.end.begin_unix_ns, cell.end.end_unix_ns) == (1_793_400_000 * 10**9, 1_793_400_001 * 10**9)
    directory = tmp_path / launch.launch_id
    directory.mkdir()
    assert write_launch(directory, made).complete
    assert read_launch(directory).fabric == "myrinet"


def test_a_wrong_result_is_a_failed_cell_with_its_reason_and_its_times_are_kept():
    launch, _ = launch_of_cg()
    made = record_of(result_of_kernel(record(FIXTURE)), launch)
    assert made.is_complete
    (cell,) = made.cells
    assert cell.failed is not None
    assert (cell.failed.code, cell.end) == ("corrupted", None)
    assert "repetition 1 gave a wrong result: residual is None, expected 0.0" in cell.failed.reason
    assert len(cell.batches[0].time_ns) == 2


def test_a_record_cut_short_is_no_whole_launch():
    launch, _ = launch_of_cg()
    assert not record_of(result_of_kernel(record(GOOD[:2])), launch).is_complete


@pytest.mark.parametrize(
    ("interfaces", "said"),
    [
        ({"FABRIC": (2_300_000, 2_300_000), "lo": (100, 100)}, ""),
        ({"FABRIC": (2_000, 2_000)}, "it went another way"),
        ({"FABRIC": (2_300_000, 2_300_000), "control": (9_000_000, 0)}, "can be control traffic"),
        ({}, "no interface of myrinet was counted"),
    ],
)
def test_what_rank_0_sent_must_have_crossed_the_fabric(interfaces: dict[str, tuple[int, int]], said: str):
    launch, plan = launch_of_cg()
    fabric = plan.fabric("myrinet")
    run = json.loads(GOOD[1])
    run["profile"]["other_hosts"] = {}
    run["profile"]["interfaces"] = {
        fabric.interface if name == "FABRIC" else name: {"sent": sent, "received": received}
        for name, (sent, received) in interfaces.items()
    }
    made = record_of(result_of_kernel(record([GOOD[0], json.dumps(run).encode() + b"\n", GOOD[2]])), launch)
    proof = prove_path(made, fabric)
    told = proof.violations or proof.unknown
    assert (said in told[0]) if said else not told


def test_a_wrong_result_is_no_failed_launch():
    plan = plan_run(campaign({"benchmarks": ["IS"]}), lab_of(), seed=1)
    start = start_of(plan.launches[0], plan)
    assert [start.is_success(code) for code in (0, 1, 2, 3, None)] == [True, True, False, False, False]
