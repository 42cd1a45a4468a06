"""Which runs `check` measures new ones by: those that were named, or the last good ones below a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.cli.output import say
from fabricbench.errors import Inconclusive, UsageError
from fabricbench.quantity import count
from fabricbench.record.last_good import last_good
from fabricbench.record.past_run import past_run
from fabricbench.record.past_runs import past_runs
from fabricbench.record.store import Run

BaselineOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="RUNDIR_OLD", help="The run that it must not be worse than; repeat it for several."),
]
LastGoodOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Instead: the last complete and proven run of the same below this folder."),
]
GoodRunsOption = Annotated[int, typer.Option(min=1, metavar="N", help="With --last-good: the last so many.")]

MOST_NAMED = 10
"""Runs that were passed over, one by one."""


def baselines_of(named: Sequence[Path], folder: Path | None, wanted: int, new: Sequence[Path]) -> list[Path]:
    """Return the baselines, and say which ones were taken and why others were not. Inconclusive where none is good."""
    if bool(named) == (folder is not None):
        given = "--baseline and --last-good are both given" if named else "there is no baseline"
        raise UsageError(given, hint="name one: --baseline RUNDIR; or have it looked for: --last-good DIR")
    if folder is None:
        return list(named)
    if len(new) != 1:
        raise UsageError(
            f"--last-good looks for what was before one new run, and {len(new)} were given",
            hint="give one new run, or name baselines: --baseline RUNDIR",
        )
    return _last_good(folder, wanted, new[0])


def _last_good(folder: Path, wanted: int, new: Path) -> list[Path]:
    Run.open(new, headers_only=True)  # raises what is the matter with it
    judged = past_run(new)
    found = last_good(past_runs(folder), judged, wanted)
    for one in found.passed_over[:MOST_NAMED]:
        say(f"passed over: {one.path}: {one.reason}")
    if len(found.passed_over) > MOST_NAMED:
        say(f"passed over: {len(found.passed_over) - MOST_NAMED} more")
    if not found.runs:
        of = f"campaign {judged.campaign} on {judged.testbed}"
        passed = f"{count(len(found.passed_over), 'run')} passed over, {found.others} of another campaign or testbed"
        raise Inconclusive(
            f"no run below {folder} that began before {new} is a good one of {of}: {passed}",
            hint="measure one that loses nothing and whose path is proven, or name a baseline: --baseline RUNDIR",
        )
    for run in found.runs:
        when = "" if run.created is None else f", begun {run.created:%Y-%m-%d %H:%M} (UTC)"
        say(f"baseline: {run.path}{when}: complete and proven")
    if len(found.runs) < wanted:
        say(f"baseline: {wanted} were asked for, and {len(found.runs)} are there")
    return [Path(run.path) for run in found.runs]
