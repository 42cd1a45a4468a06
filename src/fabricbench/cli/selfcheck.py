"""`fabricbench selfcheck`: does a fabric differ from itself here? Exit codes: 0 no, 1 bias or dependence, 5 too little data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.analysis.selfcheck import analyse_selfcheck
from fabricbench.campaign.preparing import prepare_in
from fabricbench.campaign.venue import find_aa_pair
from fabricbench.cli.arguments import (
    BlocksOption,
    BudgetOption,
    NodesOption,
    RunOrNewArgument,
    SeedOption,
    refuse_without,
)
from fabricbench.cli.losses import losses_said
from fabricbench.cli.output import OutputFormat, check_output, share_option, write_output
from fabricbench.cli.run import measure
from fabricbench.cli.selfcheck_text import conclude, render
from fabricbench.record.store import Run

app = typer.Typer()


@app.command()
def selfcheck(
    context: typer.Context,
    run: RunOrNewArgument,
    testbed: Annotated[
        str | None,
        typer.Option(metavar="WHERE", help="Measure first: one fabric of this testbed, against itself, by block."),
    ] = None,
    fabric: Annotated[
        str | None, typer.Option(help="Check this fabric only (default: all; with --testbed, its only one).")
    ] = None,
    campaign: Annotated[str, typer.Option(help="With --testbed: what is measured.")] = "quick",
    nodes: NodesOption = None,
    budget: BudgetOption = None,
    blocks: BlocksOption = None,
    seed: SeedOption = None,
    margin: Annotated[str, typer.Option(help="Smallest relative difference that matters: 2% or 0.02.")] = "2%",
    confidence: Annotated[str, typer.Option(help="Confidence of intervals and verdicts: 0.95 or 95%.")] = "0.95",
    form: Annotated[OutputFormat, typer.Option("--format", help="How to write it.")] = OutputFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
) -> None:
    """Compare a fabric with itself: exit with 1 if it differs from itself or its launches depend on each other, 5 if data lack.

    First the plain comparison (a fabric that is listed twice by block, the first half of the launches against the second), then
    autocorrelation and drift of launches and ratios, last a check of the method. A healthy machine fails in at most 5 % of
    checks; a second failure decides.

    Examples: `fabricbench selfcheck runs/today --fabric myrinet`, or, measuring first,
    `fabricbench selfcheck runs/aa --testbed lab:myrinet --blocks 12`
    """
    check_output(output)
    share, level = share_option(margin, "--margin"), share_option(confidence, "--confidence")
    if testbed is not None:
        measure(prepare_in(find_aa_pair(testbed, fabric, nodes), campaign, budget, blocks, seed), run)
        fabric = None  # the run holds the fabric and its twin, and nothing else
    else:
        refuse_without(context, "--testbed", "campaign", "nodes", "budget", "blocks", "seed")
    with losses_said():
        found = analyse_selfcheck(Run.open(run), fabric=fabric, margin=share, confidence=level)
    write_output(render(found, form) + "\n", output)
    conclude(found)
