"""`fabricbench report`: the dossier, and every other form in which findings leave the program."""

from __future__ import annotations

import sys
import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricbench.cli.arguments import (
    AfterOption,
    BeforeOption,
    RunsArgument,
    SeveralRunsCommand,
    first_path,
    note_of_sides,
    runs_to_analyse,
)
from fabricbench.cli.output import opened_output, say
from fabricbench.errors import UsageError

if TYPE_CHECKING:
    from fabricbench.analysis.findings import Findings, Reference
    from fabricbench.report.formats import FigureFormat, Format


class FormatName(StrEnum):
    """What can be asked for; `fabricbench.report.formats` writes them."""

    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"
    TEXT = "text"
    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


STDOUT = Path("-")


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=SeveralRunsCommand)
    def report(
        runs: RunsArgument = None,
        before: BeforeOption = None,
        after: AfterOption = None,
        output: Annotated[
            Path | None,
            typer.Option(
                "--output", "-o", help="The file, or - for stdout; a folder for all figures. Default: beside the run."
            ),
        ] = None,
        form: Annotated[
            FormatName | None,
            typer.Option("--format", help="How to write it (default: as the file's name says, or html)."),
        ] = None,
        figure: Annotated[
            str | None, typer.Option(help="One figure, for svg, png and pdf: verdict, ladder, ...")
        ] = None,
        baseline: Annotated[
            str | None, typer.Option(help="The fabric that all others are compared with (default: the first).")
        ] = None,
        reference: Annotated[
            str | None,
            typer.Option(
                metavar="RUNDIR", help="Normalise the rates of kernels to those of a stored run, or to `cray-y-mp`."
            ),
        ] = None,
        decision: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="Rank and cost the fabrics by the [decision] of this TOML file."),
        ] = None,
        open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    ) -> None:
        """Write the dossier of a run, or of runs before and after: one HTML file that opens anywhere, offline.

        Example: `fabricbench report runs/today --open`

        Before and after a change: `fabricbench report --before runs/a1 runs/a2 runs/a3 --after runs/b1 runs/b2 runs/b3`

        CSV holds the comparisons; topologies, congestion, operations and pairs go beside it (`x.csv`, `x-topologies.csv`).

        For a paper: `fabricbench report runs/today --format pdf --figure round-trip -o round-trip.pdf`
        """
        from fabricbench.analysis import analyse  # noqa: PLC0415 - keeps the start of the program fast
        from fabricbench.record.decision_table import read_decision  # noqa: PLC0415
        from fabricbench.report.formats import FORMATS, Format  # noqa: PLC0415

        name = form or _format_of(output)
        written = FORMATS[name]
        if figure is not None and isinstance(written, Format):
            raise UsageError(f"--figure is for svg, png and pdf, not for {name}", hint="add --format svg, say")
        target = output or (STDOUT if name is FormatName.TEXT else None)
        if open_it and target == STDOUT:
            raise UsageError("--open needs a file, and the output is stdout", hint="name a file with -o")
        machine = None if reference is None else _reference(reference)
        sides = runs_to_analyse(runs, before, after)
        weights = None if decision is None else read_decision(decision)
        findings = analyse(**sides, baseline=baseline, reference=machine, decision=weights)
        note = note_of_sides(sides)
        if note is not None:
            say(f"warning: before and after: {note}")
        beside = first_path(sides)
        if isinstance(written, Format):
            is_for_terminal = name is FormatName.TEXT and target == STDOUT
            content = _for_this_terminal(findings) if is_for_terminal else written.render(findings)
            path = _write(content, target or beside / f"dossier{written.suffix}")
        elif figure is not None:
            path = _write(written.render(findings, figure), target or beside / f"{figure}{written.suffix}")
        else:
            path = _write_all(findings, written, target or beside / "figures")
        if path != STDOUT:
            typer.echo(path)
        if isinstance(written, Format):
            _write_others(findings, written, path)
        if open_it:
            webbrowser.open(path.resolve().as_uri())


def _reference(name: str) -> Reference:
    """Return the machine to normalise to: a published one, or a stored run."""
    from fabricbench.analysis.findings import Reference  # noqa: PLC0415 - keeps the start of the program fast
    from fabricbench.analysis.kernels import reference_run  # noqa: PLC0415
    from fabricbench.published.kernels import CRAY, CRAY_SECONDS, CRAY_SOURCE  # noqa: PLC0415
    from fabricbench.record.store import Run  # noqa: PLC0415

    if name == CRAY:
        return Reference(name="one processor of a Cray Y-MP", source=CRAY_SOURCE, seconds=CRAY_SECONDS)
    return reference_run(Run.open(Path(name)))


def _format_of(output: Path | None) -> FormatName:
    """Return the format that a file's name asks for; HTML where it asks for none; UsageError where it asks for an unknown one."""
    from fabricbench.report.formats import FORMATS  # noqa: PLC0415

    if output is None or output.suffix == "":
        return FormatName.HTML
    suffixes = {written.suffix: FormatName(name) for name, written in FORMATS.items()}
    if output.suffix not in suffixes:
        raise UsageError(
            f"no format is written to files that end in {output.suffix}: {', '.join(suffixes)} are known",
            hint="name the file so, or say which with --format html",
        )
    return suffixes[output.suffix]


def _write(content: bytes, path: Path) -> Path:
    with opened_output(path) as stream:
        stream.write(content)
    return path


def _write_others(findings: Findings, written: Format, path: Path) -> None:
    """Write what does not fit into a format's one file beside it, and say where."""
    if path == STDOUT or written.render_others is None:
        return
    for name, content in written.render_others(findings).items():
        typer.echo(_write(content, path.with_stem(f"{path.stem}-{name}")))


def _for_this_terminal(findings: Findings) -> bytes:
    """Return the terminal's report, as wide as the terminal, in colour where it shows some and NO_COLOR does not forbid it."""
    from rich.console import Console  # noqa: PLC0415

    from fabricbench.report.terminal import render_terminal  # noqa: PLC0415

    console = Console(file=sys.stdout)
    has_colour = console.color_system is not None and not console.no_color
    return render_terminal(findings, console.width, color=has_colour).encode()


def _write_all(findings: Findings, written: FigureFormat, folder: Path) -> Path:
    """Write every figure that has data into a folder."""
    from fabricbench.report.figures import present  # noqa: PLC0415

    names = list(present(findings))
    if folder == STDOUT or folder.is_file() or folder.suffix == written.suffix:
        where = "stdout" if folder == STDOUT else f"one file, {folder}"
        raise UsageError(
            f"{len(names)} figures do not fit into {where}",
            hint=f"name a folder with -o, or one figure with --figure: {', '.join(names)}",
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        _write(written.render(findings, name), folder / f"{name}{written.suffix}")
    return folder
