"""`fabricbench resume`: go on with a run that was interrupted, killed, or had launches that failed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.cli.interruption import interruptible
from fabricbench.cli.progress import RunProgress
from fabricbench.cli.verdict import show_verdict


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def resume(
        run_directory: Annotated[Path, typer.Argument(metavar="RUNDIR", help="What `run -o` was given.")],
    ) -> None:
        """Go on with a run, by the same plan and seed: what is finished stays, what was cut short is kept aside and run again.

        Example: `fabricbench resume runs/today`
        """
        from fabricbench.campaign.run import resume_run  # noqa: PLC0415 - keeps the start of the program fast

        with RunProgress() as progress, interruptible(run_directory, progress.show) as notify:
            resume_run(run_directory, notify=notify)
        show_verdict(run_directory)
