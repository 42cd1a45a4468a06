"""`fabricbench explain`: where the time of a round trip passes, in the hosts and between them, and what differs between fabrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.analysis.findings.stages import CauseConfirmation, StageCause
from fabricbench.campaign.preparing import prepare
from fabricbench.campaign.presets import EXPLAIN
from fabricbench.chapters import stages
from fabricbench.chapters.chapter import rows_of
from fabricbench.chapters.stage_tables import CAUSES, STAGES
from fabricbench.cli import confirming
from fabricbench.cli.arguments import NodesOption, RunOrNewArgument, SeedOption, refuse_without
from fabricbench.cli.losses import results_lost, say_losses
from fabricbench.cli.output import OutputFormat, as_json, check_output, output_width, prose, write_output
from fabricbench.cli.run import measure
from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.record.account import account_of
from fabricbench.record.provenance import mark_words
from fabricbench.record.store import Run
from fabricbench.report.cause_words import confirmation_words
from fabricbench.report.comma_separated import flat
from fabricbench.report.fitting import fitted
from fabricbench.table import as_markdown, as_text, rows_csv

USUAL_WIDTH = 120
"""Columns of text in files and pipes."""


app = typer.Typer()


@app.command()
def explain(
    context: typer.Context,
    run: RunOrNewArgument,
    testbed: Annotated[
        str | None,
        typer.Option(metavar="WHERE", help="Measure first: the campaign `explain`, as `run` names testbeds."),
    ] = None,
    nodes: NodesOption = None,
    seed: SeedOption = None,
    blocks: Annotated[
        int | None,
        typer.Option(min=2, help="With --testbed or --confirm: launches on each fabric (default: the campaign's)."),
    ] = None,
    confirm: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Measure each cause taken away, beside the same as it was, where the run took place; store it there.",
        ),
    ] = None,
    form: Annotated[OutputFormat, typer.Option("--format", help="How to write it.")] = OutputFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
) -> None:
    """Show the stages of round trips: how long each message is in library and socket, in the queue, on the wire, waking up.

    With --testbed messages over udp, tcp and mpi are measured first: alone, at a set rate, in turn and in bursts; where raw sockets
    may be opened, messages in turn over frame and ip as well. No right is needed for it. What delays them is named where a rule
    knows it, and --confirm measures whether it goes where that is taken away.

    Examples: `fabricbench explain runs/why --testbed lab:fast-ethernet,myrinet`, `fabricbench explain runs/today`
    """
    check_output(output)
    if testbed is not None:
        measure(prepare(EXPLAIN.name, testbed, nodes, None, blocks, seed), run)
    else:
        refuse_without(context, "--testbed", "nodes", "seed", *(() if confirm is not None else ("blocks",)))
    opened = Run.open(run)
    findings = analyse([opened])
    causes = rows_of(findings, CAUSES, StageCause)
    confirmed = () if confirm is None else confirming.confirm(causes, run, confirm, blocks)
    write_output(render(findings, form, confirmed, width=output_width(output, USUAL_WIDTH)) + "\n", output)
    account = account_of(opened)
    if testbed is not None and account.has_lost_results:
        raise results_lost(account, run)
    say_losses((account,), (str(run),))


CONFIRMATIONS = "stage-confirmations"


MEDIANS = (
    "The tables have medians over messages, then over launches, which need not add up to that of the round trip; what a cause "
    "takes is a mean over messages."
)


def render(
    findings: Findings, form: OutputFormat, confirmed: Sequence[CauseConfirmation] = (), *, width: int = USUAL_WIDTH
) -> str:
    """Return the chapter of stages in a format; JSON holds it at full precision, CSV its stages. UsageError where there is none."""
    records = {
        name: [row.model_dump(mode="json") if isinstance(row, Model) else dict(row) for row in rows]
        for name, rows in stages.CHAPTER.records_of(findings).items()
    }
    if confirmed:
        records[CONFIRMATIONS] = [
            {**one.model_dump(mode="json"), "is_confirmed": one.is_confirmed} for one in confirmed
        ]
    if not records[STAGES]:
        raise UsageError(
            f"no stages were measured in {findings.run_directories[0]}",
            hint=f"it needs {stages.CHAPTER.needs}; `fabricbench explain RUNDIR --testbed WHERE` measures them",
        )
    if form is OutputFormat.JSON:
        return as_json(records)
    if form is OutputFormat.CSV:
        return rows_csv([flat(row) for row in records[STAGES]]).rstrip("\n")
    lines = [*map(confirmation_words, confirmed), *stages.CHAPTER.lines(findings), MEDIANS, *mark_words(findings.marks)]
    written = [
        as_markdown(replace(table, title=title))
        if form is OutputFormat.MARKDOWN
        else f"{title}\n{as_text(fitted(table, width))}"
        for title, table in stages.CHAPTER.tables_with_rows(findings)
    ]
    return "\n\n".join([prose(lines, form, width), *written])
