"""The journal of a run: a line an event, appended and synced, so that what happened is known after any crash.

It tells what was tried and why it failed. What was measured is told by the launches' own files: a launch whose Parquet is in place
counts even if the machine died before its line was written.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import Field, ValidationError

from fabricbench.model import Model
from fabricbench.record.atomic import appended, explained, replace_text
from fabricbench.record.integrity import JOURNAL, SEALS, file_sha256, read_file, unreadable


class JournalEvent(StrEnum):
    """What a line of the journal tells."""

    PLANNED = "planned"
    RESUMED = "resumed"
    STARTED = "started"
    FINISHED = "finished"
    ADOPTED = "adopted"
    FAILED = "failed"
    AGAIN = "again"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    EXTENDED = "extended"
    LOST = "lost"
    DESCRIBED = "described"
    COMPLETED = "completed"
    IMPORTED = "imported"


START_IS_OVER = frozenset({JournalEvent.FINISHED, JournalEvent.ADOPTED, JournalEvent.FAILED, JournalEvent.INTERRUPTED})
"""What ends a start of a launch. One without any was under way when the run itself died, or goes on."""


class JournalEntry(Model):
    """One event. `attempt` counts a launch's starts from 1."""

    event: JournalEvent
    unix_ns: int = Field(ge=0, lt=2**63)
    launch_id: str | None = None
    attempt: int | None = None
    facts: dict[str, Any] = {}


class Journal:
    """The journal file of a run directory."""

    def __init__(self, directory: Path, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.path = directory / JOURNAL
        self._now_ns = now_ns
        self._read_bytes = 0
        """How much of the file is in the two below."""
        self._entries: list[JournalEntry] = []
        self._started: Counter[str] = Counter()

    def append(
        self,
        event: JournalEvent,
        launch_id: str | None = None,
        *,
        attempt: int | None = None,
        sha256: dict[str, str] | None = None,
        **facts: Any,
    ) -> None:
        """Write an event and return once it is on the disk; EnvironmentLacks if that is full.

        `sha256` are files that the event tells of, and what they hash to: what makes an alteration noticed.
        """
        if sha256 is not None:
            facts[SEALS] = sha256
        entry = JournalEntry(event=event, unix_ns=self._now_ns(), launch_id=launch_id, attempt=attempt, facts=facts)
        try:
            with appended(self.path) as file:
                # A line that a crash cut short must not swallow this one.
                lead = b"" if _ends_with_newline(file) else b"\n"
                file.write(lead + entry.model_dump_json(exclude_defaults=True).encode() + b"\n")
        except OSError as error:
            raise explained(error, self.path) from error

    def write(self, name: str, text: str) -> None:
        """Write a file of the run directory, whole or not at all, once it is told what it will hash to.

        Not behind it: a crash between the two would make the new file look altered.
        """
        self.append(JournalEvent.DESCRIBED, sha256={name: hashlib.sha256(text.encode()).hexdigest()})
        replace_text(self.path.parent / name, text)

    def hashes(self, *paths: Path) -> dict[str, str]:
        """Return what files of the run directory hash to, by their paths in it."""
        return {path.relative_to(self.path.parent).as_posix(): file_sha256(path) for path in paths}

    def entries(self) -> list[JournalEntry]:
        """Return every whole event; a line that is cut short or garbled is passed over. DamagedFile where it cannot be read.

        Only what was written since the last call is read: a run asks at each of its launches.
        """
        self._read_on()
        return list(self._entries)

    def attempts(self, launch_id: str) -> int:
        """Return how often a launch was started."""
        self._read_on()
        return self._started[launch_id]

    def _read_on(self) -> None:
        """Take the whole lines that were not read yet; all anew where the file has become shorter."""
        try:
            size = self.path.stat().st_size
            if size < self._read_bytes:
                self._forget()
            if size == self._read_bytes:
                return
            text = read_file(self.path, first=self._read_bytes)
        except (FileNotFoundError, NotADirectoryError):
            self._forget()
            return
        except OSError as error:
            raise unreadable(self.path, error) from error
        end = text.rfind(b"\n") + 1
        for line in text[:end].splitlines():
            with suppress(ValidationError):
                self._take(JournalEntry.model_validate_json(line))
        self._read_bytes += end
        with suppress(ValidationError):  # a last line whose end alone is missing is whole
            self._take(JournalEntry.model_validate_json(text[end:]))
            self._read_bytes += len(text) - end

    def _forget(self) -> None:
        self._read_bytes, self._entries = 0, []
        self._started = Counter()

    def _take(self, entry: JournalEntry) -> None:
        self._entries.append(entry)
        if entry.event is JournalEvent.STARTED and entry.launch_id is not None:
            self._started[entry.launch_id] += 1


def under_way(entries: Iterable[JournalEntry]) -> tuple[str, ...]:
    """Return the launches whose last start has no end in the journal."""
    found: dict[str, None] = {}
    for entry in entries:
        if entry.launch_id is not None and entry.event is JournalEvent.STARTED:
            found[entry.launch_id] = None
        elif entry.launch_id is not None and entry.event in START_IS_OVER:
            found.pop(entry.launch_id, None)
    return tuple(found)


def _ends_with_newline(file: BinaryIO) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
