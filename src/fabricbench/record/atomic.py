"""Writes a file whole or not at all: a reader sees the old one or the new one, also after a crash or on a full disk."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fabricbench.errors import EnvironmentLacks, UsageError

FULL = {errno.ENOSPC, errno.EDQUOT}
DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
WRONG_PLACE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}


TEMPORARY = ".*.tmp"
"""What the names of temporary files look like: one that is still there when nobody writes was left by a kill."""


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file beside `path`; once it is written and on the disk, it takes the place of `path`.

    EnvironmentLacks if the disk is full or may not be written to, UsageError if there is no such folder; the old file is then as
    it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        synced(temporary)
        temporary.replace(path)
        synced(path.parent)
    except Exception as error:
        raise explained(error, path) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with replaced(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


KEPT = "repeat the command (a run: `fabricbench resume`); what was measured so far is kept"


def explained(error: Exception, path: Path, *, way_on: str = KEPT) -> Exception:
    """Return what to raise for `error`, met while `path` was written; the error itself where there is nothing to explain.

    `way_on` says what to do once the disk is well again, and what is there by then.
    """
    code = error_number(error)
    reason = os.strerror(code) if code else ""
    if code in FULL:
        return EnvironmentLacks(
            f"no space left on the disk while writing {path}",
            hint=f"free some space and {way_on}",
        )
    if code in DENIED:
        return EnvironmentLacks(f"{path} cannot be written: {reason}", hint="choose a place that you may write to")
    if code == errno.ENOENT and not path.parent.is_dir():
        return UsageError(
            f"{path} cannot be written: there is no folder {path.parent}", hint="create it, or write elsewhere"
        )
    if code in WRONG_PLACE:
        return UsageError(f"{path} cannot be written: {reason}", hint="check the path")
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
