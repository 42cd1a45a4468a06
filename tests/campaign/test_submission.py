"""A run as a job: its script, what is kept of it, how it is waited for, and what is told where it ended."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabricbench.campaign import submission as submitting
from fabricbench.campaign.events import Event, LaunchFinished, LaunchStarted, RunStarted
from fabricbench.campaign.following import Following
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.submission import (
    JobRequest,
    Submission,
    SubmittedJob,
    Waiting,
    conclude,
    is_begun,
    is_complete,
    is_inside,
    job_seconds,
    last_job,
    read_submission,
    script_text,
    submit_order,
)
from fabricbench.campaign.venue import Standing
from fabricbench.errors import EnvironmentLacks, RunIncomplete, UsageError
from fabricbench.launch.slurm import JobId, JobState, SlurmRefusal, SlurmSilent, submit
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.lock import locked
from fabricbench.testbed.model import SlurmJob, Testbed
from support.execution import CAMPAIGN, Setting

COMMAND = ("/opt/bin/fabricbench", "run", "my campaign.toml", "--testbed", "c.toml", "-o", "/srv/run")
JOB = JobId("7")


def order(asked: SlurmJob | None = None, nodes: tuple[str, ...] | int = 4, seconds: float = 900.0) -> JobRequest:
    return JobRequest(COMMAND, Path("/home/me/my files"), asked or SlurmJob(), nodes, seconds, ("--mem=0",))


def test_the_script_holds_the_very_command_and_the_options_of_the_testbed():
    asked = SlurmJob(
        partition="batch", constraint="ib&cpu", lines=("module load openmpi/5",), options=("--hint=nomultithread",)
    )
    text = script_text(Path("/srv/50 %/run"), order(asked), "fabricbench-1f")
    assert text.splitlines()[0] == "#!/bin/bash -l"
    assert [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH")] == [
        "--job-name=fabricbench-1f",
        "--nodes=4",
        "--time=15",
        "--signal=B:TERM@60",
        "--partition=batch",
        "--constraint=ib&cpu",
        "--chdir='/home/me/my files'",
        "--output='/srv/50 %%/run/job-%j.log'",
        "--no-requeue",
        "--no-kill",
        "--exclusive",
        "--hint=nomultithread",
        "--mem=0",
    ]
    assert text.endswith(
        "\nmodule load openmpi/5\nexec /opt/bin/fabricbench run 'my campaign.toml' --testbed c.toml -o /srv/run\n"
    )
    assert subprocess.run(["bash", "-n"], input=text, text=True, timeout=20, check=False).returncode == 0


def test_named_nodes_are_asked_for_and_a_short_job_hears_of_its_end_in_time():
    text = script_text(Path("/srv/run"), order(SlurmJob(exclusive=False, time=60), ("n1", "n2", "n5")), "j")
    assert "#SBATCH --nodes=3\n#SBATCH --nodelist=n[1-2,5]\n#SBATCH --time=1\n#SBATCH --signal=B:TERM@15\n" in text
    assert "--exclusive" not in text


def test_a_path_that_sbatch_cannot_be_told_is_refused():
    with pytest.raises(UsageError, match="cannot be told to sbatch"):
        script_text(Path("/srv/a\nb"), order(), "j")


def test_a_job_gets_more_time_than_its_launches_are_estimated_to_take():
    assert job_seconds(600.0, 60.0) == 1.5 * 600 + 60 + 600


class Queue:
    """A Slurm that says what it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states: list[JobState | Exception | None] = []
        self.named: JobId | None = None
        self.refusal: Exception | None = None
        self.asked = 0
        monkeypatch.setattr(submitting, "ask_job", self._ask)
        monkeypatch.setattr(submitting, "submit", self._submit)
        monkeypatch.setattr(submitting, "job_named", lambda _: self.named)

    def _ask(self, _: JobId) -> JobState | None:
        self.asked += 1
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, Exception):
            raise state
        return state

    def _submit(self, script: Path) -> JobId:
        assert os.access(script, os.X_OK)
        assert json.loads((script.parent / "submission.json").read_text())["jobs"][-1]["number"] == ""
        if self.refusal is not None:
            raise self.refusal
        return JOB


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    return Queue(monkeypatch)


def test_the_jobs_number_is_on_the_disk_once_it_is_submitted(queue: Queue, tmp_path: Path):
    job = submit_order(tmp_path, order(), Submission(command=COMMAND[1:]))
    kept = read_submission(tmp_path)
    assert queue.asked == 0
    assert kept == Submission(command=COMMAND[1:], jobs=(job,))
    assert job.job_id == JOB
    assert f"--job-name={job.name}\n" in (tmp_path / "submit.sh").read_text()


def test_what_sbatch_refuses_is_no_job(queue: Queue, tmp_path: Path):
    queue.refusal = SlurmRefusal("sbatch: error: no such partition")
    with pytest.raises(SlurmSilent):
        submit_order(tmp_path, order(), Submission(command=COMMAND[1:]))
    kept = read_submission(tmp_path)
    assert kept is not None
    assert not kept.jobs
    assert not is_begun(tmp_path, kept)


def test_a_job_of_which_sbatch_told_nothing_may_be_there_and_is_not_submitted_twice(queue: Queue, tmp_path: Path):
    queue.refusal = SlurmSilent("`sbatch` gave no answer within 120 s")
    with pytest.raises(SlurmSilent, match=r"whether it has submitted fabricbench-[0-9a-f]+ is not known"):
        submit_order(tmp_path, order(), Submission(command=COMMAND[1:]))
    kept = read_submission(tmp_path)
    assert kept is not None
    assert [job.number for job in kept.jobs] == [""]
    with pytest.raises(SlurmSilent, match="Slurm does not show it yet"):
        last_job(tmp_path, kept)
    queue.named = JobId("17")
    found = last_job(tmp_path, kept)
    assert found is not None
    assert found.number == "17"


@pytest.mark.usefixtures("queue")
def test_two_commands_do_not_submit_one_run(tmp_path: Path):
    before = Submission(command=COMMAND[1:])  # both have read it
    submit_order(tmp_path, order(), before)
    with pytest.raises(UsageError, match="another command has submitted a job"):
        submit_order(tmp_path, order(), before)

    def meanwhile(_: Path) -> JobId:
        with pytest.raises(UsageError, match="another fabricbench"):
            submit_order(tmp_path, order(), before)
        with locked(tmp_path):  # the job may begin before sbatch has answered
            return JobId("8")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(submitting, "submit", meanwhile)
        now = read_submission(tmp_path)
        assert now is not None
        assert submit_order(tmp_path, order(), now).number == "8"


@pytest.mark.parametrize(("line", "kind"), [("exit 1", SlurmRefusal), ("kill -9 $$", SlurmSilent)])
def test_only_an_exit_code_says_that_nothing_was_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, kind: type[Exception]
):
    (tmp_path / "sbatch").write_text(f"#!/bin/sh\n{line}\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SlurmSilent) as raised:
        submit(tmp_path / "script")
    assert type(raised.value) is kind


def test_a_job_whose_number_a_crash_lost_is_found_by_its_name(queue: Queue, tmp_path: Path):
    lost = SubmittedJob(name="fabricbench-1f", unix_ns=1)
    submission = Submission(command=COMMAND[1:], jobs=(SubmittedJob(name="old", number="3", unix_ns=0), lost))
    earlier = last_job(tmp_path, submission)
    assert earlier is not None
    assert earlier.number == "3", "sbatch never told it, and Slurm has none of that name"
    queue.named = JobId("12", "red")
    found = last_job(tmp_path, submission)
    assert found is not None
    assert found.job_id == JobId("12", "red")
    kept = read_submission(tmp_path)
    assert kept is not None
    assert kept.jobs[-1] == found


def test_a_process_of_the_job_knows_that_it_is_one(monkeypatch: pytest.MonkeyPatch):
    job = SubmittedJob(name="fabricbench-1f", unix_ns=1)
    assert not is_inside(job)
    monkeypatch.setenv("SLURM_JOB_NAME", "fabricbench-1f")
    assert is_inside(job), "before its number is on the disk"
    monkeypatch.setenv("SLURM_JOB_NAME", "interactive")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert is_inside(job.model_copy(update={"number": "7"}))


def test_a_garbled_record_of_jobs_is_told_with_its_path(tmp_path: Path):
    (tmp_path / "submission.json").write_text("{")
    with pytest.raises(UsageError, match=r"submission\.json cannot be read"):
        read_submission(tmp_path)


def waited(looks: Sequence[bool] = (False,)) -> tuple[JobState | None, list[str], list[float]]:
    """Wait with a clock that does not; the state at the end, what was said, the pauses."""
    said: list[str] = []
    pauses: list[float] = []
    left = list(looks)
    look = lambda: left.pop(0) if len(left) > 1 else left[0]  # noqa: E731
    return Waiting(JOB, said.append, look, pauses.append).until_over(), said, pauses


def test_what_changes_in_the_queue_is_said_once(queue: Queue):
    pending = JobState("PENDING", "Resources", "2026-11-23T14:00:00")
    running, ended = JobState("RUNNING", nodes="n[0-3]"), JobState("COMPLETED", nodes="n[0-3]", exit_code=0)
    queue.states = [pending, pending, running, SlurmSilent("connect failure"), running, ended]
    state, said, pauses = waited()
    assert state == ended
    assert said == [
        "job 7: PENDING (Resources), expected to begin at 2026-11-23T14:00:00",
        "job 7: RUNNING on n[0-3]",
        "job 7: Slurm does not answer, it is asked again: connect failure",
        "job 7: RUNNING on n[0-3]",
        "job 7: COMPLETED on n[0-3], exit code 0",
    ]
    assert len(pauses) > queue.asked, "its progress is looked at more often than Slurm is asked"


def test_slurm_is_asked_seldom_while_a_long_job_runs_and_soon_once_the_run_is_over(queue: Queue):
    queue.states = [*[JobState("RUNNING")] * 10, None]
    _, _, pauses = waited()
    assert sum(pauses) > 60
    queue.states, queue.asked = [*[JobState("RUNNING")] * 10, None], 0
    _, _, pauses = waited([False, True])
    assert sum(pauses) < 12


@pytest.fixture
def run(tmp_path: Path, testbed: Testbed) -> Setting:
    setting = Setting(tmp_path, testbed)
    setting.directory.write_plan(
        StoredPlan(campaign=CAMPAIGN, plan=setting.plan, venue=Standing(given=testbed), command=("fabricbench",))
    )
    return setting


def test_a_run_that_is_measured_is_complete_however_its_job_ended(run: Setting):
    run.write_manifest()
    run.run()
    assert is_complete(run.directory.path)
    conclude(run.directory.path, JOB, JobState("TIMEOUT", nodes="n0"), wait=lambda _: None)


def test_a_job_that_ended_before_the_run_did_says_so_and_how_to_go_on(run: Setting):
    (run.directory.path / "job-7.log").write_text("slurmstepd: error: *** JOB 7 CANCELLED DUE TO TIME LIMIT ***\n")
    with pytest.raises(
        RunIncomplete, match=r"ended before the run did \(TIMEOUT.*0 of 6 launches.*\n.*\n.*TIME LIMIT"
    ) as raised:
        conclude(run.directory.path, JOB, JobState("TIMEOUT", nodes="n0"), wait=lambda _: None)
    assert f"`fabricbench resume {run.directory.path} --submit` submits the rest" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("code", "kind"), [(2, UsageError), (3, EnvironmentLacks), (4, RunIncomplete), (130, RunIncomplete)]
)
def test_a_run_that_was_refused_in_its_job_is_refused_in_its_words(tmp_path: Path, code: int, kind: type[Exception]):
    (tmp_path / "job-7.log").write_text("fabricbench: the preflight of c found 1 problem\n")
    with pytest.raises(kind, match="the preflight of c found 1 problem"):
        conclude(tmp_path, JOB, JobState("FAILED", nodes="n0", exit_code=code), wait=lambda _: None)


def test_a_run_directory_that_the_batch_host_does_not_see_is_told(tmp_path: Path):
    with pytest.raises(
        EnvironmentLacks, match=r"nothing of it is in .*: its batch host \(of n\[2-3\]\) does not see"
    ) as raised:
        conclude(tmp_path, JOB, JobState("FAILED", nodes="n[2-3]", exit_code=0, signal=53), wait=lambda _: None)
    assert "that this machine and all nodes of the job share" in str(raised.value.hint)


def test_a_job_that_never_began_has_seen_nothing_wrong(tmp_path: Path):
    with pytest.raises(RunIncomplete, match="job 7 ended before it began"):
        conclude(tmp_path, JOB, JobState("CANCELLED"), wait=lambda _: None)


def test_a_waiting_terminal_is_told_of_launches_as_the_journal_tells_them(run: Setting):
    events: list[Event] = []
    following = Following(run.directory.path, events.append)
    assert not following.look()
    assert [type(event) for event in events] == [RunStarted]
    run.write_manifest()
    run.run()
    assert following.look()
    started = [event.launch.launch_id for event in events if isinstance(event, LaunchStarted)]
    ended = [event for event in events if isinstance(event, LaunchFinished)]
    assert started == [event.launch.launch_id for event in ended]
    assert sorted(started) == sorted(run.ids)
    assert all(event.cells == 6 for event in ended)
    again: list[Event] = []
    Following(run.directory.path, again.append).look()
    assert again == [RunStarted(6, 6, 3, 0.0)], "who comes back is told how far it is, not all of it again"


def test_what_a_submission_leaves_does_not_keep_its_run_from_beginning(tmp_path: Path):
    for name in ("submit.sh", "submission.json", "job-7.log"):
        (tmp_path / name).write_text("")
    RunDirectory(tmp_path).check_unused()
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(UsageError, match="is not empty"):
        RunDirectory(tmp_path).check_unused()


def test_the_journal_of_a_run_that_is_begun_again_tells_how_far_it_is(run: Setting):
    events: list[Event] = []
    following = Following(run.directory.path, events.append)
    following.look()
    journal = Journal(run.directory.path)
    journal.append(JournalEvent.FINISHED, run.ids[0], seconds=1.0)
    following.look()
    journal.append(JournalEvent.AGAIN, group="block 0", set_aside=[run.ids[0]])
    following.look()
    assert [event.finished for event in events if isinstance(event, RunStarted)] == [0, 0]


def test_launches_that_are_measured_again_without_failed_nodes_are_left(run: Setting):
    events: list[Event] = []
    following = Following(run.directory.path, events.append)
    following.look()
    journal = Journal(run.directory.path)
    for launch_id in run.ids[:3]:  # a whole block, and a half
        journal.append(JournalEvent.FINISHED, launch_id, seconds=1.0)
    following.look()
    journal.append(JournalEvent.LOST, reasons={"b": "off"}, kept=[0], ranks=2)
    following.look()
    assert [event.finished for event in events if isinstance(event, RunStarted)] == [0, 2]
    later: list[Event] = []
    Following(run.directory.path, later.append).look()
    assert [event.finished for event in later if isinstance(event, RunStarted)] == [2]
