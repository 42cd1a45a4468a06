"""The command line: one file for each subcommand, listed here; the only place that prints or exits."""

from __future__ import annotations

import sys

import typer

from fabricbench.errors import FabricbenchError

# Each module here defines `register(app)`. One line for each subcommand.
from fabricbench.cli import (  # isort: skip
    run, plan, resume, compare, report, check, selfcheck, show, lab, doctor, version,
)  # fmt: skip

COMMANDS = (run, plan, resume, compare, report, check, selfcheck, show, lab, doctor, version)

app = typer.Typer(
    name="fabricbench",
    help="Measure, explain and compare cluster interconnects, and choose one with evidence.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root() -> None:
    """Measure, explain and compare cluster interconnects, and choose one with evidence."""


for command in COMMANDS:
    command.register(app)


def main() -> None:
    """Run the command line; every error of ours becomes a message on stderr and its exit code."""
    try:
        app()
    except FabricbenchError as error:
        sys.stderr.write(f"fabricbench: {error.message}\n")
        if error.hint:
            sys.stderr.write(f"  what to do: {error.hint}\n")
        sys.exit(error.exit_code)
