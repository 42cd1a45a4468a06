"""Keeps the folder of a launch on the node of rank 0: `python -I -S folder.py ACTION ...`. For nodes that share no files with here.

`put` unpacks what comes on stdin into a new folder, `take` packs what is in it to stdout, `drop` removes it, `sees` tells whether a
file is the one that was written elsewhere, `silent` how long nothing has grown. Each answers with a line that begins with MARK:
whatever a login shell prints comes before it. Only the standard library, and only the user whose folder it is may look into it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

MARK = b"fabricbench-folder: "
"""Begins the one line of an answer, JSON; of `take` as many bytes as it says follow."""

MOST_IN_MEMORY = 64 * 1024 * 1024

PRIVATE = 0o700


def pack(folder: Path, into: BinaryIO, without: str = "") -> None:
    """Write all files below a folder as a compressed archive; hidden ones, links and pipes are left out.

    `without`: how names in the folder begin that are left out as well, if any.
    """
    with tarfile.open(fileobj=into, mode="w:gz", compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder)
            if without and name.parts[0].startswith(without):
                continue
            is_kept = not path.is_symlink() and (path.is_file() or path.is_dir())
            if is_kept and not any(part.startswith(".") for part in name.parts):
                archive.add(path, str(name), recursive=False)


def sha256_of(file: BinaryIO) -> str:
    """Return the hash of what is left of a file, whose end it reaches."""
    hashed = hashlib.sha256()
    while part := file.read(1024 * 1024):
        hashed.update(part)
    return hashed.hexdigest()


def unpack(archived: BinaryIO, folder: Path) -> None:
    """Write what `pack` packed below a folder, each file synced. ValueError for a name that leads out, or half an archive."""
    try:
        with tarfile.open(fileobj=archived, mode="r:gz") as archive:
            for member in archive:
                path = folder / member.name
                if Path(member.name).is_absolute() or ".." in Path(member.name).parts:
                    raise ValueError(f"{member.name} leads out of the folder")
                if member.isdir():
                    path.mkdir(parents=True, exist_ok=True)
                elif member.isfile() and (content := archive.extractfile(member)) is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("xb") as file:  # a link of that name, packed before it, is no file to write to
                        shutil.copyfileobj(content, file)
                        file.flush()
                        os.fsync(file.fileno())
                    path.chmod(member.mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise ValueError(f"the archive is not whole: {error}") from error


def own_folder(place: Path | None = None) -> Path:
    """Return this user's folder among the temporary files, where nobody else may write; OSError where it is somebody else's."""
    folder = (place or Path(tempfile.gettempdir())) / f"fabricbench-{os.getuid()}"
    try:
        folder.mkdir(mode=PRIVATE)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise OSError(f"{folder} is not a folder of this user's alone") from None
    return folder


def _folder(token: str) -> Path:
    if not token.isalnum():
        raise ValueError(f"{token!r} names no folder")
    return own_folder() / token


def _answer(answer: Mapping[str, object]) -> None:
    sys.stdout.buffer.write(MARK + json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


def _sees(path: str, content: str) -> None:
    try:
        is_seen = Path(path).read_text() == content
    except (OSError, ValueError):
        is_seen = False
    _answer({"is_seen": is_seen})


def _put(token: str, size: str) -> None:
    sent = sys.stdin.buffer.read()
    if len(sent) != int(size):
        raise ValueError(f"{len(sent)} of {size} bytes came on stdin: what reaches the node must hand it on")
    folder = _folder(token)
    folder.mkdir(mode=PRIVATE)
    unpack(io.BytesIO(sent), folder)
    _answer({"folder": str(folder)})


def _take(token: str) -> None:
    if not _folder(token).is_dir():
        _answer({"is_gone": True})
        return
    with tempfile.SpooledTemporaryFile(MOST_IN_MEMORY) as file:
        pack(_folder(token), file)  # type: ignore[arg-type]  # a file in all but its name
        size = file.tell()
        file.seek(0)
        _answer({"size": size, "sha256": sha256_of(file)})  # type: ignore[arg-type]
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _drop(token: str) -> None:
    shutil.rmtree(_folder(token), ignore_errors=True)
    with suppress(OSError):  # it holds folders of other launches
        own_folder().rmdir()
    _answer({})


def _silent(token: str, *names: str) -> None:
    """By this machine's clock alone: those of two machines need not agree."""
    written = [(_folder(token) / name).stat() for name in names if (_folder(token) / name).exists()]
    grown = [one.st_mtime for one in written if one.st_size > 0]
    _answer({"seconds": max(0.0, time.time() - max(grown)) if grown else None})


def main(arguments: list[str]) -> int:
    """Do one thing; 1 with a line on stderr where it cannot be done."""
    actions: dict[str, Callable[..., None]] = {
        "sees": _sees,
        "put": _put,
        "take": _take,
        "drop": _drop,
        "silent": _silent,
    }
    try:
        actions[arguments[0]](*arguments[1:])
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
