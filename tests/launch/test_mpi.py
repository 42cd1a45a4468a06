"""What the starter of an MPI answers when it is asked for its version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks
from fabricbench.launch import installation, mpi
from fabricbench.native import build_info
from support.scripts import script


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    mpi.find_starter.cache_clear()
    yield
    mpi.find_starter.cache_clear()


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("kill -9 $$", "--version` was ended by SIGKILL"),
        ("echo a program of somebody", "is of no MPI that fabricbench knows; it printed: 'a program of somebody'"),
    ],
)
def test_a_starter_that_does_not_answer_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, said: str
):
    starter = script(tmp_path / "mpiexec", does)
    built = replace(build_info(), mpiexec=str(starter))
    monkeypatch.setattr(installation, "build_info", lambda: built)
    with pytest.raises(EnvironmentLacks) as raised:
        mpi.find_starter()
    assert said in raised.value.message
