"""`fabricbench verify`: whether a run directory is whole and unaltered."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from fabricbench.cli.output import check_output, write_output
from fabricbench.errors import GateFailed, Inconclusive, RunIncomplete
from fabricbench.quantity import count
from fabricbench.record.integrity import LAUNCHES
from fabricbench.record.verification import RunVerdict, Verification
from fabricbench.record.verification import verify as verify_run

MOST_LISTED = 20
"""Files without a hash that the text names before it says how many more there are; JSON has all."""


class VerifyFormat(StrEnum):
    """How `verify` writes."""

    TEXT = "text"
    JSON = "json"


app = typer.Typer()


@app.command()
def verify(
    run_directory: Annotated[Path, typer.Argument(metavar="RUNDIR", help="A run directory, finished or not.")],
    form: Annotated[VerifyFormat, typer.Option("--format", help="How to write it.")] = VerifyFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")] = None,
) -> None:
    """Say whether a run is whole and unaltered: every file that results are made of is held against its hash.

    Exit codes: 0 whole and unaltered, 1 something was altered or is gone, 4 unaltered but launches are missing, 5 nobody can
    tell, for there are no hashes (runs of earlier versions).

    Example: `fabricbench verify runs/today`
    """
    check_output(output)
    found = verify_run(run_directory)
    write_output((found.model_dump_json(indent=2) if form is VerifyFormat.JSON else _text(found)) + "\n", output)
    _conclude(found)


def _text(found: Verification) -> str:
    lines = [
        f"{found.run_directory}: {found.verdict}",
        f"  {found.finished} of {count(found.planned, 'planned launch')} finished, {count(found.files, 'file')} looked at",
        f"  data SHA-256 {found.data_sha256}",
    ]
    lines += [f"  altered: {one.path}: {one.reason}" for one in found.altered]
    lines += _some("missing", found.missing)
    lines += _some("no hash", found.without_hash)
    return "\n".join(lines)


def _some(title: str, names: tuple[str, ...]) -> list[str]:
    lines = [f"  {title}: {name}" for name in names[:MOST_LISTED]]
    return lines + ([f"  {title}: {len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else [])


def _remedy(found: Verification) -> str:
    """Return what to do about the altered files: only a launch can be measured again."""
    others = [one.path for one in found.altered if not one.path.startswith(f"{LAUNCHES}/")]
    restored = f"restore {' and '.join(others)} from a copy: nothing writes {'them' if others[1:] else 'it'} again"
    again = (
        "`fabricbench import` reads the texts again, into a new folder"
        if found.is_imported
        else f"`fabricbench resume {quote(found.run_directory)}` measures their launches again"
    )
    if not others:
        return f"restore them from a copy; else {again}"
    return restored if len(others) == len(found.altered) else f"{restored}; for the others {again}"


def _conclude(found: Verification) -> None:
    """Raise what the exit code says; the gravest first."""
    match found.verdict:
        case RunVerdict.ALTERED:
            raise GateFailed(
                f"not as they were written: {count(len(found.altered), 'file')} in {found.run_directory}",
                hint=_remedy(found),
            )
        case RunVerdict.CANNOT_TELL:
            raise Inconclusive(
                f"cannot tell: no hashes of {count(len(found.without_hash), 'file')} in {found.run_directory} were written down",
                hint="runs of earlier versions have none, and the journal has none of what was edited out of it",
            )
        case RunVerdict.INCOMPLETE:
            raise RunIncomplete(
                f"nothing is altered, but missing: {count(len(found.missing), 'planned launch')}",
                hint="`fabricbench resume` measures them",
            )
        case RunVerdict.WHOLE:
            return
