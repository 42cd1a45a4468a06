"""Run directories in which something was lost, made from what the programs themselves write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabricbench.model import Layer, Pattern
from fabricbench.record.farm_lines import FarmRecord, parse_farm_record
from fabricbench.record.integrity import LAUNCH, MANIFEST, launch_path
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.lines import CellFailed, FailureCode
from fabricbench.record.manifest import manifest_text, write_manifest
from fabricbench.record.store import Run, StoredLaunch
from fabricbench.record.workload_cells import WorkloadPart
from support.synthetic_run import SyntheticCell, write_synthetic_run

FIXTURES = Path(__file__).parents[2] / "schema" / "fixtures"


def trip(size: int = 64, fails_in: Sequence[int] = ()) -> SyntheticCell:
    """A TCP round trip that is five times faster on `fast`."""
    medians = {"slow": 100e3, "fast": 20e3}
    return SyntheticCell(Layer.TCP, Pattern.PINGPONG, size, medians, samples=20, fails_in=frozenset(fails_in))


def lost_run(
    path: Path,
    *,
    blocks: int = 6,
    invalid: Sequence[str] = (),
    unheld: Sequence[str] = (),
    failed: Sequence[str] = (),
    again: Sequence[str] = (),
    cells: Sequence[SyntheticCell] = (trip(),),
    farm: FarmRecord | None = None,
    workload: str = "",
    cannot: Sequence[FailureCode] = (),
) -> Run:
    """Write a run with its journal: launches that are `invalid`, that `failed` at both their starts, or were measured `again`.

    `unheld` are those whose traffic took its fabric, and whose settings were not held.
    With a `farm` each launch was one whose jobs ended as in that record. A `workload` was planned beside it, and never started.
    In each launch a test failed for every reason why it `cannot` be measured.
    """
    unable = [
        CellFailed(
            cell=90 + n, layer=Layer.FRAME, pattern=Pattern.PINGPONG, message_bytes=64, code=code, reason="it may not"
        )
        for n, code in enumerate(cannot)
    ]
    run = write_synthetic_run(path, cells=cells, blocks=blocks, invalid=invalid, missing=failed, failed=unable)
    if workload:
        ours = run.manifest.planned
        more = tuple(
            one.model_copy(update={"launch_id": f"{one.launch_id}-{workload}", "subject": workload}) for one in ours
        )
        run = Run(path, run.manifest.model_copy(update={"planned": (*ours, *more)}))
        write_manifest(path, run.manifest)
        failed = [*failed, *(one.launch_id for one in more)]
    for launch in run.launches:
        if farm is not None:
            part = WorkloadPart(kind="farm", name="jobs.2", ranks=2, jobs=farm.jobs)
            rewrite_launch(launch, workload=part)
        if launch.launch_id in unheld:
            facts = {"is_valid": False, "invalid_because": ("governor was not held",)}
            rewrite_launch(launch, facts=launch.summary.facts.model_copy(update=facts))
    write_journal(run, failed, again)
    return Run.open(path)


def rewrite_launch(launch: StoredLaunch, **update: object) -> None:
    """Change what the summary of a launch says."""
    summary = launch.summary.model_copy(update=update)
    (launch.directory / LAUNCH).write_text(summary.model_dump_json(by_alias=True, indent=2) + "\n")


def write_journal(run: Run, failed: Sequence[str] = (), again: Sequence[str] = ()) -> None:
    """Write the journal of a run: launches that `failed` at both their starts, and those that were started `again`, as often."""
    path = run.path
    journal = Journal(path)
    journal.write(MANIFEST, manifest_text(run.manifest))
    for launch in run.manifest.planned:
        name = launch.launch_id
        fails = 2 if name in failed else again.count(name)
        for attempt in range(fails):
            journal.append(JournalEvent.STARTED, name, attempt=attempt + 1, command=["probe"])
            journal.append(
                JournalEvent.FAILED, name, reason="ended with exit code 7", ended="with an error", exit_code=7
            )
        if name not in failed:
            journal.append(JournalEvent.STARTED, name, attempt=fails + 1, command=["probe"])
            journal.append(JournalEvent.FINISHED, name, sha256=journal.hashes(path / launch_path(name)))


def farm_record() -> FarmRecord:
    """The record of a farm as fabricbench-farm wrote it: some jobs failed, some for good."""
    return parse_farm_record((FIXTURES / "farm_record.jsonl").read_bytes().splitlines(keepends=True))
