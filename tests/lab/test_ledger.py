from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabricbench.errors import UsageError
from fabricbench.lab import ledger, parse_fabrics
from fabricbench.lab.ledger import LedgerEntry
from fabricbench.lab.process import ProcessIdentity, identify
from fabricbench.lab.topology import plan_lab


def entry_of(keeper: ProcessIdentity) -> LedgerEntry:
    topology = plan_lab("a", 2, parse_fabrics("sci"), [0])
    return LedgerEntry(
        keeper=keeper,
        has_root=True,
        is_owned=False,
        owner_pid=1,
        started_at="2026-01-01T00:00:00+00:00",
        topology=topology,
        nodes={"n0": keeper},
    )


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("name", ["", "A", "../up", "a/b", "-a", "a" * 32, "a b", "ü"])
def test_a_name_that_could_not_be_a_directory_and_a_host_is_refused(name: str):
    with pytest.raises(UsageError, match="cannot be a lab's name"):
        ledger.check_name(name)


@pytest.mark.usefixtures("own_ledger")
def test_an_entry_whose_keeper_lives_stays_and_one_whose_keeper_is_gone_is_dropped(sleeper: subprocess.Popen[bytes]):
    alive = identify(sleeper.pid)
    assert alive is not None
    for name, keeper in (("lives", alive), ("gone", alive.model_copy(update={"start_ticks": alive.start_ticks - 1}))):
        ledger.directory_of(name).mkdir()
        ledger.write(name, entry_of(keeper))
    with ledger.locked():
        assert ledger.drop_stale() == ["gone"]
    assert ledger.names() == ["lives"]
    assert sleeper.poll() is None, "a later process with the same PID must not be killed"


@pytest.mark.usefixtures("own_ledger")
def test_an_entry_of_another_boot_is_stale(sleeper: subprocess.Popen[bytes]):
    here = identify(sleeper.pid)
    assert here is not None
    assert here.is_alive
    assert not here.model_copy(update={"boot_id": "another"}).is_alive


@pytest.mark.usefixtures("own_ledger")
def test_an_entry_cut_short_is_dropped():
    ledger.directory_of("half").mkdir()
    (ledger.directory_of("half") / "lab.json").write_text('{"keeper": ')
    with ledger.locked():
        assert ledger.drop_stale() == ["half"]


@pytest.mark.usefixtures("own_ledger")
def test_an_entry_of_another_version_stays_while_its_keeper_lives(sleeper: subprocess.Popen[bytes]):
    keeper = identify(sleeper.pid)
    assert keeper is not None
    for name, known in (("lives", keeper), ("gone", keeper.model_copy(update={"start_ticks": 1}))):
        ledger.directory_of(name).mkdir()
        text = json.dumps({"keeper": known.model_dump(mode="json"), "what_a_later_version_adds": True})
        (ledger.directory_of(name) / "lab.json").write_text(text)
    with ledger.locked():
        assert ledger.drop_stale() == ["gone"]
    assert sleeper.poll() is None


class OtherHost:
    """Another machine with the same home directory: its own name, machine-id and boot."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, name: str = "other", machine: str = "b" * 32
    ) -> None:
        self._monkeypatch = monkeypatch
        self._machine_id = tmp_path / "machine-id"
        self._machine_id.write_text(machine + "\n")
        self._name = name

    @contextmanager
    def logged_in(self) -> Iterator[None]:
        with self._monkeypatch.context() as there:
            there.setattr("socket.gethostname", lambda: self._name)
            there.setattr(ledger, "_MACHINE_ID", self._machine_id, raising=False)
            there.setattr("fabricbench.lab.process.boot_id", lambda: "the-boot-of-the-other-host")
            yield


@pytest.mark.usefixtures("own_ledger")
@pytest.mark.parametrize("differs", [{"name": "other"}, {"name": socket.gethostname()}, {"machine": ""}])
def test_a_lab_of_another_host_with_the_same_home_directory_stays(
    differs: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sleeper: subprocess.Popen[bytes]
):
    other = OtherHost(monkeypatch, tmp_path, **differs)
    with other.logged_in():
        keeper = identify(sleeper.pid)
        assert keeper is not None
        ledger.directory_of("theirs").mkdir()
        ledger.write("theirs", entry_of(keeper))
        ledger.directory_of("being-made").mkdir()
    with ledger.locked():
        assert ledger.drop_stale() == []
    assert ledger.names() == []
    ledger.directory_of("theirs").mkdir()  # the name is free here
    with other.logged_in():
        with ledger.locked():
            assert ledger.drop_stale() == ["being-made"]
        assert ledger.names() == ["theirs"]
        assert ledger.read("theirs") == entry_of(keeper)


@pytest.mark.usefixtures("own_ledger")
def test_after_a_reboot_the_same_host_drops_what_was_there(monkeypatch: pytest.MonkeyPatch):
    keeper = identify(os.getpid())
    assert keeper is not None
    ledger.directory_of("before").mkdir()
    ledger.write("before", entry_of(keeper))
    monkeypatch.setattr("fabricbench.lab.process.boot_id", lambda: "the-next-boot")
    with ledger.locked():
        assert ledger.drop_stale() == ["before"]


def test_a_zombie_is_not_alive(sleeper: subprocess.Popen[bytes]):
    identity = identify(sleeper.pid)
    assert identity is not None
    assert identity.kill()
    assert identity.wait(10)
    assert not identity.is_alive
    assert not identity.kill()


def test_without_a_home_the_ledger_is_in_a_directory_of_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ledger.labs_directory().parent == tmp_path / ".local" / "state" / "fabricbench" / "labs"
    monkeypatch.setenv("HOME", "/nonexistent")
    assert ledger.labs_directory().parent == Path(f"/tmp/fabricbench-{os.geteuid()}/fabricbench/labs")


def test_the_directory_of_labs_is_nobody_elses_whatever_the_umask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = os.umask(0o002)
    try:
        made = ledger.labs_directory()
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (made, made.parent, made.parent.parent)] == [0o700] * 3
    made.chmod(0o775)
    assert ledger.labs_directory().stat().st_mode & 0o777 == 0o700
