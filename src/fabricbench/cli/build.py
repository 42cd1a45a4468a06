"""`fabricbench build`: our native programs against another MPI, from the sources that the package carries, without internet."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fabricbench.cli.output import say
from fabricbench.cli.starting import interrupt
from fabricbench.errors import UsageError
from fabricbench.launch import building
from fabricbench.launch.building import BuildRequest
from fabricbench.launch.installation import find_installation
from fabricbench.launch.mpi import find_library, is_built_with
from fabricbench.printable import PrintableConsole
from fabricbench.testbed.model import Mpi
from fabricbench.testbed.reading import read_testbed

app = typer.Typer()


@app.command()
def build(
    mpi: Annotated[
        str | None, typer.Option(metavar="NAME", help="The [[mpi]] of the testbed; all of them without it.")
    ] = None,
    testbed: Annotated[Path | None, typer.Option(metavar="FILE", help="The testbed file that describes it.")] = None,
    mpicxx: Annotated[
        str | None, typer.Option(metavar="PATH", help="Without a testbed: the C++ compiler of the MPI.")
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="What to call the MPI of --mpicxx.")] = "mpi",
    without_kernels: Annotated[
        bool,
        typer.Option(
            "--without-kernels", help="The measurer alone, in a third of the time: no [[workload]] of kind npb."
        ),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also where a build is there already.")] = False,
    define: Annotated[
        list[str] | None,
        typer.Option("--define", "-D", metavar="NAME=VALUE", help="A setting of CMake; FABRICBENCH_MARCH=native say."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, help="Compilers at a time; 0: as many as processors.")
    ] = 0,
) -> None:
    """Build the native programs with another MPI, once for each: fabrics whose [[mpi]] that is are measured with them.

    It needs CMake 3.24, make or ninja, and a C++20 compiler, here and now, and no internet. `fabricbench list mpis` shows what
    is built, and where.

    Examples: `fabricbench build --mpi openmpi --testbed cluster.toml`,
    `fabricbench build --mpicxx /opt/openmpi/bin/mpicxx --name openmpi`
    """
    wanted = BuildRequest(has_kernels=not without_kernels, definitions=tuple(define or ()), jobs=jobs)
    for one in _asked(mpi, testbed, mpicxx, name):
        _build(one, wanted, is_again=again)


def _asked(name: str | None, testbed: Path | None, mpicxx: str | None, called: str) -> list[Mpi]:
    """Return the MPIs to be built with; UsageError where it is not said which."""
    if (testbed is None) == (mpicxx is None):
        raise UsageError(
            "say which MPI to build with: either --testbed or --mpicxx",
            hint="`fabricbench build --mpi NAME --testbed FILE`, or `fabricbench build --mpicxx PATH --name NAME`",
        )
    if testbed is None:
        if name is not None:
            raise UsageError(
                "--mpi is a name of a testbed, and there is none", hint="write --name, or give --testbed FILE"
            )
        return [Mpi(name=called, mpicxx=str(mpicxx))]
    there = {one.name: one for one in read_testbed(testbed).mpis}
    if not there:
        raise UsageError(
            f"{testbed} names no [[mpi]]", hint="add one, `[[mpi]]` with name and prefix (docs/testbeds.md)"
        )
    if name is not None and name not in there:
        raise UsageError(f"{testbed} has no [[mpi]] {name!r}", hint=f"there are {', '.join(there)}")
    return [there[name]] if name is not None else list(there.values())


def _build(mpi: Mpi, wanted: BuildRequest, *, is_again: bool) -> None:
    installation = find_installation(mpi)
    library, version = find_library(installation)
    what = f"{library.NAME} {version}"
    if is_built_with(installation) and not is_again:
        say(f"MPI {mpi.name}: {what} is what this installation was built with; nothing to do")
        return
    found = building.find_build(installation, what)
    if found is not None and not is_again:
        if building.has_all(found, wanted):
            say(f"MPI {mpi.name}: built already with {what}, in {found}")
            return
        say(f"MPI {mpi.name}: {found} was built with less than is wanted")
    say(f"MPI {mpi.name}: building with {what}, {installation.mpicxx}")
    signal.signal(signal.SIGTERM, interrupt)  # compilers end with us
    with _Progress() as progress:
        folder = building.build(installation, what, wanted, progress.show)
    programs = ", ".join(path.name for path in sorted(folder.glob("fabricbench-*")))
    say(f"MPI {mpi.name}: {programs} in {folder}")


class _Progress(Progress):
    """A bar on a terminal, a line for each tenth elsewhere."""

    def __init__(self) -> None:
        self._out = PrintableConsole(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        super().__init__(*columns, console=self._out, transient=True, disable=not self._out.is_terminal)
        self._step = self.add_task("configuring", total=None)
        self._told = -1

    def show(self, step: str, done: int, whole: int) -> None:
        """Show how far it is."""
        self.update(self._step, description=step, completed=done, total=whole or None)
        tenth = done * 10 // whole if step == "building" and whole else -1
        if not self._out.is_terminal and tenth > self._told:
            say(f"  {step} {done}/{whole}")
            self._told = tenth
