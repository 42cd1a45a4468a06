"""The runs below a folder, each told in a line: when, what on what, how much of it is there. Reads no samples."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.record.integrity import LAUNCHES, MANIFEST
from fabricbench.record.manifest import paired_blocks
from fabricbench.record.store import Run

TRACES = (LAUNCHES, "plan.json", "journal.jsonl")
"""Beside one of these a `manifest.json` is a run's, whatever is left of it."""


class State(StrEnum):
    """How much of a run is there."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    DAMAGED = "damaged"


class PastRun(Model):
    """A run as a list shows it; what a damaged manifest no longer tells is None. `reason` says what is damaged.

    `unproven` are the fabrics of which no counter shows that the traffic took them.
    """

    path: str
    state: State
    created: datetime | None = None
    campaign: str | None = None
    testbed: str | None = None
    fabrics: tuple[str, ...] = ()
    blocks_done: int | None = None
    blocks_planned: int | None = None
    launches_done: int | None = None
    launches_planned: int | None = None
    unproven: tuple[str, ...] = ()
    reason: str | None = None


def past_runs(folder: Path) -> tuple[PastRun, ...]:
    """Return every run in a folder or below it, newest first, undated ones last; UsageError where there is no such folder."""
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", hint="give the folder that holds your run directories")
    found = [_told(path) for path in run_directories(folder)]
    return tuple(sorted(found, key=lambda one: (one.created is None, -(one.created.timestamp() if one.created else 0))))


def run_directories(folder: Path) -> Iterator[Path]:
    """Yield the run directories in a folder or below it; hidden folders, links and what a run holds are passed over."""
    for path, folders, files in os.walk(folder):
        if MANIFEST in files and any(name in (*folders, *files) for name in TRACES):
            folders.clear()
            yield Path(path)
        folders[:] = sorted(name for name in folders if not name.startswith("."))


def _told(path: Path) -> PastRun:
    try:
        run = Run.open(path)
    except UsageError as error:
        return PastRun(path=str(path), state=State.DAMAGED, reason=error.message)
    manifest = run.manifest
    done = {launch.launch_id for launch in run.launches}
    state = State.DAMAGED if run.damaged else State.INCOMPLETE if run.missing else State.COMPLETE
    return PastRun(
        path=str(path),
        state=state,
        created=manifest.created,
        campaign=manifest.campaign_name,
        testbed=manifest.testbed.name,
        fabrics=tuple(fabric.name for fabric in manifest.testbed.fabrics),
        blocks_done=len(paired_blocks(manifest.planned, done)),
        blocks_planned=len({launch.block for launch in manifest.planned}),
        launches_done=len(run.launches),
        launches_planned=len(manifest.planned),
        unproven=run.unproven,
        reason=run.damaged[0].reason if run.damaged else None,
    )
