"""Finds the processes that a test started, however they were started, by a mark in their environment."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

FABRICBENCH = str(Path(sys.executable).with_name("fabricbench"))

MARK = "FABRICBENCH_TEST_MARK"


def new_mark() -> tuple[str, dict[str, str]]:
    """Return a mark and what to add to an environment so that it is inherited."""
    mark = f"{MARK}={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")
    return mark, {name: value}


def marked_processes(mark: str) -> list[str]:
    """Return the living processes that carry the mark: `PID command`."""
    return [f"{entry.name} {_command(entry)}" for entry in _entries() if _carries(entry, mark)]


def held_namespaces() -> list[str]:
    """Return the mounts that hold a namespace open without a process; the only other way to outlive its processes."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - nsfs " in line]


def _entries() -> list[Path]:
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _carries(entry: Path, mark: str) -> bool:
    try:
        return mark.encode() in (entry / "environ").read_bytes().split(b"\0") and "Z" not in _state(entry)
    except OSError:
        return False


def _state(entry: Path) -> str:
    return (entry / "stat").read_text().rpartition(")")[2].split()[0]


def _command(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120]
    except OSError:
        return "?"
