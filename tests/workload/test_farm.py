"""`[[farm]]` as people write it, and what is read of what a farm left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.errors import UsageError
from fabricbench.record.farm_lines import FarmPlan
from fabricbench.record.launch_files import FARM_RECORDS
from fabricbench.record.workload_cells import LEADER_BYTES, OF_FIGURE
from fabricbench.workload.adapter import Output, Place, WorkloadResult
from fabricbench.workload.farm import FarmStart
from support.applications import lab_of
from support.paces import FAST, SLOW

FIXTURE = Path(__file__).parents[2] / "schema/fixtures/farm_record.jsonl"


def start(source: str = "c.toml", nodes: int = 4, **keys: Any) -> FarmStart:
    campaign = campaign_of({"campaign": {"blocks": 2}, "farm": [{"name": "speech", "jobs": 4, **keys}]}, source)
    plan = plan_run(campaign, lab_of(nodes), seed=1)
    (one,) = {launch.workload.name: launch.workload for launch in plan.launches if launch.workload}.values()
    assert isinstance(one, FarmStart)
    return one


def parsed(directory: Path, text: str | None = None, **keys: Any) -> WorkloadResult:
    (directory / FARM_RECORDS).write_text(FIXTURE.read_text() if text is None else text)
    found = start(**keys).parse(Output(directory, directory / "stdout.log", directory / "stderr.log"))
    assert found is not None
    return found


def test_a_farm_runs_on_all_nodes_of_which_one_gives_out_the_jobs():
    one = start(input="50MB", at_once=2, expect_seconds="10s", jobs=6464)
    assert (one.name, one.title, one.ranks) == ("speech.4", "farm speech", 4)
    assert one.parameters == {"workload": "speech"}
    staging, computing = 6464 * 50e6 * 8 / 1e8, 10 * 1078
    assert one.expected_seconds(SLOW) == pytest.approx(2 * (staging + computing) + 2)


def test_what_the_program_is_told_is_its_plan():
    plan = FarmPlan.model_validate_json(start(input="1MiB", output="1kB", job_seconds="5min").files()["farm.json"])
    assert (plan.jobs, plan.input_bytes, plan.command, plan.at_once, plan.retries) == (4, 2**20, (), 1, 1)
    assert (plan.job_seconds, plan.output_bytes, plan.scratch) == (300, 1000, "/tmp")


def test_a_file_or_folder_is_found_beside_the_campaign(tmp_path: Path):
    (tmp_path / "inputs").touch()
    plan = json.loads(start(source=str(tmp_path / "c.toml"), input="./inputs").files()["farm.json"])
    assert plan["input_path"] == str(tmp_path / "inputs")


def test_the_limit_counts_what_is_sent_of_a_file_or_folder(tmp_path: Path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    folder.mkdir()
    for path, size in ((file, 10**9), *((folder / f"{job}", 10**8 * job) for job in range(4))):
        with path.open("wb") as sparse:
            sparse.truncate(size)
    made_up = start(input="1GB", command=["cat", "{input}"], expect_seconds="1s").expected_seconds(FAST)
    keys: dict[str, Any] = {"command": ["cat", "{input}"], "expect_seconds": "1s"}
    assert start(input=str(file), **keys).expected_seconds(FAST) == made_up
    assert start(input=str(folder), **keys).expected_seconds(FAST) == pytest.approx(2 * (4.8 + 2) + 2)


def test_an_input_that_only_the_first_node_has_needs_its_size(tmp_path: Path):
    path = str(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="cannot be seen from here") as caught:
        start(input=path)
    assert "input_size" in str(caught.value.hint)
    one = start(input=path, input_size="1GB")
    assert one.expected_seconds(FAST) == start(input="1GB").expected_seconds(FAST)
    with pytest.raises(UsageError, match="input_size"):
        start(input="1GB", input_size="1GB")


def test_its_tokens_name_the_interface_of_the_fabric(tmp_path: Path):
    tokens = start().tokens(Place(tmp_path, lab_of().fabrics[1]))
    assert tokens[1:] == [
        "--output",
        str(tmp_path / "farm.jsonl"),
        "--interface",
        "myr1",
        "--subnet",
        str(lab_of().fabrics[1].subnet),
        str(tmp_path / "farm.json"),
    ]


def test_its_definition_is_everything_that_was_asked_for_but_its_name():
    one = start(input="1MiB", command=["cat", "{input}"]).definition
    assert one["command"] == "cat '{input}'"
    assert one["input"] == "1 MiB, made up"
    changed = [{"jobs": 5}, {"input": "2MiB"}, {"at_once": 2}, {"retries": 0}, {"job_seconds": "1s"}, {"output": "1B"}]
    for keys in changed:
        assert start(**{"input": "1MiB", "command": ["cat", "{input}"], **keys}).definition != one, keys


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"jobs": 0}, "jobs"),
        ({"input": "1MiBB"}, "a path has a / in it: ./1MiBB"),
        ({"input": True}, 'needed a size such as "1MiB", or the path'),
        ({"command": ["bin/recognise"]}, "needed a whole path, or a program on PATH"),
        ({"command": ["cat", "{inptu}"]}, r"\{inptu\} has no value; did you mean 'input'"),
        ({"ranks": [1]}, "takes 2 or more"),
        ({"at_once": 0}, "at_once"),
        ({"retries": -1}, "retries"),
        ({"output": "1GiB"}, "output"),
        ({"job_seconds": "0s"}, "job_seconds"),
        ({"scratch": "tmp"}, "scratch"),
        ({"job": 5}, "job"),
    ],
)
def test_what_is_no_farm_is_refused_with_what_is_needed(keys: dict[str, Any], words: str):
    with pytest.raises(UsageError, match=words):
        start(**keys)


def test_one_node_is_too_few():
    campaign = campaign_of({"campaign": {"blocks": 2}, "farm": [{"name": "speech", "jobs": 4, "ranks": [1]}]}, "c.toml")
    with pytest.raises(UsageError, match="gives out the jobs"):
        plan_run(campaign, lab_of(2), seed=1)


def test_a_farm_is_judged_by_its_time_and_told_by_its_throughput(tmp_path: Path):
    found = parsed(tmp_path)
    assert {one.name: one.value for one in found.figures} == pytest.approx(
        {"time": 10.0, "throughput": 1080.0, "success": 75.0, "time lost to staging": 56.25, "staged": 0.65}
    )
    assert found.seconds == (10.0,)
    assert found.failed is None
    assert found.values[LEADER_BYTES] == 6_500_000
    assert found.values[f"{OF_FIGURE}throughput"] == pytest.approx(1080.0)
    assert found.interfaces["eth1"].sent == 6_800_000


def test_what_failed_for_good_and_which_node_was_left_out_are_named(tmp_path: Path):
    checks = {one.name: one for one in parsed(tmp_path).checks}
    assert checks["every job done"].found == (
        "3 of 4 (not 3): job 3: it ended with exit code 3; stderr ends: no such word"
    )
    assert "No space left on device" in checks["n2 ran jobs to the end"].found
    assert not any(one.holds for one in checks.values())


def test_equal_work_is_the_same_jobs_inputs_and_outputs(tmp_path: Path):
    assert set(parsed(tmp_path).fixed) == {"jobs done", "MPI", "inputs of the jobs", "outputs of the jobs"}
    assert "outputs of the jobs" not in parsed(tmp_path, same_output=False).fixed


def test_a_farm_of_which_no_job_is_done_has_failed_with_the_reason_told_most(tmp_path: Path):
    header, *_, lost, footer = FIXTURE.read_text().splitlines(keepends=True)
    header = header.replace('"jobs":4', '"jobs":1')
    lost = lost.replace('"job":3,"attempt":2', '"job":0,"attempt":0')
    footer = footer.replace('"attempts":7,"done":3', '"attempts":1,"done":0')
    found = parsed(tmp_path, header + lost + footer)
    assert found.failed is not None
    assert found.failed.reason == (
        "none of 1 job was done; 1 of 1 attempts: it ended with exit code 3; stderr ends: no such word"
    )
    assert (found.values["farm.jobs"], found.values["farm.lost"]) == (1, 1)


def test_a_farm_whose_attempts_can_all_not_be_read_is_damaged_and_nobody_says_that_no_job_was_done(tmp_path: Path):
    header, *attempts, footer = FIXTURE.read_text().splitlines(keepends=True)
    found = parsed(tmp_path, header + "".join(f"{{{line}" for line in attempts) + footer)
    assert len(found.damage) > len(attempts)
    assert (found.failed, found.seconds) == (None, ())


def test_a_farm_that_was_cut_short_is_no_whole_launch_and_says_how_far_it_came(tmp_path: Path):
    found = parsed(tmp_path, "".join(FIXTURE.read_text().splitlines(keepends=True)[:3]))
    assert found.seconds == ()
    assert found.damage[0].reason == "the farm was cut short: 1 of 4 jobs were done"


def test_a_farm_without_a_record_told_nothing(tmp_path: Path):
    assert start().parse(Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log")) is None
