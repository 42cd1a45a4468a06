"""Nobody waits for ever for a lock whose holder hangs."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType

import pytest

from fabricbench.deadline import locks
from fabricbench.errors import EnvironmentLacks
from fabricbench.lab import ledger as labs
from fabricbench.settings import ledger as settings


def test_a_lock_that_is_freed_in_time_is_had_and_one_that_is_not_is_not(tmp_path: Path):
    path = tmp_path / "lock"
    with path.open("a") as held, path.open("a") as wanted:
        assert locks(held, 0)
        begin = time.monotonic()
        assert not locks(wanted, 0.3)
        assert 0.3 <= time.monotonic() - begin < 5
        threading.Timer(0.3, lambda: fcntl.flock(held, fcntl.LOCK_UN)).start()
        assert locks(wanted, 20)


@pytest.mark.parametrize(
    ("module", "folder", "doing"),
    [
        (labs, labs.labs_directory, "starting or ending a lab"),
        (settings, settings.folder, "reading or writing settings of hosts"),
    ],
)
def test_a_command_that_hangs_with_a_ledgers_lock_is_told_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    folder: Callable[[], Path],
    doing: str,
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.2)
    locked: Callable[[], AbstractContextManager[object]] = module.locked
    with locked():
        assert [one.name for one in folder().iterdir() if "lock" in one.name]
        with (
            pytest.raises(EnvironmentLacks, match=f"another command has been {doing} for more than") as raised,
            locked(),
        ):
            pass
    assert "fuser -v" in str(raised.value.hint)
