"""Brings hosts back to what the ledger says they were: at the end of a run, at the start of the next command, or by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fabricbench.settings import ledger
from fabricbench.settings.agent import Told
from fabricbench.settings.asking import NODE_SECONDS, Silence, ask_each

RESTORE_BY_HAND = "`fabricbench testbed restore` tries again"

AT_START_SECONDS = 15.0
"""How long a command waits for nodes of which an earlier run left settings: more than a machine that is off takes to tell."""


@dataclass(frozen=True)
class Restored:
    """What came of an entry: nodes that are as they were, nodes that are gone with their settings, and why others are not."""

    run: str
    nodes: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    forgotten: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The values that nodes had which are given up, by node and setting."""


def restore_entry(
    path: Path, entry: ledger.Entry, *, are_apart: bool = True, each_s: float = NODE_SECONDS, forgets: bool = False
) -> Restored:
    """Restore what an entry says, and keep of it what could not be: that is tried again. `forgets`: nothing is kept."""
    left = {node.name: node for node in entry.left}
    gone = [node.name for node in entry.nodes if node.is_gone]
    answers = ask_each({name: node.restore for name, node in left.items()}, are_apart=are_apart, each_s=each_s)
    done, failed = [], {}
    for name, told in answers.items():
        if isinstance(told, Told) and told.is_another:
            gone.append(name)
        elif (why := _why_not(left[name], told)) is not None:
            failed[name] = why
        else:
            done.append(name)
    forgotten = {name: left[name].originals for name in failed} if forgets else {}
    kept = tuple(node for name, node in left.items() if name in failed and not forgets)
    if kept:
        ledger.write(path, entry.model_copy(update={"nodes": kept, "is_over": True}))
    else:
        ledger.remove(path)
    return Restored(entry.run, tuple(done), tuple(gone), {} if forgets else failed, forgotten)


def _why_not(node: ledger.NodeEntry, told: Told | Silence) -> str | None:
    """Return why a node is not as it was; None where it is."""
    if isinstance(told, Silence):
        return told
    wrong = [key for key, value in node.originals.items() if told.values.get(key) != value]
    if not wrong:
        return None
    reasons = {one.setting: one.found for one in told.problems}
    return "; ".join(
        f"{key} is {told.values.get(key, 'not there')}, it was {node.originals[key]}"
        + (f" ({reasons[key]})" if key in reasons else "")
        for key in wrong
    )


def restore_leftovers(
    *, waits: bool = True, each_s: float = NODE_SECONDS, forgets: bool = False
) -> tuple[list[Restored], list[str]]:
    """Restore what runs left that are gone; return what came of each, and the runs that still go on, which are left alone.

    Without `waits` nothing is done where another process restores just now.
    """
    if not ledger.has_entries():
        return [], []
    found, alive = [], []
    with ledger.locked(waits=waits) as is_held:
        for path, entry in ledger.entries().items() if is_held else ():
            if entry is None:
                found.append(Restored(str(path), failed={"": "the entry cannot be read: look at it, and remove it"}))
            elif entry.is_live:
                alive.append(entry.run)
            else:
                found.append(restore_entry(path, entry, each_s=each_s, forgets=forgets))
    return found, alive
