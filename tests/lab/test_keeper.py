"""The keeper of a lab that is short of memory: it ends, and what its caller says is one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fabricbench.lab import keeper, lab
from fabricbench.lab.topology import STAY

SAID_BY_A_THREAD = """Exception in thread Thread-1 (_die_with_the_caller):
Traceback (most recent call last):
  File "keeper.py", line 1, in _read_line
MemoryError
"""


def _exit_code_of(end: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            end()
        finally:
            os._exit(77)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _nothing() -> bytes:
    return b""


def _no_memory() -> bytes:
    raise MemoryError


@pytest.mark.parametrize("hears", [_nothing, _no_memory])
def test_a_keeper_that_cannot_hear_its_caller_ends(monkeypatch: pytest.MonkeyPatch, hears: Callable[[], bytes]) -> None:
    monkeypatch.setattr(keeper, "_read_line", hears)
    assert _exit_code_of(keeper._die_with_the_caller) == 1


def test_a_keeper_that_is_told_to_stay_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_read_line", iter([b"?\n", STAY]).__next__)
    assert _exit_code_of(keeper._die_with_the_caller) == 77


def test_of_a_keepers_traceback_the_last_line_is_told_wherever_it_begins(tmp_path: Path) -> None:
    (tmp_path / "keeper.log").write_text(SAID_BY_A_THREAD)
    assert lab._log_tail(SimpleNamespace(directory=tmp_path)) == "MemoryError"  # type: ignore[arg-type]
