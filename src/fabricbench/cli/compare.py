"""`fabricbench compare`: fabrics of one run against each other, or a run before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.cli.output import write_output
from fabricbench.cli.tables import Format, share_option
from fabricbench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def compare(
        runs: Annotated[list[Path], typer.Argument(metavar="RUNDIR [RUNDIR]", help="One run, or two: before, after.")],
        baseline: Annotated[
            str | None, typer.Option(help="The fabric that all others are compared with (default: the first).")
        ] = None,
        margin: Annotated[str, typer.Option(help="Smallest relative difference that matters: 2% or 0.02.")] = "2%",
        confidence: Annotated[str, typer.Option(help="Confidence of intervals and verdicts: 0.95 or 95%.")] = "0.95",
        form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TEXT,
        output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
    ) -> None:
        """Compare the fabrics of a run, or one fabric's runs before and after: ratio, interval, corrected p-value, verdict.

        Example: `fabricbench compare runs/today --format json -o today.json`

        Before and after: `fabricbench compare runs/before runs/after`
        """
        from fabricbench.analysis import analyse  # noqa: PLC0415 - keeps the start of the program fast
        from fabricbench.analysis.findings import Severity  # noqa: PLC0415
        from fabricbench.cli.compare_text import render  # noqa: PLC0415
        from fabricbench.record.store import Run  # noqa: PLC0415

        if len(runs) > 2:
            raise UsageError(f"{len(runs)} run directories were given", hint="give one, or two: before, after")
        findings = analyse(
            [Run.open(path) for path in runs],
            baseline=baseline,
            margin=share_option(margin, "--margin"),
            confidence=share_option(confidence, "--confidence"),
        )
        for warning in findings.warnings:
            if warning.severity is not Severity.NOTE:
                typer.echo(f"{warning.severity.value}: {warning.subject}: {warning.text}", err=True)
        write_output(render(findings, form) + "\n", output)
