"""`fabricbench resume`: go on with a run that was interrupted, killed, or had launches that failed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.campaign.failure import LaunchesFailed
from fabricbench.campaign.run import resume_run
from fabricbench.cli import completion
from fabricbench.cli.arguments import NoPreflightOption, ReportOption, WithoutFailedNodesOption
from fabricbench.cli.output import say
from fabricbench.cli.progress import RunProgress, interruptible
from fabricbench.cli.run import conclude
from fabricbench.cli.submitting import SbatchOption, SubmitOption, come_back, command_inside, resume_submitted
from fabricbench.errors import UsageError
from fabricbench.record.store import Run
from fabricbench.statistics.correction import level_of_look
from fabricbench.testbed.allocation import is_in_job

app = typer.Typer()


@app.command()
def resume(
    context: typer.Context,
    run_directory: Annotated[
        Path,
        typer.Argument(metavar="RUNDIR", autocompletion=completion.run_directories, help="What `run -o` was given."),
    ],
    blocks: Annotated[
        int | None,
        typer.Option("--blocks", min=1, help="Add blocks, up to so many in all; a look that verdicts pay for."),
    ] = None,
    trust_plan: Annotated[
        bool,
        typer.Option(
            "--trust-plan", help="Start what the plan asks for, though somebody else wrote it (docs/trust.md)."
        ),
    ] = False,
    no_preflight: NoPreflightOption = False,
    without_failed_nodes: WithoutFailedNodesOption = False,
    submit: SubmitOption = False,
    sbatch_option: SbatchOption = None,
    report: ReportOption = False,
) -> None:
    """Go on with a run, by the same plan and seed: what is finished stays, what was cut short is kept aside and run again.

    First every node is looked at, as `run` does: what is not as the testbed says refuses to go on, and nothing is written.

    A run that was submitted to Slurm is waited for where its job is there. Where that ended before the run did, --submit
    submits the rest, and within a job that has the nodes it goes on at once.

    Example: `fabricbench resume runs/today`, with `--blocks 24` for more blocks, `--without-failed-nodes`, or `--submit`
    """
    if sbatch_option and not submit:
        raise UsageError("--sbatch-option belongs to --submit", hint="add --submit")
    directory = run_directory.absolute()
    if come_back(directory, may_go_on=submit or is_in_job(), is_extending=blocks is not None):
        conclude(run_directory, has_report=report)
        return
    if submit:
        command = command_inside(context, directory)
        resume_submitted(directory, sbatch_option, command, blocks=blocks, is_trusted=trust_plan)
        _tell_of_looks(run_directory)
        conclude(run_directory, has_report=report)
        return
    with RunProgress() as progress, interruptible(run_directory, progress.show) as notify:
        failed = None
        try:
            resume_run(
                run_directory,
                notify=notify,
                blocks=blocks,
                is_trusted=trust_plan,
                preflight=not no_preflight,
                without_failed_nodes=without_failed_nodes,
            )
        except LaunchesFailed as error:
            failed = error
    _tell_of_looks(run_directory)
    conclude(run_directory, failed, has_report=report)


def _tell_of_looks(directory: Path) -> None:
    """Say on stderr what adding blocks has cost."""
    run = Run.open(directory)
    if len(run.looks) < 2:
        return
    seen = ", ".join(map(str, run.looks[:-1]))
    share = level_of_look(run.looks, 1.0, is_final=run.is_final)
    say(
        f"note: blocks were added when {seen} had been measured, so this is look number {len(run.looks)}: "
        f"its verdicts may spend {share:.3g} of the error that all looks share"
    )
