"""What a disk holds after the power was lost: only what was synced, a file's content by its own fsync, its name by its folder's.

The strictest that POSIX allows, fsync(2): content that was never synced is gone, and a name that was made, replaced or removed
since its folder was synced is as it was then.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from stat import S_ISDIR

import pytest


class Disk:
    """Follows every `os.fsync` of this process; what is below `root` counts, and `root` itself is there."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.at_each_sync: Callable[[], None] = lambda: None
        self._real = os.fsync
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._held: list[int] = []
        monkeypatch.setattr(os, "fsync", self._fsync)

    def _fsync(self, descriptor: int) -> None:
        self._real(descriptor)
        status = os.fstat(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if S_ISDIR(status.st_mode):
            self._names[status.st_ino] = {
                one.name: (one.inode(), one.is_dir(follow_symlinks=False)) for one in os.scandir(path)
            }
        elif status.st_ino not in self._contents:
            self._held.append(os.open(path, os.O_RDONLY))  # so that no other file gets its number
        if not S_ISDIR(status.st_mode):
            self._contents[status.st_ino] = path.read_bytes()
        self.at_each_sync()

    def after_power_loss(self, copy: Path) -> Path:
        """Write what would be left of `root` into a new folder and return it."""
        copy.mkdir()
        self._restore(self.root.stat().st_ino, copy)
        return copy

    def _restore(self, folder: int, copy: Path) -> None:
        for name, (number, is_folder) in self._names.get(folder, {}).items():
            if is_folder:
                (copy / name).mkdir()
                self._restore(number, copy / name)
            else:
                (copy / name).write_bytes(self._contents.get(number, b""))

    def close(self) -> None:
        """Let go of the files."""
        for descriptor in self._held:
            os.close(descriptor)
