"""`fabricbench check`: the gate for CI. Exit codes: 0 passed, 1 a regression, 5 inconclusive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.cli.output import write_output
from fabricbench.cli.tables import Format, share_option


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def check(
        run: Annotated[Path, typer.Argument(metavar="RUNDIR_NEW", help="The run to judge.")],
        baseline: Annotated[Path, typer.Option(metavar="RUNDIR_OLD", help="The run that it must not be worse than.")],
        max_regression: Annotated[str, typer.Option(help="Largest slowdown that is allowed: 5% or 0.05.")] = "5%",
        confidence: Annotated[str, typer.Option(help="Confidence of intervals and of the gate: 0.95 or 95%.")] = "0.95",
        form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TEXT,
        output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
    ) -> None:
        """Gate: exit with 1 if a cell became slower by more than allowed, with 5 if the data cannot say, else with 0.

        A cell passes when its interval excludes a slowdown beyond the allowed one, and regresses when the interval lies
        wholly beyond it (corrected for the number of cells).

        Example: `fabricbench check --baseline runs/old runs/new --max-regression 5%`
        """
        from fabricbench.analysis.gate import check_regressions  # noqa: PLC0415 - keeps the start of the program fast
        from fabricbench.cli.check_text import conclude, render  # noqa: PLC0415
        from fabricbench.record.store import Run  # noqa: PLC0415

        report = check_regressions(
            Run.open(baseline),
            Run.open(run),
            maximum=share_option(max_regression, "--max-regression"),
            confidence=share_option(confidence, "--confidence"),
        )
        write_output(render(report, form) + "\n", output)
        conclude(report)
