"""Brings hosts back to what the ledger says they were: at the end of a run, at the start of the next command, or by hand."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricbench.settings import ledger
from fabricbench.settings.agent import AgentAnswer
from fabricbench.settings.asking import NODE_SECONDS, Silence, ask_each

RESTORE_BY_HAND = "`fabricbench testbed restore` tries again"

AT_START_SECONDS = 15.0
"""How long a command waits for all nodes of which earlier runs left settings: more than a machine that is off takes to tell."""


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
    path: Path,
    entry: ledger.SettingsEntry,
    *,
    are_apart: bool = True,
    each_s: float = NODE_SECONDS,
    all_s: float | None = None,
    forgets: bool = False,
) -> Restored:
    """Restore what an entry says, and keep of it what could not be: that is tried again. `forgets`: nothing is kept."""
    left = {node.name: node for node in entry.left}
    gone = [node.name for node in entry.nodes if node.is_gone]
    unreachable = _outside(entry, list(left))
    reached = {name: node.restore for name, node in left.items() if name not in unreachable}
    answers = ask_each(reached, are_apart=are_apart, each_s=each_s, all_s=all_s)
    done, failed = [], dict(unreachable)
    for name, told in answers.items():
        if isinstance(told, AgentAnswer) and told.is_another:
            if (why := _why_not(left[name], told, left[name].lasting)) is None:
                gone.append(name)
            else:
                failed[name] = f"it was started anew, but {why}; set it back by hand, or forget it with --forget"
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


def _outside(entry: ledger.SettingsEntry, nodes: Sequence[str]) -> dict[str, str]:
    """Return which nodes were reached by a job and are none of this one's, and why: to ask them here would start a job."""
    if not entry.job or not nodes:
        return {}
    from ClusterShell.NodeSet import NodeSet  # noqa: PLC0415 - every command that finds an entry imports this

    from fabricbench.launch.slurm import JOB_NODES  # noqa: PLC0415
    from fabricbench.testbed.allocation import nodes_in_order  # noqa: PLC0415

    mine = set(nodes_in_order(os.environ.get(JOB_NODES, "")))
    lacking = [name for name in nodes if name not in mine]
    asked = NodeSet.fromlist(nodes)
    why = (
        f"Slurm's job {entry.job} reached it, and this is no job that has it: "
        f"`salloc --nodelist={asked} fabricbench testbed restore`"
    )
    return dict.fromkeys(lacking, why)


def _why_not(node: ledger.NodeEntry, told: AgentAnswer | Silence, keys: Collection[str] | None = None) -> str | None:
    """Return why a node is not as it was; None where it is. `keys`: what of it counts, else all."""
    if isinstance(told, Silence):
        return told
    counted = node.originals if keys is None else keys
    wrong = [key for key, value in node.originals.items() if key in counted and told.values.get(key) != value]
    if not wrong:
        return None
    reasons = {one.setting: one.found for one in told.problems}
    return "; ".join(
        f"{key} is {told.values.get(key, 'not there')}, it was {node.originals[key]}"
        + (f" ({reasons[key]})" if key in reasons else "")
        for key in wrong
    )


def restore_leftovers(
    *, waits: bool = True, each_s: float = NODE_SECONDS, all_s: float | None = None, forgets: bool = False
) -> tuple[list[Restored], list[str]]:
    """Restore what runs left that are gone; return what came of each, and the runs that still go on, which are left alone.

    Without `waits` nothing is done where another process restores just now. `all_s`: how long all nodes of all runs may take.
    """
    end = None if all_s is None else time.monotonic() + all_s
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
                left_s = None if end is None else max(0.0, end - time.monotonic())
                found.append(restore_entry(path, entry, each_s=each_s, all_s=left_s, forgets=forgets))
    return found, alive
