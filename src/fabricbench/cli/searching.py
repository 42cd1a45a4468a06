"""The options by which commands look for runs below a folder, the same for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.errors import UsageError
from fabricbench.record.run_search import RunSearch, moment_of
from fabricbench.record.run_state import State


class StateWord(StrEnum):
    """How the states of runs are written on a command line."""

    COMPLETE = "complete"
    LOST = "lost"
    INCOMPLETE = "incomplete"
    DAMAGED = "damaged"


RunsFolder = Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to look, and below it.", show_default=False)]
FabricPattern = Annotated[
    list[str] | None,
    typer.Option("--fabric", metavar="PATTERN", help="With a fabric of this name; repeat it for several."),
]
CampaignPattern = Annotated[
    list[str] | None, typer.Option("--campaign", metavar="PATTERN", help="Of a campaign of this name; repeat it.")
]
HostPattern = Annotated[
    list[str] | None, typer.Option("--host", metavar="PATTERN", help="On a node of this name; repeat it.")
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="DATE", help="Begun then or later: 2026-11-12, or 2026-11-12T22:00 (UTC)."),
]
UntilOption = Annotated[str | None, typer.Option("--until", metavar="DATE", help="Begun before that, or on that day.")]
StateOption = Annotated[
    list[StateWord] | None, typer.Option("--state", help="Of which so much is there; repeat it for several.")
]


def search_of(
    fabrics: Sequence[str] | None,
    campaigns: Sequence[str] | None,
    hosts: Sequence[str] | None,
    since: str | None,
    until: str | None,
    states: Sequence[StateWord] | None = None,
) -> RunSearch:
    """Return what the options look for. UsageError where a date is none, or none is between them."""
    begin = None if since is None else moment_of(since, "--since")
    end = None if until is None else moment_of(until, "--until", is_end=True)
    if begin is not None and end is not None and begin >= end:
        raise UsageError(
            f"--since {since} is not before --until {until}: no run is of these",
            hint="write the earlier date behind --since",
        )
    return RunSearch(
        fabrics=tuple(fabrics or ()),
        campaigns=tuple(campaigns or ()),
        hosts=tuple(hosts or ()),
        since=begin,
        until=end,
        states=tuple(State[word.name] for word in states or ()),
    )
