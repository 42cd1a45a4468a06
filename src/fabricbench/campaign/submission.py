"""A run that is submitted as a job of Slurm: its batch script, which jobs it has had, and waiting for one of them.

Nothing of a job is held here: who waits may go and come back, and the job runs on. What it measures stands in the run directory,
from which its progress is told (`following`); `submission.json` there says which jobs there were, written before and after each is
submitted.
"""

from __future__ import annotations

import math
import os
import secrets
import shlex
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ClusterShell.NodeSet import NodeSet
from pydantic import Field, ValidationError

from fabricbench import __version__
from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.run_directory import SUBMISSION, SUBMIT_SCRIPT, RunDirectory, StoredPlan
from fabricbench.configuration import first_problem
from fabricbench.errors import EnvironmentLacks, FabricbenchError, Interrupted, RunIncomplete, UsageError
from fabricbench.launch.slurm import JobId, JobState, SlurmRefusal, SlurmSilent, ask_job, job_named, submit
from fabricbench.launch.watch import tail
from fabricbench.model import Model
from fabricbench.quantity import count
from fabricbench.record.atomic import replace_text
from fabricbench.record.confinement import check_confined
from fabricbench.record.integrity import PLAN, read_file
from fabricbench.record.lock import locked
from fabricbench.testbed.allocation import JOB
from fabricbench.testbed.model import SlurmJob

JOB_NAME = "SLURM_JOB_NAME"

BUSY_FACTOR = 1.5
"""By how much a run may be slower than estimated: others share the network and the file system."""

BESIDE_SECONDS = 600.0
"""Of a job beside its launches: nodes that boot or wake, the preflight, what is read from a cold file system."""

SIGNAL_SECONDS = 60
"""So long before its limit a job hears of its end; Slurm may say so up to 60 s earlier (sbatch(1), --signal)."""

SETTLE_SECONDS = 15.0
"""So late other machines may see a file that a job's node has written (attribute caches of NFS)."""

MOST_ASK_SECONDS, SOON_SECONDS = 15.0, 1.0
"""How seldom Slurm is asked at last, for a controller serves all its users, and once the run is over."""

LOOK_SECONDS = 0.5

SUBMITTING = ".submitting"
"""The lock of who submits: not that of the run, which its job may need before sbatch has answered."""

UNKNOWN_SECONDS = 60.0
"""So long a busy controller may have a job that it does not show yet, where sbatch told no number."""


class SubmittedJob(Model):
    """A job of a run. `name` is its own and nobody else's; `number` is empty until sbatch has told it."""

    name: str = Field(pattern=r"^[a-z0-9-]+$")
    number: str = Field(default="", pattern=r"^[0-9]*$")
    cluster: str = Field(default="", pattern=r"^[A-Za-z0-9_.-]*$")
    unix_ns: int = Field(ge=0)

    @property
    def job_id(self) -> JobId | None:
        """How Slurm knows the job; None where sbatch has not told it."""
        return JobId(self.number, self.cluster) if self.number else None


class Submission(Model):
    """What a run directory says of the jobs of its run. `command` is what was asked for, without the program itself."""

    schema_name: Literal["fabricbench/submission/1"] = Field(default="fabricbench/submission/1", alias="schema")
    command: tuple[str, ...]
    jobs: tuple[SubmittedJob, ...] = ()

    model_config = {**Model.model_config, "populate_by_name": True}


@dataclass(frozen=True)
class JobRequest:
    """What is to be submitted: a command as tokens, started in a folder, how its job is asked for, and how long it takes.

    `nodes` are those that the job must have, or how many of any.
    """

    command: tuple[str, ...]
    folder: Path
    asked: SlurmJob
    nodes: tuple[str, ...] | int
    seconds: float
    options: tuple[str, ...] = ()


def job_seconds(estimated_seconds: float, patient_seconds: float = 0.0) -> float:
    """Return the time limit of a job whose launches are estimated so."""
    return BUSY_FACTOR * estimated_seconds + patient_seconds + BESIDE_SECONDS


def script_text(directory: Path, order: JobRequest, name: str) -> str:
    """Return the batch script of a job, for sbatch and for people. Pure.

    `exec`, so that the signal before the end reaches fabricbench itself and its exit code is the job's. A job that Slurm put back
    into its queue would begin the run again, so it may not.
    """
    asked, nodes = order.asked, order.nodes
    if broken := next((option for option in order.options if "\n" in option or not option.strip()), None):
        raise UsageError(f"--sbatch-option {broken!r} is no option of sbatch", hint="write one option: --mem=0")
    seconds = asked.time if asked.time is not None else order.seconds
    options = {
        "job-name": name,
        "nodes": str(nodes if isinstance(nodes, int) else len(nodes)),
        "nodelist": None if isinstance(nodes, int) else str(NodeSet.fromlist(nodes)),
        "time": str(max(1, math.ceil(seconds / 60))),
        "signal": f"B:TERM@{min(SIGNAL_SECONDS, int(seconds) // 4)}",
        **{key: getattr(asked, key) for key in ("partition", "account", "qos", "reservation", "constraint")},
        "chdir": shlex.quote(str(order.folder)),
        "output": shlex.quote(f"{_literal(directory)}/job-%j.log"),
    }
    lines = [f"--{key}={value}" for key, value in options.items() if value is not None]
    # A node that fails ends the launch, and not the job: the run goes on without it, or a later one does.
    flags = ["--no-requeue", "--no-kill", *(["--exclusive"] if asked.exclusive else []), *asked.options, *order.options]
    login = " -l" if asked.lines else ""
    return "\n".join(
        [
            f"#!/bin/bash{login}",
            f"# Written by fabricbench {__version__}. The run: {shlex.quote(str(directory))}",
            f"# Look after it from outside: fabricbench resume {shlex.quote(str(directory))}",
            *(f"#SBATCH {line}" for line in (*lines, *flags)),
            "",
            *asked.lines,
            f"exec {shlex.join(order.command)}",
            "",
        ]
    )


def _literal(path: Path) -> str:
    """Write a path into a pattern of file names of sbatch."""
    text = str(path)
    if "\n" in text or "\\" in text:
        raise UsageError(f"{text!r} cannot be told to sbatch", hint="choose a path without line ends and backslashes")
    return text.replace("%", "%%")


def read_submission(directory: Path) -> Submission | None:
    """Return what a run directory says of its jobs, None where it was never submitted; UsageError where it cannot be read."""
    path = directory / SUBMISSION
    try:
        if path.exists():
            check_confined(directory)
        return Submission.model_validate_json(read_file(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        reason = first_problem(error) if isinstance(error, ValidationError) else error.strerror
        raise UsageError(
            f"{path} cannot be read: {reason}",
            hint="restore it from a copy, or remove it: it says which jobs there were",
        ) from error


def submit_order(directory: Path, order: JobRequest, submission: Submission) -> SubmittedJob:
    """Write a job's script, submit it and return it once its number is on the disk. SlurmSilent where sbatch refuses it.

    Its name is written before, so that a job whose number was lost by a crash between the two is found by it, as is one of which
    sbatch told nothing. UsageError where somebody else submits or runs there, or has submitted since `submission` was read.
    """
    with locked(directory, SUBMITTING):
        _check_current(directory, submission)
        return _submitted(directory, order, submission)


def _check_current(directory: Path, submission: Submission) -> None:
    """Raise UsageError where another command has submitted a job of the run meanwhile. The lock must be held."""
    now = read_submission(directory)
    known = {job.name for job in submission.jobs}
    if now is not None and any(job.name not in known for job in now.jobs):
        raise UsageError(
            f"another command has submitted a job of {directory} meanwhile",
            hint=f"come back to it with `fabricbench resume {shlex.quote(str(directory))}`",
        )


def _submitted(directory: Path, order: JobRequest, submission: Submission) -> SubmittedJob:
    token = secrets.token_hex(4)
    name = f"fabricbench-{token}"
    text = script_text(directory, order, name)
    script = directory / SUBMIT_SCRIPT
    planned = SubmittedJob(name=name, unix_ns=time.time_ns())
    with _undisturbed():
        replace_text(script, text, 0o777)
        _write(directory, submission, planned)
        try:
            job = submit(script)
        except SlurmRefusal:
            _write(directory, submission)
            raise
        except SlurmSilent as error:
            raise SlurmSilent(
                f"{error.message}; whether it has submitted {name} is not known, so it is looked for by that name next time",
                hint=f"look with `squeue --me --name={name}`, and give the same command again once Slurm answers",
            ) from error
        submitted = planned.model_copy(update={"number": job.number, "cluster": job.cluster})
        _write(directory, submission, submitted)
    return submitted


def _write(directory: Path, submission: Submission, *more: SubmittedJob) -> None:
    written = submission.model_copy(update={"jobs": (*submission.jobs, *more)})
    replace_text(directory / SUBMISSION, written.model_dump_json(by_alias=True, indent=1) + "\n")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until it is over: between sbatch and its answer's way to the disk nobody would know the job."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def last_job(directory: Path, submission: Submission) -> SubmittedJob | None:
    """Return the run's last job, its number found by its name where a crash lost it; None where none was ever submitted.

    SlurmSilent where that cannot be told yet.
    """
    if not submission.jobs:
        return None
    job = submission.jobs[-1]
    if job.number:
        return job
    found = job_named(job.name)
    earlier = submission.model_copy(update={"jobs": submission.jobs[:-1]})
    if found is None:
        if time.time() - job.unix_ns / 1e9 < UNKNOWN_SECONDS:
            raise SlurmSilent(
                f"sbatch told nothing of {job.name} a moment ago, and Slurm does not show it yet",
                hint=f"give the same command again in a minute: if it is not there by then (`squeue --me --name={job.name}`), "
                "it was not submitted",
            )
        return last_job(directory, earlier)
    job = job.model_copy(update={"number": found.number, "cluster": found.cluster})
    _write(directory, earlier, job)
    return job


def is_inside(job: SubmittedJob) -> bool:
    """Tell whether this process is part of the job."""
    return os.environ.get(JOB_NAME) == job.name or bool(job.number and os.environ.get(JOB) == job.number)


def stored_plan(directory: Path) -> StoredPlan | None:
    """Return the plan that a job has written, None before."""
    return RunDirectory(directory).read_plan() if (directory / PLAN).exists() else None


def is_complete(directory: Path) -> bool:
    """Tell whether every launch of a run is finished."""
    done, planned = progress_of(directory)
    return planned > 0 and done == planned


def progress_of(directory: Path) -> tuple[int, int]:
    """Return how many launches of a run are finished, and of how many; 0 of 0 before there is a plan."""
    stored = stored_plan(directory)
    if stored is None:
        return 0, 0
    run = RunDirectory(directory)
    return sum(run.finished(launch) is not None for launch in stored.plan.launches), len(stored.plan.launches)


def seconds_of_rest(run: RunDirectory, plan: RunPlan, blocks: int | None = None) -> float:
    """Return how long the launches take that are not finished yet, and with `blocks` in all those that come to them."""
    left = [launch for launch in plan.launches if run.finished(launch) is None]
    added = 0 if blocks is None else blocks - plan.blocks
    rest = sum(launch.estimated_seconds + launch.pause_seconds for launch in left)
    return rest + max(0, added) * plan.estimated_seconds / plan.blocks


def is_begun(directory: Path, submission: Submission) -> bool:
    """Tell whether a job has planned the run, or still may."""
    job = last_job(directory, submission)
    return (directory / PLAN).exists() or (job is not None and active(job) is not None)


def active(job: SubmittedJob) -> JobState | None:
    """Return how a job is that waits or runs; None where it is over, or Slurm has forgotten it. SlurmSilent: no answer."""
    if job.job_id is None:
        return None
    state = ask_job(job.job_id)
    return None if state is None or state.is_over else state


@dataclass
class Waiting:
    """Waiting for a job. `say` gets what changes in the queue.

    `look` is called twice a second, to tell of the run's progress; it returns whether the run is over, so that its job soon is.
    """

    job: JobId
    say: Callable[[str], None]
    look: Callable[[], bool]
    wait: Callable[[float], None] = time.sleep
    _said: str = field(default="", init=False)

    def until_over(self) -> JobState | None:
        """Return how the job ended; None where Slurm knows nothing of it. A controller that does not answer is asked again."""
        pause = LOOK_SECONDS
        while True:
            try:
                state = ask_job(self.job)
            except EnvironmentLacks as error:
                self._tell(f"job {self.job.number}: Slurm does not answer, it is asked again: {error.message}")
                state = JobState("UNKNOWN")
            else:
                if state is not None:
                    self._tell(f"job {self.job.number}: {in_words(state)}")
            is_over = self.look()
            if state is None or state.is_over:
                return state
            left = pause
            while left > 0:
                self.wait(LOOK_SECONDS)
                was_over, is_over = is_over, self.look()
                left = 0.0 if is_over and not was_over else left - LOOK_SECONDS
            pause = min(SOON_SECONDS if is_over else MOST_ASK_SECONDS, 2 * pause)

    def _tell(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self.say(text)


def in_words(state: JobState) -> str:
    """Return what people are told of a job's state."""
    why = f" ({state.reason})" if state.reason else ""
    begins = f", expected to begin at {state.begins}" if state.begins else ""
    where = f" on {state.nodes}" if state.nodes else ""
    code = f", exit code {state.exit_code}" if state.exit_code is not None and state.nodes else ""
    signalled = f", signal {state.signal}" if state.signal else ""
    return f"{state.state}{why}{begins}{where}{code}{signalled}"


ENDS: dict[int, type[FabricbenchError]] = {
    one.exit_code: one for one in (UsageError, EnvironmentLacks, RunIncomplete, Interrupted)
}


def conclude(
    directory: Path, job: JobId, state: JobState | None, *, wait: Callable[[float], None] = time.sleep
) -> None:
    """Return where the run of a job that is over is complete; else raise the error that it ended with, in the words of its log."""
    log = directory / f"job-{job.number}.log"
    _settle(directory, log, state, wait)
    if is_complete(directory):
        return
    done, planned = progress_of(directory)
    told = "Slurm knows nothing of it any more" if state is None else in_words(state)
    again = f"fabricbench resume {shlex.quote(str(directory))}"
    if planned:
        raise RunIncomplete(
            f"job {job.number} ended before the run did ({told}): {done} of {count(planned, 'launch')} are measured, and "
            f"kept{_quoted(log)}",
            hint=f"`{again} --submit` submits the rest on the same nodes, `{again}` within a job that has them goes on there",
        )
    if not log.exists():
        raise _nothing_came(directory, job, state, told)
    code = state.exit_code if state is not None else None
    kind = ENDS.get(code or 0, EnvironmentLacks)
    kind = RunIncomplete if kind is Interrupted else kind
    raise kind(
        f"job {job.number} ended before anything was measured ({told}){_quoted(log)}",
        hint="mend what its log says, then give the same command again",
    )


def _nothing_came(directory: Path, job: JobId, state: JobState | None, told: str) -> FabricbenchError:
    if state is not None and not state.nodes:
        return RunIncomplete(
            f"job {job.number} ended before it began ({told})", hint="give the same command again to submit it anew"
        )
    where = "its batch host" if state is None else f"its batch host (of {state.nodes})"
    return EnvironmentLacks(
        f"job {job.number} ended ({told}), and nothing of it is in {directory}: {where} does not see this folder",
        hint="choose an -o on a file system that this machine and all nodes of the job share, a home or scratch folder; "
        f"`srun --nodes=1 ls -d {shlex.quote(str(directory))}` shows whether a node sees it",
    )


def _settle(directory: Path, log: Path, state: JobState | None, wait: Callable[[float], None]) -> None:
    """Wait until what the job has written is seen here; not where it never began."""
    if state is not None and not state.nodes:
        return
    left = SETTLE_SECONDS
    while left > 0:
        is_done = state is not None and state.exit_code == 0 and not state.signal
        list(directory.iterdir())  # makes a client of NFS look again
        if is_complete(directory) or (log.exists() and not is_done):
            return
        wait(LOOK_SECONDS)
        left -= LOOK_SECONDS


def _quoted(log: Path) -> str:
    said: Sequence[str] = tail(log).splitlines()
    return f"\n  the end of {log}:\n" + "\n".join(f"    {line}" for line in said) if said else ""
