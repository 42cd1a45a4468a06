"""`fabricbench export`: the results of a run in the formats that other programs read."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.cli.arguments import ForceOption, RunArgument
from fabricbench.cli.losses import say_losses
from fabricbench.cli.output import check_new, check_output, opened_output, say
from fabricbench.errors import UsageError
from fabricbench.exchange.exported import ExportedFile, Exporter
from fabricbench.exchange.exporter import Exported, export_run, exporter_named
from fabricbench.exchange.placing import write_file, write_folder, write_zip
from fabricbench.printable import printable
from fabricbench.quantity import count
from fabricbench.record.account import account_of
from fabricbench.record.store import Run


class ExportFormat(StrEnum):
    """What can be asked for; `fabricbench.exchange.exporter` writes them."""

    CSV = "csv"
    PARQUET = "parquet"
    BENCHSTAT = "benchstat"
    GOOGLE_BENCHMARK = "google-benchmark"
    BENCHER = "bencher"
    OPENMETRICS = "openmetrics"
    JUNIT = "junit"
    OSU = "osu"
    REFRAME = "reframe"
    EXTRA_P = "extra-p"
    RO_CRATE = "ro-crate"


STDOUT = Path("-")
ZIP = ".zip"
OTHER_ARCHIVES = (".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z")


app = typer.Typer()


@app.command()
def export(
    run_directory: RunArgument,
    form: Annotated[ExportFormat, typer.Option("--format", help="What is to read it.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="PATH", help="A file, or - for stdout; of several files a folder or a .zip."
        ),
    ] = STDOUT,
    force: ForceOption = False,
) -> None:
    """Write a launch's value of each test as other programs read it, with its unit, fabric, test, launch and origin.

    What counts nowhere (a path that was refuted, a test that failed) is marked where the format can, and else left out and
    counted; what a format has no place for is said on stderr. Every sample: `fabricbench show RUNDIR --format csv`.

    Example: `fabricbench export runs/today --format csv -o launches.csv`
    """
    exporter = exporter_named(form.value)
    _check_output(exporter, output, may_replace=force)
    run = Run.open(run_directory)
    say_losses((account_of(run),), (str(run_directory),))
    exported = export_run(run, exporter)
    for remark in exported.remarks:
        say(f"{form.value}: {remark}")
    _write(exporter, exported, output)
    if output != STDOUT:
        say(f"{count(exported.results, 'result')} in {output}")


def _check_output(exporter: Exporter, output: Path, *, may_replace: bool) -> None:
    """Refuse what is there, stdout where it cannot take what the format is, and names that promise what is not written.

    Nothing is read yet.
    """
    if output != STDOUT:
        _check_ending(exporter, output)
        if _is_in_a_folder(exporter, output):
            check_new(output)
        else:
            check_output(output, may_replace=may_replace)
        return
    if exporter.is_folder:
        raise UsageError(
            f"{exporter.name} is several files, and stdout is one",
            hint="name a folder, or a file that ends in .zip, with -o",
        )
    if not exporter.is_text and sys.stdout.isatty():
        raise UsageError(
            f"{exporter.name} is binary and stdout is a terminal", hint=f"name a file: -o launches{exporter.suffix}"
        )


def _is_in_a_folder(exporter: Exporter, output: Path) -> bool:
    """Whether a folder is written: a new one only, as what is in one that is there is not ours."""
    return exporter.is_folder and output.suffix.lower() != ZIP


def _check_ending(exporter: Exporter, output: Path) -> None:
    """Raise UsageError where a name ends as an archive's or a file's does, and something else would be written."""
    ending = output.suffix.lower()
    if exporter.is_folder and ending in (*OTHER_ARCHIVES, exporter.suffix) and ending != ZIP:
        raise UsageError(
            f"{exporter.name} is several files, and {output} ends as one file does",
            hint="name a folder, or a file that ends in .zip, with -o",
        )
    if not exporter.is_folder and ending in (ZIP, *OTHER_ARCHIVES):
        raise UsageError(
            f"{exporter.name} is one file, and {output} ends as an archive does",
            hint=f"name a file: -o {output.with_suffix(exporter.suffix)}",
        )


def _write(exporter: Exporter, exported: Exported, output: Path) -> None:
    if _is_in_a_folder(exporter, output):
        write_folder(exported.files, output)
        return
    with opened_output(output) as stream:
        if exporter.is_folder:
            write_zip(exported.files, stream)
        else:
            write_file(_for_terminal(exporter, exported.files[0], output), stream)


def _for_terminal(exporter: Exporter, file: ExportedFile, output: Path) -> ExportedFile:
    """Return a file as a terminal may show it: a run from elsewhere may hold escape sequences. Pipes and files get what it is."""
    if output != STDOUT or not exporter.is_text or not sys.stdout.isatty() or not isinstance(file.content, bytes):
        return file
    return replace(file, content=printable(file.content.decode()).encode())
