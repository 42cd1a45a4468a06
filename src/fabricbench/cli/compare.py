"""`fabricbench compare`: fabrics of one run against each other, runs before a change and after, or any number of configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Severity
from fabricbench.cli.arguments import MarginOption, UnitsOption
from fabricbench.cli.compare_text import UNBOUNDED, render
from fabricbench.cli.losses import losses_said, say_losses
from fabricbench.cli.output import OutputFormat, check_output, output_width, say, share_option, write_output
from fabricbench.cli.several_runs import AfterOption, BeforeOption, RunsArgument, SeveralRunsCommand, runs_to_analyse
from fabricbench.quantity import RateUnit
from fabricbench.record.decision_table import read_decision

app = typer.Typer()


@app.command(cls=SeveralRunsCommand)
def compare(
    runs: RunsArgument = None,
    before: BeforeOption = None,
    after: AfterOption = None,
    baseline: Annotated[
        str | None, typer.Option(help="The fabric that all others are compared with (default: the first).")
    ] = None,
    margin: MarginOption = None,
    confidence: Annotated[str, typer.Option(help="Confidence of intervals and verdicts: 0.95 or 95%.")] = "0.95",
    decision: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rank and cost the fabrics by the [decision] of this TOML file."),
    ] = None,
    units: UnitsOption = RateUnit.BITS,
    form: Annotated[OutputFormat, typer.Option("--format", help="How to write it.")] = OutputFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
) -> None:
    """Compare the fabrics of a run, or one fabric's runs before and after: ratio, interval, corrected p-value, verdict.

    Example: `fabricbench compare runs/today --format json -o today.json`

    Before and after a change: `fabricbench compare --before runs/a1 runs/a2 runs/a3 --after runs/b1 runs/b2 runs/b3`.
    With one run a side, `fabricbench compare runs/a1 runs/b1`, a change cannot be told from what else differed between the
    sessions.

    Any number of configurations, named by what their runs differ in: `fabricbench compare runs/a runs/b runs/c`; runs of the
    same configuration are together. Named and grouped by you: `fabricbench compare old=runs/a1 old=runs/a2 new=runs/b1`.
    """
    del units  # which `UnitsOption` has set
    check_output(output)
    sides = runs_to_analyse(runs, before, after)
    smallest = None if margin is None else share_option(margin, "--margin")
    level = share_option(confidence, "--confidence")
    weights = None if decision is None else read_decision(decision)
    with losses_said():
        findings = analyse(**sides, baseline=baseline, margin=smallest, confidence=level, decision=weights)
    if form in (OutputFormat.JSON, OutputFormat.CSV):  # the others begin with it
        say_losses(findings.accounts, findings.run_directories)
    write_output(render(findings, form, output_width(output, UNBOUNDED)) + "\n", output)
    for warning in findings.warnings:
        if warning.severity is not Severity.NOTE:
            say(f"{warning.severity.value}: {warning.subject}: {warning.text}")
