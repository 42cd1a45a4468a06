"""Builds of our programs with another MPI: whose they are, and that they end."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks
from fabricbench.launch import building
from fabricbench.launch.installation import Installation
from support.scripts import script


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whose installation cannot be written, so that builds lie in the data folder."""
    (tmp_path / "installed").write_text("a file, in which no folder can be made")
    monkeypatch.setattr(building, "installed_folder", lambda: tmp_path / "installed")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def test_a_folder_of_builds_is_nobody_elses_whatever_the_umask(data: Path):
    before = os.umask(0o002)
    try:
        folder = building._writable_folder()
    finally:
        os.umask(before)
    assert folder == data / "fabricbench/builds"
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_builds_that_somebody_else_may_have_put_there_are_not_found(data: Path):
    build = building._writable_folder() / "mpi-0123456789ab"
    build.mkdir()
    (build / building.ABOUT).write_text(
        '{"mpi": "m", "library": "l", "mpicxx": "c", "fabricbench": "0", "sources": "s"}'
    )
    assert [one.folder for one in building.all_builds()] == [build]
    os.chown(data / "fabricbench", 65534, 65534)
    assert building.all_builds() == []
    with pytest.raises(EnvironmentLacks, match="is not a directory of this user's alone"):
        building._writable_folder()


def test_a_compiler_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(building, "STEP_SECONDS", 0.3)
    hangs = script(tmp_path / "cmake", "echo asking for a licence; sleep 600 & sleep 600")
    installation = Installation("site", sys.executable, "")
    began = time.monotonic()
    with pytest.raises(EnvironmentLacks, match=r"was not over after .* s and was ended; .*: asking for a licence"):
        building._run(installation, "building", [str(hangs)], tmp_path / "log", lambda *_: None)
    assert time.monotonic() - began < 60
