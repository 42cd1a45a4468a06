"""Whatever of a launch stood still while it was measured is seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fabricbench.launch import standstill
from fabricbench.launch.launcher import Command
from fabricbench.launch.standstill import StandstillWatch
from fabricbench.launch.watch import ProgramEnd, guarded, run_watched

RANKS = "sleep 300.25 & setsid sleep 300.5 & wait"


def stopped_while(pids: Callable[[], list[int]], seconds: float) -> threading.Thread:
    """Stop processes for a while, once they are there."""

    def stop() -> None:
        deadline = time.monotonic() + 20
        while not (found := pids()) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in found:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=stop)
    thread.start()
    return thread


def of_launch(directory: Path, *words: str) -> list[int]:
    """Return the processes with these words of the launch in `directory`, once both its ranks run; other tests start the same."""
    running: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink() == directory:
                running[int(entry.name)] = (entry / "cmdline").read_bytes().decode().rstrip("\0").split("\0")
    if not all(["sleep", seconds] in running.values() for seconds in ("300.25", "300.5")):
        return []
    return [pid for pid, command in running.items() if command == list(words)]


def watched(
    directory: Path, script: str, beside: dict[int, str] | None = None, limit_seconds: float = 3.0
) -> ProgramEnd:
    command = Command(guarded(["/bin/sh", "-c", script]), directory, beside=beside or {})
    return run_watched(command, limit_seconds=limit_seconds)


def test_a_launch_that_went_on_all_the_time_stood_nowhere(tmp_path: Path):
    assert watched(tmp_path, "sleep 1.5", limit_seconds=20).standstills == ()


@pytest.mark.slow
@pytest.mark.parametrize("words", [("sleep", "300.25"), ("sleep", "300.5"), ("/bin/sh", "-c", RANKS)])
def test_a_process_of_the_launch_that_was_stopped_is_seen_wherever_it_is(tmp_path: Path, words: tuple[str, ...]):
    """A rank, one in a session of its own, the starter."""
    thread = stopped_while(lambda: of_launch(tmp_path, *words), 1.6)
    outcome = watched(tmp_path, RANKS, limit_seconds=4.0)
    thread.join()
    [found] = outcome.standstills
    assert found.what.startswith(" ".join(words))
    assert 1.5 < found.seconds < 3.5
    assert abs(found.begin_unix_ns / 1e9 - time.time()) < 10
    assert "stood still for" in str(found)


@pytest.mark.slow
def test_one_that_is_still_stopped_when_the_launch_is_ended_is_seen_as_well(tmp_path: Path):
    thread = stopped_while(lambda: of_launch(tmp_path, "sleep", "300.25"), 6.0)
    [found] = watched(tmp_path, RANKS).standstills
    assert found.what == "sleep 300.25"
    thread.join()


@pytest.fixture
def switch() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "300.75"])
    yield process.pid
    process.kill()
    process.wait()


@pytest.mark.slow
def test_a_switch_or_a_keeper_beside_the_launch_is_named(tmp_path: Path, switch: int):
    thread = stopped_while(lambda: [switch], 1.6)
    [found] = watched(tmp_path, "sleep 300", {switch: "the switch of fe in lab four"}).standstills
    thread.join()
    assert (found.what, found.pid) == ("the switch of fe in lab four", switch)


def test_a_machine_that_slept_is_seen(monkeypatch: pytest.MonkeyPatch):
    asleep = iter([5.0, 5.0, 35.0])
    monkeypatch.setattr(standstill, "_seconds_asleep", lambda: next(asleep))
    watch = StandstillWatch(os.getpid(), {})
    watch.look()
    assert watch.found == []
    watch.look()
    assert [(one.what, one.pid, one.seconds) for one in watch.found] == [("this machine", None, 30.0)]


@pytest.mark.slow
def test_a_frozen_container_is_told_from_a_watcher_that_alone_was_stopped():
    """After Ctrl-Z the launch goes on: its processes have used processor time when the watcher comes back."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    idle = subprocess.Popen(["sleep", "300"])
    try:
        for pid, expected in ((busy.pid, 0), (idle.pid, 1)):
            watch = StandstillWatch(pid, {})
            watch.look()
            time.sleep(1.0)
            watch.look(5.5)
            assert len(watch.found) == expected
            watch.look(5.5, is_here=False)
            assert len(watch.found) == expected, "of ranks on other machines it tells nothing"
    finally:
        for each in (busy, idle):
            each.kill()
            each.wait()
