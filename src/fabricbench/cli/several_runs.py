"""Runs that commands compare, and how they are given.

That is as `RUN`, `A B` (before and after), `--before A1 A2 A3 --after B1 B2 B3`, or as those of any number of configurations,
`A B C ...` or `NAME=A NAME=B ...`; what one run a side cannot tell is said.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from fabricbench.analysis.configurations import configurations_named, configurations_of
from fabricbench.analysis.measured import Configuration
from fabricbench.cli import completion
from fabricbench.errors import UsageError
from fabricbench.record.store import Run

RunsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[[NAME=]RUNDIR ...]",
        autocompletion=completion.run_directories,
        help="One run, or two: before, after. Or those of any number of configurations: three or more, or each as NAME=RUNDIR.",
        show_default=False,
    ),
]
BeforeOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--before",
        metavar="RUNDIR ...",
        autocompletion=completion.run_directories,
        help="Runs before a change, three or more: `--before A1 A2 A3`.",
    ),
]
AfterOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--after", metavar="RUNDIR ...", autocompletion=completion.run_directories, help="Runs after it, three or more."
    ),
]

SIDES = ("--before", "--after")

ONE_RUN_A_SIDE = (
    "one run a side cannot tell a change from whatever else differed between the two sessions, so its error rate is not known: in "
    "simulated runs without any change 8 to 10 % had a wrong verdict, 23 to 38 % where sessions differed by 2 % by themselves. "
    "Compare at least three runs a side (--before A1 A2 A3 --after B1 B2 B3), or measure both settings in turn within one run "
    "(docs/campaigns.md, Before and after)"
)
"""Figures of docs/statistics.md, Before and after."""

TWO_RUNS_A_SIDE = "two runs on a side give no interval: their spread is hardly known; three on each side are the least"


class SeveralRunsCommand(TyperCommand):
    """A command whose options --before and --after take all that follows up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the options out, once for each run, before they are parsed."""
        rest: list[str] = super().parse_args(ctx, spread(args, SIDES))
        return rest


def spread(arguments: Sequence[str], options: Collection[str]) -> list[str]:
    """Return arguments with each of these options repeated: `--before A B` becomes `--before A --before B`."""
    written: list[str] = []
    repeated, is_first = "", False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if name.startswith("-") and name != "-":
            repeated, is_first = (name if name in options else ""), not equals
            written.append(argument)
        elif repeated:
            written += [argument] if is_first else [repeated, argument]
            is_first = False
        else:
            written.append(argument)
    return written


def runs_to_analyse(
    runs: Sequence[Path] | None, before: Sequence[Path] | None, after: Sequence[Path] | None
) -> dict[str, Any]:
    """Return what `analyse` takes of the runs, opened; UsageError where they make no sense together."""
    given, old, new = (list(paths or []) for paths in (runs, before, after))
    if (old or new) and given:
        raise UsageError(
            f"{', '.join(map(str, given))} and --before or --after are both given",
            hint="give either run directories alone, or all of them after --before and --after",
        )
    if bool(old) != bool(new):
        raise UsageError(
            f"{'--after' if old else '--before'} is missing",
            hint="a comparison needs both: --before A1 A2 A3 --after B1 B2 B3",
        )
    if old:
        return {"before": [Run.open(path) for path in old], "after": [Run.open(path) for path in new]}
    named = [_name_of(path) for path in given]
    if any(name for name, _ in named):
        return {"configurations": _named(named)}
    if not given:
        raise UsageError(
            "no run directory was given",
            hint="give one, two (before, after), several a side (--before A1 A2 A3 --after B1 B2 B3), or those of three "
            "configurations or more",
        )
    opened = [Run.open(path) for path in given]
    if len(opened) <= len(SIDES):
        return {"runs": opened}

    return {"configurations": configurations_of(opened)}


def _name_of(given: Path) -> tuple[str, Path]:
    """Return the name and the path of `NAME=RUNDIR`; the name is empty where there is none, or where a folder is called so."""
    name, equals, path = str(given).partition("=")
    return (name, Path(path)) if equals and name and "/" not in name and not given.exists() else ("", given)


def _named(given: Sequence[tuple[str, Path]]) -> list[Configuration]:
    """Return the configurations of runs that are given with names; UsageError where one has none."""
    bare = [str(path) for name, path in given if not name]
    if bare:
        raise UsageError(
            f"{', '.join(bare)} has no name, and other runs have one",
            hint="give each run as NAME=RUNDIR, those of one configuration under the same name, or none",
        )
    runs: dict[str, list[Run]] = {}
    for name, path in given:
        runs.setdefault(name, []).append(Run.open(path))
    return configurations_named(runs)


def note_of_sides(sides: dict[str, Any]) -> str | None:
    """Return what is to be said of a comparison of runs with so few a side; None where there are enough, or one run only."""
    if len(sides.get("runs", ())) == 1:
        return None
    if "configurations" in sides:
        of_sides: list[Sequence[object]] = [one.runs for one in sides["configurations"]]
        what = "configurations"
    else:
        of_sides = [sides["runs"][:1]] if "runs" in sides else [sides["before"], sides["after"]]
        what = "before and after"
    note = {1: ONE_RUN_A_SIDE, 2: TWO_RUNS_A_SIDE}.get(min(map(len, of_sides)))
    return None if note is None else f"{what}: {note}"


def first_path(sides: dict[str, Any]) -> Path:
    """Return the run directory in which a report is written by default: the first given, or the first after the change."""
    if "configurations" in sides:
        path: Path = sides["configurations"][0].runs[0].path
    else:
        path = (sides["after"] if "after" in sides else sides["runs"])[0].path
    return path


def count_of_runs(sides: dict[str, Any]) -> int:
    """Return how many run directories were given."""
    if "configurations" in sides:
        return len({run.path for one in sides["configurations"] for run in one.runs})
    return sum(map(len, sides.values()))
