"""Directories and files of this user's alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks
from fabricbench.private import check_private, make_private, read_private, write_private

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


def test_a_directory_that_is_open_to_others_is_closed(tmp_path: Path):
    (tmp_path / "state").mkdir(mode=0o775)
    (tmp_path / "state").chmod(0o775)
    check_private(tmp_path, "state")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_a_link_in_place_of_a_directory_is_refused(tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to("elsewhere")
    with pytest.raises(EnvironmentLacks, match="of this user's alone"):
        make_private(tmp_path, "state")


@as_root
def test_a_directory_of_somebody_else_is_refused(tmp_path: Path):
    (tmp_path / "state").mkdir()
    os.chown(tmp_path / "state", NOBODY, NOBODY)
    with pytest.raises(EnvironmentLacks, match=f"belongs to user {NOBODY}"):
        make_private(tmp_path, "state", "labs")
    assert not (tmp_path / "state" / "labs").exists()


@as_root
def test_a_file_of_somebody_else_is_not_read(tmp_path: Path):
    path = tmp_path / "key"
    write_private(path, b"x")
    assert read_private(path) == b"x"
    os.chown(path, NOBODY, NOBODY)
    with pytest.raises(PermissionError):
        read_private(path)


def test_a_file_that_others_may_write_is_not_read(tmp_path: Path):
    path = tmp_path / "key"
    write_private(path, b"x")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o660)
    with pytest.raises(PermissionError):
        read_private(path)


def test_a_file_is_written_through_no_link(tmp_path: Path):
    (tmp_path / "key").symlink_to("victim")
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "key", b"x")
    assert not (tmp_path / "victim").exists()
