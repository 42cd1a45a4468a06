"""`fabricbench selfcheck`: how often are verdicts wrong on data where nothing differs?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.analysis.selfcheck import Selfcheck, SelfcheckResult, analyse_selfcheck
from fabricbench.analysis.wording import percent
from fabricbench.cli.campaign_options import BlocksOption, BudgetOption, NodesOption, SeedOption, prepare_in
from fabricbench.cli.run import measure
from fabricbench.cli.tables import Format, Table, as_csv, as_json, as_markdown, as_text, deliver, share_option
from fabricbench.record.store import Run

COLUMNS = (
    "fabric",
    "way",
    "launches",
    "cells",
    "trials",
    "with a wrong verdict",
    "wrong verdicts",
    "equivalent",
    "not enough data",
    "resolves",
)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def selfcheck(
        run: Annotated[
            Path, typer.Argument(metavar="RUNDIR", help="A stored run; with --testbed, where to store a new one.")
        ],
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
        form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TEXT,
        output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
    ) -> None:
        """Compare a fabric with itself many ways and report the share of wrong verdicts; at most 5 % of trials may have one.

        Examples: `fabricbench selfcheck runs/today --fabric myrinet`, or, measuring first,
        `fabricbench selfcheck runs/aa --testbed lab:myrinet --blocks 12`
        """
        if testbed is not None:
            from fabricbench.campaign.venue import find_twins  # noqa: PLC0415 - keeps the start of the program fast

            measure(prepare_in(find_twins(testbed, fabric, nodes), campaign, budget, blocks, seed), run)
            fabric = None  # the run holds the fabric and its twin, and nothing else
        found = analyse_selfcheck(
            Run.open(run),
            fabric=fabric,
            margin=share_option(margin, "--margin"),
            confidence=share_option(confidence, "--confidence"),
        )
        deliver(render(found, form), output)


def render(found: Selfcheck, form: Format) -> str:
    """Return the self-check in a format."""
    if form is Format.JSON:
        return as_json({**found.model_dump(mode="json"), "wrong_trials": found.wrong_trials})
    if form is Format.CSV:
        return as_csv([one.model_dump(mode="json") for one in found.results], list(SelfcheckResult.model_fields))
    title = (
        f"wrong verdicts in {percent(found.wrong_trials)} of trials where nothing differs (at most "
        f"{percent(1 - found.confidence)} expected)"
    )
    table = Table(title, COLUMNS, [_row(one) for one in found.results])
    text = (as_markdown if form is Format.MARKDOWN else as_text)(table)
    return "\n".join([text, *(f"not checked: {reason}" for reason in found.skipped)])


def _row(one: SelfcheckResult) -> tuple[str, ...]:
    shares = (one.wrong_trials, one.wrong_verdicts, one.equivalent, one.not_enough_data)
    name = one.fabric if one.twin is None else f"{one.fabric}, {one.twin}"
    counts = (str(one.launches), str(one.cells), str(one.trials))
    return (name, one.way, *counts, *(percent(share) for share in shares), f"about {percent(one.typical_half_width)}")
