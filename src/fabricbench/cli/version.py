"""`fabricbench version`, and the option that people try first."""

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
        _tell()


def end_with_version(is_asked: bool) -> None:
    """Do what `--version` asks for."""
    if is_asked:
        _tell()
        raise typer.Exit


def _tell() -> None:
    typer.echo(f"fabricbench {fabricbench.__version__}")
