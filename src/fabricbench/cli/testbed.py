"""`fabricbench testbed`: what is done with a testbed as a whole."""

from __future__ import annotations

import typer

from fabricbench.cli import restore

testbed_app = typer.Typer(
    name="testbed",
    help="Testbeds: what is done with all nodes at once.",
    epilog="Example: `fabricbench testbed restore`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    restore.register(testbed_app)
    app.add_typer(testbed_app)
