"""The command line: one file for each subcommand, listed here; the only place that prints or exits."""

from __future__ import annotations

from fabricbench.cli import starting  # isort: skip

import os
import sys
from typing import Annotated, NoReturn

import typer

from fabricbench.cli import completion, restore
from fabricbench.cli.output import say
from fabricbench.errors import UNEXPECTED, EnvironmentLacks, FabricbenchError, Interrupted, UsageError, exit_codes

# Each module here defines `register(app)`. One line for each subcommand.
from fabricbench.cli import (  # isort: skip
    run, plan, resume, import_, compare, report, check, selfcheck, show, verify, runs, map as map_, list as list_, lab,
    testbed, doctor, build, version,
)  # fmt: skip

COMMANDS = (
    run,
    plan,
    resume,
    import_,
    compare,
    report,
    check,
    selfcheck,
    show,
    verify,
    runs,
    map_,
    list_,
    lab,
    testbed,
    doctor,
    build,
    version,
)

app = typer.Typer(
    name="fabricbench",
    help="Measure, explain and compare cluster interconnects, and choose one with evidence.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    epilog="Example: `fabricbench run quick --testbed lab:fast-ethernet,myrinet -o runs/today`\n\nExit codes:\n\n"
    + "\n".join(f"* {code}: {meaning}" for code, meaning in exit_codes().items()),
    context_settings={"help_option_names": ["-h", "--help"]},
)


VersionOption = Annotated[
    bool,
    typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=version.end_with_version),
]


@app.callback()
def _root(_version: VersionOption = False) -> None:
    """Measure, explain and compare cluster interconnects, and choose one with evidence."""


for command in COMMANDS:
    command.register(app)

starting.over()


def main() -> None:
    """Run the command line; every error of ours becomes a message on stderr and its exit code, any other a traceback and 70."""
    try:
        restore.restore_at_start(sys.argv[1:])
        with completion.mended():
            app()
    except FabricbenchError as error:
        _end(error)
    except KeyboardInterrupt:
        _end(Interrupted("interrupted"))
    except Exception as error:
        told = _told(error)
        if told is None:
            sys.excepthook(type(error), error, error.__traceback__)
            raise SystemExit(UNEXPECTED) from error
        _end(told)


def _told(error: Exception) -> FabricbenchError | None:
    """Return what to tell of an error that the system or polars raised where nobody expected it; None for a bug of ours."""
    if isinstance(error, OSError) and error.errno is not None:
        where = "the output" if error.filename is None else error.filename
        return EnvironmentLacks(f"{where}: {os.strerror(error.errno)}", hint="check permissions and free space there")
    if type(error).__module__.startswith("polars."):  # which is imported only where a run is read
        return UsageError(
            f"stored data cannot be read: {str(error).splitlines()[0]}",
            hint="a file below launches/ is damaged: remove that launch's folder, and `fabricbench resume` measures it again",
        )
    return None


def _end(error: FabricbenchError) -> NoReturn:
    say(f"fabricbench: {error.message}")
    if error.hint:
        say(f"  what to do: {error.hint}")
    sys.exit(error.exit_code)
