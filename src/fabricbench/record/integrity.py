"""Whether files are as they were written: the SHA-256 of each, and where it is kept.

`launch.json` holds that of each Parquet file beside it, the journal that of each `launch.json`, of the manifest and of the plan:
`seals`. A launch that is not in the journal yet, and a run of an earlier version, have none.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import BufferedReader
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
PLAN = "plan.json"
CELLS = "cells.parquet"
SAMPLES = "samples.parquet"
TABLE_FILES = ("channels.parquet", "stages.parquet", "counters.parquet")
"""Those of `record.tables`, each there only where a record has anything for it."""
HASHED = (LAUNCH, CELLS, SAMPLES, *TABLE_FILES)
"""What of a launch the hash of the data covers: all that analysis reads. Logs, raw records and earlier attempts are not."""

Seals = dict[str, tuple[str, ...]]
"""Path in the run directory -> the hashes that it may have. A crash between a file and its line leaves the one before."""


class DamagedFile(UsageError):  # noqa: N818 - the tree of errors reads as sentences
    """A file of a run that is not as it was written, or cannot be read."""

    def __init__(self, path: Path, reason: str, *, hint: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}", hint=hint)
        self.path = path
        self.reason = reason


def unreadable(path: Path, error: OSError) -> DamagedFile:
    """Return what is raised for a file of a run that the system, or `opened_file`, does not let be read."""
    return DamagedFile(
        path, error.strerror or str(error), hint="check its permissions and its size, or restore it from a copy"
    )


MOST_TEXT_BYTES = 128 * 1024 * 1024
MOST_VALUES = 8_000_000
"""Of a file of which a run has one: a plan of 60,000 launches of a hundred cells each. One of Python's values takes 100 bytes."""
MOST_LAUNCH_BYTES = 16 * 1024 * 1024
MOST_LAUNCH_VALUES = 1_000_000
"""Of what a launch has one of: 4,096 ranks and the traffic of 1,000 cells on 64 nodes have half as many."""
MOST_RECORD_BYTES = 4 * 1024**3
"""Of a raw record, which is read line by line: more than 100 million samples."""
MOST_BYTES = {MANIFEST: MOST_TEXT_BYTES, PLAN: MOST_TEXT_BYTES, LAUNCH: MOST_LAUNCH_BYTES}
"""Of the files that are hashed; of others as of a record."""
MOST_LINE_BYTES = 64 * 1024 * 1024
MOST_OF_A_LONG_LINE = 100
MOST_OF_A_STRING = 1024 * 1024
"""Bytes of a string of JSON, whose longest are what other programs printed."""
HOLES_FROM_BYTES = 16 * 1024 * 1024


def file_sha256(path: Path, most_bytes: int | None = None) -> str:
    """Return the SHA-256 of a file in hexadecimal, read in pieces; OSError for what is no file (a pipe would never end).

    `most_bytes` are by default those of a file of its name.
    """
    with opened_file(path, MOST_BYTES.get(path.name, MOST_RECORD_BYTES) if most_bytes is None else most_bytes) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def opened_file(path: Path, most_bytes: int) -> BufferedReader:
    """Return a file that was opened for reading, and is one; OSError for a pipe or a device, which never end, and a larger one.

    So it is for a large file of which a part was never written: it costs nobody anything to make, and us seconds to read.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb")
    found = os.fstat(file.fileno())
    try:
        _check_kind(found, path, most_bytes)
    except OSError:
        file.close()
        raise
    if found.st_size > HOLES_FROM_BYTES and _has_hole(file.fileno(), found.st_size):
        file.close()
        raise OSError(errno.EINVAL, "it has holes: parts of it were never written", str(path))
    return file


def check_file(path: Path, most_bytes: int) -> None:
    """Raise the OSError with which `opened_file` would refuse a file for what it is or for its size, without opening it."""
    _check_kind(path.stat(), path, most_bytes)


def _check_kind(found: os.stat_result, path: Path, most_bytes: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
    if found.st_size > most_bytes:
        told = f"it has {found.st_size:,} bytes, and {most_bytes:,} are the most that are read"
        raise OSError(errno.EFBIG, told, str(path))


def _has_hole(descriptor: int, size: int) -> bool:
    """Tell whether a part of a file was never written; never where the file system does not know."""
    try:
        return os.lseek(descriptor, 0, os.SEEK_HOLE) < size
    except OSError:
        return False
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


def read_file(
    path: Path, most_bytes: int = MOST_TEXT_BYTES, most_values: int = MOST_VALUES, *, first: int = 0
) -> bytes:
    """Return the content of a file of JSON, from its `first` byte on.

    OSError for what is no file, or would take more memory than any of its kind should. Values are counted before they are made,
    by what separates them; what a text holds of that counts as well.
    """
    with opened_file(path, most_bytes) as file:
        file.seek(first)
        content = file.read(min(most_bytes, os.fstat(file.fileno()).st_size))  # whose memory is taken at once
    values = values_of(content)
    if values > most_values:
        told = f"it has {values:,} values, and {most_values:,} are the most that are read"
        raise OSError(errno.EFBIG, told, str(path))
    if len(content) > MOST_OF_A_STRING:
        longest = max((found.end() - found.start() for found in _STRING.finditer(content)), default=0)
        if longest > MOST_OF_A_STRING:
            told = f"a string in it has {longest:,} bytes, and {MOST_OF_A_STRING:,} are the most that are read"
            raise OSError(errno.EFBIG, told, str(path))
    return content


def values_of(content: bytes) -> int:
    """Return how many values JSON has at most, by what separates them."""
    return sum(map(content.count, (b",", b"[", b"{")))


@dataclass
class Room:
    """What all files of a kind may have together, as if they were one; what is left of it after those that were read.

    Threads may read at once.
    """

    bytes_left: int = MOST_TEXT_BYTES
    values_left: int = MOST_VALUES
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, path: Path, most_bytes: int, most_values: int) -> bytes:
        """Return a file's content as `read_file` does; OSError, too, where there is no room for it."""
        content = read_file(path, most_bytes, most_values)
        values = values_of(content)
        with self._lock:
            if len(content) > self.bytes_left or values > self.values_left:
                told = (
                    f"those before it leave no room: together they may have {MOST_TEXT_BYTES:,} bytes and {MOST_VALUES:,} values, "
                    "and no more are read"
                )
                raise OSError(errno.EFBIG, told, str(path))
            self.bytes_left -= len(content)
            self.values_left -= values
        return content


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their ends; of one that is too long its beginning, which no reader can use. Raises OSError."""
    with opened_file(path, MOST_RECORD_BYTES) as file:
        while line := file.readline(MOST_LINE_BYTES):
            if len(line) == MOST_LINE_BYTES and not line.endswith(b"\n"):
                while (rest := file.readline(MOST_LINE_BYTES)) and not rest.endswith(b"\n"):
                    pass
                line = line[:MOST_OF_A_LONG_LINE] + b"\n"
            yield line


def check_sha256(found: str, written: tuple[str, ...]) -> None:
    """Raise ValueError where a file has none of the hashes that it was written with."""
    if found not in written:
        raise ValueError(f"it was altered: its SHA-256 is {found[:16]}..., {written[-1][:16]}... was written")


def seals(directory: Path) -> Seals:
    """Return the hashes that a run's journal holds; none where there is no journal, or it was written by an earlier version."""
    found: dict[str, dict[str, None]] = {}
    for entry in _entries(directory / JOURNAL):
        launch_id, facts = entry.get("launch_id"), entry.get("facts")
        if entry.get("event") == STARTED and isinstance(launch_id, str):
            found.pop(launch_path(launch_id), None)
        told = facts.get(SEALS) if isinstance(facts, dict) else None
        for path, digest in told.items() if isinstance(told, dict) else ():
            if isinstance(digest, str) and is_within(path):
                found[path] = {**(found.get(path, {}) if not path.startswith(LAUNCHES) else {}), digest: None}
                if len(found[path]) > MOST_HASHES:
                    del found[path][next(iter(found[path]))]
    return {path: tuple(digests) for path, digests in found.items()}


MOST_HASHES = 1000
"""Of one file: a manifest is written anew with each extension. Of more the last count."""


def is_within(path: str) -> bool:
    """Tell whether a path that a file of a run names lies in the run directory."""
    return not path.startswith("/") and ".." not in path.split("/")


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
    One that cannot be read has a hyphen for its hash: no whole copy has that line.
    """
    whole = hashlib.sha256()
    paths = {path.relative_to(directory).as_posix(): path for path in _hashed_files(directory)}
    for name in sorted(paths, key=str.encode):
        try:
            digest = file_sha256(paths[name])
        except OSError:
            digest = "-"
        whole.update(f"{digest}  {name}\n".encode())
    return whole.hexdigest()


def _hashed_files(directory: Path) -> Iterator[Path]:
    candidates = [directory / MANIFEST]
    candidates += [launch / name for launch in (directory / LAUNCHES).glob("*") if launch.is_dir() for name in HASHED]
    return filter(Path.is_file, candidates)


def _entries(journal: Path) -> Iterator[dict[str, Any]]:
    try:
        for line in read_lines(journal):
            with suppress(ValueError):
                if isinstance(entry := from_json(line), dict):
                    yield entry
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise unreadable(journal, error) from error
