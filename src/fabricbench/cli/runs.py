"""`fabricbench runs`: what was measured so far, newest first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from fabricbench.cli.output import check_output, say, write_output
from fabricbench.cli.searching import (
    CampaignPattern,
    FabricPattern,
    HostPattern,
    RunsFolder,
    SinceOption,
    StateOption,
    UntilOption,
    search_of,
)
from fabricbench.errors import UsageError
from fabricbench.printable import PrintableConsole, shortened
from fabricbench.quantity import count
from fabricbench.record.past_run import PastRun
from fabricbench.record.past_runs import Judge, past_runs
from fabricbench.record.provenance import Proof
from fabricbench.record.run_search import RunSearch
from fabricbench.table import as_text, table
from fabricbench.testbed.preflight_result import folded


class RunsFormat(StrEnum):
    """How `runs` writes."""

    TEXT = "text"
    JSON = "json"


app = typer.Typer()


@app.command()
def runs(
    folder: RunsFolder = Path(),
    fabric: FabricPattern = None,
    campaign: CampaignPattern = None,
    host: HostPattern = None,
    since: SinceOption = None,
    until: UntilOption = None,
    state: StateOption = None,
    verdicts: Annotated[
        bool,
        typer.Option("--verdicts", help="Say who was faster in each: what is not known yet takes a second a run."),
    ] = False,
    format_: Annotated[RunsFormat, typer.Option("--format")] = RunsFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")] = None,
) -> None:
    """List the runs in a folder (the present one) and below it, newest first, with how much of each is there.

    What was told of a run is kept in an index in your cache, and told again as long as its files are the same. So is who was
    faster, which takes the samples: `--verdicts` once, and from then on without it.

    Example: `fabricbench runs` or `fabricbench runs results --format json`

    Looking for some: `fabricbench runs results --campaign 'night*' --host c17 --since 2026-11-01 --state incomplete`
    """
    check_output(output)
    search = search_of(fabric, campaign, host, since, until, state)
    with _judging(search) if verdicts else nullcontext() as judge:
        every = past_runs(folder, judge)
        found = [run for run in every if search.matches(run)]
        unknown = sum(run.is_untold and not search.matches(run) for run in every)
        text = _written(found, format_, folder, of=len(every))
    if unknown:
        say(f"{count(unknown, 'run')} cannot be read: nobody knows whether it is looked for (--state damaged)")
    write_output(text + "\n", output)


@contextmanager
def _judging(search: RunSearch) -> Iterator[Judge]:
    """Yield what says who was faster in a run that is looked for; a terminal shows of which it is asked."""
    from fabricbench.analysis import analyse  # noqa: PLC0415 - a list without verdicts takes a quarter of the time
    from fabricbench.record.store import Run  # noqa: PLC0415

    with PrintableConsole(stderr=True).status("") as status:

        def judge(run: PastRun) -> str | None:
            if not run.launches_measured or not search.matches(run):
                return None
            status.update(f"judging {escape(_shown(run.path))}")
            try:
                return analyse([Run.open(Path(run.path))]).headline.sentence
            except UsageError as error:
                return f"no verdict: {error.message}"

        yield judge


def _written(found: Sequence[PastRun], form: RunsFormat, folder: Path, *, of: int) -> str:
    """Return the list in a format; `of` is how many runs there are, looked for or not."""
    if form is RunsFormat.JSON:
        return json.dumps([run.model_dump(mode="json") for run in found], indent=1)
    if not found:
        return (
            f"no runs in {folder.absolute()}"
            if not of
            else f"none of {count(of, 'run')} in {folder.absolute()} is of these"
        )
    columns = ("run", "date (UTC)", "campaign", "testbed", "hosts", "fabrics", "blocks", "state")
    text = as_text(table(columns, [_row(run) for run in found], title=f"runs in {folder.absolute()}"))
    return text + "".join(f"\n{_shown(run.path)}: {_shown(line)}" for run in found for line in _told_of(run))


def _row(run: PastRun) -> tuple[str, ...]:
    date = "-" if run.created is None else run.created.strftime("%Y-%m-%d %H:%M")
    blocks = "-" if run.blocks_planned is None else f"{run.blocks_done} of {run.blocks_planned}"
    named = (run.campaign, run.testbed, _hosts(run.hosts), ", ".join(run.fabrics))
    date += " (import)" if run.is_dated_by_import else ""
    return (_shown(run.path), date, *(_shown(name) for name in named), blocks, _state(run))


@cache
def _hosts(names: tuple[str, ...]) -> str:
    """Return hosts as a node set, which takes longer than all else of a row and is the same in most."""
    return folded(names)


def _state(run: PastRun) -> str:
    if not run.unproven:
        return run.state.value
    return f"{run.state.value}, {Proof.UNKNOWN.doubt}: {_shown(', '.join(run.unproven))}"


def _told_of(run: PastRun) -> tuple[str, ...]:
    """Return what is said of a run below the table: who was faster, what is damaged, and what was lost."""
    damage: tuple[str, ...] = (run.reason,) if run.reason else ()
    of_another = (f"a copy of {run.copy_of}",) if run.copy_of else ()
    verdict = (*((run.verdict,) if run.verdict else ()), *of_another)
    if not any(one.is_worth_a_word for one in run.account.subjects):
        return (*verdict, *damage)
    from fabricbench.cli.losses import lines_of_losses  # noqa: PLC0415 - as above

    damage = tuple(one for one in damage if one not in run.account.strays.values())  # told with what was lost
    return (*verdict, *damage, *lines_of_losses((run.account,), (run.path,)))


def _shown(text: str | None) -> str:
    """Return what a file says so that a terminal only shows it: a run from elsewhere may hold escape sequences."""
    text = shortened(text or "-")
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "?" for sign in text)
