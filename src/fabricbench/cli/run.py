"""`fabricbench run`: measure a campaign on a testbed, block by block, and keep everything in a run directory.

At the end stands the verdict: the same findings as the dossier's, as text.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.campaign.failure import LaunchesFailed
from fabricbench.campaign.power import power_of
from fabricbench.campaign.preparing import Prepared, prepare
from fabricbench.campaign.run import start_run
from fabricbench.cli.arguments import (
    BlocksOption,
    BudgetOption,
    CampaignArgument,
    NodesOption,
    NoiseOption,
    NoPreflightOption,
    ReportOption,
    SeedOption,
    TestbedOption,
    WithoutFailedNodesOption,
)
from fabricbench.cli.doctor import PreflightFormat, show_preflight
from fabricbench.cli.output import say, write_files, write_output
from fabricbench.cli.plan import RUNDIR, found_note
from fabricbench.cli.progress import RunProgress, interruptible
from fabricbench.cli.submitting import (
    DryRunOption,
    SbatchOption,
    SubmitOption,
    command_inside,
    prepare_for_job,
    run_submitted,
    script_shown,
)
from fabricbench.errors import UsageError
from fabricbench.record.account import account_of
from fabricbench.record.store import Run

app = typer.Typer()


@app.command()
def run(
    context: typer.Context,
    campaign: CampaignArgument,
    testbed: TestbedOption,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="RUNDIR", help="The run directory; must be empty or new."),
    ] = None,
    nodes: NodesOption = None,
    budget: BudgetOption = None,
    blocks: BlocksOption = None,
    seed: SeedOption = None,
    noise_from: NoiseOption = None,
    final: Annotated[
        bool, typer.Option("--final", help="No blocks will be added: verdicts need not save error for more looks.")
    ] = False,
    preflight_only: Annotated[
        bool,
        typer.Option("--preflight-only", help="Look whether the testbed is as its file says, and measure nothing."),
    ] = False,
    no_preflight: NoPreflightOption = False,
    without_failed_nodes: WithoutFailedNodesOption = False,
    form: Annotated[
        PreflightFormat, typer.Option("--format", help="How --preflight-only writes.")
    ] = PreflightFormat.TEXT,
    submit: SubmitOption = False,
    sbatch_option: SbatchOption = None,
    dry_run: DryRunOption = False,
    report: ReportOption = False,
) -> None:
    """Measure a campaign on every fabric of a testbed, in blocks of balanced orders. Ctrl-C keeps what was measured.

    First every node is looked at: what is not as the testbed says refuses the run, and nothing is written.

    Example: `fabricbench run quick --testbed lab:fast-ethernet,myrinet -o runs/today --report`, or
    `fabricbench run standard --testbed cluster.toml -o runs/today --submit`
    """
    if submit:
        if preflight_only:
            raise UsageError(
                "--submit and --preflight-only exclude each other", hint="a job looks at its own nodes first"
            )
        if nodes is not None:
            raise UsageError(
                "--nodes says how large a lab is to be built",
                hint=f"write `nodes` into [slurm] of the testbed, or add `--sbatch-option --nodes={nodes}`",
            )
        expected = prepare_for_job(campaign, testbed, budget, blocks, seed, noise_from)
        where = (output or RUNDIR).absolute()
        if dry_run:
            write_output(script_shown(expected, command_inside(context, where), sbatch_option, where), None)
            return
        _needed(output)
        run_submitted(expected, context, where, sbatch_option)
        conclude(where, has_report=report)
        return
    if dry_run or sbatch_option:
        raise UsageError("--dry-run and --sbatch-option belong to --submit", hint="add --submit, or use `plan`")
    if preflight_only and no_preflight:
        raise UsageError("--preflight-only and --no-preflight exclude each other", hint="give one of them")
    prepared = prepare(campaign, testbed, nodes, budget, blocks, seed, noise_from)
    if preflight_only:
        show_preflight(prepared.venue, prepared.plan, form)
        return
    directory = _needed(output)
    final_plan = prepared.plan.model_copy(update={"is_final": final})
    failed = None
    try:
        measure(
            replace(prepared, plan=final_plan),
            directory,
            preflight=not no_preflight,
            without_failed_nodes=without_failed_nodes,
        )
    except LaunchesFailed as error:  # all others are measured: what they say is shown, with what was lost
        failed = error
    conclude(directory, failed, has_report=report)


def _needed(output: Path | None) -> Path:
    if output is None:
        raise UsageError("run needs a directory for what it measures", hint="add `-o runs/today` say")
    return output


def measure(prepared: Prepared, directory: Path, *, preflight: bool = True, without_failed_nodes: bool = False) -> None:
    """Run what was prepared into a run directory, with its notes and its progress on stderr."""
    found = found_note(power_of(prepared.plan, prepared.noise, prepared.campaign.margin))
    for note in (*prepared.venue.testbed().notes, *prepared.plan.notes, *found):
        say(f"note: {note}")
    with RunProgress() as progress, interruptible(directory, progress.show) as notify:
        command = ("fabricbench", *sys.argv[1:])
        start_run(
            directory,
            prepared.campaign,
            prepared.venue,
            prepared.plan,
            notify=notify,
            command=command,
            preflight=preflight,
            without_failed_nodes=without_failed_nodes,
        )


def conclude(directory: Path, failed: LaunchesFailed | None = None, *, has_report: bool = False) -> None:
    """Write what a run that is over came to: the verdict to stdout, and to stderr where the run is and what to do with it.

    With `has_report` the dossier as well, from the same findings.
    RunIncomplete where any result that was asked for is not there: that is said first, and more is measured of the rest. `failed`
    is how the measuring itself ended, where launches failed in it.
    """
    from fabricbench.cli.losses import results_lost  # noqa: PLC0415 - what is to be measured begins without the report

    run = Run.open(directory)
    account = account_of(run)
    if account.launches_measured:
        dossier = _show_findings(run, has_report=has_report) or shlex.join(("fabricbench", "report", str(directory)))
        say(f"\nthe run is in {directory}\nthe dossier: {dossier}")
    if account.has_lost_results:
        raise results_lost(account, directory, quoted=failed.quoted if failed is not None else "")
    if failed is not None:
        raise failed


def _show_findings(run: Run, *, has_report: bool) -> Path | None:
    """Write the verdict, and return the dossier if it is wanted and written."""
    from fabricbench.analysis import analyse  # noqa: PLC0415 - as above
    from fabricbench.report.html import render_html, vega  # noqa: PLC0415
    from fabricbench.report.terminal import render_terminal  # noqa: PLC0415

    if has_report:
        vega()
    findings = analyse([run])
    has_colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size().columns
    write_output(render_terminal(findings, width, color=has_colour, is_brief=True), None, has_colour=has_colour)
    if not has_report:
        return None
    dossier = run.path / "dossier.html"  # as `report` calls it
    write_files({dossier: render_html(findings).encode()}, dossier)
    return dossier
