"""Completion where bash takes words apart: the arithmetic of it, and a real bash at a terminal."""

from __future__ import annotations

import os
import pty
import select
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabricbench.cli.completion import joined
from support.processes import FABRICBENCH

SECONDS = 60.0


@pytest.mark.parametrize(
    ("words", "current", "expected"),
    [
        (["f", "run", "qu"], 2, (["f", "run", "qu"], 2, "")),
        (["f", "--testbed", "lab", ":"], 3, (["f", "--testbed", "lab:"], 2, "lab:")),
        (["f", "--testbed", "lab", ":", "my"], 4, (["f", "--testbed", "lab:my"], 2, "lab:")),
        (["f", "--testbed", "lab:my"], 2, (["f", "--testbed", "lab:my"], 2, "")),
        (["f", "--testbed", "=", "lab", ":", "my"], 5, (["f", "--testbed=lab:my"], 1, "lab:")),
        (["f", "--testbed", "="], 2, (["f", "--testbed="], 1, "")),
        (["f", "--testbed", "lab", ":", "a", "=", "sci"], 6, (["f", "--testbed", "lab:a=sci"], 2, "lab:a=")),
        (["f", "--testbed", "lab", ":", "my", "-o"], 6, (["f", "--testbed", "lab:my", "-o", ""], 4, "")),
        (["f", "--testbed", "lab", ":", "my", "-o", "r"], 6, (["f", "--testbed", "lab:my", "-o", "r"], 4, "")),
        (["f", "plan", "x", "--testbed", "lab", ":", "my"], 2, (["f", "plan", "x"], 2, "")),
    ],
)
def test_words_that_bash_took_apart_are_joined(words: list[str], current: int, expected: tuple[list[str], int, str]):
    assert joined(words, current) == expected


Typed = Callable[[str, str], str]


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Typed]:
    """Types into a bash that has learnt our completion, until what is expected is on the line; returns what is there."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    script = tmp_path / "completion.sh"
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {"HOME": str(tmp_path), "TERM": "dumb", "PS1": "> ", "INPUTRC": "/dev/null"}
        environment["PATH"] = f"{Path(FABRICBENCH).parent}:{os.environ['PATH']}"
        os.chdir(tmp_path)
        os.execve(bash, ["bash", "--norc", "--noprofile", "-i"], environment)

    def type_(text: str, expected: str) -> str:
        os.write(terminal, text.encode())
        shown, deadline = "", time.monotonic() + SECONDS
        while expected not in shown and select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
        return shown

    type_(f"_FABRICBENCH_COMPLETE=source_bash fabricbench > {script}; . {script}; echo rea''dy\n", "ready\r\n")
    yield type_
    os.write(terminal, b"\x15exit\n")
    os.waitpid(pid, 0)
    os.close(terminal)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("fabricbench run quick --testbed lab:myr", "--testbed lab:myrinet "),
        ("fabricbench run quick --testbed lab:fast-ethernet,myr", "--testbed lab:fast-ethernet,myrinet "),
        ("fabricbench run quick --testbed=lab:myr", "--testbed=lab:myrinet "),
        ("fabricbench run qui", "run quick "),
    ],
)
def test_bash_completes_words_that_it_takes_apart(typed: Typed, line: str, completed: str):
    assert completed in typed(f"{line}\t", completed)
