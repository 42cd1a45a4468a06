"""Keeps two processes from writing into the same run directory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabricbench.errors import UsageError
from fabricbench.record.atomic import explained

LOCK = ".lock"


@contextmanager
def locked(directory: Path, name: str = LOCK) -> Iterator[None]:
    """Hold the lock of a run directory, or another lock in it; the kernel frees it however this process ends.

    UsageError where another process holds it, or has just given the directory up, and where there is no such directory.
    """
    path = directory / name
    try:
        file = path.open("a")
    except FileNotFoundError as error:
        raise UsageError(f"there is no run directory {directory}", hint="check the path") from error
    except OSError as error:
        raise explained(error, directory) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_held = os.path.samestat(os.fstat(file.fileno()), path.stat())  # else it was removed by who held it
        except (BlockingIOError, FileNotFoundError):
            is_held = False
        if not is_held:
            raise UsageError(
                f"another fabricbench is running in {directory}", hint="wait for it, or end it; then repeat the command"
            )
        yield
