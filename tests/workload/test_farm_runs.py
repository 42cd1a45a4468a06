"""Task farms, run for real: over the loopback, in a lab, and what becomes of those in which something is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fabricbench.analysis import analyse
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import campaign_of, read_campaign
from fabricbench.campaign.venue import OwnLab, Standing
from fabricbench.errors import RunIncomplete
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.native import native_file
from fabricbench.record.farm_jobs import JobEnd
from fabricbench.record.farm_lines import read_farm_record
from fabricbench.record.launch_files import FARM_RECORDS
from fabricbench.record.store import Run
from fabricbench.report.formats import FORMATS, Format
from fabricbench.testbed.reading import local_testbed
from support.applications import lab_of
from support.farms import Farms
from support.preloaded import preloaded

pytestmark = pytest.mark.mpi

EXAMPLE = Path(__file__).parents[2] / "examples/campaign-farm.toml"


@pytest.fixture
def farms(tmp_path: Path) -> Farms:
    return Farms(tmp_path)


def sh(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


@pytest.mark.tour
def test_every_job_reads_and_checks_its_input_and_nothing_is_left(farms: Farms):
    done = farms.run(jobs=20, input_bytes=700_001, at_once=2, output_bytes=100)
    assert (done.code, done.record.damage, done.record.jobs_done) == (0, [], "20 of 20")
    assert done.record.footer is not None
    assert done.record.footer.staged_bytes == 20 * 700_001
    assert len({one.input_digest for one in done.record.attempts}) == 20
    assert farms.is_nothing_left()
    with tarfile.open(done.folder / "outputs.tar") as outputs:
        assert sorted(outputs.getnames()) == sorted(f"job-{job}" for job in range(20))
        for one in done.record.done:
            member = outputs.extractfile(f"job-{one.job}")
            assert member is not None
            assert member.read().decode().split() == [one.input_digest, "700001", "bytes"]


def test_a_job_that_fails_is_tried_again_and_what_fails_for_good_is_named(farms: Farms):
    script = "case {job}.{attempt} in 1.0|2.0|2.1) echo why >&2; exit 3;; 3.0) kill -9 $$;; esac; cat {input} | wc -c"
    done = farms.run(command=sh(script))
    assert (done.code, done.record.jobs_done) == (0, "5 of 6 (not 2)")
    assert [one.reason for one in done.record.lost] == ["it ended with exit code 3; stderr ends: why"]
    assert sorted(done.ended()) == sorted([JobEnd.DONE] * 5 + [JobEnd.EXIT_CODE] * 3 + [JobEnd.SIGNAL])
    assert done.record.footer is not None
    assert (done.record.footer.retried, done.record.footer.lost) == (3, 1)


def test_without_retries_a_killed_job_is_lost_and_the_others_are_done(farms: Farms):
    done = farms.run(command=sh("[ {job} = 4 ] && kill -9 $$; true"), retries=0)
    assert (done.code, done.record.jobs_done) == (0, "5 of 6 (not 4)")


def test_a_job_is_killed_at_its_limit_with_everything_that_it_started(farms: Farms):
    script = "[ {attempt} = 1 ] && exit 0; setsid sleep 300 & sleep 300"
    done = farms.run(command=sh(script), jobs=2, job_seconds=0.3)
    assert done.record.jobs_done == "2 of 2"
    assert done.ended().count(JobEnd.LIMIT) == 2
    assert "had not ended after 0.3 s" in done.record.attempts[0].reason
    assert farms.is_nothing_left()


def test_a_job_that_is_killed_from_outside_is_tried_again(farms: Farms, tmp_path: Path):
    script = f"[ {{job}}.{{attempt}} = 1.0 ] && echo $$ > {tmp_path}/process && sleep 300; true"
    farm = farms.start(command=sh(script))
    process = tmp_path / "process"
    farms.wait_until(lambda: process.exists() and process.read_text().strip())
    os.kill(int(process.read_text()), signal.SIGKILL)
    done = farms.end(farm)
    assert (done.code, done.record.jobs_done) == (0, "6 of 6")
    assert done.ended().count(JobEnd.SIGNAL) == 1
    assert farms.is_nothing_left()


def test_a_command_that_is_not_there_is_named(farms: Farms):
    done = farms.run(command=("no-such-program", "{input}"), jobs=2)
    assert (done.code, done.record.jobs_done.partition(" (")[0]) == (0, "0 of 2")
    assert done.record.reasons == [("no-such-program: No such file or directory", 4)]


def test_an_empty_input_and_more_workers_than_jobs(farms: Farms):
    done = farms.run(ranks=4, jobs=2, input_bytes=0, command=("cat", "{input}"), output_bytes=5)
    assert (done.code, done.record.damage, done.record.jobs_done) == (0, [], "2 of 2")
    assert {one.output_bytes for one in done.record.attempts} == {0}


def test_files_of_a_folder_are_the_inputs_under_their_names(farms: Farms, tmp_path: Path):
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for job in range(3):
        (inputs / f"speech-{job}.wav").write_bytes(b"x" * 300_000 * job)
    command = sh("wc -c *.wav > {output}")
    done = farms.run(jobs=3, input_path=str(inputs), command=command, output_bytes=100)
    assert done.record.jobs_done == "3 of 3"
    assert [one.input_bytes for one in done.record.done] == [0, 300_000, 600_000]
    with tarfile.open(done.folder / "outputs.tar") as outputs:
        member = outputs.extractfile("job-2")
        assert member is not None
        assert member.read().decode().split() == ["600000", "speech-2.wav"]


def test_inputs_named_as_the_farms_own_files_are_what_was_sent(farms: Farms, tmp_path: Path):
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for name in ("output", "stderr", "stdout"):
        (inputs / name).write_text(name)
    done = farms.run(jobs=3, input_path=str(inputs), command=sh("cat {input} > {output}"), output_bytes=100)
    assert done.record.jobs_done == "3 of 3"
    assert [one.output_digest for one in done.record.done] == [one.input_digest for one in done.record.done]


def test_many_inputs_that_wait_need_no_descriptors(farms: Farms, tmp_path: Path):
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for job in range(200):
        (inputs / f"{job:03}").write_bytes(b"x" * 300_000)
    few = ["sh", "-c", 'ulimit -n 100; exec "$@"', "sh"]
    done = farms.run(prefix=few, ranks=2, jobs=200, at_once=199, input_path=str(inputs), command=("true",))
    assert (done.code, done.record.jobs_done) == (0, "200 of 200")
    assert set(done.ended()) == {JobEnd.DONE}


def test_an_output_that_is_a_pipe_fails_the_attempt_by_name(farms: Farms):
    done = farms.run(jobs=1, command=sh("mkfifo {output}"), retries=0)
    assert done.code == 0
    assert done.record.lost[0].reason.endswith("/output is no regular file")


def test_a_command_that_is_too_long_is_the_jobs_own_failure(farms: Farms):
    done = farms.run(jobs=2, command=("true", *["x" * 100_000] * 2), retries=0)
    assert (done.code, done.ended()) == (0, [JobEnd.NOT_STARTED] * 2)
    assert done.record.lost[0].reason == "the command is too long"


@pytest.mark.parametrize(
    ("keys", "ranks", "words"),
    [
        ({"input_path": "/nowhere/inputs"}, 2, "/nowhere/inputs is neither a file nor a folder on this node"),
        ({"input_path": str(Path(__file__).parent)}, 2, "one for each job"),
        ({}, 1, "a farm needs 2 ranks or more, found 1"),
    ],
)
def test_a_farm_that_cannot_be_begun_says_what_is_needed(farms: Farms, keys: dict[str, Any], ranks: int, words: str):
    done = farms.run(ranks=ranks, jobs=500, **keys)
    assert done.code == 2
    assert words in done.stderr
    assert farms.is_nothing_left()


def test_where_no_node_has_a_folder_the_environment_lacks_it(farms: Farms):
    done = farms.run(scratch="/nowhere")
    assert done.code == 3
    assert "runs no jobs: mkdtemp(/nowhere/fabricbench-farm-" in done.stderr
    assert "`scratch` must be a folder on every node that can be written" in done.stderr


def test_output_beyond_what_is_brought_back_is_no_success(farms: Farms):
    done = farms.run(jobs=1, command=("seq", "1000"), output_bytes=100)
    assert done.record.reasons == [("its output has 3893 bytes, at most 100 are brought back: raise `output`", 2)]


def test_a_worker_that_is_killed_ends_the_launch_and_what_was_done_is_told(farms: Farms):
    farm = farms.start(command=sh("[ {job} -gt 3 ] && setsid sleep 300; true"), jobs=8)
    record = farms.scratch.parent / FARM_RECORDS
    farms.wait_until(lambda: record.exists() and len(read_farm_record(record).done) == 4)
    header = read_farm_record(record).header
    assert header is not None
    os.kill(header.ranks[1].pid, signal.SIGKILL)
    done = farms.end(farm)
    assert done.code != 0
    assert done.record.damage[0].reason == "the farm was cut short: 4 of 8 jobs were done"
    farms.wait_until(farms.is_nothing_left)


def test_a_full_disk_is_the_nodes_fault_and_the_farm_says_so(farms: Farms):
    """All ranks are on one node here, and so none is left."""
    mount = f'mount -t tmpfs -o size=1m none {farms.scratch} && exec "$@"'
    inside = [
        "unshare",
        "--mount",
        *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]),
        "sh",
        "-c",
        mount,
        "sh",
    ]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no file system of its own can be mounted here")
    done = farms.run(prefix=inside, jobs=3, input_bytes=3_000_000)
    assert (done.code, done.record.damage) == (0, [])
    assert {one.ended for one in done.record.attempts} == {JobEnd.NODE}
    assert "No space left on device" in done.record.attempts[0].reason
    assert done.record.lost[0].reason.startswith("no node is left that could run it: ")
    assert done.record.footer is not None
    assert [one.reason for one in done.record.footer.left_out] == [done.record.attempts[0].reason]


def test_an_input_whose_close_fails_is_given_to_no_job(farms: Farms, tmp_path: Path):
    prefix = preloaded(Path(__file__).with_name("failing_closes.c"), tmp_path)
    done = farms.run(prefix=[*prefix, f"FAILING_CLOSES_BELOW={farms.scratch}"])
    assert (done.code, done.record.damage) == (0, [])
    refused = [one for one in done.record.attempts if one.ended is JobEnd.NODE]
    assert refused
    assert all("No space left on device" in one.reason for one in refused)
    assert farms.is_nothing_left()


def test_a_worker_that_is_stopped_is_named_and_ends_the_launch(farms: Farms):
    farm = farms.start(command=sh("sleep 300"), jobs=2, patience_seconds=2.5)
    record = farms.scratch.parent / FARM_RECORDS
    farms.wait_until(lambda: record.exists() and read_farm_record(record).header is not None)
    header = read_farm_record(record).header
    assert header is not None
    os.kill(header.ranks[2].pid, signal.SIGSTOP)
    done = farms.end(farm)
    assert done.code != 0
    assert "rank 2 on" in done.stderr
    assert "has told nothing for" in done.stderr
    farms.wait_until(farms.is_nothing_left)


def measure(directory: Path, venue: OwnLab | Standing, *farms: dict[str, Any], blocks: int = 2) -> Run:
    asked = campaign_of({"campaign": {"blocks": blocks}, "farm": list(farms)}, "c.toml")
    start_run(directory, asked, venue, plan_run(asked, venue.testbed(), seed=1), notify=lambda _: None)
    return Run.open(directory)


@pytest.mark.lab
def test_two_hundred_jobs_on_four_nodes_of_which_two_are_killed(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    script = "case {job}.{attempt} in 17.0|101.0) kill -9 $$;; esac; wc -c < {input}"
    killed = {
        "name": "killed",
        "jobs": 200,
        "input": "20kB",
        "command": list(sh(script)),
        "at_once": 2,
        "output": "100B",
    }
    venue = OwnLab(nodes=4, fabrics=tuple(parse_fabrics("fast-ethernet,myrinet")))
    run = measure(tmp_path / "run", venue, {**killed, "expect_seconds": "1s"})
    assert [launch.proof for launch in run.launches] == ["proven"] * 4, [
        launch.summary.facts.path_proof for launch in run.launches
    ]
    for launch in run.launches:
        record = read_farm_record(tmp_path / "run/launches" / launch.launch_id / FARM_RECORDS)
        assert (record.damage, record.jobs_done) == ([], "200 of 200")
        again = [one for one in record.attempts if one.attempt]
        assert sorted(one.job for one in again) == [17, 101]
        first = {one.job: one.node for one in record.attempts if one.ended is JobEnd.SIGNAL}
        assert all(one.node != first[one.job] for one in again)
    findings = analyse([run])
    for name in ("html", "markdown", "text", "csv", "json"):
        made = FORMATS[name]
        assert isinstance(made, Format)
        files = made.render_files(findings, "x.csv") if name == "csv" and made.render_files else {}
        text = made.render(findings).decode() + "".join(one.decode() for one in files.values())
        assert "killed" in text, name
    markdown = FORMATS["markdown"].render(findings).decode()
    told = "400 done, 4 retried on fast-ethernet and 400 done, 4 retried on myrinet, in 2 launches each"
    assert told in markdown
    assert "| 400 of 400 |" in markdown
    assert "6,390 of 6,464" in markdown
    assert "is not the same in all launches" not in markdown


def test_a_farm_of_which_no_job_is_done_is_a_failed_cell_with_the_reason(tmp_path: Path):
    none = {
        "name": "none",
        "jobs": 2,
        "input": "0B",
        "command": ["no-such-program"],
        "expect_seconds": "1s",
        "ranks": [2],
    }
    run = measure(tmp_path / "run", Standing(given=local_testbed()), none)
    assert set(run.cells()["status"]) == {"failed"}
    assert "none of 2 jobs was done; 4 of 4 attempts: no-such-program: No such file" in run.cells()["reason"][0]


def test_a_launch_whose_worker_dies_is_tried_again_and_its_jobs_are_kept(tmp_path: Path):
    """The job's keeper's helper's parent is the worker, which begins a job before it tells of the one before."""
    script = "p=$PPID; for i in 1 2; do p=$(cut -d' ' -f4 /proc/$p/stat); done; [ {job} = 1 ] && sleep 0.5 && kill -9 $p; true"
    dying = {"name": "dying", "jobs": 3, "command": list(sh(script)), "expect_seconds": "1s", "ranks": [2]}
    with pytest.raises(RunIncomplete, match="ended with exit code"):
        measure(tmp_path / "run", Standing(given=local_testbed()), dying)
    run = Run.open(tmp_path / "run")
    assert run.launches == ()
    records = list((tmp_path / "run/launches").glob(f"**/{FARM_RECORDS}"))
    assert records
    assert all(read_farm_record(path).jobs_done.startswith("1 of 3") for path in records)


def test_the_example_is_a_campaign():
    plan = plan_run(read_campaign(EXAMPLE), lab_of(), seed=1)
    assert {launch.workload.kind for launch in plan.launches if launch.workload} == {"farm"}


def test_the_program_tells_how_it_is_used():
    program = str(native_file("fabricbench-farm"))
    told = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=20, check=True)
    assert "Example: mpiexec -n 4 fabricbench-farm" in told.stdout
    wrong = subprocess.run([program, "--otput", "x"], capture_output=True, text=True, timeout=20, check=False)
    assert (wrong.returncode, "there is no option --otput" in wrong.stderr) == (2, True)
