"""What is written in a place where a stranger may have planted names."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fabricbench.errors import UsageError
from fabricbench.record import atomic
from fabricbench.record.atomic import appended, explained, replace_text, replaced, synced_together, written_anew
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.lock import locked


def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/dossier.html").symlink_to("../victim")
    replace_text(tmp_path / "run/dossier.html", "report")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "run/dossier.html").is_symlink()


def test_no_temporary_name_can_be_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = []
    for _ in range(2):
        with replaced(tmp_path / "x"):
            names += [path.name for path in tmp_path.glob(atomic.TEMPORARY)]
    assert len(set(names)) == 2
    assert all(len(name) >= 32 for name in names)
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda _: "guessed")
    (tmp_path / ".guessed.tmp").symlink_to("victim")
    with pytest.raises(FileExistsError), replaced(tmp_path / "x"):
        pass
    assert not (tmp_path / "victim").exists()


def test_what_cannot_be_closed_is_told_and_replaces_nothing(tmp_path: Path):
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(OSError, match="Bad file descriptor"), replaced(path) as file:  # noqa: PT012
        file.write(b"new")
        os.close(file.fileno())
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("kind", ["link", "pipe", "hard link"])
def test_a_journal_is_appended_to_only_where_it_is_a_file_of_its_own(tmp_path: Path, kind: str):
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    (tmp_path / "run").mkdir()
    path = tmp_path / "run/journal.jsonl"
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.hardlink_to(victim)
    with pytest.raises(UsageError, match=r"journal\.jsonl cannot be written"):
        Journal(path.parent).append(JournalEvent.RESUMED)
    assert victim.read_text() == "precious\n"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_lock_is_no_link_and_no_pipe(tmp_path: Path, kind: str):
    (tmp_path / "run").mkdir()
    if kind == "link":
        (tmp_path / "run/.lock").symlink_to("../victim")
        with pytest.raises(UsageError, match=r"\.lock cannot be written: it is a link"), locked(tmp_path / "run"):
            pass
    else:
        os.mkfifo(tmp_path / "run/.lock")
        with locked(tmp_path / "run"):
            pass
    assert not (tmp_path / "victim").exists()


def test_a_log_is_begun_in_a_file_of_its_own(tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "stdout.log").symlink_to("victim")
    with written_anew(tmp_path / "stdout.log") as log:
        log.write(b"printed")
    assert victim.read_text() == "precious"
    assert (tmp_path / "stdout.log").read_text() == "printed"


def test_a_file_is_appended_to(tmp_path: Path):
    for _ in range(2):
        with appended(tmp_path / "x") as file:
            file.write(b"line\n")
    assert (tmp_path / "x").read_text() == "line\nline\n"


def test_a_name_too_long_is_a_wrong_path(tmp_path: Path):
    told = explained(OSError(errno.ENAMETOOLONG, "x"), tmp_path / "x")
    assert isinstance(told, UsageError)


def test_many_files_reach_the_disk_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each that is waited for takes a millisecond; what the disk says at the end is told."""
    waited: list[int] = []
    monkeypatch.setattr(os, "fsync", waited.append)
    with synced_together(tmp_path):
        replace_text(tmp_path / "one", "1")
        with appended(tmp_path / "two") as file:
            file.write(b"2")
    assert waited == []
    assert [(tmp_path / name).read_text() for name in ("one", "two")] == ["1", "2"]
    replace_text(tmp_path / "one", "3")
    assert len(waited) == 2, "the file and its folder"
    with pytest.raises(FileNotFoundError), synced_together(tmp_path / "gone"):
        pass
