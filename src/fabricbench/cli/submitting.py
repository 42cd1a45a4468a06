"""`--submit` of `run`, `resume` and `plan`: a run as a job of Slurm, waited for with progress. Ctrl-C leaves the job as it is."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fabricbench.cli.output import say
from fabricbench.cli.progress import RunProgress
from fabricbench.errors import Interrupted, RunIncomplete, UsageError

if TYPE_CHECKING:
    from fabricbench.campaign.preparing import Prepared
    from fabricbench.campaign.submission import Order, SubmittedJob

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

OURS = ("submit", "sbatch_option", "dry_run", "output", "run_directory")
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
    from fabricbench.campaign.preparing import prepare_in  # noqa: PLC0415 - keeps the start of the program fast
    from fabricbench.campaign.venue import Standing  # noqa: PLC0415
    from fabricbench.testbed.reading import read_testbed  # noqa: PLC0415

    path = Path(testbed)
    if not path.is_file():
        raise UsageError(
            f"--submit needs a testbed file, and --testbed {testbed} is none",
            hint='write one with launcher = "slurm" (docs/slurm.md)',
        )
    return prepare_in(Standing(given=read_testbed(path, is_for_job=True)), campaign, *options)


def order_of(prepared: Prepared, command: tuple[str, ...], options: list[str] | None) -> Order:
    """Return what is to be submitted for a plan."""
    from fabricbench.campaign.submission import Order, job_seconds  # noqa: PLC0415
    from fabricbench.testbed.model import SlurmJob  # noqa: PLC0415

    testbed, plan = prepared.venue.testbed(), prepared.plan
    names = tuple(node.name for node in testbed.nodes)
    return Order(
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
    from fabricbench.campaign.submission import script_text  # noqa: PLC0415

    return script_text(directory, order_of(prepared, command, options), NAME_SHOWN)


def run_submitted(prepared: Prepared, context: typer.Context, directory: Path, options: list[str] | None) -> None:
    """Submit a run, or come back to it where the same was submitted; return once it is measured, else raise what it ended with."""
    from fabricbench.campaign.run_directory import RunDirectory  # noqa: PLC0415
    from fabricbench.campaign.submission import Submission, read_submission, stored_plan  # noqa: PLC0415

    directory = directory.absolute()
    command = command_inside(context, directory)
    before = read_submission(directory)
    if before is not None and before.command != command[1:]:
        raise UsageError(
            f"{directory} holds another submitted run: fabricbench {shlex.join(before.command)}",
            hint=f"come back to it with `fabricbench resume {shlex.quote(str(directory))}`, or give another -o",
        )
    if before is not None and _waited_for(directory):
        return
    if stored_plan(directory) is not None and before is not None:
        resume_submitted(directory, options, command_for_resume(directory))
        return
    run = RunDirectory(directory)
    run.check_unused()
    run.create()
    _submit(directory, order_of(prepared, command, options), before or Submission(command=command[1:]))


def command_for_resume(directory: Path, *options: str) -> tuple[str, ...]:
    """Return the command of a job that goes on with a run."""
    return (program(), "resume", *options, str(directory))


def come_back(directory: Path, *, is_submitting: bool, is_extending: bool) -> bool:
    """Wait for the job of a submitted run that waits or runs; tell whether the run is complete by then.

    Raises RunIncomplete, which says so, where the last job ended before the run did and this is neither to be submitted again nor
    within a job.
    """
    from fabricbench.campaign.submission import is_inside, last_job, read_submission  # noqa: PLC0415
    from fabricbench.testbed.allocation import JOB  # noqa: PLC0415

    directory = directory.absolute()
    submission = read_submission(directory)
    if submission is None or any(is_inside(job) for job in submission.jobs):
        return False
    job = last_job(directory, submission)
    if job is None:
        return False
    is_over_before = is_submitting or is_extending or JOB in os.environ
    return _waited_for(directory, conclude_if_over=not is_over_before, is_extending=is_extending)


def _waited_for(directory: Path, *, conclude_if_over: bool = False, is_extending: bool = False) -> bool:
    """Wait for the last job where it is not over; tell whether the run is complete. Raises what it ended with."""
    from fabricbench.campaign.submission import active, conclude, is_complete, last_job, read_submission  # noqa: PLC0415
    from fabricbench.launch.slurm import ask_job  # noqa: PLC0415

    submission = read_submission(directory)
    job = last_job(directory, submission) if submission is not None else None
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
    if conclude_if_over:
        conclude(directory, job.job_id, ask_job(job.job_id), wait=lambda _: None)
    say(f"job {job.number} ended before the run did: the rest is measured now")
    return False


def resume_submitted(
    directory: Path, options: list[str] | None, command: tuple[str, ...], *, is_trusted: bool = False
) -> None:
    """Submit what is left of a run, on the nodes that it has, and wait for it. UsageError where it is no run of Slurm."""
    from fabricbench.campaign.estimate import seconds_left  # noqa: PLC0415
    from fabricbench.campaign.run_directory import RunDirectory  # noqa: PLC0415
    from fabricbench.campaign.submission import Order, Submission, job_seconds, read_submission  # noqa: PLC0415
    from fabricbench.campaign.trust import check_trust  # noqa: PLC0415
    from fabricbench.testbed.model import Launcher, SlurmJob  # noqa: PLC0415

    directory = directory.absolute()
    run = RunDirectory(directory)
    run.check_is_run()
    run.check_confined()
    stored = run.read_plan()
    check_trust(run, stored, is_trusted=is_trusted)
    testbed = stored.venue.testbed()
    if testbed.launcher is not Launcher.SLURM:
        raise UsageError(
            f'the testbed of {directory} has launcher = "{testbed.launcher}", and jobs of Slurm run others not',
            hint="leave --submit out",
        )
    left = [one for one in stored.plan.launches if run.finished(one) is None] or list(stored.plan.launches)
    order = Order(
        command=command,
        folder=Path.cwd(),
        asked=testbed.slurm or SlurmJob(),
        nodes=tuple(node.name for node in testbed.nodes),
        seconds=job_seconds(
            seconds_left([(one.fabric, one.estimated_seconds) for one in left], []), stored.plan.patient_seconds
        ),
        options=tuple(options or ()),
    )
    _submit(directory, order, read_submission(directory) or Submission(command=tuple(stored.command[1:])))


def _submit(directory: Path, order: Order, submission: Any) -> None:
    from fabricbench.campaign.submission import submit_order  # noqa: PLC0415

    job = submit_order(directory, order, submission)
    say(f"submitted {directory / 'submit.sh'} as job {job.number}")
    _wait(directory, job)


def _wait(directory: Path, job: SubmittedJob) -> None:
    """Wait for a job, showing how it goes on, and raise what its run ended with."""
    from fabricbench.campaign.events import Notice  # noqa: PLC0415
    from fabricbench.campaign.following import Following  # noqa: PLC0415
    from fabricbench.campaign.submission import Waiting, conclude  # noqa: PLC0415

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
