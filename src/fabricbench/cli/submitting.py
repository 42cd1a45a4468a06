"""`--submit` of `run`, `resume` and `plan`: a run as a job of Slurm, waited for with progress. Ctrl-C leaves the job as it is."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from fabricbench.campaign.events import Notice
from fabricbench.campaign.following import Following
from fabricbench.campaign.preparing import Prepared, prepare_in
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.submission import (
    JobRequest,
    Submission,
    SubmittedJob,
    Waiting,
    active,
    conclude,
    is_begun,
    is_complete,
    is_inside,
    job_seconds,
    last_job,
    read_submission,
    script_text,
    seconds_of_rest,
    submit_order,
)
from fabricbench.campaign.trust import check_trust
from fabricbench.campaign.venue import Standing
from fabricbench.cli.output import say
from fabricbench.cli.progress import RunProgress
from fabricbench.errors import Interrupted, RunIncomplete, UsageError
from fabricbench.launch.slurm import ask_job
from fabricbench.record.integrity import PLAN
from fabricbench.testbed.model import LauncherKind, SlurmJob
from fabricbench.testbed.reading import read_testbed

SubmitOption = Annotated[
    bool,
    typer.Option(
        "--submit",
        help="Send the run to Slurm as a job, as [slurm] of the testbed says, and wait for it (docs/slurm.md).",
    ),
]
SbatchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sbatch-option", metavar="OPTION", help="With --submit: a further option of the job, --mem=0 say. Repeatable."
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="With --submit: print the batch script, and submit nothing.")
]

OURS = ("submit", "sbatch_option", "dry_run", "output", "run_directory", "report")
"""Parameters that the command inside of the job does not get as they were typed."""


def command_inside(
    context: typer.Context, directory: Path, without: Collection[str] = OURS, verb: str | None = None
) -> tuple[str, ...]:
    """Return the command that a job runs: what was typed, less what says that it is to be submitted, for that run directory."""
    arguments, options = [], []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in without or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        if parameter.param_type_name == "argument":
            arguments += _words(value)
        elif isinstance(value, bool):
            options.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            options += [token for word in _words(value) for token in _option(parameter.opts[0], word)]
    verb = verb or str(context.info_name)
    where = ["-o", str(directory)] if verb == "run" else [str(directory)]
    return (program(), verb, *arguments, *options, *where)


def program() -> str:
    """Return this program, as the nodes must find it: by its whole path."""
    beside = Path(sys.executable).with_name("fabricbench")
    return str(beside if beside.exists() else Path(sys.argv[0]).absolute())


def _option(name: str, value: str) -> list[str]:
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _words(value: Any) -> list[str]:
    values = value if isinstance(value, (list, tuple)) else [value]
    return [str(one.value if isinstance(one, Enum) else one) for one in values]


def prepare_for_job(campaign: str, testbed: str, *options: Any) -> Prepared:
    """Return the plan as the job will make it, for its estimate, on nodes that stand for the job's. Raises UsageError."""
    path = Path(testbed)
    if not path.is_file():
        raise UsageError(
            f"--submit needs a testbed file, and --testbed {testbed} is none",
            hint='write one with launcher = "slurm" (docs/slurm.md)',
        )
    return prepare_in(Standing(given=read_testbed(path, is_for_job=True)), campaign, *options)


def order_of(prepared: Prepared, command: tuple[str, ...], options: list[str] | None) -> JobRequest:
    """Return what is to be submitted for a plan."""
    testbed, plan = prepared.venue.testbed(), prepared.plan
    names = tuple(node.name for node in testbed.nodes)
    return JobRequest(
        command=command,
        folder=Path.cwd(),
        asked=testbed.slurm or SlurmJob(),
        nodes=len(names) if testbed.is_allocated else names,
        seconds=job_seconds(plan.estimated_seconds, plan.patient_seconds),
        options=tuple(options or ()),
    )


NAME_SHOWN = "fabricbench-NAME"
"""Stands for the name that a job gets when it is submitted."""


def script_shown(prepared: Prepared, command: tuple[str, ...], options: list[str] | None, directory: Path) -> str:
    """Return the batch script that would be submitted."""
    return script_text(directory, order_of(prepared, command, options), NAME_SHOWN)


def run_submitted(prepared: Prepared, context: typer.Context, directory: Path, options: list[str] | None) -> None:
    """Submit a run, or come back to it where the same was submitted; return once it is measured, else raise what it ended with."""
    command = command_inside(context, directory)
    before = read_submission(directory)
    if before is not None and before.command != command[1:] and is_begun(directory, before):
        raise UsageError(
            f"{directory} holds another submitted run: fabricbench {shlex.join(before.command)}",
            hint=f"come back to it with `fabricbench resume {shlex.quote(str(directory))}`, or give another -o",
        )
    if before is not None and come_back(directory, may_go_on=True):
        return
    if before is not None and before.command == command[1:] and is_begun(directory, before):
        resume_submitted(directory, options, (program(), "resume", str(directory)))
        return
    run = RunDirectory(directory)
    run.check_unused()
    run.create()
    jobs = before.jobs if before is not None else ()
    _submit(directory, order_of(prepared, command, options), Submission(command=command[1:], jobs=jobs))


def come_back(directory: Path, *, may_go_on: bool, is_extending: bool = False) -> bool:
    """Wait for the last job of a submitted run where it waits or runs; tell whether the run is complete by then.

    Raises what the run ended with; of a run whose job ended before it did, only where it may not go on now. In a job of the run
    itself, and of a run that was never submitted, there is nothing to wait for.
    """
    submission = read_submission(directory)
    if submission is None or any(is_inside(job) for job in submission.jobs):
        return False
    job = last_job(directory, submission)
    if job is None or job.job_id is None:
        return False
    state = active(job)
    if state is not None and is_extending:
        raise UsageError(
            f"job {job.number} measures this run now ({state.state})",
            hint=f"wait for it with `fabricbench resume {shlex.quote(str(directory))}`, then add blocks",
        )
    if state is not None:
        say(f"job {job.number} of this run is there: waiting for it")
        _wait(directory, job)
        return True
    if is_complete(directory):
        return not is_extending
    if not may_go_on:
        conclude(directory, job.job_id, ask_job(job.job_id), wait=lambda _: None)
    say(f"job {job.number} ended before the run did: the rest is measured now")
    return False


def resume_submitted(
    directory: Path,
    options: list[str] | None,
    command: tuple[str, ...],
    *,
    blocks: int | None = None,
    is_trusted: bool = False,
) -> None:
    """Submit what is left of a run, on the nodes that it has, and wait for it. UsageError where it is no run of Slurm."""
    run = RunDirectory(directory)
    before = read_submission(directory)
    if before is not None and not (directory / PLAN).exists():
        raise UsageError(
            f"no job of {directory} has measured anything, so there is nothing to go on with",
            hint=f"submit it anew: fabricbench {shlex.join(before.command)} --submit",
        )
    run.check_is_run()
    stored = run.read_plan()
    check_trust(run, stored, is_trusted=is_trusted)
    testbed = stored.place.testbed()
    if testbed.launcher is not LauncherKind.SLURM:
        raise UsageError(
            f'--submit needs a testbed with launcher = "slurm", and that of {directory} has "{testbed.launcher}"',
            hint="leave --submit out",
        )
    order = JobRequest(
        command=command,
        folder=Path.cwd(),
        asked=testbed.slurm or SlurmJob(),
        nodes=tuple(node.name for node in testbed.nodes),
        seconds=job_seconds(seconds_of_rest(run, stored.plan, blocks), stored.plan.patient_seconds),
        options=tuple(options or ()),
    )
    _submit(directory, order, before or Submission(command=stored.command[1:]))


def _submit(directory: Path, order: JobRequest, submission: Any) -> None:
    job = submit_order(directory, order, submission)
    say(f"submitted {directory / 'submit.sh'} as job {job.number}")
    _wait(directory, job)


def _wait(directory: Path, job: SubmittedJob) -> None:
    """Wait for a job, showing how it goes on, and raise what its run ended with."""
    number = job.job_id
    if number is None:
        raise RunIncomplete(f"nobody knows the job {job.name}", hint="`squeue --me` shows your jobs")
    try:
        with RunProgress() as progress:
            following = Following(directory, progress.show)
            state = Waiting(number, lambda text: progress.show(Notice(text)), following.look).until_over()
        conclude(directory, number, state)
    except KeyboardInterrupt:
        raise Interrupted(
            f"no longer waiting; job {job.number} goes on without this terminal",
            hint=f"come back with `fabricbench resume {shlex.quote(str(directory))}`; `{number.cancelling}` cancels the job, and "
            "what it has measured is kept",
        ) from None
