"""Writes a file whole or not at all: a reader sees the old one or the new one, also after a crash or on a full disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabricbench.errors import EnvironmentLacks

FULL = {errno.ENOSPC, errno.EDQUOT}
DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file beside `path`; once it is written and on the disk, it takes the place of `path`.

    EnvironmentLacks if the disk is full or may not be written to; the old file is then as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise explained(error, path) from error
    finally:
        temporary.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with replaced(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def explained(error: OSError, path: Path) -> Exception:
    """Return what to raise for `error`, met while `path` was written: EnvironmentLacks where the user can mend it."""
    if error.errno in FULL or "No space left" in str(error):
        return EnvironmentLacks(
            f"no space left on the disk while writing {path}",
            hint="free some space and run `fabricbench resume`; what was measured so far is kept",
        )
    if error.errno in DENIED:
        return EnvironmentLacks(
            f"{path} cannot be written: {error.strerror}",
            hint="choose a run directory that you may write to",
        )
    return error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
