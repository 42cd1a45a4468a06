"""`fabricbench version`."""

from __future__ import annotations

import typer

import fabricbench


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def version() -> None:
        """Print the version.

        Example: `fabricbench version`
        """
        typer.echo(f"fabricbench {fabricbench.__version__}")
