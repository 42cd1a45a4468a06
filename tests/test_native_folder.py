"""Which native programs and which MPI are used."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks
from fabricbench.native import build_info, native_file

BUILD = {"mpicxx": "/gone/bin/mpicxx", "mpiexec": "/gone/bin/mpiexec", "compiler": "GNU", "build_type": "Release"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("FABRICBENCH_BIN", str(tmp_path))
    build_info.cache_clear()
    yield tmp_path
    build_info.cache_clear()


def test_the_mpi_of_a_wheel_is_found_where_the_package_is_installed_once_its_build_environment_is_gone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (folder / "build_info.json").write_text(json.dumps(BUILD | {"mpi_is_wheel": True}))
    (tmp_path / "mpiexec").touch()
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    assert build_info().mpiexec == str(tmp_path / "mpiexec")


def test_another_mpi_is_not_replaced_by_that_of_a_wheel(folder: Path):
    (folder / "build_info.json").write_text(json.dumps(BUILD))
    assert build_info().mpiexec == "/gone/bin/mpiexec"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"mpiexec": "/x"}'])
def test_a_garbled_build_info_says_to_build_again(folder: Path, text: str):
    (folder / "build_info.json").write_text(text)
    with pytest.raises(EnvironmentLacks, match=r"build_info\.json cannot be read") as caught:
        build_info()
    assert "install again" in (caught.value.hint or "")


def test_a_folder_that_is_named_is_the_only_one_that_is_looked_in(folder: Path):
    with pytest.raises(EnvironmentLacks, match=f"looked in {folder}$"):
        native_file("fabricbench-probe")
