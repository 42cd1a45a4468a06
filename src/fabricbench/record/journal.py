"""The journal of a run: a line an event, appended and synced, so that what happened is known after any crash.

It tells what was tried and why it failed. What was measured is told by the launches' own files: a launch whose Parquet is in place
counts even if the machine died before its line was written.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from fabricbench.model import Model
from fabricbench.record.atomic import explained
from fabricbench.record.integrity import JOURNAL, SEALS, file_sha256, read_file


class Happened(StrEnum):
    """What a line of the journal tells."""

    PLANNED = "planned"
    RESUMED = "resumed"
    STARTED = "started"
    FINISHED = "finished"
    ADOPTED = "adopted"
    FAILED = "failed"
    AGAIN = "again"
    INTERRUPTED = "interrupted"
    EXTENDED = "extended"
    LOST = "lost"
    DESCRIBED = "described"
    COMPLETED = "completed"
    IMPORTED = "imported"


class Entry(Model):
    """One event. `attempt` counts a launch's starts from 1."""

    event: Happened
    unix_ns: int = Field(ge=0, lt=2**63)
    launch_id: str | None = None
    attempt: int | None = None
    facts: dict[str, Any] = {}


class Journal:
    """The journal file of a run directory."""

    def __init__(self, directory: Path, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.path = directory / JOURNAL
        self._now_ns = now_ns

    def append(
        self,
        event: Happened,
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
        entry = Entry(event=event, unix_ns=self._now_ns(), launch_id=launch_id, attempt=attempt, facts=facts)
        try:
            with self.path.open("ab") as file:
                # A line that a crash cut short must not swallow this one.
                lead = b"" if _ends_with_newline(self.path) else b"\n"
                file.write(lead + entry.model_dump_json(exclude_defaults=True).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise explained(error, self.path) from error

    def append_written(self, name: str, text: str) -> None:
        """Write, before a file of the run directory is written, what it will hash to.

        Not behind it: a crash between the two would make the new file look altered.
        """
        self.append(Happened.DESCRIBED, sha256={name: hashlib.sha256(text.encode()).hexdigest()})

    def hashes(self, *paths: Path) -> dict[str, str]:
        """Return what files of the run directory hash to, by their paths in it."""
        return {path.relative_to(self.path.parent).as_posix(): file_sha256(path) for path in paths}

    def entries(self) -> list[Entry]:
        """Return every whole event; a line that is cut short or garbled is passed over."""
        try:
            lines = read_file(self.path).splitlines()
        except FileNotFoundError:
            return []
        found = []
        for line in lines:
            try:
                found.append(Entry.model_validate_json(line))
            except ValidationError:
                continue
        return found

    def attempts(self, launch_id: str) -> int:
        """Return how often a launch was started."""
        return sum(entry.event is Happened.STARTED and entry.launch_id == launch_id for entry in self.entries())

    def times_again(self, group: str) -> int:
        """Return how often a group was run again."""
        return sum(entry.event is Happened.AGAIN and entry.facts.get("group") == group for entry in self.entries())


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return True
        file.seek(size - 1)
        return file.read(1) == b"\n"
