"""The guard of one rank on its node, which ends all that the rank has started, whatever its starter does to the rank."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabricbench.launch.watch import guarded_apart
from support.processes import marked_processes, new_mark

GONE_SECONDS = 10.0

STUBBORN = """
import signal, subprocess, sys, time
if len(sys.argv) == 2:
    subprocess.Popen([sys.executable, __file__, sys.argv[1], "again"], start_new_session=True)
    signal.pause()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w")
signal.pause()
"""


@dataclass
class Rank:
    """A guarded rank with a grandchild in a session of its own that hears no SIGTERM."""

    process: subprocess.Popen[bytes]
    mark: str

    def left(self) -> list[str]:
        """What of it is there when it had time to go."""
        deadline = time.monotonic() + GONE_SECONDS
        while (left := marked_processes(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return left


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[Rank]:
    mark, marked = new_mark()
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    there = tmp_path / "there"
    command = guarded_apart([sys.executable, str(tmp_path / "stubborn.py"), str(there)])
    process = subprocess.Popen(command, env={**os.environ, **marked}, start_new_session=True)
    deadline = time.monotonic() + 20
    while not there.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(marked_processes(mark)) == 4, "what the starter knows, the guard, the rank, its grandchild"
    yield Rank(process, mark)
    process.wait(GONE_SECONDS)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_stays_of_a_rank_whose_starter_kills_it(rank: Rank, number: signal.Signals):
    """As hydra does on a node whose connection is gone: SIGKILL to the process group that it made."""
    os.killpg(rank.process.pid, number)
    assert rank.left() == []


def test_nothing_stays_of_a_rank_whose_guard_is_killed(rank: Rank):
    children = Path(f"/proc/{rank.process.pid}/task/{rank.process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    assert rank.process.wait(GONE_SECONDS) == 128 + signal.SIGKILL
    assert marked_processes(rank.mark) == []


def test_the_exit_code_of_a_guarded_rank_comes_back_and_its_orphans_end():
    mark, marked = new_mark()
    code = subprocess.run(
        guarded_apart(["sh", "-c", "setsid sleep 300 & exit 7"]), env={**os.environ, **marked}, check=False, timeout=20
    ).returncode
    assert code == 7
    assert marked_processes(mark) == []


def test_a_guarded_rank_that_dies_by_a_signal_is_told_as_a_shell_does():
    command = guarded_apart(["sh", "-c", "kill -SEGV $$"])
    assert subprocess.run(command, check=False, timeout=20).returncode == 128 + signal.SIGSEGV
