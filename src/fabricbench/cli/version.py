"""`fabricbench version`, and the option that people try first."""

from __future__ import annotations

import typer

import fabricbench
from fabricbench.native import BUILD_DIGITS, builds_of, native_programs

app = typer.Typer()


@app.command()
def version() -> None:
    """Print the version, and the build of each native program: what nodes must have alike.

    Example: `fabricbench version`
    """
    _tell()


def end_with_version(is_asked: bool) -> None:
    """Do what `--version` asks for."""
    if is_asked:
        _tell()
        raise typer.Exit


def _tell() -> None:
    typer.echo(f"fabricbench {fabricbench.__version__}")
    paths = {path.name: str(path) for path in native_programs()}
    builds = builds_of(paths.values())
    for name, path in paths.items():
        typer.echo(f"  {name}: build {builds[path][:BUILD_DIGITS]}" if path in builds else f"  {name}: cannot be read")
