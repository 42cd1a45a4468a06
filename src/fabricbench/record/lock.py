"""Keeps two processes from writing into the same run directory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabricbench.deadline import locks
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.record.atomic import MODE, OLD_OR_NEW, explained

LOCK = ".lock"


SOON_SECONDS = 0.1
"""For which a lock is tried: `is_locked` holds it for a moment."""


def is_locked(directory: Path) -> bool:
    """Tell whether a process holds the lock of a run directory: the run goes on. Nothing is written."""
    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    else:
        return False
    finally:
        os.close(descriptor)


@contextmanager
def locked(directory: Path, name: str = LOCK) -> Iterator[None]:
    """Hold the lock of a run directory, or another lock in it; the kernel frees it however this process ends.

    UsageError where another process holds it, or has just given the directory up, and where there is no such directory.
    """
    path = directory / name
    try:
        file = os.fdopen(os.open(path, OLD_OR_NEW, MODE), "r+b", buffering=0)  # nothing is ever written to it
    except FileNotFoundError as error:
        raise UsageError(f"there is no run directory {directory}", hint="check the path") from error
    except OSError as error:
        raise explained(error, path) from error
    with file:
        try:
            is_held = locks(file, SOON_SECONDS) and os.path.samestat(os.fstat(file.fileno()), path.lstat())
        except FileNotFoundError:  # removed by who held it
            is_held = False
        except OSError as error:
            raise EnvironmentLacks(
                f"{directory} cannot be locked: {error.strerror}",
                hint="its file system has no locks (flock): mount it with them, or take a folder on another one",
            ) from error
        if not is_held:
            raise UsageError(
                f"another fabricbench is running in {directory}", hint="wait for it, or end it; then repeat the command"
            )
        yield
