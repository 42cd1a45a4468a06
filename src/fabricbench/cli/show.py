"""`fabricbench show`: what a run measured, as a table or for other programs."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Annotated, Any, BinaryIO

import polars as pl
import typer

from fabricbench.cli.arguments import RunArgument, UnitsOption
from fabricbench.cli.losses import say_losses, unequal_of
from fabricbench.cli.output import check_output, opened_output, say, value_text
from fabricbench.errors import UsageError
from fabricbench.model import Metric
from fabricbench.printable import printable
from fabricbench.quantity import RateUnit, count, format_bytes
from fabricbench.record.account import account_of
from fabricbench.record.export import SAMPLE_COLUMNS, sample_scans, summary_frame
from fabricbench.record.provenance import MARKS, Proof, origin_of
from fabricbench.record.run_account import RunAccount
from fabricbench.record.store import Run
from fabricbench.report.first_screen import LOST
from fabricbench.report.losses import loss_lines
from fabricbench.table import as_text, table

MOST_NAMED = 4
"""Attempts that are named before it is said how many more there are."""


class ShowFormat(StrEnum):
    """How `show` writes."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


app = typer.Typer()


@app.command()
def show(
    run_directory: RunArgument,
    format_: Annotated[
        ShowFormat | None,
        typer.Option("--format", help="Default: text on a terminal, else csv. text is always the summary."),
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="A row for each fabric and test instead of every sample.")
    ] = False,
    units: UnitsOption = RateUnit.BITS,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")] = None,
) -> None:
    """Show every sample of a run, or the summary of its tests.

    Example: `fabricbench show runs/today --summary` or `fabricbench show runs/today --format csv -o samples.csv`
    """
    del units  # which `UnitsOption` has set
    check_output(output)
    is_terminal = output is None and sys.stdout.isatty()
    chosen = format_ or (ShowFormat.TEXT if is_terminal else ShowFormat.CSV)
    if chosen is ShowFormat.PARQUET and is_terminal:
        raise UsageError("Parquet is binary and stdout is a terminal", hint="name a file: -o samples.parquet")
    run = Run.open(run_directory)
    account = account_of(run)
    if chosen is not ShowFormat.TEXT:  # which begins with all of it
        say_losses((account,), (str(run_directory),))
        if run.missing or run.damaged:
            say(_condition(run, account))
    with opened_output(output) as stream:
        if chosen is ShowFormat.TEXT:
            stream.write(printable(_text(run, account, summary_frame(run))).encode())
        elif summary:
            _write(summary_frame(run), chosen, stream)
        else:
            _write_samples(run, chosen, stream)


def _write(frame: pl.DataFrame, chosen: ShowFormat, stream: BinaryIO) -> None:
    if chosen is ShowFormat.CSV:
        stream.write(frame.write_csv().encode())
    elif chosen is ShowFormat.JSON:
        rows = ",\n".join(json.dumps(row) for row in frame.iter_rows(named=True))
        stream.write(f"[\n{rows}\n]\n".encode())
    else:
        frame.write_parquet(stream)


def _write_samples(run: Run, chosen: ShowFormat, stream: BinaryIO) -> None:
    """Write every sample, one launch in memory at a time."""
    scans = list(sample_scans(run)) or [pl.LazyFrame(schema=dict.fromkeys(SAMPLE_COLUMNS, pl.Null))]
    if chosen is ShowFormat.PARQUET:
        # By way of a file: polars reports a pipe that was closed on it as a bug of its own, now and then.
        with TemporaryDirectory() as folder:
            whole = Path(folder) / "samples.parquet"
            pl.concat(scans).sink_parquet(whole)
            with whole.open("rb") as file:
                copyfileobj(file, stream)
    elif chosen is ShowFormat.CSV:
        for number, scan in enumerate(scans):
            rows = BytesIO()  # polars hides a closed pipe and a full disk in errors of its own
            scan.collect().write_csv(rows, include_header=number == 0)
            stream.write(rows.getbuffer())
    else:
        separator = b"[\n"
        for scan in scans:
            lines = BytesIO()
            scan.collect().write_ndjson(lines)
            if lines.tell():
                stream.write(separator)
                stream.write(lines.getvalue().rstrip().replace(b"\n", b",\n"))
                separator = b",\n"
        stream.write(b"\n]\n" if separator == b",\n" else b"[]\n")


def _text(run: Run, account: RunAccount, frame: pl.DataFrame) -> str:
    """Return the summary as a table for people, with all that was lost of the run, and what is missing, said above it."""
    lines = [
        *(f"{LOST}: {line}" for line in loss_lines((account,), (), unequal_of((account,)))),
        _condition(run, account),
    ]
    header = (
        "fabric",
        "layer",
        "pattern",
        "receive",
        "message",
        "launches",
        "samples",
        "median",
        "1 %",
        "99 %",
        "lost",
        "failed",
    )
    rows = [_row(row) for row in frame.iter_rows(named=True)]
    lines.append(as_text(table(header, rows, range(4, len(header)))))
    reasons = sorted({f"{row['layer']}: {row['reason']}" for row in frame.iter_rows(named=True) if row["reason"]})
    return "\n".join([*lines, *(f"not measured: {reason}" for reason in reasons)]) + "\n"


def _condition(run: Run, account: RunAccount) -> str:
    manifest = run.manifest
    invalid = sum(not launch.is_valid for launch in run.launches)
    origins = {launch.origin for launch in run.launches} | {origin_of(fabric) for fabric in manifest.testbed.fabrics}
    marks = ", ".join(f"{origin.value} {mark.noun}" for origin, mark in MARKS.items() if origin in origins)
    marked = f" ({marks})" if marks else ""
    text = f"campaign {manifest.campaign_name} on {manifest.testbed.name}{marked}: {count(len(run.launches), 'launch')}"
    if run.missing:
        text += f", {len(run.missing)} not done yet"
    unreadable = len(run.damaged) - len(account.strays)
    if unreadable:
        text += f" ({unreadable} of them cannot be read any more)"
    if invalid:
        text += f", {invalid} invalid and left out"
    unproven = sum(launch.proof is Proof.UNKNOWN for launch in run.launches)
    if unproven:
        text += f", {unproven} of unproven path"
    aside = [one.name for one in run.set_aside]
    if aside:
        named = ", ".join(aside[:MOST_NAMED]) + (
            f" and {len(aside) - MOST_NAMED} more" if len(aside) > MOST_NAMED else ""
        )
        text += f"\nearlier attempts are kept aside and not among them: {named}"
    return text


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    def shown(value: float | None) -> str:
        if value is None:
            return "-"
        return value_text(value, Metric(row["metric"]), row["unit"])

    names = (
        row["fabric"],
        row["layer"],
        " ".join(filter(None, (row["pattern"], row["variant"]))),
        row["receive"] or "-",
    )
    counts = (format_bytes(row["message_bytes"]), str(row["launches"] or 0), str(row["samples"] or 0))
    spread = (shown(row["median"]), shown(row["q0.01"]), shown(row["q0.99"]))
    return (*names, *counts, *spread, str(row["lost"] or 0), str(row["failed"]))
