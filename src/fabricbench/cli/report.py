"""`fabricbench report`: the dossier, and every other form in which findings leave the program."""

from __future__ import annotations

import sys
import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings, ReferenceMachine
from fabricbench.analysis.load_results import reference_run
from fabricbench.analysis.trend import History
from fabricbench.cli.arguments import MarginOption, UnitsOption
from fabricbench.cli.losses import losses_said, say_losses
from fabricbench.cli.output import STDOUT, check_output, is_file_name, say, share_option, write_files
from fabricbench.cli.several_runs import (
    AfterOption,
    BeforeOption,
    RunsArgument,
    SeveralRunsCommand,
    count_of_runs,
    first_path,
    note_of_sides,
    runs_to_analyse,
)
from fabricbench.errors import UsageError
from fabricbench.published.kernels import CRAY, CRAY_SECONDS, CRAY_SOURCE
from fabricbench.quantity import RateUnit
from fabricbench.record.decision_table import read_decision
from fabricbench.record.past_runs import past_runs
from fabricbench.record.store import Run
from fabricbench.report.formats import FIRST_SCREEN, FORMATS, FigureFormat, Format, data_of, picture_names
from fabricbench.report.html import vega
from fabricbench.report.terminal import render_terminal


class ReportFormat(StrEnum):
    """What can be asked for; `fabricbench.report.formats` writes them."""

    HTML = "html"
    MARKDOWN = "markdown"
    LATEX = "latex"
    JSON = "json"
    LOGGOPS = "loggops"
    CSV = "csv"
    TEXT = "text"
    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


app = typer.Typer()


@app.command(cls=SeveralRunsCommand)
def report(
    runs: RunsArgument = None,
    before: BeforeOption = None,
    after: AfterOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The file, or - for stdout; a folder for all figures. Default: dossier.html in the run, of several runs "
            "comparison.html in the first.",
        ),
    ] = None,
    form: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="How to write it (default: as the file's name says, or html)."),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(help="One figure, for svg, png and pdf: verdict, ladder, ...; or first-screen, to share."),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            metavar="MM",
            min=60.0,
            max=400.0,
            help="How wide figures are, in mm: 85 for a column. Text stays 8 points.",
        ),
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
    margin: MarginOption = None,
    decision: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rank and cost the fabrics by the [decision] of this TOML file."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Add how the first screen's tests went over the runs of its campaign there, up to this one.",
        ),
    ] = None,
    units: UnitsOption = RateUnit.BITS,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Write the dossier of a run, of runs before and after, or of configurations: one HTML file that opens anywhere, offline.

    Example: `fabricbench report runs/today --open`

    Before and after a change: `fabricbench report --before runs/a1 runs/a2 runs/a3 --after runs/b1 runs/b2 runs/b3`

    Of any number of configurations, by what their runs differ in: `fabricbench report runs/a runs/b runs/c -o all.html`

    Beside CSV, which holds the comparisons, go topologies, congestion, operations and pairs (`x.csv`, `x-topologies.csv`);
    beside Markdown its figures (`x.md`, `x.figures/ladder.svg`).

    For a paper: `fabricbench report runs/today --format pdf --figure round-trip --width 85 -o round-trip.pdf`

    The numbers that a figure draws go beside it (`round-trip-data.csv`). All figures: `--format pdf --width 175 -o figures`.

    One picture to share: `fabricbench report runs/today --figure first-screen -o today.png`

    Of nightly runs, with how each test went: `fabricbench report runs/today --history runs`

    The effects as a table for a paper: `fabricbench report runs/today --format latex -o effects.tex`
    """
    del units  # which `UnitsOption` has set
    name = form or _format_of(output)
    written = FORMATS[name]
    if isinstance(written, Format):
        _refuse_of_figures(name, {"--figure": figure, "--width": width})
    target = output or (STDOUT if name is ReportFormat.TEXT else None)
    if open_it and target == STDOUT:
        raise UsageError("--open needs a file, and the output is stdout", hint="name a file with -o")
    if isinstance(written, Format) or figure is not None:
        check_output(output)
    machine = None if reference is None else _reference(reference)
    sides = runs_to_analyse(runs, before, after)
    weights = None if decision is None else read_decision(decision)
    difference = None if margin is None else share_option(margin, "--margin")
    path = target or first_path(sides) / _name_beside_run(written, figure, of_several=count_of_runs(sides) > 1)
    if isinstance(written, Format) or figure is not None:
        check_output(path)
    if name is ReportFormat.HTML:
        vega()
    with losses_said():
        findings = analyse(
            **sides,
            baseline=baseline,
            margin=difference,
            reference=machine,
            decision=weights,
            history=None if history is None else _history(history),
        )
    note = note_of_sides(sides)
    if note is not None:
        say(f"warning: {note}")
    say_losses(findings.accounts, findings.run_directories)
    for one in write_files(_files(findings, written, path, figure, width), path):
        typer.echo(one)
    if open_it:
        webbrowser.open(path.resolve().as_uri())


def _name_beside_run(written: Format | FigureFormat, figure: str | None, *, of_several: bool) -> str:
    """Return the name of what is written where none was given: a report's, a figure's, or that of the folder of all figures.

    That of several runs has a name of its own: it lies in one of them, whose own dossier stays.
    """
    if isinstance(written, Format):
        return f"{'comparison' if of_several else 'dossier'}{written.suffix}"
    return ("comparison-" if of_several else "") + ("figures" if figure is None else f"{figure}{written.suffix}")


def _refuse_of_figures(name: ReportFormat, options: dict[str, object]) -> None:
    """Raise UsageError where a whole report was asked for with what only a figure has."""
    for option, value in options.items():
        if value is not None:
            raise UsageError(f"{option} is for svg, png and pdf, not for {name}", hint="add --format svg, say")


def _reference(name: str) -> ReferenceMachine:
    """Return the machine to normalise to: a published one, or a stored run."""
    if name == CRAY:
        return ReferenceMachine(name="one processor of a Cray Y-MP", source=CRAY_SOURCE, seconds=CRAY_SECONDS)
    return reference_run(Run.open(Path(name)))


def _history(folder: Path) -> History:
    """Return the runs below a folder."""
    return History(str(folder), past_runs(folder))


def _format_of(output: Path | None) -> ReportFormat:
    """Return the format that a file's name asks for; HTML where it asks for none; UsageError where it asks for an unknown one."""
    if output is None or output.suffix == "":
        return ReportFormat.HTML
    suffixes = {written.suffix: ReportFormat(name) for name, written in FORMATS.items()}
    if output.suffix not in suffixes:
        raise UsageError(
            f"no format is written to files that end in {output.suffix}: {', '.join(suffixes)} are known",
            hint="name the file so, or say which with --format html",
        )
    return suffixes[output.suffix]


def _files(
    findings: Findings, written: Format | FigureFormat, path: Path, figure: str | None, width: float | None
) -> dict[Path, bytes]:
    """Return what is written as files: a report, a figure, or all figures in a folder."""
    if isinstance(written, Format):
        return _files_of(findings, written, path)
    if figure is not None:
        return _figure_files(findings, written, figure, path, width)
    return _all_figures(findings, written, path, width)


def _files_of(findings: Findings, written: Format, path: Path) -> dict[Path, bytes]:
    """Return the report as a file, with those beside it, where the format has some and the file is not stdout."""
    if written is FORMATS[ReportFormat.TEXT] and path == STDOUT:
        return {path: _for_this_terminal(findings)}
    if not is_file_name(path) or written.render_files is None:
        return {path: written.render(findings)}
    return {path.parent / name: content for name, content in written.render_files(findings, path.name).items()}


def _figure_files(
    findings: Findings, written: FigureFormat, name: str, path: Path, width: float | None
) -> dict[Path, bytes]:
    """Return a figure as a file, and the numbers that it draws beside it."""
    files = {path: written.render(findings, name, width)}
    data = data_of(findings, name) if is_file_name(path) else None
    return files if data is None else {**files, path.with_name(f"{path.stem}-data.csv"): data}


def _for_this_terminal(findings: Findings) -> bytes:
    """Return the terminal's report, as wide as the terminal, in colour where it shows some and NO_COLOR does not forbid it."""
    console = Console(file=sys.stdout)
    has_colour = console.color_system is not None and not console.no_color
    return render_terminal(findings, console.width, color=has_colour).encode()


def _all_figures(findings: Findings, written: FigureFormat, folder: Path, width: float | None) -> dict[Path, bytes]:
    """Return every figure that has data, and the first screen, as files in a folder."""
    names = picture_names(findings)
    if folder == STDOUT or folder.is_file() or folder.suffix == written.suffix:
        where = "stdout" if folder == STDOUT else f"one file, {folder}"
        raise UsageError(
            f"{len(names)} figures do not fit into {where}",
            hint=f"name a folder with -o, or one figure with --figure: {', '.join(names)}",
        )
    files: dict[Path, bytes] = {}
    for name in names:
        path = folder / f"{name}{written.suffix}"
        files |= _figure_files(findings, written, name, path, None if name == FIRST_SCREEN else width)
    return files
