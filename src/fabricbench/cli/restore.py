"""`fabricbench testbed restore`: bring hosts back to what they were where a run that varied their settings could not.

Every command does so as it starts; where nothing was left that is one look into a folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from fabricbench.cli.output import say
from fabricbench.errors import EnvironmentLacks, FabricbenchError
from fabricbench.settings.restoring import AT_START_SECONDS, RESTORE_BY_HAND, Restored, restore_leftovers
from fabricbench.testbed.preflight_result import folded

BY_HAND = "restore"
"""The command that restores by itself, with more patience."""


app = typer.Typer()


@app.command(name=BY_HAND)
def restore(
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Give up the nodes that cannot be restored, and say what they were."),
    ] = False,
) -> None:
    """Restore the settings of hosts that runs have varied and, killed or cut off, could not restore.

    Any command tries that as it starts. A run that goes on is left alone. Exit code 3 where a node cannot be restored: it is
    tried again next time, unless it is forgotten.

    Examples: `fabricbench testbed restore`, `fabricbench testbed restore --forget`
    """
    found, alive = restore_leftovers(forgets=forget)
    for line in _lines(found):
        say(line)
    for run in alive:
        say(f"{run} goes on, and what it has set is its own")
    if not found and not alive:
        say("nothing is to be restored")
    if any(one.failed for one in found):
        raise EnvironmentLacks(
            "some settings are not restored",
            hint="mend what is said above and repeat; with --forget they are left as they are",
        )


def restore_at_start(arguments: list[str]) -> None:
    """Restore what an earlier run left before anything else is done; what cannot be is said, and keeps no command from its work."""
    asks_only = arguments[:1] == ["version"] or not {"--help", "-h", "--version"}.isdisjoint(arguments)
    if asks_only or BY_HAND in arguments or any(name.endswith("_COMPLETE") for name in os.environ):
        return
    try:
        found, _ = restore_leftovers(waits=False, each_s=AT_START_SECONDS, all_s=AT_START_SECONDS)
    except FabricbenchError as error:
        say(f"note: settings of an earlier run could not be looked at: {error.message}")
        return
    for line in _lines(found):
        say(f"note: {line}")


def _lines(found: Iterable[Restored]) -> Iterator[str]:
    for one in found:
        if one.nodes:
            yield f"settings that {one.run} left on {folded(one.nodes)} are restored"
        if one.gone:
            yield f"{folded(one.gone)} of {one.run} was started anew or is gone, and its settings with it"
        alike: dict[str, list[str]] = {}
        for node, why in one.failed.items():
            alike.setdefault(why, []).append(node)
        for why, nodes in alike.items():
            where = folded(node for node in nodes if node) or "its nodes"
            yield f"settings that {one.run} left on {where} are not restored: {why}; {RESTORE_BY_HAND}"
        for node, values in one.forgotten.items():
            was = ", ".join(f"{key} = {value}" for key, value in values.items())
            yield f"{node} of {one.run} is forgotten; it was {was}"
