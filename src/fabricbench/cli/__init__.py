"""The command line: one file for each subcommand, which `commands` lists; the only place that prints or exits."""

from __future__ import annotations

from fabricbench.cli import starting  # isort: skip

import errno
import gc
import os
import resource
import sys
from typing import Annotated, NoReturn

import typer

from fabricbench.cli import completion, version
from fabricbench.cli.commands import LazyGroup
from fabricbench.cli.output import say
from fabricbench.errors import UNEXPECTED, EnvironmentLacks, FabricbenchError, Interrupted, UsageError, exit_codes
from fabricbench.settings.ledger import has_entries

app = typer.Typer(
    name="fabricbench",
    cls=LazyGroup,
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


starting.over()

OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""Python looks for cycles each time that so many objects were made (700 by itself): of a large run nearly all are kept, there are
hardly any cycles, and looking takes a tenth of a report, and as long as reading ten thousand runs."""


def main() -> None:
    """Run the command line; every error of ours becomes a message on stderr and its exit code, any other a traceback and 70."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        if has_entries():
            from fabricbench.cli import restore  # noqa: PLC0415 - runs leave hardly ever anything to be restored

            restore.restore_at_start(sys.argv[1:])
        with completion.mended():
            app()
    except SystemExit as end:
        _leave(end)
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
    except BaseException as error:
        # Each file has been decoded by a child of its own: what polars fails at here is no file's fault.
        if type(error).__name__ != "PanicException":
            raise
        _end(
            EnvironmentLacks(
                f"tables cannot be worked with here: {str(error).splitlines()[0]}",
                hint="is the number of processes limited (`ulimit -u`, pids.max of a container), or memory? allow more",
            )
        )


def _leave(end: SystemExit) -> NoReturn:
    """End as the library of the command line does; its 1 is ours for a gate that was not passed, and means three other things."""
    cause = end.__context__
    if end.code != 1:
        raise end
    if isinstance(cause, OSError) and cause.errno == errno.EPIPE:
        sys.exit(0)  # a reader that has seen enough (`| head`); stdout is silent by now
    if isinstance(cause, typer.Abort):
        _end(Interrupted("interrupted"))
    sys.exit(UsageError.exit_code if hasattr(cause, "exit_code") else UNEXPECTED)


def _told(error: Exception) -> FabricbenchError | None:
    """Return what to tell of an error that the system or polars raised where nobody expected it; None for a bug of ours."""
    if isinstance(error, MemoryError):
        return EnvironmentLacks(
            "there is not enough memory", hint="free some, or raise the limit (`ulimit -a` shows all)"
        )
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        where = "another file or socket" if error.filename is None else error.filename
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return EnvironmentLacks(
            f"{where} cannot be opened: too many files are open, and this process may open {most}",
            hint="raise the limit: ulimit -n 1024",
        )
    if isinstance(error, ImportError):
        return EnvironmentLacks(
            f"a part of fabricbench cannot be loaded: {error}",
            hint="is the installation whole, and do limits (`ulimit -a`) leave it room?",
        )
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
    try:
        sys.stdout.flush()
    except OSError:  # a full disk: Python would try it again at its end, and end with 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(error.exit_code)
