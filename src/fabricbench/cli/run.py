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

from fabricbench.campaign.preparing import Prepared, prepare
from fabricbench.cli.arguments import (
    BlocksOption,
    BudgetOption,
    CampaignArgument,
    NodesOption,
    NoiseOption,
    NoPreflightOption,
    SeedOption,
    TestbedOption,
    WithoutFailedNodesOption,
)
from fabricbench.cli.doctor import PreflightFormat, show_preflight
from fabricbench.cli.output import say, write_output
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
from fabricbench.errors import RunIncomplete, UsageError
from fabricbench.quantity import count


def register(app: typer.Typer) -> None:
    """Add the command."""

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
    ) -> None:
        """Measure a campaign on every fabric of a testbed, in blocks of random order. Ctrl-C keeps what was measured.

        First every node is looked at: what is not as the testbed says refuses the run, and nothing is written.

        Example: `fabricbench run quick --testbed lab:fast-ethernet,myrinet -o runs/today`, or
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
            show_verdict(where)
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
        measure(
            replace(prepared, plan=final_plan),
            directory,
            preflight=not no_preflight,
            without_failed_nodes=without_failed_nodes,
        )
        show_verdict(directory)


def _needed(output: Path | None) -> Path:
    if output is None:
        raise UsageError("run needs a directory for what it measures", hint="add `-o runs/today` say")
    return output


def measure(prepared: Prepared, directory: Path, *, preflight: bool = True, without_failed_nodes: bool = False) -> None:
    """Run what was prepared into a run directory, with its notes and its progress on stderr."""
    from fabricbench.campaign.power import power_of  # noqa: PLC0415
    from fabricbench.campaign.run import start_run  # noqa: PLC0415 - keeps the start of the program fast

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


def show_verdict(directory: Path) -> None:
    """Write the verdict of a finished run to stdout, and to stderr where the run is, what failed in it, what to do with it.

    RunIncomplete where nothing in it was measured.
    """
    from fabricbench.analysis import analyse  # noqa: PLC0415 - keeps the start of the program fast
    from fabricbench.campaign.specification import Campaign  # noqa: PLC0415
    from fabricbench.record.export import failed_tests, violations  # noqa: PLC0415
    from fabricbench.record.store import Run  # noqa: PLC0415
    from fabricbench.report.terminal import render_terminal  # noqa: PLC0415

    run = Run.open(directory)
    failed = failed_tests(run)
    if not any(launch.is_valid and launch.summary.cells > 0 for launch in run.launches):
        raise RunIncomplete(
            f"all {count(len(run.launches), 'launch')} of {directory} are over, and none has a test that counts; first:\n"
            + "\n".join(f"  {one}" for one in (*failed, *violations(run))[:MOST_REASONS]),
            hint=f"mend that and measure anew: {shlex.join(('fabricbench', 'show', str(directory), '--summary'))} tells the others",
        )
    margin = Campaign.model_validate(run.manifest.campaign).margin
    findings = analyse([run], baseline=None, margin=margin)
    has_colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size().columns
    write_output(render_terminal(findings, width, color=has_colour, is_brief=True), None, has_colour=has_colour)
    if failed:
        told = "".join(f"\n  {one}" for one in failed[:MOST_REASONS])
        say(f"\n{count(len(failed), 'test')} could not be measured, or came out wrong, in one launch or more:{told}")
    say(f"\nthe run is in {directory}\nthe dossier: {shlex.join(('fabricbench', 'report', str(directory)))}")


MOST_REASONS = 3
"""As many of what failed as one reads at the end of a run."""
