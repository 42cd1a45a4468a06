"""`fabricbench figure`: any tests of any runs on one pair of axes, as a file for a paper, with its numbers beside it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.analysis.findings.plot import Plot
from fabricbench.analysis.plot_tests import PlotRequest
from fabricbench.analysis.plotting import find_plot, quantity_named
from fabricbench.cli import completion
from fabricbench.cli.arguments import UnitsOption
from fabricbench.cli.losses import losses_said, say_losses
from fabricbench.cli.output import STDOUT, check_output, is_file_name, say, write_files
from fabricbench.errors import UsageError
from fabricbench.quantity import RateUnit
from fabricbench.record.store import Run
from fabricbench.report.drawing.drawn import drawn_csv
from fabricbench.report.drawing.figure import ALONE_WIDTH
from fabricbench.report.figures import PIXELS_PER_MM, spec_of
from fabricbench.report.figures.beside import published_beside
from fabricbench.report.figures.plot import plot_figure
from fabricbench.report.formats import FORMATS, FigureFormat


class FigureKind(StrEnum):
    """How values are drawn."""

    CURVES = "curves"
    BARS = "bars"


class Log(StrEnum):
    """Which axes are logarithmic."""

    X = "x"
    Y = "y"
    BOTH = "both"
    NONE = "none"


LOG_AXES = {Log.X: (True, False), Log.Y: (False, True), Log.BOTH: (True, True), Log.NONE: (False, False)}


class Suffix(StrEnum):
    """The formats of a figure."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


app = typer.Typer()


@app.command()
def figure(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUNDIR ...", autocompletion=completion.run_directories, help="One run or several."),
    ],
    y: Annotated[
        str,
        typer.Option(
            "--y",
            metavar="WHAT",
            autocompletion=completion.quantities,
            help="round-trip, half-round-trip, time, throughput, message-rate; of loads seconds, rate, speed-up, efficiency; "
            "coefficient, (t_B - t_A) / t_A of any time.",
        ),
    ],
    x: Annotated[
        str, typer.Option("--x", metavar="TRAIT", help="size, nodes, ranks, flows, date, load, or any parameter.")
    ] = "size",
    series: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRAIT",
            help="What tells series apart: fabric, layer, run, ...; repeat it. Default: what differs.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="TRAIT=A,B", help="Only these tests: layer=tcp,mpi, size=64KiB, load=IS*; repeat it."),
    ] = None,
    kind: Annotated[FigureKind, typer.Option(help="Curves over numbers, or bars.")] = FigureKind.CURVES,
    log: Annotated[Log | None, typer.Option(help="Logarithmic axes (default: as suits what stands on them).")] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Add published values of the same kind, as hollow diamonds.")
    ] = False,
    baseline: Annotated[
        str | None, typer.Option(metavar="FABRIC", help="Fabric A of coefficients (default: the first).")
    ] = None,
    units: UnitsOption = RateUnit.BITS,
    width: Annotated[
        float | None,
        typer.Option(metavar="MM", min=60.0, max=400.0, help="How wide it is: 85 for a column. Text stays 8 points."),
    ] = None,
    form: Annotated[Suffix | None, typer.Option("--format", help="Default: as the file's name says, or svg.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Or - for stdout. Default: beside the run."),
    ] = None,
) -> None:
    """Draw any tests of any runs on one pair of axes; its numbers go beside it (`x-data.csv`).

    Points are medians over launches with their intervals. Tests that differ are never joined: what tells them apart is a
    series of its own, or is chosen by --where.

    Example, TCP, MPI and frames together: `fabricbench figure runs/a --y throughput --where pattern=pingpong --where
    layer=tcp,mpi,frame -o figure.pdf --width 85`

    Configurations: `fabricbench figure runs/asus runs/tyan --y throughput --where layer=mpi --series run --published`

    Time over nodes: `fabricbench figure runs/a --x nodes --y seconds --where load=FT* --log both`

    Bars: `fabricbench figure runs/a --x load --y seconds --kind bars --where ranks=4`

    (t_B - t_A) / t_A: `fabricbench figure runs/a --y coefficient --where pattern=allreduce,alltoall`
    """
    del units  # which `UnitsOption` has set
    name = form or _format_of(output)
    path = output or runs[0] / f"figure.{name}"
    check_output(path)
    opened = [Run.open(run) for run in runs]
    with losses_said():
        wanted = quantity_named(y, opened)
        plot = find_plot(opened, PlotRequest(x, wanted, tuple(series or ()), _where(where or ()), baseline))
    say_losses(plot.accounts, plot.run_directories)
    is_bars, axes = kind is FigureKind.BARS, None if log is None else LOG_AXES[log]
    for one in write_files(_files(plot, name, path, width, is_bars=is_bars, axes=axes, has_published=published), path):
        typer.echo(one)


def _format_of(output: Path | None) -> Suffix:
    """Return the format that a file's name asks for; UsageError where it is none of a figure's."""
    ending = "svg" if output is None or output == STDOUT else output.suffix.removeprefix(".")
    if ending not in set(Suffix):
        raise UsageError(
            f"no figure is written to files that end in {ending!r}: {', '.join(Suffix)} are known",
            hint="name the file so, or say which with --format svg",
        )
    return Suffix(ending)


def _where(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return what is chosen by traits; said twice of one, either will do."""
    chosen: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise UsageError(f"--where {text!r} is no choice", hint="write --where layer=tcp,mpi")
        chosen[name] = (*chosen.get(name, ()), *values.split(","))
    return chosen


def _files(
    plot: Plot,
    name: Suffix,
    path: Path,
    width: float | None,
    *,
    is_bars: bool,
    axes: tuple[bool, bool] | None,
    has_published: bool,
) -> dict[Path, bytes]:
    """Return the figure as a file, and the numbers that it draws beside it."""
    pixels = ALONE_WIDTH if width is None else width * PIXELS_PER_MM
    beside = tuple(published_beside(plot)) if has_published else ()
    if has_published and not beside:
        say("note: no published value is of the same fabric, layer, test and quantity")
    drawn = plot_figure(plot, width=pixels, has_bars=is_bars, log=axes, published=beside)
    written = FORMATS[name]
    assert isinstance(written, FigureFormat)  # noqa: S101 - Suffix has no other
    files = {path: written.render_spec(spec_of(drawn, plot, width, panel_width=ALONE_WIDTH))}
    return files | (
        {path.with_name(f"{path.stem}-data.csv"): drawn_csv(drawn, plot).encode()} if is_file_name(path) else {}
    )
