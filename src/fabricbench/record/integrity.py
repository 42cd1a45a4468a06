"""Whether files are as they were written: the SHA-256 of each, and where it is kept.

`launch.json` holds that of each Parquet file beside it, the journal that of each `launch.json`, of the manifest and of the plan:
`seals`. A launch that is not in the journal yet, and a run of an earlier version, have none.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from fabricbench.errors import UsageError

JOURNAL = "journal.jsonl"
SEALS = "sha256"
"""In the facts of a line of the journal: paths in the run directory -> the SHA-256 of the file as it was written."""
STARTED = "started"
"""The event after which a launch's earlier files are no longer those in its folder."""

ENDS = ("finished", "adopted")
"""The events that a launch's hash is told with."""

LAUNCHES = "launches"
MANIFEST = "manifest.json"
LAUNCH = "launch.json"
CELLS = "cells.parquet"
SAMPLES = "samples.parquet"
CHANNELS = "channels.parquet"
"""Only where a cell has channels of its own to tell of."""
HASHED = (LAUNCH, CELLS, SAMPLES, CHANNELS)
"""What of a launch the hash of the data covers: all that analysis reads. Logs, raw records and earlier attempts are not."""

Seals = dict[str, tuple[str, ...]]
"""Path in the run directory -> the hashes that it may have. A crash between a file and its line leaves the one before."""


class DamagedFile(UsageError):  # noqa: N818 - the tree of errors reads as sentences
    """A file of a run that is not as it was written, or cannot be read."""

    def __init__(self, path: Path, reason: str, *, hint: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}", hint=hint)
        self.path = path
        self.reason = reason


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, read in pieces; ValueError for what is no file (a pipe would never end)."""
    if path.exists() and not path.is_file():
        raise ValueError("it is no file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_file(path: Path) -> bytes:
    """Return the content of a file; OSError for a pipe or a device in its place, which would never end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
    return path.read_bytes()


def check_sha256(found: str, written: tuple[str, ...]) -> None:
    """Raise ValueError where a file has none of the hashes that it was written with."""
    if found not in written:
        raise ValueError(f"it was altered: its SHA-256 is {found[:16]}..., {written[-1][:16]}... was written")


def seals(directory: Path) -> Seals:
    """Return the hashes that a run's journal holds; none where there is no journal, or it was written by an earlier version."""
    found: Seals = {}
    for entry in _entries(directory / JOURNAL):
        launch_id, facts = entry.get("launch_id"), entry.get("facts")
        if entry.get("event") == STARTED and isinstance(launch_id, str):
            found.pop(launch_path(launch_id), None)
        told = facts.get(SEALS) if isinstance(facts, dict) else None
        for path, digest in told.items() if isinstance(told, dict) else ():
            if isinstance(digest, str):
                found[path] = (*found.get(path, ()), digest) if not path.startswith(LAUNCHES) else (digest,)
    return found


def check_has_hashes(directory: Path, launch_id: str) -> None:
    """Raise ValueError where a launch without hashes, its own or one in the journal, should have some.

    So it is where a run's journal has those of other launches, and no line that tells of this one without any: that is how earlier
    versions told of theirs.
    """
    sealed = seals(directory)
    if launch_path(launch_id) in sealed or not any(path.startswith(f"{LAUNCHES}/") for path in sealed):
        return
    if not any(
        entry.get("launch_id") == launch_id and entry.get("event") in ENDS for entry in _entries(directory / JOURNAL)
    ):
        raise ValueError("it has lost its hashes, which the journal has of others")


def launch_path(launch_id: str) -> str:
    """Return where a launch's `launch.json` is in its run directory."""
    return f"{LAUNCHES}/{launch_id}/{LAUNCH}"


def data_hash(directory: Path) -> str:
    """Return the SHA-256 over the lines `<sha256 of the file>  <path in the run directory>`, sorted by path as bytes.

    The files are manifest.json and HASHED of every launch that has them; each line ends with a line feed, as sha256sum writes it.
    """
    whole = hashlib.sha256()
    paths = {path.relative_to(directory).as_posix(): path for path in _hashed_files(directory)}
    for name in sorted(paths, key=str.encode):
        whole.update(f"{file_sha256(paths[name])}  {name}\n".encode())
    return whole.hexdigest()


def _hashed_files(directory: Path) -> Iterator[Path]:
    candidates = [directory / MANIFEST]
    candidates += [launch / name for launch in (directory / LAUNCHES).glob("*") if launch.is_dir() for name in HASHED]
    return filter(Path.is_file, candidates)


def _entries(journal: Path) -> Iterator[dict[str, Any]]:
    if not journal.is_file():
        return
    for line in journal.read_bytes().splitlines():
        try:
            entry = from_json(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry
