"""Whose turn it is on a node: one agent of a user at a time, and none that comes when its run is over.

An agent outlives who asked it (a `kill -9`, a timeout, ssh that was cut off). Its file is locked from before it reads until it has
read back, by all that it started as well, so that restoring waits for it; and the file names the runs that were restored, whose
orders, however late, write nothing more. One file a network namespace, in a folder that is this user's alone.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from fabricbench.launch.folder import own_folder

PLACE = Path("/tmp")  # noqa: S108 - the same for every agent, whatever TMPDIR its session has; the folder in it is checked
LOOK_SECONDS = 0.02
MOST_KEPT = 256
"""Of the runs that were restored: an order that is so late is long dead."""


class NotItsTurnError(Exception):
    """Another agent is at work on this node, or no lock can be had there."""


@dataclass(frozen=True)
class Turn:
    """The lock that an agent holds; commands that write are handed `descriptor`, and hold it as well."""

    _file: TextIO

    @property
    def descriptor(self) -> int:
        """What a child must inherit to keep the lock until it has ended, whatever comes of the agent."""
        return self._file.fileno()

    def is_over(self, run: str) -> bool:
        """Tell whether a run was restored here."""
        return run in self._ended()

    def end(self, run: str) -> None:
        """Note that a run is being restored: no other order of it writes from here on. Raises OSError."""
        if run and not self.is_over(run):
            ended = [*self._ended(), run][-MOST_KEPT:]
            self._file.seek(0)
            self._file.truncate()
            self._file.write("".join(f"{one}\n" for one in ended))
            self._file.flush()

    def _ended(self) -> list[str]:
        self._file.seek(0)
        return self._file.read().split()


@contextmanager
def turn(wait_s: float, place: Path | None = None) -> Iterator[Turn]:
    """Hold this node's lock. Raises NotItsTurnError where it is not free within so many seconds."""
    end = time.monotonic() + wait_s
    while True:
        try:
            namespace = Path("/proc/self/ns/net").stat().st_ino
            path = own_folder(place or PLACE) / f"settings-{namespace}.lock"
            file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "r+")
        except OSError as error:
            raise NotItsTurnError(f"settings cannot be locked there: {error}") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_held = os.path.samestat(
                    os.fstat(file.fileno()), path.stat()
                )  # else who cleans that folder removed it
            except (BlockingIOError, FileNotFoundError):
                is_held = False
            if is_held:
                yield Turn(file)
                return
        if time.monotonic() >= end:
            raise NotItsTurnError(
                f"another command of this user is still writing settings there (`fuser -v {path}` names it)"
            )
        time.sleep(LOOK_SECONDS)
