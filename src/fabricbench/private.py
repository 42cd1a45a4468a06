"""Directories and files that are this user's alone: whom to trust, what to end and what to restore is told there.

Who may write into one of them can have programs started in this user's name. So each is made for nobody else, and looked at before
it is used: it is this user's, no link, and others are shut out, also of one that an earlier version or an open umask left open.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from fabricbench.errors import EnvironmentLacks

DIRECTORY, FILE = 0o700, 0o600
OTHERS = 0o077
MOST_BYTES = 64 * 1024 * 1024


def make_private(base: Path, *names: str) -> Path:
    """Return `base`/names..., each of which is made if need be; those below `base` are nobody else's. Raises EnvironmentLacks."""
    path = base
    try:
        for above in reversed([base, *base.parents]):
            if not above.exists():
                above.mkdir(mode=DIRECTORY, exist_ok=True)
        for name in names:
            path = path / name
            with suppress(FileExistsError):
                path.mkdir(mode=DIRECTORY)
            _shut_others_out(path)
    except OSError as error:
        raise EnvironmentLacks(
            f"cannot make {base.joinpath(*names)}: {error.strerror}", hint="set XDG_STATE_HOME to a directory of yours"
        ) from None
    return path


def check_private(base: Path, *names: str) -> None:
    """Shut others out of the directories below `base` that are there. EnvironmentLacks where one is not this user's own."""
    path = base
    for name in names:
        path = path / name
        try:
            _shut_others_out(path)
        except FileNotFoundError:
            return


def _shut_others_out(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _not_ours(path, f"{error.strerror}, and a directory is needed that is no link") from None
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid():
            raise _not_ours(path, f"it belongs to user {found.st_uid}, and this is user {os.geteuid()}")
        if found.st_mode & OTHERS:
            os.fchmod(descriptor, DIRECTORY)
    except OSError as error:
        raise _not_ours(path, f"others cannot be shut out: {error.strerror}") from None
    finally:
        os.close(descriptor)


def _not_ours(path: Path, why: str) -> EnvironmentLacks:
    return EnvironmentLacks(
        f"{path} is not a directory of this user's alone: {why}",
        hint="look at what is in it, then remove it; or set XDG_STATE_HOME to a directory of yours",
    )


def read_private(path: Path, forbidden: int = 0o022) -> bytes:
    """Return the content of a file of this user's that has none of the forbidden bits in its mode: those by which others write.

    PermissionError where it is somebody else's or too open, OSError where there is none.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & forbidden:
            raise PermissionError(f"{path} is not a file of this user's alone")
        return file.read(min(MOST_BYTES, found.st_size))


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user can read, unless there is one. Raises FileExistsError, and other OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, FILE), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
