"""Opens files for writing where a stranger may have planted names: nothing is ever written through a link, a pipe or a device.

`replaced` writes a file whole or not at all: a reader sees the old one or the new one, also after a crash or on a full disk.
`appended` adds to a file that is there, `written_anew` begins one while others may read it already.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

from fabricbench.errors import EnvironmentLacks, UsageError

FULL = {errno.ENOSPC, errno.EDQUOT}
DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
WRONG_PLACE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
PLANTED = {
    errno.ELOOP: "it is a link, and nothing is written through one",
    errno.ENXIO: "it is a pipe or a device, not a file",
    errno.EMLINK: "it is a file with other names (hard links), and would be changed under all of them",
}
"""What stands where a file of ours should be, by the error that opening it ends with."""


TEMPORARY = ".*.tmp"
"""What the names of temporary files look like: one that is still there when nobody writes was left by a kill."""

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""Makes a file, and never writes to one that is there, nor to what a link of that name leads to."""
OLD_OR_NEW = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Opens a file that is there, or makes it; of a link there is an error, of a pipe nobody waits for its other end."""
MODE = 0o666
"""The user's umask takes from it."""


_WAITS: ContextVar[bool] = ContextVar("waits", default=True)
"""Whether a file that was written is waited for until it is on the disk."""

_LIBC = ctypes.CDLL(None, use_errno=True)
"""For syncfs(2), which Python has no name for."""


class NoSpace(EnvironmentLacks):
    """A disk, or what a quota allows, is full."""


@contextmanager
def replaced(path: Path, mode: int = MODE) -> Iterator[BinaryIO]:
    """Yield a new file beside `path`; once it is written and on the disk, it takes the place of `path`, whatever that was.

    Its name is random, and it is made, moved and removed relative to the folder that was opened first: a link of that name is
    replaced, not followed. EnvironmentLacks if the disk is full or may not be written to, UsageError if there is no such folder or
    a folder of that name; the old file is then as it was. Of what is `synced_together` each file is new, and written in its place.
    """
    try:
        if not _WAITS.get():
            with os.fdopen(os.open(path, NEW, mode), "wb") as file:
                yield file
            return
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            temporary = f".{secrets.token_hex(16)}.tmp"
            try:
                with os.fdopen(os.open(temporary, NEW, mode, dir_fd=folder), "wb") as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)
        finally:
            os.close(folder)
    except Exception as error:
        raise explained(error, path) from error


def replace_text(path: Path, text: str, mode: int = MODE) -> None:
    """Write `text` to `path`, whole or not at all."""
    with replaced(path, mode) as file:
        file.write(text.encode())


@contextmanager
def appended(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to add to, made if need be; what was written is on the disk at the end. OSError where it is no file of its own.

    A second name of the file (a hard link) is refused as well: who has that would find our lines there.
    """
    descriptor = os.open(path, OLD_OR_NEW | os.O_APPEND, MODE)
    try:
        _check_own(descriptor, path)
        file = os.fdopen(descriptor, "a+b")
    except BaseException:
        os.close(descriptor)
        raise
    with file:
        yield file
        file.flush()
        if _WAITS.get():
            os.fsync(file.fileno())


@contextmanager
def synced_together(directory: Path) -> Iterator[None]:
    """Let all files that are written within reach the disk at the end and not one by one: for what is of no use until all is there.

    A disk takes a millisecond for each file that is waited for, and hardly more for thousands at once. Nobody reads a file before
    that, so none is written aside.
    """
    before = _WAITS.set(False)
    try:
        yield
    finally:
        _WAITS.reset(before)
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _LIBC.syncfs(folder) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(directory))
    finally:
        os.close(folder)


def _check_own(descriptor: int, path: Path) -> None:
    found = os.fstat(descriptor)
    kind = errno.EMLINK if stat.S_ISREG(found.st_mode) else errno.ENXIO
    if kind == errno.ENXIO or found.st_nlink > 1:
        raise OSError(kind, PLANTED[kind], str(path))


def written_anew(path: Path) -> BinaryIO:
    """Return a new and empty file under a name, of which whatever had it before is removed. Raises OSError."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, NEW, MODE), "wb")


KEPT = "repeat the command (a run: `fabricbench resume`); what was measured so far is kept"


def explained(error: Exception, path: Path, *, way_on: str = KEPT) -> Exception:
    """Return what to raise for `error`, met while `path` was written; the error itself where there is nothing to explain.

    `way_on` says what to do once the disk is well again, and what is there by then.
    """
    code = error_number(error)
    reason = PLANTED.get(code or 0, os.strerror(code) if code else "")
    if code in FULL:
        return NoSpace(f"no space left on the disk while writing {path}", hint=f"free some space and {way_on}")
    if code in DENIED:
        return EnvironmentLacks(f"{path} cannot be written: {reason}", hint="choose a place that you may write to")
    if code == errno.ENOENT and not path.parent.is_dir():
        return UsageError(
            f"{path} cannot be written: there is no folder {path.parent}", hint="create it, or write elsewhere"
        )
    if code in WRONG_PLACE or code in PLANTED:
        hint = (
            "replace it by a file of its own, a copy of it say, or remove it" if code in PLANTED else "check the path"
        )
        return UsageError(f"{path} cannot be written: {reason}", hint=hint)
    if code == errno.EIO or type(error).__module__.startswith("polars"):
        return EnvironmentLacks(
            f"{path} cannot be written: {reason or str(error).splitlines()[0]}",
            hint=f"is the disk well? Then {way_on}",
        )
    return error


def error_number(error: Exception) -> int | None:
    """Return the system's error number; polars wraps an OSError in errors of its own and leaves the number in the text."""
    if isinstance(error, OSError):
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found.group(1)) if found else None


def synced(path: Path) -> None:
    """Return once a file, or what a folder holds, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
