"""Writes a whole run directory at once: of an import, of a prediction. `campaign` writes that of a run while it is measured.

What is written lies aside until all of it is there, sealed as a measured run is: everything that reads runs reads it.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.record.atomic import explained, replaced, synced, synced_together
from fabricbench.record.confinement import TEXTS
from fabricbench.record.integrity import LAUNCH, LAUNCHES, MANIFEST
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.launch import LaunchFacts, write_launch
from fabricbench.record.lock import LOCK, locked
from fabricbench.record.manifest import Manifest, manifest_text
from fabricbench.record.reading import Record
from fabricbench.record.workload_cells import WorkloadPart


class RunWriter:
    """Writes launches, then the manifest, into a folder that `new_run` yields."""

    def __init__(self, path: Path) -> None:
        self._path, self._journal = path, Journal(path)
        (path / LAUNCHES).mkdir()

    def write_launch(
        self,
        launch_id: str,
        record: Record,
        facts: LaunchFacts,
        texts: Mapping[str, bytes],
        *,
        workload: WorkloadPart | None = None,
        cells: bytes | None = None,
    ) -> None:
        """Write a launch and the texts that it was read from, and seal both; `cells` as `record.launch.write_launch` takes them."""
        folder = self._path / LAUNCHES / launch_id
        for each in (folder, folder / TEXTS):
            each.mkdir()
        for name, content in texts.items():
            with replaced(folder / TEXTS / name) as file:
                file.write(content)
        write_launch(folder, record, facts=facts, workload=workload, cells=cells)
        hashes = self._journal.hashes(folder / LAUNCH, *(folder / TEXTS / name for name in texts))
        self._journal.append(JournalEvent.IMPORTED, launch_id, sha256=hashes)

    def write_manifest(self, manifest: Manifest) -> None:
        """Write what the run is, once its launches are there."""
        self._journal.write(MANIFEST, manifest_text(manifest))


def check_empty(directory: Path) -> None:
    """Refuse a run directory that is a file, or holds anything but the lock, which is of this writer or of another that runs."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is no folder", hint="give a new folder for the run")
    if directory.exists() and any(path.name != LOCK for path in directory.iterdir()):
        raise UsageError(f"{directory} is not empty", hint="give a new folder: what is there is never overwritten")


@contextmanager
def new_run(directory: Path, *, way_on: str) -> Iterator[RunWriter]:
    """Yield the writer of a new run directory; what it writes takes its place when all of it is there, the manifest last.

    After a failure nothing is left, the directory neither where it was made here; `way_on` is what to do then. What is written
    lies within meanwhile, for the directory may be where somebody stands, or a disk of its own.
    """
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with locked(directory):
            try:
                check_empty(directory)  # again: another may have taken it meanwhile
                with _written_aside(directory) as aside:
                    yield RunWriter(aside)
            finally:
                (directory / LOCK).unlink()  # while it is held
    except BaseException as error:
        for path in made:
            with suppress(OSError):
                path.rmdir()
        cause = error.__cause__ if isinstance(error, EnvironmentLacks) and error.__cause__ else error
        told = explained(cause, directory, way_on=way_on) if isinstance(cause, Exception) else error
        if told is not cause:
            raise told from cause
        raise


@contextmanager
def _written_aside(directory: Path) -> Iterator[Path]:
    """Yield a folder within `directory`, which is empty; what it holds goes there, or is removed after a failure."""
    aside = directory / f".import.{secrets.token_hex(16)}.tmp"
    moved: list[Path] = []
    try:
        aside.mkdir()
        with synced_together(aside):
            yield aside
        for path in sorted(aside.iterdir(), key=lambda one: one.name == MANIFEST):
            place = directory / path.name
            path.rename(place)
            moved.append(place)
        aside.rmdir()
        synced(directory)
    except BaseException:
        for path in (aside, *moved):
            _remove(path)
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
