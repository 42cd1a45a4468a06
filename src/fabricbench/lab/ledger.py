"""The ledger: what labs there are on this host, one directory each, under $XDG_STATE_HOME/fabricbench/labs/HOST.

A home directory may be that of many hosts: each has a directory of its own there, and never looks into another's, whose processes
it cannot see. An entry names the keeper by its identity, boot included; an entry whose keeper is gone is stale and is dropped, and
said, at the next start. One lock a host serialises creation, removal and dropping, so two starts never race for a name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from fabricbench.deadline import locks
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab.process import ProcessIdentity
from fabricbench.lab.topology import LabTopology
from fabricbench.model import Model
from fabricbench.private import check_private, make_private, read_private

LOCK_SECONDS = 120.0
"""A lab of many guests takes most of a minute to start; longer than this, who starts it hangs."""

STATE = "fabricbench"
_ENTRY = "lab.json"
_LOCK = ".lock"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,30}\Z")
_MACHINE_ID = Path("/etc/machine-id")
_MOST_OF_A_HOST_NAME = 40


class LedgerEntry(Model):
    """What is known of a lab. Without `nodes` it is still being made.

    `nodes`, `switches` and `guests` (by node) give the processes by name; `inner_pids` those of the nodes as seen inside the lab.
    """

    keeper: ProcessIdentity
    has_root: bool
    is_owned: bool
    owner_pid: int
    started_at: str
    topology: LabTopology
    nodes: dict[str, ProcessIdentity] = {}
    inner_pids: dict[str, int] = {}
    switches: dict[str, ProcessIdentity] = {}
    guests: dict[str, ProcessIdentity] = {}


def check_name(name: str) -> None:
    """Raise UsageError unless `name` can be a lab's: it becomes a directory and a host name."""
    if not _NAME.match(name):
        raise UsageError(
            f"{name!r} cannot be a lab's name",
            hint="use up to 31 lower-case letters, digits, - and _, beginning with a letter or a digit",
        )


def host_key() -> str:
    """Return what names this host among those that share a home directory: the same after a reboot.

    The host name alone may be `localhost` on each, and machines that boot from one image have one machine-id.
    """
    name = socket.gethostname()
    try:
        machine = _MACHINE_ID.read_text().strip()
    except OSError:
        machine = ""
    digest = hashlib.sha256(f"{name}\n{machine}".encode()).hexdigest()[:12]
    return f"{re.sub('[^A-Za-z0-9-]', '-', name)[:_MOST_OF_A_HOST_NAME]}.{digest}"


def state_directory() -> Path:
    """Return where fabricbench keeps what outlives a run, for this user: not made yet, and not looked at."""
    return _state_home() / STATE


def own_directory(*names: str) -> Path:
    """Return a directory below that, made if need be, that is this user's alone. Raises EnvironmentLacks."""
    return make_private(_state_home(), STATE, *names)


def check_own(*names: str) -> None:
    """Shut others out of such a directory, where there is one. EnvironmentLacks where it is not this user's own."""
    check_private(_state_home(), STATE, *names)


def labs_directory() -> Path:
    """Return the directory of this host's part of the ledger, made if need be. Raises EnvironmentLacks."""
    return own_directory("labs", host_key())


def directory_of(name: str) -> Path:
    """Return the directory of a lab, there or not."""
    check_name(name)
    return labs_directory() / name


@contextmanager
def locked() -> Iterator[None]:
    """Hold the ledger's lock; the kernel frees it when the holder dies. EnvironmentLacks where another holds it for too long."""
    path = labs_directory() / _LOCK
    with path.open("a") as lock:
        if not locks(lock, LOCK_SECONDS):
            raise EnvironmentLacks(
                f"another command has been starting or ending a lab for more than {LOCK_SECONDS:.0f} s",
                hint=f"`fuser -v {path}` names it: wait for it, or end it; then repeat the command",
            )
        yield


def read(name: str) -> LedgerEntry | None:
    """Return the entry of a lab; None where there is none, or one cut short."""
    try:
        return LedgerEntry.model_validate_json(read_private(directory_of(name) / _ENTRY))
    except (OSError, ValidationError):
        return None


def write(name: str, entry: LedgerEntry) -> None:
    """Write the entry of a lab: a reader sees the old one or the new one."""
    target = directory_of(name) / _ENTRY
    draft = target.with_suffix(".draft")
    draft.write_text(entry.model_dump_json(indent=1))
    draft.replace(target)


def remove(name: str) -> None:
    """Forget a lab that is gone."""
    shutil.rmtree(directory_of(name), ignore_errors=True)


def names() -> list[str]:
    """Return the names of this host's entries, stale ones too."""
    return sorted(path.name for path in labs_directory().iterdir() if path.is_dir() and _NAME.match(path.name))


def living() -> dict[str, LedgerEntry]:
    """Return this host's labs that run, by name."""
    entries = {name: read(name) for name in names()}
    return {
        name: entry for name, entry in entries.items() if entry is not None and entry.nodes and entry.keeper.is_alive
    }


def drop_stale() -> list[str]:
    """Remove the entries whose lab is gone, or whose maker died half-way; return their names. The lock must be held."""
    dropped = []
    for name in names():
        entry = read(name)
        keeper = entry.keeper if entry is not None else _keeper_of(name)
        is_whole = entry is None or bool(entry.nodes)
        if keeper is not None and keeper.is_alive:
            # An entry that cannot be read beside a keeper that lives was written by another version: not ours to end.
            if is_whole:
                continue
            if keeper.kill():
                keeper.wait(10.0)
        remove(name)
        dropped.append(name)
    return dropped


def _keeper_of(name: str) -> ProcessIdentity | None:
    """Return the keeper alone, the one part of an entry that every version writes the same way."""
    try:
        return ProcessIdentity.model_validate(json.loads(read_private(directory_of(name) / _ENTRY))["keeper"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _state_home() -> Path:
    given = os.environ.get("XDG_STATE_HOME")
    if given and Path(given).is_absolute():
        return Path(given)
    home = Path(os.environ.get("HOME", "/nonexistent"))
    if home.is_absolute() and home.is_dir() and os.access(home, os.W_OK):
        return home / ".local" / "state"
    return make_private(Path("/tmp"), f"fabricbench-{os.geteuid()}")  # noqa: S108 - checked to be ours
