"""The runs below a folder, each told in a line, and an index of them, so that only what changed is read again.

The index is a file for each folder in this user's cache ($XDG_CACHE_HOME/fabricbench/runs): the folder itself may be somebody
else's. A run's entry holds as long as its mark does, which is made of size, times and inode of its folder, its manifest, its
journal and, of each launch, of its folder, its header, its cells and its samples: all that is read of a run for this list and for
its verdict. The time of a file's change is among them, which nobody can set back, so that one that was altered in place is read
again too. Of what lies deeper in a launch's folder nothing is looked at.

An index that cannot be read, is of another version, or cannot be written is as if there were none.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from fabricbench import __version__
from fabricbench.errors import FabricbenchError, UsageError
from fabricbench.model import Model
from fabricbench.private import FILE, MOST_BYTES, make_private, read_private
from fabricbench.record.atomic import replaced
from fabricbench.record.integrity import CELLS, JOURNAL, LAUNCH, LAUNCHES, MANIFEST, SAMPLES
from fabricbench.record.lock import is_locked
from fabricbench.record.past_run import PastRun, past_run

TRACES = (LAUNCHES, "plan.json", JOURNAL)
"""Beside one of these a `manifest.json` is a run's, whatever is left of it."""

MADE_BY = f"fabricbench {__version__}, index 3"
"""The number counts up where a run of the same files is told otherwise within a version."""
PLACE = ("fabricbench", "runs")
MOST_FOLDERS = 64
"""Folders that have an index; those that were written longest ago go first."""
SETTLED_NS = 2_000_000_000
"""What changed so short a time ago may change again within the same tick of its file system's clock: it is read again."""


Judge = Callable[[PastRun], str | None]
"""Says who was faster in a run, in a sentence; None where that is not asked of it."""


def past_runs(folder: Path, judge: Judge | None = None) -> tuple[PastRun, ...]:
    """Return every run in a folder or below it, newest first, undated ones last; UsageError where there is no such folder.

    `judge` is asked of each whose verdict is not in the index, and what it says is kept there.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", hint="give the folder that holds your run directories")
    index = RunsIndex(folder)
    found = [index.told(path) for path in run_directories(folder)]
    found.sort(key=lambda one: (one.created is None, -(one.created.timestamp() if one.created else 0)))
    try:
        return _marked(found if judge is None else [index.judged(one, judge) for one in found])
    finally:
        index.save()


def _marked(runs: Sequence[PastRun]) -> tuple[PastRun, ...]:
    """Return runs, copies of one before marked as such; what is damaged is not known to be one."""
    first: dict[tuple[object, ...], str] = {}
    marked = []
    for run in runs:
        same = run.path if run.is_untold else first.setdefault(run.identity, run.path)
        marked.append(run if same == run.path else run.model_copy(update={"copy_of": same}))
    return tuple(marked)


def run_directories(folder: Path) -> Iterator[Path]:
    """Yield the run directories in a folder or below it; hidden folders, links and what a run holds are passed over."""
    left = [os.fspath(folder)]
    while left:
        here = left.pop()
        try:
            with os.scandir(here) as entries:
                found = {entry.name: entry for entry in entries}
        except OSError:  # it is gone, or may not be read
            continue
        if MANIFEST in found and not found.keys().isdisjoint(TRACES):
            yield Path(here)
            continue
        left += [
            entry.path
            for name, entry in sorted(found.items(), reverse=True)
            if not name.startswith(".") and entry.is_dir(follow_symlinks=False)
        ]


class _Entry(Model):
    """A run as it was told, and the mark of its files then."""

    mark: str
    run: PastRun


class _Stored(Model):
    """The index of a folder on the disk: its runs by their paths in it."""

    made_by: str
    folder: str
    runs: dict[str, _Entry] = {}


class RunsIndex:
    """The index of a folder. `told` tells a run, from its files where they have changed; `save` keeps what was told."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._top = os.path.realpath(folder), str(folder)
        self._before = self._read()
        self._runs: dict[str, _Entry] = {}

    def told(self, path: Path) -> PastRun:
        """Return a run as its files tell it."""
        name = self._name_of(str(path))
        mark = mark_of(str(path))
        entry = self._before.get(name)
        if entry is None or mark is None or entry.mark != mark:
            run = past_run(path)
            # A run that goes on tells another story once its process is gone, whatever its files do.
            if mark is None or is_locked(path):
                return run
            entry = _Entry(mark=mark, run=run)
        self._runs[name] = entry
        is_here = entry.run.path == str(path)  # else it was listed from another place
        return entry.run if is_here else entry.run.model_copy(update={"path": str(path)})

    def judged(self, run: PastRun, judge: Judge) -> PastRun:
        """Return a run that was told with its verdict, which is kept as long as what was told is."""
        if run.verdict is not None:
            return run
        verdict = judge(run)
        name = self._name_of(run.path)
        entry = self._runs.get(name)
        if verdict is not None and entry is not None:
            self._runs[name] = _Entry(mark=entry.mark, run=entry.run.model_copy(update={"verdict": verdict}))
        return run.model_copy(update={"verdict": verdict})

    def _name_of(self, path: str) -> str:
        return path.removeprefix(self._top).lstrip("/")

    def save(self) -> None:
        """Write the index, unless it is as it was, or cannot be."""
        if self._runs == self._before:
            return
        stored = _Stored(made_by=MADE_BY, folder=self._folder, runs=self._runs)
        with suppress(FabricbenchError, OSError, RuntimeError, ValueError):  # also names that are no text
            content = stored.model_dump_json(exclude_defaults=True).encode()
            if len(content) > MOST_BYTES:
                return
            place = make_private(_cache(), *PLACE)
            with replaced(place / self._name, FILE) as file:
                file.write(content)
            for old in sorted(place.glob("*.json"), key=lambda one: one.stat().st_mtime_ns)[:-MOST_FOLDERS]:
                old.unlink()

    def _read(self) -> dict[str, _Entry]:
        try:
            place = _cache().joinpath(*PLACE, self._name)
            stored = _Stored.model_validate_json(read_private(place))
        except (OSError, RuntimeError, ValidationError):
            return {}
        return stored.runs if (stored.made_by, stored.folder) == (MADE_BY, self._folder) else {}

    @property
    def _name(self) -> str:
        return hashlib.sha256(os.fsencode(self._folder)).hexdigest()[:32] + ".json"


def _cache() -> Path:
    """Return the folder of this user's caches. RuntimeError where nobody knows his home."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return Path(given) if given.startswith("/") else Path.home() / ".cache"


def mark_of(path: str) -> str | None:
    """Return what tells whether a run was changed, None where that cannot be told: it has links, or was changed just now."""
    seen: list[int] = []

    def see(one: str) -> None:
        try:
            found = os.lstat(one)
        except FileNotFoundError:
            seen.extend((0, 0, 0, 0))
        else:
            if stat.S_ISLNK(found.st_mode):
                raise OSError(errno.ELOOP, "what it leads to may change elsewhere", one)
            seen.extend((found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns))

    try:
        for name in ("", MANIFEST, JOURNAL, LAUNCHES):
            see(f"{path}/{name}")
        if seen[-1]:  # there are launches
            for launch in sorted(os.listdir(f"{path}/{LAUNCHES}")):  # noqa: PTH208
                for name in ("", f"/{LAUNCH}", f"/{CELLS}", f"/{SAMPLES}"):
                    see(f"{path}/{LAUNCHES}/{launch}{name}")
        numbers = struct.pack(f"{len(seen)}q", *seen)
    except (
        OSError,
        ValueError,
        struct.error,
    ):  # it cannot be read, a name has a zero byte, a number is none of a file's
        return None
    is_settled = max(*seen[2::4], *seen[3::4]) < time.time_ns() - SETTLED_NS
    return hashlib.sha256(numbers).hexdigest() if is_settled else None
