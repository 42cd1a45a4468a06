"""Whether a run directory is whole and unaltered, file by file: what `fabricbench verify` says."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from fabricbench.model import Model
from fabricbench.record.confinement import ATTEMPT
from fabricbench.record.integrity import (
    LAUNCH,
    LAUNCHES,
    MANIFEST,
    Seals,
    check_sha256,
    data_hash,
    file_sha256,
    launch_path,
)
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.launch import is_stored, read_summary
from fabricbench.record.store import Run


class RunVerdict(StrEnum):
    """What is said of a run directory as a whole; the gravest that holds."""

    ALTERED = "altered"
    CANNOT_TELL = "cannot tell"
    INCOMPLETE = "incomplete"
    WHOLE = "whole"


class Altered(Model):
    """A file that is not as it was written, cannot be read, or is gone. `path` is that in the run directory."""

    path: str
    reason: str


class Verification(Model):
    """What was found.

    `missing` are planned launches that are not finished, `without_hash` files that nothing can be held against.
    """

    run_directory: str
    verdict: RunVerdict
    data_sha256: str
    planned: int
    finished: int
    files: int
    altered: tuple[Altered, ...]
    missing: tuple[str, ...]
    without_hash: tuple[str, ...]
    is_imported: bool = False
    """Whether it was read from texts of other programs: nothing of it can be measured again."""


def verify(path: Path | str) -> Verification:
    """Hash every file that was sealed and say which is not as it was written; UsageError where there is no run."""
    run = Run.open(path)
    altered: dict[str, str] = {}
    without: list[str] = []
    checked = 0
    for name, written in _written(run):
        checked += 1
        try:
            found = file_sha256(run.path / name)
            if written:
                check_sha256(found, written)
            else:
                without.append(name)
        except FileNotFoundError:
            altered[name] = "it is gone"
        except (OSError, ValueError) as error:
            altered[name] = (isinstance(error, OSError) and error.strerror) or str(error)
    # What has no hash, or has one and is no launch of this run.
    for launch in run.damaged:
        if not any(name.startswith(f"{LAUNCHES}/{launch.launch_id}/") for name in altered):
            altered[f"{LAUNCHES}/{launch.launch_id}"] = launch.reason
    missing = tuple(launch.launch_id for launch in run.missing)
    without = [name for name in without if name not in altered]
    return Verification(
        run_directory=str(run.path),
        verdict=_verdict(bool(altered), bool(without), bool(missing)),
        data_sha256=data_hash(run.path),
        planned=len(run.manifest.planned),
        finished=len(run.launches),
        files=checked,
        altered=tuple(Altered(path=name, reason=altered[name]) for name in sorted(altered)),
        missing=missing,
        without_hash=tuple(without),
        is_imported=any(one.event is JournalEvent.IMPORTED for one in Journal(run.path).entries()),
    )


def _verdict(is_altered: bool, has_no_hash: bool, is_incomplete: bool) -> RunVerdict:
    for holds, verdict in (
        (is_altered, RunVerdict.ALTERED),
        (has_no_hash, RunVerdict.CANNOT_TELL),
        (is_incomplete, RunVerdict.INCOMPLETE),
    ):
        if holds:
            return verdict
    return RunVerdict.WHOLE


def _written(run: Run) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each file that should be there, with the hashes that it may have; none where nobody wrote one down."""
    seals: Seals = dict(run.seals)
    yield MANIFEST, seals.pop(MANIFEST, ())
    folders = sorted(folder for folder in (run.path / LAUNCHES).glob("*") if is_stored(folder))
    for folder in folders:
        name = launch_path(folder.name)
        yield name, seals.pop(name, ())
        try:
            summary = read_summary(folder / LAUNCH)
        except (OSError, ValueError):
            continue  # which is told of launch.json itself
        for file in summary.parquet:
            written = summary.sha256.get(file)
            yield f"{LAUNCHES}/{folder.name}/{file}", () if written is None else (written,)
    for name, hashes in sorted(seals.items()):  # launches that are gone, the plan
        if not _is_set_aside(run.path / name, hashes):
            yield name, hashes


def _is_set_aside(path: Path, written: tuple[str, ...]) -> bool:
    """Tell whether a launch that has left its place lies in one of its attempts as it was written: it is to be run again."""
    if path.name != LAUNCH or path.exists():
        return False
    for attempt in path.parent.glob(f"{ATTEMPT}*"):
        try:
            if file_sha256(attempt / LAUNCH) in written:
                return True
        except (OSError, ValueError):
            continue
    return False
