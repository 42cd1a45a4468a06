"""`fabricbench list`: every layer, pattern and operation, what it measures and what it may be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.cli import completion
from fabricbench.cli.output import write_output


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(name="list")
    def list_(
        name: Annotated[
            str | None,
            typer.Argument(
                metavar="[NAME]",
                autocompletion=completion.measurable,
                help="A pattern, an operation or a layer, or `workloads`.",
            ),
        ] = None,
        json_: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
        output: Annotated[
            Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")
        ] = None,
    ) -> None:
        """List the layers, patterns, operations and kinds of workload that can be measured, or tell one of them in detail.

        Example: `fabricbench list`, `fabricbench list chaos` or `fabricbench list tcp --json`
        """
        from fabricbench.cli.list_text import as_data, as_text  # noqa: PLC0415 - keeps the start of the program fast

        write_output(as_data(name) if json_ else as_text(name), output)
