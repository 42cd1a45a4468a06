"""A run told in a line: when, what on what, how much of it is there.

Reads the manifest, the journal and each `launch.json`, no samples: a year of nightly runs is listed in seconds. Whether files are
as they were written is what `verify` asks. Who was faster takes the samples: it is told of the runs that were judged once.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.record.provenance import Origin
from fabricbench.record.run_account import RunAccount
from fabricbench.record.run_state import State

if TYPE_CHECKING:
    from fabricbench.record.store import Run


class PastRun(Model):
    """A run as a list shows it; what a damaged manifest no longer tells is None. `reason` says what is damaged.

    `unproven` are the fabrics of which no counter shows that the traffic took them.
    """

    path: str
    state: State
    created: datetime | None = None
    imported: datetime | None = None
    """When it was imported; None of a run that was measured here."""
    campaign: str | None = None
    testbed: str | None = None
    hosts: tuple[str, ...] = ()
    fabrics: tuple[str, ...] = ()
    seed: int | None = None
    blocks_done: int | None = None
    blocks_planned: int | None = None
    launches_done: int | None = None
    launches_planned: int | None = None
    unproven: tuple[str, ...] = ()
    reason: str | None = None
    launches_measured: int | None = None
    """Those that count and hold a result."""
    account: RunAccount = RunAccount()
    verdict: str | None = None
    """Who was faster, in the sentence of the first screen, where the run was judged (`runs --verdicts`)."""

    copy_of: str | None = None
    """Another run of the list whose copy it is."""

    @property
    def is_untold(self) -> bool:
        """Whether its manifest tells nothing, so that nobody knows of what it is."""
        return self.campaign is None

    @property
    def is_dated_by_import(self) -> bool:
        """Whether its texts do not tell when they were measured, so that its date is that of its import."""
        return self.imported is not None and self.imported == self.created

    @property
    def identity(self) -> tuple[object, ...]:
        """What a copy of it at another place has as well: begun in the same microsecond, of the same seed, on the same."""
        return self.created, self.imported, self.seed, self.campaign, self.testbed


class PassedOver(Model):
    """A run that is not taken, and why."""

    path: str
    reason: str


def past_run(path: Path) -> PastRun:
    """Return a run as its files tell it."""
    from fabricbench.record.account import account_of  # noqa: PLC0415 - what reads tables, and no list of known runs needs
    from fabricbench.record.manifest import paired_blocks  # noqa: PLC0415
    from fabricbench.record.store import Run  # noqa: PLC0415

    try:
        run = Run.open(path, headers_only=True)
        account = account_of(run)
    except UsageError as error:
        return PastRun(path=str(path), state=State.DAMAGED, reason=error.message)
    except OSError as error:
        reason = f"{error.filename} cannot be read: {error.strerror}"
        return PastRun(path=str(path), state=State.DAMAGED, reason=reason)
    manifest = run.manifest
    done = {launch.launch_id for launch in run.launches}
    is_lost = account.has_lost_results
    state = next(
        state
        for state, holds in (
            (State.DAMAGED, run.damaged),
            (State.INCOMPLETE, run.missing),
            (State.LOST, is_lost),
            (State.COMPLETE, True),
        )
        if holds
    )
    created = manifest.created if manifest.created.tzinfo is not None else manifest.created.replace(tzinfo=UTC)
    return PastRun(
        path=str(path),
        state=state,
        created=created,
        imported=manifest.imported or (created if _is_imported(run) else None),
        campaign=manifest.campaign_name,
        testbed=manifest.testbed.name,
        hosts=tuple(node.name for node in manifest.testbed.nodes),
        fabrics=tuple(fabric.name for fabric in manifest.testbed.fabrics),
        seed=manifest.seed,
        blocks_done=len(paired_blocks(manifest.planned, done)),
        blocks_planned=len({launch.block for launch in manifest.planned}),
        launches_done=len(run.launches),
        launches_planned=len(manifest.planned),
        unproven=run.unproven,
        reason=run.damaged[0].reason if run.damaged else None,
        launches_measured=account.launches_measured,
        account=account,
    )


def _is_imported(run: Run) -> bool:
    """Whether a run was imported, which the manifests of earlier versions do not tell."""
    return any(launch.origin is Origin.IMPORTED for launch in run.launches)
