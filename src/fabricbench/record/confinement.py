"""Whether a run directory stands for itself alone: no name in it that we read or write is a link out of it, a pipe or a device.

Looked at once, where a run is opened, by every command: from the kinds that folders tell of their entries, so that a run of ten
thousand files costs milliseconds. Of a launch's folder only the names that fabricbench gives are looked at: it is the working
directory of programs, which may leave links to their inputs there, and nothing of ours opens those.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fabricbench.errors import UsageError
from fabricbench.record.integrity import LAUNCHES
from fabricbench.record.launch_files import OF_A_LAUNCH

ATTEMPT = "attempt-"
"""Begins the name of a folder, within a launch's, that holds an earlier attempt: cut short, or measured too far from its pair."""
TEXTS = "texts"
"""In the folder of an imported launch: what was read."""
MOST_ENTRIES = 1_000_000
"""Names in a run directory. Ten years of a launch a minute have fewer; a tree without end costs a second."""
MOST_LEVELS = 12
"""Folders within one another; a run has five, and its map's second run as many below the first."""


def check_confined(directory: Path) -> None:
    """Raise UsageError where a name is a link that leads out of a run directory or to a folder, or neither a file nor a folder."""
    whole = directory.resolve()
    for number, entry in enumerate(_entries(directory, 1)):
        if number >= MOST_ENTRIES:
            raise UsageError(
                f"{directory} holds more than {MOST_ENTRIES:,} files",
                hint="no run has as many: is it the right folder?",
            )
        if entry.is_symlink():
            if not Path(os.path.realpath(entry.path)).is_relative_to(whole):
                raise UsageError(
                    f"{entry.path} is a link to {Path(entry.path).readlink()}, outside of the run directory",
                    hint="nothing outside is read or written: replace the link by what it stands for, or remove it",
                )
            path = Path(entry.path)
            if path.is_dir() and _holds_launches(path):  # what is looked at there depends on the name here
                raise UsageError(
                    f"{entry.path} is a link to a folder, {Path(entry.path).readlink()}",
                    hint="replace the link by the folder that it stands for, or remove it",
                )
            if path.exists() and not (path.is_dir() or path.is_file()):
                raise _strange(entry)
        elif not entry.is_dir(follow_symlinks=False) and not entry.is_file(follow_symlinks=False):
            raise _strange(entry)


def _holds_launches(path: Path) -> bool:
    """Tell whether a folder of this name is taken for that of launches, for a launch's, or for a part of one."""
    return LAUNCHES in (path.name, path.parent.name) or path.name == TEXTS or path.name.startswith(ATTEMPT)


def _strange(entry: os.DirEntry[str]) -> UsageError:
    return UsageError(f"{entry.path} is neither a file nor a folder", hint="remove it: no run has such a thing")


def _entries(directory: Path, level: int) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder and those below that are no links; UsageError of one that cannot be read: it may hold launches."""
    if level > MOST_LEVELS:
        raise UsageError(
            f"{directory} lies {level} folders deep in a run directory", hint="remove it: no run has as many"
        )
    try:
        with os.scandir(directory) as found:
            entries = sorted(found, key=lambda one: one.name)
    except (FileNotFoundError, NotADirectoryError):
        return  # it was moved just now: the run goes on
    except OSError as error:
        raise UsageError(f"{directory} cannot be read: {error.strerror}", hint="check its permissions") from error
    if not os.access(directory, os.X_OK):
        raise UsageError(f"{directory} cannot be entered", hint="check its permissions")
    is_launch = level > 2 and (directory.parent.name == LAUNCHES or directory.name.startswith(ATTEMPT))
    for entry in entries:
        if is_launch and not (
            entry.name in OF_A_LAUNCH or entry.name == TEXTS or entry.name.startswith((ATTEMPT, "."))
        ):
            continue
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(Path(entry.path), level + 1)
