"""The ledger of settings: what hosts were before a run varied them, below $XDG_STATE_HOME/fabricbench/settings/HOST, a file a run.

An entry is on the disk before anything is written, and is removed once all of it is restored. It names its run's process by its
identity, boot included: what a live run has set is its own. One lock a host serialises who begins and who restores.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from fabricbench.deadline import locks
from fabricbench.errors import EnvironmentLacks
from fabricbench.lab.ledger import check_own, host_key, own_directory, state_directory
from fabricbench.lab.process import ProcessIdentity
from fabricbench.model import Model
from fabricbench.private import read_private
from fabricbench.record.atomic import replace_text, synced

LOCK_SECONDS = 120.0
"""Nodes are asked side by side, each for seconds; longer than this, who asks them hangs."""

_LOCK = ".lock"
_SUFFIX = ".json"


class NodeEntry(Model):
    """A node of which settings are varied. `identity` names it until it is started anew.

    `restore` are the tokens that, run here, bring it back to `originals` (values by the settings' keys, for people).
    `lives_with` is the process that an emulated node ends with. `lasting` are the keys of settings that may outlive a node:
    they are forgotten only once they were read back, or by hand.
    """

    name: str
    identity: str
    restore: tuple[str, ...]
    originals: dict[str, str]
    lives_with: ProcessIdentity | None = None
    lasting: tuple[str, ...] = ()

    @property
    def is_gone(self) -> bool:
        """Whether there is no such node any more, and nothing of it to restore."""
        return self.lives_with is not None and not self.lives_with.is_alive and not self.lasting


class SettingsEntry(Model):
    """What one run varies. `is_over`: it has ended, and could not restore all, though its process may go on (a notebook).

    `job` is the Slurm job whose steps reached its nodes.
    """

    owner: ProcessIdentity
    run: str
    nodes: tuple[NodeEntry, ...]
    is_over: bool = False
    job: str = ""

    @property
    def is_live(self) -> bool:
        """Whether the run goes on, so that the settings are its own."""
        return not self.is_over and self.owner.is_alive

    @property
    def left(self) -> tuple[NodeEntry, ...]:
        """The nodes that are still to be restored."""
        return tuple(node for node in self.nodes if not node.is_gone)


def _place() -> tuple[str, str]:
    return "settings", host_key()


def folder() -> Path:
    """Return this host's part of the ledger, there or not."""
    return state_directory().joinpath(*_place())


def has_entries() -> bool:
    """Tell whether anything is in the ledger: one look into one folder."""
    try:
        return any(name.endswith(_SUFFIX) for name in os.listdir(folder()))  # noqa: PTH208 - every command pays for it
    except (OSError, EnvironmentLacks):
        return False


@contextmanager
def locked(*, waits: bool = True) -> Iterator[bool]:
    """Hold the ledger's lock, which the kernel frees when the holder dies; yield whether it is held. Raises EnvironmentLacks."""
    try:
        lock = (own_directory(*_place()) / _LOCK).open("a")
    except OSError as error:
        raise EnvironmentLacks(
            f"the ledger of settings cannot be written: {folder()}: {error.strerror}",
            hint="set XDG_STATE_HOME to a directory of yours: settings are varied only where they can be restored",
        ) from None
    with lock:
        is_held = locks(lock, LOCK_SECONDS if waits else 0.0)
        if waits and not is_held:
            raise EnvironmentLacks(
                f"another command has been reading or writing settings of hosts for more than {LOCK_SECONDS:.0f} s",
                hint=f"`fuser -v {folder() / _LOCK}` names it: wait for it, or end it; then repeat the command",
            )
        yield is_held


def new_path() -> Path:
    """Return where a new entry goes."""
    return folder() / f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"


def write(path: Path, entry: SettingsEntry) -> None:
    """Write an entry, whole or not at all, and return once it is on the disk."""
    replace_text(path, entry.model_dump_json(indent=1) + "\n")
    synced(path.parent)


def remove(path: Path) -> None:
    """Forget an entry of which all is restored."""
    path.unlink(missing_ok=True)
    with suppress(OSError):
        synced(path.parent)


def entries() -> dict[Path, SettingsEntry | None]:
    """Return every entry of this host by its file, None where one cannot be read, or somebody else may have written it.

    What an entry says is run to restore a host. Raises EnvironmentLacks where the folder is not this user's own.
    """
    check_own(*_place())
    found: dict[Path, SettingsEntry | None] = {}
    for path in sorted(folder().glob(f"*{_SUFFIX}")):
        try:
            found[path] = SettingsEntry.model_validate_json(read_private(path))
        except FileNotFoundError:
            continue
        except (OSError, ValidationError):
            found[path] = None
    return found
