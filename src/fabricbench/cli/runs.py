"""`fabricbench runs`: what was measured so far, newest first."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricbench.cli.output import write_output
from fabricbench.record.provenance import Proof
from fabricbench.table import as_text, table

if TYPE_CHECKING:
    from fabricbench.record.past_runs import PastRun


class Format(StrEnum):
    """How `runs` writes."""

    TEXT = "text"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def runs(
        folder: Annotated[
            Path, typer.Argument(metavar="[DIR]", help="Where to look, and below it.", show_default=False)
        ] = Path(),
        format_: Annotated[Format, typer.Option("--format")] = Format.TEXT,
        output: Annotated[
            Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")
        ] = None,
    ) -> None:
        """List the runs in a folder (the present one) and below it, newest first, with how much of each is there.

        Example: `fabricbench runs` or `fabricbench runs results --format json`
        """
        from fabricbench.record.past_runs import past_runs  # noqa: PLC0415 - keeps the start of the program fast

        found = past_runs(folder)
        if format_ is Format.JSON:
            text = json.dumps([run.model_dump(mode="json") for run in found], indent=1)
        elif found:
            columns = ("run", "date (UTC)", "campaign", "testbed", "fabrics", "blocks", "state")
            text = as_text(table(columns, [_row(run) for run in found], title=f"runs in {folder.absolute()}"))
            text += "".join(f"\n{_shown(run.path)}: {_shown(run.reason)}" for run in found if run.reason)
        else:
            text = f"no runs in {folder.absolute()}"
        write_output(text + "\n", output)


def _row(run: PastRun) -> tuple[str, ...]:
    date = "-" if run.created is None else run.created.strftime("%Y-%m-%d %H:%M")
    blocks = "-" if run.blocks_planned is None else f"{run.blocks_done} of {run.blocks_planned}"
    named = (run.campaign, run.testbed, ", ".join(run.fabrics))
    return (_shown(run.path), date, *(_shown(name) for name in named), blocks, _state(run))


def _state(run: PastRun) -> str:
    if not run.unproven:
        return run.state.value
    return f"{run.state.value}, {Proof.UNKNOWN.doubt}: {_shown(', '.join(run.unproven))}"


def _shown(text: str | None) -> str:
    """Return what a file says so that a terminal only shows it: a run from elsewhere may hold escape sequences."""
    return "".join(sign if sign.isprintable() else "?" for sign in text or "-")
